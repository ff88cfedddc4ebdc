package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Sentinels are three processes that watch a primary with its replica, and fail over
// when two of them have missed it for a while.
type Sentinels struct {
	Addresses        []string
	Primary, Replica *Server // as at the start
	sentinels        []*Server
}

// MasterName is the one that the sentinels know.
const MasterName = "pulse"

// StartSentinels runs a primary, a replica and three sentinels, which miss a primary after
// some time. args are further ones of both servers.
func StartSentinels(tb TB, missing time.Duration, args ...string) *Sentinels {
	tb.Helper()
	g := &Sentinels{Primary: Start(tb, args...), Replica: Start(tb, args...)}
	g.Replica.Replicate(g.Primary)
	for range 3 {
		s := newServer(tb)
		file := filepath.Join(s.dir, "sentinel.conf")
		text := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]d 2\nsentinel down-after-milliseconds %[1]s %[3]d\nsentinel failover-timeout %[1]s 3000\n",
			MasterName, g.Primary.Port(), missing.Milliseconds())
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
		s.args = []string{file, "--sentinel", "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--logfile", filepath.Join(s.dir, "log")}
		s.Restart()
		g.sentinels = append(g.sentinels, s)
		g.Addresses = append(g.Addresses, s.Address())
	}
	for _, s := range g.sentinels {
		s.eventually("sentinels that know each other and the replica", func() bool {
			fields := strings.Split(s.Do("SENTINEL", "MASTER", MasterName), "\n")
			values := map[string]string{}
			for i := 0; i+1 < len(fields); i += 2 {
				values[fields[i]] = fields[i+1]
			}
			return values["num-other-sentinels"] == "2" && values["num-slaves"] == "1"
		})
	}
	return g
}

// FailOver has the replica take over, though the primary lives.
func (g *Sentinels) FailOver() {
	g.sentinels[0].eventually("a failover that is begun", func() bool {
		answer, err := g.sentinels[0].try("SENTINEL", "FAILOVER", MasterName)
		return err == nil && answer == "+OK"
	})
}

// Settle waits until one follows the other and has everything. Which one that is may change
// meanwhile: on a busy machine sentinels miss a primary that lives.
func (g *Sentinels) Settle() {
	g.Primary.tb.Helper()
	g.Primary.eventually("a replica in sync", func() bool {
		leader, follower := g.Leader(), g.Follower()
		if leader == follower {
			return false // it has changed between the two looks
		}
		follower.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(leader.port)) // again and again changes nothing
		return follower.info("master_link_status") == "up"
	})
}

// Leader is the primary that the sentinels know now.
func (g *Sentinels) Leader() *Server {
	g.Primary.tb.Helper()
	_, port, _ := strings.Cut(g.sentinels[0].Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName), "\n")
	if port == strconv.Itoa(g.Replica.port) {
		return g.Replica
	}
	return g.Primary
}

// Follower is the other one.
func (g *Sentinels) Follower() *Server {
	if g.Leader() == g.Replica {
		return g.Primary
	}
	return g.Replica
}
