package imagepull

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/spelling"
)

// Validate implements area.Spec.
func (s *Spec) Validate(q area.Asked, treatments []design.Treatment) []area.Finding {
	out := s.judgeSection()
	if q.Trespasses {
		out = append(out, s.rejectHits(treatments)...)
	}
	out = append(out, kit.JudgeEach(treatments, s.judge)...)
	if slices.ContainsFunc(out, isError) {
		return out
	}
	if out = append(out, s.rejectDuplicates(treatments)...); len(out) > 0 {
		return out
	}
	return append(s.checkUnused(treatments), s.warn(treatments)...)
}

// rejectHits rejects a share of hits in guard, whose single calls all ask for images with a record.
func (s *Spec) rejectHits(treatments []design.Treatment) []area.Finding {
	path := factorHits
	if s.Hits == nil {
		path = ""
		given := func(t design.Treatment) bool { return t.Levels[factorHits] != "" }
		if !slices.ContainsFunc(treatments, given) {
			return nil
		}
	}
	return []area.Finding{area.Fault(path, errors.New("hits: guard asks for images with a record only"), "leave it out")}
}

func isError(f area.Finding) bool { return f.Severity == area.Error }

// judgeSection checks what no treatment can change.
func (s *Spec) judgeSection() (out []area.Finding) {
	for i, name := range s.Operations {
		path := fmt.Sprintf("operations[%d]", i)
		switch {
		case !slices.Contains(names(), name):
			out = append(out, area.Fault(path, fmt.Errorf("there is no operation %q; there are %s%s", name,
				strings.Join(names(), ", "), spelling.DidYouMean(name, names())), ""))
		case slices.Contains(s.Operations[:i], name):
			out = append(out, area.Fault(path, fmt.Errorf("%q is given twice", name), ""))
		}
	}
	if span := s.Span.Std(); span != 0 && (span < time.Millisecond || span > 10*time.Second) {
		out = append(out, area.Fault("span", errors.New("span: want 1ms to 10s"), "leave it out for the default"))
	}
	if s.Rounds != 0 && (s.Rounds < 3 || s.Rounds > 1000) {
		out = append(out, area.Fault("rounds", errors.New("rounds: want 3 to 1000"), "leave it out for the default"))
	}
	return out
}

// judge checks the section with the levels of one treatment. Errors in a level name the treatment.
func (s *Spec) judge(t design.Treatment) []area.Finding {
	_, err := s.plan(t)
	if err == nil {
		return nil
	}
	factor, _, _ := strings.Cut(err.Error(), ":")
	path := factor
	if s.given()[factor] == "" {
		path = ""
	}
	f := kit.FaultIn(t, path, err)
	if factor == factorStripes {
		f.Hint = fmt.Sprintf("use up to %d", maxStripes)
	}
	return []area.Finding{f}
}

// rejectDuplicates rejects treatments that differ in their words only: any difference between them is noise.
func (s *Spec) rejectDuplicates(treatments []design.Treatment) (out []area.Finding) {
	first := map[string]string{}
	for _, t := range treatments {
		p, err := s.plan(t)
		if err != nil || t.Control != design.None {
			continue
		}
		key := design.ID(p.levels())
		if other, twice := first[key]; twice {
			out = append(out, area.Fault("", fmt.Errorf("treatment %q is %q in other words: both are %s", t.ID, other, key),
				"leave one of them out"))
			continue
		}
		first[key] = t.ID
	}
	return out
}

// checkUnused rejects values of the section that no treatment uses: they would have no effect.
func (s *Spec) checkUnused(treatments []design.Treatment) (out []area.Finding) {
	for _, factor := range slices.Sorted(maps.Keys(s.given())) {
		if !s.any(treatments, func(p *plan) bool { return p.uses(factor) }) {
			out = append(out, area.Fault(factor, fmt.Errorf("%s: no treatment uses it: it belongs to %s", factor, owner(factor)),
				"leave it out"))
		}
	}
	return out
}

// any reports whether such holds for some treatment's plan.
func (s *Spec) any(treatments []design.Treatment, such func(*plan) bool) bool {
	for _, t := range kit.AtLeastOne(treatments) {
		if p, err := s.plan(t); err == nil && such(&p) {
			return true
		}
	}
	return false
}
