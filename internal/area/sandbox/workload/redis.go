package workload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"tare/internal/clock"
)

// redis is a redis-server without persistence on a Unix socket. Requests alternate between a SET and a GET of the same
// key.
type redis struct {
	daemonConn

	program  string
	requests int
}

var _ Daemon = (*redis)(nil)

func newRedis(dir string) (*redis, error) {
	program, err := installed("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	return &redis{daemonConn: daemonConn{dir: dir, socket: "redis.sock"}, program: program}, nil
}

// Name implements Daemon.
func (r *redis) Name() string { return "redis" }

// Dir implements Daemon.
func (r *redis) Dir() string { return r.dir }

// Command implements Daemon.
func (r *redis) Command() []string {
	return []string{
		r.program, "--port", "0", "--unixsocket", r.socket, "--unixsocketperm", "700",
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", ".", "--loglevel", "warning",
	}
}

// Ready implements Daemon.
func (r *redis) Ready(ctx context.Context, c clock.Clock) error {
	err := r.ready(ctx, c, func() error { return r.ask("*1\r\n$4\r\nPING\r\n", "+PONG\r\n") })
	if err != nil {
		return fmt.Errorf("reach redis: %w", err)
	}
	return nil
}

// Load implements Daemon.
func (r *redis) Load(ctx context.Context, n int) error {
	value := strings.Repeat("v", 64)
	bulk := fmt.Sprintf("$%d\r\n%s\r\n", len(value), value)
	const key = "$4\r\ntare\r\n"
	err := r.within(ctx, func() error {
		for range n {
			request, want := "*3\r\n$3\r\nSET\r\n"+key+bulk, "+OK\r\n"
			if r.requests%2 == 1 {
				request, want = "*2\r\n$3\r\nGET\r\n"+key, bulk
			}
			if err := r.ask(request, want); err != nil {
				return err
			}
			r.requests++
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("load redis: %w", err)
	}
	return nil
}

// ask sends a request in RESP (redis.io/docs/reference/protocol-spec) and compares the answer.
func (r *redis) ask(request, want string) error {
	if _, err := io.WriteString(r.conn, request); err != nil {
		return err
	}
	first, err := r.lines.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	rest, ok := strings.CutPrefix(want, string(first))
	if !ok {
		return fmt.Errorf("answer %.80q instead of %.80q", first, want)
	}
	body := make([]byte, len(rest))
	if _, err := io.ReadFull(r.lines, body); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if !bytes.Equal(body, []byte(rest)) {
		return fmt.Errorf("answer %.80q instead of %.80q", body, rest)
	}
	return nil
}
