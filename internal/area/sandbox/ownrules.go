package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"tare/internal/area"
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
	text, err := area.ReadText(path, mostOwnRules)
	if err != nil {
		return nil, err
	}
	p, err := policy.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	sum := sha256.Sum256(text)
	return &OwnRules{Name: path, Sum: hex.EncodeToString(sum[:]), Policy: p}, nil
}

// describe says that the rules are part of a policy; it is empty without any.
func (o *OwnRules) describe() string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf("; the rules of %s (SHA-256 %.24s…) are among them", o.Name, o.Sum)
}
