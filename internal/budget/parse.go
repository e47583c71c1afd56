package budget

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"tare/internal/metric"
	"tare/internal/unit"
)

// SyntaxError says where and why a budget cannot be read.
type SyntaxError struct {
	Text    string
	Column  int // in characters, from 1
	Message string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("budget %q, column %d: %s", e.Text, e.Column, e.Message)
}

// Parse reads
//
//	[treatment ":"] [operation "."] metric ["." quantile] ["drift"] op limit ["at" rate]
//
// where op is <= or >=, and a limit with a sign is against the baseline. Errors are of type *SyntaxError.
func Parse(text string) (Budget, error) {
	p := parser{text: text, b: Budget{Text: text}}
	if err := p.parse(); err != nil {
		return Budget{}, err
	}
	return p.b, nil
}

func (p *parser) parse() error {
	left, right, err := p.operator()
	if err != nil {
		return err
	}
	if err := p.subject(left); err != nil {
		return err
	}
	return p.bound(right)
}

// A Part is a part of a budget's text.
type Part uint8

// The parts.
const (
	PartTreatment Part = iota
	PartOperation
	PartMetric
	PartQuantile
	PartDrift
	PartLimit
	PartRate // behind "at"
	parts
)

// Column is where a part of a budget's text begins, in characters from 1; the whole text begins at 1, and so does what
// is not there.
func Column(text string, part Part) int {
	p := parser{text: text, b: Budget{Text: text}}
	if err := p.parse(); err != nil || part >= parts {
		return 1
	}
	return utf8.RuneCountInString(text[:p.begins[part]]) + 1
}

// A span is a piece of the text, without blanks around it.
type span struct {
	text string
	at   int // offset in bytes
}

func (p *parser) span(from, to int) span {
	s := p.text[from:to]
	return span{strings.TrimSpace(s), from + len(s) - len(strings.TrimLeft(s, " \t\r\n"))}
}

// cut splits a span around text[i:i+n], i being relative to the span.
func (p *parser) cut(s span, i, n int) (before, after span) {
	return p.span(s.at, s.at+i), p.span(s.at+i+n, s.at+len(s.text))
}

type parser struct {
	text   string
	b      Budget
	begins [parts]int // offsets in bytes; 0: the part is not there
}

func (p *parser) fail(at int, format string, args ...any) error {
	return &SyntaxError{
		Text: p.text, Column: utf8.RuneCountInString(p.text[:at]) + 1,
		Message: fmt.Sprintf(format, args...),
	}
}

// operator splits the text at its <= or >=.
func (p *parser) operator() (left, right span, err error) {
	// A treatment may hold '=' ("mode=enforce: …"), so that only < and > begin an operator.
	i := strings.IndexAny(p.text, "<>≤≥")
	if i < 0 {
		return left, right, p.fail(len(p.text), "no <= or >= found; write it like \"response.p99 <= 500ms\"")
	}
	p.b.Op = Op(p.text[i:min(i+2, len(p.text))])
	if p.b.Op != AtMost && p.b.Op != AtLeast {
		return left, right, p.fail(i, "the operators are <= and >=")
	}
	return p.span(0, i), p.span(i+2, len(p.text)), nil
}

// subject reads what stands before the operator.
func (p *parser) subject(s span) error {
	if i := strings.LastIndexByte(s.text, ':'); i >= 0 {
		t, rest := p.cut(s, i, 1)
		if t.text == "" {
			return p.fail(s.at, "no treatment before ':'")
		}
		p.b.Treatment, s = t.text, rest
		p.begins[PartTreatment] = t.at
	}
	if i := strings.IndexAny(s.text, " \t\r\n"); i >= 0 {
		name, word := p.cut(s, i, 1)
		if word.text != "drift" {
			return p.fail(word.at, "unexpected %q: only \"drift\" may follow a metric", word.text)
		}
		p.b.Drift, s = true, name
		p.begins[PartDrift] = word.at
	}
	if s.text == "" {
		return p.fail(s.at, "no metric; write it like \"response.p99 <= 500ms\"")
	}
	return p.name(s)
}

// name reads [operation "."] metric ["." quantile]. An operation's name may hold dots itself.
func (p *parser) name(s span) error {
	words := strings.Split(s.text, ".")
	at := s.at
	for _, part := range words {
		if i := strings.IndexFunc(part, notInName); i >= 0 || part == "" {
			return p.fail(at+max(i, 0), "a name is expected here, of letters, digits, '-' and '_'")
		}
		at += len(part) + 1
	}
	n := len(words)
	if q, used := quantile(words); used > 0 {
		if n == used {
			return p.fail(s.at, "%q is a quantile, not a metric; write it like \"response.%s\"", s.text, q)
		}
		p.b.Quantile = q
		n -= used
		p.begins[PartQuantile] = s.at + len(strings.Join(words[:n], ".")) + 1
	}
	p.b.Operation, p.b.Metric = strings.Join(words[:n-1], "."), words[n-1]
	p.begins[PartOperation], p.begins[PartMetric] = s.at, s.at
	if p.b.Operation != "" {
		p.begins[PartMetric] += len(p.b.Operation) + 1
	}
	return nil
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// Summaries are the quantiles that are not percentiles and that a question may judge.
func Summaries() []string { return []string{"min", "mean", "max"} }

// summaries are those that are read, also where no question judges them.
var summaries = append(Summaries(), "stddev")

// quantile finds a quantile at the end of a dotted name, and how many parts it takes: "p99.9" takes two, and is p999.
func quantile(words []string) (name string, used int) {
	n := len(words)
	last := words[n-1]
	if n > 1 && digits(last) && percentile(words[n-2]) && len(words[n-2]) == len("p99") {
		return canonical(words[n-2] + last), 2
	}
	if percentile(last) {
		return canonical(last), 1
	}
	if slices.Contains(summaries, last) {
		return last, 1
	}
	return "", 0
}

// percentile reports whether s is p and one to six digits that are not all 0; "p100" is not one: that is the maximum.
func percentile(s string) bool {
	d, ok := strings.CutPrefix(s, "p")
	return ok && digits(d) && len(d) <= 6 && strings.Trim(d, "0") != "" && d != "100"
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// canonical drops zeros that say nothing: p990 is p99.
func canonical(p string) string {
	for len(p) > len("p99") && strings.HasSuffix(p, "0") {
		p = p[:len(p)-1]
	}
	return p
}

// Fraction is the quantile as a number in 0…1: p99 is 0.99, p999 0.999, p5 0.05. The others have none.
func Fraction(quantile string) (float64, bool) {
	if !percentile(quantile) {
		return 0, false
	}
	d := quantile[1:]
	v := 0.0
	for _, c := range d {
		v = v*10 + float64(c-'0')
	}
	return v / math.Pow10(max(2, len(d))), true
}

// bound reads what stands after the operator.
func (p *parser) bound(s span) error {
	limit := s
	if i := strings.Index(s.text, " at "); i >= 0 {
		var at span
		limit, at = p.cut(s, i, len(" at "))
		p.begins[PartRate] = at.at
		rate, err := unit.ParseRate(at.text)
		if err != nil {
			return p.fail(at.at, "%v", err)
		}
		if rate <= 0 {
			return p.fail(at.at, "a rate above 0 is expected here")
		}
		if p.b.At = rate.PerSecond(); math.IsInf(p.b.At, 0) {
			return p.fail(at.at, "the rate is too large")
		}
	}
	if limit.text == "" {
		return p.fail(limit.at, "no limit; write it like 500ms, 150/s, 64MiB, 2%% or +5%%")
	}
	return p.limit(limit)
}

func (p *parser) limit(s span) error {
	p.begins[PartLimit] = s.at
	l := &p.b.Limit
	sign := 1.0
	l.Against = Absolute
	text := s.text
	if text[0] == '+' || text[0] == '-' {
		l.Against = Difference
		if text[0] == '-' {
			sign = -1
		}
		text = text[1:]
	}
	var err error
	if p.b.Drift {
		err = l.perHour(text)
	} else {
		err = l.quantity(text)
	}
	switch {
	case err != nil:
		return p.fail(s.at, "%v", err)
	case math.IsInf(l.Value, 0):
		return p.fail(s.at, "the limit is too large")
	case l.Value != 0: // there is no negative zero to print
		l.Value *= sign
	}
	if l.Against == Difference && l.Unit == metric.Ratio {
		l.Against = Ratio
	}
	return nil
}

// quantity reads a number in any unit, and keeps which it was. Fractions of a byte and of a nanosecond are rounded, in
// the text as well.
func (l *Limit) quantity(text string) error {
	switch {
	case strings.HasSuffix(text, "%"):
		v, err := unit.ParsePercent(text)
		l.Value, l.Unit, l.Text = v.Ratio(), metric.Ratio, v.String()
		return err
	case strings.Contains(text, "/"):
		v, err := unit.ParseRate(text)
		l.Value, l.Unit, l.Text = v.PerSecond(), metric.PerSecond, v.String()
		return err
	case strings.HasSuffix(text, "B"):
		v, err := unit.ParseSize(text)
		l.Value, l.Unit, l.Text = float64(v), metric.Bytes, v.String()
		return err
	case strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }) < 0:
		// A bare number is a count: thirty threads. Check refuses it for a metric that has a unit.
		v, err := unit.ParseRate(text + "/s")
		l.Value, l.Unit, l.Text = v.PerSecond(), metric.Count, plain(v.PerSecond())
		return err
	}
	v, err := unit.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("limit %q cannot be read; write it like 500ms, 150/s, 64MiB, 2%% or +5%%", text)
	}
	l.Value, l.Unit, l.Text = v.Std().Seconds(), metric.Seconds, v.String()
	return nil
}

// perHour reads a quantity over a time, as 1MiB/h.
func (l *Limit) perHour(text string) error {
	i := strings.LastIndexByte(text, '/')
	if i < 0 {
		return fmt.Errorf("a drift is limited over a time; write it like %s/h", text)
	}
	if err := l.quantity(strings.TrimSpace(text[:i])); err != nil {
		return err
	}
	per := strings.TrimSpace(text[i+1:])
	times, err := unit.ParseRate("3600/" + per)
	if err != nil {
		return fmt.Errorf("%q is no time; write it like %s/h", text[i+1:], text[:i])
	}
	l.Value, l.Text = l.Value*times.PerSecond(), l.Text+"/"+per
	return nil
}
