package admission

import (
	"context"

	"tare/area"
	"tare/areas/admission/engine"
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
	planes, err := kit.Builds("control planes", host.Built(), build.Survey{Wanted: wanted, Now: env.Clock.Now()})
	if err != nil {
		return nil, err
	}
	engines, err := kit.Builds("policy engines", engineHost(env).Built(), build.Survey{
		Wanted: engine.Current, Now: env.Clock.Now(),
	})
	return append(planes, engines...), err
}
