package cli

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var areaKills = flag.Int("areakills", 2, "how often TestKilledAreas kills a run of each area")

// killedAreas are small experiments of every area, and how long a run of each takes at most: over that time kills are spread. NAME is a name that
// no other run on the host has.
var killedAreas = map[string]struct {
	experiment string
	takes      time.Duration
}{
	"identity":  {strings.Replace(killedExperiment, "name: killed", "name: NAME", 1), 8 * time.Second},
	"decision":  {"name: NAME\narea: decision\nquestion: capacity\ntarget: {embedded: {engine: cedar}, policies: 10}\nload: {timeout: 2s, max_rate: 200/s}\nseed: 1\n", 8 * time.Second},
	"sandbox":   {strings.Replace(comparedExperiment, "name: compared", "name: NAME", 1), 3 * time.Second},
	"exec":      {"name: NAME\narea: exec\nquestion: compare\ntarget: {program: [./secretdriver, never], rounds: 3}\nbaseline: {a: 1}\ntreatments: [{a: 2}]\nblocks: 3\nseed: 1\n", 3 * time.Second},
	"imagepull": {"name: NAME\narea: imagepull\nquestion: compare\ntarget: {operations: [check], rounds: 3}\nbaseline: {accessor: disabled}\ntreatments: [{accessor: directfs}]\nfixed: {records: 10, hits: 10}\nblocks: 3\nseed: 1\n", 8 * time.Second},
	"admission": {"name: NAME\narea: admission\nquestion: compare\ntarget: {}\nbaseline: {mechanism: none}\ntreatments: [{mechanism: vap, policies: 2}]\n" +
		"load: {rate: 20/s, operations: [{create-pod-dry-run: 1}], duration: 1s, max_rate: 40/s}\nblocks: 3\nseed: 1\n", 40 * time.Second},
}

// TestKilledAreas ends runs of every area with SIGKILL at random points. Undo must leave the host as it was: processes, control groups, mounts, and
// folders for temporary files.
func TestKilledAreas(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: starts and kills many runs")
	}
	t.Parallel()
	for area, c := range killedAreas {
		t.Run(area, func(t *testing.T) {
			t.Parallel()
			undone := 0
			for i := range *areaKills {
				rng := rand.New(rand.NewPCG(uint64(i), 11))
				span := time.Second // where the journal and the world can disagree
				if i%2 == 1 {
					span = c.takes
				}
				if killedRun(t, fmt.Sprintf("kill-%s-%d-%d", area, os.Getpid(), i), c.experiment, time.Duration(rng.Float64()*float64(span))) {
					undone++
				}
			}
			t.Logf("%d of %d kills left something to undo", undone, *areaKills)
		})
	}
}

// killedRun kills one run, undoes what it left, and looks for the rest. It reports whether there was anything to undo.
func killedRun(t *testing.T, name, experiment string, after time.Duration) (undone bool) {
	t.Helper()
	r := newSecretRoom(t, strings.Replace(experiment, "NAME", name, 1))
	r.caches = originalCache
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(r.dir, "secretdriver"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.tare(0, nil, "plan", "x.yaml"); strings.Contains(r.said.String(), "builds it, once") {
		t.Skip("skipped: tare-plane is not built (make plane)")
	}
	before := r.traces(name)
	r.tare(after, []syscall.Signal{syscall.SIGKILL}, "run", "x.yaml")
	records, _ := filepath.Glob(filepath.Join(r.dir, "results", "*", "record.jsonl"))
	for _, record := range records {
		for range 2 {
			r.said.Reset()
			if code := r.tare(0, nil, "undo", filepath.Dir(record)); code != ExitPass {
				t.Errorf("killed after %s: undo: exit %d\n%s", after, code, &r.said)
			}
			undone = undone || strings.Contains(r.said.String(), "undone  ")
		}
	}
	if len(records) == 0 {
		r.tare(0, nil, "plan", "x.yaml") // what a kill before there is a journal has left, the next command takes away
	}
	left := r.traces(name)
	for range 50 { // the kernel takes a moment to end children of a killed parent
		if slices.Equal(left, before) {
			return undone
		}
		time.Sleep(100 * time.Millisecond)
		left = r.traces(name)
	}
	t.Errorf("killed after %s, and undone, there is\n  %s\nand before the run there was\n  %s\n%s", after, strings.Join(left, "\n  "), strings.Join(before, "\n  "), &r.said)
	return undone
}

// traces are what a run of that name in the room can leave on the host.
func (r *secretRoom) traces(name string) (out []string) {
	r.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		command, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		environment, _ := os.ReadFile(filepath.Join(p, "environ"))
		folder, _ := os.Readlink(filepath.Join(p, "cwd"))
		if bytes.Contains(slices.Concat(command, environment, []byte(folder)), []byte(r.dir)) {
			out = append(out, fmt.Sprintf("process %s: %q", p, command))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		r.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, r.dir) {
			out = append(out, "mount "+line)
		}
	}
	find := func(what, root string, is func(path string) bool) {
		_ = filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err == nil && path != root && is(path) {
				out = append(out, what+" "+path)
			}
			return nil // what goes meanwhile is gone
		})
	}
	find("control group", "/sys/fs/cgroup", func(path string) bool { return strings.Contains(filepath.Base(path), name) })
	find("temporary file", filepath.Join(r.dir, "tmp"), func(path string) bool { return !strings.Contains(path, "tare-locks") })
	find("state", filepath.Join(r.dir, "run"), func(path string) bool { return !strings.Contains(path, "tare-locks") })
	return out
}
