package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Parse reads a policy from YAML or JSON. Unknown fields are errors.
func Parse(text []byte) (Policy, error) {
	var p Policy
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil {
		if errors.Is(err, io.EOF) {
			return p, errors.New("it is empty: want files, execs, connects, mounts, umount, capabilities or ptrace")
		}
		return Policy{}, fmt.Errorf("parse it: %w", err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return Policy{}, errors.New("want one YAML document")
	}
	if wrong := p.Validate(); len(wrong) > 0 {
		return Policy{}, errors.New(strings.Join(wrong, "; "))
	}
	if p.Empty() {
		return Policy{}, errors.New("it refuses nothing: want files, execs, connects, mounts, umount, capabilities or ptrace")
	}
	return p, nil
}
