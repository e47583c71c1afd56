package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tare/internal/clock"
	"tare/internal/limit"
	"tare/internal/signature"
)

// A proxy is an installed program that stands before a fixture and limits what reaches it.
type proxy struct {
	program, pkg string
	// config returns the text of its configuration: it listens on front, works in dir, and asks the fixture at back.
	config func(dir, front, back string) string
	args   func(dir string) []string
}

// proxies are nginx and haproxy, and a JVM that asks no backend. The backend serves any number of calls at a time, each
// for as long as the formula says.
func proxies() []Fixture {
	serves := func(d time.Duration) func(*rig) part { return func(r *rig) part { return r.delay(d, serve) } }
	return []Fixture{
		collectorBound(),
		{
			Name: "nginx-limit-req-nodelay",
			Truth: Truth{
				Rate: 100, Burst: 21, Formula: "limit_req rate=100r/s burst=20 nodelay, 429",
				Classes: classes(signature.TokenBucket),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: serves(2 * ms),
			proxy: nginx("limit_req_zone $server_name zone=z:1m rate=100r/s;",
				"limit_req zone=z burst=20 nodelay; limit_req_status 429;"),
		},
		{
			Name: "nginx-limit-req-delay",
			Truth: Truth{
				Rate: 100, Formula: "limit_req rate=100r/s burst=20, 503",
				Classes: classes(signature.Shedding, signature.TokenBucket, signature.ConcurrencyLimit),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: serves(2 * ms),
			proxy: nginx("limit_req_zone $server_name zone=z:1m rate=100r/s;", "limit_req zone=z burst=20;"),
		},
		{
			Name: "nginx-limit-conn",
			Truth: Truth{
				Rate: 200, Formula: "limit_conn 20 ÷ 100 ms of the backend, 503",
				Classes: classes(signature.ConcurrencyLimit),
				Limits:  limits(limit.Slots), Slots: 20, Seen: true,
			},
			build: serves(100 * ms),
			proxy: nginx("limit_conn_zone $server_name zone=z:1m;", "limit_conn z 20;"),
		},
		{
			Name: "haproxy-queue-timeout",
			Truth: Truth{
				Rate: 200, Formula: "maxconn 20 ÷ 100 ms of the backend, timeout queue 200ms, 503",
				Classes: classes(signature.Shedding),
				Limits:  limits(limit.Slots), Slots: 20, Seen: true,
			},
			build: serves(100 * ms),
			proxy: haproxy("", "timeout queue 200ms", "maxconn 20"),
		},
		{
			Name: "haproxy-stick-table",
			Truth: Truth{
				Rate: 100, Formula: "deny if http_req_rate(1s) > 100, denied ones count, 429",
				Classes: classes(signature.Penalty),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: serves(2 * ms),
			proxy: haproxy(`stick-table type ip size 1k expire 10s store http_req_rate(1s)
	http-request track-sc0 src
	http-request deny deny_status 429 if { sc_http_req_rate(0) gt 100 }`, "", ""),
		},
		{
			Name: "haproxy-tarpit",
			Truth: Truth{
				Rate: 100, Formula: "tarpit of 2 s if 100 were passed in the last second, 429",
				Classes: classes(signature.TokenBucket, signature.FixedWindow),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: serves(2 * ms),
			proxy: haproxy(`stick-table type ip size 1k expire 10s store gpc0,gpc0_rate(1s)
	http-request track-sc0 src
	timeout tarpit 2s
	http-request tarpit deny_status 429 if { sc0_gpc0_rate ge 100 }
	http-request sc-inc-gpc0(0)`, "", ""),
		},
		{
			Name: "haproxy-frontend-maxconn",
			Truth: Truth{
				Rate: 200, Formula: "20 connections ÷ 100 ms of the backend",
				Classes: classes(signature.AcceptQueue),
				Limits:  limits(limit.Connections), Slots: 20, Seen: true,
			},
			build: serves(100 * ms),
			proxy: haproxy("maxconn 20", "", ""),
		},
	}
}

// nginx is an nginx with one worker: zone stands in its http section, limit in the location.
func nginx(zone, limit string) *proxy {
	return &proxy{
		program: "nginx", pkg: "nginx-light",
		args: func(dir string) []string { return []string{"-p", dir, "-c", "nginx.conf", "-e", "error.log"} },
		config: func(_, front, back string) string {
			return fmt.Sprintf(`daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log;
events { worker_connections 8192; }
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxied;
	keepalive_requests 1000000000;
	keepalive_timeout 1h;
	%s
	upstream back { server %s; keepalive 1024; }
	server {
		listen %s backlog=4096;
		server_name only;
		location / { %s proxy_pass http://back; proxy_http_version 1.1; proxy_set_header Connection ""; }
	}
}
`, zone, back, front, limit)
		},
	}
}

// haproxy is a haproxy with one thread: rules stand in its frontend, queue in its backend, server behind the server's
// address.
func haproxy(rules, queue, server string) *proxy {
	return &proxy{
		program: "haproxy", pkg: "haproxy",
		args: func(dir string) []string { return []string{"-db", "-q", "-f", filepath.Join(dir, "haproxy.conf")} },
		config: func(_, front, back string) string {
			return fmt.Sprintf(`global
	nbthread 1
	maxconn 8192
defaults
	mode http
	timeout connect 5s
	timeout client 1h
	timeout server 1h
	timeout http-keep-alive 1h
	http-reuse always
frontend front
	bind %s backlog 4096
	%s
	default_backend back
backend back
	%s
	server one %s %s
`, front, rules, queue, back, server)
		},
	}
}

// missing says that the program is not installed.
func (p *proxy) missing() error {
	if _, err := exec.LookPath(p.program); err != nil {
		return fmt.Errorf("%s is not installed (package %s): %w", p.program, p.pkg, err)
	}
	return nil
}

// A child is a proxy's process with its folder.
type child struct {
	command *exec.Cmd
	dir     string
	exited  chan error
	said    strings.Builder // is read when the process has ended
}

// front starts a proxy before the running fixture, and returns when it answers.
func (r *Running) front(ctx context.Context, p *proxy) error {
	if err := p.missing(); err != nil {
		return err
	}
	l, err := listenLow(ctx)
	if err != nil {
		return err
	}
	front := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	if r.Addr, err = netip.ParseAddrPort(front); err != nil {
		return err
	}
	if r.child, err = launch(p, front, r.addr); err != nil {
		return err
	}
	return r.child.ready(ctx, front)
}

// launch starts p in a folder of its own. It ends with this process.
func launch(p *proxy, front, back string) (*child, error) {
	dir, err := os.MkdirTemp("", "tare-"+p.program+"-*")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // nginx's worker, which is another user, must enter it
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	file := filepath.Join(dir, p.program+".conf")
	if err := os.WriteFile(file, []byte(p.config(dir, front, back)), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c := &child{dir: dir, exited: make(chan error, 1)}
	c.command = exec.Command(p.program, p.args(dir)...) //nolint:noctx // stop ends it
	c.command.Stdout, c.command.Stderr = &c.said, &c.said
	c.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if err := c.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", p.program, err), os.RemoveAll(dir))
	}
	go func() { c.exited <- c.command.Wait() }()
	return c, nil
}

// ready waits until the child accepts connections.
func (c *child) ready(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case ended := <-c.exited:
			c.exited <- ended
			return fmt.Errorf("%s ended: %w: %s", c.command.Path, ended, c.said.String())
		case <-ctx.Done():
			return fmt.Errorf("%s does not accept connections: %w", c.command.Path, err)
		default:
		}
		if (clock.System{}).Sleep(ctx, 20*ms) != nil {
			return fmt.Errorf("%s does not accept connections: %w", c.command.Path, err)
		}
	}
}

// stop ends the process, and those that it started, and removes its folder.
func (c *child) stop() error {
	_ = syscall.Kill(-c.command.Process.Pid, syscall.SIGTERM) // it may have ended
	late := time.AfterFunc(10*time.Second, func() { _ = syscall.Kill(-c.command.Process.Pid, syscall.SIGKILL) })
	defer late.Stop()
	var exit *exec.ExitError // how a signal ends it says nothing
	if err := <-c.exited; err != nil && !errors.As(err, &exit) {
		return errors.Join(err, os.RemoveAll(c.dir))
	}
	return os.RemoveAll(c.dir)
}
