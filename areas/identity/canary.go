package identity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"tare/areas/identity/reference"
)

const (
	// hangs is how long a call must go unanswered to count as hanging.
	hangs = 300 * time.Millisecond
	// maxCanaries bounds the calls that prove a limit; a higher limit is read back from the server only.
	maxCanaries = 600
	// paceAfter is how many exchanges beyond the burst show whether we are faster than the quota.
	paceAfter = 20
	// canaryTime bounds the search for a quota behind slow hops.
	canaryTime = 20 * time.Second
	// queueProof is how many exchanges beyond the burst show that they waited.
	queueProof = 5
)

// verifySTS offers a token that somebody else has signed.
func (p *arm) verifySTS(ctx context.Context) error {
	forger, err := reference.NewSigner(reference.ES256)
	if err != nil {
		return err
	}
	x := reference.NewExchanger("http://"+p.child(serverSTS).ready.Addr, forger, 0, p.env.Clock)
	defer x.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = x.Federate(ctx, reference.WorkloadOf(sourceOf(0)), p.canaryPool())
	var refused *reference.UpstreamError
	if !errors.As(err, &refused) || refused.Status != 400 {
		return fmt.Errorf("the STS must refuse a token with a foreign signature: %w", errors.Join(err, errNotRefused))
	}
	return nil
}

var errNotRefused = errors.New("it did not")

// canaryPool returns a workload-identity pool with a quota of its own, so that canaries leave the measured one alone.
func (p *arm) canaryPool() string {
	p.probed++
	return fmt.Sprintf("verify-%d-%d.svc.id.goog", p.index, p.probed)
}

// verifyQuota uses up the burst of a pool of its own and checks the exchanges after it: no more may pass than the burst
// and the tokens that have accrued since. Quotas that one caller cannot reach are only read back.
func (p *arm) verifyQuota(ctx context.Context) error {
	if p.knobs.QuotaRate == 0 || p.knobs.QuotaBurst > maxCanaries {
		return nil
	}
	x := p.exchanger()
	defer x.Close()
	pool := p.canaryPool()
	enough := 0.0 // exchanges beyond the burst that prove the quota
	if p.knobs.QuotaMode == reference.Queue {
		enough = queueProof // they pass: that they waited shows in their number
	}
	started := p.env.Clock.Now()
	for n := 0; ; n++ {
		limited, err := p.limited(ctx, x, pool)
		if err != nil {
			return fmt.Errorf("quota: exchange %d: %w", n, err)
		}
		come := p.env.Clock.Now().Sub(started).Seconds() * p.knobs.QuotaRate // tokens since then
		beyond := float64(n - p.knobs.QuotaBurst)
		switch {
		case limited && beyond < 0:
			return fmt.Errorf("quota: limited after %d exchanges, with a burst of %d", n, p.knobs.QuotaBurst)
		case beyond > come+1:
			return fmt.Errorf("quota: %d exchanges passed, with a burst of %d and %v/s", n+1, p.knobs.QuotaBurst,
				p.knobs.QuotaRate)
		case limited && beyond >= enough:
			return nil
		case beyond > paceAfter && float64(n) < 1.5*come, p.env.Clock.Now().Sub(started) > canaryTime:
			return nil
		}
	}
}

// limited makes one exchange and reports whether it met the quota, in the mode that was set. If only slowness is
// visible here, the STS's own count distinguishes a wait for the quota from a slow host.
func (p *arm) limited(ctx context.Context, x *reference.Exchanger, pool string) (bool, error) {
	before, err := p.overQuota(ctx)
	if err != nil {
		return false, err
	}
	err = p.federate(ctx, x, pool)
	refused, isRefused := errors.AsType[*reference.UpstreamError](err)
	silent := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	switch mode := p.knobs.QuotaMode; {
	case isRefused && refused.Status == 429 && mode == reference.Reject:
		return true, nil
	case err == nil && mode != reference.Queue:
		return false, nil
	case err == nil, silent && mode == reference.Tarpit:
		after, err := p.overQuota(ctx)
		return after > before, err
	default:
		return false, fmt.Errorf("in mode %s: %w", mode, err)
	}
}

// federate makes one exchange, with the patience that the mode asks for.
func (p *arm) federate(ctx context.Context, x *reference.Exchanger, pool string) error {
	patience := callTimeout + 2*p.knobs.UpstreamLatency
	switch p.knobs.QuotaMode {
	case reference.Tarpit:
		patience = hangs + 2*p.knobs.UpstreamLatency
	case reference.Queue:
		patience += time.Duration(float64(time.Second) / p.knobs.QuotaRate)
	case reference.Reject:
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := x.Federate(ctx, reference.WorkloadOf(sourceOf(0)), pool)
	return err
}

func (p *arm) overQuota(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c, err := p.child(serverSTS).admin.Counters(ctx)
	return c.OverQuota, err
}

// verifyCache asks twice: a cache gives the same token again, and without one each is new.
func (p *arm) verifyCache(ctx context.Context) error {
	first, err := p.token(ctx)
	if err != nil {
		return err
	}
	second, err := p.token(ctx)
	if err != nil || first == "" || second == "" {
		return err
	}
	switch same := first == second; {
	case same && !p.knobs.Cache:
		return errors.New("the cache is off, and two requests got the same token")
	case !same && p.knobs.Cache && p.knobs.TTL > time.Minute && p.knobs.RefreshEarly+p.knobs.Jitter < p.knobs.TTL/2:
		return errors.New("the cache is on, and two requests got different tokens")
	}
	return nil
}

// sharers is how many concurrent requests show whether they share an exchange.
const sharers = 8

// verifySharing asks for one new identity token several times at once, and counts the exchanges. Where the load's own
// quota would be used up, a request may be lost, or fewer are accepted at a time, the knob is only read back.
func (p *arm) verifySharing(ctx context.Context) error {
	if p.knobs.QuotaRate > 0 || p.knobs.Drop > 0 || (p.knobs.MaxConns > 0 && p.knobs.MaxConns < sharers) {
		return nil
	}
	const tries = 20
	for range tries {
		missed, err := p.missesAtOnce(ctx)
		if err != nil {
			return fmt.Errorf("singleflight: %w", err)
		}
		if shown, wrong := p.sharing(missed); wrong {
			return fmt.Errorf("singleflight is %v, and %d requests at once for one token made %d exchanges",
				p.knobs.Singleflight, sharers, missed)
		} else if shown {
			return nil
		}
	}
	return fmt.Errorf("singleflight is %v, and %d requests at once for one token never showed it, %d times",
		p.knobs.Singleflight, sharers, tries)
}

// sharing judges the number of exchanges: they may prove that singleflight is as configured (shown), or that it is not
// (wrong), or nothing, if the requests did not overlap. A cache answers requests that did not overlap.
func (p *arm) sharing(exchanges int64) (shown, wrong bool) {
	switch {
	case p.knobs.Singleflight && p.knobs.Cache:
		return exchanges == 1, exchanges != 1
	case p.knobs.Singleflight:
		return exchanges < sharers, exchanges > sharers
	case p.knobs.Cache:
		return exchanges > 1, exchanges > sharers
	}
	return exchanges == sharers, exchanges != sharers
}

// missesAtOnce counts the exchanges that concurrent requests for one new token begin.
func (p *arm) missesAtOnce(ctx context.Context) (int64, error) {
	admin := p.child(serverEndpoint).admin
	before, err := admin.Counters(ctx)
	if err != nil {
		return 0, err
	}
	p.probed++
	s := p.session(fmt.Sprintf("share-%d", p.probed))
	s.operation = opIdentity
	request := p.adapter.wire(s).Render(nil, 0)
	err = p.eachIdentity(ctx, sharers, func(ctx context.Context, _ int) error {
		got, err := p.client(0).Do(ctx, request, 2*callTimeout+2*p.knobs.UpstreamLatency)
		if err == nil && got.Status != 200 {
			err = fmt.Errorf("status %d", got.Status)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	after, err := admin.Counters(ctx)
	return after.Misses - before.Misses, err
}

// verifyMaxConns opens as many connections as the endpoint accepts: a further one must go unanswered until they are
// closed.
func (p *arm) verifyMaxConns(ctx context.Context) error {
	if p.knobs.MaxConns == 0 || p.knobs.MaxConns > maxCanaries {
		return nil
	}
	var held []net.Conn
	free := func() {
		for _, c := range held {
			_ = c.Close()
		}
	}
	defer free()
	for range p.knobs.MaxConns {
		c, err := p.client(0).Dial(ctx)
		if err != nil {
			return fmt.Errorf("max_conns: %w", err)
		}
		held = append(held, c)
	}
	if err := p.awaitConns(ctx, p.knobs.MaxConns); err != nil {
		return err
	}
	ask := p.adapter.wire(p.session("conns")).Render(nil, 0)
	if p.adapter.whoami != nil {
		ask = p.adapter.whoami(p.session("conns"))
	}
	if _, err := p.client(0).Do(ctx, ask, hangs); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("max_conns: connection %d must go unanswered while %d are open",
			p.knobs.MaxConns+1, p.knobs.MaxConns)
	}
	free()
	if _, _, err := p.ask(ctx, ask); err != nil {
		return fmt.Errorf("max_conns: no answer after the other connections were closed: %w", err)
	}
	return nil
}

// awaitConns waits until n connections are open at the endpoint: it may be about to accept ours, and to notice the end
// of earlier ones.
func (p *arm) awaitConns(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for {
		c, err := p.child(serverEndpoint).admin.Counters(ctx)
		if err != nil {
			return fmt.Errorf("max_conns: %w", err)
		}
		if c.Connections == int64(n) {
			return nil
		}
		if p.env.Clock.Sleep(ctx, warmPause/10) != nil {
			return fmt.Errorf("max_conns: %d connections are accepted, not %d", c.Connections, n)
		}
	}
}
