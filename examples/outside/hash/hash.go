// Package hash is an area in a module of its own: what does a stronger digest cost?
package hash

import (
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"embed"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"time"

	"tare/area"
)

// Area compares digests. It needs nothing of the host and changes nothing on it.
type Area struct{}

//go:embed templates
var files embed.FS

// batched is why three of the questions cannot be asked: their calls arrive at a rate.
const batched = "a digest is computed by its caller, one after another; ask compare or scale"

// Name implements area.Area.
func (Area) Name() string { return "hash" }

// Offers implements area.Area.
func (Area) Offers() area.Offers {
	return area.Offers{AnyRate: area.No(batched), SteadyLoad: area.No(batched), Trespasses: area.No(batched)}
}

// NewSpec implements area.Area.
func (Area) NewSpec() area.Spec { return &Spec{} }

// Preflight implements area.Area.
func (Area) Preflight(context.Context, area.Spec, area.Env) []area.Finding { return nil }

// Open implements area.Area.
func (Area) Open(_ context.Context, s area.Spec, _ area.Env) (area.Target, error) {
	spec, err := area.SpecOf[*Spec](s)
	return target{spec}, err
}

// Undo implements area.Area.
func (Area) Undo(context.Context, []area.Change, area.Env) error { return nil }

// Parts implements area.Area: the templates of `tare-hash init`, and the digests for `tare-hash list adapters`.
func (Area) Parts() area.Parts {
	parts := area.Parts{Files: files}
	for _, d := range digests {
		parts.Adapters = append(parts.Adapters, area.Adapter{Name: d.name, Help: d.help})
	}
	return parts
}

// Spec is the `target:` section of an experiment file. A treatment can set digest and size.
type Spec struct {
	Digest string `yaml:"digest,omitempty" json:"digest,omitempty" jsonschema:"enum=sha1,enum=sha256,enum=sha512" jsonschema_description:"The digest. Default sha256."`
	Size   int    `yaml:"size,omitempty" json:"size,omitempty" jsonschema:"minimum=1" jsonschema_description:"Bytes of the message. Default 1024."`
	Rounds int    `yaml:"rounds,omitempty" json:"rounds,omitempty" jsonschema:"minimum=3" jsonschema_description:"Batches in a block. Default 16."`
}

// Validate implements area.Spec.
func (s *Spec) Validate(_ area.Asked, treatments []area.Treatment) (out []area.Finding) {
	for _, t := range treatments {
		if _, err := s.under(t); err != nil {
			out = append(out, area.Fault("", err, "").In(t))
		}
	}
	return out
}

// Under implements area.Spec.
func (s *Spec) Under(t area.Treatment) (area.Spec, error) { return s.under(t) }

// under returns the section with defaults and with the levels of a treatment. Its errors begin with the factor that is
// wrong: Finding.In points at it.
func (s *Spec) under(t area.Treatment) (*Spec, error) {
	u := &Spec{Digest: cmp.Or(s.Digest, "sha256"), Size: cmp.Or(s.Size, 1024), Rounds: s.Rounds}
	for factor, level := range t.Levels {
		switch factor {
		case "digest":
			u.Digest = level
		case "size":
			n, err := strconv.Atoi(level)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("size: %q is no number of bytes, such as 1024", level)
			}
			u.Size = n
		default:
			return nil, fmt.Errorf("%s: a treatment can set digest and size only", factor)
		}
	}
	if digestOf(u.Digest) == nil {
		return nil, fmt.Errorf("digest: %q is unknown: use sha1, sha256 or sha512", u.Digest)
	}
	return u, nil
}

// Says implements area.Spec: all is done on this machine, in batches, and what will be measured is known.
func (s *Spec) Says() area.Says {
	batches := area.Batches{Operation: operation, Rounds: s.Rounds}.OrUsual()
	return area.Says{
		Loopback: true,
		Batches:  []area.Batches{batches},
		Forecast: func(area.Asked, area.Treatment) area.Forecast {
			return area.Forecast{Operations: []string{operation}, Metrics: []string{"wall"}, Rounds: batches.Rounds}
		},
	}
}

// operation is the name of the one operation: budgets begin with it.
const operation = "sum"

// A target computes digests in this process: nothing is started, so there is nothing to close.
type target struct{ spec *Spec }

// Prepare implements area.Target.
func (target) Prepare(context.Context, area.Treatment, area.Journal) error { return nil }

// Verify implements area.Target: a digest that is fast because it is wrong must not be measured.
func (x target) Verify(_ context.Context, t area.Treatment) error {
	u, err := x.spec.under(t)
	if err != nil {
		return err
	}
	d := digestOf(u.Digest)
	if got := fmt.Sprintf("%x", d.sum([]byte("abc"))); got != d.abc {
		return fmt.Errorf("%s of abc is %s, want %s", d.name, got, d.abc)
	}
	return nil
}

// Operations implements area.Target: one operation, which makes n calls and returns what one of them took.
func (x target) Operations(t area.Treatment) ([]area.Operation, error) {
	u, err := x.spec.under(t)
	if err != nil {
		return nil, err
	}
	h, message, sum := digestOf(u.Digest).new(), make([]byte, u.Size), []byte(nil)
	batch := func(_ context.Context, n int) ([]area.BatchSample, error) {
		began := time.Now()
		for range n {
			h.Reset()
			h.Write(message)
			sum = h.Sum(sum[:0])
		}
		return []area.BatchSample{{Metric: "wall", Value: time.Since(began).Seconds() / float64(n)}}, nil
	}
	return []area.Operation{{Name: operation, Weight: 1, Expect: "the digest of the message", Batch: batch}}, nil
}

// Close implements area.Target.
func (target) Close(context.Context) error { return nil }

// Can implements area.Target: every report carries the note.
func (target) Can() area.Can {
	return area.Can{Notes: func() []string {
		return []string{"the message stays in the processor's cache: reading it from memory or disk costs more"}
	}}
}

// A digest is one of the controls. abc is the published digest of "abc" (FIPS 180-4, examples of NIST).
type digest struct {
	name, help, abc string
	new             func() hash.Hash
}

var digests = []digest{
	{"sha1", "160 bits; collisions are known", "a9993e364706816aba3e25717850c26c9cd0d89d", sha1.New},
	{"sha256", "256 bits", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", sha256.New},
	{
		"sha512", "512 bits", "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a" +
			"2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f", sha512.New,
	},
}

// digestOf returns the digest of this name; nil if there is none.
func digestOf(name string) *digest {
	i := slices.IndexFunc(digests, func(d digest) bool { return d.name == name })
	if i < 0 {
		return nil
	}
	return &digests[i]
}

func (d *digest) sum(message []byte) []byte {
	h := d.new()
	h.Write(message)
	return h.Sum(nil)
}
