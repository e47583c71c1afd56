package decision

import (
	"context"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/internal/kit"
)

// checks is area.Parts.Checks: it looks for Java, and does not start it.
func checks(_ context.Context, env area.Env) []area.Check {
	c := area.Check{Group: area.Tools, Name: "Java", State: area.CheckInfo, Found: "not found in JAVA_HOME or PATH"}
	if path, ok := engine.LookJava(engine.Host{Getenv: kit.Environment(env.Getenv)}, "java"); ok {
		c.Found = path
	}
	return []area.Check{c}
}
