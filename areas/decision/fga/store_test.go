package fga

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/areas/decision/replica"
	"tare/rigs/hosttest"

	"github.com/google/go-cmp/cmp"
)

const documents = "model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define reader: [user]\n"

// written writes files by path into a new folder.
func written(t testing.TB, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestReadStore: a store's model, relationships and checks come from its file and those that it names, each with its
// place.
func TestReadStore(t *testing.T) {
	dir := written(t, map[string]string{
		"store.fga.yaml": "name: x\nmodel_file: ./models/fga.mod\ntuple_file: more.csv\ntuple_files: [more.yaml]\ntuples:\n" +
			"  - {user: user:ann, relation: reader, object: doc:a,\n" +
			"     condition: {name: until, context: {at: 2026-01-01T00:00:00Z, n: 3}}}\n" +
			"tests:\n  - name: reading\n    tuples: [{user: user:cid, relation: reader, object: doc:c}]\n    check:\n" +
			"      - {users: [user:ann, user:bob], object: doc:a, context: {now: 5},\n" +
			"         assertions: {reader: true, owner: false}}\n" +
			"    list_objects: [{user: user:ann, type: doc, context: {now: 5}, assertions: {reader: [doc:a], owner: []}}]\n" +
			"    list_users: [{object: doc:a, user_filter: [{type: group, relation: member}],\n" +
			"      assertions: {reader: {users: [group:a#member]}}}]\n",
		"models/fga.mod":        "schema: '1.2'\ncontents: [core.fga, parts/docs.fga]\n",
		"models/core.fga":       "module core\ntype user\n",
		"models/parts/docs.fga": "module docs\n",
		"more.yaml":             "- user: user:bob\n  relation: reader\n  object: doc:a\n",
		"more.csv": "user_type,user_id,user_relation,relation,object_type,object_id,condition_name,condition_context\n" +
			"group,a,member,reader,doc,a,until,\"{\"\"at\"\": 1}\"\n",
		"other.fga.yaml": "name: other\n",
	})
	s, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	const cid = `{"object":"doc:c","relation":"reader","user":"user:cid"}`
	body := func(user, relation string) json.RawMessage {
		return json.RawMessage(`{"context":{"now":5},"contextual_tuples":{"tuple_keys":[` + cid + `]},"tuple_key":{"object":"doc:a","relation":"` + relation + `","user":"user:` + user + `"}}`)
	}
	want := &Store{
		Files: []Source{
			{File: at("models/core.fga"), Line: 1, Text: "module core\ntype user\n"},
			{File: at("models/parts/docs.fga"), Line: 1, Text: "module docs\n"},
		},
		Schema: "1.2",
		Tuples: []Tuple{
			{json.RawMessage(`{"condition":{"context":{"at":"2026-01-01T00:00:00Z","n":3},"name":"until"},"object":"doc:a",` +
				`"relation":"reader","user":"user:ann"}`), at("store.fga.yaml"), 6},
			{json.RawMessage(`{"object":"doc:a","relation":"reader","user":"user:bob"}`), at("more.yaml"), 1},
			{json.RawMessage(`{"condition":{"context":{"at":1},"name":"until"},"object":"doc:a","relation":"reader",` +
				`"user":"group:a#member"}`), at("more.csv"), 2},
		},
		Checks: []Check{
			{"user:ann owner doc:a", body("ann", "owner"), false, nil},
			{"user:ann reader doc:a", body("ann", "reader"), true, nil},
			{"user:bob owner doc:a", body("bob", "owner"), false, nil},
			{"user:bob reader doc:a", body("bob", "reader"), true, nil},
			{"user:ann lists reader doc", json.RawMessage(`{"context":{"now":5},"contextual_tuples":{"tuple_keys":[` + cid +
				`]},"relation":"reader","type":"doc","user":"user:ann"}`), true, &[]string{"doc:a"}},
			{"user:ann lists owner doc", json.RawMessage(`{"context":{"now":5},"contextual_tuples":{"tuple_keys":[` + cid +
				`]},"relation":"owner","type":"doc","user":"user:ann"}`), true, new([]string)},
			{"doc:a lists reader", json.RawMessage(`{"contextual_tuples":[` + cid + `],"object":{"id":"a","type":"doc"},` +
				`"relation":"reader","user_filters":[{"relation":"member","type":"group"}]}`), true, &[]string{"group:a#member"}},
		},
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
	if again, err := Read(dir); err != nil || again != s {
		t.Errorf("what has not changed is read again (%v)", err)
	}
	before, err := Sum(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("models/core.fga"), []byte("module core\ntype person\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after, err := Sum(dir); err != nil || after == before {
		t.Errorf("the sum does not see the model's file (%v)", err)
	}
}

// TestModelInItsPlace: the text of a model in the store itself begins where it stands in the file.
func TestModelInItsPlace(t *testing.T) {
	text := "name: x\nmodel: |\n  " + strings.ReplaceAll(strings.TrimSpace(documents), "\n", "\n  ") + "\ntuples: []\n"
	s, err := Read(filepath.Join(written(t, map[string]string{"a.fga.yaml": text}), "a.fga.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if f := s.Files[0]; f.Line != 3 || f.Column != 2 || f.Text != documents {
		t.Errorf("%+v", f)
	}
}

// TestWrongStores: what is wrong is said with its place.
func TestWrongStores(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	model := "model_file: m.fga\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":              {"", "a.fga.yaml is empty"},
		"no YAML":            {"a: [", "a.fga.yaml:"},
		"a list":             {"- a\n", "a.fga.yaml:1:1: want a store: a mapping of name"},
		"two documents":      {model + "---\n" + model, "want one document"},
		"no model":           {"name: x\n", "a.fga.yaml:1:1: it has no model"},
		"two models":         {model + "model: x\n", "exclude each other"},
		"a field":            {model + "tuple: []\n", `:2:1: a store has no field "tuple"`},
		"a file elsewhere":   {"model_file: ../m.fga\n", ":1:13: model_file: ../m.fga is not in the folder"},
		"a file of the host": {model + "tuple_file: /etc/passwd\n", "/etc/passwd is not in the folder"},
		"a link of the host": {model + "tuple_file: link.yaml\n", "link.yaml"},
		"no such file":       {"model_file: n.fga\n", "there is no "},
		"tuples as text":     {model + "tuples: x\n", ":2:9: want a list of relationships"},
		"no relation":        {model + "tuples:\n  - {user: a, object: b}\n", ":3:5: a relationship without relation"},
		"no user":            {model + "tests: [{check: [{object: a, assertions: {b: true}}]}]\n", ":2:18: want user or"},
		"nothing asserted":   {model + "tests: [{check: [{user: u, object: a}]}]\n", "want assertions"},
		"asserted as text":   {model + "tests: [{check: [{user: u, object: a, assertions: {b: x}}]}]\n", "want assertions"},
		"no list's user":     {model + "tests: [{list_objects: [{type: d, assertions: {}}]}]\n", ":2:25: want user"},
		"no list's type":     {model + "tests: [{list_objects: [{user: u:a, assertions: {}}]}]\n", "want type"},
		"no list's object":   {model + "tests: [{list_users: [{object: d, assertions: {}}]}]\n", ":2:32: want an object"},
		"no filter":          {model + "tests: [{list_users: [{object: d:a, assertions: {}}]}]\n", "want user_filter"},
		"no list":            {model + "tests: [{list_objects: [{user: u:a, type: d}]}]\n", "each with its list"},
		"a list as text":     {model + "tests: [{list_objects: [{user: u:a, type: d, assertions: {r: x}}]}]\n", "a list of"},
		"asserted twice":     {model + "tests: [{check: [{user: u, object: a, assertions: {b: true, b: true}}]}]\n", "once"},
		"a file twice":       {model + "tuple_files: [good.csv, ./good.csv]\n", "name ./good.csv twice"},
		"nested":             {model + "tuples: " + deep + "\n", "depth"},
		"aliases":            {model + "name: &a x\ntuples: [{user: *a, relation: r, object: o}]\n", "aliases are not"},
		"a key twice": {
			model + "tuples:\n  - {user: u, relation: r, object: o, condition: {name: c, context: {x: 1, x: 2}}}\n",
			`:3:5: key "x": want text, and each key once`,
		},
		"merged keys": {
			model + "tuples: [{user: u, relation: r, object: o, condition: {name: c, <<: {context: {x: 1}}}}]\n", `key "<<"`,
		},
		"brackets":            {"model: |\n  " + strings.Repeat("(", 500) + "\n", "a.fga.yaml:2: brackets are nested"},
		"CSV without a name":  {model + "tuple_file: bad.csv\n", "its first line names no user_type"},
		"CSV, a name twice":   {model + "tuple_file: twice.csv\n", "its first line names user_id twice"},
		"CSV with a bad line": {model + "tuple_file: short.csv\n", "short.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := written(t, map[string]string{
				"a.fga.yaml": c.text, "m.fga": documents, "bad.csv": "a,b\n",
				"good.csv":  "user_type,user_id,relation,object_type,object_id\n",
				"twice.csv": "user_type,user_id,user_id,relation,object_type,object_id\n",
				"short.csv": "user_type,user_id,relation,object_type,object_id\na,b\n",
			})
			if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.yaml")); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(filepath.Join(dir, "a.fga.yaml")); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	for want, names := range map[string][]string{
		"there is no store":      {"a.yaml"},
		"there are 2 stores":     {"a.fga.yaml", "b.fga.yaml"},
		"neither a folder nor a": nil,
	} {
		files := map[string]string{"m.fga": documents}
		for _, n := range names {
			files[n] = model
		}
		dir := written(t, files)
		if names == nil {
			dir = filepath.Join(dir, "m.fga")
		}
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", names, err, want)
		}
	}
}

// TestManyChecksAreBounded: checks that a few lines stand for are not all read, nor are relationships of a test
// repeated without end.
func TestManyChecksAreBounded(t *testing.T) {
	many := "[u:0" + strings.Repeat(", u:1", 5000) + "]"
	long := strings.Repeat("y", 1<<20)
	for name, text := range map[string]string{
		"users and objects": "tests: [{check: [{users: " + many + ", objects: " + many + ", assertions: {r: true}}]}]\n",
		"long ones": "tests: [{tuples: [{user: u:a, relation: r, object: o:b, condition: {name: c, context: {x: " + long +
			"}}}], check: [{users: " + many + ", object: o:b, assertions: {r: true}}]}]\n",
	} {
		dir := written(t, map[string]string{"a.fga.yaml": "model_file: m.fga\n" + text, "m.fga": documents})
		s, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, c := range s.Checks {
			size += len(c.Body)
		}
		if !s.More || len(s.Checks) > mostChecks || size > mostBodies {
			t.Errorf("%s: %d checks of %d bytes, more %v", name, len(s.Checks), size, s.More)
		}
	}
}

// TestSmallStoresAreReadSoon: files of tests that ask nothing are not read, and very many relations are taken.
func TestSmallStoresAreReadSoon(t *testing.T) {
	relations := strings.Builder{}
	for i := range 50_000 {
		fmt.Fprintf(&relations, "r%d: true,", i)
	}
	s, err := Read(written(t, map[string]string{"m.fga": documents, "a.fga.yaml": "model_file: m.fga\ntests:\n" +
		strings.Repeat("  - tuple_file: many.csv\n", 10_000) +
		"  - check: [{user: u, object: o, assertions: {" + relations.String() + "}}]\n"}))
	if err != nil || len(s.Checks) != mostChecks {
		t.Errorf("%v", err)
	}
}

// FuzzRead: whatever a store holds, reading it ends, and what is read can be told to the engine.
func FuzzRead(f *testing.F) {
	f.Add("model: |\n  model\n    schema 1.1\ntuples: [{user: a, relation: b, object: c}]\n", "a,b\n")
	f.Add("model_file: m.json\ntuple_file: t.csv\ntests: [{check: [{user: u, object: o, assertions: {r: true}}]}]\n",
		"user_type,user_id,relation,object_type,object_id\na,b,c,d,e\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, store, other string) {
		for name, text := range map[string]string{"a.fga.yaml": store, "t.csv": other, "m.json": other} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Read(filepath.Join(dir, "a.fga.yaml"))
		if err != nil {
			return
		}
		if _, err := json.Marshal(s); err != nil {
			t.Errorf("%q: %v", store, err)
		}
	})
}

func TestMain(m *testing.M) { hosttest.Main(m) }

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
