package kit

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"tare/area"
)

// Quote returns text as YAML reads it back, in lists too: as JSON.
func Quote(text string) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can be encoded, and a Builder does not fail
	return strings.TrimSpace(out.String())
}

// QuoteList returns a list of words in one line of YAML.
func QuoteList(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, Quote(w))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// QuoteSecret returns the place of a secret as YAML reads it back.
func QuoteSecret(s area.Secret) string {
	if s.Env != "" {
		return "{env: " + Quote(s.Env) + "}"
	}
	return "{file: " + Quote(s.File) + "}"
}

// FindProgram fails if there is no program of that name to run.
func FindProgram(name string) error {
	if _, err := exec.LookPath(name); err != nil {
		return area.Usage("there is no program to run: %w", err)
	}
	return nil
}

var unnamable = regexp.MustCompile(`[^A-Za-z0-9]+`)

// NameOf makes a name for an experiment from words.
func NameOf(words ...string) string {
	const longest = 48
	name := strings.Trim(unnamable.ReplaceAllString(strings.Join(words, "-"), "-"), "-")
	return strings.TrimRight(name[:min(len(name), longest)], "-")
}

// Treatment writes the lines of a treatment; the first one is the baseline.
func Treatment(i int, factor, level string) string {
	if i == 0 {
		return fmt.Sprintf("baseline: {%s: %s}\ntreatments:\n", factor, Quote(level))
	}
	return fmt.Sprintf("  - {%s: %s}\n", factor, Quote(level))
}
