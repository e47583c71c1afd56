package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// unreadable stands for the content of a file that is executable and not readable.
const unreadable = "cannot be read"

// Sum returns the SHA-256 of a file of the user's in hexadecimal digits.
func Sum(path string) (sum string, err error) {
	f, err := ForReading(path)
	if errors.Is(err, fs.ErrPermission) {
		return unreadable, nil
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
