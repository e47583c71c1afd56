package engine

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"

	"tare/areas/decision/fga"
	"tare/areas/decision/model"
	"tare/areas/decision/replica"
)

// openFGASources is the Go module of OpenFGA.
//
//go:embed _openfga
var openFGASources embed.FS

// openFGA is how OpenFGA is built.
var openFGA = goEngine{
	kind: OpenFGA, title: "OpenFGA", version: "1.22.1", binary: "tare-openfga", sources: openFGASources,
	folder: "_openfga", hashed: "openfga/%s",
}

// storeFile is the name of a store in a run's folder.
const storeFile = "store.json"

// checkStore has an engine of its own write a store.
func (l Launch) checkStore(ctx context.Context, from string) error {
	s, err := fga.Read(from)
	if err != nil {
		return err
	}
	return l.problems(ctx, from, struct {
		Check bool       `json:"check"`
		Store *fga.Store `json:"store"`
	}{true, s}, nil)
}

// A RelationProof says whether a relation of a model is asked for.
type RelationProof struct {
	Says    string // "repo#admin"
	Asked   bool   // by a request
	Reached bool   // one that is asked for is defined by it, or by one that is
}

// ProveRelations says which relations of a store are asked for by the bodies of requests.
func (l Launch) ProveRelations(ctx context.Context, c Config, bodies []json.RawMessage) ([]RelationProof, error) {
	var out struct{ Relations []RelationProof }
	err := l.tell(ctx, c.File, struct {
		Config
		Prove  bool              `json:"prove"`
		Bodies []json.RawMessage `json:"bodies"`
	}{c, true, bodies}, &out)
	return out.Relations, err
}

// adoptStore writes the user's own store into a folder, with copies of its relationships.
func adoptStore(dir, from string, d *replica.Data) error {
	s, err := fga.Read(from)
	if err != nil {
		return err
	}
	if d.Grows() {
		if s, err = s.Replicate(d); err != nil {
			return fmt.Errorf("data: %w", err)
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return write(dir, map[string][]byte{storeFile: text})
}

// storeOf is a store with tare's own policies.
func storeOf(set model.Set) ([]byte, error) {
	s := fga.Store{Model: model.OpenFGASchema(), Tuples: []fga.Tuple{}}
	for t := range set.OpenFGATuples() {
		key, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		s.Tuples = append(s.Tuples, fga.Tuple{Key: key})
	}
	return json.Marshal(s)
}
