package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthTime is how long health waits for an answer.
const healthTime = 3 * time.Second

func (p *program) health() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health [--url URL] [--ready]",
		Short: "Ask a running node whether it lives, for health checks of containers",
		Long: `Ask the internal listener of a running node for /healthz, or with --ready for /readyz,
and print what it says.

Exit codes: 0 it is well, 1 it is not or does not answer, 2 wrong use.`,
		Example: `  pulse-node health
  pulse-node health --ready --url http://10.0.0.7:8081`,
		Args: none,
	}
	of := cmd.Flags().String("url", "http://127.0.0.1:8081", "internal listener of the node")
	ready := cmd.Flags().Bool("ready", false, "whether it takes clients")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if u, err := url.Parse(*of); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return errors.New("--url must be http://host:port")
		}
		path := "/healthz"
		if *ready {
			path = "/readyz"
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), healthTime)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(*of, "/")+path, nil)
		if err != nil {
			return fmt.Errorf("--url: %w", err)
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Do(r)
		if err != nil {
			return failure{err}
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
		if err != nil {
			return failure{err}
		}
		if _, err := fmt.Fprintln(p.stdout, strings.TrimSpace(string(text))); err != nil {
			return failure{err}
		}
		if answer.StatusCode != http.StatusOK {
			return failure{fmt.Errorf("the node answers %s", answer.Status)}
		}
		return nil
	}
	return cmd
}
