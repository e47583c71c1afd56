package sandbox

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"

	"tare/areas/sandbox/policy"
	"tare/areas/sandbox/workload"
)

// Paths of rules share at most this many components with the paths that workloads use: the folder for temporary files
// and the run's own. What follows differs from worker to worker.
const maxMatch = 2

// model returns what the policy must refuse, for the enforcers that have rules on paths, addresses and capabilities.
func (p Policy) model() policy.Policy {
	var m policy.Policy
	switch p.Mode {
	case RuntimeDefault:
		m = policy.RuntimeDefault()
	case EnhanceProtect:
		m = policy.RuntimeDefault()
		for _, r := range policy.EnhanceProtect() {
			m = m.And(r.Policy)
		}
	case AlwaysAllow, Unconfined:
	}
	if p.Own != nil {
		m = m.And(p.Own.Policy)
	}
	return m.And(p.furtherRules())
}

// furtherRules returns the rules that the treatment adds: as many of each kind on files, programs, addresses and
// mounts, none of which a workload meets.
func (p Policy) furtherRules() (m policy.Policy) {
	for i := range p.Rules {
		path := policy.Path(rulePath(p, i))
		m.Files = append(m.Files, policy.File{Path: path, Access: []policy.Access{policy.Read, policy.Write}})
		m.Execs = append(m.Execs, path)
		// 198.18.0.0/15 is reserved for benchmarks (RFC 2544)
		m.Connects = append(m.Connects, policy.Address(netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}).String()))
		m.Mounts = append(m.Mounts, policy.Mount{Type: ruleType(i)})
	}
	return m
}

// ruleType returns a type of file systems that does not exist.
func ruleType(i int) string { return fmt.Sprintf("tare%05d", i) }

func isRuleType(name string) bool {
	var i int
	n, err := fmt.Sscanf(name, "tare%05d", &i)
	return n == 1 && err == nil && i >= 0 && name == ruleType(i)
}

// rulePath returns a path that no workload uses, and that shares the treatment's number of components with those that
// they use.
func rulePath(p Policy, i int) string {
	run := filepath.Dir(p.Dir)
	shared := map[int]string{0: "/", 1: filepath.Dir(run), maxMatch: run}[p.Match]
	return filepath.Join(shared, fmt.Sprintf("tare-rule%05d", i))
}

// provable are the paths that a policy may refuse to read and that exist on each host.
var provable = []string{"/proc/kcore", "/proc/partitions", "/proc/self/mountinfo", "/proc/self/mounts"}

// proveFiles proves the rules on files that exist on each host, those on files that the user's policy names, and the
// one on unmounting.
func (x *proof) proveFiles(m policy.Policy, errno syscall.Errno) {
	for _, path := range provable {
		if refusesRead(m, path) {
			x.wantRefused(errno, tryOpen, path)
		}
	}
	for _, f := range m.Files { // a file of the user's policy
		if _, _, exact := f.Path.Parts(); exact && isFile(string(f.Path)) && refusesRead(m, string(f.Path)) {
			x.wantRefused(errno, tryOpen, string(f.Path))
		}
	}
	if m.Umount {
		x.wantDenied(workload.TryUmount)
	}
}

// proveMounts proves the rules on mounts of types that no kernel has: trying another could mount it. An enforcer that
// looks the type up first cannot be asked so.
func (x *proof) proveMounts(m policy.Policy, errno syscall.Errno) {
	for _, r := range m.Mounts {
		switch {
		case r.Source == "" && r.Type == "":
			x.wantRefused(errno, workload.TryMount, ruleType(0))
		case r.Source == "" && isRuleType(r.Type):
			x.wantRefused(errno, workload.TryMount, r.Type)
		}
	}
}

// proveConnects proves the rules on single IPv4 addresses: a datagram socket that connects sends nothing.
func (x *proof) proveConnects(m policy.Policy, errno syscall.Errno) {
	for _, c := range m.Connects {
		prefix, port, err := c.Parse()
		if err == nil && prefix.Addr().Is4() && prefix.IsSingleIP() {
			x.wantRefused(errno, workload.TryDatagram, netip.AddrPortFrom(prefix.Addr(), max(port, 1)).String())
		}
	}
}

// refusesRead reports whether a file must not be opened for reading. /proc/self is the process's own folder there.
func refusesRead(m policy.Policy, path string) bool {
	if rest, ok := cutSelf(path); ok {
		path = "/proc/1/" + rest
	}
	for _, f := range m.Files {
		for _, a := range f.Access {
			if a == policy.Read && f.Path.Matches(path) {
				return true
			}
		}
	}
	return false
}

func cutSelf(path string) (string, bool) {
	const self = "/proc/self/"
	if len(path) > len(self) && path[:len(self)] == self {
		return path[len(self):], true
	}
	return "", false
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
