package config

import (
	"maps"
	"slices"
	"strconv"

	"tare/internal/design"
	"tare/internal/question"
	"tare/internal/spelling"
)

// maxTreatments bounds the product of all factors.
const maxTreatments = 10_000

// Treatments lists the treatments, the baseline first: baseline and alternatives, each crossed with every combination
// of factors, the last factor varying fastest. An experiment without factors has one, "default". IDs omit fixed levels,
// Levels include them.
func (e *Experiment) Treatments() []design.Treatment {
	all := e.written()
	if e.kept == nil {
		return all
	}
	return slices.DeleteFunc(all, func(t design.Treatment) bool { return !slices.Contains(e.kept, t.ID) })
}

// Keeping returns a copy with only these of its treatments: those that the host supports.
func (e *Experiment) Keeping(treatments []design.Treatment) *Experiment {
	out := *e
	out.kept = make([]string, 0, len(treatments))
	for _, t := range treatments {
		out.kept = append(out.kept, t.ID)
	}
	return &out
}

// written returns the treatments of the file.
func (e *Experiment) written() []design.Treatment {
	arms := e.arms()
	combinations := e.combinations()
	out := make([]design.Treatment, 0, len(arms)*len(combinations))
	for i, arm := range arms {
		for _, combination := range combinations {
			levels := map[string]string{}
			maps.Copy(levels, arm)
			maps.Copy(levels, combination)
			t := design.Treatment{ID: design.ID(levels)}
			t.Baseline = i == 0 && (e.Baseline != nil || len(levels) == 0)
			maps.Copy(levels, e.Fixed)
			if len(levels) > 0 {
				t.Levels = levels
			}
			out = append(out, t)
		}
	}
	return out
}

// Arms returns what is measured: the treatments and, if they are compared, the A/A arm.
func (e *Experiment) Arms() []design.Treatment {
	if e.blocked() {
		return design.Arms(e.Treatments())
	}
	return e.Treatments()
}

func (e *Experiment) arms() []Levels {
	var arms []Levels
	if e.Baseline != nil {
		arms = append(arms, e.Baseline)
	}
	arms = append(arms, e.Alternatives...)
	if len(arms) == 0 {
		arms = []Levels{{}}
	}
	return arms
}

// levelPath returns where the file gives a treatment's level of a factor or, without a factor, the treatment.
func (c *checker) levelPath(id, factor string) string {
	written := c.e.written()
	at := slices.IndexFunc(written, func(t design.Treatment) bool { return t.ID == id })
	if at < 0 {
		return "target"
	}
	arm := at * len(c.e.arms()) / len(written)
	if c.e.Baseline == nil {
		arm++
	}
	path := "factors"
	switch {
	case arm == 0:
		path = "baseline"
	case len(c.e.Alternatives) > 0:
		path = index("treatments", arm-1)
	}
	for _, f := range c.e.Factors {
		if f.Name == factor {
			return index(join("factors", factor), slices.Index(f.Levels, written[at].Levels[factor]))
		}
	}
	for _, in := range []string{path, "fixed"} {
		if level := join(in, factor); factor != "" && c.given(level) {
			return level
		}
	}
	return path
}

func (e *Experiment) combinations() []Levels {
	out := []Levels{{}}
	for _, f := range e.Factors {
		var next []Levels
		for _, c := range out {
			for _, level := range f.Levels {
				with := maps.Clone(c)
				with[f.Name] = level
				next = append(next, with)
			}
		}
		out = next
	}
	return out
}

// treatments checks baseline, treatments, factors and fixed levels, and passes the result to the area.
func (c *checker) treatments() {
	if c.broken("baseline") || c.broken("treatments") || c.broken("factors") || c.broken("fixed") {
		return
	}
	before := len(c.bad)
	c.arms()
	c.crossed()
	question.Of(c.e.Question).CheckTreatments(questioned{c})
	if len(c.bad) == before {
		c.known = c.e.Treatments()
		c.judge()
	}
}

// arms checks that every treatment names the baseline's factors: a treatment is compared with it factor by factor.
func (c *checker) arms() {
	seen := map[string]string{}
	if c.e.Baseline != nil {
		seen[design.ID(c.e.Baseline)] = "the baseline"
	}
	for i, t := range c.e.Alternatives {
		path := index("treatments", i)
		names := slices.Sorted(maps.Keys(t))
		for _, factor := range slices.Sorted(maps.Keys(c.e.Baseline)) {
			if _, ok := t[factor]; !ok {
				c.fail(path, "the treatment lacks the baseline's factor %q%s", factor, didYouMeanThis(factor, names))
			}
		}
		id := design.ID(t)
		if what, dup := seen[id]; dup {
			c.fail(path, "this treatment is %s again", what)
			continue
		}
		seen[id] = "treatments[" + strconv.Itoa(i) + "]"
	}
}

func didYouMeanThis(want string, have []string) string {
	if near := spelling.Nearest(want, have); near != "" {
		return "; is " + strconv.Quote(near) + " a slip?"
	}
	return ""
}

// crossed checks that no factor is given twice, and that the product is small enough to be measured.
func (c *checker) crossed() {
	product := len(c.e.arms())
	for _, f := range c.e.Factors {
		path := join("factors", f.Name)
		for i, t := range c.e.Alternatives {
			if _, ok := t[f.Name]; ok {
				c.fail(join(index("treatments", i), f.Name), "%q is varied under factors already", f.Name)
			}
		}
		if _, ok := c.e.Baseline[f.Name]; ok {
			c.fail(join("baseline", f.Name), "%q is varied under factors already", f.Name)
		}
		if product *= max(1, len(f.Levels)); product > maxTreatments {
			c.fail(path, "the factors make more than %d treatments", maxTreatments)
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.e.Fixed)) {
		varied := slices.ContainsFunc(c.e.Factors, func(f design.Factor) bool { return f.Name == name })
		for _, arm := range append([]Levels{c.e.Baseline}, c.e.Alternatives...) {
			_, in := arm[name]
			varied = varied || in
		}
		if varied {
			c.fail(join("fixed", name), "%q is varied, so it cannot be fixed", name)
		}
	}
}
