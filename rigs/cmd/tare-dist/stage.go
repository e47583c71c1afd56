package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// stage builds the binaries of the release, static and with nothing of this host in them, and the files that every
// archive holds.
func (r *release) stage(ctx context.Context, dir string) error {
	share := filepath.Join(dir, "share")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(share, "completions"), 0o755)); err != nil {
		return err
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if err := r.compile(ctx, filepath.Join(dir, arch, "tare"), arch); err != nil {
			return err
		}
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		content, err := os.ReadFile(name)
		if err := errors.Join(err, os.WriteFile(filepath.Join(share, name), content, 0o644)); err != nil {
			return err
		}
	}
	tare, err := filepath.Abs(filepath.Join(dir, runtime.GOARCH, "tare"))
	if err != nil {
		return err
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := exec.CommandContext(ctx, tare, "completion", shell).Output()
		to := filepath.Join(share, "completions", "tare."+shell)
		if err := errors.Join(err, os.WriteFile(to, script, 0o644)); err != nil {
			return fmt.Errorf("the completions of %s: %w", shell, err)
		}
	}
	return exec.CommandContext(ctx, tare, "man", filepath.Join(share, "man", "man1")).Run()
}

// compile builds tare for an architecture.
func (r *release) compile(ctx context.Context, to, arch string) error {
	const variable = " -X tare/internal/cli."
	ldflags := "-s -w" + variable + "version=" + r.version + variable + "commit=" + r.commit +
		variable + "date=" + r.date.Format(time.RFC3339)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-tags=kustomize_disable_go_plugin_support", "-ldflags", ldflags, "-o", to, "./cmd/tare")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GOFIPS140=off")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}
