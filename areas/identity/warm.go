package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"tare/area"
	"tare/internal/kit"
	"tare/internal/kit/oneshot"
	"tare/internal/load"
)

const (
	// warmWithin bounds the warm-up, besides what the knobs make it take.
	warmWithin = time.Minute
	// warmers is how many identities are warmed up at a time.
	warmers = 8
	// warmPause is the pause before another try.
	warmPause = 250 * time.Millisecond
)

// host returns the Host header: embedded endpoints are called by the name that workloads use.
func (p *arm) host() string {
	if p.url != nil {
		return p.url.Host
	}
	return "metadata.google.internal"
}

// client calls as the load engine will as the identity key, outside of the load.
func (p *arm) client(key int) oneshot.Client {
	c := oneshot.Client{Addr: p.addr, TLS: p.tls, Limit: p.limit}
	if local := p.local(); local != nil {
		c.Local = local(key)
	}
	return c
}

// local gives source addresses to identities where there are several, or where we made them up ourselves; nil: the
// kernel's choice.
func (p *arm) local() func(key int) netip.Addr {
	switch {
	case len(p.spec.Callers) > 0:
		return p.addressOf
	case p.url == nil || p.identities > 1:
		return sourceOf
	}
	return nil
}

// session returns what the adapter works with; nonce makes its audiences new.
func (p *arm) session(nonce string) session {
	return session{
		host: p.host(), headers: p.headers, operation: p.operation, account: p.as, emails: p.emails,
		nonce: fmt.Sprintf("%s-%d-%x", nonce, p.index, p.born), distinct: p.url == nil ||
			p.spec.distinct(), clock: p.env.Clock,
		spec: p.spec, base: p.base(), creds: p.creds, files: p.files, subjects: p.subjects,
	}
}

// base returns the path of the URL, to which adapters add theirs.
func (p *arm) base() string {
	if p.url == nil {
		return ""
	}
	return strings.TrimRight(p.url.EscapedPath(), "/")
}

// addressOf returns the source address that the file gives a caller.
func (p *arm) addressOf(key int) netip.Addr {
	if key >= len(p.spec.Callers) || p.spec.Callers[key].Address == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(p.spec.Callers[key].Address)
	if err != nil {
		return netip.Addr{} // Validate has refused it
	}
	return a
}

// find resolves the URL and asks whom the endpoint takes us for.
func (p *arm) find(ctx context.Context) error {
	addr, err := kit.ResolveHost(ctx, p.url)
	if err != nil {
		return fmt.Errorf("find %s: %w", p.url.Host, err)
	}
	p.addr = addr
	p.emails, p.subjects = make([]string, p.identities), make([]string, p.identities)
	if err := p.logIn(ctx); err != nil {
		return err
	}
	if p.adapter.whoami == nil {
		return nil
	}
	ask := p.adapter.whoami(p.session("find"))
	return p.eachIdentity(ctx, p.identities, func(ctx context.Context, key int) error {
		got, err := p.client(key).Do(ctx, ask, callTimeout)
		if err != nil {
			return fmt.Errorf("ask %s for the caller's account: %w", p.url.Host, err)
		}
		if got.Status == 200 {
			p.emails[key], err = p.adapter.account(got.Body)
		}
		if p.as == accountEmail && (err != nil || p.emails[key] == "") {
			return fmt.Errorf("ask %s for the caller's account: status %d, no account in the answer", p.url.Host, got.Status)
		}
		return nil // without an account, identity tokens are checked for their audience only
	})
}

// fill warms up the process that serves now, unless that has been done.
func (p *arm) fill(ctx context.Context) error {
	serving := -1 // behind a URL: whoever it is
	if c := p.child(serverEndpoint); c != nil {
		serving = c.PID
	}
	if p.filled == serving {
		return nil
	}
	err := p.warm(ctx)
	if err == nil {
		p.filled = serving
	}
	return err
}

// warm obtains a token for every identity, so that the endpoint's cache holds them all, and retries what a client
// should: the first seconds of a pod, and limits. Where nothing is cached one token proves enough.
func (p *arm) warm(ctx context.Context) error {
	n := p.identities
	if len(p.spec.Callers) == 0 && (p.operation != opToken || (p.url == nil && !p.knobs.Cache)) {
		n = 1
	}
	within := warmWithin + p.knobs.UnavailableFirst
	if p.knobs.QuotaRate > 0 {
		within += time.Duration(float64(n) / p.knobs.QuotaRate * float64(time.Second))
	}
	within += p.limit.Takes(2 * n) // some ask twice
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	w := p.adapter.wire(p.session("warm"))
	return p.eachIdentity(ctx, n, func(ctx context.Context, key int) error {
		var last error
		for {
			outcome, body, err := p.answer(ctx, w, uint64(key), callTimeout)
			if outcome == load.OK {
				return p.learn(w, key, body)
			}
			if outcome == load.Wrong {
				return fmt.Errorf("warm up identity %d: %w", key, err)
			}
			if last == nil || ctx.Err() == nil { // what our own deadline cuts short says nothing
				last = err
			}
			if p.env.Clock.Sleep(ctx, warmPause) != nil {
				return fmt.Errorf("warm up identity %d: no good answer within %v, and the last: %w", key, within, last)
			}
		}
	})
}

// call makes call i of w once, on a new connection. The error says what was wrong when the outcome is not OK, without
// quoting the answer.
func (p *arm) call(ctx context.Context, w load.Wire, i uint64, timeout time.Duration) (load.Outcome, error) {
	outcome, _, err := p.answer(ctx, w, i, timeout)
	return outcome, err
}

// refusedHint is the next step where the caller was refused with this answer.
func (a *adapter) refusedHint(body []byte) string {
	if a.name != "gce-metadata" && bytes.Contains(body, []byte(gceHeaderName)) {
		return "the server asks for the header " + gceHeader + ": name the adapter that sends it, --adapter gce-metadata " +
			"(adapter: gce-metadata in a file)"
	}
	if a.name == "oidc-token" {
		return "see that oidc.client_id and oidc.client_secret belong together, that the provider has this client, and " +
			"that it lets the client use the grant"
	}
	section := a.section
	if section != "" {
		section = " below " + section
	}
	return "see that the credential" + section + " is valid for this server, and may be used for what is asked"
}

// answer returns call with the body of the answer.
func (p *arm) answer(ctx context.Context, w load.Wire, i uint64, timeout time.Duration) (load.Outcome, []byte, error) {
	got, err := p.client(w.ConnKey(i)).Do(ctx, w.Render(nil, i), timeout)
	status, body := got.Status, got.Body
	switch {
	case errors.Is(err, oneshot.ErrTooLong):
		return load.Wrong, nil, err
	case errors.Is(err, context.DeadlineExceeded):
		return load.Timeout, nil, err
	case err != nil:
		return load.ConnFailed, nil, err
	}
	outcome := w.Check(i, status, body)
	if outcome == load.OK {
		return outcome, body, nil
	}
	err = area.WithHint(fmt.Errorf("status %d", status), statusHint(status))
	if good := httpOptions(p.spec).Status; p.adapter.section == "http" && status/100 == 2 && status != good {
		err = area.WithHint(fmt.Errorf("status %d, and only %d is good", status, good),
			fmt.Sprintf("if this answer is good, say so: --set target.http.status=%d (http: {status: %[1]d} in a file)", status))
	} else if status/100 == 2 {
		err = fmt.Errorf("status %d, but the answer of %d bytes is not the token that was asked for", status, len(body))
		if p.adapter.section == "http" {
			err = area.WithHint(err, needs["http-token"])
		}
	}
	switch why := w.Explain(i, status, body); {
	case verdict(why) == credentialRefused && p.sendsNoSecret() && !bytes.Contains(body, []byte(gceHeaderName)):
		err = area.WithHint(fmt.Errorf("%w: the request was refused, and holds no credential", err),
			"give the credential that the server wants by its place: -H 'Authorization: @FILE' (secret_headers: "+
				"{Authorization: {file: FILE}} in a file)")
	case why >= 0 && why < len(causes()):
		err = fmt.Errorf("%w: %s", err, causes()[why])
		if verdict(why) == credentialRefused {
			err = area.WithHint(err, p.adapter.refusedHint(body))
		}
	}
	if status == http.StatusNotFound {
		err = fmt.Errorf("%w: nothing is at this path", err)
	}
	if status/100 == 3 {
		err = area.WithHint(fmt.Errorf("%w: a redirect, which is not followed", err), "give the address that it leads to, if"+
			" that is what you measure: the answer's header Location has it, which is not shown, since it may hold a secret")
	}
	return outcome, nil, err
}

// sendsNoSecret reports whether nothing in the requests of http-token can be a credential.
func (p *arm) sendsNoSecret() bool {
	return p.adapter.section == "http" && len(kit.SecretsOf(p.spec)) == 0 && len(httpOptions(p.spec).Files) == 0
}

// statusHint is the next step after an answer that another try may mend.
func statusHint(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "wait until the server lets this caller in again, or have its limit raised"
	case status/100 == 5:
		return "see in the server's log why it answers so"
	}
	return ""
}

// learn notes whose token an identity has got: from now on it must always be the same one's.
func (p *arm) learn(w load.Wire, key int, body []byte) error {
	l, ok := w.(learner)
	if !ok || key >= len(p.subjects) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch who := l.subject(uint64(key), body); {
	case who == "":
		return nil
	case p.subjects[key] == "":
		p.subjects[key] = who
	case p.subjects[key] != who:
		return fmt.Errorf("identity %d: the token is for another subject than before", key)
	}
	return nil
}

// eachIdentity runs work for the identities below n, a few at a time, and waits for all. It ends early after an error.
func (p *arm) eachIdentity(ctx context.Context, n int, work func(ctx context.Context, key int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var once sync.Once
	var failed error // the first: once time is over it says more than that time is over
	keys := make(chan int)
	for range min(warmers, n) {
		wg.Go(func() {
			for key := range keys {
				if err := work(ctx, key); err != nil {
					once.Do(func() { failed = err })
					cancel(err)
				}
			}
		})
	}
	for key := 0; key < n && ctx.Err() == nil; key++ {
		select {
		case keys <- key:
		case <-ctx.Done():
		}
	}
	close(keys)
	wg.Wait()
	if failed != nil {
		return failed
	}
	return context.Cause(ctx)
}
