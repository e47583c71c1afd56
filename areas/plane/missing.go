package plane

import (
	"context"
	"errors"
	"fmt"

	"tare/internal/build"
)

// Missing is the error when this host cannot run a control plane.
type Missing struct {
	What   string // "the control plane of Kubernetes 1.36"
	Reason string // "no Go toolchain was found in PATH"
	Next   string // how to get it
}

// Error implements error.
func (m *Missing) Error() string { return m.What + ": " + m.Reason }

// Hint returns the next step.
func (m *Missing) Hint() string { return m.Next }

// nameOf names a version in messages.
func nameOf(v Version) string { return "the control plane of Kubernetes " + string(v) }

// explain turns an error of a build into a *Missing where a person can do something about it.
func explain(v Version, s source, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("build %s: %w; Go keeps what it has compiled, so that the next build goes on from there", nameOf(v),
			err)
	}
	out := &Missing{What: nameOf(v), Reason: err.Error()}
	if _, ok := errors.AsType[*build.NoFolder](err); ok {
		out.Next = "set " + build.Variable + " to a folder of your own"
		return out
	}
	if _, ok := errors.AsType[*diskFullError](err); ok {
		out.Next = "free as much, or have Go write to other disks (GOCACHE, GOMODCACHE, TMPDIR) and tare (" + build.Variable +
			")" + namingHint(s)
		return out
	}
	fault, ok := errors.AsType[*build.GoFault](err)
	if !ok {
		return fmt.Errorf("build %s: %w", nameOf(v), err)
	}
	reason, next := explainGoFault(fault)
	if next == "" {
		return fmt.Errorf("build %s: %w", nameOf(v), err)
	}
	out.Reason, out.Next = reason, next+namingHint(s)
	return out
}

const installGo = "install Go 1.26 or newer (https://go.dev/dl)"

// explainGoFault explains a fault of the toolchain and what to do about it; next is empty where the user can do
// nothing.
func explainGoFault(f *build.GoFault) (reason, next string) {
	switch f.Fault {
	case build.NoGo:
		return f.Says, installGo
	case build.TooOld:
		return "the Go toolchain is too old: " + f.Says, installGo
	case build.Unreachable:
		return "the Go toolchain could not fetch the modules of Kubernetes: " + f.Says,
			"give it access to a module proxy (go env GOPROXY) for one build, afterwards no network is needed"
	case build.Altered:
		return "a module is not the one that tare pins: " +
			f.Says, "look for what answers instead of the module proxy (go env GOPROXY)"
	case build.NoSpace:
		return "a disk is full: " + f.Says, "free about 7 GB, or have Go write to other disks (GOCACHE, GOMODCACHE, TMPDIR)"
	case build.Killed:
		return "a compiler or the linker was killed, most likely for want of memory: " + f.Says,
			"free about 4 GiB of memory, or set GOMAXPROCS=1 to have one package compiled at a time"
	case build.Other:
	}
	return "", ""
}

// namingHint returns the alternative: to name an existing binary.
func namingHint(s source) string {
	return ", or name a binary that was built elsewhere: $" + s.variable + ", or " + s.field + " in the experiment"
}
