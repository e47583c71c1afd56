package engine

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"regexp"

	"tare/internal/build"
)

// opaSources is the Go module of OPA.
//
//go:embed _opa
var opaSources embed.FS

// opa is how OPA is built.
var opa = goEngine{
	kind: OPA, title: "OPA", version: "1.22.0", binary: "tare-opa", sources: opaSources, folder: "_opa",
	hashed:    "opasource/%s.txt", // as in earlier versions of tare
	otherwise: "put an opa into PATH", install: "put an opa into PATH (https://www.openpolicyagent.org/docs#running-opa)",
}

// findOPA prefers what was built already, which is the pinned version; then an opa in PATH, which needs no building;
// and then it builds.
func findOPA(ctx context.Context, h Host) (Launch, error) {
	ok, err := opa.built(h)
	if err != nil {
		return Launch{}, err
	}
	if path, found := h.look("opa"); found && !ok {
		return foundOPA(ctx, h, path)
	}
	return opa.find(ctx, h)
}

// TakesOPAFromPATH reports whether Find would take an opa in PATH, as far as that is known.
func (h Host) TakesOPAFromPATH() bool {
	_, found := h.look("opa")
	if !found {
		return false
	}
	built, err := opa.built(h)
	return !built && err == nil
}

// seekOPA is findOPA without building.
func seekOPA(ctx context.Context, h Host) (there bool, err error) {
	ok, err := opa.built(h)
	if ok || err != nil {
		return ok, err
	}
	if path, found := h.look("opa"); found {
		_, err := foundOPA(ctx, h, path)
		return err == nil, err
	}
	return opa.seek(ctx, h)
}

var opaSays = regexp.MustCompile(`(?m)^Version: (\S+)$`)

// foundOPA wraps an opa that does not speak package proc's protocol: see RunOPA.
func foundOPA(ctx context.Context, h Host, path string) (Launch, error) {
	out, err := build.Step{Path: path, Args: []string{"version"}}.Run(ctx)
	m := opaSays.FindStringSubmatch(out)
	if err != nil || m == nil {
		return Launch{}, &Missing{
			Kind: OPA, Reason: fmt.Sprintf("%s in PATH does not say its version (%v)",
				path, errors.Join(err, errors.New(build.Tail(out)))),
			Next: "mend it, or take it out of PATH to have tare build OPA " + opa.version,
		}
	}
	l := h.own(OPA, "OPA "+m[1]+" ("+path+", its policies in a bundle, over TLS)")
	return l, nil
}
