package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/config"
	"tare/internal/record"
)

// program identifies the program that makes an experiment's calls, or the files that say what is measured; it is zero
// if there are none. It reads only Look and Inert of as, which say what may be started.
func (a *app) program(ctx context.Context, ar area.Area, e *config.Experiment, as area.Env) (area.Program, error) {
	identify := ar.Parts().Program
	if identify == nil {
		return area.Program{}, nil
	}
	env, err := a.areaEnv(".")
	if err != nil {
		return area.Program{}, err
	}
	env.Treatments, env.Look, env.Inert = e.Arms(), as.Look, as.Inert
	found, err := identify(ctx, e.Target, env)
	if err != nil && !found.Files {
		return found, fmt.Errorf("inspect the program that makes the calls: %w", err)
	}
	return found, err
}

// sameProgram fails if another program measured the record's first blocks. unknown is a warning that the record does
// not say which program did.
func (a *app) sameProgram(ctx context.Context, ar area.Area, e *config.Experiment, rec *record.Record) (unknown string,
	err error,
) {
	found, err := a.program(ctx, ar, e, area.Env{})
	if err != nil || found.Identity == nil {
		return "", err
	}
	was, now := rec.Header.Program, found.Identity
	if was == nil {
		return "the record does not say which program measured its first blocks, so tare cannot tell whether the others " +
			"used the same one", nil
	}
	if d := differences(was, now); len(d) > 0 {
		what := "program"
		if found.Files {
			what = "file"
		}
		return "", usage("%s was measured with another %s: %s; blocks of two %ss cannot be mixed: restore that %s, or start "+
			"a new run", rec.Dir, what, strings.Join(d, "; "), what, what)
	}
	return "", nil
}

// differences describes how two identities differ.
func differences(was, now map[string]string) (out []string) {
	all := maps.Clone(was)
	maps.Copy(all, now)
	for _, what := range slices.Sorted(maps.Keys(all)) {
		before, after := was[what], now[what]
		switch {
		case before == after:
		case before == "":
			out = append(out, fmt.Sprintf("%s: nothing then, %s now", what, abbreviated(after)))
		case after == "":
			out = append(out, fmt.Sprintf("%s: %s then, nothing now", what, abbreviated(before)))
		default:
			out = append(out, fmt.Sprintf("%s: %s then, %s now", what, abbreviated(before), abbreviated(after)))
		}
	}
	return out
}

// abbreviated returns a part of an identity for people to compare: the beginning of a SHA-256.
func abbreviated(word string) string {
	const sum, begins = 64, 12
	if len(word) == sum && !strings.ContainsFunc(word,
		func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) {
		return word[:begins] + "…"
	}
	return word
}

// startedIn adds to an error how the record's program was started: a relative path means another file in another
// folder.
func startedIn(rec *record.Record, err error) error {
	folder, command := rec.Header.Program["folder"], rec.Header.Program["command"]
	x, ok := errors.AsType[*exit](err)
	if folder == "" || !ok {
		return err
	}
	return &exit{code: x.code, cause: fmt.Errorf("%w; %s was measured with %s, in %s", x.cause, rec.Dir, command, folder)}
}
