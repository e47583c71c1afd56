package sandbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/spelling"
)

// Validate implements area.Spec.
func (s *Spec) Validate(q area.Asked, treatments []design.Treatment) []area.Finding {
	var out []area.Finding
	s.guarded = q.Trespasses
	wrong := func(path, hint, format string, args ...any) {
		out = append(out, area.Finding{Path: path, Severity: area.Error, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	if len(s.Workloads)+len(s.Commands)+len(s.Real)+len(s.SetUp) == 0 {
		wrong("workloads", "workloads: [exec, open, fork]", "name something to time: workloads, commands, real or setup")
	}
	s.names(wrong)
	if s.Span != 0 && (time.Duration(s.Span) < time.Millisecond || time.Duration(s.Span) > 10*time.Second) {
		wrong("span", "leave it out for the default", "span: want 1ms to 10s")
	}
	treatments = kit.AtLeastOne(treatments)
	chosen := 0
	for _, t := range treatments {
		if _, err := s.plan(t); err != nil {
			out = append(out, area.Fault("", err, "").In(t))
		}
		if t.Levels[factorCommand] != "" {
			chosen++
		}
	}
	if chosen > 0 && chosen < len(treatments) {
		wrong("", "name a command in all treatments, or in none",
			"command: treatments that run one command cannot be compared with those that run all")
	}
	return append(out, s.checkGuarded(treatments)...)
}

// names checks that each operation exists, and has a unique name.
func (s *Spec) names(wrong func(path, hint, format string, args ...any)) {
	seen := map[string]string{commandOperation: "the operation of the factor \"command\""}
	take := func(path, name string) {
		if what, twice := seen[name]; twice {
			wrong(path, "", "%q is %s already", name, what)
		}
		seen[name] = path
	}
	var known []string
	for _, k := range workload.Kinds() {
		known = append(known, k.Name)
	}
	for i, name := range s.Workloads {
		path := fmt.Sprintf("workloads[%d]", i)
		if !slices.Contains(known, name) {
			wrong(path, "", "there is no workload %q%s there are %s", name, cmp.Or(spelling.DidYouMean(name, known), ";"),
				strings.Join(known, ", "))
			continue
		}
		take(path, name)
	}
	s.checkSetUp(wrong, take)
	for i, c := range s.Commands {
		path := fmt.Sprintf("commands[%d]", i)
		if !plainName(c.Name) {
			wrong(path+".name", "", "a command needs a name of letters, digits, '_' and '-', so that budgets can name it; "+
				"not %q", c.Name)
			continue
		}
		line := workload.Command{Name: c.Name, Run: c.Run, Prepare: c.Prepare}
		if err := line.Validate(); err != nil {
			wrong(path, "", "%v", err)
		}
		take(path+".name", c.Name)
	}
	for i, name := range s.Real {
		path := fmt.Sprintf("real[%d]", i)
		if _, ok := workload.FindLoad(name); !ok && !slices.Contains(realNames(), name) {
			wrong(path, "", "there is no real workload %q%s there are %s", name, cmp.Or(spelling.DidYouMean(name, realNames()),
				";"), strings.Join(realNames(), ", "))
		}
	}
	for _, name := range s.programs() {
		take("real", name)
	}
	for _, l := range s.loads() {
		take("real", l.Name())
	}
	for i, n := range s.Connections {
		path := fmt.Sprintf("connections[%d]", i)
		if n < 1 || n > workload.MostConnections {
			wrong(path, "", "%d connections: want 1 to %d", n, workload.MostConnections)
		}
	}
	if len(s.Connections) > 0 && !slices.ContainsFunc(s.Real, takesConnections) {
		wrong("connections", "name a server, such as real: [redis-get]", "there is no server in real that takes the number "+
			"of connections from here")
	}
}

// takesConnections reports whether the value of `real` is a server's load that says no number of connections itself.
func takesConnections(name string) bool {
	l, ok := workload.FindLoad(name)
	return ok && l.Connections == 0
}

// plainName reports whether a budget can name the operation.
func plainName(name string) bool {
	for _, c := range name {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return name != ""
}
