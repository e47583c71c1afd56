package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/internal/area"
	"tare/internal/config"
	"tare/internal/record"
)

// program is the program that makes an experiment's calls; zero where tare makes them itself. look says that nothing is going to be measured.
func (a *app) program(ctx context.Context, ar area.Area, e *config.Experiment, look bool) (area.Program, error) {
	p, ok := ar.(area.Programmed)
	if !ok {
		return area.Program{}, nil
	}
	env, err := a.areaEnv(".")
	if err != nil {
		return area.Program{}, err
	}
	env.Treatments, env.Look = e.Arms(), look
	found, err := p.Program(ctx, e.Target, env)
	if err != nil {
		return found, fmt.Errorf("look at the program that makes the calls: %w", err)
	}
	return found, nil
}

// sameProgram refuses to go on with a record whose blocks another program has measured. unknown is a warning where the record does not say which one did.
func (a *app) sameProgram(ctx context.Context, ar area.Area, e *config.Experiment, rec *record.Record) (unknown string, err error) {
	found, err := a.program(ctx, ar, e, false)
	if err != nil || found.Identity == nil {
		return "", err
	}
	was, now := rec.Header.Program, found.Identity
	if was == nil {
		return "the record does not say which program measured its first blocks: whether the others are of the same one is not known", nil
	}
	if d := differences(was, now); len(d) > 0 {
		return "", usage("%s was measured with another program: %s; blocks of two programs cannot be mixed: bring that one back, or run the experiment again",
			rec.Dir, strings.Join(d, "; "))
	}
	return "", nil
}

// differences words how two identities differ.
func differences(was, now map[string]string) (out []string) {
	all := maps.Clone(was)
	maps.Copy(all, now)
	for _, what := range slices.Sorted(maps.Keys(all)) {
		before, after := was[what], now[what]
		switch {
		case before == after:
		case before == "":
			out = append(out, fmt.Sprintf("%s: nothing then, %s now", what, short(after)))
		case after == "":
			out = append(out, fmt.Sprintf("%s: %s then, nothing now", what, short(before)))
		default:
			out = append(out, fmt.Sprintf("%s: %s then, %s now", what, short(before), short(after)))
		}
	}
	return out
}

// short is a word of an identity as a person compares it: of a SHA-256 the beginning.
func short(word string) string {
	const sum, begins = 64, 12
	if len(word) == sum && !strings.ContainsFunc(word, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) {
		return word[:begins] + "…"
	}
	return word
}

// startedIn adds to an error how the record's program was started: a relative path means something else in another folder.
func startedIn(rec *record.Record, err error) error {
	folder, command := rec.Header.Program["folder"], rec.Header.Program["command"]
	x, ok := errors.AsType[*exit](err)
	if folder == "" || !ok {
		return err
	}
	return &exit{code: x.code, cause: fmt.Errorf("%w; %s was measured with %s, in %s", x.cause, rec.Dir, command, folder)}
}
