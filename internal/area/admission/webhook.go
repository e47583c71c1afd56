package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"tare/internal/area/admission/webhook"
)

// webhookServer is the name of the reference webhook as a child of this binary.
const webhookServer = "webhook"

// childWithin bounds the start of one of tare's own servers.
const childWithin = 30 * time.Second

// serveWebhook starts the reference webhook if the mechanism calls it.
func (p *arm) serveWebhook(ctx context.Context) (err error) {
	if !p.kind.NeedsWebhook() {
		return nil
	}
	cfg := webhook.Config{Latency: p.latency}
	if w := p.spec.Webhook; w != nil {
		cfg.Addr = w.Listen
		if w.URL != "" {
			u, err := url.Parse(w.URL)
			if err != nil {
				return fmt.Errorf("webhook.url: %w", err)
			}
			cfg.Names = []string{u.Hostname(), "127.0.0.1"}
		}
	}
	p.webhook, err = startChild(ctx, p.env, p.journal, webhookServer, p.index, cfg, &p.webhookReady, childWithin)
	if err != nil {
		return err
	}
	p.reviewer, err = newReviewer(p.webhookReady)
	return err
}

// A reviewer reads the reference webhook's counts.
type reviewer struct {
	client *http.Client
	url    string
}

func (r *reviewer) counts(ctx context.Context) (out webhook.Counts, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+webhook.CountsPath, http.NoBody)
	if err != nil {
		return out, err
	}
	a, err := r.client.Do(q)
	if err != nil {
		return out, fmt.Errorf("ask the webhook server for its counts: %w", err)
	}
	defer func() { _ = a.Body.Close() }()
	if err := json.NewDecoder(a.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("read the webhook server's counts: %w", err)
	}
	return out, nil
}
