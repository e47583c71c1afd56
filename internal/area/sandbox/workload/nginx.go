package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"tare/internal/clock"
)

// nginx is an nginx with one worker on a Unix socket. Each request gets a file of 4 KiB, which the worker opens each
// time, over a persistent connection.
type nginx struct {
	daemonConn

	program string
	page    []byte
}

var _ Daemon = (*nginx)(nil)

func newNginx(dir string) (*nginx, error) {
	program, err := installed("nginx", "nginx-light")
	if err != nil {
		return nil, err
	}
	n := &nginx{
		daemonConn: daemonConn{dir: dir, socket: "nginx.sock"}, program: program,
		page: bytes.Repeat([]byte("0123456789abcde\n"), 256),
	}
	conf, err := n.config()
	if err != nil {
		return nil, fmt.Errorf("prepare nginx: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "html"), 0o755); err != nil {
		return nil, fmt.Errorf("prepare nginx: %w", err)
	}
	for name, data := range map[string][]byte{"nginx.conf": conf, "html/page": n.page} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return nil, fmt.Errorf("prepare nginx: %w", err)
		}
	}
	return n, nil
}

// config overrides every path that was compiled into the program, so that it uses none outside dir.
func (n *nginx) config() ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	built, err := exec.CommandContext(ctx, n.program, "-V").CombinedOutput() //nolint:gosec // found in PATH
	if err != nil {
		return nil, fmt.Errorf("%s -V: %w", n.program, err)
	}
	var b bytes.Buffer
	b.WriteString("daemon off;\nworker_processes 1;\npid nginx.pid;\nerror_log error.log;\n")
	if os.Geteuid() == 0 { // otherwise the worker would run as a user who cannot enter dir
		root, err := user.LookupId("0")
		if err != nil {
			return nil, fmt.Errorf("look up user 0: %w", err)
		}
		fmt.Fprintf(&b, "user %s %s;\n", root.Username, root.Username)
	}
	b.WriteString("events { worker_connections 64; }\nhttp {\n\taccess_log off;\n\tkeepalive_requests " +
		"1000000000;\n\tkeepalive_timeout 1h;\n")
	for _, what := range []string{"client-body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		if bytes.Contains(built, []byte("--http-"+what+"-temp-path=")) {
			fmt.Fprintf(&b, "\t%s_temp_path %s;\n", strings.ReplaceAll(what, "-", "_"), what)
		}
	}
	fmt.Fprintf(&b, "\tserver { listen unix:%s; root html; }\n}\n", n.socket)
	return b.Bytes(), nil
}

// Name implements Daemon.
func (n *nginx) Name() string { return "nginx" }

// Dir implements Daemon.
func (n *nginx) Dir() string { return n.dir }

// Command implements Daemon.
func (n *nginx) Command() []string {
	return []string{n.program, "-p", n.dir, "-c", "nginx.conf", "-e", "error.log"}
}

// Ready implements Daemon.
func (n *nginx) Ready(ctx context.Context, c clock.Clock) error {
	if err := n.ready(ctx, c, n.ask); err != nil {
		return fmt.Errorf("reach nginx: %w", err)
	}
	return nil
}

// Load implements Daemon.
func (n *nginx) Load(ctx context.Context, requests int) error {
	err := n.within(ctx, func() error {
		for range requests {
			if err := n.ask(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("load nginx: %w", err)
	}
	return nil
}

func (n *nginx) ask() (err error) {
	if _, err := io.WriteString(n.conn, "GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err
	}
	answer, err := http.ReadResponse(n.lines, nil)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(len(n.page))+1))
	switch {
	case err != nil:
		return fmt.Errorf("read answer: %w", err)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("answer %s", answer.Status)
	case !bytes.Equal(body, n.page):
		return fmt.Errorf("a page of %d bytes that is not the file", len(body))
	case answer.Close:
		return errors.New("it does not keep the connection")
	}
	return nil
}
