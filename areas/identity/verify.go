package identity

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tare/areas/identity/reference"
	"tare/internal/design"
	"tare/internal/files"
	"tare/internal/load"
	"tare/internal/probe"
)

// Verify implements area.Target: what must be refused is refused, a token of the right identity is obtained, and the
// limits of an embedded endpoint act. It expects that no load runs: connections that are kept open may take all slots.
//
// What takes long to prove, or uses up what it proves, is proven once for each process that serves: its knobs cannot
// change while it runs, and they are read back every time.
func (t *target) Verify(ctx context.Context, tr design.Treatment) error {
	p, err := t.arms.Of(tr)
	if err != nil {
		return err
	}
	checks := []func(context.Context) error{p.verifyRefusals, p.verifyToken}
	serving := 0
	if p.url == nil {
		serving = p.child(serverEndpoint).PID
		checks = append(checks, p.verifyKnobs, p.verifyCPU, p.verifyBacklog)
	}
	if p.proven != serving {
		checks = append(checks, p.verifyOwner, p.verifySTS, p.verifyQuota, p.verifyCache, p.verifySharing, p.verifyMaxConns)
	}
	for _, check := range checks {
		if err := check(ctx); err != nil {
			return err
		}
	}
	p.proven = serving
	return nil
}

func (p *arm) verifyRefusals(ctx context.Context) error {
	for _, c := range p.canaries(p.session("refusal")) {
		got, err := p.client(0).Do(ctx, c.request(0), callTimeout)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if !c.wasRefused(got.Status, got.Body) {
			return fmt.Errorf("%s must %s, and got %d", c.name, c.want(), got.Status)
		}
	}
	return nil
}

// Unproved is area.Can.Unproved: an endpoint is asked for nothing that it must refuse if nothing that is sent proves
// who asks.
func (t *target) Unproved(tr design.Treatment) string {
	p, err := t.arms.Of(tr)
	if err != nil || len(p.canaries(p.session("refusal"))) > 0 {
		return ""
	}
	return "the endpoint answers as expected; nothing that must be refused was asked"
}

// verifyToken makes the timed call once; over a quota a client waits.
func (p *arm) verifyToken(ctx context.Context) error {
	p.probed++
	w := p.adapter.wire(p.session(fmt.Sprintf("verify-%d", p.probed)))
	ctx, cancel := context.WithTimeout(ctx, warmWithin)
	defer cancel()
	for {
		outcome, err := p.call(ctx, w, 0, callTimeout)
		if outcome == load.OK {
			return nil
		}
		if outcome == load.Wrong {
			return fmt.Errorf("ask for a token: %w", err)
		}
		if p.env.Clock.Sleep(ctx, warmPause) != nil {
			return fmt.Errorf("ask for a token: none within %v; last: %w", warmWithin, err)
		}
	}
}

// verifyOwner asks the embedded STS whose the access token is.
func (p *arm) verifyOwner(ctx context.Context) error {
	if p.operation != opToken {
		return nil // an identity token names its owner, and Check has compared that
	}
	token, err := p.token(ctx)
	if err != nil || token == "" {
		return err
	}
	x := p.exchanger()
	defer x.Close()
	email, err := x.Email(ctx, token)
	if err != nil {
		return fmt.Errorf("ask the STS whose the token is: %w", err)
	}
	if want := p.owner(0); email != want {
		return fmt.Errorf("the token is %s's, not %s's", email, want)
	}
	return nil
}

// owner returns the account whose token the identity has to get.
func (p *arm) owner(key int) string {
	if p.as == accountDefault || p.as == accountEmail {
		return p.emails[key]
	}
	return p.as
}

// token obtains an access token as identity 0; it is empty when the quota has none to give.
func (p *arm) token(ctx context.Context) (string, error) {
	s := p.session("token")
	s.operation = opToken
	w := p.adapter.wire(s)
	status, body, err := p.ask(ctx, w.Render(nil, 0))
	if p.knobs.QuotaRate > 0 && (outcomeOf(status) == load.Refused || errors.Is(err, context.DeadlineExceeded)) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("ask for a token: %w", err)
	}
	token, v := accessToken(body)
	if status != 200 || v != noCause {
		return "", fmt.Errorf("ask for a token: status %d without a good one", status)
	}
	return string(token), nil
}

// ask makes one request as identity 0 outside the load. An endpoint that drops requests is asked again.
func (p *arm) ask(ctx context.Context, request []byte) (int, []byte, error) {
	tries, timeout := 1, 2*callTimeout
	if p.knobs.Drop > 0 {
		tries, timeout = 40, time.Second
	}
	for {
		got, err := p.client(0).Do(ctx, request, timeout)
		if tries--; err == nil || tries == 0 || ctx.Err() != nil {
			return got.Status, got.Body, err
		}
	}
}

func (p *arm) exchanger() *reference.Exchanger {
	return reference.NewExchanger("http://"+p.child(serverSTS).ready.Addr, p.signer, 0, p.env.Clock)
}

// verifyKnobs reads back what the servers run with.
func (p *arm) verifyKnobs(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	end, err := p.child(serverEndpoint).admin.Counters(ctx)
	if err != nil {
		return err
	}
	sts, err := p.child(serverSTS).admin.Counters(ctx)
	if err != nil {
		return err
	}
	if end.Endpoint == nil || *end.Endpoint != p.knobs.EndpointKnobs || sts.STS == nil || *sts.STS != p.knobs.STSKnobs {
		return errors.New("the servers do not run with the knobs of the treatment")
	}
	if p.throttled && end.Periods == 0 {
		return errors.New("the endpoint does not throttle itself")
	}
	return nil
}

// verifyCPU asks the kernel whether the endpoint is in its group, and whether the group has a limit.
func (p *arm) verifyCPU(context.Context) error {
	if p.group == nil {
		return nil
	}
	pid := p.child(serverEndpoint).PID
	member, err := files.Kernel(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return fmt.Errorf("control group of the endpoint: %w", err)
	}
	if !strings.Contains(string(member), "/"+filepath.Base(p.group.Path())+"\n") {
		return errors.New("the endpoint is not in its control group")
	}
	file := "cpu.cfs_quota_us"
	if p.group.V2() {
		file = "cpu.max"
	}
	limit, err := files.Kernel(filepath.Join(p.group.Path(), file))
	if err != nil {
		return fmt.Errorf("CPU limit of the endpoint: %w", err)
	}
	var quota int64
	if _, err := fmt.Sscan(string(limit), &quota); err != nil || quota <= 0 {
		return fmt.Errorf("the endpoint's control group has no CPU limit: %s is %q", file, strings.TrimSpace(string(limit)))
	}
	return nil
}

// verifyBacklog asks the kernel for the backlog of the listening socket.
func (p *arm) verifyBacklog(ctx context.Context) error {
	samples, err := p.listenQueue().Read(ctx)
	if err != nil {
		return err
	}
	limit, ok := probe.Find(samples, serverEndpoint, probe.ListenQueueLimit)
	if want := p.child(serverEndpoint).ready.Backlog; ok && int(limit) != want {
		return fmt.Errorf("the listen backlog is %v, not %d", limit, want)
	}
	return nil
}
