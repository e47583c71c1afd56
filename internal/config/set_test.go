package config

import (
	"strings"
	"testing"
)

func TestSet(t *testing.T) {
	const file = "# what it is for\nname: x # and why\nload:\n  rate: 5/s\ntreatments:\n  - {mode: a}\n  - {mode: b}\n" +
		"full:\n"
	for _, c := range []struct{ path, value, want string }{
		{"name", "y", "name: y"},
		{"load.rate", "50/s", "rate: 50/s"},
		{"load.max_rate", "200/s", "max_rate: 200/s"},
		{"treatments[1].mode", "[a, c]", "{mode: [a, c]}"},
		{"target.url", "http://127.0.0.1:1/x", "target:\n  url: http://127.0.0.1:1/x"},
		{"full.blocks", "5", "full:\n  blocks: 5"},
		{"load.rate", "[", "the value"},
		{"load.rate.x", "1", "has no fields"},
		{"treatments[2].mode", "a", "no such item"},
		{"name[0]", "a", "no such item"},
		{"load..rate", "1", "not a path"},
		{"", "1", "no path"},
	} {
		got, err := Set([]byte(file), c.path, c.value)
		text := string(got)
		if err != nil {
			text = err.Error()
		} else if !strings.Contains(text, "# what it is for") {
			t.Errorf("%s=%s: the comment is lost: %s", c.path, c.value, text)
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%s=%s: got %s, want %s", c.path, c.value, text, c.want)
		}
	}
	if _, err := Set([]byte(file), "name", ""); err == nil {
		t.Error("an empty value was set")
	}
	if _, err := Set([]byte("a: [\n"), "name", "x"); err == nil || !strings.Contains(err.Error(), "line") {
		t.Errorf("a broken file: %v", err)
	}
}

// FuzzSet: whatever is set where, the result can be read again, and holds the value there.
func FuzzSet(f *testing.F) {
	f.Add("name: x\nload: {rate: 5/s}\n", "load.max_rate", "200/s")
	f.Add("treatments: [{mode: a}]\n", "treatments[0].mode", "[a, b]")
	f.Fuzz(func(t *testing.T, file, path, value string) {
		once, err := Set([]byte(file), path, value)
		if err != nil {
			return
		}
		twice, err := Set(once, path, value)
		if err != nil || string(twice) != string(once) {
			t.Errorf("set %q=%q in %q: %q, and again %q, %v", path, value, file, once, twice, err)
		}
	})
}
