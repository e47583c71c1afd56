package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/internal/mask"
)

// TestLogsAreMasked wherever in a long log the secret stands, and only this child's part of it.
func TestLogsAreMasked(t *testing.T) {
	const secret = "a secret of some length"
	for _, at := range []int{0, 100, maskedAtOnce - 1, maskedAtOnce - len(secret), maskedAtOnce, maskedAtOnce +
		5, 3*maskedAtOnce - 3} {
		path := filepath.Join(t.TempDir(), "log")
		text := append(bytes.Repeat([]byte{'x'}, at), secret...)
		text = append(text, "\nthe end\n"...)
		if err := os.WriteFile(path, append([]byte("earlier: "+secret+"\n"), text...), 0o600); err != nil {
			t.Fatal(err)
		}
		l := childLog{path: path, start: int64(len("earlier: " + secret + "\n")), secrets: mask.Of(shortestSecret, secret)}
		tail := l.tail()
		after, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(after, []byte(secret)); n != 1 || strings.Contains(tail, secret) ||
			!bytes.HasSuffix(after, []byte("***\nthe end\n")) || len(after) != int(l.start)+len(text) {
			t.Errorf("at %d: the log holds the secret %d times, want only the earlier one; its tail is %s", at, n, tail)
		}
	}
}
