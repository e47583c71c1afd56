package cluster

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"tare/internal/ratelimit"
)

// quiet keeps client-go from writing to this process's standard error: it returns what matters as an error.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

// turns makes client-go's requests wait for the limiter.
type turns struct{ *ratelimit.Limiter }

var _ flowcontrol.RateLimiter = turns{}

func (t turns) TryAccept() bool { return t.Limiter == nil }

func (t turns) Accept() { _ = t.Wait(context.Background()) }

func (t turns) Stop() {}

func (t turns) QPS() float32 { return float32(t.Rate()) }
