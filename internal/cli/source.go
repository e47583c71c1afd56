package cli

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/config"
	"tare/internal/kit"
	"tare/internal/shell"
	"tare/internal/unit"
)

// A source is the text of an experiment.
type source struct {
	name string // in errors
	file string // that holds this text; empty: none does
	text []byte
	set  []string // paths of values that the command line gave
}

// sourceFlags change an experiment that has been read.
type sourceFlags struct {
	full    bool
	set     []string
	maxRate string
}

// given reports whether one of the flags is.
func (f *sourceFlags) given() bool { return f.full || len(f.set) > 0 || f.maxRate != "" }

func (f *sourceFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.full, "full", false,
		"run the whole experiment if the file has a shortened form of it (section full)")
	f.addValues(c)
}

// addValues adds the flags that need no section full.
func (f *sourceFlags) addValues(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.set, "set", nil,
		"PATH=VALUE replaces or adds a value of the file: load.rate=50/s, treatments[0].mode=audit; repeatable")
	c.Flags().StringVar(&f.maxRate, "max-rate", "", "the most that is sent to targets, such as 200/s (load.max_rate)")
}

// maxSource bounds what is read; the parser of experiments says how large one may be.
const maxSource = 1 << 20

// read reads an experiment from a file, or from standard input if that is "-".
func (a *app) read(file string) (source, error) {
	if file != "-" {
		text, err := kit.ReadText(file, maxSource)
		if err != nil || isObject.Match(text) {
			if how := a.policies(file); how != nil {
				return source{}, how
			}
		}
		if err != nil {
			return source{}, usage("read experiment: %w", err)
		}
		return source{name: file, file: file, text: text}, nil
	}
	if a.Stdin == nil {
		return source{}, usage("read experiment: there is no standard input")
	}
	text, err := io.ReadAll(io.LimitReader(a.Stdin, maxSource))
	if err != nil {
		return source{}, usage("read experiment: %w", err)
	}
	return source{name: "standard input", text: text}, nil
}

// isObject matches the text of what is an object of an API's, and no experiment.
var isObject = regexp.MustCompile(`(?m)^(?:\{\s*"|["']?)apiVersion\b`)

// policies says how policies are measured that stand where an experiment or a server is asked for, and what is wrong
// with them; nil: there are none.
func (a *app) policies(at string) error {
	text, err := kit.ReadText(at, maxSource)
	there := isObject.Match(text) || errors.Is(err, kit.ErrFolder)
	command := "tare compare --policies " + shell.Line([]string{at})
	var wrong error
	for _, ar := range a.Areas {
		compose := ar.Parts().ComparePolicies
		if compose == nil {
			continue
		}
		switch _, ok, err := compose([]string{at}); {
		case ok && err == nil:
			return usage("%s holds policies, and is no experiment file or server; measure them by: %s", at, command)
		case ok && there && wrong == nil:
			wrong = usage("%w\n%s is no experiment file or server; mend this, and measure its policies by: %s", err, at,
				command)
		}
	}
	return wrong
}

// value returns what the flags set a path to; empty: they do not.
func (f *sourceFlags) value(path string) (value string) {
	if path == "load.max_rate" && f.maxRate != "" {
		return f.maxRate
	}
	for _, x := range f.set {
		if v, ok := strings.CutPrefix(x, path+"="); ok {
			value = v
		}
	}
	return value
}

// change applies the flags to an experiment.
func (f *sourceFlags) change(s source) (source, error) {
	set := f.set
	if f.maxRate != "" {
		if _, err := unit.ParseRate(f.maxRate); err != nil {
			return s, usage("--max-rate: %w", err)
		}
		set = slices.Concat(set, []string{"load.max_rate=" + f.maxRate})
	}
	var paths []string // and not their values, which may be secrets
	for _, x := range set {
		path, value, ok := strings.Cut(x, "=")
		if !ok {
			return s, usage("--set %s: want PATH=VALUE, such as load.rate=50/s", x)
		}
		text, err := config.Set(s.text, path, value)
		if err != nil {
			return s, usage("%s: --set %s: %w", s.name, path, err)
		}
		s.text, s.file = text, ""
		paths = append(paths, path)
	}
	s.set = paths
	if len(paths) > 0 {
		s.name += " with " + strings.Join(paths, ", ") + " set"
	}
	return s, nil
}

// experiment parses an experiment. It writes all errors of it to stderr.
func (a *app) experiment(s source) (*config.Experiment, error) {
	e, diagnostics := config.Parse(s.name, s.text, a.Areas)
	bad := 0
	for _, d := range diagnostics {
		var text strings.Builder
		if err := d.Write(&text, s.text); err != nil {
			return nil, err
		}
		a.tell("%s", text.String())
		if d.Severity == area.Error {
			bad++
		}
	}
	if bad > 0 {
		return nil, &exit{code: ExitUsage, cause: fmt.Errorf("%s: %s", s.name, unit.Count(bad, "error")), quiet: true}
	}
	return e, nil
}

// ready parses an experiment, applies its defaults, and finds its area.
func (a *app) ready(s source, full bool) (area.Area, *config.Experiment, error) {
	e, err := a.experiment(s)
	if err != nil {
		return nil, nil, err
	}
	if full {
		whole, ok := e.Whole()
		if !ok {
			return nil, nil, usage("--full: %s has no section full: it is the whole experiment already", s.name)
		}
		e = whole
	}
	ar, err := a.area(e.Area)
	if err != nil {
		return nil, nil, err
	}
	return ar, e.WithDefaults(), nil
}
