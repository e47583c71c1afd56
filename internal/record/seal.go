package record

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tare/area"
)

// A Key seals those lines of a record that are acted on later: changes to undo and plans to resume. Only its user can
// read it, so no other user can write a line with a valid seal. An empty key seals nothing.
type Key []byte

const keySize = 32

// LoadKey reads this user's key from folder dir, and makes both if necessary.
func LoadKey(dir string) (Key, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("load key: %w", err)
	}
	folder, err := ownFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("load key: %w", err)
	}
	key, err := keyIn(folder)
	if err := errors.Join(err, folder.Close()); err != nil {
		return nil, fmt.Errorf("load key %s: %w", filepath.Join(dir, "key"), err)
	}
	return key, nil
}

func keyIn(folder *os.Root) (Key, error) {
	for range 2 {
		f, err := folder.Open("key")
		if err == nil {
			return readKey(f)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if err := makeKey(folder); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	return nil, errors.New("it comes and goes")
}

// makeKey writes the key file atomically: another process may read it meanwhile.
func makeKey(folder *os.Root) error {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails
	draft := "key-" + rand.Text()
	f, err := folder.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(key)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = folder.Link(draft, "key")
	}
	return errors.Join(err, folder.Remove(draft))
}

func readKey(f *os.File) (Key, error) {
	key, err := io.ReadAll(io.LimitReader(f, keySize+1))
	st, statErr := f.Stat()
	if err := errors.Join(err, statErr, f.Close()); err != nil {
		return nil, err
	}
	if len(key) != keySize {
		return nil, fmt.Errorf("it holds %d bytes, not %d: remove it, and another is made", len(key), keySize)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return nil, errors.New("other users may read it: remove it, and another is made")
	}
	return key, nil
}

// seal returns the MAC of v under the key, as the given kind of entry of the run with that id.
func (k Key) seal(id, kind string, v any) (string, error) {
	if len(k) == 0 || id == "" {
		return "", nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	h := hmac.New(sha256.New, k)
	for _, part := range [][]byte{[]byte(id), []byte(kind), b} {
		_, _ = fmt.Fprintf(h, "%d ", len(part)) // the length separates the parts; writing to a hash does not fail
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sealed reports whether seal is valid under the key.
func (k Key) sealed(seal, id, kind string, v any) bool {
	want, err := k.seal(id, kind, v)
	return err == nil && want != "" && hmac.Equal([]byte(want), []byte(seal))
}

// Genuine reports whether a tare with this key wrote the record's header.
func (r *Record) Genuine(k Key) bool {
	h := r.Header
	h.Seal = ""
	return k.sealed(r.Header.Seal, h.ID, string(KindHeader), h)
}

// Foreign lists the pending changes that were not written into this record by a tare with this key.
func (r *Record) Foreign(k Key) []area.Change {
	header, genuine := r.Genuine(k), map[string]bool{}
	for _, c := range r.Changes {
		if seal := c.Seal; c.State == Intended {
			c.Seal = ""
			genuine[changeKey(c.Change)] = header && k.sealed(seal, r.Header.ID, string(KindChange), c)
		}
	}
	var foreign []area.Change
	for _, c := range r.Pending() {
		if !genuine[changeKey(c)] {
			foreign = append(foreign, c)
		}
	}
	return foreign
}
