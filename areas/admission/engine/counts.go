package engine

import (
	"context"
	"fmt"
	"net/http"

	"tare/areas/admission/apimetrics"
)

// Counts asks a Kyverno that runs what its policies did to requests in a namespace.
func (r Ready) Counts(ctx context.Context, namespace string) (apimetrics.KyvernoCounts, error) {
	client := &http.Client{Timeout: askWithin}
	defer client.CloseIdleConnections()
	text, err := ask(ctx, client, r.Metrics)
	if err != nil {
		return apimetrics.KyvernoCounts{}, fmt.Errorf("ask Kyverno for its metrics: %w", err)
	}
	return apimetrics.Kyverno(text, namespace)
}
