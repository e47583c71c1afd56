package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Kind is a kind of acts.
type Kind int

// The kinds.
const (
	OpenFile Kind = iota
	Execute
	Connect
	UseCapability
	MountIt
	Unmount
	Trace
)

// An Act is what a process did, as an enforcer reports it.
type Act struct {
	Kind    Kind
	Path    string   // of a file or program, or the source of a mount; empty: the kernel could not write it out
	Access  []Access // of opening a file
	Address netip.AddrPort
	Name    string // a capability, or the type of a mount
}

// String describes the act such as "open /etc/shadow (read)".
func (a Act) String() string {
	path := a.Path
	if path == "" {
		path = "a path that the kernel cannot write out"
	}
	switch a.Kind {
	case OpenFile:
		var how []string
		for _, x := range a.Access {
			how = append(how, string(x))
		}
		return fmt.Sprintf("open %s (%s)", path, strings.Join(how, ", "))
	case Execute:
		return "execute " + path
	case Connect:
		return "connect to " + a.Address.String()
	case UseCapability:
		return "use the capability " + a.Name
	case MountIt:
		return fmt.Sprintf("mount %s of type %s", a.Path, a.Name)
	case Unmount:
		return "unmount"
	case Trace:
	}
	return "trace a process"
}

// Same reports whether two acts are the same.
func (a Act) Same(b Act) bool {
	return slices.Equal(a.Access, b.Access) && a.Kind == b.Kind && a.Path == b.Path && a.Address == b.Address &&
		a.Name == b.Name
}

// Rule names the first rule of the policy that refuses the act, such as "files[2]"; it is empty if none does.
func (p Policy) Rule(a Act) string {
	kind, i := "", -1
	switch a.Kind {
	case OpenFile:
		kind, i = "files", slices.IndexFunc(p.Files, func(f File) bool {
			return f.Path.Matches(a.Path) &&
				slices.ContainsFunc(f.Access, func(x Access) bool { return slices.Contains(a.Access, x) })
		})
	case Execute:
		kind, i = "execs", slices.IndexFunc(p.Execs, func(e Path) bool { return e.Matches(a.Path) })
	case Connect:
		kind, i = "connects", slices.IndexFunc(p.Connects, func(c Address) bool { return c.contains(a.Address) })
	case UseCapability:
		kind, i = "capabilities", slices.Index(p.Capabilities, a.Name)
	case MountIt:
		kind, i = "mounts", slices.IndexFunc(p.Mounts, func(m Mount) bool {
			return (m.Source == "" || m.Source.Matches(a.Path)) && (m.Type == "" || m.Type == a.Name)
		})
	case Unmount:
		if p.Umount {
			return "umount"
		}
	case Trace:
		if p.Ptrace {
			return "ptrace"
		}
	}
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("%s[%d]", kind, i)
}

// contains reports whether a socket that connects to to meets the address. One that maps IPv4 is IPv4.
func (a Address) contains(to netip.AddrPort) bool {
	prefix, port, err := a.Parse()
	if err != nil {
		return false
	}
	const mapped = 96
	if prefix.Addr().Is4In6() && prefix.Bits() >= mapped {
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mapped)
	}
	return prefix.Contains(to.Addr().Unmap()) && (port == 0 || port == to.Port())
}
