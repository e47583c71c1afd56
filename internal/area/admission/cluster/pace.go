package cluster

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// quiet keeps client-go from writing to this process's standard error: what matters comes back as an error.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

// A Pace bounds how many requests are sent per second, with none saved up. It may be shared.
type Pace struct {
	rate    float64
	limiter flowcontrol.RateLimiter
}

// NewPace is a bound of rate requests a second; 0: none.
func NewPace(rate float64) *Pace {
	if rate <= 0 {
		return &Pace{limiter: flowcontrol.NewFakeAlwaysRateLimiter()}
	}
	return &Pace{rate: rate, limiter: flowcontrol.NewTokenBucketRateLimiter(float32(rate), 1)}
}

// Wait returns when a request may be sent, or with the context's error.
func (p *Pace) Wait(ctx context.Context) error { return p.limiter.Wait(ctx) }
