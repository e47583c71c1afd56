package model_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/areas/decision/model"
)

func TestOpenFGATuples(t *testing.T) {
	for _, n := range sizes {
		all := slices.Collect(model.Set{N: n}.OpenFGATuples())
		if len(all) != n*model.OpenFGATuplesEach {
			t.Fatalf("N=%d: %d tuples", n, len(all))
		}
		seen := map[[3]string]bool{}
		for _, x := range all {
			seen[[3]string{x.User, x.Relation, x.Object}] = true
		}
		if len(seen) != len(all) {
			t.Errorf("N=%d: %d tuples of %d are twice there, which a write refuses", n, len(all)-len(seen), len(all))
		}
	}
	got := slices.Collect(model.Set{N: 2}.OpenFGATuples())[2:]
	want := []model.Tuple{
		{User: "User:alice", Relation: "member", Object: "Role:role1"},
		{
			User: "Role:role1#member", Relation: "read", Object: "Doc:doc1",
			Condition: &model.TupleCondition{Name: "in_department", Context: map[string]string{"wanted": "d1"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOpenFGATuplesCanBeLeft(t *testing.T) {
	n := 0
	for range (model.Set{N: 1000}).OpenFGATuples() {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d tuples", n)
	}
}

func TestOpenFGASchemaNamesWhatTuplesUse(t *testing.T) {
	var doc struct {
		Version string `json:"schema_version"`
		Types   []struct {
			Type      string
			Relations map[string]any
			Metadata  struct {
				Relations map[string]struct {
					Users []struct{ Type, Relation, Condition string } `json:"directly_related_user_types"`
				}
			}
		} `json:"type_definitions"`
		Conditions map[string]struct {
			Name       string
			Expression string
			Parameters map[string]any
		}
	}
	if err := json.Unmarshal(model.OpenFGASchema(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Version != "1.1" || len(doc.Types) != 3 || doc.Types[0].Type != model.SubjectType ||
		doc.Types[2].Type != model.ResourceType {
		t.Fatalf("got schema %+v, want version 1.1 with 3 types", doc)
	}
	users := doc.Types[2].Metadata.Relations[model.Action].Users
	if len(users) != 1 || users[0].Type != doc.Types[1].Type {
		t.Fatalf("who reads: %+v", users)
	}
	c := doc.Conditions[users[0].Condition]
	if c.Name != users[0].Condition || c.Expression != model.DepartmentKey+" == wanted" || len(c.Parameters) != 2 {
		t.Errorf("condition %+v", c)
	}
}
