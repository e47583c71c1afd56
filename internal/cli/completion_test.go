package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"tare/internal/record"
)

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
