// Package unit parses and prints quantities as people write them: durations, rates, sizes, shares and counts. Values
// are kept in base units: seconds (time.Duration), 1/s, bytes, ratios.
//
// Each type prints in two ways. String and MarshalText are exact and parse to the same value. The functions Seconds,
// PerSecond, Bytes, Share and Number print measured values with three or four significant digits.
package unit

import (
	"fmt"
	"strconv"
	"strings"
)

// quantity is a number and its unit.
type quantity struct {
	value  float64
	digits string // the number as written
	unit   string // empty: there is none
}

// split splits a text into number and unit. One blank between them is allowed.
func split(text string) (quantity, error) {
	s := strings.TrimSpace(text)
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '.') {
		n++
	}
	if n == 0 && strings.HasPrefix(s, "-") {
		return quantity{}, fmt.Errorf("%q is negative", text)
	}
	v, err := strconv.ParseFloat(s[:n], 64)
	if err != nil {
		return quantity{}, fmt.Errorf("%q does not begin with a number that can be used", text)
	}
	return quantity{value: v, digits: s[:n], unit: strings.TrimPrefix(s[n:], " ")}, nil
}

// exact prints a number so that it parses to the same value, without an exponent.
func exact(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
