package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// A Case is a composition that is kept because the search once answered it wrongly.
type Case struct {
	Composition Composition `json:"composition"`
	// Failures are the ways in which it did; none of them may come back.
	Failures []Failure `json:"failures"`
	// Open is set while the search still fails.
	Open bool `json:"open,omitempty"`
}

// ReadCase reads a kept case.
func ReadCase(path string) (Case, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Case{}, fmt.Errorf("read case: %w", err)
	}
	var c Case
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Case{}, fmt.Errorf("case %s: %w", path, err)
	}
	if err := c.Composition.Validate(); err != nil {
		return Case{}, fmt.Errorf("case %s: %w", path, err)
	}
	return c, nil
}

// Write keeps the case as a file.
func (c Case) Write(path string) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("case %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("keep case: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("keep case: %w", err)
	}
	return nil
}
