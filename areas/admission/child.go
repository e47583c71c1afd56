package admission

import (
	"context"
	"fmt"
	"time"

	"tare/area"
	"tare/internal/kit"
	"tare/internal/proc"
)

// startChild starts the area's server of this name as a child of this binary, and decodes its ready line into ready.
// The config, which may hold a token, goes through its standard input.
func startChild(ctx context.Context, env area.Env, j area.Journal, name string, index int, config, ready any,
	within time.Duration,
) (*kit.Process, error) {
	return kit.StartProcess(ctx, j, areaName, fmt.Sprintf("%s-%d", name, index), proc.Spec{
		Name: name, Path: env.Self, Args: []string{"serve", areaName, name}, Config: config,
		LogFile: env.LogFile(name, index), ReadyWithin: within, CPUs: env.CPUs,
	}, ready)
}
