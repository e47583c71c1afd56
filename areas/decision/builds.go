package decision

import (
	"context"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/internal/build"
	"tare/internal/kit"
)

// builds is area.Parts.Builds.
func builds(_ context.Context, env area.Env) ([]area.Builds, error) {
	host := engine.Host{Log: env.Log, Getenv: kit.Environment(env.Getenv)}
	needed, err := host.Current()
	if err != nil {
		return nil, err
	}
	return kit.Builds("decision points", host.Built(), build.Survey{Wanted: needed, Now: env.Clock.Now()})
}
