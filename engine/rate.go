package engine

import (
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

// limited is a rate as a Meter takes it.
func limited(r backpressure.Rate) backpressure.Rate {
	return backpressure.Rate{Messages: max(0, r.Messages), Bytes: max(0, r.Bytes)}
}

// within judges a request by the rate of its client's tenant, which is the last
// thing that a request is judged by.
func (x *exchange) within(r codec.Request) *codec.Error {
	n, err := x.e.tenant(x.identity.Tenant)
	if err != nil {
		return errLeaving
	}
	if wait := n.rates.Take(x.e.pool.Now(), message.Weight(r)); wait > 0 {
		return codec.Retry(codec.CodeRateLimited, codec.ScopeTenant, wait, "faster than the tenant's clients may be")
	}
	return nil
}
