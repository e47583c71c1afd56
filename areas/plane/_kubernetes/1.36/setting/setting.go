// Package setting reads the levels of a treatment of the pull manager.
package setting

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/plane/driver"
	"tare/plane/sequence"
)

// The accessors: where the pull manager looks for its records.
const (
	Disabled = "disabled" // no pull manager: upstream's NoopImagePullManager
	DirectFS = "directfs" // in a directory, each time
	Cached   = "cached"   // in a cache with room for all of them, over the directory
	LRU      = "lru"      // in a cache of Size records, over the directory
)

// The policies of the kubelet, by the names in its configuration.
const (
	AlwaysVerify               = "AlwaysVerify"
	NeverVerifyPreloadedImages = "NeverVerifyPreloadedImages" // its default
)

// Policies returns all policies.
func Policies() []string { return []string{AlwaysVerify, NeverVerifyPreloadedImages} }

// Accessors returns all accessors.
func Accessors() []string { return []string{Disabled, DirectFS, Cached, LRU} }

const (
	mostRecords = 100_000
	mostSecrets = 5_000
	// mostFilled limits the secrets of all records together: each takes 300 bytes on disk and time to write.
	mostFilled = 1_000_000
	// mostStripes is the number of locks in upstream's striped lock, whatever number it is asked for; but it hashes
	// over the requested number.
	mostStripes = 31
	// mostAtOnce limits the goroutines that make calls.
	mostAtOnce = 256
)

// Setting is a parsed treatment.
type Setting struct {
	Accessor    string
	Size        int // of LRU, records
	Records     int
	Hits        float64 // share of the checks that ask for an image with a record, 0…1
	Pattern     string
	Exponent    float64
	Window      int
	Turnover    float64 // 0…1
	Concurrency int
	Stripes     int
	Secrets     int // per record
	Policy      string
}

// fields returns the parser of each level, by name.
func (s *Setting) fields() map[string]func(string) error {
	return map[string]func(string) error{
		"accessor":    one(&s.Accessor, Accessors()),
		"size":        number(&s.Size, mostRecords),
		"records":     number(&s.Records, mostRecords),
		"hits":        percent(&s.Hits),
		"pattern":     one(&s.Pattern, sequence.Patterns()),
		"exponent":    exponent(&s.Exponent),
		"window":      number(&s.Window, mostRecords),
		"turnover":    percent(&s.Turnover),
		"concurrency": number(&s.Concurrency, mostAtOnce),
		"stripes":     stripes(&s.Stripes),
		"secrets":     number(&s.Secrets, mostSecrets),
		"policy":      one(&s.Policy, Policies()),
	}
}

// Default returns the setting of a treatment that names no levels.
func Default() Setting {
	return Setting{
		Accessor: Cached, Size: 100, Records: 100, Hits: 1, Pattern: sequence.Uniform, Exponent: 1.1, Window: 50,
		Turnover:    0.1,
		Concurrency: 1, Stripes: 1, Secrets: 1, Policy: AlwaysVerify,
	}
}

// Parse reads levels. The error is a *driver.Failure that names the level.
func Parse(levels map[string]string) (Setting, error) {
	s := Default()
	fields := s.fields()
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		read := fields[name]
		if read == nil {
			return Setting{}, refuse("take it out", "level %q is none of %s", name, strings.Join(Names(), ", "))
		}
		if err := read(levels[name]); err != nil {
			return Setting{}, named(name, err)
		}
	}
	if s.Records*s.Secrets > mostFilled {
		return Setting{}, refuse(fmt.Sprintf("lower one of them: together they may be %d", mostFilled),
			"%d records of %d secrets each are %d secrets", s.Records, s.Secrets, s.Records*s.Secrets)
	}
	return s, nil
}

// Names returns the names of all levels, in order.
func Names() []string { return slices.Sorted(maps.Keys((&Setting{}).fields())) }

func refuse(next, format string, args ...any) error {
	return &driver.Failure{Err: fmt.Errorf(format, args...), Next: next}
}

func named(level string, err error) error {
	f, ok := err.(*driver.Failure) //nolint:errorlint // the functions below return it as it is
	if !ok {
		return &driver.Failure{Err: fmt.Errorf("%s: %w", level, err), Next: "set " + level + " to such a value"}
	}
	return &driver.Failure{Err: fmt.Errorf("%s: %w", level, f.Err), Next: f.Next}
}

func one(to *string, of []string) func(string) error {
	return func(text string) error {
		if !slices.Contains(of, text) {
			return fmt.Errorf("%q: want one of %s", text, strings.Join(of, ", "))
		}
		*to = text
		return nil
	}
}

func number(to *int, most int) func(string) error {
	return func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("%q: want a whole number from 1 to %d", text, most)
		}
		*to = n
		return nil
	}
}

func percent(to *float64) func(string) error {
	return func(text string) error {
		x, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		if err != nil || !(x >= 0 && x <= 100) {
			return fmt.Errorf("%q: want a percentage from 0 to 100", text)
		}
		*to = x / 100
		return nil
	}
}

// exponent parses the exponent of Zipf's distribution, which math/rand/v2 draws by rejection only above 1.
func exponent(to *float64) func(string) error {
	return func(text string) error {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x > 1 && x <= 10) {
			return fmt.Errorf("%q: want a number above 1, up to 10", text)
		}
		*to = x
		return nil
	}
}

func stripes(to *int) func(string) error {
	read := number(to, 1<<20)
	return func(text string) error {
		if err := read(text); err != nil {
			return err
		}
		if *to > mostStripes {
			return refuse(fmt.Sprintf("set stripes to %d or fewer", mostStripes),
				"%d: the pull manager panics above %d (https://github.com/kubernetes/kubernetes/issues/138935)", *to, mostStripes)
		}
		return nil
	}
}
