package engine

import (
	"context"
	"fmt"
	"runtime/debug"
)

// Find says how a decision point of this kind is started. What has to be built is built first, once per version, into
// the host's cache: that may take minutes and needs the network, later calls need neither. The error is a *Missing when
// the host lacks something.
func Find(ctx context.Context, k Kind, h Host) (Launch, error) {
	switch k {
	case Cedar:
		return h.own(k, "cedar-go "+moduleVersion("github.com/cedar-policy/cedar-go")), nil
	case PDPX:
		return h.own(k, "tare's reference of ONAP's decision API"), nil
	case OPA:
		return findOPA(ctx, h)
	case ATT, AuthzForce:
		return findXACML(ctx, k, h)
	case OpenFGA:
		return openFGA.find(ctx, h)
	}
	return Launch{}, fmt.Errorf("embedded decision point %q is not one of %v", k, Kinds())
}

// Seek is Find without building, to announce what Find would do: there is false if Find would build the engine. It
// returns Find's error as far as it is known without a build.
func Seek(ctx context.Context, k Kind, h Host) (there bool, err error) {
	switch k {
	case OPA:
		return seekOPA(ctx, h)
	case ATT, AuthzForce:
		return seekXACML(ctx, k, h)
	case OpenFGA:
		return openFGA.seek(ctx, h)
	case Cedar, PDPX:
	}
	_, err = Find(ctx, k, h) // in this binary, or unknown: nothing is built
	return err == nil, err
}

// own returns how to launch a decision point in this binary.
func (h Host) own(k Kind, version string) Launch {
	return Launch{Kind: k, Path: h.Self, Args: []string{"serve", "decision", string(k)}, Version: version}
}

// moduleVersion returns the version of a module that this binary was built with, without its v.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown version"
	}
	for _, m := range info.Deps {
		if m.Path == path && len(m.Version) > 1 {
			return m.Version[1:]
		}
	}
	return "of unknown version"
}
