package apparmor

import (
	"fmt"
	"slices"
	"strings"

	"tare/areas/sandbox/policy"
)

// head begins a profile that allows everything that AppArmor mediates with this ABI, but changing profiles, which would
// end the confinement. "file" includes executing programs, which inherit the profile. An ABI later than 3.0 would also
// mediate user namespaces, message queues and io_uring, about which no policy has rules.
const head = `abi <abi/3.0>,
profile "%s" flags=(attach_disconnected, mediate_deleted) {
  file,
  capability,
  network,
  mount,
  umount,
  pivot_root,
  signal,
  unix,
  dbus,
`

// Profile returns the source of a profile that refuses what the policy refuses and allows everything else. What
// AppArmor cannot express is left out and listed with the reason. The name must consist of letters, digits, '.', '_'
// and '-'.
//
// For policy.RuntimeDefault the profile refuses what containerd's template does (contrib/apparmor/template.go) but for
// this: the template also refuses writing in /proc outside of processes and of sys/kernel/shm*, writing in /sys outside
// of cgroups, pivot_root, and signals to other profiles; and it leaves the memory of a process to its rules on ptrace.
func Profile(name string, p policy.Policy) (text string, unsupported []string) {
	s := &source{}
	fmt.Fprintf(&s.text, head, name)
	for i, f := range p.Files {
		s.path("files", i, f.Path, fileMask(f.Access))
	}
	for i, e := range p.Execs {
		s.path("execs", i, e, "x")
	}
	for i, a := range p.Connects {
		s.cannot(fmt.Sprintf("connects[%d] (%s)", i, a), "AppArmor mediates networking by family and type; rules about "+
			"addresses are in no released upstream kernel")
	}
	for i, m := range p.Mounts {
		s.mount(i, m)
	}
	if p.Umount {
		s.rule("deny umount")
	}
	for _, c := range p.Capabilities {
		s.rule("deny capability " + c)
	}
	s.ptrace(name, p.Ptrace)
	s.text.WriteString("}\n")
	return s.text.String(), s.unsupported
}

// source is a profile in the making.
type source struct {
	text        strings.Builder
	unsupported []string
}

func (s *source) rule(text string) { s.text.WriteString("  " + text + ",\n") }

func (s *source) cannot(what, why string) { s.unsupported = append(s.unsupported, what+": "+why) }

// fileMask returns the permissions that ways of opening a file need: 'w' includes appending, creating and removing, and
// 'l' is making a link of that name.
func fileMask(access []policy.Access) (mask string) {
	if slices.Contains(access, policy.Read) {
		mask = "r"
	}
	if slices.Contains(access, policy.Write) {
		mask += "wl"
	}
	return mask
}

// path refuses access to a path. AppArmor's ** is the policy's, and names of folders end with a slash.
func (s *source) path(kind string, i int, p policy.Path, mask string) {
	quoted, err := quote(string(p))
	switch {
	case err != nil:
		s.cannot(fmt.Sprintf("%s[%d] (%q)", kind, i, string(p)), err.Error())
	case strings.HasSuffix(string(p), "/"), strings.HasSuffix(string(p), policy.Wildcard), mask == "x":
		s.rule(fmt.Sprintf(`deny "%s" %s`, quoted, mask))
	default:
		s.rule(fmt.Sprintf(`deny "%s{,/}" %s`, quoted, mask))
	}
}

// mount refuses a kind of mounting.
func (s *source) mount(i int, m policy.Mount) {
	rule := "deny mount"
	if m.Type != "" {
		if strings.Trim(strings.ToLower(m.Type), "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
			s.cannot(fmt.Sprintf("mounts[%d]", i), fmt.Sprintf("type %q is not the name of a file system", m.Type))
			return
		}
		rule += " fstype=" + m.Type
	}
	if m.Source != "" {
		quoted, err := quote(string(m.Source))
		if err != nil {
			s.cannot(fmt.Sprintf("mounts[%d] (source %q)", i, string(m.Source)), err.Error())
			return
		}
		rule += ` "` + quoted + `"`
	}
	s.rule(rule)
}

// ptrace allows or refuses tracing and reading other processes. As in containerd's profile, processes of one profile
// are not others to each other. Being traced needs the tracer's right.
func (s *source) ptrace(name string, refused bool) {
	if !refused {
		s.rule("ptrace")
		return
	}
	s.rule("ptrace (tracedby, readby)")
	s.rule(fmt.Sprintf(`ptrace (trace, read) peer="%s"`, name))
}

// quote returns a path for double quotes, in which only ** is a wildcard.
func quote(path string) (string, error) {
	for _, r := range path {
		if r < ' ' || r == 0x7f {
			return "", fmt.Errorf("the control character %q cannot be written in a profile", r)
		}
	}
	if strings.ContainsAny(path, `"\?[]{}^`) {
		return "", fmt.Errorf(`it has one of "\?[]{}^, which mean something else in a profile`)
	}
	if strings.Contains(strings.ReplaceAll(path, policy.Wildcard, ""), "*") {
		return "", fmt.Errorf("the only wildcard is %s", policy.Wildcard)
	}
	return path, nil
}
