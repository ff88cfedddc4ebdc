package redis

import "log/slog"

// complaint logs why something is not to be had, and is silent while it is for the same
// reason. Its owner is who tries.
type complaint struct {
	log  *slog.Logger
	what string
	last string // reason; empty: there is none
}

// tell is told how each attempt went; nil: well.
func (c *complaint) tell(err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	if reason != "" && reason != c.last {
		c.log.Warn(c.what, "err", reason)
	}
	c.last = reason
}
