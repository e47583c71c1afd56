package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// hierarchy is a directory in which tare may create groups with a CPU limit.
type hierarchy struct {
	dir  string
	home string // this process's own group
	v2   bool
}

// planHierarchy looks below root, usually "/", for such a directory: first in the unified hierarchy, then in the v1 cpu
// controller.
func planHierarchy(root string) (hierarchy, error) {
	mounts, err := files.Kernel(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return hierarchy{}, fmt.Errorf("%w: %w", ErrNoCgroup, err)
	}
	member, err := files.Kernel(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return hierarchy{}, fmt.Errorf("%w: %w", ErrNoCgroup, err)
	}
	own := membership(string(member))
	v2, v2err := planV2(root, string(mounts), own)
	if v2err == nil {
		return v2, nil
	}
	v1, v1err := planV1(root, string(mounts), own)
	if v1err == nil {
		return v1, nil
	}
	return hierarchy{}, fmt.Errorf("%w: %w; %w", ErrNoCgroup, v2err, v1err)
}

// planV1 returns this process's own group of the cpu controller: a child group can only be stricter than it.
func planV1(root, mountinfo string, own map[string]string) (hierarchy, error) {
	m, ok := findMount(mountinfo, "cgroup", "cpu")
	if !ok {
		return hierarchy{}, errors.New("v1: the cpu controller is not mounted")
	}
	dir := filepath.Join(root, m.dirOf(own["cpu"]))
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return hierarchy{}, fmt.Errorf("v1: %s is not writable: %w", dir, err)
	}
	return hierarchy{dir: dir, home: dir}, nil
}

// planV2 returns the nearest ancestor that can delegate the cpu controller to a child group. The kernel allows
// processes and controlled children together in the root group only, so this process's own group is usually not
// eligible.
func planV2(root, mountinfo string, own map[string]string) (hierarchy, error) {
	m, ok := findMount(mountinfo, "cgroup2", "")
	if !ok {
		return hierarchy{}, errors.New("v2: not mounted")
	}
	top, home := filepath.Join(root, m.point), filepath.Join(root, m.dirOf(own[""]))
	for dir := home; ; dir = filepath.Dir(dir) {
		err := canDelegate(dir)
		if err == nil {
			return hierarchy{dir: dir, home: home, v2: true}, nil
		}
		if dir == top || len(dir) < len(top) {
			return hierarchy{}, fmt.Errorf("v2: %w", err)
		}
	}
}

func canDelegate(dir string) error {
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return fmt.Errorf("%s is not writable: %w", dir, err)
	}
	if hasWord(filepath.Join(dir, "cgroup.subtree_control"), "cpu") {
		return nil
	}
	if !hasWord(filepath.Join(dir, "cgroup.controllers"), "cpu") {
		return fmt.Errorf("%s has no cpu controller", dir)
	}
	// cgroup.type exists in every group but the real root, which alone may keep processes of its own.
	if _, err := os.Stat(filepath.Join(dir, "cgroup.type")); err == nil {
		procs, err := files.Kernel(filepath.Join(dir, "cgroup.procs"))
		if err != nil || len(procs) > 0 {
			return fmt.Errorf("%s contains processes, so it cannot delegate the cpu controller", dir)
		}
	}
	return nil
}

// delegate enables the cpu controller for the groups below. It is not reverted: others may rely on it by then.
func (h hierarchy) delegate() error {
	control := filepath.Join(h.dir, "cgroup.subtree_control")
	if !h.v2 || hasWord(control, "cpu") {
		return nil
	}
	return files.SetKernel(control, "+cpu")
}

func hasWord(file, word string) bool {
	b, err := files.Kernel(file)
	return err == nil && slices.Contains(strings.Fields(string(b)), word)
}

// membership parses /proc/self/cgroup (cgroups(7)): controller → path; the unified hierarchy is under "".
func membership(text string) map[string]string {
	own := map[string]string{}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			own[c] = parts[2]
		}
	}
	return own
}

// mount is a mounted hierarchy: the group root is visible at point.
type mount struct{ root, point string }

// dirOf returns the directory where the group is visible. A group outside the mount (another cgroup namespace) is
// visible at the mount point.
func (m mount) dirOf(group string) string {
	rel, err := filepath.Rel(m.root, group)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return m.point
	}
	return filepath.Join(m.point, rel)
}

// findMount finds a mount by type and, if given, by one of its super options, in proc_pid_mountinfo(5) format: id
// parent major:minor root point options [tags] - type source super-options.
func findMount(mountinfo, fstype, option string) (mount, bool) {
	for line := range strings.Lines(mountinfo) {
		left, right, ok := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 3 || r[0] != fstype {
			continue
		}
		if option == "" || slices.Contains(strings.Split(r[2], ","), option) {
			return mount{root: unescape(l[3]), point: unescape(l[4])}, true
		}
	}
	return mount{}, false
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
