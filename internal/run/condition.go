package run

import (
	"fmt"
	"slices"

	"tare/area"
	"tare/internal/record"
)

// Conditions are those that the file names, or all that the target can bring about by itself. One that the file names
// and that this treatment cannot have is noted.
func (a *Arm) Conditions() ([]area.Condition, error) {
	var own []area.Condition
	if conditions := a.Target.Can().Conditions; conditions != nil {
		own = conditions(a.Treatment)
	}
	if a.Load.Conditions == nil {
		return own, nil
	}
	var out []area.Condition
	for _, name := range a.Load.Conditions {
		i := slices.IndexFunc(own, func(c area.Condition) bool { return c.Name == name })
		if i >= 0 {
			out = append(out, own[i])
			continue
		}
		if err := a.Writer.Note(record.Note{
			Treatment: a.Treatment.ID,
			Text:      fmt.Sprintf("the condition %s cannot be brought about here, so nothing is known of it", name),
		}); err != nil {
			return nil, err
		}
	}
	for _, c := range a.Load.Commands {
		out = append(out, c.Condition(a.Treatment.ID, &a.journal))
	}
	return out, nil
}
