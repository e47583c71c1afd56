package kit

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadText(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadText(file, 5); err != nil || string(text) != "12345" {
		t.Errorf("%q, %v", text, err)
	}
	for path, want := range map[string]string{
		file: "longer than 4 bytes", pipe: "want a regular file", dir: "want a regular file", file + "x": "no such file",
	} {
		if _, err := ReadText(path, 4); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
