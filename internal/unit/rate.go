package unit

import (
	"fmt"
	"strings"
)

// Rate is a number of events per second, never negative.
type Rate float64

var perSeconds = map[string]float64{
	"s": 1, "sec": 1, "second": 1,
	"min": 60, "m": 60, "minute": 60,
	"h": 3600, "hour": 3600,
	"d": 86400, "day": 86400,
}

var thousands = map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9}

// ParseRate parses "150/s", "6000/min", "2k/s" or "10/h". A bare number is an error.
func ParseRate(text string) (Rate, error) {
	q, err := split(text)
	if err != nil {
		return 0, fmt.Errorf("rate %w; write it like 150/s or 6000/min", err)
	}
	prefix, per, ok := strings.Cut(q.unit, "/")
	if !ok {
		return 0, fmt.Errorf("rate %q has no time: did you mean %s/s, or %s/min?", text, q.digits, q.digits)
	}
	scale, known := thousands[strings.TrimSpace(prefix)]
	seconds, timed := perSeconds[strings.TrimSpace(per)]
	if !known || !timed {
		return 0, fmt.Errorf("rate %q cannot be read: write it like 150/s, 6000/min or 2k/s", text)
	}
	return Rate(q.value * scale / seconds), nil
}

// PerSecond returns the rate in 1/s.
func (r Rate) PerSecond() float64 { return float64(r) }

// String returns the exact form: "150/s". A rate with many digits per second and few per minute, hour or day is written
// as such: "1000/min".
func (r Rate) String() string {
	const few = 6 // significant digits
	second := exact(float64(r)) + "/s"
	if roundTo(float64(r), few) == float64(r) {
		return second
	}
	for _, per := range []string{"min", "h", "d"} {
		s := exact(roundTo(float64(r)*perSeconds[per], few)) + "/" + per
		if back, err := ParseRate(s); err == nil && back == r {
			return s
		}
	}
	return second
}

// MarshalText implements encoding.TextMarshaler.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler by ParseRate.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRate(string(text))
	return err
}
