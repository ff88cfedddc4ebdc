package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/yaza-dev/pulse/client"
)

// dialing is how publish and tail reach a node.
type dialing struct{ url, tokenFile string }

func (d *dialing) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.url, "url", "", "public listener of a node, such as wss://pulse.example.com")
	cmd.Flags().StringVar(&d.tokenFile, "token-file", "", "file with the token; read again when the node asks for a new one")
}

// dial makes a client. Its faults are wrong use.
func (d *dialing) dial(o client.Options) (*client.Client, error) {
	switch {
	case d.url == "":
		return nil, errors.New("--url is missing")
	case d.tokenFile == "":
		return nil, errors.New("--token-file is missing")
	}
	if _, err := d.token(); err != nil {
		return nil, err
	}
	o.URL, o.Name = d.url, "pulse-node/"+version
	o.Token = func(context.Context) (string, error) { return d.token() }
	c, err := client.New(o)
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	return c, nil
}

func (d *dialing) token() (string, error) {
	text, err := os.ReadFile(d.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return "", fmt.Errorf("--token-file %s is empty", d.tokenFile)
	}
	return string(text), nil
}

// outcome tells how the first attempt to connect ended: nil, or why not.
type outcome struct {
	first  chan error // of 1
	later  func(client.Status)
	before bool // the first attempt has ended; OnStatus's
}

// status is a client's OnStatus.
func (o *outcome) status(s client.Status) {
	switch {
	case s.State == client.Connecting:
	case o.before:
		o.later(s)
	default:
		o.before = true
		o.first <- s.Err
	}
}
