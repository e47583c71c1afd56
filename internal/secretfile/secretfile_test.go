package secretfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/internal/secretfile"
	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// TestPipes: a secret may come through a pipe, but one that nobody writes, or writes to no end, is not waited for.
func TestPipes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		writes, ends bool
		want         string // in the error
	}{
		"written":       {true, true, ""},
		"never written": {false, false, "is a pipe that nobody has written within 2s"},
		"never ended":   {true, false, "i/o timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "pipe")
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := secretfile.Check(path); err != nil {
				t.Errorf("looking at it: %v", err)
			}
			if _, warns := secretfile.Exposed(path); warns {
				t.Error("a pipe is said to be exposed")
			}
			written := make(chan error, 1)
			go func() {
				if !c.writes {
					written <- nil
					return
				}
				to, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for the reader
				if err == nil {
					_, err = to.WriteString("secret")
				}
				if c.ends {
					err = errors.Join(err, to.Close())
				} else {
					t.Cleanup(func() { _ = to.Close() })
				}
				written <- err
			}()
			f, err := secretfile.Open(path)
			var text []byte
			if err == nil {
				text, err = io.ReadAll(f)
				_ = f.Close() // it was only read
			}
			if err := <-written; err != nil {
				t.Error(err)
			}
			switch {
			case c.want == "" && (err != nil || string(text) != "secret"):
				t.Errorf("%q, %v", text, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
