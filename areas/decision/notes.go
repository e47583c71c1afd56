package decision

import (
	"fmt"
	"maps"
	"slices"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/internal/kit"
)

// Notes implements area.Target.
func (t *target) Notes() []string {
	var notes []string
	at := map[string]int{} // treatments by address
	for _, p := range t.arms.Ready() {
		notes = append(notes, p.notes()...)
		if p.url != nil {
			at[p.url.Host]++
		}
	}
	for _, host := range slices.Sorted(maps.Keys(at)) {
		if at[host] > 1 {
			notes = append(notes, fmt.Sprintf("%d arms share the decision point at %s: what one loads or leaves in a cache, "+
				"the others find", at[host], host))
		}
	}
	slices.Sort(notes)
	return slices.Compact(notes)
}

// Warnings implements area.Target.
func (t *target) Warnings() (out []string) {
	for _, p := range t.arms.Ready() {
		out = append(out, p.failing...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// notes returns what is to be known of this run; what holds for every run is in README.md.
func (p *arm) notes() (out []string) {
	if p.url != nil {
		return p.urlNotes()
	}
	out = append(out, fmt.Sprintf("%s: %s, started by tare on loopback", p.kind, p.launch.Version))
	if p.bundle != "" {
		out[0] += ", with the policies of " + p.bundle
	}
	out = append(out, p.proved...)
	if p.kind == engine.PDPX {
		out[0] += ": what is measured is not ONAP's"
	}
	if p.enforcer != nil {
		out = append(out, p.enforcer.words())
	}
	if p.planted != (Planted{}) {
		out = append(out, "faults are planted into the decision point: "+p.planted.words())
	}
	if n := p.restarted(); n > 0 {
		out = append(out, fmt.Sprintf("the decision point was started again %d times", n))
	}
	return append(out, p.refusalNote()...)
}

// refusalNote says what a refusal looks like if that is not Deny.
func (p *arm) refusalNote() (out []string) {
	for _, q := range p.questions {
		if p.loose && q.Want == model.NotApplicable && q.Name != absentName {
			out = append(out, fmt.Sprintf("%s: a request that its policy does not permit is answered with NotApplicable, not "+
				"with Deny", p.adapter.Name))
		}
	}
	return out
}

// urlNotes returns the notes on a decision point that tare did not start.
func (p *arm) urlNotes() (out []string) {
	out = kit.ConnectionNotes(p.url, p.spec.TLS, p.spec)
	if p.lost != "" {
		out = append(out, fmt.Sprintf("the CPU time and memory of the decision point at %s are not known: %s; process: "+
			"and metrics: in the file say where to look", p.url.Host, p.lost))
	}
	if x := p.spec.PDPX; x != nil && x.UnseenLimiter() != "" {
		out = append(out, fmt.Sprintf("the frequency limiter of %q itself was not seen to refuse: pdpx.frequency_over names "+
			"another operation; pdpx.frequency_over_target would show it", x.UnseenLimiter()))
	}
	if p.cold != "" {
		out = append(out, p.cold)
	}
	if p.loaded != nil {
		out = append(out, fmt.Sprintf("%d policies were put into the decision point at %s for the run, besides those that "+
			"it had", p.set.N, p.url.Host))
	}
	return append(out, p.refusalNote()...)
}

// words lists the faults.
func (x Planted) words() string {
	out := ""
	add := func(s string) {
		if out != "" {
			out += ", "
		}
		out += s
	}
	if x.Answer != "" {
		text := "it answers " + x.Answer
		if x.AnswerAfter > 0 {
			text += fmt.Sprintf(" from %v after its start on", x.AnswerAfter)
		}
		add(text)
	}
	if x.Leak > 0 {
		add(fmt.Sprintf("it leaks %v a minute", x.Leak))
	}
	if x.NotReady > 0 {
		add(fmt.Sprintf("it is not ready for %v", x.NotReady))
	}
	if x.Cache > 0 {
		add(fmt.Sprintf("it gives decisions again for %v", x.Cache))
	}
	if x.Gap > 0 {
		add(fmt.Sprintf("it has no policies for %v whenever they are replaced", x.Gap))
	}
	return out
}
