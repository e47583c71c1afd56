// Package hash is an area outside of tare: what does a stronger digest cost?
package hash

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"embed"
	"errors"
	"fmt"
	"time"

	"tare/area"
)

// Area compares digests.
type Area struct{}

//go:embed templates
var files embed.FS

const offered = "a digest is computed by its caller, so no queue can overflow; ask compare"

func (Area) Name() string       { return "hash" }
func (Area) NewSpec() area.Spec { return &Spec{} }
func (Area) Offers() area.Offers {
	return area.Offers{AnyRate: area.No(offered), SteadyLoad: area.No(offered), Trespasses: area.No(offered)}
}
func (Area) Preflight(context.Context, area.Spec, area.Env) []area.Finding { return nil }
func (Area) Undo(context.Context, []area.Change, area.Env) error           { return nil }
func (Area) Parts() area.Parts {
	return area.Parts{Files: files, Presets: []area.Named{{Name: "message", Help: "1 KiB of zeros"}}}
}
func (Area) Open(context.Context, area.Spec, area.Env) (area.Target, error) { return target{}, nil }

// Spec is the `target:` section.
type Spec struct {
	Rounds int `yaml:"rounds,omitempty" json:"rounds,omitempty" jsonschema:"minimum=3,maximum=100" jsonschema_description:"Batches in a block. Default 16."`
}

func (s *Spec) Under(area.Treatment) (area.Spec, error) { return s, nil }

func (s *Spec) Validate(_ area.Asked, treatments []area.Treatment) (out []area.Finding) {
	for _, t := range treatments {
		if digests[t.Levels["digest"]] == nil {
			out = append(out, area.Fault("", errors.New("digest: want sha1, sha256 or sha512"), "").In(t))
		}
	}
	return out
}

func (s *Spec) Says() area.Says {
	batches := []area.Batches{area.Batches{Operation: "digest", Rounds: s.Rounds}.OrUsual()}
	return area.Says{Loopback: true, Batches: batches, Forecast: func(area.Asked, area.Treatment) area.Forecast {
		return area.Forecast{Operations: []string{"digest"}, Metrics: []string{"wall"}, Rounds: batches[0].Rounds}
	}}
}

var message = make([]byte, 1024)

var digests = map[string]func(){
	"sha1":   func() { sha1.Sum(message) },
	"sha256": func() { sha256.Sum256(message) },
	"sha512": func() { sha512.Sum512(message) },
}

type target struct{}

func (target) Prepare(context.Context, area.Treatment, area.Journal) error { return nil }
func (target) Close(context.Context) error                                 { return nil }
func (target) Can() area.Can                                               { return area.Can{} }

func (target) Verify(_ context.Context, t area.Treatment) error {
	if fmt.Sprintf("%x", sha256.Sum256(nil))[:4] != "e3b0" {
		return errors.New("sha256 of nothing is wrong")
	}
	return nil
}

func (target) Operations(t area.Treatment) ([]area.Operation, error) {
	digest := digests[t.Levels["digest"]]
	return []area.Operation{{Name: "digest", Weight: 1, Expect: "a digest", Batch: func(_ context.Context, n int) ([]area.BatchSample, error) {
		began := time.Now()
		for range n {
			digest()
		}
		return []area.BatchSample{{Metric: "wall", Value: time.Since(began).Seconds() / float64(n)}}, nil
	}}}, nil
}
