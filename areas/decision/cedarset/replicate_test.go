package cedarset

import (
	"maps"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go"
	"github.com/google/go-cmp/cmp"

	"tare/areas/decision/replica"
)

// TestReplicate: a copy names the other copies where the original names what was copied, and nothing else differs.
func TestReplicate(t *testing.T) {
	const entities = `[
  {"uid": {"type": "Shop::User", "id": "ann"}, "attrs": {"boss": {"type": "Shop::User", "id": "ann"}, "limits": [],
    "home": {"at": "127.0.0.1"}}, "parents": []},
  {"uid": {"type": "Shop::User", "id": "bob"}, "attrs": {"boss": {"type": "Shop::User", "id": "ann"}, "limits": ["1.5"],
    "home": {"at": "127.0.0.1"}}, "tags": {"break": "1h"}, "parents": [{"type": "Shop::Team", "id": "sellers"}]},
  {"uid": {"type": "Shop::Team", "id": "sellers"}, "attrs": {}, "parents": []}
]`
	copied := strings.ReplaceAll(strings.ReplaceAll(entities, `"ann"`, `"ann~2"`), `"bob"`, `"bob~2"`)
	for name, c := range map[string]struct {
		of   []string
		want string
	}{
		"all":   {nil, strings.ReplaceAll(copied, `"sellers"`, `"sellers~2"`)},
		"users": {[]string{"Shop::User"}, copied},
	} {
		set := read(t, shop("more/entities.json", entities))
		was := len(set.Entities)
		want := read(t, shop("more/entities.json", c.want)).Entities
		maps.Copy(want, set.Entities)
		if err := set.Replicate(&replica.Data{Of: c.of, Times: 2}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, set.Entities, cmp.Comparer(cedar.Entity.Equal)); diff != "" || len(set.Entities) <= was {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestReplicateRefuses: what cannot be copied is said.
func TestReplicateRefuses(t *testing.T) {
	set := read(t, shop("more/entities.json", `[{"uid": {"type": "Shop::Good", "id": "cup"}, "attrs": {}, "parents": []},
  {"uid": {"type": "Shop::Good", "id": "cup~2"}, "attrs": {}, "parents": []}]`))
	for want, d := range map[string]replica.Data{
		"of: Shop::User: there is no entity":   {Of: []string{"Shop::User"}, Times: 2},
		"of: Shop::Action: there is no":        {Of: []string{"Shop::Action"}, Times: 2},
		"2 entries 1000000 times are more":     {Times: 1_000_000},
		`cup~2" is there, and a copy would be`: {Times: 2},
	} {
		if err := set.Replicate(&d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func read(t *testing.T, files map[string]string) *Set {
	t.Helper()
	set, err := Read(written(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return set
}
