package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"tare/areas/admission/webhook"
)

// webhookServer is the name of the reference webhook as a child of this binary.
const webhookServer = "webhook"

// childWithin bounds the start of one of tare's own servers.
const childWithin = 30 * time.Second

// serveWebhook starts the reference webhook if the mechanism calls it.
func (p *arm) serveWebhook(ctx context.Context) error {
	if !p.kind.NeedsWebhook() {
		return nil
	}
	cfg, names := webhook.Config{Latency: p.latency, Workers: p.workers}, []string(nil)
	if p.unsteady() {
		cfg.Latency = webhook.Latency{}
	}
	if w := p.spec.Webhook; w != nil {
		cfg.Addr = w.Listen
		if w.URL != "" {
			u, err := url.Parse(w.URL)
			if err != nil {
				return fmt.Errorf("webhook.url: %w", err)
			}
			names = []string{u.Hostname(), "127.0.0.1"}
		}
	}
	var err error
	if cfg.Identity, err = webhook.NewIdentity(p.env.Clock.Now(), names); err != nil {
		return err
	}
	p.webhookConfig = cfg
	if err := p.startWebhook(ctx); err != nil {
		return err
	}
	p.reviewer, err = newReviewer(p.webhookReady)
	return err
}

// startWebhook starts the reference webhook, at the address that it had before, if any.
func (p *arm) startWebhook(ctx context.Context) error {
	child, err := startChild(ctx, p.env, p.journal, webhookServer, p.index, p.webhookConfig, &p.webhookReady, childWithin)
	if err != nil {
		return err
	}
	p.webhook, p.webhookConfig.Addr = child, p.webhookReady.Addr
	return nil
}

// unsteady reports whether the webhook may miss its time-out by itself, so that nothing can be verified meanwhile.
func (p *arm) unsteady() bool { return p.latency.Spread > 0 || p.checkLatency() != nil }

// setLatency changes the webhook's latency.
func (p *arm) setLatency(ctx context.Context, l webhook.Latency) error {
	if err := p.reviewer.setLatency(ctx, l); err != nil {
		return err
	}
	p.webhookConfig.Latency = l // also of a process that replaces this one
	return nil
}

// A reviewer reads the reference webhook's counts, and sets its latency.
type reviewer struct {
	client *http.Client
	url    string
}

func (r *reviewer) counts(ctx context.Context) (out webhook.Counts, err error) {
	text, err := r.ask(ctx, http.MethodGet, webhook.CountsPath, nil)
	if err != nil {
		return out, fmt.Errorf("ask the webhook server for its counts: %w", err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("read the webhook server's counts: %w", err)
	}
	return out, nil
}

func (r *reviewer) setLatency(ctx context.Context, l webhook.Latency) error {
	body, err := json.Marshal(l)
	if err == nil {
		_, err = r.ask(ctx, http.MethodPost, webhook.LatencyPath, body)
	}
	if err != nil {
		return fmt.Errorf("set the webhook's latency: %w", err)
	}
	return nil
}

func (r *reviewer) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, r.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	a, err := r.client.Do(q)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(a.Body, mostAnswer))
	if err = errors.Join(err, a.Body.Close()); err == nil && a.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("status %d", a.StatusCode)
	}
	return text, err
}
