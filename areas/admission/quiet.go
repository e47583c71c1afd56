package admission

import (
	"log/slog"

	"k8s.io/klog/v2"
)

// client-go's messages about its retries do not belong on a terminal that shows a run.
func init() { klog.SetSlogLogger(slog.New(slog.DiscardHandler)) }
