package area

import (
	"fmt"
	"regexp"
	"slices"
)

// A Quantity is something that is measured. Two packages that declare the same name must declare the same Quantity.
type Quantity struct {
	Name   string `json:"name"` // "response", "cpu", "rss"
	Unit   Unit   `json:"unit"`
	Better Better `json:"better"`
	Noise  Noise  `json:"noise,omitempty"`
	Help   string `json:"help,omitempty"` // one sentence with its source
}

var quantityName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// Valid returns an error if q cannot be reported: budgets and tables need its name, unit and direction.
func (q Quantity) Valid() error {
	switch {
	case !quantityName.MatchString(q.Name):
		return fmt.Errorf("%.80q is no name of a quantity: want lower-case letters, digits, - and _", q.Name)
	case !slices.Contains([]Unit{Seconds, CPUSeconds, Bytes, PerSecond, Count, Ratio}, q.Unit):
		return fmt.Errorf("the quantity %s has the unknown unit %.20q", q.Name, q.Unit)
	case q.Better != Lower && q.Better != Higher, q.Noise != Noisy && q.Noise != Exact:
		return fmt.Errorf("the quantity %s is better %.20q and has the noise %.20q: want lower or higher, and none or exact",
			q.Name, q.Better, q.Noise)
	}
	return nil
}

// Unit is a base unit. Values are always stored in base units.
type Unit string

// The base units.
const (
	Seconds    Unit = "s"
	CPUSeconds Unit = "CPU-s"
	Bytes      Unit = "B"
	PerSecond  Unit = "1/s"
	Count      Unit = "1"
	Ratio      Unit = "ratio"
)

// Better says which direction is an improvement.
type Better string

// The directions.
const (
	Lower  Better = "lower"
	Higher Better = "higher"
)

// Noise says what may be assumed about repeated values.
type Noise string

// The kinds of noise.
const (
	Noisy Noise = ""      // repeated values differ: only intervals may be reported
	Exact Noise = "exact" // repeated values must not differ: variation is a warning
)
