package unit

import (
	"fmt"
	"strings"
	"time"
)

// Duration is a length of time, never negative.
type Duration time.Duration

const durationExample = "write it like 30s, 500ms or 1m30s"

// ParseDuration parses "30s", "1m30s", "500ms", "4.02 ms", "2d" or "0". A bare number is an error.
func ParseDuration(text string) (Duration, error) {
	s := strings.TrimSpace(text)
	if s == "0" {
		return 0, nil
	}
	q, err := split(s)
	if err != nil {
		return 0, fmt.Errorf("duration %w; %s", err, durationExample)
	}
	if q.unit == "" {
		return 0, fmt.Errorf("duration %q has no unit: did you mean %ss or %sms?", text, s, s)
	}
	if q.unit == "d" {
		return fromSeconds(q.value*24*3600, text)
	}
	d, err := time.ParseDuration(strings.Replace(s, " ", "", 1))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("duration %q cannot be read: the units are ns, us, ms, s, m, h and d; %s", text, durationExample)
	}
	return Duration(d), nil
}

func fromSeconds(s float64, text string) (Duration, error) {
	ns := s * 1e9
	if ns >= 1<<63 {
		return 0, fmt.Errorf("duration %q is too long: the most is about 290 years", text)
	}
	return Duration(ns), nil
}

// Std returns the duration as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String returns the exact form, without the zero parts that the standard library adds: "1m30s", "50m", "2h".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler by ParseDuration.
func (d *Duration) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDuration(string(text))
	return err
}
