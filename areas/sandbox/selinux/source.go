package selinux

import (
	"fmt"
	"slices"
	"strings"

	"tare/areas/sandbox/policy"
)

// A Domain confines processes: they may do everything but what its policy refuses, and but making named pipes, which no
// workload does: so the refusal of one thing can be proved under an empty policy too.
type Domain struct {
	Name   string // of letters, digits and '_'
	Policy policy.Policy
}

// Names in the policy. All files are of one type and all processes outside of domains of another.
const (
	user       = "tare_u"
	role       = "tare_r"
	systemType = "tare_system_t"
	fileType   = "tare_file_t"
)

func (d Domain) typeName() string { return "tare_" + d.Name + "_t" }

// class is a kind of objects with the permissions that the policy decides about. The kernel has more of both
// (security/selinux/include/classmap.h): it allows what a policy does not define, by "handleunknown".
type class struct {
	name        string
	permissions []string
}

// classes returns the classes in the order of the policy. Some are there since every policy must have them.
func classes() []class {
	reading, writing := []string{"read"}, []string{"write", "append", "create", "unlink", "link", "rename", "setattr"}
	return []class{
		{"security", []string{"load_policy", "setenforce"}},
		{"process", []string{"transition", "dyntransition", "setexec", "ptrace"}},
		{"process2", []string{"nnp_transition", "nosuid_transition"}},
		{"filesystem", []string{"mount", "remount", "unmount", "associate"}},
		{"file", slices.Concat(reading, writing, []string{"execute", "execute_no_trans", "entrypoint", "mounton"})},
		{"dir", []string{"read", "add_name", "remove_name", "mounton"}},
		{"lnk_file", []string{"read"}},
		{"fifo_file", []string{"create"}},
		{"capability", policy.CapabilityNames()[:32]},
		{"capability2", policy.CapabilityNames()[32:]},
	}
}

// initialContexts are the objects that the kernel labels itself, in its order (initial_sid_to_string.h). The first and
// the seventh are processes.
const initialContexts = "kernel security unlabeled fs file file_labels init any_socket port netif netmsg node " +
	"igmp_packet icmp_socket tcp_socket sysctl_modprobe sysctl sysctl_fs sysctl_kernel sysctl_net sysctl_net_unix " +
	"sysctl_vm sysctl_dev kmod policy scmp_packet devnull"

// Source returns the text of a whole policy, in CIL, with these domains. What SELinux cannot express is left out and
// listed by domain with the reason.
func Source(domains []Domain) (text string, unsupported map[string][]string) {
	s := &source{unsupported: map[string][]string{}}
	rules := make([]refusals, len(domains))
	for i, d := range domains {
		rules[i] = s.refusals(d)
	}
	s.declare(domains)
	s.label()
	for _, c := range classes() {
		s.allow(systemType, "tare_any", c.name, c.permissions)
	}
	s.allow("tare_any", "tare_any", "filesystem", []string{"associate"}) // files of any type in any file system
	for i, d := range domains {
		s.domain(d, rules[i])
	}
	return s.text.String(), s.unsupported
}

// source is a policy in the making.
type source struct {
	text        strings.Builder
	labels      []label // of the paths that rules name
	unsupported map[string][]string
}

func (s *source) line(format string, args ...any) { fmt.Fprintf(&s.text, format+"\n", args...) }

func (s *source) cannot(d Domain, what, why string) {
	s.unsupported[d.Name] = append(s.unsupported[d.Name], what+": "+why)
}

func objectContext(kind, typeName string) string {
	return fmt.Sprintf("(%s %s %s ((s0) (s0)))", user, kind, typeName)
}

func (s *source) allow(from, to, class string, permissions []string) {
	if len(permissions) > 0 {
		s.line("(allow %s %s (%s (%s)))", from, to, class, strings.Join(permissions, " "))
	}
}

// declare writes classes, types and the user, who has all types in one role.
func (s *source) declare(domains []Domain) {
	// Without this capability no_new_privs forbids all transitions but to a type that is bounded by the present one.
	s.line("(handleunknown allow)\n(mls false)\n(policycap nnp_nosuid_transition)")
	var names []string
	for _, c := range classes() {
		s.line("(class %s (%s))", c.name, strings.Join(c.permissions, " "))
		names = append(names, c.name)
	}
	s.line("(classorder (%s))\n(sensitivity s0)\n(sensitivityorder (s0))", strings.Join(names, " "))
	s.line("(user %s)\n(role %s)\n(role object_r)\n(userrole %[1]s %[2]s)\n(userrole %[1]s object_r)", user, role)
	s.line("(userlevel %s (s0))\n(userrange %[1]s ((s0) (s0)))", user)
	types := []string{systemType, fileType}
	for _, d := range domains {
		types = append(types, d.typeName())
	}
	for i := range s.labels {
		types = append(types, labelType(i))
	}
	for _, t := range types {
		s.line("(type %s)\n(roletype %s %[1]s)\n(roletype object_r %[1]s)", t, role)
	}
	s.line("(typeattribute tare_any)\n(typeattributeset tare_any (%s))", strings.Join(types, " "))
}

// label gives each object a context.
func (s *source) label() {
	order := strings.Fields(initialContexts)
	for _, name := range order {
		typeName, kind := fileType, "object_r"
		if name == "kernel" || name == "init" {
			typeName, kind = systemType, role
		}
		s.line("(sid %s)\n(sidcontext %[1]s %s)", name, objectContext(kind, typeName))
	}
	s.line("(sidorder (%s))", strings.Join(order, " "))
	// The processes' own objects are of their types; so are new files of that of their folder.
	s.line("(fsuse trans tmpfs %s)", objectContext("object_r", fileType))
	for _, m := range mounted {
		root := fileType
		if i := slices.Index(s.labels, label{m.filesystem, "/"}); i >= 0 {
			root = labelType(i)
		}
		s.line("(genfscon %s / %s)", m.filesystem, objectContext("object_r", root))
	}
	for i, l := range s.labels {
		if l.path != "/" {
			s.line("(genfscon %s %q %s)", l.filesystem, l.path, objectContext("object_r", labelType(i)))
		}
	}
}

// labelType is the type of a label, by its index.
func labelType(i int) string { return fmt.Sprintf("tare_label%d_t", i) }

// domain writes what a domain may do. It may not end its confinement: change the policy, or become of another type.
func (s *source) domain(d Domain, r refusals) {
	name := d.typeName()
	for _, c := range classes() {
		if c.name == "security" {
			continue
		}
		all := without(c.permissions, r.everywhere[c.name])
		s.allow(name, name, c.name, all)
		s.allow(name, fileType, c.name, all)
		others := without(all, r.ofProcesses[c.name])
		if c.name == "process" {
			others = without(others, []string{"transition", "dyntransition"})
		}
		s.allow(name, systemType, c.name, others)
		for i, l := range s.labels {
			s.allow(name, labelType(i), c.name, without(all, r.ofLabels[l][c.name]))
		}
	}
}

func without(all, refused []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(p string) bool { return slices.Contains(refused, p) })
}
