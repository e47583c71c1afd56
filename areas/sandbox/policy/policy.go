// Package policy says what an enforcer must refuse, in terms that all enforcers share. Each enforcer translates a
// policy into its own rules, or says which part it cannot express.
package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/internal/spelling"
)

// A Policy is what must be refused; everything else is allowed. The zero Policy refuses nothing.
type Policy struct {
	Files        []File    `yaml:"files,omitempty" json:"files,omitempty"`
	Execs        []Path    `yaml:"execs,omitempty" json:"execs,omitempty"`       // programs that must not be executed
	Connects     []Address `yaml:"connects,omitempty" json:"connects,omitempty"` // where sockets must not connect to
	Mounts       []Mount   `yaml:"mounts,omitempty" json:"mounts,omitempty"`
	Umount       bool      `yaml:"umount,omitempty" json:"umount,omitempty"` // all unmounting
	Capabilities []string  `yaml:"capabilities,omitempty" json:"capabilities,omitempty"`
	Ptrace       bool      `yaml:"ptrace,omitempty" json:"ptrace,omitempty"` // tracing other processes and reading them
}

// File is a kind of access to files.
type File struct {
	Path   Path     `yaml:"path" json:"path"`
	Access []Access `yaml:"access" json:"access"` // what is refused
}

// Access is a way of opening a file.
type Access string

// The ways of opening a file.
const (
	Read  Access = "read"
	Write Access = "write" // append too
)

// A Path is a pattern of absolute paths. It may hold one "**", which stands for any characters, slashes included.
type Path string

// Wildcard is what stands for any characters in a Path.
const Wildcard = "**"

// Parts returns what a path must begin and end with. A pattern without a wildcard is a prefix that is the whole path.
func (p Path) Parts() (prefix, suffix string, exact bool) {
	prefix, suffix, found := strings.Cut(string(p), Wildcard)
	return prefix, suffix, !found
}

// Matches reports whether the pattern matches an absolute path.
func (p Path) Matches(path string) bool {
	prefix, suffix, exact := p.Parts()
	if exact {
		return path == prefix
	}
	return len(path) >= len(prefix)+len(suffix) && strings.HasPrefix(path, prefix) && strings.HasSuffix(path, suffix)
}

// An Address is an IPv4 or IPv6 address or prefix, with an optional port: "169.254.169.254", "10.0.0.0/8:22",
// "[fd00::/8]:443".
type Address string

// Parse returns the prefix and the port, 0 for any.
func (a Address) Parse() (netip.Prefix, uint16, error) {
	host, port := string(a), uint16(0)
	if rest, ok := strings.CutPrefix(host, "["); ok {
		inside, after, closed := strings.Cut(rest, "]")
		if !closed {
			return netip.Prefix{}, 0, fmt.Errorf("%q: ']' is missing", string(a))
		}
		host = inside
		if after != "" {
			if _, err := fmt.Sscanf(after+"\n", ":%d\n", &port); err != nil || port == 0 {
				return netip.Prefix{}, 0, fmt.Errorf("%q: want a port from 1 to 65535 after ']'", string(a))
			}
		}
	} else if strings.Count(host, ":") == 1 {
		before, after, _ := strings.Cut(host, ":")
		if _, err := fmt.Sscanf(after+"\n", "%d\n", &port); err != nil || port == 0 {
			return netip.Prefix{}, 0, fmt.Errorf("%q: want a port from 1 to 65535 after ':'", string(a))
		}
		host = before
	}
	if !strings.Contains(host, "/") {
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, 0, fmt.Errorf("%q is not an IP address, such as 169.254.169.254", string(a))
		}
		return netip.PrefixFrom(addr, addr.BitLen()), port, nil
	}
	prefix, err := netip.ParsePrefix(host)
	if err != nil {
		return netip.Prefix{}, 0, fmt.Errorf("%q is not an IP prefix, such as 10.0.0.0/8", string(a))
	}
	if prefix != prefix.Masked() {
		return netip.Prefix{}, 0, fmt.Errorf("%q: bits are set outside of the prefix; write %s", string(a), prefix.Masked())
	}
	return prefix, port, nil
}

// Mount is a kind of mounting.
type Mount struct {
	Source Path   `yaml:"source,omitempty" json:"source,omitempty"` // the device, as mount(2) is given it; empty: any
	Type   string `yaml:"type,omitempty" json:"type,omitempty"`     // the file system; empty: any
}

// And returns a policy that refuses what either refuses.
func (p Policy) And(q Policy) Policy {
	return Policy{
		Files: slices.Concat(p.Files, q.Files), Execs: slices.Concat(p.Execs, q.Execs),
		Connects: slices.Concat(p.Connects, q.Connects), Mounts: slices.Concat(p.Mounts, q.Mounts),
		Umount: p.Umount || q.Umount, Ptrace: p.Ptrace || q.Ptrace,
		Capabilities: slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.Capabilities, q.Capabilities)))),
	}
}

// Empty reports whether the policy refuses nothing.
func (p Policy) Empty() bool {
	return len(p.Files)+len(p.Execs)+len(p.Connects)+len(p.Mounts)+len(p.Capabilities) == 0 && !p.Umount && !p.Ptrace
}

// The bounds of a policy.
const (
	// MaxRules bounds the rules of each kind.
	MaxRules = 1000
	maxPath  = 4096 // PATH_MAX
)

// Validate returns all that is wrong with the policy, as "connects[2]: …".
func (p Policy) Validate() (wrong []string) {
	add := func(kind string, i int, err error) {
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s[%d]: %v", kind, i, err))
		}
	}
	for kind, n := range map[string]int{
		"files": len(p.Files), "execs": len(p.Execs), "connects": len(p.Connects), "mounts": len(p.Mounts),
	} {
		if n > MaxRules {
			wrong = append(wrong, fmt.Sprintf("%s: want at most %d, not %d", kind, MaxRules, n))
		}
	}
	for i, f := range p.Files {
		add("files", i, f.Path.validate())
		if len(f.Access) == 0 {
			add("files", i, fmt.Errorf("access is missing: want [%s], [%s] or both", Read, Write))
		}
		for _, a := range f.Access {
			if a != Read && a != Write {
				add("files", i, fmt.Errorf("access: want %s or %s, not %q", Read, Write, string(a)))
			}
		}
	}
	for i, e := range p.Execs {
		add("execs", i, e.validate())
	}
	for i, a := range p.Connects {
		_, _, err := a.Parse()
		add("connects", i, err)
	}
	for i, m := range p.Mounts {
		add("mounts", i, m.validate())
	}
	for i, c := range p.Capabilities {
		if _, err := CapabilityNumber(c); err != nil {
			add("capabilities", i, err)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// validate allows sources that are no paths, such as "none".
func (m Mount) validate() error {
	if strings.ContainsAny(m.Type, "*/ \x00\n\"?[]{}\\") {
		return fmt.Errorf("type: %q is not the name of a file system", m.Type)
	}
	return m.Source.validatePattern()
}

func (p Path) validate() error {
	if !strings.HasPrefix(string(p), "/") {
		return fmt.Errorf("%q is not an absolute path", string(p))
	}
	return p.validatePattern()
}

func (p Path) validatePattern() error {
	switch {
	case len(p) >= maxPath:
		return fmt.Errorf("a path of %d bytes: want fewer than %d", len(p), maxPath)
	case strings.Count(string(p), Wildcard) > 1 || strings.Contains(strings.Replace(string(p), Wildcard, "", 1), "*"):
		return fmt.Errorf("%q: want at most one ** and no other wildcard", string(p))
	case strings.ContainsAny(string(p), "\x00\n\"?[]{}\\"):
		return fmt.Errorf("%q: want no quotes, backslashes, line ends or ?[]{}", string(p))
	}
	return nil
}

// Parse reads a policy from YAML or JSON. Unknown fields are errors.
func Parse(text []byte) (Policy, error) {
	var p Policy
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil {
		if errors.Is(err, io.EOF) {
			return p, errors.New("it is empty: want files, execs, connects, mounts, umount, capabilities or ptrace")
		}
		return Policy{}, fmt.Errorf("parse it: %w", err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return Policy{}, errors.New("want one YAML document")
	}
	if wrong := p.Validate(); len(wrong) > 0 {
		return Policy{}, errors.New(strings.Join(wrong, "; "))
	}
	if p.Empty() {
		return Policy{}, errors.New("it refuses nothing: want files, execs, connects, mounts, umount, capabilities or ptrace")
	}
	return p, nil
}

// capabilities lists the names of capabilities in lower case without CAP_, by number (linux/capability.h, 6.12).
var capabilities = []string{
	"chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
	"linux_immutable", "net_bind_service", "net_broadcast", "net_admin", "net_raw", "ipc_lock", "ipc_owner", "sys_module",
	"sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct", "sys_admin", "sys_boot", "sys_nice", "sys_resource", "sys_time",
	"sys_tty_config", "mknod", "lease", "audit_write", "audit_control", "setfcap", "mac_override", "mac_admin", "syslog",
	"wake_alarm", "block_suspend", "audit_read", "perfmon", "bpf", "checkpoint_restore",
}

// CapabilityNames returns the names of all capabilities, by number.
func CapabilityNames() []string { return slices.Clone(capabilities) }

// CapabilityNumber returns the number of a capability, whose name is in lower case without CAP_.
func CapabilityNumber(name string) (int, error) {
	if i := slices.Index(capabilities, name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("there is no capability %q%s", name,
		spelling.DidYouMean(strings.TrimPrefix(strings.ToLower(name), "cap_"), capabilities))
}

// CapabilityName returns the name of a capability.
func CapabilityName(number int) string {
	if number < 0 || number >= len(capabilities) {
		return fmt.Sprint(number)
	}
	return capabilities[number]
}
