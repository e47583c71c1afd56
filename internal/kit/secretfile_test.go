package kit

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tare/area"
	"tare/rigs/hosttest"
)

// secretFile writes a secret into a folder of its own, whose path is safe unless the test changes it.
func secretFile(t *testing.T, mode os.FileMode) (dir, path string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "own")
	path = filepath.Join(dir, "key")
	for _, err := range []error{os.Mkdir(dir, 0o700), os.WriteFile(path, []byte("hunter2"), 0o600), os.Chmod(path, mode)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir, path
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSecretFilesThatOthersCanWriteAreRefused, and so are those that they can replace.
func TestSecretFilesThatOthersCanWriteAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		mode   os.FileMode
		change func(dir, path string) error
		says   string // empty: it is read
	}{
		"private":              {0o600, nil, ""},
		"readable":             {0o644, nil, ""},
		"written by the group": {0o620, nil, "chmod 600"},
		"written by all":       {0o602, nil, "chmod 600"},
		"folder of all":        {0o600, func(dir, _ string) error { return os.Chmod(dir, 0o707) }, "chmod go-w"},
		"folder of another group": {0o600, func(dir, _ string) error {
			return errors.Join(os.Chown(dir, 0, 65534),
				os.Chmod(dir, 0o770))
		}, "chmod go-w"},
		"folder of its own group": {0o600, func(dir, _ string) error {
			return errors.Join(os.Chown(dir, 1000, 1000),
				os.Chmod(dir, 0o775))
		}, ""},
		"folder of root's group": {0o600, func(dir, _ string) error {
			return errors.Join(os.Chown(dir, 0, 0), os.Chmod(dir, 0o775))
		}, "chmod go-w"},
		"sticky folder":     {0o600, func(dir, _ string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }, ""},
		"folder further up": {0o600, func(dir, _ string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, "chmod go-w"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, path := secretFile(t, c.mode)
			if c.change != nil {
				if strings.Contains(name, "group") && os.Geteuid() != 0 {
					hosttest.Missing(t, "only root may", hosttest.Root)
				}
				must(t, c.change(dir, path))
			}
			got, err := (area.Secret{File: path}).Resolve(nil)
			switch {
			case c.says == "" && (err != nil || got != "hunter2"):
				t.Errorf("got %q, %v; want the secret", got, err)
			case c.says != "" && (err == nil || got != "" || !strings.Contains(err.Error(), c.says) ||
				strings.Contains(err.Error(), "hunter2")):
				t.Errorf("%q, %v; want %q", got, err, c.says)
			}
			says := "holds no certificate in PEM" // it is read
			if c.says != "" {
				says = "chmod go-w"
			}
			if _, err := (&TLS{CA: path}).Config("host", nil); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("as an authority: %v, want %q", err, says)
			}
		})
	}
}

// TestLinksToSecretsAreChecked: a link leads through two folders, either of which another user might control.
func TestLinksToSecretsAreChecked(t *testing.T) {
	dir, path := secretFile(t, 0o600)
	from := filepath.Join(t.TempDir(), "from")
	link := filepath.Join(from, "link")
	must(t, os.Mkdir(from, 0o700), os.Symlink(path, link))
	if _, err := (area.Secret{File: link}).Resolve(nil); err != nil {
		t.Error(err)
	}
	for _, open := range []string{from, dir} {
		must(t, os.Chmod(open, 0o777))
		if _, err := (area.Secret{File: link}).Resolve(nil); err == nil || !strings.Contains(err.Error(), open) {
			t.Errorf("got an error without %s: %v", open, err)
		}
		must(t, os.Chmod(open, 0o700))
	}
}

// TestKubernetesSecretVolumesAreRead: such a volume is a sticky folder that everybody may write, with links to files of
// root that everybody may read.
func TestKubernetesSecretVolumesAreRead(t *testing.T) {
	volume := filepath.Join(t.TempDir(), "serviceaccount")
	stamped := filepath.Join(volume, "..2026_11_22_15_00_00.123")
	path := filepath.Join(volume, "token")
	must(t, os.Mkdir(volume, 0o700), os.Mkdir(stamped, 0o755), os.Chmod(volume, 0o777|os.ModeSticky),
		os.WriteFile(filepath.Join(stamped, "token"), []byte("hunter2"), 0o644),
		os.Symlink(filepath.Base(stamped), filepath.Join(volume, "..data")), os.Symlink("..data/token", path))
	if got, err := (area.Secret{File: path}).Resolve(nil); err != nil || got != "hunter2" {
		t.Errorf("got %q, %v; want the secret", got, err)
	}
	if found := ExposedSecrets(&secretSpec{A: area.Secret{File: path}}, nil); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

// TestSecretsAreReadFromPipes: token: {file: /dev/stdin}, and the <(…) of a shell.
func TestSecretsAreReadFromPipes(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	_, err = w.WriteString("hunter2\n")
	must(t, err, w.Close())
	defer func() { _ = r.Close() }()
	if got, err := (area.Secret{File: "/proc/self/fd/" + strconv.FormatUint(uint64(r.Fd()),
		10)}).Resolve(nil); err != nil ||
		got != "hunter2" {
		t.Errorf("got %q, %v; want the secret", got, err)
	}
}

// TestReadableSecretFilesAreReported, with the command that fixes it.
func TestReadableSecretFilesAreReported(t *testing.T) {
	_, private := secretFile(t, 0o600)
	_, readable := secretFile(t, 0o640)
	_, all := secretFile(t, 0o604)
	found := ExposedSecrets(&secretSpec{
		A: area.Secret{File: private}, B: &TLS{Key: area.Secret{File: readable}},
		C: map[string]area.Secret{"x": {File: all}, "y": {Env: "HOME"}, "z": {File: all}},
	}, nil)
	if len(found) != 2 {
		t.Fatalf("found %+v", found)
	}
	said := found[0].Message + found[1].Message
	if !strings.Contains(said, readable) || !strings.Contains(said, all) || found[0].Severity != area.Warning ||
		!strings.HasPrefix(found[0].Hint, "chmod 600 /") {
		t.Errorf("found %+v", found)
	}
	if os.Geteuid() != 0 {
		return
	}
	must(t, os.Chown(private, 65534, 65534))
	if found := ExposedSecrets(&secretSpec{A: area.Secret{File: private}}, nil); len(found) != 1 ||
		!strings.Contains(found[0].Message, "belongs to another user (uid 65534)") {
		t.Errorf("found %+v", found)
	}
	must(t, os.Chown(private, 0, 0), os.Chown(filepath.Dir(private), 65534, 65534))
	if found := ExposedSecrets(&secretSpec{A: area.Secret{File: private}}, nil); len(found) != 1 ||
		!strings.Contains(found[0].Message, "can replace the file with secrets") {
		t.Errorf("found %+v", found)
	}
}

type secretSpec struct {
	A area.Secret
	B *TLS
	C map[string]area.Secret
}

func (*secretSpec) Validate(area.Asked, []area.Treatment) []area.Finding { return nil }
func (s *secretSpec) Under(area.Treatment) (area.Spec, error)            { return s, nil }
func (*secretSpec) Says() area.Says                                      { return area.Says{Loopback: true} }
