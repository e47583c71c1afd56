package shell

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestShellReadsTheSameWords: a real shell reads back what was quoted.
func TestShellReadsTheSameWords(t *testing.T) {
	words := []string{"", "plain", "-flag=a,b", "two words", "it's", `a"b\c`, "$HOME `id` $(id)", "*?[a]", "line\nbreak", "ä;&|<>"}
	out, err := exec.Command("sh", "-c", `printf '%s\0' `+Line(words)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, words) {
		t.Errorf("a shell reads %q, want %q", got, words)
	}
}
