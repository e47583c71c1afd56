package cli

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tare/internal/design"
	"tare/internal/doctor"
	"tare/internal/record"
)

// TestBlocksAreAddedUpToALook, and not beyond the last one.
func TestBlocksAreAddedUpToALook(t *testing.T) {
	t.Parallel()
	rec := &record.Record{Header: record.Header{Question: design.Compare}, Plan: record.Plan{Blocks: 40}}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	rec.Header.Host = record.Host{Name: name, Kernel: doctor.Kernel(), CPUs: runtime.NumCPU()}
	for _, x := range []struct {
		from, add, want int
		refusal         string
	}{
		{12, 0, 40, ""},
		{40, 0, 0, "has all its 40 blocks"},
		{40, 1, 80, ""},
		{150, 10, 160, ""},
		{150, 11, 0, "the last look is after 160"},
		{160, 1, 0, "the last look is after 160"},
	} {
		got, err := blocksToCome(rec, x.from, 0, x.add)
		if got != x.want || (err == nil) != (x.refusal == "") || err != nil && !strings.Contains(err.Error(), x.refusal) {
			t.Errorf("%d blocks and %d more: %d, %v", x.from, x.add, got, err)
		}
	}
	rec.Header.Host.Name = "another-" + name
	if _, err := blocksToCome(rec, 12, 0, 0); err == nil || !strings.Contains(err.Error(), "two hosts cannot be mixed") {
		t.Errorf("of a record that another host made: %v", err)
	}
}

// TestLocksHoldInEveryEnvironment: runs of one user whose environments name other folders exclude each other, too.
func TestLocksHoldInEveryEnvironment(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	free, err := lock("target", record.Holder{Run: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"", t.TempDir(), "/nowhere"} {
		t.Setenv("XDG_RUNTIME_DIR", other)
		if _, err := lock("target", record.Holder{Run: "b"}); !errors.As(err, new(*record.HeldError)) {
			t.Errorf("with %q a second run got %v", other, err)
		}
	}
	free()
	free, err = lock("target", record.Holder{Run: "b"})
	if err != nil {
		t.Fatal(err)
	}
	free()
}

// TestCompletionShowsNamesOnly: a record from elsewhere has a folder whose name a shell would send to the terminal.
func TestCompletionShowsNamesOnly(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"20261130-run", "with a blank", "é", "_activeHelp_", "_activeHelp_ read me", "_activeHelp_ \x1b]0;title\a", "\x1b[2J",
		"two\nlines", "a\ttab", "c1\u009b", "c1\x9b", "\u202eback",
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, record.JournalFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := &cobra.Command{}
	c.Flags().String("results", dir, "")
	got, _ := runNames(c, nil, "")
	if want := []string{"20261130-run", "_activeHelp_", "with a blank", "é"}; !slices.Equal(got, want) {
		t.Errorf("completes %q, want %q", got, want)
	}
}
