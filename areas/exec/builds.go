package exec

import (
	"context"

	"tare/area"
	"tare/internal/build"
	"tare/internal/kit"
)

// builds is area.Parts.Builds. None is current: whether what tare bench has built is asked for again is not known.
func builds(_ context.Context, env area.Env) ([]area.Builds, error) {
	cache := benchCache(env.Log, kit.Environment(env.Getenv))
	return kit.Builds("Go benchmarks", cache, build.Survey{
		Wanted: func(string) bool { return false },
		Now:    env.Clock.Now(),
	})
}
