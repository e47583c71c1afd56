// Package imagepull is the area of the kubelet's image-pull credential check: what it costs a pod, at each start, that
// its node must verify its right to use a local image; what the records on disk and their cache cost; and how the cost
// grows with the number of images on a node.
//
// The code under test is upstream's own (k8s.io/kubernetes/pkg/kubelet/images/pullmanager), in a process of tare-plane
// that times itself, without kubelet, registry or network.
package imagepull

import (
	"context"
	"embed"
	"fmt"
	"os"
	"time"

	"tare/area"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/driver"
	"tare/internal/kit"
	"tare/internal/unit"
)

// Area is the imagepull area.
type Area struct{}

var _ area.Area = Area{}

const areaName = "imagepull"

// Name implements area.Area.
func (Area) Name() string { return areaName }

// Offers implements area.Area.
func (Area) Offers() area.Offers {
	return area.Offers{
		AnyRate: area.No("the check is a call within the kubelet, made when a pod starts, with no queue that " +
			"overflows at a rate; ask compare what " +
			"a call costs, with concurrency for several at a time, and scale how that grows"),
		SteadyLoad: area.No("what grows over a node's life are its records, which an experiment sets: ask scale over " +
			"records; how a pull manager " +
			"behaves over days takes a kubelet that runs for days"),
		Trespasses: area.Yes,
	}
}

// NewSpec implements area.Area.
func (Area) NewSpec() area.Spec { return &Spec{} }

// Open implements area.Area. It locates the program, which Preflight has checked, and starts nothing.
func (Area) Open(ctx context.Context, s area.Spec, env area.Env) (area.Target, error) {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return nil, fmt.Errorf("open imagepull: %w", err)
	}
	binary, err := spec.find(ctx, env)
	if err != nil {
		return nil, fmt.Errorf("open imagepull: %w", err)
	}
	cpus, err := processors(spec, env)
	if err != nil {
		return nil, fmt.Errorf("open imagepull: %w", err)
	}
	dir := spec.folder()
	disk, err := lookAt(dir)
	if err != nil {
		return nil, fmt.Errorf("open imagepull: %w", err)
	}
	c := driver.Config{
		Area: areaName, Env: env, Operations: spec.asked(env), Parent: dir, Fresh: true, Contained: true,
		DescribeWithin: describeWithin, Conditions: offeredConditions(),
		Rounds: spec.Rounds, Span: spec.span(), CPUs: cpus,
		Notes: spec.notes(binary, disk, cpus),
		Arm:   func(t design.Treatment) (driver.Arm, error) { return spec.arm(binary, t, env) },
	}
	return driver.New(c), nil
}

// arm returns a treatment's arm: the same program with other levels.
func (s *Spec) arm(b plane.Binary, t design.Treatment, env area.Env) (driver.Arm, error) {
	p, err := s.plan(t)
	if err != nil {
		return driver.Arm{}, err
	}
	return driver.Arm{Program: program(b, env), Levels: p.levels()}, nil
}

// describeWithin bounds tare-plane's start and description: it takes 50 ms, and reads 120 MB.
const describeWithin = time.Minute

// programArgument starts tare-plane as a pull manager.
const programArgument = "pull-manager"

// program returns the pull manager as a child process. Its environment holds only a folder for temporary files: the
// user's settings, such as those of Go's garbage collector, must not affect it.
func program(b plane.Binary, env area.Env) driver.Program {
	return driver.Program{
		Name: programArgument, Path: b.Path, Args: []string{programArgument}, Dir: env.Dir,
		Env:   []string{"TMPDIR=" + os.TempDir()},
		Files: map[string]string{"tare-plane": b.Path},
	}
}

// Undo implements area.Area.
func (Area) Undo(ctx context.Context, changes []area.Change, env area.Env) error {
	return driver.Undo(ctx, changes, env)
}

// Adapters lists the accessors, with one line on each.
func (Area) Adapters() map[string]string {
	return map[string]string{
		disabled: "no credential check: upstream's NoopImagePullManager, which answers at once that no pull is needed",
		directFS: "every check reads the image's record from its file",
		cached:   "a cache in memory that has room for all records, up to upstream's own limit",
		lru:      "the same cache with room for size records, the least recently used one is forgotten",
	}
}

// Presets lists the operations, with one line on each.
func (Area) Presets() map[string]string {
	help := map[string]string{}
	for _, o := range offered() {
		help[o.name] = o.help
	}
	return help
}

// Creates lists what a run of s creates on this host, for the plan.
func (s *Spec) Creates(treatments []area.Treatment) []string {
	need := s.need(treatments)
	return []string{
		unit.Count(len(treatments), "process") + " of tare-plane at a time, one for each treatment, anew in every block",
		fmt.Sprintf("%s of images that do not exist, %s in %s below %s, removed at the end", unit.Count(need.files, "record"),
			size(need.bytes), unit.Count(len(treatments), "folder"), s.folder()),
	}
}

// Parts implements area.Area.
func (a Area) Parts() area.Parts {
	return area.Parts{
		Program: identify, Adapters: kit.Adapters(a.Adapters()), Presets: kit.Named(a.Presets()), Files: embeddedFiles,
	}
}

// embeddedFiles are area.Parts.Files.
//
//go:embed templates words.md
var embeddedFiles embed.FS

// notes returns what is to be known of this run; what holds for every run is in README.md.
func (s *Spec) notes(b plane.Binary, d disk, cpus []int) []string {
	out := []string{fmt.Sprintf("records lie in folders below %s, on %s; Kubernetes %s was compiled by %s", s.folder(),
		d.kind, b.Kubernetes, b.Go)}
	if len(cpus) == 1 {
		out = append(out, fmt.Sprintf("all arms run on CPU %d, one at a time", cpus[0]))
	}
	return out
}
