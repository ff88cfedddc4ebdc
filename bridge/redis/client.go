package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// How long the server may take. A server that is whole answers in less than a
// millisecond; these bound how late a dead one is noticed.
const (
	dialTimeout  = 2 * time.Second
	replyTimeout = 3 * time.Second
)

// LogDriver has what the driver says of its connections logged, at level debug: the
// bridge tells what matters in its own words. The driver has one logger for the whole
// program, which writes to standard error until it is told otherwise; so a program
// decides, once and at its start, and no Bridge does.
func LogDriver(log *slog.Logger) { goredis.SetLogger(driverLog{log}) }

type driverLog struct{ log *slog.Logger }

// driverLine is the most of what the driver says at a time.
const driverLine = 300

func (d driverLog) Printf(ctx context.Context, format string, args ...any) {
	if !d.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	line := fmt.Sprintf(format, args...)
	d.log.DebugContext(ctx, "redis: driver", "says", line[:min(len(line), driverLine)])
}

// newClient makes the connections for commands, which are dialled when they are
// needed. Nothing is repeated by the driver: what was not answered may have been
// done, and only the bridge can tell.
func (c Config) newClient() goredis.UniversalClient {
	switch c.Mode {
	case Sentinel:
		return goredis.NewFailoverClient(&goredis.FailoverOptions{
			MasterName: c.MasterName, SentinelAddrs: c.Addresses,
			Username: c.Username, Password: c.Password, TLSConfig: c.TLS, Protocol: 2,
			MaxRetries: -1, DialTimeout: dialTimeout, DialerRetries: 1,
			ReadTimeout: replyTimeout, WriteTimeout: replyTimeout, DisableIdentity: true,
		})
	case Cluster:
		return goredis.NewClusterClient(&goredis.ClusterOptions{
			Addrs:    c.Addresses,
			Username: c.Username, Password: c.Password, TLSConfig: c.TLS, Protocol: 2,
			MaxRetries: -1, MaxRedirects: -1, DialTimeout: dialTimeout, DialerRetries: 1,
			ReadTimeout: replyTimeout, WriteTimeout: replyTimeout, DisableIdentity: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
	default:
		return goredis.NewClient(c.options(c.Addresses[0]))
	}
}

func (c Config) options(address string) *goredis.Options {
	return &goredis.Options{
		Addr: address, Username: c.Username, Password: c.Password, TLSConfig: c.TLS, Protocol: 2,
		MaxRetries: -1, DialTimeout: dialTimeout, DialerRetries: 1,
		ReadTimeout: replyTimeout, WriteTimeout: replyTimeout, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// primary is the address of the one server for subscriptions, in the modes that
// have one.
func (c Config) primary(ctx context.Context) (string, error) {
	if c.Mode != Sentinel {
		return c.Addresses[0], nil
	}
	var faults []error
	for _, address := range c.Addresses {
		o := c.options(address)
		o.Username, o.Password = "", ""
		sentinel := goredis.NewSentinelClient(o)
		found, err := sentinel.GetMasterAddrByName(ctx, c.MasterName).Result()
		_ = sentinel.Close() // nothing is under way on it
		switch {
		case err == nil && len(found) == 2:
			return net.JoinHostPort(found[0], found[1]), nil
		case err == goredis.Nil:
			err = fmt.Errorf("redis: %s knows no master %q", address, c.MasterName)
		}
		faults = append(faults, err)
	}
	return "", errors.Join(faults...)
}

var errOver = errors.New("redis: the link is over")

// dialLink opens one connection for subscriptions, which is never replaced behind
// our back: a second dial fails, and so does everything after the first loss.
func (c Config) dialLink(address string) (*goredis.Client, *goredis.PubSub) {
	o := c.options(address)
	var dialled atomic.Bool
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dialled.Swap(true) {
			return nil, errOver
		}
		if c.TLS != nil {
			return (&tls.Dialer{NetDialer: dialer, Config: c.TLS}).DialContext(ctx, network, address)
		}
		return dialer.DialContext(ctx, network, address)
	}
	client := goredis.NewClient(o)
	return client, client.Subscribe(context.Background())
}
