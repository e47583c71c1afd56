package kit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/area"
)

func TestSecretResolve(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"SET": "hunter2\n", "EMPTY": "\r\n"}[name]
		return v, ok
	}
	for _, c := range []struct {
		s    area.Secret
		want string
		bad  string // part of the error
	}{
		{area.Secret{}, "", ""},
		{area.Secret{Env: "SET"}, "hunter2", ""},
		{area.Secret{Env: "MISSING"}, "", "not set"},
		{area.Secret{Env: "EMPTY"}, "", "empty"},
		{area.Secret{File: put("good", " hunter2 \r\n")}, " hunter2 ", ""},
		{area.Secret{File: put("empty", "\n\n")}, "", "empty"},
		{area.Secret{File: put("large", strings.Repeat("hunter2", 1<<20))}, "", "longer"},
		{area.Secret{File: filepath.Join(dir, "none")}, "", "none"},
	} {
		got, err := c.s.Resolve(env)
		switch {
		case (err != nil) != (c.bad != "") || got != c.want:
			t.Errorf("%s: %q, %v; want %q", c.s, got, err, c.want)
		case err != nil && (!strings.Contains(err.Error(), c.bad) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: got %v, want %q without the secret", c.s, err, c.bad)
		}
	}
	if _, err := (area.Secret{File: filepath.Join(dir, "none")}).Resolve(env); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cause is lost: %v", err)
	}
	if got := fmt.Sprintf("%v %v %v", area.Secret{Env: "A"}, area.Secret{File: "b"},
		area.Secret{}); got != "{env: A} {file: b} {}" {
		t.Error(got)
	}
}
