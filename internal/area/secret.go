package area

import (
	"fmt"
	"io"
	"strings"
)

// A Secret says where a value is found that must not be written into a file. It holds the place, never the value, so
// that it can be printed and journaled. Exactly one field is set; the zero Secret is none.
type Secret struct {
	Env  string `yaml:"env,omitempty" json:"env,omitempty"`   // name of an environment variable
	File string `yaml:"file,omitempty" json:"file,omitempty"` // path of a file
}

// maxSecret bounds what is read of a file, in bytes.
const maxSecret = 1 << 20

// IsZero reports whether no place is named.
func (s Secret) IsZero() bool { return s == Secret{} }

// String names the place: "{env: NAME}" or "{file: path}".
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

// Resolve reads the value, without line ends after it. getenv looks up an environment variable. It is an error when
// there is no value; no error holds any part of one.
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
	f, err := OpenSecret(path)
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
