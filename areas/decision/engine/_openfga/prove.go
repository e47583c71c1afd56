package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
)

// A relationProof says whether a relation is asked for.
type relationProof struct {
	Says    string `json:"says"`    // "repo#admin"
	Asked   bool   `json:"asked"`   // by a request
	Reached bool   `json:"reached"` // one that is asked for is defined by it, or by one that is
}

// prove says which relations are asked for by the bodies of requests.
func prove(cfg config, out io.Writer) error {
	model, wrong := cfg.Store.compile()
	if len(wrong) > 0 {
		return errors.New(wrong[0].Says)
	}
	behind := references(model)
	asked := map[string]bool{}
	for _, body := range cfg.Bodies {
		var check struct {
			Key struct{ Relation, Object string } `json:"tuple_key"`
		}
		if err := json.Unmarshal(body, &check); err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		of, _, _ := strings.Cut(check.Key.Object, ":")
		asked[of+"#"+check.Key.Relation] = true
	}
	reached := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		if reached[name] {
			return
		}
		reached[name] = true
		for _, next := range behind[name] {
			follow(next)
		}
	}
	for name := range asked {
		follow(name)
	}
	proofs := []relationProof{}
	for _, name := range slices.Sorted(maps.Keys(behind)) {
		proofs = append(proofs, relationProof{name, asked[name], reached[name]})
	}
	return json.NewEncoder(out).Encode(map[string]any{"relations": proofs})
}

// references are, for each relation, those by which it is defined.
func references(model *openfgav1.AuthorizationModel) map[string][]string {
	types := map[string]*openfgav1.TypeDefinition{}
	for _, t := range model.GetTypeDefinitions() {
		types[t.GetType()] = t
	}
	direct := func(of, name string) []*openfgav1.RelationReference {
		return types[of].GetMetadata().GetRelations()[name].GetDirectlyRelatedUserTypes()
	}
	out := map[string][]string{}
	for of, t := range types {
		for name, set := range t.GetRelations() {
			var to []string
			for _, s := range leaves(set) {
				switch u := s.GetUserset().(type) {
				case *openfgav1.Userset_This:
					for _, r := range direct(of, name) {
						if r.GetRelation() != "" {
							to = append(to, r.GetType()+"#"+r.GetRelation())
						}
					}
				case *openfgav1.Userset_ComputedUserset:
					to = append(to, of+"#"+u.ComputedUserset.GetRelation())
				case *openfgav1.Userset_TupleToUserset:
					by := u.TupleToUserset.GetTupleset().GetRelation()
					to = append(to, of+"#"+by)
					for _, r := range direct(of, by) {
						if next := u.TupleToUserset.GetComputedUserset().GetRelation(); types[r.GetType()].GetRelations()[next] != nil {
							to = append(to, r.GetType()+"#"+next)
						}
					}
				}
			}
			out[of+"#"+name] = to
		}
	}
	return out
}

// leaves are the parts of a definition that are made of no others.
func leaves(s *openfgav1.Userset) (out []*openfgav1.Userset) {
	var parts []*openfgav1.Userset
	switch u := s.GetUserset().(type) {
	case *openfgav1.Userset_Union:
		parts = u.Union.GetChild()
	case *openfgav1.Userset_Intersection:
		parts = u.Intersection.GetChild()
	case *openfgav1.Userset_Difference:
		parts = []*openfgav1.Userset{u.Difference.GetBase(), u.Difference.GetSubtract()}
	default:
		return []*openfgav1.Userset{s}
	}
	for _, p := range parts {
		out = append(out, leaves(p)...)
	}
	return out
}
