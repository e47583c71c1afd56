package area

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"tare/internal/design"
)

// OpenSecret opens a file with secrets to be read. It refuses one that other users can write, or replace because they
// can write a folder on the way to it: what is in it decides who we are, and in a kubeconfig also what is run.
func OpenSecret(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := guarded(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// CheckSecretFile returns the error with which OpenSecret would refuse a file that exists. One that cannot be opened is
// left to whoever needs it.
func CheckSecretFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // its reader says what is wrong
	}
	return errors.Join(guarded(f, path), f.Close())
}

// guarded is an error where other users can change what f holds. What cannot be written by anybody, as a secret that
// Kubernetes mounts, is fine, and so is what is no file, as a pipe.
func guarded(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || readOnly(f) {
		return nil
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("other users can write %s (mode %#o): look at what it holds, then: chmod 600 %[1]s", path, mode)
	}
	for _, dir := range foldersOf(path) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if othersWrite(info) {
			return fmt.Errorf("other users can replace %s, since they can write the folder %s (mode %#o): look at what the "+
				"file holds, then: chmod go-w %[2]s",
				path, dir, info.Mode().Perm())
		}
	}
	return nil
}

// foldersOf are the folders above a file, by its own path and by that of what it is a link to.
func foldersOf(path string) []string {
	found := map[string]bool{}
	above := func(path string) {
		for dir := filepath.Dir(path); !found[dir]; dir = filepath.Dir(dir) {
			found[dir] = true
		}
	}
	if p, err := filepath.Abs(path); err == nil {
		above(p)
	}
	if p, err := filepath.EvalSymlinks(path); err == nil {
		if p, err = filepath.Abs(p); err == nil {
			above(p)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// othersWrite reports whether other users can replace what is in a folder. With the sticky bit, as /tmp has it and the
// volumes of Kubernetes, they can replace only what is theirs. A group of the owner's own, which has the owner's
// number, has no other member.
func othersWrite(info os.FileInfo) bool {
	mode := info.Mode()
	if mode&fs.ModeSticky != 0 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	private := ok && st.Gid == st.Uid
	return mode.Perm()&0o002 != 0 || (mode.Perm()&0o020 != 0 && !private)
}

// SecretFiler is a Spec that names files with secrets which are no Secret: a kubeconfig.
type SecretFiler interface{ SecretFiles() []string }

// ExposedSecrets warns of files named in the sections of all treatments that other users can read. What cannot be
// opened is left to whoever needs it.
func ExposedSecrets(s Spec, treatments []design.Treatment) (out []Finding) {
	var paths []string
	for _, section := range Specs(s, treatments) {
		for _, x := range SecretsOf(section) {
			paths = append(paths, x.File)
		}
		if x, ok := section.(SecretFiler); ok {
			paths = append(paths, x.SecretFiles()...)
		}
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if path == "" {
			continue
		}
		if f, ok := exposed(path); ok {
			out = append(out, f)
		}
	}
	return out
}

// exposed says who else can read a file.
func exposed(path string) (Finding, bool) {
	f, err := os.Open(path)
	if err != nil {
		return Finding{}, false
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || mounted(f, path) {
		return Finding{}, false
	}
	owner, foreign := stranger(info)
	switch mode := info.Mode().Perm(); {
	case foreign:
		return Finding{
			Severity: Warning, Message: fmt.Sprintf(
				"the file with secrets %s belongs to another user (uid %d), who can read and replace it", path, owner),
			Hint: fmt.Sprintf("chown %d %s", os.Geteuid(), path),
		}, true
	case mode&0o077 != 0:
		return Finding{
			Severity: Warning, Message: fmt.Sprintf("other users can read the file with secrets %s (mode %#o)", path, mode),
			Hint: "chmod 600 " + path,
		}, true
	}
	return replaceable(path)
}

// replaceable warns of a folder on the way to a file that belongs to another user, who can put another file there.
func replaceable(path string) (Finding, bool) {
	for _, dir := range foldersOf(path) {
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		if owner, foreign := stranger(info); foreign {
			return Finding{
				Severity: Warning,
				Message: fmt.Sprintf("the folder %s belongs to another user (uid %d), who can replace the file with secrets %s",
					dir, owner, path),
				Hint: "move the file into a folder of your own",
			}, true
		}
	}
	return Finding{}, false
}

// stranger is who owns a file, where that is neither root nor the user of this process.
func stranger(info os.FileInfo) (owner uint32, foreign bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 || int(st.Uid) == os.Geteuid() {
		return 0, false
	}
	return st.Uid, true
}

// mounted reports whether somebody has put the file there for this process alone: Kubernetes, whose volumes lead
// through the link ..data, or another that gives secrets by a mount which cannot be written.
func mounted(f *os.File, path string) bool {
	if _, err := os.Readlink(filepath.Join(filepath.Dir(path), "..data")); err == nil {
		return true
	}
	return readOnly(f)
}

// SecretsOf lists the secrets in a section of a file, each once.
func SecretsOf(section any) []Secret { return secretsOf(section, nil) }

// SentSecrets lists those that go over the network, each once: not the private keys of TLS.
func SentSecrets(section any) []Secret { return secretsOf(section, reflect.TypeFor[TLS]()) }

func secretsOf(section any, except reflect.Type) []Secret {
	found := map[Secret]bool{}
	collectSecrets(reflect.ValueOf(section), except, found)
	delete(found, Secret{})
	return slices.SortedFunc(maps.Keys(found), func(a, b Secret) int { return strings.Compare(a.String(), b.String()) })
}

func collectSecrets(v reflect.Value, except reflect.Type, into map[Secret]bool) {
	switch v.Kind() { //nolint:exhaustive // nothing else holds any
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			collectSecrets(v.Elem(), except, into)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collectSecrets(v.Index(i), except, into)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			collectSecrets(v.MapIndex(key), except, into)
		}
	case reflect.Struct:
		if x, ok := reflect.TypeAssert[Secret](v); ok {
			into[x] = true
			return
		}
		if v.Type() == except {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				collectSecrets(v.Field(i), except, into)
			}
		}
	}
}
