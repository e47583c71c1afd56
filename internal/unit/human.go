package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// digits is the number of significant digits of measured values; whole numbers of four digits keep all.
const digits = 3

// Unknown is shown if there is no value.
const Unknown = "–"

// step is a unit in a list of ascending sizes. Values from most on use the next step.
type step struct {
	size float64
	name string
	most float64
}

var (
	timeSteps = []step{{1e-9, " ns", 1000}, {1e-6, " µs", 1000}, {1e-3, " ms", 1000}, {1, " s", 0}}
	// Plain numbers of four digits stay whole: "1050", not "1.05k".
	plainSteps = []step{{1, "", 10000}, {1e3, "k", 1000}, {1e6, "M", 1000}, {1e9, "G", 0}}
	byteSteps  = []step{
		{1, " B", 1024},
		{1 << 10, " KiB", 1024},
		{1 << 20, " MiB", 1024},
		{1 << 30, " GiB", 1024},
		{1 << 40, " TiB", 1024},
		{1 << 50, " PiB", 0},
	}
	noSteps = []step{{1, "", 0}}
)

// Seconds prints a time in seconds: "4.02 ms", "31 s", from two minutes on "9m10s".
func Seconds(s float64) string {
	if s == 0 {
		return "0 s"
	}
	if s >= 120 && s < 9e9 {
		return compound(s)
	}
	return scaled(s, timeSteps, "")
}

func compound(s float64) string {
	d, to := time.Duration(s*float64(time.Second)), time.Second
	if d >= 10*time.Hour {
		to = time.Minute
	}
	return Duration(d.Round(to)).String()
}

// PerSecond prints a rate in 1/s: "163/s", "1050/s", "12.4k/s".
func PerSecond(r float64) string { return scaled(r, plainSteps, "/s") }

// Bytes prints a size in binary units: "1.2 GiB", "64 KiB", "100 B".
func Bytes(b float64) string { return scaled(b, byteSteps, "") }

// Share prints a ratio as a percentage: "2%", "0.13%", "59%".
func Share(ratio float64) string { return scaled(ratio*100, noSteps, "%") }

// Number prints a plain number: "163", "0.98", "12.4k".
func Number(v float64) string { return scaled(v, plainSteps, "") }

// Decimal prints a plain number with at most so many significant digits, and never with an exponent or a prefix:
// "20040", "16.67", "0.00012". Further whole digits are zeros.
func Decimal(v float64, significant int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return scaled(v, noSteps, "")
	}
	return exact(roundTo(v, significant))
}

// scaled prints v with the unit that fits the rounded value: 999.7 µs becomes "1 ms", not "1000 µs".
func scaled(v float64, steps []step, suffix string) string {
	switch {
	case math.IsNaN(v):
		return Unknown
	case math.IsInf(v, 0):
		return strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+") + suffix
	case v < 0:
		return "-" + scaled(-v, steps, suffix)
	}
	i := 0
	for i+1 < len(steps) && shown(v/steps[i].size) >= steps[i].most {
		i++
	}
	return exact(shown(v/steps[i].size)) + steps[i].name + suffix
}

// shown rounds to the printed precision: three significant digits, or whole numbers.
func shown(v float64) float64 {
	if v >= 1000 {
		return math.Round(v)
	}
	return roundTo(math.Abs(v), digits)
}

// roundTo rounds v to n significant digits.
func roundTo(v float64, n int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', n-1, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// Count prints how many there are of what a noun in the singular names: "1 process", "2 processes", "3 sets of keys".
func Count[N ~int | ~int64 | ~uint64](n N, noun string) string {
	return fmt.Sprintf("%d %s", n, Plural(n, noun))
}

// Plural returns the noun as it stands behind the number n. What follows "of" stays as it is.
func Plural[N ~int | ~int64 | ~uint64](n N, noun string) string {
	if n == 1 {
		return noun
	}
	head, of, has := strings.Cut(noun, " of ")
	if has {
		of = " of " + of
	}
	last := func(ends ...string) bool {
		for _, e := range ends {
			if strings.HasSuffix(head, e) {
				return true
			}
		}
		return false
	}
	switch {
	case last("s", "x", "z", "ch", "sh"):
		head += "es"
	case last("y") && !last("ay", "ey", "oy", "uy"):
		head = strings.TrimSuffix(head, "y") + "ies"
	default:
		head += "s"
	}
	return head + of
}
