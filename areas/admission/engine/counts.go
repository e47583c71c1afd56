package engine

import (
	"context"
	"fmt"
	"net/http"

	"tare/areas/admission/apimetrics"
)

// Objections asks a Kyverno that runs how often each of its policies has objected to requests in a namespace, and how
// often they were evaluated there.
func (r Ready) Objections(
	ctx context.Context, namespace string,
) (objected map[string]uint64, evaluated uint64, err error) {
	client := &http.Client{Timeout: askWithin}
	defer client.CloseIdleConnections()
	text, err := ask(ctx, client, r.Metrics)
	if err != nil {
		return nil, 0, fmt.Errorf("ask Kyverno for its metrics: %w", err)
	}
	return apimetrics.KyvernoObjections(text, namespace)
}
