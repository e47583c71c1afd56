package imagepull

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"tare/area"
	"tare/internal/unit"
)

// Spec is the `target:` section of an imagepull experiment: what is timed, and the defaults of all treatments.
type Spec struct {
	// Operations are what is timed.
	Operations []string `yaml:"operations,omitempty" json:"operations,omitempty" jsonschema:"minItems=1,maxItems=8" jsonschema_description:"What is timed: check (may a pod use an image that is there?), check-cold (the same after a restart), pull, new-namespace (a known credential in another namespace), restart, prune. Default check. What the harness adds is always measured beside them, by operations that do nothing: empty, and empty-timed for pull and new-namespace."`

	// Accessor is how the pull manager reads its records; also a factor of treatments.
	Accessor string `yaml:"accessor,omitempty" json:"accessor,omitempty" jsonschema_description:"What stands between the pull manager and its records on disk: disabled (no check), directfs (no cache), cached (room for all), lru (room for size records); lru:100 says both. Default cached. Also a factor."`
	// Size is how many records the cache of accessor lru holds.
	Size *int `yaml:"size,omitempty" json:"size,omitempty" jsonschema:"minimum=1,maximum=100000" jsonschema_description:"Records that the cache of accessor lru holds. Default 100. Also a factor."`
	// Records is how many images have one.
	Records *int `yaml:"records,omitempty" json:"records,omitempty" jsonschema:"minimum=1,maximum=100000" jsonschema_description:"Images with a record on disk. Default 100. Also a factor."`
	// Hits is the share of checks that ask for an image with a record.
	Hits *Share `yaml:"hits,omitempty" json:"hits,omitempty" jsonschema_description:"Share of the checks that ask for an image with a record, 0% to 100%; what comes of it is measured. Default 100%. Also a factor."`
	// Pattern is which of the recorded images are asked for.
	Pattern string `yaml:"pattern,omitempty" json:"pattern,omitempty" jsonschema_description:"Which of the recorded images checks ask for: uniform, zipf (some are popular), working-set (mostly some few that change slowly), scan (all in turn, again and again), churn (pods come and go). Default uniform. Also a factor."`
	// Exponent is how popular the popular images are.
	Exponent *float64 `yaml:"exponent,omitempty" json:"exponent,omitempty" jsonschema_description:"Exponent of Zipf's law in the patterns zipf and churn, above 1 and up to 10. Default 1.1. Also a factor."`
	// Window is the working set.
	Window *int `yaml:"window,omitempty" json:"window,omitempty" jsonschema:"minimum=1,maximum=100000" jsonschema_description:"Images in the working set of pattern working-set. Default 50. Also a factor."`
	// Turnover is how many pods go.
	Turnover *Share `yaml:"turnover,omitempty" json:"turnover,omitempty" jsonschema_description:"Share of the checks of pattern churn at which a pod is replaced by one with another image. Default 10%. Also a factor."`
	// Concurrency is how many checks are made at a time.
	Concurrency *int `yaml:"concurrency,omitempty" json:"concurrency,omitempty" jsonschema:"minimum=1,maximum=256" jsonschema_description:"Calls at a time. Default 1. Also a factor."`
	// Stripes is how many locks there are.
	Stripes *int `yaml:"stripes,omitempty" json:"stripes,omitempty" jsonschema:"minimum=1" jsonschema_description:"Locks among which images are shared out: the kubelet's maxParallelImagePulls. Default 1, as in a kubelet that does not set it. More than 31 make upstream panic (kubernetes/kubernetes#138935). Also a factor."`
	// Secrets is how many credentials a record holds.
	Secrets *int `yaml:"secrets,omitempty" json:"secrets,omitempty" jsonschema:"minimum=1,maximum=5000" jsonschema_description:"Pull secrets with which each image was pulled. Default 1. Also a factor."`

	// Policy is of which images the kubelet verifies the credentials.
	Policy string `yaml:"policy,omitempty" json:"policy,omitempty" jsonschema_description:"Of which images the kubelet verifies credentials, its imagePullCredentialsVerificationPolicy: AlwaysVerify, or NeverVerifyPreloadedImages (a kubelet's default: of those of which it has a record or an intent). Default AlwaysVerify. Also a factor."`

	// Dir is the folder of the records.
	Dir string `yaml:"dir,omitempty" json:"dir,omitempty" tare:"path" jsonschema_description:"Folder in which the folders with records are made, to choose a file system. Default: the folder for temporary files."`
	// Binary is an existing program.
	Binary string `yaml:"binary,omitempty" json:"binary,omitempty" jsonschema_description:"Path of a prebuilt tare-plane. Default: $TARE_PLANE, or the one that tare builds once, which needs Go, the network and minutes."`

	// Rounds is how many batches each treatment makes in a block.
	Rounds int `yaml:"rounds,omitempty" json:"rounds,omitempty" jsonschema:"minimum=3,maximum=1000" jsonschema_description:"Batches of each operation and treatment in a block. Default 16."`
	// Span is how long a batch lasts.
	Span unit.Duration `yaml:"span,omitempty" json:"span,omitempty" jsonschema_description:"How long a batch of calls lasts, from 1ms to 10s. Default 20ms; a call that takes longer is a batch of its own."`
}

var _ area.Spec = (*Spec)(nil)

// Under implements area.Spec.
func (s *Spec) Under(area.Treatment) (area.Spec, error) { return s, nil }

// Says implements area.Spec.
func (s *Spec) Says() area.Says {
	return area.Says{
		Loopback: true, Batches: s.Batches(), Conditions: s.Conditions(), Forecast: s.Forecast, Creates: s.Creates,
		Untried: func([]area.Treatment) string { return "its pull manager was not started: 'tare plan --try' tries it" },
	}
}

// folder returns where the folders with records are made.
func (s *Spec) folder() string {
	if s.Dir != "" {
		return s.Dir
	}
	return os.TempDir()
}

// given returns the levels that the section sets for all treatments, by factor, in the words of the file.
func (s *Spec) given() map[string]string {
	out := map[string]string{}
	for factor, text := range map[string]string{
		factorAccessor: s.Accessor, factorPattern: s.Pattern, factorPolicy: s.Policy,
	} {
		if text != "" {
			out[factor] = text
		}
	}
	for factor, n := range map[string]*int{
		factorSize: s.Size, factorRecords: s.Records, factorWindow: s.Window, factorConcurrency: s.Concurrency,
		factorStripes: s.Stripes, factorSecrets: s.Secrets,
	} {
		if n != nil {
			out[factor] = strconv.Itoa(*n)
		}
	}
	for factor, share := range map[string]*Share{factorHits: s.Hits, factorTurnover: s.Turnover} {
		if share != nil {
			out[factor] = share.String()
		}
	}
	if s.Exponent != nil {
		out[factorExponent] = strconv.FormatFloat(*s.Exponent, 'g', -1, 64)
	}
	return out
}

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
