package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/spelling"
)

// MostSpan and mostRounds bound what a program may describe.
const (
	MostSpan   = 10 * time.Second
	mostRounds = 10000
	mostName   = 64 // bytes
	mostAtOnce = 1024
)

// describe asks a program for its description.
func describe(ctx context.Context, c *client, within time.Duration) (Description, error) {
	var d Description
	if _, err := c.ask(ctx, within, Request{Do: DoDescribe, Protocol: Protocol}, &d); err != nil {
		return d, err
	}
	if err := d.valid(); err != nil {
		return d, c.fail(fmt.Errorf("it describes itself wrongly: %w", err))
	}
	return d, nil
}

// valid returns an error unless the description is consistent by itself.
func (d Description) valid() error {
	if d.Protocol != Protocol {
		return fmt.Errorf("it speaks protocol %d, and this tare speaks %d; use the program's version for protocol %d",
			d.Protocol, Protocol, Protocol)
	}
	if d.Name == "" {
		return errors.New("it has no name")
	}
	if len(d.Operations) == 0 {
		return errors.New("it has no operations: there is nothing to measure")
	}
	if d.AtOnce < 0 || d.AtOnce > mostAtOnce {
		return fmt.Errorf("at_once is %d, want 0 to %d", d.AtOnce, mostAtOnce)
	}
	seen, works := map[string]bool{}, false
	for _, o := range d.Operations {
		switch {
		case !Plain(o.Name):
			return fmt.Errorf("operation %.80q: want a name of letters, digits, '.', '_' and '-', at most %d of them, so "+
				"that budgets and files can name it",
				o.Name, mostName)
		case seen[o.Name]:
			return fmt.Errorf("two operations are named %q", o.Name)
		case o.SpanMS < 0 || o.SpanMS > float64(MostSpan.Milliseconds()):
			return fmt.Errorf("operation %q: span_ms is %v, want 0 to %d", o.Name, o.SpanMS, MostSpan.Milliseconds())
		case o.Rounds < 0 || o.Rounds > mostRounds:
			return fmt.Errorf("operation %q: rounds is %d, want 0 to %d", o.Name, o.Rounds, mostRounds)
		case o.Most < 0:
			return fmt.Errorf("operation %q: most is %d, want 0 or more", o.Name, o.Most)
		}
		seen[o.Name] = true
		works = works || o.works()
	}
	if !works {
		return errors.New("all its operations are of the harness or trespasses: there is nothing to measure")
	}
	for _, o := range d.Operations {
		if of, ok := d.operation(o.Trespass); o.Trespass != "" && (!ok || !of.works() || o.Harness) {
			return fmt.Errorf("operation %q: trespass is %.80q, want the name of an operation that must be allowed, of one "+
				"that is not of the harness", o.Name, o.Trespass)
		}
		if h, ok := d.operation(o.Overhead); o.Overhead != "" && (!ok || !h.Harness || o.Harness) {
			return fmt.Errorf("operation %q: overhead is %.80q, want the name of an operation of the harness, of one that is "+
				"not", o.Name, o.Overhead)
		}
	}
	return nil
}

// Plain reports whether a name can stand in files, budgets and tables unchanged: up to 64 letters, digits, '.', '_' and
// '-'.
func Plain(name string) bool {
	for _, r := range name {
		if (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r) {
			return false
		}
	}
	return name != "" && len(name) <= mostName
}

// same reports whether two processes of one run are of the same program.
func (d Description) same(o Description) bool {
	return d.Name == o.Name && d.Version == o.Version && slices.Equal(d.Operations, o.Operations) &&
		d.AtOnce == o.AtOnce &&
		reflect.DeepEqual(d.Factors, o.Factors)
}

// names lists the operations.
func (d Description) names() []string {
	var out []string
	for _, o := range d.Operations {
		out = append(out, o.Name)
	}
	return out
}

// operation finds an operation by its name.
func (d Description) operation(name string) (Operation, bool) {
	i := slices.IndexFunc(d.Operations, func(o Operation) bool { return o.Name == name })
	if i < 0 {
		return Operation{}, false
	}
	return d.Operations[i], true
}

// chosen returns the operations of these names, in order, or all if there are none; and the harness operations whose
// cost they include.
func (d Description) chosen(names []string) []string {
	if len(names) == 0 {
		return slices.DeleteFunc(d.names(), d.isTrespass)
	}
	out := slices.Clone(names)
	for _, h := range d.Operations {
		within := slices.ContainsFunc(names, func(name string) bool {
			o, ok := d.operation(name)
			return ok && !o.Harness && (o.Overhead == h.Name || o.Overhead == "")
		})
		if h.Harness && within && !slices.Contains(out, h.Name) {
			out = append(out, h.Name)
		}
	}
	return out
}

// Timed returns the operations that a run of these names times, as chosen names them.
func (d Description) Timed(names []string) (out []Operation) {
	for _, name := range d.chosen(names) {
		if o, ok := d.operation(name); ok {
			out = append(out, o)
		}
	}
	return out
}

// works reports whether the operation is one that a control must allow.
func (o Operation) works() bool { return !o.Harness && o.Trespass == "" }

// isTrespass reports whether the operation of that name is a trespass.
func (d Description) isTrespass(name string) bool {
	o, _ := d.operation(name)
	return o.Trespass != ""
}

// Check returns what is wrong with the chosen operations (none: all), the treatments' levels and the settings, given
// what the program describes. Paths are "operations", "settings.<name>", and "" for what is not in the target's
// section.
func (d Description) Check(operations []string, treatments []design.Treatment,
	settings map[string]string,
) []area.Finding {
	out := d.checkOperations(operations)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		out = append(out, d.checkLevel("settings."+name, "setting", name, settings[name])...)
	}
	seen := map[string]bool{}
	for _, t := range treatments {
		for _, name := range slices.Sorted(maps.Keys(t.Levels)) {
			if pair := name + "=" + t.Levels[name]; !seen[pair] {
				seen[pair] = true
				out = append(out, d.checkLevel("", "factor", name, t.Levels[name])...)
			}
		}
	}
	if len(d.Factors) == 0 && len(seen)+len(settings) > 0 {
		out = append(out, area.Finding{
			Severity: area.Warning, Message: d.Name +
				" does not describe its factors: one that is misspelt would change nothing, and nobody would notice",
			Hint: `let it answer describe with "factors": {"<name>": ["<level>", …]}; no levels: any`,
		})
	}
	return out
}

func (d Description) checkOperations(names []string) []area.Finding {
	var out []area.Finding
	wrong := func(hint, format string, args ...any) {
		out = append(out, area.Finding{
			Path: "operations", Severity: area.Error,
			Message: fmt.Sprintf(format, args...), Hint: hint,
		})
	}
	works := len(names) == 0
	for i, name := range names {
		o, ok := d.operation(name)
		if !ok {
			wrong("it has "+strings.Join(d.names(), ", "), "%s has no operation %q%s", d.Name, name,
				spelling.DidYouMean(name, d.names()))
		}
		if o.Trespass != "" {
			wrong("name "+o.Trespass, "operation %q is a trespass: guard mixes it into the calls of %s, and nothing else asks "+
				"for it", name, o.Trespass)
		}
		if slices.Contains(names[:i], name) {
			wrong("name it once", "operation %q is named twice", name)
		}
		works = works || !ok || !o.Harness
	}
	if !works {
		wrong("name one that works too", "%s: %s only: it is of the harness, and does nothing", d.Name,
			strings.Join(names, ", "))
	}
	return out
}

// checkLevel checks one factor's or setting's value.
func (d Description) checkLevel(path, what, name, level string) []area.Finding {
	if len(d.Factors) == 0 {
		return nil
	}
	levels, ok := d.Factors[name]
	known := slices.Sorted(maps.Keys(d.Factors))
	switch {
	case !ok:
		return []area.Finding{{
			Path: path, Severity: area.Error, Message: fmt.Sprintf("%s has no factor %q%s", d.Name, name,
				spelling.DidYouMean(name, known)),
			Hint: "it has " + strings.Join(known, ", "),
		}}
	case len(levels) > 0 && !slices.Contains(levels, level):
		return []area.Finding{{
			Path: path, Severity: area.Error, Message: fmt.Sprintf("%s %q: %s has no level %q%s", what, name, d.Name, level,
				spelling.DidYouMean(level, levels)),
			Hint: "it has " + strings.Join(levels, ", "),
		}}
	}
	return nil
}

// An Introduction is a program's description, and the time that it took to start, to describe itself, and to end.
type Introduction struct {
	Description

	Took time.Duration
}

// Try starts a program, lets it describe itself within a time (0: DefaultDescribeWithin), and stops it: for preflight.
// It leaves nothing behind, even when this process is killed meanwhile. Errors are sentences for the user, and quote
// the program's stderr.
func Try(ctx context.Context, p Program, within time.Duration) (in Introduction, err error) {
	file, err := Scratch(os.TempDir())
	if err != nil {
		return in, fmt.Errorf("make a file for what %s says on stderr: %w", p.Name, err)
	}
	defer file.Close() //nolint:errcheck // the file has no name: nothing is lost
	log := scratchLog{file}
	if in, err = try(ctx, p, within, log.path()); err != nil {
		err = withoutLog{err, log.path()}
	}
	return in, err
}

func try(ctx context.Context, p Program, within time.Duration, log string) (in Introduction, err error) {
	if within <= 0 {
		within = DefaultDescribeWithin
	}
	started, err := monotonic()
	if err != nil {
		return in, err
	}
	c, err := launch{program: p, log: log}.start(ctx)
	if err != nil {
		return in, err
	}
	in.Description, err = describe(ctx, c, within)
	if untidy := c.stop(context.WithoutCancel(ctx)); untidy != "" && err == nil {
		err = errors.New(untidy)
	}
	ended, e := monotonic()
	in.Took = ended - started
	return in, errors.Join(err, e)
}
