package imagepull

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/internal/design"
	"tare/internal/spelling"
)

// The factors of treatments, which are also fields of the section and levels of the program.
const (
	factorAccessor    = "accessor"
	factorSize        = "size"
	factorRecords     = "records"
	factorHits        = "hits"
	factorPattern     = "pattern"
	factorExponent    = "exponent"
	factorWindow      = "window"
	factorTurnover    = "turnover"
	factorConcurrency = "concurrency"
	factorStripes     = "stripes"
	factorSecrets     = "secrets"
	factorPolicy      = "policy"
)

func factors() []string {
	return []string{
		factorAccessor, factorSize, factorRecords, factorHits, factorPattern, factorExponent, factorWindow, factorTurnover,
		factorConcurrency,
		factorStripes, factorSecrets, factorPolicy,
	}
}

// The policies: of which images a kubelet verifies the credentials. The second is a kubelet's default.
const (
	alwaysVerify   = "AlwaysVerify"
	neverPreloaded = "NeverVerifyPreloadedImages"
)

func policies() []string { return []string{alwaysVerify, neverPreloaded} }

// The patterns in which images are requested.
const (
	uniform    = "uniform"
	zipf       = "zipf"
	workingSet = "working-set"
	scan       = "scan"
	churn      = "churn"
)

func patterns() []string { return []string{uniform, zipf, workingSet, scan, churn} }

// The bounds of levels.
const (
	maxRecords     = 100_000
	maxSize        = 100_000
	maxWindow      = maxRecords
	maxConcurrency = 256
	maxSecrets     = 5_000
	// mostFilled bounds the secrets in all records of a treatment together.
	mostFilled  = 1_000_000
	maxExponent = 10
	// maxStripes is the number of locks that upstream has: v1.36.3 makes at most 31, chooses among as many as were
	// requested, and panics.
	maxStripes   = 31
	stripesIssue = "kubernetes/kubernetes#138935"
)

// plan is a treatment with its levels parsed and defaults filled in.
type plan struct {
	accessor    string
	size        int // of the cache of lru
	records     int
	hits        Share
	pattern     string
	exponent    float64 // of zipf and churn
	window      int     // of working-set
	turnover    Share   // of churn
	concurrency int
	stripes     int
	secrets     int
	policy      string
}

// defaults returns a node with 100 images, one pod at a time, and a kubelet with default settings.
func defaults() plan {
	return plan{
		accessor: cached, size: 100, records: 100, hits: 100, pattern: uniform, exponent: 1.1, window: 50, turnover: 10,
		concurrency: 1, stripes: 1,
		secrets: 1, policy: alwaysVerify,
	}
}

// plan applies the section and the levels of t, which override it. Errors begin with the factor's name.
func (s *Spec) plan(t design.Treatment) (plan, error) {
	p := defaults()
	for _, levels := range []map[string]string{s.given(), t.Levels} {
		if err := p.apply(levels); err != nil {
			return p, err
		}
	}
	if n := p.records * p.secrets; n > mostFilled {
		return p, fmt.Errorf("secrets: %d records of %d secrets each are %d secrets, want at most %d together", p.records,
			p.secrets, n, mostFilled)
	}
	return p, p.rejectUnused(t.Levels)
}

// apply sets levels, the accessor first: "lru:100" includes a size, which another level must not contradict.
func (p *plan) apply(levels map[string]string) error {
	said := 0
	if text, ok := levels[factorAccessor]; ok {
		var err error
		if p.accessor, said, err = parseAccessor(text); err != nil {
			return err
		}
		if said > 0 {
			p.size = said
		}
	}
	for _, factor := range slices.Sorted(maps.Keys(levels)) {
		if factor == factorAccessor {
			continue
		}
		if factor == factorSize && said > 0 {
			return fmt.Errorf("size: the accessor %q says it already", levels[factorAccessor])
		}
		if err := p.set(factor, levels[factor]); err != nil {
			return err
		}
	}
	return nil
}

// set sets one level.
func (p *plan) set(factor, text string) (err error) {
	switch factor {
	case factorSize:
		p.size, err = parseCount(factor, text, maxSize)
	case factorRecords:
		p.records, err = parseCount(factor, text, maxRecords)
	case factorWindow:
		p.window, err = parseCount(factor, text, maxWindow)
	case factorConcurrency:
		p.concurrency, err = parseCount(factor, text, maxConcurrency)
	case factorSecrets:
		p.secrets, err = parseCount(factor, text, maxSecrets)
	case factorStripes:
		p.stripes, err = parseStripes(text)
	case factorHits:
		p.hits, err = share(factor, text)
	case factorTurnover:
		p.turnover, err = share(factor, text)
	case factorExponent:
		p.exponent, err = parseExponent(text)
	case factorPattern:
		p.pattern, err = parseWord(factor, text, patterns())
	case factorPolicy:
		p.policy, err = parseWord(factor, text, policies())
	default:
		err = fmt.Errorf("%s: the imagepull area has no such factor; there are %s%s", factor, strings.Join(factors(), ", "),
			spelling.DidYouMean(factor, factors()))
	}
	return err
}

func share(factor, text string) (Share, error) {
	s, err := parseShare(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", factor, err)
	}
	return s, nil
}

func parseStripes(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("stripes: want a whole number from 1 to %d, not %q", maxStripes, text)
	}
	if n > maxStripes {
		return 0, fmt.Errorf("stripes: with more than %d the pull manager of Kubernetes v1.36.3 panics (%s), and so does "+
			"a kubelet with maxParallelImagePulls: %d", maxStripes, stripesIssue, n)
	}
	return n, nil
}

func parseExponent(text string) (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(x > 1 && x <= maxExponent) {
		return 0, fmt.Errorf("exponent: want a number above 1 and up to %d, not %q", maxExponent, text)
	}
	return x, nil
}

// parseWord parses a level that is one of some words, in any case.
func parseWord(factor, text string, words []string) (string, error) {
	i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, strings.TrimSpace(text)) })
	if i < 0 {
		return "", fmt.Errorf("%s: there is no %q; there are %s%s", factor, text, strings.Join(words, ", "),
			spelling.DidYouMean(strings.ToLower(strings.TrimSpace(text)), words))
	}
	return words[i], nil
}

// uses reports whether a factor affects the plan.
func (p *plan) uses(factor string) bool {
	switch factor {
	case factorSize:
		return p.accessor == lru
	case factorExponent:
		return p.pattern == zipf || p.pattern == churn
	case factorWindow:
		return p.pattern == workingSet
	case factorTurnover:
		return p.pattern == churn
	}
	return true
}

// owner returns what a factor belongs to, unless it applies to all.
func owner(factor string) string {
	return map[string]string{
		factorSize: "accessor lru", factorExponent: "the patterns zipf and churn", factorWindow: "pattern working-set",
		factorTurnover: "pattern churn",
	}[factor]
}

// rejectUnused rejects a treatment's level that has no effect in it.
func (p *plan) rejectUnused(levels map[string]string) error {
	for _, factor := range factors() {
		if _, ok := levels[factor]; ok && !p.uses(factor) {
			return fmt.Errorf("%s: it belongs to %s, and changes nothing here; what holds wherever it has a meaning can "+
				"stand under target", factor, owner(factor))
		}
	}
	return nil
}

// levels returns the plan in the program's terms, without levels that have no effect.
func (p *plan) levels() map[string]string {
	out := map[string]string{
		factorAccessor: p.accessor, factorSize: strconv.Itoa(p.size), factorRecords: strconv.Itoa(p.records),
		factorHits:    p.hits.level(),
		factorPattern: p.pattern, factorExponent: strconv.FormatFloat(p.exponent, 'g', -1, 64),
		factorWindow:   strconv.Itoa(p.window),
		factorTurnover: p.turnover.level(), factorConcurrency: strconv.Itoa(p.concurrency),
		factorStripes: strconv.Itoa(p.stripes),
		factorSecrets: strconv.Itoa(p.secrets), factorPolicy: p.policy,
	}
	maps.DeleteFunc(out, func(factor, _ string) bool { return !p.uses(factor) })
	if p.policy == alwaysVerify { // as in a tare-plane that knows no other
		delete(out, factorPolicy)
	}
	return out
}
