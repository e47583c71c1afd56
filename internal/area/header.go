package area

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// CheckHeaderName refuses what is no name of a header, those that carry HTTP itself, and the protocol's own, in lower case.
func CheckHeaderName(name string, own ...string) error {
	lower := strings.ToLower(name)
	switch lower {
	case "host", "connection", "content-length", "transfer-encoding", "expect", "te", "upgrade":
		return fmt.Errorf("header %s belongs to the protocol", name)
	}
	if slices.Contains(own, lower) {
		return fmt.Errorf("header %s belongs to the protocol", name)
	}
	for _, c := range name {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return fmt.Errorf("%q is not a header name", name)
		}
	}
	if name == "" {
		return errors.New("a header needs a name")
	}
	return nil
}
