package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tare/area"
	"tare/internal/design"
)

// A Program is a driver that can be started.
type Program struct {
	Name string   // in errors, and as the subject of its probes: "hash.py"
	Path string   // the binary; without a slash it is looked up in PATH
	Args []string // without the binary
	Dir  string   // working directory; empty: tare's own
	Env  []string // its whole environment, "NAME=value", to which Mark is added
	// Files are the files that define the program, by their role: the binary, the script that it interprets. Their content
	// is part of its Identity, and must not change while it is measured.
	Files map[string]string
}

// Mark is the environment variable that holds a driver's folder, for the driver and all that it starts. By it tare
// finds processes that outlive their parents.
const Mark = "TARE_DRIVER"

// An Arm is the program and the levels of one treatment.
type Arm struct {
	Program Program
	Levels  map[string]string // the file's settings, overridden by the treatment's levels
}

// Config says what a Target measures and how.
type Config struct {
	Area string // its name, for the journal
	Env  area.Env
	// Arm returns the arm of a treatment.
	Arm        func(design.Treatment) (Arm, error)
	Operations []string // the measured operations, in order; empty: all that the program describes
	Parent     string   // where folders are made; empty: the folder for temporary files
	// Fresh starts a new process in every block, so that the random layout of a process's memory varies between blocks.
	Fresh bool
	// Contained says that all that the program makes is in its folder, so that it need not undo anything.
	Contained bool
	// DescribeWithin bounds describe, including the program's start; 0: DefaultDescribeWithin. PrepareWithin bounds
	// prepare; 0: 10 min. Patience bounds each request of verify, operate, undo and stop; 0: 2 min.
	DescribeWithin time.Duration
	PrepareWithin  time.Duration
	Patience       time.Duration
	// Rounds and Span override what the program describes, for all operations; 0: they do not.
	Rounds int
	Span   time.Duration
	CPUs   []int    // the processors of the programs, from 0; empty: all
	Notes  []string // limits that every report must carry
	// Conditions are the names of conditions that a program may offer in its answer to prepare.
	Conditions []string
}

// DefaultDescribeWithin is the default time for a program to start and to describe itself.
const DefaultDescribeWithin = 10 * time.Second

const (
	defaultPatience      = 2 * time.Minute
	defaultPrepareWithin = 10 * time.Minute
)

// withDefaults fills in omitted values.
func (c Config) withDefaults() Config {
	if c.Patience <= 0 {
		c.Patience = defaultPatience
	}
	if c.DescribeWithin <= 0 {
		c.DescribeWithin = DefaultDescribeWithin
	}
	if c.PrepareWithin <= 0 {
		c.PrepareWithin = defaultPrepareWithin
	}
	if c.Parent == "" {
		c.Parent = os.TempDir()
	}
	return c
}

// environment returns the program's environment. It is never nil, which would mean tare's own.
func (p Program) environment(folder string) []string {
	env := append([]string{}, p.Env...)
	if folder != "" {
		env = append(env, Mark+"="+folder)
	}
	return env
}

// Usual returns the names of variables without secrets that interpreters and compilers need.
func Usual() []string { return []string{"PATH", "HOME", "LANG", "TMPDIR", "USER"} }

// secrets returns the values of the environment that must not appear in anything the program writes.
func (p Program) secrets() (out []string) {
	for _, v := range p.Env {
		if name, value, _ := strings.Cut(v, "="); !slices.Contains(Usual(), name) {
			out = append(out, value)
		}
	}
	return out
}

// absolute returns the program with an absolute working directory.
func (p Program) absolute() (Program, error) {
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return p, fmt.Errorf("find the working directory of %s: %w", p.Name, err)
	}
	p.Dir = dir
	return p, nil
}
