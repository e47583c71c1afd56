package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"tare/internal/area/sandbox/policy"
)

// OwnRules is a policy of the user's, from a file.
type OwnRules struct {
	Name   string        `json:"name"` // the path, as the experiment gives it
	Sum    string        `json:"sum"`  // SHA-256 of the file
	Policy policy.Policy `json:"policy"`
}

// mostOwnRules bounds the size of the file.
const mostOwnRules = 1 << 20

// readOwnRules reads a policy. The error names the path.
func readOwnRules(path string) (*OwnRules, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s: want a regular file", path), err)
	}
	text, err := io.ReadAll(io.LimitReader(f, mostOwnRules+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(text) > mostOwnRules {
		return nil, fmt.Errorf("%s: longer than %d bytes, which no policy needs", path, mostOwnRules)
	}
	p, err := policy.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	sum := sha256.Sum256(text)
	return &OwnRules{Name: path, Sum: hex.EncodeToString(sum[:]), Policy: p}, nil
}
