package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"tare/area"
	"tare/internal/driver"
	"tare/internal/unit"
)

// Preflight implements area.Area: it finds the program, lets it describe itself, and checks the file against the
// description. It prepares nothing and leaves nothing behind.
func (Area) Preflight(ctx context.Context, s area.Spec, env area.Env) []area.Finding {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return []area.Finding{area.Fault("", err, "")}
	}
	program, err := spec.program(env)
	if err != nil {
		return []area.Finding{finding(err)}
	}
	d, err := driver.Try(ctx, program, time.Duration(spec.DescribeWithin))
	if err != nil {
		next := "run it manually: " + spec.manualCommand(program.Dir)
		if errors.Is(err, driver.ErrLate) {
			next = "let it describe itself at once, and do what is slow in prepare, or give it longer with describe_within; " +
				next
		}
		if errors.Is(err, syscall.ENOEXEC) {
			next = "a script needs a first line such as #!/usr/bin/env python3, or what runs it before it in program; a " +
				"binary must be of this machine's kind"
		}
		return []area.Finding{area.Fault("target.program", err, next)}
	}
	out := spec.check(d.Description, env.Treatments)
	if env.Trespasses {
		out = append(out, d.CheckGuard(spec.Operations)...)
	}
	for i := range out {
		if out[i].Path != "" && !strings.HasPrefix(out[i].Path, "target") {
			out[i].Path = "target." + out[i].Path
		}
	}
	return append(out, area.Finding{Severity: area.Info, Message: introduce(d.Description, program)})
}

// identify is area.Parts.Program.
func identify(ctx context.Context, s area.Spec, env area.Env) (area.Program, error) {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return area.Program{}, err
	}
	if env.Inert {
		return area.Program{Counts: "without the start of its processes, which only --try measures"}, nil
	}
	p, err := spec.program(env)
	if err != nil {
		return area.Program{}, err
	}
	d, err := driver.Try(ctx, p, time.Duration(spec.DescribeWithin))
	if err != nil {
		return area.Program{}, err
	}
	identity, err := driver.Identity(p, d.Description)
	if err != nil {
		return area.Program{}, err
	}
	identity["command"], identity["folder"] = spec.commandLine(), p.Dir
	out := area.Program{Identity: identity, Batches: spec.described(d.Description)}
	out.Once, out.Block, out.Counts = spec.starts(len(env.Treatments), d.Took)
	return out, nil
}

// starts estimates how long the processes of so many treatments take to start, describe themselves and end, given how
// long one took just now.
func (s *Spec) starts(treatments int, took time.Duration) (once, block time.Duration, counts string) {
	each := time.Duration(treatments) * took
	often := "at the beginning, in each block and at the end"
	once, block = 2*each, each
	if s.Fresh == freshRun {
		once, block, often = each, 0, "once"
	}
	return once, block, fmt.Sprintf("each process takes %s to start and to end, as just now: %s %s; what prepare "+
		"takes besides is not known before a run, and not in it", brief(took), unit.Count(treatments, "process"), often)
}

// brief formats a short time.
func brief(d time.Duration) string { return d.Round(time.Millisecond).String() }

// finding turns an error into a finding.
func finding(err error) area.Finding {
	path := "target"
	if h, ok := errors.AsType[hinted](err); ok {
		path += "." + h.path
	}
	return area.Fault(path, err, "")
}

// manualCommand returns a command line that shows the user the program's answer.
func (s *Spec) manualCommand(dir string) string {
	return fmt.Sprintf(`cd %s && printf '{"id":1,"do":"describe","protocol":%d}\n{"id":2,"do":"stop"}\n' | %s`,
		shellWord(dir), driver.Protocol, s.commandLine())
}

// commandLine returns the program with its arguments, as typed in a shell.
func (s *Spec) commandLine() string {
	words := make([]string, 0, len(s.Program))
	for _, w := range s.Program {
		words = append(words, shellWord(w))
	}
	return strings.Join(words, " ")
}

// shellWord quotes a word for a shell if necessary.
func shellWord(w string) string {
	plain := func(r rune) bool {
		return r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("%+,-./:=@_", r)
	}
	if w != "" && !strings.ContainsFunc(w, func(r rune) bool { return !plain(r) }) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// introduce summarizes the program's description.
func introduce(d driver.Description, p driver.Program) string {
	var operations []string
	for _, o := range d.Operations {
		name := o.Name
		switch {
		case o.Harness:
			name += " (the harness)"
		case o.Trespass != "":
			name += " (a trespass)"
		}
		operations = append(operations, name)
	}
	text := strings.TrimSpace(d.Name+" "+d.Version) + " (" + p.Path + "): operations " + strings.Join(operations, ", ")
	if len(d.Factors) == 0 {
		return text
	}
	var factors []string
	for f := range d.Factors {
		factors = append(factors, f)
	}
	slices.Sort(factors)
	return text + "; factors " + strings.Join(factors, ", ")
}

// Creates lists what a run of s creates on this host, for the plan.
func (s *Spec) Creates(treatments []area.Treatment) []string {
	if len(s.Program) == 0 {
		return nil
	}
	often := "anew in every block"
	if s.Fresh == freshRun {
		often = "for the whole run"
	}
	return []string{
		fmt.Sprintf("%s of %s at a time, one for each treatment, %s", unit.Count(len(treatments), "process"),
			s.name(), often),
		fmt.Sprintf("a folder for each treatment in %s, removed at the end", os.TempDir()),
		"what the program itself makes to prepare a treatment; it is asked to undo that at the end",
	}
}
