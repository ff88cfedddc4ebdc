package codec

// Cause is why a connection ends. Numbers exist on the wire only. The zero value
// is no cause.
type Cause uint8

const (
	CauseNormal          Cause = iota + 1 // asked for
	CauseGoingAway                        // the client's page went away
	CauseProtocol                         // violation of the transport's protocol
	CauseUnsupportedData                  // message of a kind that is not taken
	CauseInvalidText                      // invalid UTF-8 seen by the transport
	CausePolicy                           // any other violation
	CauseTooLarge                         // message over max_message_bytes
	CauseInternal                         // fault of the server
	CauseRestart                          // the node leaves
	CauseOverload                         // too slow a reader, or the node is full
	CauseMalformed                        // message that is no frame
	CauseUnauthenticated                  // credentials missing, invalid or ended
	CauseForbidden                        // not allowed here
	CauseTakenOver                        // a newer connection owns the session
	CauseTimeout                          // no hello or no pong in time
	CauseRateLimited                      // over its rate for too long
	CauseAbrupt                           // no close frame that says why; never sent
)

var causes = [...]struct {
	code  uint16
	label string
	final bool // the session is over
}{
	0:                    {0, "none", false},
	CauseNormal:          {1000, "normal", true},
	CauseGoingAway:       {1001, "going_away", true},
	CauseProtocol:        {1002, "protocol", true},
	CauseUnsupportedData: {1003, "unsupported_data", true},
	CauseInvalidText:     {1007, "invalid_text", true},
	CausePolicy:          {1008, "policy", true},
	CauseTooLarge:        {1009, "too_large", true},
	CauseInternal:        {1011, "internal", false},
	CauseRestart:         {1012, "restart", false},
	CauseOverload:        {1013, "overload", false},
	CauseMalformed:       {4400, "malformed", true},
	CauseUnauthenticated: {4401, "unauthenticated", false},
	CauseForbidden:       {4403, "forbidden", true},
	CauseTakenOver:       {4409, "taken_over", false},
	CauseTimeout:         {4500, "timeout", false},
	CauseRateLimited:     {4529, "rate_limited", false},
	CauseAbrupt:          {1006, "abrupt", false},
}

// CloseCode is the cause's number on the wire. 1006 (CauseAbrupt) and 0 must not
// be sent.
func (c Cause) CloseCode() uint16 { return causes[c].code }

// String is a bounded metric label.
func (c Cause) String() string { return causes[c].label }

// Immediate reports whether the close drops what was queued instead of coming
// after it.
func (c Cause) Immediate() bool { return c == CauseMalformed || c == CauseTakenOver }

// Final reports whether the close ends the session for good: the client stays
// closed, nobody resumes. With CauseUnauthenticated a client may come back with
// new credentials, and with CauseTakenOver the newer connection goes on.
func (c Cause) Final() bool { return causes[c].final }

// CauseOf reads the close code of a peer. Codes without a cause of their own
// count as what a client must do about them: 1010 and unknown 44xx are
// violations, all else (no code included) is an abrupt end.
func CauseOf(closeCode uint16) Cause {
	for c := CauseNormal; c < CauseAbrupt; c++ {
		if causes[c].code == closeCode {
			return c
		}
	}
	switch {
	case closeCode == 1010:
		return CauseProtocol
	case closeCode/100 == 44:
		return CausePolicy
	}
	return CauseAbrupt
}
