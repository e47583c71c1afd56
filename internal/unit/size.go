package unit

import (
	"fmt"
	"math"
	"strconv"
)

// Size is a number of bytes, never negative.
type Size int64

type scale struct {
	name  string
	bytes int64
}

// binaryScales and decimalScales are in descending order (IEC 80000-13, and the SI).
var (
	binaryScales  = []scale{{"PiB", 1 << 50}, {"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
	decimalScales = []scale{{"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}
)

// ParseSize parses "64KiB", "1MiB", "500MB", "1.5 GiB", "100B" or "0". A bare number, and K or M alone, are errors.
func ParseSize(text string) (Size, error) {
	q, err := split(text)
	if err != nil {
		return 0, fmt.Errorf("size %w; write it like 64KiB or 500MB", err)
	}
	n := bytesOf(q.unit)
	switch {
	case n > 0:
		return q.times(n, text)
	case q.unit == "" && q.value == 0:
		return 0, nil
	case q.unit == "":
		return 0, fmt.Errorf("size %q has no unit: did you mean %sB, %sKiB or %sMiB?", text, q.digits, q.digits, q.digits)
	case len(q.unit) == 1:
		return 0, fmt.Errorf("size %q could mean two things: the units are KiB, MiB, GiB, TiB (1024s) and kB, MB, GB, TB "+
			"(1000s)", text)
	}
	return 0, fmt.Errorf("size %q cannot be read: the units are B, KiB, MiB, GiB, TiB, kB, MB, GB and TB", text)
}

// bytesOf returns the size of a unit, 0 for an unknown one.
func bytesOf(name string) int64 {
	for _, list := range [][]scale{binaryScales, decimalScales, {{"KB", 1e3}}} {
		for _, s := range list {
			if s.name == name {
				return s.bytes
			}
		}
	}
	return 0
}

// times multiplies whole numbers exactly, beyond the 53 bits of a float64; it rounds fractions to whole bytes.
func (q quantity) times(n int64, text string) (Size, error) {
	if whole, err := strconv.ParseInt(q.digits, 10, 64); err == nil && whole <= math.MaxInt64/n {
		return Size(whole * n), nil
	}
	bytes := math.Round(q.value * float64(n))
	if bytes >= 1<<63 {
		return 0, fmt.Errorf("size %q is too large", text)
	}
	return Size(bytes), nil
}

// String returns the exact form in the largest unit that divides it: "64KiB", "500MB", "100B".
func (s Size) String() string {
	if s == 0 {
		return "0B"
	}
	for _, list := range [][]scale{binaryScales, decimalScales} {
		for _, u := range list {
			if int64(s)%u.bytes == 0 {
				return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
			}
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B" // unreachable: 1 divides everything
}

// MarshalText implements encoding.TextMarshaler.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler by ParseSize.
func (s *Size) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSize(string(text))
	return err
}
