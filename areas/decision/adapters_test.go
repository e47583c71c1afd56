package decision

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tare/areas/decision/engine"
	"tare/areas/decision/protocol"
	"tare/internal/kit"
)

// TestAdaptersComeFromTheirValue: the file, the schema and the list of adapters take everything that they say about an
// adapter from its value.
func TestAdaptersComeFromTheirValue(t *testing.T) {
	help := (Area{}).Adapters()
	for _, a := range protocol.Adapters() {
		if a.Section != "" && !kit.Section(&Spec{}, a.Section).IsValid() {
			t.Errorf("%s: the file has no section %q", a.Name, a.Section)
		}
		if a.Help == "" || help[a.Name] != a.Help {
			t.Errorf("%s is listed as %q, want %q", a.Name, help[a.Name], a.Help)
		}
		if (a.Load == nil) != (a.Unload == nil) {
			t.Errorf("%s loads policies and cannot take them away, or the other way round", a.Name)
		}
	}
	if words := AdapterName("").Words(); !slices.Equal(words, protocol.Names()) || len(help) != len(words) {
		t.Errorf("the file takes %v, and listed are %v", words, help)
	}
	presets := (Area{}).Presets()
	for _, k := range engine.Kinds() {
		if _, err := protocol.Find(k.Adapter()); err != nil || presets[string(k)] == "" {
			t.Errorf("%s speaks %q (%v) and is listed as %q", k, k.Adapter(), err, presets[string(k)])
		}
	}
	for _, c := range []struct {
		field, text string
		which       func(a protocol.Adapter) bool
		last        string // what comes before the last name
	}{
		{"Path", "for %s.", func(a protocol.Adapter) bool { return a.Path }, " and "},
		{"Load", "(%s)", func(a protocol.Adapter) bool { return a.Load != nil }, ", "},
		{"Secrets", "Not for %s.", func(a protocol.Adapter) bool { return a.Binary }, " and "},
	} {
		f, ok := reflect.TypeFor[Spec]().FieldByName(c.field)
		want := fmt.Sprintf(c.text, listAdapters(c.which, c.last))
		if description := f.Tag.Get("jsonschema_description"); !ok || !strings.Contains(description, want) {
			t.Errorf("%s is described as %q, without %q", c.field, description, want)
		}
	}
}

// listAdapters lists the names of the adapters for which which is true, separated by commas and, before the last one,
// by last.
func listAdapters(which func(a protocol.Adapter) bool, last string) string {
	var names []string
	for _, a := range protocol.Adapters() {
		if which(a) {
			names = append(names, a.Name)
		}
	}
	n := len(names) - 1
	return strings.Join(append(names[:max(0, n-1):max(0, n-1)], strings.Join(names[max(0, n-1):], last)), ", ")
}

// TestAdaptersAreDocumented compares the documentation with the list: a row for each adapter, with its abilities.
func TestAdaptersAreDocumented(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| adapter | protocol | questions | batches |")
	table, _, _ = strings.Cut(table, "\n\n")
	yes := map[bool]string{true: "yes", false: "no"}
	rows := map[string][]string{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 8 {
			rows[strings.Trim(cells[1], " `")] = cells
		}
	}
	for _, a := range protocol.Adapters() {
		row := rows[a.Name]
		if row == nil {
			t.Errorf("README.md has no row for %s", a.Name)
			continue
		}
		batches, counts, loads := strings.TrimSpace(row[4]), strings.TrimSpace(row[6]), strings.Contains(row[3], "`load: true`")
		if batches != yes[a.Batches()] || counts != yes[a.Counted != nil] || loads != (a.Load != nil) {
			t.Errorf("%s: batches %s, its own counts %s, load: true %v: not as the adapter is", a.Name, batches, counts, loads)
		}
	}
}
