package selinux

import (
	"fmt"
	"slices"
	"strings"

	"tare/areas/sandbox/policy"
)

// refusals are permissions, by class, that a domain does not get.
type refusals struct {
	everywhere  map[string][]string
	ofProcesses map[string][]string
	ofLabels    map[label]map[string][]string
}

// A label is a part of a file system that the kernel makes itself: only there labels follow from paths.
type label struct {
	filesystem string
	path       string // the kernel compares it with the beginning of a path
}

// mounted are the file systems with labels by path, by where they are mounted.
var mounted = []struct{ at, filesystem string }{
	{"/sys/kernel/security", "securityfs"}, {"/proc", "proc"}, {"/sys", "sysfs"},
}

// refusals translates a domain's policy.
func (s *source) refusals(d Domain) refusals {
	r := refusals{map[string][]string{"fifo_file": {"create"}}, map[string][]string{}, map[label]map[string][]string{}}
	for i, f := range d.Policy.Files {
		s.refuseFile(d, r, i, f)
	}
	for i, e := range d.Policy.Execs {
		s.cannot(d, fmt.Sprintf("execs[%d] (%s)", i, e), onlyLabels)
	}
	for i, a := range d.Policy.Connects {
		s.cannot(d, fmt.Sprintf("connects[%d] (%s)", i, a), "SELinux labels ports; it sees a peer's address only where "+
			"iptables or NetLabel labels packets")
	}
	for i, m := range d.Policy.Mounts {
		if m != (policy.Mount{}) {
			s.cannot(d, fmt.Sprintf("mounts[%d]", i), "SELinux sees the label of what is mounted, not its type or source")
			continue
		}
		r.everywhere["filesystem"] = append(r.everywhere["filesystem"], "mount", "remount")
		r.everywhere["dir"] = append(r.everywhere["dir"], "mounton")
		r.everywhere["file"] = append(r.everywhere["file"], "mounton")
	}
	if d.Policy.Umount {
		r.everywhere["filesystem"] = append(r.everywhere["filesystem"], "unmount")
	}
	r.everywhere["capability"], r.everywhere["capability2"] = d.Policy.Capabilities, d.Policy.Capabilities
	if d.Policy.Ptrace { // a process's files are labelled as the process is, so all of them become unreadable
		r.ofProcesses["process"] = []string{"ptrace"}
		r.ofProcesses["file"], r.ofProcesses["lnk_file"] = []string{"read"}, []string{"read"}
	}
	return r
}

const onlyLabels = "SELinux sees labels of files, not paths, and only file systems that the kernel makes have labels " +
	"by path"

// refuseFile refuses access to a path in a file system of the kernel's.
func (s *source) refuseFile(d Domain, r refusals, i int, f policy.File) {
	l, why := labelOf(f.Path)
	if why != "" {
		s.cannot(d, fmt.Sprintf("files[%d] (%s)", i, f.Path), why)
		return
	}
	if !slices.Contains(s.labels, l) {
		s.labels = append(s.labels, l)
	}
	of := r.ofLabels[l]
	if of == nil {
		of = map[string][]string{}
		r.ofLabels[l] = of
	}
	if slices.Contains(f.Access, policy.Read) {
		of["file"], of["dir"] = append(of["file"], "read"), append(of["dir"], "read")
		of["lnk_file"] = append(of["lnk_file"], "read")
	}
	if slices.Contains(f.Access, policy.Write) {
		of["file"] = append(of["file"], "write", "append", "create", "unlink", "link", "rename", "setattr")
		of["dir"] = append(of["dir"], "add_name", "remove_name")
	}
}

// labelOf returns the label that stands for a path, or why there is none.
func labelOf(p policy.Path) (l label, why string) {
	prefix, suffix, exact := p.Parts()
	for _, m := range mounted {
		rest, ok := strings.CutPrefix(prefix, m.at)
		if !ok || !strings.HasPrefix(rest, "/") {
			continue
		}
		switch {
		case m.filesystem == "proc" && rest == "/" && strings.HasPrefix(suffix, "/net/"):
			return label{m.filesystem, suffix}, "" // the kernel leaves the process's number out
		case m.filesystem == "proc" && !exact && rest == "/":
			return label{}, "the files of a process are labelled as the process is, all alike"
		case m.filesystem == "proc" && rest[1] >= '0' && rest[1] <= '9', strings.HasPrefix(rest, "/self/"):
			return label{}, "the files of a process are labelled as the process is, all alike"
		case suffix != "" && !exact:
			return label{}, "a label stands for the beginning of a path, not for its end"
		case strings.ContainsAny(rest, "\"\\()\n "):
			return label{}, "the path has a character that CIL cannot quote"
		}
		if rest = strings.TrimSuffix(rest, "/"); rest == "" {
			rest = "/"
		}
		return label{m.filesystem, rest}, ""
	}
	return label{}, onlyLabels
}
