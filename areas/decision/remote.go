package decision

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"syscall"

	"tare/area"
	"tare/areas/decision/protocol"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/kit/oneshot"
	"tare/internal/ratelimit"
)

// changePolicies is the kind of changes that are policies in a decision point that is not ours.
const changePolicies = "policies"

// open makes the session with a decision point behind a URL: it reads secrets and files, and resolves the name.
func (p *plan) open(ctx context.Context, getenv func(string) (string, bool)) (*protocol.Session, error) {
	s, u, getenv := p.spec, p.url, kit.Environment(getenv)
	out := &protocol.Session{
		Host: u.Host, Base: strings.TrimRight(u.EscapedPath(), "/"), Options: p.options, Username: s.Username,
		Headers: map[string]string{},
	}
	var err error
	if secure(u.Scheme) {
		if out.TLS, err = s.TLS.Config(u.Hostname(), getenv); err != nil {
			return nil, err
		}
	}
	if out.Password, err = s.Password.Resolve(getenv); err != nil {
		return nil, fmt.Errorf("password: %w", err)
	}
	if out.Token, err = s.Token.Resolve(getenv); err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	if !kit.IsHeaderValue(out.Token) {
		return nil, fmt.Errorf("token: what %s holds cannot stand in a header: it has characters other than printable ASCII",
			s.Token)
	}
	maps.Copy(out.Headers, s.Headers)
	for name, place := range s.SecretHeaders {
		if out.Headers[name], err = place.Resolve(getenv); err != nil {
			return nil, fmt.Errorf("secret_headers.%s: %w", name, err)
		}
		if !kit.IsHeaderValue(out.Headers[name]) {
			return nil, fmt.Errorf("secret_headers.%s: what %s holds cannot stand in a header: it has characters other than "+
				"printable ASCII", name, place)
		}
	}
	out.Secrets = map[string]string{}
	for name, place := range s.Secrets {
		if out.Secrets[name], err = place.Resolve(getenv); err != nil {
			return nil, fmt.Errorf("secrets.%s: %w", name, err)
		}
	}
	if out.Addr, err = kit.ResolveHost(ctx, u); err != nil {
		return nil, fmt.Errorf("find %s: %w", u.Host, err)
	}
	return out, nil
}

// reach opens the decision point behind the URL, and puts the policies there if the file says so.
func (p *arm) reach(ctx context.Context) error {
	var err error
	if p.session, err = p.open(ctx, p.env.Getenv); err != nil {
		return err
	}
	p.session.Limit = p.env.Limit
	if err := p.awaitListener(ctx); err != nil || !p.spec.Load {
		return err
	}
	if p.adapter.Load == nil {
		return fmt.Errorf("load: %s has no way to put policies into a decision point", p.adapter.Name)
	}
	return p.fill(ctx)
}

// awaitListener waits until somebody listens at the URL's port, and sees that it is somebody to whom the load may be
// sent: Preflight could not know that of a port at which nobody listened.
func (p *arm) awaitListener(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	for {
		conn, err := oneshot.Client{Addr: p.session.Addr}.Dial(within)
		if err == nil {
			_ = conn.Close()
			break
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("connect to %s: %w", p.session.Host, err)
		}
		if p.env.Clock.Sleep(within, pause) != nil {
			return cmp.Or(ctx.Err(), p.notReady(err))
		}
	}
	for _, f := range kit.Unseen(p.session.Addr, p.env) {
		if f.Severity == area.Error {
			return fmt.Errorf("%s: %s; next: %s", f.Path, f.Message, f.Hint)
		}
	}
	return nil
}

// fill puts the policies into the decision point behind the URL.
func (p *arm) fill(ctx context.Context) error {
	change, err := p.policiesChange()
	if err != nil {
		return err
	}
	if err := p.journal.Intend(change); err != nil {
		return err
	}
	p.loaded = &change
	begin := p.env.Clock.Now()
	options, err := p.adapter.Load(ctx, p.session, p.set, change.Data["name"])
	if err != nil {
		return fmt.Errorf("put %d policies into the decision point: %w", p.set.N, err)
	}
	p.loading = p.env.Clock.Now().Sub(begin)
	p.session.Options = options
	return nil
}

// policiesChange returns what Load is about to make, as data: the section of the file says how the decision point is
// reached, and where its secrets are, never what they are.
func (p *arm) policiesChange() (area.Change, error) {
	section, err := json.Marshal(p.spec)
	if err != nil {
		return area.Change{}, fmt.Errorf("journal the policies: %w", err)
	}
	name := fmt.Sprintf("tare-%s-%d", p.env.Run, p.index)
	return area.Change{
		Area: areaName, Kind: changePolicies, ID: fmt.Sprintf("policies-%d", p.index),
		Data: map[string]string{
			"url": p.spec.URL, "adapter": p.adapter.Name, "name": name, "target": string(section),
			"max_rate": p.env.Limit.Journaled(),
		},
	}, nil
}

// unload takes the policies out again.
func (p *arm) unload(ctx context.Context) error {
	if p.adapter.Unload == nil {
		return nil
	}
	if err := p.adapter.Unload(ctx, p.session, p.loaded.Data["name"]); err != nil {
		return fmt.Errorf("take the policies %s out of the decision point: %w", p.loaded.Data["name"], err)
	}
	return p.journal.Undone(*p.loaded)
}

// undoPolicies returns unload in another process: secrets are read again from the places that the file named.
func undoPolicies(ctx context.Context, c area.Change, env area.Env) error {
	var s Spec
	if err := json.Unmarshal([]byte(c.Data["target"]), &s); err != nil {
		return errors.New("the journal does not say how the decision point is reached")
	}
	p, err := s.plan(design.Treatment{})
	if err != nil {
		return err
	}
	name := c.Data["name"]
	if p.adapter.Unload == nil || p.url == nil || !strings.HasPrefix(name, "tare-") {
		return fmt.Errorf("%q is nothing that this area puts into a decision point", name)
	}
	session, err := p.open(ctx, env.Getenv)
	if err != nil {
		return fmt.Errorf("reach %s to take %s out of it: %w", c.Data["url"], name, err)
	}
	session.Limit = env.Limit
	return p.adapter.Unload(ctx, session, name)
}

// limitOf returns the bound of the run that made a change; nil: it had none, or its tare did not journal it.
func limitOf(c area.Change, by clock.Clock) (*ratelimit.Limiter, error) {
	text, isJournaled := c.Data["max_rate"]
	if !isJournaled {
		return nil, nil
	}
	rate, err := ratelimit.ParseJournaled(text)
	if err != nil {
		return nil, fmt.Errorf("the journal: %w", err)
	}
	if by == nil {
		by = clock.System{}
	}
	return ratelimit.New(by, rate), nil
}
