package kit

import (
	"strings"
	"testing"
)

func TestExpandHome(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for path, want := range map[string]string{
		"~": "/home/me", "~/x/y": "/home/me/x/y", "": "", "x~": "x~", "./~x": "./~x", "/a/~/b": "/a/~/b",
	} {
		if got, err := ExpandHome(path); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", path, got, err, want)
		}
	}
	if got, err := ExpandHome("~bob/x"); err == nil || got != "" || !strings.Contains(err.Error(), "./~bob") {
		t.Errorf("another user's: %q, %v", got, err)
	}
	t.Setenv("HOME", "")
	if got, err := ExpandHome("~/x"); err == nil || got != "" {
		t.Errorf("without HOME: %q, %v", got, err)
	}
}
