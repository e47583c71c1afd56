package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"

	"tare/internal/kit"
)

const healthWithin = 60 * time.Second

// RunOPA is a child of tare that runs the opa found in PATH as a child of its own, with the policies in cfg.File, until
// ctx ends. No fault can be planted in it.
func RunOPA(ctx context.Context, cfg Config, ready func(Ready) error) error {
	if cfg.Answer != "" || cfg.Leak != 0 || cfg.Delay != 0 || cfg.Cache != 0 || cfg.Gap != 0 {
		return errors.New("opa: no fault can be planted in it")
	}
	path, err := exec.LookPath("opa")
	if err != nil {
		return fmt.Errorf("opa: %w", err)
	}
	addr, err := kit.FreePort(ctx, cfg.Addr)
	if err != nil {
		return fmt.Errorf("opa: %w", err)
	}
	bundle := cfg.File
	if !cfg.Own {
		bundle = filepath.Dir(cfg.File)
	}
	p := kit.Program{Name: "opa", Path: path, Args: opaArguments(addr, bundle), Within: healthWithin}
	if cfg.V0 {
		p.Args = append(p.Args, "--v0-compatible")
	}
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	healthy := func(ctx context.Context) error { return checkHealth(ctx, client, addr) }
	return p.Run(ctx, healthy, func(took time.Duration) error {
		return ready(Ready{Addr: addr, LoadSeconds: took.Seconds()})
	})
}

// opaArguments serve a bundle: without roots of its own it owns all paths, so that nobody who can connect to the port
// can write a policy or data. No secret can be read there either: the child's environment holds none, and OPA keeps
// http.send out of queries that are made up.
func opaArguments(addr, bundle string) []string {
	return []string{
		"run", "--server", "--addr", addr, "--log-level", "error", "--disable-telemetry", "--bundle", bundle,
	}
}

// checkHealth returns nil when the server answers: opa listens when its policies are compiled.
func checkHealth(ctx context.Context, client *http.Client, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/health", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}
