package area

import (
	"fmt"
	"io"
	"strings"

	"tare/internal/secretfile"
)

// A Secret says where to find a value that must not be written into a file. It holds the location, never the value, so
// that it can be printed and journaled. Exactly one field is set; the zero Secret means no secret.
type Secret struct {
	Env  string `yaml:"env,omitempty" json:"env,omitempty"`   // name of an environment variable
	File string `yaml:"file,omitempty" json:"file,omitempty"` // path of a file
}

// maxSecret bounds how much of a file is read, in bytes.
const maxSecret = 1 << 20

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

// String returns the location: "{env: NAME}" or "{file: path}".
func (s Secret) String() string {
	switch {
	case s.Env != "":
		return "{env: " + s.Env + "}"
	case s.File != "":
		return "{file: " + s.File + "}"
	default:
		return "{}"
	}
}

// Resolve reads the value, without trailing line ends. getenv looks up an environment variable. It fails if the value
// is missing; no error quotes any part of a value.
func (s Secret) Resolve(getenv func(name string) (string, bool)) (string, error) {
	var value string
	switch {
	case s.Env != "":
		v, ok := getenv(s.Env)
		if !ok {
			return "", fmt.Errorf("read secret %s: the environment variable is not set", s)
		}
		value = v
	case s.File != "":
		v, err := readSecret(s.File)
		if err != nil {
			return "", fmt.Errorf("read secret %s: %w", s, err)
		}
		value = v
	default:
		return "", nil
	}
	if value = strings.TrimRight(value, "\r\n"); value == "" {
		return "", fmt.Errorf("read secret %s: it is empty", s)
	}
	return value, nil
}

func readSecret(path string) (value string, err error) {
	f, err := secretfile.Open(path)
	if err != nil {
		return "", err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(b) > maxSecret {
		err = fmt.Errorf("it is longer than %d bytes", maxSecret)
	}
	return string(b), err
}
