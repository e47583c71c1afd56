package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"tare/internal/metric"
)

// ErrNoJVM means that a process has no readable performance data of a HotSpot JVM: it is no JVM, it was started with
// -XX:-UsePerfData or -XX:+PerfDisableSharedMem, or this user may not read the file.
var ErrNoJVM = errors.New("no performance data of a JVM")

// JVM reads the performance data that a HotSpot JVM keeps in /tmp/hsperfdata_USER/PID for jstat. Inside a container it
// uses the process's own root and its pid there. Reading costs the JVM nothing: it writes the file anyway.
//
// Each collector gives gc_count and gc_time with its name as the part. G1 reports the heap's use only as of its last
// collection.
type JVM struct {
	Name string // the subject
	PID  int    // as this host (or Root) numbers it
	// StartTicks guards against pid reuse: field 22 of /proc/PID/stat. 0: unguarded.
	StartTicks uint64
	Root       fs.FS // nil: this machine
}

var _ Probe = JVM{}

// Subject implements Probe.
func (j JVM) Subject() string { return j.Name }

// Read implements Probe. The error wraps ErrGone when the process has ended, and ErrNoJVM when it has no performance
// data, so any process may be tried.
func (j JVM) Read(ctx context.Context) ([]metric.Sample, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("probe %s: %w", j.Name, err)
	}
	root := rootFS(j.Root)
	at, err := j.locate(root)
	if err != nil {
		return nil, fmt.Errorf("probe %s: process %d: %w", j.Name, j.PID, err)
	}
	out := samples{subject: j.Name}
	if err := at.addTo(root, &out); err != nil {
		return nil, fmt.Errorf("probe %s: process %d: %w", j.Name, j.PID, err)
	}
	out.add(Started, float64(at.start))
	return out.list, nil
}

// A vm is a JVM whose performance data has been found.
type vm struct {
	pid   int
	start uint64
	file  string
}

// locate finds the file. It reads the process's maps, which is too slow for every second.
func (j JVM) locate(root fs.FS) (vm, error) {
	s, err := parseStat(readText(root, "proc/"+strconv.Itoa(j.PID)+"/stat"))
	if err != nil || (j.StartTicks != 0 && s.start != j.StartTicks) {
		return vm{}, ErrGone
	}
	file, err := findPerfFile(root, j.PID, s.start)
	return vm{pid: j.PID, start: s.start, file: file}, err
}

// addTo adds the JVM's values to out if it is still the same process.
func (v vm) addTo(root fs.FS, out *samples) error {
	if s, err := parseStat(readText(root, "proc/"+strconv.Itoa(v.pid)+"/stat")); err != nil || s.start != v.start {
		return ErrGone
	}
	p, err := readPerfData(root, v.file)
	if err != nil {
		return err
	}
	p.samples(out)
	return nil
}

// findPerfFile finds the performance data of a process: the file under its own number in its own root. It rejects a
// file left by an earlier process of that number, and one of another container that shares /tmp: the process must have
// the file mapped or, where its maps are not readable, the JVM of the file must have started with the process.
func findPerfFile(root fs.FS, pid int, start uint64) (string, error) {
	dir := "proc/" + strconv.Itoa(pid)
	inner := innerPID(root, pid)
	folders := []string{dir + "/root/tmp"}
	if inner == pid { // only who may trace the process may follow the link to its root
		folders = append(folders, "tmp")
	}
	seen, all := perfFiles(root, folders, inner)
	if all && len(seen) == 0 {
		return "", ErrNoJVM // without its maps, which take long to read
	}
	maps := readText(root, dir+"/maps")
	if maps == "" {
		for _, file := range seen {
			if startedWith(root, file, start) {
				return file, nil
			}
		}
	}
	for _, user := range mappedUsers(maps, inner) {
		for _, folder := range folders {
			file := perfFile(folder, user, inner)
			if _, err := fs.Lstat(root, file); err == nil {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("%w: none in /%s is this process's", ErrNoJVM, folders[0])
}

// perfFolder begins the names of the folders with performance data; the user follows.
const perfFolder = "hsperfdata_"

func perfFile(folder, user string, pid int) string {
	return folder + "/" + perfFolder + user + "/" + strconv.Itoa(pid)
}

// mostEntries bounds how much of a folder is read in which every user can make entries.
const mostEntries = 4096

// perfFiles returns the performance data with the number of a process that the first entries of folders have, and
// whether these are all entries.
func perfFiles(root fs.FS, folders []string, pid int) (out []string, all bool) {
	all = true
	for _, folder := range folders {
		f, err := root.Open(folder)
		if err != nil {
			continue
		}
		var entries []fs.DirEntry
		if d, ok := f.(fs.ReadDirFile); ok {
			entries, _ = d.ReadDir(mostEntries)
		}
		_ = f.Close() // it was only read
		all = all && len(entries) < mostEntries
		for _, e := range entries {
			user, is := strings.CutPrefix(e.Name(), perfFolder)
			if !is {
				continue
			}
			if _, err := fs.Lstat(root, perfFile(folder, user, pid)); err == nil {
				out = append(out, perfFile(folder, user, pid))
			}
		}
	}
	return out, all
}

// mappedUsers returns the users in the paths of the performance data that a process has mapped (proc_pid_maps(5): the
// path is the last field; " (deleted)" follows that of a deleted file).
func mappedUsers(maps string, pid int) (out []string) {
	for line := range strings.Lines(maps) {
		folder, ok := strings.CutSuffix(strings.TrimSuffix(line, "\n"), "/"+strconv.Itoa(pid))
		if user, is := strings.CutPrefix(path.Base(folder), perfFolder); ok && is {
			out = append(out, user)
		}
	}
	return out
}

// innerPID returns the number of a process in its innermost pid namespace: the last of NSpid (proc_pid_status(5)).
func innerPID(root fs.FS, pid int) int {
	for line := range strings.Lines(readText(root, "proc/"+strconv.Itoa(pid)+"/status")) {
		list, ok := strings.CutPrefix(line, "NSpid:")
		if f := strings.Fields(list); ok && len(f) > 0 {
			if n, err := strconv.Atoi(f[len(f)-1]); err == nil && n > 0 {
				return n
			}
		}
	}
	return pid
}

// startedWith reports whether the file's JVM began when the process was started. The JVM gives wall-clock time; the
// process's start is boot time, in whole seconds, plus ticks. A start script becomes a JVM by exec(2) somewhat later.
func startedWith(root fs.FS, file string, start uint64) bool {
	const inaccuracy, script = 5, 60 // seconds; of btime one, the rest for a clock that is being set
	p, err := readPerfData(root, file)
	begun, ok := p.count("sun.rt.createVmBeginTime") // ms since the epoch
	boot, known := parseKeyed(readText(root, "proc/stat"))["btime"]
	if err != nil || !ok || !known {
		return false
	}
	after := begun/1e3 - boot - float64(start)*tick
	return after >= -inaccuracy && after <= script
}

// readPerfData reads a regular file only: the process's own file system decides what is there, and a pipe would block.
func readPerfData(root fs.FS, file string) (perfData, error) {
	if info, err := fs.Lstat(root, file); err != nil || !info.Mode().IsRegular() {
		return perfData{}, fmt.Errorf("%w: /%s is not a readable file", ErrNoJVM, file)
	}
	f, err := root.Open(file)
	if err != nil {
		return perfData{}, fmt.Errorf("%w: %w", ErrNoJVM, err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, hsperfMax))
	if err != nil {
		return perfData{}, fmt.Errorf("read performance data: %w", err)
	}
	return parsePerfData(b)
}
