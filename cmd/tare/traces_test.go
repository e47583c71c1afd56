package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/sys/unix"

	"tare/internal/cli"
	"tare/rigs/hosttest"
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
		filesBelow(os.TempDir(), os.Getenv("XDG_RUNTIME_DIR")))
	if area := areaOf(k.experiment); area == "admission" || area == "imagepull" { // others have control planes there, too
		out = append(out, unused(foldersOfTare(sharedMemory))...)
	}
	if k.listing != nil {
		out = append(out, k.listing(t)...)
	}
	return out
}

// settledTraces are the traces once no server of tare's is left that a run before was killed with: on a busy host it
// ends some time after the test that killed it.
func (k *killable) settledTraces(t *testing.T) []string {
	t.Helper()
	for range 100 {
		if !slices.ContainsFunc(liveDescendants(), func(line string) bool { return strings.Contains(line, `\x00serve\x00`) }) {
			break
		}
		reapOrphans()
		time.Sleep(100 * time.Millisecond)
	}
	return k.traces(t)
}

// diffTraces compares the traces with before, and returns the lines that differ, marked + or -. A difference that goes
// away within some seconds does not count: the kernel takes a moment to end the children of a killed process, and other
// users' traces come and go.
func (k *killable) diffTraces(t *testing.T, before []string) (diff []string) {
	t.Helper()
	for try := range 20 {
		now := k.traces(t)
		var found []string
		for _, line := range now {
			if !slices.Contains(before, line) {
				found = append(found, "+ "+line)
			}
		}
		for _, line := range before {
			if !slices.Contains(now, line) && !strings.Contains(line, sharedMemory) { // of other tests' control planes
				found = append(found, "- "+line)
			}
		}
		if try > 0 {
			found = slices.DeleteFunc(found, func(line string) bool { return !slices.Contains(diff, line) })
		}
		if diff = found; len(diff) == 0 {
			return nil
		}
		time.Sleep(250 * time.Millisecond)
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

// sharedMemory is where control planes have their folders, those of other tests, too.
const sharedMemory = "/dev/shm"

// unused leaves out the folders in which a process works: of those that a run has left, its processes are found.
func unused(folders []string) []string {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	works := map[string]bool{}
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil {
			works["file "+at] = true
		}
	}
	return slices.DeleteFunc(folders, func(folder string) bool { return works[folder] })
}

// watchLeftovers returns a function that lists what tare has left since: temporary files, control groups, and processes
// of bin. Control groups that existed before belong to others.
func watchLeftovers(t *testing.T, bin string) func() string {
	t.Helper()
	before := idleControlGroups()
	return func() string {
		t.Helper()
		var left []string
		for range 20 { // the kernel takes a moment to end children of a killed parent
			stats, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			groups := slices.DeleteFunc(idleControlGroups(), func(g string) bool { return slices.Contains(before, g) })
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
}

// withEngines compares OPA with Cedar if OPA is built, and otherwise Cedar with itself.
func withEngines(t *testing.T, _ string, k *killable) {
	t.Helper()
	other := "opa"
	if _, ok := currentBuild(t, "decision points", "opa-"); !ok {
		other = "cedar, position: absent"
		t.Log("without OPA, which has not been built on this host")
	}
	k.experiment = strings.ReplaceAll(k.experiment, "$(ENGINE)", other)
}

// withLab skips the test where no lab VM can be booted.
func withLab(t *testing.T, bin string, k *killable) {
	t.Helper()
	out, code := execTare(t, bin, folderWith(t, k.experiment), k.command("plan", "--try")...)
	if code != cli.ExitPass && (strings.Contains(out, "is not installed") || strings.Contains(out, "no kernel to boot")) {
		hosttest.Missing(t, "QEMU or a kernel for the lab VM is missing", "set up the lab VM: areas/sandbox/docs/lab.md")
	}
}

// withPlane skips the test where a run would build a control plane, which takes minutes.
func withPlane(t *testing.T, _ string, _ *killable) {
	t.Helper()
	builtPlane(t)
}

// withCluster starts a control plane that is not the run's own. With nodes it has the controllers that empty
// namespaces.
func withCluster(t *testing.T, bin string, k *killable) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv(planeVariable, builtPlane(t))
	t.Setenv("TARE_CACHE", filepath.Join(dir, "cache")) // logs of planes lie there
	out, code := execTare(t, bin, dir, "plane", "up", "--name", "killed", "--nodes", "1")
	if code != cli.ExitPass {
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
	get := clusterReader(t, kubeconfig)
	var groups struct {
		Groups []struct {
			PreferredVersion struct{ GroupVersion string }
		}
	}
	get("/apis", &groups)
	roots := []string{"/api/v1"}
	for _, g := range groups.Groups {
		roots = append(roots, "/apis/"+g.PreferredVersion.GroupVersion)
	}
	for _, root := range roots {
		var found struct {
			Resources []struct {
				Name  string
				Verbs []string
			}
		}
		get(root, &found)
		for _, r := range found.Resources {
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "get") ||
				slices.Contains([]string{"events", "leases", "componentstatuses"}, r.Name) {
				continue
			}
			var list struct {
				Items []struct {
					Metadata struct {
						Namespace, Name, UID string
						Labels               map[string]string
					}
				}
			}
			get(root+"/"+r.Name, &list)
			for _, o := range list.Items {
				m := o.Metadata
				out = append(out, fmt.Sprintf("object %s/%s %s/%s %s, labels %v", root, r.Name, m.Namespace, m.Name, m.UID,
					m.Labels))
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("the cluster of %s has no object", kubeconfig)
	}
	slices.Sort(out)
	return out
}

// clusterReader returns a function that decodes what the server of a kubeconfig answers to a GET request.
func clusterReader(t *testing.T, kubeconfig string) func(path string, into any) {
	t.Helper()
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string
				CA     string `yaml:"certificate-authority-data"`
			}
		}
		Users []struct{ User struct{ Token string } }
	}
	text, err := os.ReadFile(kubeconfig)
	if err == nil {
		err = yaml.Unmarshal(text, &config)
	}
	if err != nil || len(config.Clusters) != 1 || len(config.Users) != 1 {
		t.Fatalf("%s: %v, %d clusters, %d users", kubeconfig, err, len(config.Clusters), len(config.Users))
	}
	ca, err := base64.StdEncoding.DecodeString(config.Clusters[0].Cluster.CA)
	trusted := x509.NewCertPool()
	if err != nil || !trusted.AppendCertsFromPEM(ca) {
		t.Fatalf("%s has no certificate of its server: %v", kubeconfig, err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	t.Cleanup(client.CloseIdleConnections)
	return func(path string, into any) {
		t.Helper()
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, config.Clusters[0].Cluster.Server+path,
			http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+config.Users[0].User.Token)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close() //nolint:errcheck // it was only read
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: status %d, %v", path, answer.StatusCode, err)
		}
	}
}
