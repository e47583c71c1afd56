package report

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/unit"
)

// guardFacts are the few facts that answer whether a control guards, from which rate it does not, and under which
// condition; a table for several treatments.
func guardFacts(r *Report) []block {
	switch len(r.Guard) {
	case 0:
		return nil
	case 1:
		return []block{{Facts: r.Guard[0].facts()}}
	}
	return tabular(&grid{table: factTable(r), Caption: "Does it guard, by treatment"})
}

// factTable has a row of facts for each treatment.
func factTable(r *Report) table {
	t := wordHeads("treatment")
	for i := range r.Guard {
		t.add(r.short(r.Guard[i].Treatment))
	}
	for _, name := range []string{factPermitted, factRate, factOverload, factConditions, factMixedUp, factUnknown} {
		column := wordHeads(strings.ToLower(name))
		some := false
		for i := range r.Guard {
			cell := ""
			for _, f := range r.Guard[i].facts() {
				if f.Name == name {
					cell, some = f.cell(), true
				}
			}
			column.add(cell)
		}
		if some {
			t = append(t, column...)
		}
	}
	return t
}

// cell is a fact in a table.
func (f fact) cell() string {
	between := "; "
	if f.Value == "none" || f.Name == factMixedUp {
		between = " " // the note goes on
	}
	return strings.Join(nonEmpty(f.Value, f.Note), between)
}

// The names of the facts.
const (
	factPermitted  = "Trespasses permitted"
	factRate       = "From a rate of"
	factOverload   = "Overloaded"
	factConditions = "Under conditions"
	factMixedUp    = "Mixed up"
	factUnknown    = "Few decided"
)

// facts are those of one treatment.
func (g *Guard) facts() []fact {
	out := []fact{g.permittedFact(), g.rateFact()}
	if f, ok := g.overloadFact(); ok {
		out = append(out, f)
	}
	if f, ok := g.conditionFact(); ok {
		out = append(out, f)
	}
	if g.Foreign > 0 {
		out = append(out, fact{
			Name: factMixedUp, Value: unit.Count(int(g.Foreign), "other call"), Note: "got what is somebody else's", Class: bad,
		})
	}
	if places := g.unknown(); len(places) > 0 {
		out = append(out, fact{Name: factUnknown, Value: places[0].where, Note: places[0].count()})
		if n := len(places) - 1; n > 0 {
			out[len(out)-1].Note += fmt.Sprintf(", and at %d more", n)
		}
	}
	return out
}

// permittedFact is how many trespasses were permitted.
func (g *Guard) permittedFact() fact {
	n := &g.Trespasses
	f := fact{Name: factPermitted, Value: fmt.Sprintf("%d of %d", n.Permitted, n.Decided()), Class: bad}
	switch {
	case n.Share == nil:
		return fact{Name: factPermitted, Value: "not known", Note: "no trespass was decided"}
	case n.Permitted > 0:
		f.Note = n.Share.ranged()
	default:
		f.Note, f.Class = "below "+ShareBelow(n.Share.Hi), good
	}
	if g.Unearned != "" && f.Class == good {
		f.Class = ""
	}
	if n.Unclear > 0 {
		f.Note += fmt.Sprintf("; %d answered neither way", n.Unclear)
	}
	if n.Unanswered > 0 {
		f.Note += fmt.Sprintf("; %d not answered", n.Unanswered)
	}
	if n.Open() > 0 && n.Permitted == 0 {
		f.Class = ""
	}
	return f
}

// overloadFact is from which rate on the control was overloaded; ok is false if that was not asked.
func (g *Guard) overloadFact() (f fact, ok bool) {
	f = fact{Name: factOverload, Value: "not seen"}
	if g.OverloadUnknown != "" {
		f.Value = "not known"
	}
	switch {
	case g.Overload != nil && g.Unearned != "":
		f.Value, f.Note = "from "+unit.PerSecond(g.Overload.Rate), "too few trespasses were answered there"
	case g.Overload != nil:
		f.Value, f.Note = "from "+unit.PerSecond(g.Overload.Rate), g.Overload.sentence()
	case g.TurnedAway != nil:
		f.Note = "calls were turned away from " + unit.PerSecond(g.TurnedAway.Rate) + " on"
	case g.Reached != nil:
		f.Note = "up to " + unit.PerSecond(*g.Reached)
	}
	return f, g.Overload != nil || g.Unearned != "" || g.RatesGiven
}

// rateFact is from which rate trespasses were permitted.
func (g *Guard) rateFact() fact {
	f := fact{Name: factRate, Class: bad}
	highest, none := "", "no trespass was decided"
	for _, p := range g.byRate() {
		switch {
		case p.Trespasses.Decided() == 0:
		case p.late():
			none = "the generator kept up with no rate"
		default:
			highest = unit.PerSecond(p.Rate)
		}
	}
	switch o := g.Onset; {
	case o == nil && highest == "":
		return fact{Name: f.Name, Value: "not known", Note: none}
	case o == nil:
		f.Value, f.Note, f.Class = "none", "up to "+highest, good
		if g.Unearned != "" {
			f.Class = ""
		}
		return f
	case o.Above == nil:
		f.Value, f.Note = unit.PerSecond(o.Below), "the lowest that was decided"
	case !o.Clear:
		f.Value, f.Note = unit.PerSecond(o.Below), "perhaps lower: none there may be chance"
	case !o.Sharp:
		f.Value, f.Note = unit.PerSecond(o.Below), "rarely at first"
	default:
		f.Value, f.Note = unit.PerSecond(*o.Above)+" to "+unit.PerSecond(o.Below), "none below"
	}
	if o := g.Onset; o.Later {
		f.Note = "less at some higher rates"
	}
	return f
}

// conditionFact is under which conditions trespasses were permitted; ok is false if there was none.
func (g *Guard) conditionFact() (f fact, ok bool) {
	permitted, none := g.underConditions()
	silent := ""
	if places := g.silent(); len(places) > 0 {
		silent = "not known while " + listed(namedPlaces(places)) + " lasted"
	}
	f = fact{Name: factConditions, Value: strings.Join(permitted, ", "), Class: bad}
	switch {
	case len(permitted) > 0 && none != "":
		none = "not " + none
	case len(permitted) > 0:
	case none != "" && silent != "":
		f.Value, f.Class = "none", ""
	case none != "":
		f.Value, f.Class = "none", good
	case silent != "":
		f.Value, f.Class, silent = "not known", "", strings.TrimPrefix(silent, "not known ")
	}
	f.Note = strings.Join(nonEmpty(none, silent), "; ")
	return f, f.Value != ""
}

// byCondition says under which conditions trespasses were permitted, and under which none; "": that is known of none.
func (g *Guard) byCondition() string {
	switch permitted, none := g.underConditions(); {
	case len(permitted) == 0 && none == "":
		return ""
	case len(permitted) == 0:
		return "no trespass was permitted " + none
	case none == "":
		return "trespasses were permitted " + placed(permitted)
	default:
		return "trespasses were permitted " + placed(permitted) + "; none " + none
	}
}

// afterIt begins what underConditions lists where trespasses were permitted only once the condition had ended.
const afterIt = "after "

// placed says under and after which conditions, as underConditions lists them.
func placed(permitted []string) string {
	var under, after, parts []string
	for _, text := range permitted {
		if name, ended := strings.CutPrefix(text, afterIt); ended {
			after = append(after, name)
		} else {
			under = append(under, text)
		}
	}
	if len(under) > 0 {
		parts = append(parts, "under "+listed(under))
	}
	if len(after) > 0 {
		parts = append(parts, afterIt+listed(after))
	}
	return strings.Join(parts, ", and ")
}

// underConditions lists the conditions under which trespasses were permitted, or after which, with how many, and says
// under which conditions, and after which, trespasses were decided and none was permitted.
func (g *Guard) underConditions() (permitted []string, none string) {
	var under, after []string
	for _, p := range g.conditions() {
		switch n, c := &p.Trespasses, p.Condition; {
		case n.Permitted > 0 && p.LastBreach != nil && *p.LastBreach < 0:
			continue // before it had begun
		case n.Permitted > 0:
			text := fmt.Sprintf("%s (%d of %d)", c.Name, n.Permitted, n.Decided())
			if d, a := c.During, c.Afterwards; d != nil && d.Permitted == 0 && a != nil && a.Permitted > 0 {
				text = fmt.Sprintf("%s%s (%d of %d)", afterIt, c.Name, a.Permitted, a.Decided())
			}
			if o := g.Onset; o != nil && o.Below <= p.Rate {
				text = strings.TrimSuffix(text, ")") + ", and some without it)"
			}
			permitted = append(permitted, text)
		case c.During.known():
			under = append(under, c.Name)
		case c.Afterwards.known():
			after = append(after, c.Name)
		}
	}
	var parts []string
	if len(under) > 0 {
		parts = append(parts, "under "+listed(under))
	}
	if len(after) > 0 {
		parts = append(parts, "after "+listed(after))
	}
	return permitted, strings.Join(parts, ", and none ")
}

// known reports whether enough of the trespasses were decided to say how a control decides; nil: there were none.
func (n *Trespasses) known() bool {
	return n != nil && n.Decided() > 0 && (n.Decided() >= wellKnown || 2*n.Decided() >= n.offered())
}

// A place is where little is known of trespasses that were offered.
type place struct {
	where string // "at 800/s", or the name of a condition
	n     *Trespasses
}

func (p place) count() string { return fmt.Sprintf("%d of %d", p.n.Decided(), p.n.offered()) }

// namedPlaces are places with their counts: "partition (0 of 130 trespasses decided)", "restart (2 of 14)".
func namedPlaces(places []place) (out []string) {
	for i, p := range places {
		of := ""
		if i == 0 {
			of = " trespasses decided"
		}
		out = append(out, fmt.Sprintf("%s (%s%s)", p.where, p.count(), of))
	}
	return out
}

// unknown are the rates and the conditions at and under which most trespasses were not decided, and too few were.
func (g *Guard) unknown() (out []place) {
	add := func(where string, n *Trespasses) {
		if n != nil && n.offered() > 0 && !n.known() {
			out = append(out, place{where, n})
		}
	}
	for _, p := range g.byRate() {
		add("at "+unit.PerSecond(p.Rate), &p.Trespasses)
	}
	for _, p := range g.conditions() {
		add("after "+p.Condition.Name, p.Condition.Afterwards)
		if p.Trespasses.Permitted > 0 {
			add("under "+p.Condition.Name, p.Condition.During)
		}
	}
	return out
}

// silent are the conditions that permitted nothing and under which too few trespasses were decided.
func (g *Guard) silent() (out []place) {
	for _, p := range g.conditions() {
		if n := p.Condition.During; p.Trespasses.Permitted == 0 && n != nil && !n.known() {
			out = append(out, place{p.Condition.Name, n})
		}
	}
	return out
}

// Silent says that a control permitted nothing under some conditions, and refused nothing or little: it did not answer,
// or with errors. "": it decided enough under each.
func (g *Guard) Silent() string {
	places := g.silent()
	if len(places) == 0 || g.Trespasses.Share == nil {
		return ""
	}
	refused := "none refused"
	if slices.ContainsFunc(places, func(p place) bool { return p.n.Decided() > 0 }) {
		refused = "few or none refused"
	}
	return "while " + listed(namedPlaces(places)) + " lasted, none was permitted and " + refused +
		": how the control decides then is not known"
}

// littleKnown says where little is known; "": nowhere, or everywhere.
func (g *Guard) littleKnown() string {
	places := g.unknown()
	if len(places) == 0 || g.Trespasses.Share == nil {
		return ""
	}
	more := max(0, len(places)-maxNamed)
	parts := namedPlaces(places[:len(places)-more])
	if more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return "how it decides is hardly known " + listed(parts)
}
