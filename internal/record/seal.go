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

	"tare/internal/files"
)

// A Key seals those lines of a record that are acted on later: changes to undo and plans to resume. Only its user can
// read it, so no other user can write a line with a valid seal. An empty key seals nothing.
type Key []byte

const keySize = 32

// LoadKey reads this user's key from folder dir, and makes both if necessary.
func LoadKey(dir string) (Key, error) {
	folder, err := files.MakeLeaf(dir)
	if err != nil {
		return nil, fmt.Errorf("load key: %w", err)
	}
	key, err := keyIn(folder)
	if err := errors.Join(err, folder.Close()); err != nil {
		return nil, fmt.Errorf("load key %s: %w", filepath.Join(dir, "key"), err)
	}
	return key, nil
}

func keyIn(folder *files.Folder) (Key, error) {
	for range 2 {
		f, err := folder.Open("key", os.O_RDONLY)
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
func makeKey(folder *files.Folder) error {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails
	return folder.Create("key", key)
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

// seal returns the MAC of v under the key, as the given kind of entry of the run with that id, after the line with the
// seal before.
func (k Key) seal(id, before string, kind Kind, v any) (string, error) {
	if len(k) == 0 || id == "" {
		return "", nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	h := hmac.New(sha256.New, k)
	for _, part := range [][]byte{[]byte(id), []byte(before), []byte(kind), b} {
		_, _ = fmt.Fprintf(h, "%d ", len(part)) // the length separates the parts; writing to a hash does not fail
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// A sealedLine is a line of the journal with a seal, without the seal.
type sealedLine struct {
	seal string
	kind Kind
	data any
}

// holds reports whether the line's seal is valid under the key, after the line with the seal before.
func (l sealedLine) holds(k Key, id, before string) bool {
	want, err := k.seal(id, before, l.kind, l.data)
	return err == nil && want != "" && hmac.Equal([]byte(want), []byte(l.seal))
}

// Genuine reports whether a tare with this key wrote the record's header.
func (r *Record) Genuine(k Key) bool {
	h := r.Header
	h.Seal = ""
	return sealedLine{r.Header.Seal, KindHeader, h}.holds(k, h.ID, "")
}

// Sealed reports whether a tare with this key wrote all that undo acts upon: the header, the changes, that they are
// undone, and the end of the run; and whether none of these lines was removed from between others.
func (r *Record) Sealed(k Key) bool {
	if !r.Genuine(k) {
		return false
	}
	before := r.Header.Seal
	for _, l := range r.seals {
		if !l.holds(k, r.Header.ID, before) {
			return false
		}
		before = l.seal
	}
	return true
}
