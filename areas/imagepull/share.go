package imagepull

import (
	"fmt"
	"strconv"
	"strings"
)

// A Share is a percentage, 0 to 100. "75%" and 75 are the same.
type Share float64

// parseShare parses "75%" or "75".
func parseShare(text string) (Share, error) {
	digits, _ := strings.CutSuffix(strings.TrimSpace(text), "%")
	digits = strings.TrimSpace(digits)
	x, err := strconv.ParseFloat(digits, 64)
	// ParseFloat accepts "1e1", "0x1p3" and "-0" too
	if err != nil || x < 0 || x > 100 || strings.Trim(digits, "0123456789.") != "" {
		return 0, fmt.Errorf("want a percentage from 0%% to 100%%, not %q", text)
	}
	return Share(x), nil
}

// level returns the form for the program: "75".
func (s Share) level() string { return strconv.FormatFloat(float64(s), 'f', -1, 64) }

// String returns the form of the file: "75%".
func (s Share) String() string { return s.level() + "%" }

// MarshalText implements encoding.TextMarshaler.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Share) UnmarshalText(text []byte) (err error) {
	*s, err = parseShare(string(text))
	return err
}
