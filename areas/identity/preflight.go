package identity

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"tare/area"
	"tare/internal/kit"
	"tare/internal/kit/oneshot"
)

// alertWithin is how long a server has to say that it wants a client certificate: in TLS 1.3 it does so after the
// handshake.
const alertWithin = 500 * time.Millisecond

// preflight reads what calls will need, and connects once. No token is asked for.
func (p plan) preflight(ctx context.Context, s *Spec, env area.Env) []area.Finding {
	if _, err := newCredentials(s, env.Getenv, p.identities); err != nil {
		return []area.Finding{area.Fault("", err, "set the variable or write the file, and see that tare may read it")}
	}
	files, err := s.readBodyFiles()
	if err != nil {
		return []area.Finding{area.Fault("http.files", err, "name a file that tare may read")}
	}
	if err := s.checkBodyExposure(p.url, files); err != nil {
		return []area.Finding{area.Fault("url", err, "write https:// if the server speaks TLS; where others may read it, "+
			"say so in the file: expose_secrets: true, and every report will say it")}
	}
	c := oneshot.Client{}
	var out []area.Finding
	if p.url.Scheme == "https" {
		if c.TLS, err = s.TLS.Config(p.url.Hostname(), env.Getenv); err != nil {
			return []area.Finding{area.Fault("tls", err, "name files in PEM that tare may read")}
		}
		if s.TLS != nil && s.TLS.Insecure {
			out = append(out, kit.WarnInsecure())
		}
	}
	return append(out, p.reachable(ctx, c, env)...)
}

// reachable tries to connect.
func (p plan) reachable(ctx context.Context, c oneshot.Client, env area.Env) []area.Finding {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var err error
	if c.Addr, err = kit.ResolveHost(ctx, p.url); err == nil {
		var conn net.Conn
		if conn, err = c.Dial(ctx); err == nil {
			err = p.awaitAlert(conn, c.TLS != nil)
			if e := conn.Close(); err == nil && c.TLS == nil {
				err = e
			}
		}
	}
	if err == nil {
		return kit.Reached(p.url.Host, c.Addr, env)
	}
	if f, ok := kit.ExplainTLS(err); ok {
		return []area.Finding{f}
	}
	f, ok := kit.ExplainDial(p.url.Host, err)
	if !ok {
		f = area.Fault("url", fmt.Errorf("cannot connect to %s: %w", p.url.Host, err),
			"see that it runs, and that this host can reach it")
	}
	if p.adapter.reach.node && !kit.LoopbackHost(p.url.Hostname()) {
		f.Hint = "see that it runs, and run tare on its node: " + p.adapter.name + " answers only that"
	}
	return []area.Finding{f}
}

// awaitAlert waits for the TLS alert of a server that rejects the client. A server that waits for a request accepts it.
func (plan) awaitAlert(conn net.Conn, secure bool) error {
	if !secure {
		return nil
	}
	deadline := time.Now().Add(alertWithin) //nolint:forbidigo // a deadline of the kernel's, not of a clock
	if err := conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	var b [1]byte
	_, err := conn.Read(b[:])
	if _, ok := kit.ExplainTLS(err); err != nil && ok && !os.IsTimeout(err) {
		return err
	}
	return nil
}
