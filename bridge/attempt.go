package bridge

import (
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// Attempt asks to be the one that does a command, among all that bear its name:
// topic, subject and key. Names of commands and of publications do not meet.
type Attempt struct {
	Subject, Key string

	// Hold is how long the others wait for the one at most: who does not settle
	// in that time, since its node died, has lost the attempt.
	Hold time.Duration
}

// Attempted is the answer to an Attempt.
//
// Err is nil if the command is to be done or was done. Otherwise it is what the
// one that did it was answered with, for whoever waited for it, or its code is
//   - CodeUnavailable: it did not settle in time, or the broker cannot tell;
//   - CodeQuotaExceeded, CodeBackpressured: for want of budget, or of place to wait;
//   - CodeTooLarge: done, but its result was too large to be remembered.
type Attempted struct {
	// Token, if not 0, says that the caller is the one: it does the command, and
	// then calls Settle with the token, once.
	Token uint64

	// Result is the first one's, when Token is 0 and Err nil.
	Result codec.Data

	Err *codec.Error
}

// Settlement tells what a command came to. With Err it was not done: those who
// wait are answered with it, and nothing is remembered. Else they get Result, and
// so does whoever repeats it within Window, which is not prolonged; 0: nobody.
type Settlement struct {
	Subject, Key string
	Token        uint64
	Window       time.Duration
	Result       codec.Data
	Err          *codec.Error
}
