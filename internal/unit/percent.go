package unit

import (
	"fmt"
	"strconv"
)

// Percent is a share as a ratio: "2%" is 0.02. It is never negative, and may exceed 1.
type Percent float64

// ParsePercent parses "2%" or "0.1 %". A bare number is an error, since 0.02 and 2 could mean the same.
func ParsePercent(text string) (Percent, error) {
	q, err := split(text)
	if err != nil {
		return 0, fmt.Errorf("share %w; write it like 2%%", err)
	}
	switch {
	case q.unit == "%":
		return Percent(q.value / 100), nil
	case q.unit == "" && q.value > 0 && q.value < 1:
		return 0, fmt.Errorf("share %q has no %% sign: did you mean %s%%?", text, exact(roundTo(q.value*100, 12)))
	case q.unit == "":
		return 0, fmt.Errorf("share %q has no %% sign: did you mean %s%%?", text, q.digits)
	}
	return 0, fmt.Errorf("share %q cannot be read: write it like 2%%", text)
}

// Ratio is the share as a ratio.
func (p Percent) Ratio() float64 { return float64(p) }

// String returns the exact form: "2%". It is the shortest percentage that parses to the same ratio.
func (p Percent) String() string {
	for digits := 1; digits < 18; digits++ {
		s := plain(strconv.FormatFloat(float64(p)*100, 'e', digits-1, 64))
		if back, err := ParsePercent(s + "%"); err == nil && back == p {
			return s + "%"
		}
	}
	return exact(float64(p)*100) + "%"
}

// plain turns "1.5e+01" into "15".
func plain(s string) string {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	return exact(v)
}

// MarshalText implements encoding.TextMarshaler.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler by ParsePercent.
func (p *Percent) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePercent(string(text))
	return err
}
