package exec

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/driver"
	"tare/internal/kit"
)

// The bounds of values in a file.
const (
	leastSpan, mostSpan         = time.Millisecond, 10 * time.Second
	leastPatience, mostPatience = time.Second, time.Hour
	mostDescription             = 10 * time.Minute
	mostPreparation             = 24 * time.Hour
	usualPatience               = 2 * time.Minute
	// longestBatch bounds a batch, in spans: four for the slowest arm, and twice that for a busy host.
	longestBatch = 8
)

// settingName is the same as for factors: the program does not distinguish them.
var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

const longestName = 64

// notDrivers are the subcommands of go that start no program that could speak tare's protocol.
var notDrivers = []string{"test", "build", "vet", "install", "generate"}

// findings collects findings.
type findings []area.Finding

func (f *findings) wrong(path, hint, format string, args ...any) {
	*f = append(*f, area.Finding{Path: path, Severity: area.Error, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Validate implements area.Spec. It starts nothing and reads no file: Preflight checks the program's operations,
// factors and levels.
func (s *Spec) Validate(_ area.Asked, treatments []design.Treatment) []area.Finding {
	var out findings
	s.checkProgram(&out)
	s.checkEnv(&out)
	s.checkSettings(treatments, &out)
	s.checkOperations(&out)
	s.checkTimes(&out)
	return out
}

func (s *Spec) checkProgram(out *findings) {
	if len(s.Program) == 0 || strings.TrimSpace(s.Program[0]) == "" {
		out.wrong("program", "program: [python3, my_program.py]", "name the program to run")
		return
	}
	for i, arg := range s.Program {
		if strings.ContainsRune(arg, 0) {
			out.wrong(fmt.Sprintf("program[%d]", i), "", "an argument cannot hold a zero byte")
		}
		if i > 0 && strings.HasPrefix(s.Program[i-1], "-") && kit.IsSecretName(s.Program[i-1]) && kit.IsLiteral(arg) {
			*out = append(*out, area.Finding{
				Path: fmt.Sprintf("program[%d]", i), Severity: area.Error, Secret: true,
				Message: fmt.Sprintf("a secret stands after %s, and would be copied into the record", s.Program[i-1]),
				Hint:    "hand it over in an environment variable (env: [NAME]), or have the program read a file",
			})
		}
	}
	if len(s.Program) == 1 && strings.ContainsAny(s.Program[0], " \t") {
		words := strings.Join(strings.Fields(s.Program[0]), ", ")
		out.wrong("program[0]", "write program: ["+words+"]",
			"%q is one name with spaces in it; each argument is an item of the list", s.Program[0])
	}
	if len(s.Program) > 1 && filepath.Base(s.Program[0]) == "go" && slices.Contains(notDrivers, s.Program[1]) {
		*out = append(*out, area.Finding{
			Path: "program", Severity: area.Warning,
			Message: fmt.Sprintf("go %s writes text to its standard output, where tare expects answers to its requests, "+
				"line by line in JSON", s.Program[1]),
			Hint: "name a program that speaks the protocol of areas/exec/README.md; tare import reads results of Go " +
				"benchmarks",
		})
	}
	if strings.ContainsRune(s.Dir, 0) {
		out.wrong("dir", "", "a path cannot hold a zero byte")
	}
}

func (s *Spec) checkEnv(out *findings) {
	seen := map[Variable]bool{}
	for i, v := range s.Env {
		path := fmt.Sprintf("env[%d]", i)
		switch err := v.check(); {
		case err != nil:
			out.wrong(path, "", "%v", err)
		case slices.Contains(driver.Usual(), string(v)):
			out.wrong(path, "leave it out", "every program gets %s", v)
		case seen[v]:
			out.wrong(path, "", "%s is named twice", v)
		}
		seen[v] = true
	}
}

func (s *Spec) checkSettings(treatments []design.Treatment, out *findings) {
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		path := "settings." + name
		if !settingName.MatchString(name) || len(name) > longestName {
			out.wrong("settings", "", "%q: want a name of letters, digits, '_', '.' and '-', up to %d long, as of a factor",
				name, longestName)
			continue
		}
		if err := s.Settings[name].check(); err != nil {
			out.wrong(path, "", "%v", err)
		}
		if slices.ContainsFunc(treatments, func(t design.Treatment) bool { _, ok := t.Levels[name]; return ok }) {
			out.wrong(path, "leave it out here, and name its level in every treatment that lacks one",
				"%q is a factor already: what is varied cannot be set", name)
		}
	}
}

func (s *Spec) checkOperations(out *findings) {
	for i, name := range s.Operations {
		path := fmt.Sprintf("operations[%d]", i)
		switch {
		case !driver.Plain(name):
			out.wrong(path, "", "%q: operations have names of letters, digits, '.', '_' and '-', so that budgets can name them",
				name)
		case slices.Contains(s.Operations[:i], name):
			out.wrong(path, "", "%q is named twice", name)
		}
	}
}

func (s *Spec) checkTimes(out *findings) {
	within := func(path string, d, least, most time.Duration, otherwise string) bool {
		if d != 0 && (d < least || d > most) {
			out.wrong(path, "leave it out for "+otherwise, "%s: want %v to %v", path, short(least), short(most))
			return false
		}
		return true
	}
	span, patience := time.Duration(s.Span), time.Duration(s.Patience)
	fine := within("span", span, leastSpan, mostSpan, "the program's own")
	fine = within("patience", patience, leastPatience, mostPatience, "2m") && fine
	within("describe_within", time.Duration(s.DescribeWithin), leastPatience, mostDescription, "10s")
	within("prepare_within", time.Duration(s.PrepareWithin), leastPatience, mostPreparation, "10m")
	if patience == 0 {
		patience = usualPatience
	}
	if fine && longestBatch*span > patience {
		out.wrong("patience", "", "a batch of the slowest treatment may last several spans of %v: allow at least %v",
			short(span), short(longestBatch*span))
	}
	if s.Rounds != 0 && (s.Rounds < 3 || s.Rounds > 1000) {
		out.wrong("rounds", "leave it out for the program's own", "rounds: want 3 to 1000")
	}
}

// short formats a duration as in a file: 1h, not 1h0m0s.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// check checks the file against the program's description.
func (s *Spec) check(d driver.Description, treatments []design.Treatment) []area.Finding {
	return d.Check(s.Operations, treatments, s.settings())
}
