package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/internal/unit"
)

// permitted names the trespasses that were permitted: each operation with its first breach, and the rate at which that
// was.
func (g *Guard) permitted() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(g.Operations)) {
		n := g.Operations[name]
		if n.Permitted == 0 {
			continue
		}
		text := fmt.Sprintf("%s: %d of %d", name, n.Permitted, n.Decided())
		i := slices.IndexFunc(g.Breaches, func(b Breach) bool { return b.Operation == name })
		if i >= 0 {
			text += ", one of them " + g.Breaches[i].sentence()
		}
		out = append(out, text)
	}
	return out
}

// sentence says where a trespass was permitted, or of a soak when, and with which answer: "at 502/s: read as caller 7 →
// status 200, 16 bytes".
func (b *Breach) sentence() string {
	at := "at " + b.Point
	switch rate := unit.PerSecond(b.Rate); {
	case b.Rate > 0 && (b.Point == "" || b.Point == rate):
		at = "at " + rate
	case b.Rate > 0:
		at = "at " + rate + " (" + b.Point + ")"
	case b.Point == "":
		at = "after " + unit.Seconds(b.At)
	}
	text := strings.Join(nonEmpty(b.Request, b.answered()), " → ")
	return strings.Join(nonEmpty(at, text), ": ")
}

// answered is the answer to a breach; "": it is not known.
func (b *Breach) answered() string {
	if b.Answer == "" && b.Status > 0 {
		return fmt.Sprintf("status %d, %d bytes", b.Status, b.AnswerBytes)
	}
	return b.Answer
}

// overload says at which rate the control was overloaded, up to which it was not, or that this is not known; "": that
// was not asked.
func (g *Guard) overload() string {
	switch {
	case g.Unearned != "":
		return g.Unearned
	case g.Overload != nil:
		return "the control was overloaded from " + unit.PerSecond(g.Overload.Rate) + " on: " + g.Overload.sentence()
	case g.RatesGiven && g.OverloadUnknown != "":
		return g.OverloadUnknown
	case g.RatesGiven && g.Reached != nil:
		text := "the control was not overloaded up to " + unit.PerSecond(*g.Reached) +
			", the highest rate that the experiment asks for"
		if g.TurnedAway != nil {
			text += "; " + g.TurnedAway.Sentence()
		}
		return text
	}
	return ""
}

// Sentence says from which rate on calls were turned away, and what that may mean.
func (t *GuardTurnedAway) Sentence() string {
	return fmt.Sprintf("from %s on calls were turned away as too many, which a limit before the control does as well, so "+
		"that no more than %s may have reached it", unit.PerSecond(t.Rate), unit.PerSecond(t.AtMost))
}

// overloadClass says whether the control was seen under the load that was asked for.
func (g *Guard) overloadClass() string {
	if g.Unearned != "" {
		return unsure
	}
	return plain
}

// sentence says what shows an overload: "52.7 % of the other calls were served, 100.0 % at lower rates".
func (o *GuardOverload) sentence() string {
	var parts []string
	if o.FewerServed && o.ServedShare != nil && o.ServedBelow != nil {
		parts = append(parts, fmt.Sprintf("%s of the other calls were served, %s at lower rates",
			Percent(o.ServedShare.Value), Percent(o.ServedBelow.Value)))
	}
	if o.Slower && o.Median != nil && o.MedianBelow != nil {
		parts = append(parts, fmt.Sprintf("the median response was %s, %s at lower rates", unit.Seconds(*o.Median),
			unit.Seconds(*o.MedianBelow)))
	}
	if len(o.LeftOut) > 0 {
		var rates []string
		for _, rate := range o.LeftOut {
			rates = append(rates, unit.PerSecond(rate))
		}
		parts = append(parts, "not counted among the lower rates: "+listed(rates)+", where it did badly, too, perhaps "+
			"because of other work or a stall")
	}
	return strings.Join(parts, "; ")
}
