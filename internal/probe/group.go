package probe

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// GroupOf returns the control groups of a process as directories for Cgroup.Paths: one in v2; those of cpu, cpuacct and
// memory in v1. It leaves out the root group, which holds the whole host, every group that holds tare itself, since
// that includes the generator, and groups outside what is mounted here. The result may be empty. The error wraps
// ErrGone when the process has ended.
func GroupOf(root fs.FS, pid int) ([]string, error) {
	fsys := rootFS(root)
	text := readText(fsys, "proc/"+strconv.Itoa(pid)+"/cgroup")
	if text == "" {
		return nil, fmt.Errorf("control group of process %d: %w", pid, ErrGone)
	}
	mounts := groupMounts(readText(fsys, "proc/self/mountinfo"))
	ours := groupDirs(readText(fsys, "proc/self/cgroup"), mounts)
	var dirs []string
	for _, d := range groupDirs(text, mounts) {
		if holds := func(o string) bool { return o == d || strings.HasPrefix(o, d+"/") }; slices.ContainsFunc(ours, holds) {
			continue
		}
		if info, err := fs.Stat(fsys, strings.TrimPrefix(d, "/")); err == nil && info.IsDir() && !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	return dirs, nil
}

// A groupMount is a mounted hierarchy of control groups.
type groupMount struct {
	controller string // "" for v2, else one of v1's
	dir        string // where it is mounted
	top        string // the group that is visible at dir
}

// groupMounts reads proc_pid_mountinfo(5): "ID parent major:minor root dir options … - type source super-options".
func groupMounts(text string) []groupMount {
	const top, dir, least = 3, 4, 6
	var list []groupMount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if !ok || len(b) < least || len(a) < 3 {
			continue
		}
		switch a[0] {
		case "cgroup2":
			list = append(list, groupMount{"", unescape(b[dir]), unescape(b[top])})
		case "cgroup":
			for c := range strings.SplitSeq(a[2], ",") {
				if c == "cpu" || c == "cpuacct" || c == "memory" {
					list = append(list, groupMount{c, unescape(b[dir]), unescape(b[top])})
				}
			}
		}
	}
	return list
}

// groupDirs turns the lines "number:controllers:path" of proc_pid_cgroup(5) into directories, for groups below the
// mounted root only.
func groupDirs(text string, mounts []groupMount) []string {
	var dirs []string
	for line := range strings.Lines(text) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(part) != 3 || part[2] == "/" || strings.HasPrefix(part[2], "/..") {
			continue
		}
		for _, m := range mounts {
			if !slices.Contains(strings.Split(part[1], ","), m.controller) {
				continue
			}
			below, ok := part[2], true
			if m.top != "/" && !strings.HasPrefix(m.top, "/..") {
				below, ok = strings.CutPrefix(part[2], m.top)
			}
			if d := path.Join(m.dir, below); ok && (below == "" || below[0] == '/') && !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	return dirs
}

// unescape decodes mountinfo's octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
