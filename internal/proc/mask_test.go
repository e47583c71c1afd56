package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMaskSecrets(t *testing.T) {
	v := newSecretMask([]string{"hunter22", "short", `quo"ted&<secret`, "hunter22 and more"})
	for in, want := range map[string]string{
		"a hunter22 hunter22b":                   "a ******** ********b",
		"hunter2":                                "hunter2",
		"hunter22 and more":                      strings.Repeat("*", 17),
		"short words stay":                       "short words stay",
		`{"error":"quo\"ted&<secret"}`:           `{"error":"` + strings.Repeat("*", 16) + `"}`,
		`{"error":"quo\"ted\u0026\u003csecret"}`: `{"error":"` + strings.Repeat("*", 26) + `"}`,
		`quo"ted&<secret`:                        strings.Repeat("*", 15),
	} {
		if got := string(v.apply([]byte(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

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
		l := childLog{path: path, start: int64(len("earlier: " + secret + "\n")), secrets: newSecretMask([]string{secret})}
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
