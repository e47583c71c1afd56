package imagepull

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"tare/area"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/driver"
	"tare/internal/kit"
)

// Preflight implements area.Area. It checks that the program is available, which may build it, that it has the pull
// manager and its operations, and that records can be written to their folder. It leaves nothing behind.
func (Area) Preflight(ctx context.Context, s area.Spec, env area.Env) []area.Finding {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return []area.Finding{area.Fault("", err, "")}
	}
	out := append(spec.advise(env.Treatments), spec.judgeFolder(env.Treatments)...)
	out = append(out, spec.judgeMemory(env.Treatments, "/proc/meminfo")...)
	if _, err := processors(spec, env); err != nil {
		out = append(out, area.Fault("", err, ""))
	}
	if env.Look {
		b, there, err := plane.Seek(ctx, plane.V136, spec.host(env))
		switch {
		case err != nil:
			return append(out, area.Fault("binary", fmt.Errorf("find the pull manager: %w", err), ""))
		case !there:
			return append(out, area.Finding{
				Path: "binary", Severity: area.Info,
				Message: "tare-plane is not there yet: a run builds it, once, which takes minutes",
			})
		}
		return append(out, spec.judgeProgram(ctx, b, env)...)
	}
	b, err := spec.find(ctx, env)
	if err != nil {
		return append(out, area.Fault("binary", err, ""))
	}
	return append(out, spec.judgeProgram(ctx, b, env)...)
}

// judgeProgram lets the program describe itself, and rejects one that was built before it had a pull manager.
func (s *Spec) judgeProgram(ctx context.Context, b plane.Binary, env area.Env) []area.Finding {
	d, err := describe(ctx, b)
	if err != nil {
		return []area.Finding{area.Fault("binary", err, "name another tare-plane, or none to have tare build it")}
	}
	out := []area.Finding{{
		Path: "binary", Severity: area.Info,
		Message: fmt.Sprintf("pull manager: Kubernetes %s, from %s", b.Kubernetes, b.Path),
	}}
	out = append(out, d.Check(s.asked(env), s.asProgram(env.Treatments), nil)...)
	if env.Trespasses {
		out = append(out, s.checkGuarded(d.Description)...)
	}
	return out
}

// asProgram returns the treatments in the program's terms: "lru:20" is accessor lru of size 20. Validate has reported
// those that have none.
func (s *Spec) asProgram(treatments []design.Treatment) (out []design.Treatment) {
	for _, t := range treatments {
		if p, err := s.plan(t); err == nil {
			t.Levels = p.levels()
			out = append(out, t)
		}
	}
	return out
}

// describe returns the program's description.
func describe(ctx context.Context, b plane.Binary) (driver.Introduction, error) {
	d, err := driver.Try(ctx, program(b, area.Env{Dir: os.TempDir()}), describeWithin)
	if err != nil {
		return d, fmt.Errorf("%s does not work as a pull manager: %w", b.Path, err)
	}
	return d, nil
}

// identify is area.Parts.Program. The path of tare-plane is not part of its identity.
func identify(ctx context.Context, s area.Spec, env area.Env) (area.Program, error) {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return area.Program{}, err
	}
	var out area.Program
	known := !env.Inert
	if known && env.Look {
		_, known = plane.Cached(ctx, plane.V136, spec.host(env))
	}
	if !known {
		out.Once, out.Block, out.Counts = spec.starts(env.Treatments, usualStart, "as assumed")
		return out, nil
	}
	b, err := spec.find(ctx, env)
	if err != nil {
		return out, err
	}
	d, err := describe(ctx, b)
	if err != nil {
		return out, err
	}
	out.Once, out.Block, out.Counts = spec.starts(env.Treatments, d.Took, "as just now")
	out.Identity, err = driver.Identity(program(b, env), d.Description)
	return out, err
}

// host returns what finding the program needs: the path in the file, and a function that announces a build.
func (s *Spec) host(env area.Env) plane.Host {
	h := plane.Host{
		Path: s.Binary, Log: env.Log, Getenv: kit.Environment(env.Getenv), Clock: env.Clock,
		Tell: func(line string) { env.Log.Warn("prepare the pull manager", slog.String("step", line)) },
	}
	return h
}

// find returns the program, and builds it if necessary.
func (s *Spec) find(ctx context.Context, env area.Env) (plane.Binary, error) {
	b, err := plane.Find(ctx, plane.V136, s.host(env))
	if err != nil {
		return b, fmt.Errorf("find the pull manager: %w", err)
	}
	return b, nil
}

// processors returns where the programs run: the last processor while calls are made one at a time, since the host's
// own tasks tend to run on the first; all of them for concurrent calls, as those of guard are.
func processors(s *Spec, env area.Env) ([]int, error) {
	cpus, err := kit.Processors(env)
	if err != nil {
		return nil, err
	}
	if env.Trespasses || s.most(env.Treatments) > 1 {
		return cpus, nil
	}
	return cpus[len(cpus)-1:], nil
}
