package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// BenchmarkPresenceChange is one member who comes or goes, in many topics, 128 under
// way; beside it a bare pipeline of 128 counts with a message each.
func BenchmarkPresenceChange(b *testing.B) {
	s := server.Start(b)
	b.Run("pulse", func(b *testing.B) {
		p := redis.NewPresence(open(b, s.Address()))
		defer p.Close()
		slots := make(chan struct{}, inFlight)
		b.ReportAllocs()
		b.ResetTimer()
		for i := range b.N {
			slots <- struct{}{}
			topic := codec.Topic{Tenant: fmt.Sprint("t", i%8), Room: fmt.Sprint("chat:", i%1000)}
			u := bridge.PresenceUpdate{Put: []codec.Member{{Subject: "ann", Sessions: 1}}}
			if i/1000%2 == 1 {
				u = bridge.PresenceUpdate{Remove: []string{"ann"}}
			}
			p.Change(topic, uint64(i+1), u, func(_ bridge.Mark, err *codec.Error) {
				if err != nil {
					b.Error(err)
				}
				<-slots
			})
		}
		for range inFlight {
			slots <- struct{}{}
		}
	})
	b.Run("bare pipeline", func(b *testing.B) {
		c := goredis.NewClient(&goredis.Options{Addr: s.Address(), Protocol: 2, DisableIdentity: true})
		defer func() { _ = c.Close() }()
		ctx := context.Background()
		b.ReportAllocs()
		for i := 0; i < b.N; i += inFlight {
			pipe := c.Pipeline()
			for j := range inFlight {
				pipe.HIncrBy(ctx, fmt.Sprint("h", (i+j)%1000), "ann", 1)
				pipe.Publish(ctx, fmt.Sprint("h", (i+j)%1000), "ann")
			}
			if _, err := pipe.Exec(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRenew is 512 leases in one call; beside it 512 plain PEXPIREs in one
// pipeline.
func BenchmarkRenew(b *testing.B) {
	s := server.Start(b)
	var held []bridge.Lease
	for n := range 512 {
		held = append(held, numbered(n))
	}
	b.Run("pulse", func(b *testing.B) {
		l := leasesOf(open(b, s.Address(), node("a", "pulse:")))
		b.ReportAllocs()
		for range b.N {
			if err := l.renew(held...); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(held)), "ns/lease")
	})
	b.Run("bare pipeline", func(b *testing.B) {
		c := goredis.NewClient(&goredis.Options{Addr: s.Address(), Protocol: 2, DisableIdentity: true})
		defer func() { _ = c.Close() }()
		ctx := context.Background()
		b.ReportAllocs()
		for range b.N {
			pipe := c.Pipeline()
			for _, lease := range held {
				pipe.PExpire(ctx, "pulse:session:acme:"+lease.Session, time.Minute)
			}
			if _, err := pipe.Exec(ctx); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(held)), "ns/lease")
	})
}

// BenchmarkPresenceList is a page of 1,000 of 10,000 members, on three nodes.
func BenchmarkPresenceList(b *testing.B) {
	s := server.Start(b)
	var p *redis.Presence
	for n, name := range []string{"a", "b", "c"} {
		p, _ = present(b, s.Address(), name)
		var u bridge.PresenceUpdate
		for i := range 5000 {
			u.Put = append(u.Put, member(fmt.Sprintf("s%05d", 2500*n+i), "1"))
		}
		done := make(chan *codec.Error, 1)
		p.Change(lobby, 1, u, func(_ bridge.Mark, err *codec.Error) { done <- err })
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for range b.N {
		done := make(chan struct{})
		p.List(lobby, "s03000", 1000, func(page bridge.MemberPage, err *codec.Error) {
			if err != nil || len(page.Members) != 1000 || page.Count != 10_000 {
				b.Error(len(page.Members), page.Count, err)
			}
			close(done)
		})
		<-done
	}
}
