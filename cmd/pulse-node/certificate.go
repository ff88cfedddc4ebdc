package main

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
)

// certificate is the pair of files that TLS is served with. Each handshake looks
// whether they are still those that were read, which costs two calls of the system
// beside the arithmetic of a handshake, and misses nothing. While what they hold is
// no pair, such as between the writing of one and the other, the pair that there
// was goes on.
type certificate struct {
	log *slog.Logger // immutable

	// atomic
	read atomic.Pointer[pair]
}

// pair is a certificate with its key, and the state of the files when they were
// read, or could not be. Immutable.
type pair struct {
	*tls.Certificate
	from  config.TLS
	files [2]os.FileInfo // nil: not there
}

// readPair reads what there is, and how the files were before it did: what changes
// meanwhile differs from it, and is seen by the next handshake.
func readPair(from config.TLS) (*pair, error) {
	p := &pair{from: from, files: stat(from)}
	loaded, err := tls.LoadX509KeyPair(from.CertFile, from.KeyFile)
	if err != nil {
		return p, err
	}
	p.Certificate = &loaded
	return p, nil
}

// loadCertificate reads the files for the first time; nil: none are configured.
func loadCertificate(files config.TLS, log *slog.Logger) (*certificate, error) {
	if files.CertFile == "" {
		return nil, nil
	}
	c := &certificate{log: log}
	now, err := readPair(files)
	if err != nil {
		return nil, err
	}
	c.read.Store(now)
	return c, nil
}

// config is what a server is given.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if was := c.read.Load(); !was.unchanged(stat(was.from)) {
				c.reload()
			}
			return c.read.Load().Certificate, nil
		},
	}
}

// reload reads the files. Of several at once the first that is done counts, and
// speaks.
func (c *certificate) reload() {
	was := c.read.Load()
	now, err := readPair(was.from)
	if err != nil {
		now.Certificate = was.Certificate
	}
	if !c.read.CompareAndSwap(was, now) {
		return
	}
	if err != nil {
		c.log.Error("certificate not read, the one that there was goes on", "err", err)
		return
	}
	c.log.Info("certificate read", "cert_file", now.from.CertFile, "not_after", now.Leaf.NotAfter)
}

func stat(from config.TLS) (files [2]os.FileInfo) {
	for i, name := range [2]string{from.CertFile, from.KeyFile} {
		files[i], _ = os.Stat(name) // why it is not there is told by who reads it
	}
	return files
}

func (p *pair) unchanged(now [2]os.FileInfo) bool {
	for i, was := range p.files {
		switch {
		case was == nil && now[i] == nil:
		case was == nil, now[i] == nil, !os.SameFile(was, now[i]), !was.ModTime().Equal(now[i].ModTime()), was.Size() != now[i].Size():
			return false
		}
	}
	return true
}
