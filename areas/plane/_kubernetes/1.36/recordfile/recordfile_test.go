package recordfile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// text is a record as v1.36.3 writes it.
func text(ref string, secrets int) string {
	var list []string
	for k := range secrets {
		list = append(list, fmt.Sprintf(`{"uid":"u%d","namespace":"ns-%d","name":"regcred","credentialHash":"h%d"}`, k, k, k))
	}
	return `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2026-01-02T03:04:05Z","imageRef":"` + ref +
		`","credentialMapping":{"registry.example.com/a":{"kubernetesSecrets":[` + strings.Join(list, ",") + `]}}}` + "\n"
}

// stocked is a folder with records of these images, of one secret each.
func stocked(t *testing.T, refs ...string) (string, Want) {
	t.Helper()
	folder, w := t.TempDir(), Want{Files: map[string]bool{}, Secrets: 1}
	for _, ref := range refs {
		put(t, folder, Pulled, Name(ref), text(ref, 1))
		w.Files[Name(ref)] = true
	}
	return folder, w
}

func put(t *testing.T, folder, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, filepath.FromSlash(dir), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLook(t *testing.T) {
	folder, w := stocked(t, "a", "b", "c")
	if f, err := w.Look(folder); err != nil || f.Records != 3 || len(f.Left)+len(f.Changed) > 0 {
		t.Errorf("%+v, %v", f, err)
	}
	left := []string{
		put(t, folder, Pulling, Name("x"), "{}"), put(t, folder, Pulled, Name("x"), text("x", 1)),
		put(t, folder, Pulled, Name("a")+".tmp", "{"),
	}
	put(t, folder, Pulled, Name("b"), text("b", 2))
	f, err := w.Look(folder)
	slices.Sort(left)
	slices.Sort(f.Left)
	if err != nil || !slices.Equal(f.Left, left) || !slices.Equal(f.Changed, []string{"b"}) {
		t.Errorf("%+v, %v", f, err)
	}
	if n, err := Count(folder); err != nil || n != 4 { // the temporary one is none
		t.Errorf("counted %d, %v", n, err)
	}
	if _, err := Count(t.TempDir()); err == nil {
		t.Error("counted where there is nothing")
	}
}

// TestDamage: what upstream would only log is an error that names the file.
func TestDamage(t *testing.T) {
	good := text("b", 1)
	for name, c := range map[string]struct{ text, says string }{
		"truncated":     {good[:len(good)/2], "is no record: unexpected EOF"},
		"empty":         {"", "is no record: EOF"},
		"garbage":       {"\x00\x01moo", "is no record: invalid character"},
		"two":           {good + good, "something follows it"},
		"version":       {strings.Replace(good, "v1beta1", "v9", 1), `of "kubelet.config.k8s.io/v9", not ImagePulledRecord`},
		"kind":          {strings.Replace(good, "ImagePulledRecord", "ImagePullIntent", 1), `is "ImagePullIntent" of`},
		"field":         {strings.Replace(good, "imageRef", "imageReference", 1), `unknown field "imageReference"`},
		"another image": {text("a", 1), `is of another image, "a"`},
		"no secret":     {text("b", 0), "holds 0 secrets, want 1"},
	} {
		folder, w := stocked(t, "a", "b")
		path := put(t, folder, Pulled, Name("b"), c.text)
		if f, err := w.Look(folder); err == nil || !strings.Contains(err.Error(), path) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v, want %q of %s", name, f, err, c.says, path)
		}
	}
	folder, w := stocked(t, "a", "b")
	if err := os.Remove(filepath.Join(folder, filepath.FromSlash(Pulled), Name("a"))); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Look(folder); err == nil || !strings.Contains(err.Error(), Name("a")) {
		t.Errorf("missing: %v", err)
	}
	folder, w = stocked(t, "a")
	path := put(t, folder, Pulled, "notes.txt", "mine")
	if _, err := w.Look(folder); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a file of somebody else: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{text("a", 2), "{}", "null", text("a", 1)[:50], "[]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ref, n, err := Read(b)
		if err != nil && (ref != "" || n != 0) {
			t.Errorf("%q: %q, %d and %v", b, ref, n, err)
		}
		if err == nil && !strings.Contains(string(b), kind) && !strings.Contains(string(b), `\u`) {
			t.Errorf("%q was taken for a record", b)
		}
	})
}
