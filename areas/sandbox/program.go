package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	sec "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// filterCode is a compiled seccomp filter.
type filterCode []bpf.Instruction

// compile compiles a policy. The library knows one errno for the default action, EPERM: another one is put into the
// last instruction, which is that action.
func compile(policy *sec.Policy) (filterCode, error) {
	otherwise, p := policy.DefaultAction, *policy
	if isErrno(otherwise) {
		p.DefaultAction = sec.ActionErrno
	}
	instructions, err := p.Assemble()
	if err != nil {
		return nil, fmt.Errorf("compile the seccomp filter: %w", err)
	}
	if len(instructions) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("compile the seccomp filter: %w", errTooLong)
	}
	last, ok := instructions[len(instructions)-1].(bpf.RetConstant)
	if !ok {
		return nil, errors.New("compile the seccomp filter: it does not end with its default action")
	}
	if isErrno(otherwise) && otherwise != sec.ActionErrno {
		last.Val = uint32(otherwise)
		instructions[len(instructions)-1] = last
	}
	return instructions, nil
}

// isErrno reports whether the action refuses a call with an errno.
func isErrno(a sec.Action) bool { return a&unix.SECCOMP_RET_ACTION_FULL == sec.ActionErrno }

// permits reports whether the kernel makes the call.
func permits(a sec.Action) bool { return a == sec.ActionAllow || a == sec.ActionLog }

// observedCall is the number of no system call. A process under an observed program makes it when it is about to
// execute what is to be observed, and waits in it until there is an observer.
const observedCall = 0x3ffffff0

// observed returns the program that reports each call which p refuses to a listener, and observedCall. It refuses none
// by itself.
func (p filterCode) observed() filterCode {
	notify := bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF}
	out := filterCode{
		bpf.LoadAbsolute{Off: 0, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: observedCall, SkipTrue: 1}, notify,
	}
	for _, instruction := range p {
		if ret, ok := instruction.(bpf.RetConstant); ok && !permits(sec.Action(ret.Val)) {
			instruction = notify
		}
		out = append(out, instruction)
	}
	return out
}

// load puts the calling thread under the program. With SECCOMP_FILTER_FLAG_NEW_LISTENER this process gets a descriptor
// that is the listener.
func (p filterCode) load(flags uintptr) error {
	do, err := p.loader(flags)
	if err != nil {
		return err
	}
	return do()
}

// loader returns a function that does what load does, with nothing but the system call left to do.
func (p filterCode) loader(flags uintptr) (func() error, error) {
	raw, err := bpf.Assemble(p)
	if err != nil {
		return nil, fmt.Errorf("encode the seccomp filter: %w", err)
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return func() error {
		_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
			uintptr(unsafe.Pointer(prog))) //nolint:gosec // seccomp(2) takes a pointer
		runtime.KeepAlive(prog)
		if errno != 0 {
			return fmt.Errorf("load the seccomp filter: %w", errno)
		}
		return nil
	}, nil
}

// nativeVerdict runs the program in this process on a system call of this architecture, and returns the action.
func (p filterCode) nativeVerdict(number uint32, args [6]uint64) (sec.Action, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return 0, fmt.Errorf("seccomp on this architecture: %w", err)
	}
	return p.verdict(uint32(info.ID), number, args)
}

// verdict runs the program in this process on a system call, and returns the action.
func (p filterCode) verdict(architecture, number uint32, args [6]uint64) (sec.Action, error) {
	vm, err := bpf.NewVM(p)
	if err != nil {
		return 0, fmt.Errorf("run the seccomp filter: %w", err)
	}
	action, err := vm.Run(callData(architecture, number, args))
	if err != nil {
		return 0, fmt.Errorf("run the seccomp filter: %w", err)
	}
	return sec.Action(uint32(action)), nil
}

// callData is a struct seccomp_data as the filter reads it, a word of 32 bits at a time: the kernel's filters see
// words in the byte order of the host, and this machine reads all words big-endian.
func callData(architecture, number uint32, args [6]uint64) []byte {
	words := []uint32{number, architecture, 0, 0}
	for _, a := range args {
		words = append(words, uint32(a), uint32(a>>32))
	}
	data := make([]byte, 0, 4*len(words))
	for _, w := range words {
		data = binary.BigEndian.AppendUint32(data, w)
	}
	return data
}

// actionName names what happens to a refused call: "EPERM", or "kills the process".
func actionName(a sec.Action) string {
	switch {
	case isErrno(a):
		return name(unix.Errno(a & unix.SECCOMP_RET_DATA))
	case a == sec.ActionKillProcess:
		return "kills the process"
	case a == sec.ActionKillThread:
		return "kills the thread"
	case a == sec.ActionTrap:
		return "SIGSYS"
	}
	return a.String()
}
