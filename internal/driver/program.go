package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tare/internal/area"
	"tare/internal/design"
)

// A Program is a driver that can be started.
type Program struct {
	Name string   // in errors, and as the subject of its probes: "hash.py"
	Path string   // the binary; without a slash it is looked up in PATH
	Args []string // without the binary
	Dir  string   // working directory; empty: tare's own
	Env  []string // its whole environment, "NAME=value"; to it comes Mark
	// Files are the files that make it this program and no other, by what they are called: the binary, the script that it interprets. Their content is
	// part of its Identity, and they must not change while it is measured.
	Files map[string]string
}

// Mark is the environment variable that tells a driver's folder to the driver and to all that it starts, by which tare finds processes that outlive
// what started them.
const Mark = "TARE_DRIVER"

// An Arm is what one treatment runs.
type Arm struct {
	Program Program
	Levels  map[string]string // the file's settings, and the treatment's levels over them
}

// Config says what a Target measures, and how.
type Config struct {
	Area string // for the journal: "exec"
	Env  area.Env
	// Arm is what a treatment runs.
	Arm        func(design.Treatment) (Arm, error)
	Operations []string // those that are measured, in order; empty: all that the program describes
	Parent     string   // where folders are made; empty: the folder for temporary files
	// Fresh starts a new process in every block, so that what is fast or slow by chance of where a process's memory came to lie is drawn anew.
	Fresh bool
	// Contained says that whatever the program makes is in its folder: then nobody has to ask it to undo anything.
	Contained bool
	// DescribeWithin bounds describe, and with it how long a program may take to start; 0: DefaultDescribeWithin. PrepareWithin bounds prepare; 0: 10 min.
	// Patience bounds one request of verify, operate, undo and stop; 0: 2 min.
	DescribeWithin time.Duration
	PrepareWithin  time.Duration
	Patience       time.Duration
	// Rounds and Span are of all operations, over what the program describes; 0: what it describes.
	Rounds int
	Span   time.Duration
	CPUs   []int    // where the programs run, from 0; empty: everywhere
	Notes  []string // limits that every report must carry
}

// DefaultDescribeWithin is how long a program may take to start and to describe itself where nothing else is said.
const DefaultDescribeWithin = 10 * time.Second

const (
	defaultPatience      = 2 * time.Minute
	defaultPrepareWithin = 10 * time.Minute
)

// withDefaults fills in what was left out.
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

// environment is what the program gets. It is never nil, which would mean tare's own.
func (p Program) environment(folder string) []string {
	env := append([]string{}, p.Env...)
	if folder != "" {
		env = append(env, Mark+"="+folder)
	}
	return env
}

// Usual are the names of variables whose values are no secrets: what interpreters and compilers do not work without.
func Usual() []string { return []string{"PATH", "HOME", "LANG", "TMPDIR", "USER"} }

// secrets are the values of its environment that nothing which it says may show.
func (p Program) secrets() (out []string) {
	for _, v := range p.Env {
		if name, value, _ := strings.Cut(v, "="); !slices.Contains(Usual(), name) {
			out = append(out, value)
		}
	}
	return out
}

// absolute is the program with a working directory that means the same from anywhere.
func (p Program) absolute() (Program, error) {
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return p, fmt.Errorf("find the working directory of %s: %w", p.Name, err)
	}
	p.Dir = dir
	return p, nil
}
