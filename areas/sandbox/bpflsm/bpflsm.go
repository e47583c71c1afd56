// Package bpflsm is an enforcer made of programs for the kernel's BPF LSM. A process with a profile is confined by the
// rules of the profile's slot; all other processes are allowed everything. The programs are attached only while
// they are wanted, and nothing is pinned: the kernel detaches and frees all when the process that loaded them ends.
//
// The rules act upon open(2), execve(2), connect(2), mount(2), umount(2), the use of capabilities and ptrace(2), but
// not upon sending to an address without connecting, mounting by move_mount(2), and creating, renaming and removing
// files.
//
// "go generate" builds the programs' object from enforcer.bpf.c, with the version of clang that ClangVersion names.
package bpflsm

import (
	"bytes"
	_ "embed" // the programs
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

//go:generate clang -O2 -g -target bpf -mcpu=v3 -fdebug-compilation-dir=. -Wall -Wextra -Werror -c enforcer.bpf.c -o enforcer.bpf.o
//go:generate llvm-strip -g enforcer.bpf.o

// ClangVersion is the major version of the clang that built the programs' object.
const ClangVersion = "14"

//go:embed enforcer.bpf.o
var object []byte

// Key says by what the programs recognise a confined process.
type Key uint32

// The keys.
const (
	ByMountNamespace Key = iota
	ByCgroup             // the process's own control group (version 2), not those above it
)

// Options choose how the programs are loaded.
type Options struct {
	Key Key
	// Observe makes the programs allow and report what the rules would refuse.
	Observe bool
}

// A Hook is a decision of the kernel on which a program of ours is asked, by the kernel's name.
type Hook string

// The hooks, in the order of the programs' counters.
const (
	FileOpen     Hook = "file_open"
	Exec         Hook = "bprm_check_security"
	Connect      Hook = "socket_connect"
	Capable      Hook = "capable"
	Mount        Hook = "sb_mount"
	Umount       Hook = "sb_umount"
	PtraceAccess Hook = "ptrace_access_check"
	PtraceTraced Hook = "ptrace_traceme"
)

var hooks = []struct {
	hook    Hook
	program string
}{
	{FileOpen, "tare_file_open"},
	{Exec, "tare_exec"},
	{Connect, "tare_connect"},
	{Capable, "tare_capable"},
	{Mount, "tare_mount"},
	{Umount, "tare_umount"},
	{PtraceAccess, "tare_ptrace"},
	{PtraceTraced, "tare_traceme"},
}

// The maps.
const (
	profilesMap = "tare_profiles"
	filesMap    = "tare_files"
	execsMap    = "tare_execs"
	connectsMap = "tare_connects"
	mountsMap   = "tare_mounts"
	switchesMap = "tare_switches"
	refusedMap  = "tare_refused"
	eventsMap   = "tare_events"
)

// Programs are the enforcer's programs and maps in the kernel.
type Programs struct {
	key        Key
	collection *ebpf.Collection
	links      []link.Link
}

// Load loads the programs, and attaches none. It fails with the cause and the next step where the kernel has no BPF LSM
// or refuses to load programs for it.
func Load(o Options) (*Programs, error) {
	if o.Key > ByCgroup {
		return nil, fmt.Errorf("load the BPF programs: there is no key %d", o.Key)
	}
	if err := requireLSM(); err != nil {
		return nil, err
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, noMemlock(err)
	}
	spec, err := loadSpec()
	if err != nil {
		return nil, err
	}
	if err := spec.Variables["by_cgroup"].Set(uint32(o.Key)); err != nil {
		return nil, fmt.Errorf("set the key of the BPF programs: %w", err)
	}
	if err := prepareEvents(spec, o.Observe); err != nil {
		return nil, err
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, noPrograms(err)
	}
	return &Programs{key: o.Key, collection: c}, nil
}

func loadSpec() (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("read the BPF programs that are part of tare: %w", err)
	}
	return spec, nil
}

// Attach makes the kernel run the programs. It does nothing if they are attached.
func (p *Programs) Attach() error {
	if p.links != nil {
		return nil
	}
	for _, h := range hooks {
		l, err := link.AttachLSM(link.LSMOptions{Program: p.collection.Programs[h.program]})
		if err != nil {
			return errors.Join(noAttachment(h.hook, err), p.Detach())
		}
		p.links = append(p.links, l)
	}
	return nil
}

// Detach makes the kernel run the programs no longer. Rules and profiles remain. It takes about a second: for each hook
// the kernel waits until no task can be in the program any more, one hook after the other.
func (p *Programs) Detach() error {
	err := closeAll(p.links)
	p.links = nil
	return err
}

func closeAll(links []link.Link) error {
	var errs []error
	for _, l := range links {
		if err := l.Close(); err != nil {
			errs = append(errs, fmt.Errorf("detach a BPF program: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Close detaches the programs and frees them.
func (p *Programs) Close() error {
	err := p.Detach()
	p.collection.Close()
	return err
}
