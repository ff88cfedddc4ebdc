// Package server runs real redis-server processes for tests, and treats them badly.
//
// A Server is one process on a port of the loopback and with a folder, which are its own
// also while it is stopped; with PULSE_TEST_REDIS=container in the environment one
// container, by testcontainers. It ends with the test that started it. Where redis-server, or a Docker engine, is missing tests
// fail and say so: they are never left out.
package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// TB is what a test gives; a program that runs servers gives the same.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
	TempDir() string
}

// patience is how long a server may take to start, or to obey.
const patience = time.Minute

// Server is one redis-server.
type Server struct {
	tb   TB
	port int
	dir  string
	args []string

	runner  runner
	running bool
}

// Start runs a server without persistence. args are further ones of redis-server,
// as "--maxmemory", "10mb".
func Start(tb TB, args ...string) *Server {
	tb.Helper()
	s := newServer(tb)
	s.args = append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--daemonize", "no", "--logfile", filepath.Join(s.dir, "log"), "--repl-diskless-sync-delay", "0",
	}, args...)
	s.Restart()
	return s
}

// newServer is one that is not running yet, and ends with the test.
func newServer(tb TB) *Server {
	tb.Helper()
	s := &Server{tb: tb, port: ownPort(tb), dir: tb.TempDir()}
	switch where := os.Getenv("PULSE_TEST_REDIS"); where {
	case "":
		s.runner = &process{}
		tb.Cleanup(s.Kill)
	case "container":
		d := &dock{}
		s.runner = d
		tb.Cleanup(func() {
			if err := d.remove(); err != nil {
				tb.Fatal(err)
			}
		})
	default:
		tb.Fatalf("PULSE_TEST_REDIS is %q: container, or nothing for processes", where)
	}
	return s
}

// Address is host:port.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Port is that of Address.
func (s *Server) Port() int { return s.port }

// SecondPort is its own as well, of a server that is in no cluster, whose bus it would be.
func (s *Server) SecondPort() int { return s.port + busAbove }

// Restart runs the server again, with what it has kept on disk.
func (s *Server) Restart() {
	s.tb.Helper()
	if err := s.runner.start(s.args); err != nil {
		s.tb.Fatal(err)
	}
	s.running = true
	s.await("PING", "+PONG")
}

// await repeats a command until its answer begins with want.
func (s *Server) await(command, want string) {
	s.tb.Helper()
	deadline := time.Now().Add(patience)
	for {
		answer, err := s.try(strings.Fields(command)...)
		if err == nil && strings.HasPrefix(answer, want) {
			return
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(s.dir, "log")) // only to be shown
			s.tb.Fatalf("redis on port %d: %s answers %q, %v, not %q\n%s", s.port, command, answer, err, want, log)
		}
		time.Sleep(10 * time.Millisecond) // between two attempts; nothing depends on it
	}
}

// Kill ends the process at once: what is not on disk is lost.
func (s *Server) Kill() {
	if s.running {
		s.end(syscall.SIGKILL)
	}
}

// Stop ends it in order.
func (s *Server) Stop() { s.tb.Helper(); s.end(syscall.SIGTERM) }

func (s *Server) end(how syscall.Signal) {
	s.tb.Helper()
	s.signal(how)
	if err := s.runner.await(); err != nil {
		s.tb.Fatal(err)
	}
	s.running = false
}

// Pause freezes it: connections stay, nothing is answered. Resume goes on.
func (s *Server) Pause()  { s.signal(syscall.SIGSTOP) }
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(what syscall.Signal) {
	s.tb.Helper()
	if err := s.runner.signal(what); err != nil {
		s.tb.Fatal(err)
	}
}

// Do sends one command and returns the answer as redis-cli would print it raw. Who is cut
// off before there is one, as by a Sentinel that gives the server another role, sends it
// again.
func (s *Server) Do(args ...string) string {
	s.tb.Helper()
	var answer string
	var err error
	s.eventually("an answer", func() bool {
		answer, err = s.try(args...)
		return !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET)
	})
	if err != nil {
		s.tb.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	if strings.HasPrefix(answer, "-") {
		s.tb.Fatalf("%s: %s", strings.Join(args, " "), answer)
	}
	return strings.TrimPrefix(answer, "+")
}

// Flush removes all keys.
func (s *Server) Flush() { s.tb.Helper(); s.Do("FLUSHALL") }

// Replicate makes it a replica of another, and waits until it has everything.
func (s *Server) Replicate(of *Server) {
	s.tb.Helper()
	s.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(of.port))
	s.eventually("a replica in sync", func() bool { return s.info("master_link_status") == "up" })
}

// CatchUp waits until it has everything that its primary has at this moment.
func (s *Server) CatchUp(primary *Server) {
	s.tb.Helper()
	want, err := strconv.ParseInt(primary.info("master_repl_offset"), 10, 64)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.eventually("a replica that has everything", func() bool {
		got, err := strconv.ParseInt(s.info("slave_repl_offset"), 10, 64)
		return err == nil && got >= want
	})
}

// info is one field of what the server says of its replication.
func (s *Server) info(field string) string {
	s.tb.Helper()
	_, rest, _ := strings.Cut(s.Do("INFO", "replication"), field+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

func (s *Server) eventually(what string, met func() bool) {
	s.tb.Helper()
	deadline := time.Now().Add(patience)
	for !met() {
		if time.Now().After(deadline) {
			s.tb.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(10 * time.Millisecond) // between two looks; nothing depends on it
	}
}

// Promote makes it a primary.
func (s *Server) Promote() { s.tb.Helper(); s.Do("REPLICAOF", "NO", "ONE") }

func (s *Server) try(args ...string) (answer string, err error) {
	c, err := net.DialTimeout("tcp", s.Address(), time.Second)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.Write([]byte(b.String())); err != nil {
		return "", err
	}
	return readAnswer(bufio.NewReader(c))
}

// readAnswer reads one answer; the parts of a list are put on lines of their own.
func readAnswer(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	switch line[0] {
	case '$':
		n, err := strconv.Atoi(line[1:])
		if err != nil || n < 0 {
			return "", err
		}
		text := make([]byte, n+2)
		for at := 0; at < len(text); {
			got, err := r.Read(text[at:])
			if err != nil {
				return "", err
			}
			at += got
		}
		return string(text[:n]), nil
	case '*':
		n, err := strconv.Atoi(line[1:])
		if err != nil {
			return "", err
		}
		var parts []string
		for range n {
			part, err := readAnswer(r)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, "\n"), nil
	case ':':
		return line[1:], nil
	default:
		return line, nil
	}
}
