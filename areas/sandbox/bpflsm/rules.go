package bpflsm

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"tare/areas/sandbox/policy"
)

// The bounds of rules, which enforcer.bpf.c repeats.
const (
	Slots    = 32  // sets of rules at a time
	MaxRules = 128 // of each kind
	MaxPart  = 64  // bytes before and after the wildcard of a path
	maxType  = 32  // the name of a file system and its end
)

// What file rules refuse (FMODE_READ and FMODE_WRITE). Other path rules have fmodeRead.
const (
	fmodeRead  = 1
	fmodeWrite = 2
)

// The values of the maps, as enforcer.bpf.c declares them.
type (
	pathRule struct {
		Access, Exact, PrefixLength, SuffixLength uint8
		Prefix, Suffix                            [MaxPart]byte
	}
	pathRules struct {
		Count uint32
		Rules [MaxRules]pathRule
	}
	mountRule struct {
		Source pathRule
		Type   [maxType]byte
	}
	mountRules struct {
		Count uint32
		Rules [MaxRules]mountRule
	}
	addressRule struct {
		Address, Mask [16]byte
		Port          [2]byte // as in network packets
		Family        uint16
		_             uint32
	}
	addressRules struct {
		Count uint64
		Rules [MaxRules]addressRule
	}
	switches struct {
		Capabilities   uint64
		Ptrace, Umount uint32
	}
)

// rules are the rules of a slot.
type rules struct {
	files, execs pathRules
	connects     addressRules
	mounts       mountRules
	switches     switches
}

// Express returns why the programs cannot enforce a valid policy: the rule and the limit.
func Express(p policy.Policy) error {
	_, err := compile(p)
	return err
}

// SetRules makes the policy the rules of a slot; the zero Policy refuses nothing. It changes nothing if the programs
// cannot enforce the policy. The rules of a slot with confined processes change one kind after the other.
func (p *Programs) SetRules(slot uint32, pol policy.Policy) error {
	if err := checkSlot(slot); err != nil {
		return err
	}
	r, err := compile(pol)
	if err != nil {
		return err
	}
	for _, m := range []struct {
		name  string
		value any
	}{
		{filesMap, &r.files},
		{execsMap, &r.execs},
		{connectsMap, &r.connects},
		{mountsMap, &r.mounts},
		{switchesMap, &r.switches},
	} {
		if err := p.collection.Maps[m.name].Update(slot, m.value, ebpf.UpdateAny); err != nil {
			return fmt.Errorf("write the rules of slot %d to the BPF map %s: %w", slot, m.name, err)
		}
	}
	return nil
}

func checkSlot(slot uint32) error {
	if slot >= Slots {
		return fmt.Errorf("bpf has %d sets of rules, 0 to %d: there is no set %d; measure fewer treatments that use bpf",
			Slots, Slots-1, slot)
	}
	return nil
}

func compile(p policy.Policy) (*rules, error) {
	for _, kind := range []struct {
		name string
		n    int
	}{{"files", len(p.Files)}, {"execs", len(p.Execs)}, {"connects", len(p.Connects)}, {"mounts", len(p.Mounts)}} {
		if kind.n > MaxRules {
			return nil, fmt.Errorf("%s: bpf takes at most %d rules of a kind, not %d", kind.name, MaxRules, kind.n)
		}
	}
	var r rules
	for i, f := range p.Files {
		if err := r.files.add(f.Path, accessOf(f)); err != nil {
			return nil, fmt.Errorf("files[%d]: %w", i, err)
		}
	}
	for i, path := range p.Execs {
		if err := r.execs.add(path, fmodeRead); err != nil {
			return nil, fmt.Errorf("execs[%d]: %w", i, err)
		}
	}
	for i, a := range p.Connects {
		if err := r.connects.add(a); err != nil {
			return nil, fmt.Errorf("connects[%d]: %w", i, err)
		}
	}
	for i, m := range p.Mounts {
		if err := r.mounts.add(m); err != nil {
			return nil, fmt.Errorf("mounts[%d]: %w", i, err)
		}
	}
	return &r, r.switches.set(p)
}

func accessOf(f policy.File) (access uint8) {
	if slices.Contains(f.Access, policy.Read) {
		access |= fmodeRead
	}
	if slices.Contains(f.Access, policy.Write) {
		access |= fmodeWrite
	}
	return access
}

func (l *pathRules) add(path policy.Path, access uint8) error {
	r, err := compilePath(path)
	if err != nil {
		return err
	}
	r.Access = access
	l.Rules[l.Count] = r
	l.Count++
	return nil
}

func compilePath(path policy.Path) (pathRule, error) {
	var r pathRule
	prefix, suffix, exact := path.Parts()
	for _, part := range []struct{ text, where string }{{prefix, "before"}, {suffix, "after"}} {
		if len(part.text) > MaxPart {
			return r, fmt.Errorf("%q: bpf compares at most %d bytes %s %s, not %d", string(path), MaxPart, part.where,
				policy.Wildcard, len(part.text))
		}
	}
	r.PrefixLength, r.SuffixLength = uint8(copy(r.Prefix[:], prefix)), uint8(copy(r.Suffix[:], suffix))
	if exact {
		r.Exact = 1
	}
	return r, nil
}

// add adds an address. An IPv6 prefix of mapped IPv4 addresses is an IPv4 prefix, since the kernel connects by IPv4.
func (l *addressRules) add(a policy.Address) error {
	prefix, port, err := a.Parse()
	if err != nil {
		return err
	}
	addr, bits := prefix.Addr(), prefix.Bits()
	if addr.Is4In6() && bits >= 96 {
		addr, bits = addr.Unmap(), bits-96
	}
	r := addressRule{Family: unix.AF_INET6, Port: [2]byte{byte(port >> 8), byte(port)}}
	if addr.Is4() {
		r.Family = unix.AF_INET
	}
	copy(r.Address[:], addr.AsSlice())
	for i := range bits {
		r.Mask[i/8] |= 0x80 >> (i % 8)
	}
	l.Rules[l.Count] = r
	l.Count++
	return nil
}

func (l *mountRules) add(m policy.Mount) error {
	source := m.Source
	if source == "" {
		source = policy.Wildcard
	}
	if len(m.Type) >= maxType {
		return fmt.Errorf("type %q: bpf compares at most %d bytes, not %d", m.Type, maxType-1, len(m.Type))
	}
	r, err := compilePath(source)
	if err != nil {
		return fmt.Errorf("source %w", err)
	}
	rule := mountRule{Source: r}
	copy(rule.Type[:], m.Type)
	l.Rules[l.Count] = rule
	l.Count++
	return nil
}

func (s *switches) set(p policy.Policy) error {
	for i, name := range p.Capabilities {
		n, err := policy.CapabilityNumber(name)
		if err != nil {
			return fmt.Errorf("capabilities[%d]: %w", i, err)
		}
		s.Capabilities |= 1 << n
	}
	if p.Ptrace {
		s.Ptrace = 1
	}
	if p.Umount {
		s.Umount = 1
	}
	return nil
}
