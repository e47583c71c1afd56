package identity

import (
	"context"
	"fmt"

	"tare/internal/kit/oneshot"
)

// unlock reads the secrets, files and certificates that calls need. Nothing is sent.
func (p *arm) unlock() (err error) {
	if p.creds, err = newCredentials(p.spec, p.env.Getenv, p.identities); err != nil {
		return err
	}
	if p.files, err = p.spec.readBodyFiles(); err == nil && p.url != nil {
		err = p.spec.checkBodyExposure(p.url, p.files)
	}
	if err != nil {
		return err
	}
	if p.url != nil && p.url.Scheme == "https" {
		p.tls, err = p.spec.TLS.Config(p.url.Hostname(), p.env.Getenv)
	}
	return err
}

// logIn obtains what the calls of every identity need first.
func (p *arm) logIn(ctx context.Context) error {
	if p.adapter.login == nil {
		return nil
	}
	return p.eachIdentity(ctx, p.identities, p.lease)
}

// lease obtains it for one identity.
func (p *arm) lease(ctx context.Context, key int) error {
	asked := p.env.Clock.Now()
	got, err := p.adapter.login(ctx, p.session("login"), key,
		func(ctx context.Context, key int, request []byte) (oneshot.Answer, error) {
			return p.client(key).Do(ctx, request, callTimeout)
		})
	if err != nil {
		return fmt.Errorf("log identity %d in: %w", key, err)
	}
	p.creds.set(key, got, asked)
	return nil
}

// keepFresh renews leases and reads file secrets again, in the background. close ends it.
func (p *arm) keepFresh() {
	r := renewer{creds: p.creds, clock: p.env.Clock, log: p.env.Log}
	if p.adapter.login != nil {
		r.login = func(ctx context.Context, key int) error {
			if err := p.lease(ctx, key); err != nil {
				return err
			}
			p.creds.renderOf(key)
			return nil
		}
	}
	if !r.needed() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.run(ctx)
	}()
	p.stopRenew = func() { cancel(); <-done }
}
