package cli

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"tare/areas/decision/engine"
	"tare/areas/plane"
	"tare/areas/sandbox/vm"
)

// adoptOrphans makes this process the parent of orphans until the end of the test. Whatever a killed tare started,
// directly or not, is then a child of this process, whatever its name, session and environment.
func adoptOrphans(t *testing.T) {
	t.Helper()
	set := func(on uintptr) {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, on, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	set(1)
	t.Cleanup(func() { set(0) })
}

// reapOrphans waits for the orphans that have ended. No exec.Cmd may run meanwhile.
func reapOrphans() {
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
			return
		}
	}
}

// traces lists what tare could leave on this host and in a cluster, one per line: processes, control groups, mounts,
// folders and objects.
func (k *killable) traces(t *testing.T) []string {
	t.Helper()
	out := slices.Concat(liveDescendants(), idleControlGroups(), mounts(t),
		filesBelow(os.TempDir(), os.Getenv("XDG_RUNTIME_DIR")),
		foldersOfTare("/dev/shm"))
	if k.listing != nil {
		out = append(out, k.listing(t)...)
	}
	return out
}

// diffTraces compares the traces with before, and returns the lines that differ, marked + or -. A difference that goes
// away within some seconds does not count: the kernel takes a moment to end the children of a killed process, and other
// users' traces come and go.
func (k *killable) diffTraces(t *testing.T, before []string) (diff []string) {
	t.Helper()
	for try := range 50 {
		now := k.traces(t)
		var found []string
		for _, line := range now {
			if !slices.Contains(before, line) {
				found = append(found, "+ "+line)
			}
		}
		for _, line := range before {
			if !slices.Contains(now, line) {
				found = append(found, "- "+line)
			}
		}
		if try > 0 {
			found = slices.DeleteFunc(found, func(line string) bool { return !slices.Contains(diff, line) })
		}
		if diff = found; len(diff) == 0 {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return diff
}

// liveDescendants returns the live descendants of this process, with the sockets of loopback on which they listen.
func liveDescendants() (out []string) {
	parents, ended := map[int]int{}, map[int]bool{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, s := range stats {
		_, rest, ok := bytes.Cut(readAll(s), []byte(") "))
		fields := bytes.Fields(rest)
		if !ok || len(fields) < 2 {
			continue // it has ended meanwhile
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(s)))
		parents[pid], _ = strconv.Atoi(string(fields[1]))
		ended[pid] = string(fields[0]) == "Z"
	}
	for pid := range parents {
		at := parents[pid]
		for at > 0 && at != os.Getpid() {
			at = parents[at]
		}
		if at > 0 && !ended[pid] {
			out = append(out, fmt.Sprintf("process %d: %q", pid, readAll(fmt.Sprintf("/proc/%d/cmdline", pid))))
		}
	}
	slices.Sort(out)
	return out
}

// idleControlGroups returns the control groups with tare in their name that have no process: processes are listed
// themselves, or belong to somebody else.
func idleControlGroups() (out []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(d.Name(), "tare") &&
			len(readAll(filepath.Join(path, "cgroup.procs"))) == 0 {
			out = append(out, "cgroup "+path)
		}
		return nil
	})
	return out
}

func mounts(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		out = append(out, "mount "+strings.TrimSpace(line))
	}
	return out
}

// filesBelow returns all files below roots, except the folder of locks, which all runs share.
func filesBelow(roots ...string) (out []string) {
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err == nil && path != root && !strings.HasPrefix(filepath.Base(path), "tare-locks") {
				out = append(out, "file "+path)
			}
			return nil
		})
	}
	return out
}

// foldersOfTare returns tare's folders in a shared folder.
func foldersOfTare(in string) (out []string) {
	paths, _ := filepath.Glob(filepath.Join(in, "*tare*"))
	for _, path := range paths {
		out = append(out, "file "+path)
	}
	return out
}

// watchLeftovers returns a function that lists what tare has left since: temporary files, control groups, and processes
// of bin. Control groups that existed before belong to others.
func watchLeftovers(t *testing.T, bin string) func() string {
	t.Helper()
	before := idleControlGroups()
	return func() string {
		t.Helper()
		return leftovers(bin, before)
	}
}

func leftovers(bin string, groupsBefore []string) string {
	var left []string
	for range 20 { // the kernel takes a moment to end children of a killed parent
		stats, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		groups := slices.DeleteFunc(idleControlGroups(), func(g string) bool { return slices.Contains(groupsBefore, g) })
		left = slices.Concat(groups, foldersOfTare(os.TempDir()))
		for _, s := range stats {
			if line := readAll(s); bytes.HasPrefix(line, []byte(bin+"\x00serve\x00")) {
				left = append(left, fmt.Sprintf("process %s: %q", s, line))
			}
		}
		if len(left) == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return strings.Join(left, "\n")
}

// withEngines compares OPA with Cedar if OPA is built, and otherwise Cedar with itself.
func withEngines(t *testing.T, _ string, k *killable) {
	t.Helper()
	other := "cedar, position: absent"
	there, err := engine.Seek(t.Context(), engine.OPA, engine.Host{Getenv: os.LookupEnv})
	if there && err == nil {
		other = "opa"
	} else {
		t.Logf("without OPA, which has not been built on this host: %v", err)
	}
	k.experiment = strings.ReplaceAll(k.experiment, "$(ENGINE)", other)
}

// withLab skips the test where no lab VM can be booted.
func withLab(t *testing.T, _ string, _ *killable) {
	t.Helper()
	if _, err := vm.Emulator(); err != nil {
		t.Skipf("THIS HOST CANNOT: %v", err)
	}
	if all, err := vm.Kernels(os.LookupEnv); err != nil || len(all) == 0 {
		t.Skipf("THIS HOST CANNOT: there is no kernel to boot: %v", err)
	}
}

// requirePlane skips the test if tare-plane is not built, which takes minutes.
func requirePlane(t *testing.T) plane.Binary {
	t.Helper()
	b, ok := plane.Cached(t.Context(), plane.V136, plane.Host{Log: slog.New(slog.DiscardHandler), Getenv: os.LookupEnv})
	if !ok {
		t.Skipf("SKIPPED: there is no tare-plane of Kubernetes %s on this host; 'make plane' builds it", plane.V136)
	}
	return b
}

// withCluster starts a control plane that is not the run's own. With nodes it has the controllers that empty
// namespaces.
func withCluster(t *testing.T, bin string, k *killable) {
	t.Helper()
	b := requirePlane(t)
	dir := t.TempDir()
	t.Setenv(plane.Variable, b.Path)
	t.Setenv("TARE_CACHE", filepath.Join(dir, "cache")) // logs of planes lie there
	out, code := tare(t, bin, dir, "plane", "up", "--name", "killed", "--nodes", "1")
	if code != ExitPass {
		t.Fatalf("plane up: exit %d\n%s", code, out)
	}
	t.Cleanup(func() {
		down := exec.Command(bin, "plane", "down", "--name", "killed") // not bound by the test's context, which has ended
		if out, err := down.CombinedOutput(); err != nil {
			t.Errorf("plane down: %v\n%s", err, out)
		}
	})
	_, file, _ := strings.Cut(out, "export KUBECONFIG=")
	file, _, _ = strings.Cut(file, "\n")
	k.experiment = strings.ReplaceAll(k.experiment, "$(KUBECONFIG)", file)
	k.listing = func(t *testing.T) []string { return clusterObjects(t, file) }
	for last := []string{}; ; { // a control plane makes objects of its own for some seconds after its start
		now := clusterObjects(t, file)
		if slices.Equal(now, last) {
			return
		}
		last = now
		time.Sleep(500 * time.Millisecond)
	}
}

// clusterObjects lists every object of a cluster, except those that a cluster makes by itself as time passes.
func clusterObjects(t *testing.T, kubeconfig string) (out []string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	disco := discovery.NewDiscoveryClientForConfigOrDie(config)
	client := metadata.NewForConfigOrDie(config)
	resources, err := disco.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	gvrs, err := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{
		"list",
		"get",
	}}, resources))
	if err != nil {
		t.Fatal(err)
	}
	for gvr := range gvrs {
		if slices.Contains([]string{"events", "leases", "componentstatuses"}, gvr.Resource) {
			continue
		}
		list, err := client.Resource(gvr).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("list %v: %v", gvr, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			out = append(out, fmt.Sprintf("object %s %s/%s %s, labels %v", gvr.GroupResource(), o.Namespace, o.Name, o.UID,
				o.Labels))
		}
	}
	slices.Sort(out)
	return out
}
