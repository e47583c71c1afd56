package imagepull

import (
	"fmt"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/design"
)

// clamp bounds upstream's cache whatever size is requested (NewCachedPullRecordsAccessor of Kubernetes v1.36.3). It is
// for advice only: a run measures what its version does.
const clamp = 2000

// warn warns of valid settings that are probably mistakes.
func (s *Spec) warn(treatments []design.Treatment) []area.Finding {
	return append(s.each(treatments, func(p *plan) (out []area.Finding) {
		if p.accessor == lru && p.size > clamp {
			out = append(out, area.Finding{
				Severity: area.Warning, Message: fmt.Sprintf("size %d: upstream (v1.36.3) gives its cache room for %d records "+
					"at most: larger ones are the same", p.size, clamp),
			})
		}
		if p.pattern == workingSet && p.window >= p.records {
			out = append(out, area.Finding{
				Severity: area.Warning, Hint: "take a smaller window, or more records",
				Message: fmt.Sprintf("window %d: with %d records all images are in the working set, which is pattern uniform",
					p.window, p.records),
			})
		}
		return out
	}), s.warnIdle(treatments)...)
}

// advise notes what may surprise in the results of a valid experiment.
func (s *Spec) advise(treatments []design.Treatment) []area.Finding {
	return s.each(treatments, func(p *plan) (out []area.Finding) {
		say := func(format string, args ...any) {
			out = append(out, area.Finding{Severity: area.Info, Message: fmt.Sprintf(format, args...)})
		}
		if p.accessor == cached && p.records >= clamp {
			say("records above %d: upstream (v1.36.3) gives its cache no more room than that: a step is to be expected there",
				clamp-1)
		}
		if p.accessor == lru && p.size > p.records {
			say("size %d is above records %d: the cache has room for all, as accessor cached has", p.size, p.records)
		}
		for _, name := range []string{opPull, opNewNamespace, opRestart, opPrune} {
			if p.accessor == disabled && slices.Contains(s.Operations, name) {
				say("accessor disabled keeps no records: %s measures nothing but a call that does nothing there", name)
			}
		}
		if p.concurrency > 1 && p.stripes == 1 && p.accessor != disabled {
			say("concurrency with stripes 1: whatever takes the lock is made one after another, as in a kubelet that does " +
				"not set maxParallelImagePulls")
		}
		return out
	})
}

// each calls say for the treatments' plans and returns its findings, each once.
func (s *Spec) each(treatments []design.Treatment, say func(*plan) []area.Finding) (out []area.Finding) {
	said := map[string]bool{}
	s.any(treatments, func(p *plan) bool {
		for _, f := range say(p) {
			if !said[f.Message] {
				said[f.Message] = true
				out = append(out, f)
			}
		}
		return false
	})
	return out
}

// warnIdle warns of levels that affect no measured operation.
func (s *Spec) warnIdle(treatments []design.Treatment) (out []area.Finding) {
	for _, factor := range []string{factorHits, factorPattern} {
		chosen, could := s.affected(factor)
		if len(chosen) > 0 {
			continue
		}
		levels := map[string]bool{}
		s.any(treatments, func(p *plan) bool {
			levels[p.levels()[factor]] = true
			return false
		})
		if usual := (&plan{pattern: defaults().pattern, hits: defaults().hits}).levels()[factor]; len(levels) > 1 ||
			!levels[usual] {
			out = append(out, area.Finding{
				Severity: area.Warning, Message: fmt.Sprintf("%s acts on %s only, which is not measured: it changes nothing",
					factor, strings.Join(could, " and ")),
				Hint: "add check to the operations",
			})
		}
	}
	return out
}

// most returns the largest concurrency of the treatments.
func (s *Spec) most(treatments []design.Treatment) int {
	n := 1
	s.any(treatments, func(p *plan) bool {
		n = max(n, p.concurrency)
		return false
	})
	return n
}
