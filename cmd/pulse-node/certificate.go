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
	// immutable
	files config.TLS
	log   *slog.Logger

	// atomic
	read atomic.Pointer[pair]
}

// pair is a certificate with its key, and the state of the files when they were
// read, or could not be. Immutable.
type pair struct {
	*tls.Certificate
	files [2]os.FileInfo // nil: not there
}

// loadCertificate reads the files for the first time; nil: none are configured.
func loadCertificate(files config.TLS, log *slog.Logger) (*certificate, error) {
	if files.CertFile == "" {
		return nil, nil
	}
	c := &certificate{files: files, log: log}
	now := &pair{files: c.stat()}
	loaded, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		return nil, config.Faults{{Key: "tls", Source: files.CertFile + ", " + files.KeyFile, Problem: err.Error()}}
	}
	now.Certificate = &loaded
	c.read.Store(now)
	return c, nil
}

// config is what a server is given.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if was := c.read.Load(); !was.unchanged(c.stat()) {
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
	// Looked at before they are read: what changes meanwhile differs from it, and is
	// seen by the next handshake.
	now := &pair{Certificate: was.Certificate, files: c.stat()}
	loaded, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	if err == nil {
		now.Certificate = &loaded
	}
	if !c.read.CompareAndSwap(was, now) {
		return
	}
	if err != nil {
		c.log.Error("certificate not read, the one that there was goes on", "err", err)
		return
	}
	c.log.Info("certificate read", "cert_file", c.files.CertFile, "not_after", loaded.Leaf.NotAfter)
}

func (c *certificate) stat() (files [2]os.FileInfo) {
	for i, name := range [2]string{c.files.CertFile, c.files.KeyFile} {
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
