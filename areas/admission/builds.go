package admission

import (
	"context"

	"tare/area"
	"tare/areas/plane"
	"tare/internal/build"
	"tare/internal/kit"
)

// builds is area.Parts.Builds.
func builds(ctx context.Context, env area.Env) ([]area.Builds, error) {
	host := plane.Host{Log: env.Log, Getenv: kit.Environment(env.Getenv)}
	wanted, err := host.Current(ctx)
	if err != nil {
		return nil, err
	}
	return kit.Builds("control planes", host.Built(), build.Survey{Wanted: wanted, Now: env.Clock.Now()})
}
