package fga

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/areas/decision/replica"
)

// TestReplicate: copies are of what names an entity of the types that grow; everybody has none.
func TestReplicate(t *testing.T) {
	const until = `"condition":{"context":{"n":"ann"},"name":"until"}`
	key := func(user, object, more string) string {
		return `{"user":"` + user + `","relation":"reader","object":"` + object + `"` + more + `}`
	}
	store := &Store{Tuples: []Tuple{
		{Key: json.RawMessage(key("user:ann", "doc:a:b", ","+until))},
		{Key: json.RawMessage(key("user:*", "doc:c", ""))},
		{Key: json.RawMessage(key("group:g#member", "folder:f", ""))},
	}}
	for name, c := range map[string]struct {
		of   []string
		want []string
	}{
		"all": {nil, []string{
			key("user:ann~2", "doc:a:b~2", ","+until), key("user:*", "doc:c~2", ""), key("group:g~2#member", "folder:f~2", ""),
		}},
		"users": {[]string{"user"}, []string{key("user:ann~2", "doc:a:b", ","+until)}},
		"groups, docs": {[]string{"group", "doc"}, []string{
			key("user:ann", "doc:a:b~2", ","+until), key("user:*", "doc:c~2", ""), key("group:g~2#member", "folder:f", ""),
		}},
	} {
		grown, err := store.Replicate(&replica.Data{Of: c.of, Times: 2})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(store.Tuples, grown.Tuples[:3]); diff != "" {
			t.Errorf("%s: the originals, -want +got:\n%s", name, diff)
		}
		var got []string
		for _, one := range grown.Tuples[3:] {
			got = append(got, string(one.Key))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	for want, d := range map[string]replica.Data{
		"of: team: no relationship":        {Of: []string{"team"}, Times: 2},
		"3 entries 1000000 times are more": {Times: 1_000_000},
	} {
		if _, err := store.Replicate(&d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
