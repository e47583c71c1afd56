package report

import (
	"slices"
	"strings"

	"tare/internal/budget"
	"tare/internal/glossary"
	"tare/internal/metric"
	"tare/internal/signature"
)

// The two answers of a search: what sets the rate, and how the target fails above it.

// limitEvidence and failureEvidence limit the evidence on the line of an answer, which says further how a prediction
// came out or how soon the target came back; the lines below have the rest.
const limitEvidence, failureEvidence = 2, 1

// answers returns the lines of both, each with its evidence and what it excludes below; none of a target that did not
// break.
func (c *Capacity) answers() []remark {
	var out []remark
	if v := c.Limit; v != nil {
		first, more := splitEvidence(v.Evidence, limitEvidence)
		text := v.Statement()
		if p := v.Prediction; p != nil && p.Tried != nil {
			first = append(first, p.Outcome())
		} else if p != nil && p.How != "" {
			more = append(more, "try it: "+p.How+"; "+p.Expected())
		}
		out = slices.Concat(out, lined("limit", text, first, v.Excluded, more))
	}
	if f := c.Failure; f != nil {
		first, more := splitEvidence(c.evidenceOfFailure(), failureEvidence)
		out = slices.Concat(out, lined("fails as", f.Statement(), append(first, nonEmpty(c.comeback())...), f.Excluded, more))
	}
	return out
}

// lined returns an answer with its strongest evidence in a line, and what it excludes and the rest below.
func lined(word, text string, first []string, not []signature.Exclusion, more []string) []remark {
	out := []remark{{Word: word, Text: text + because(strings.Join(first, "; "))}}
	for _, x := range not {
		out = append(out, remark{Text: "not " + x.What + because(x.By)})
	}
	for _, s := range more {
		out = append(out, remark{Text: s})
	}
	return out
}

func splitEvidence(all []string, most int) (first, more []string) {
	n := min(len(all), most)
	return slices.Clone(all[:n]), slices.Clone(all[n:])
}

// evidenceOfFailure returns the evidence of the failure that the limit's line does not say.
func (c *Capacity) evidenceOfFailure() []string {
	return slices.DeleteFunc(slices.Clone(c.Failure.Evidence), func(s string) bool {
		return c.Limit != nil && slices.Contains(c.Limit.Evidence, s)
	})
}

// comeback says how soon the target came back, in the line of its failure: "back after 36 s"; "" where afterwards says
// it.
func (c *Capacity) comeback() string {
	word, text := c.recovery()
	first, _, _ := strings.Cut(text, " ")
	if c.Failure == nil || word != "recovers" || strings.Trim(first, ",") != "immediately" && first != "after" {
		return ""
	}
	return "back " + text
}

// afterwards returns what the recovery probe saw, where the line of the failure does not say it.
func (c *Capacity) afterwards() []remark {
	word, text := c.recovery()
	if word == "" || c.comeback() != "" {
		return nil
	}
	x := remark{Word: word, Text: text}
	if c.Wedged {
		x.Class = bad
	}
	return []remark{x}
}

// clauses say in short what sets the rate and how the target fails.
func (c *Capacity) clauses() []string {
	var out []string
	if c.Limit != nil {
		out = append(out, c.Limit.Clause())
	}
	if c.Failure != nil {
		out = append(out, c.Failure.Clause())
	}
	return out
}

// answersOf says what sets the rate that a budget on the capacity limits, and how the target fails; it begins with a
// separator.
func (r *Report) answersOf(b *Budget) string {
	if parsed, err := budget.Parse(b.Text); err != nil || parsed.Metric != metric.Capacity.Name {
		return ""
	}
	for i := range r.Capacity {
		if c := &r.Capacity[i]; c.Treatment == b.Treatment && c.Operation == "" {
			return strings.Join(append([]string{""}, c.clauses()...), "; ")
		}
	}
	return ""
}

// explanations return what to do about the limit, and the glossary's entry on the failure.
func (c *Capacity) explanations() []block {
	var out []block
	if v := c.Limit; v != nil && v.Known() {
		word := string(v.Kind)
		if v.Certainty == signature.Likely {
			word += ", if that is the limit"
		}
		out = append(out, block{Text: word + ": " + v.Kind.Advice()})
	}
	if f := c.Failure; f != nil && f.Known() {
		if e, _, ok := glossary.Core().Lookup(string(f.Class)); ok {
			out = append(out, block{Text: string(f.Class) + ": " + e.Text})
		}
	}
	return out
}

// A statement names a limit or a failure with its certainty.
type statement interface {
	comparable
	Statement() string
}

// statementOf returns a statement; "" without one.
func statementOf[T statement](x T) string {
	var none T
	if x == none {
		return ""
	}
	return x.Statement()
}
