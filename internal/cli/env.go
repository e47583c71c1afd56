// Package cli is the command line. Only this package touches streams, signals and exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/analyze"
	"tare/internal/config"
	"tare/internal/proc"
	"tare/schema"
)

// Env is the outside world, so that tests can replace it.
type Env struct {
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	// Areas are those that this binary has, in the order in which lists have them.
	Areas config.List
}

// Exit codes; they are never renumbered. Those of a finished run come from the report; ExitUsage is the command line's
// own.
const (
	ExitPass        = analyze.ExitPass
	ExitError       = analyze.ExitError
	ExitUsage       = 2
	ExitInvalid     = analyze.ExitInvalid
	ExitNotInForce  = analyze.ExitNotInForce
	ExitPermits     = analyze.ExitPermits
	ExitInterrupted = analyze.ExitInterrupted
)

// exit is an error that carries its exit code. quiet: the error has been reported already.
type exit struct {
	code  int
	cause error
	quiet bool
}

func (e *exit) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.cause.Error()
}

func (e *exit) Unwrap() error { return e.cause }

func usage(format string, args ...any) error {
	return &exit{code: ExitUsage, cause: fmt.Errorf(format, args...)}
}

// Main runs one command and returns its exit code.
func Main(ctx context.Context, e Env) int {
	a := &app{Env: e}
	if err := proc.NoCore(); err != nil {
		a.tell("tare: warning: a crash may leave a core dump with credentials in it: %v\n", err)
	}
	return a.execute(ctx)
}

// execute runs the command and returns its exit code.
func (a *app) execute(ctx context.Context) int {
	root := a.root()
	root.SetArgs(a.Args[1:])
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = a.lost
	}
	if err == nil {
		return ExitPass
	}
	var x *exit
	if own, ok := errors.AsType[area.ExitError](err); ok {
		x = &exit{code: own.Code, cause: err, quiet: own.Err == nil}
	} else if !errors.As(err, &x) {
		x = &exit{code: ExitError, cause: err}
	}
	if !x.quiet {
		a.tell("tare: %v%s\n", x, area.From(x))
	}
	return x.code
}

// root returns the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "tare",
		Short: "What does a security control cost, and where does it break?",
		Long: "tare measures a system under load, with and without a security control, and reports what the control\n" +
			"costs, or where and how the system breaks. It keeps a record of every run that anyone can analyse\n" +
			"again.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%w; see '%s --help'", err, c.CommandPath())
	})
	root.PersistentFlags().BoolVarP(&a.verbose, "verbose", "v", false, "log actions to stderr")
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Ask without a file:", []*cobra.Command{
			a.capacityCommand(), a.soakCommand(), a.guardCommand(), a.compareCommand(),
		}},
		{"Experiments:", []*cobra.Command{
			a.initCommand(), a.validateCommand(), a.planCommand(), a.runCommand(), a.undoCommand(), a.schemaCommand(),
		}},
		{"Results:", []*cobra.Command{
			a.reportCommand(), a.checkCommand(), a.diffCommand(), a.importCommand(), a.explainCommand(), a.listCommand(),
		}},
		{"This host:", []*cobra.Command{a.doctorCommand(), a.cacheCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(a.versionCommand(), a.serveCommand(), a.trialCommand(), a.manCommand())
	a.addAreaCommands(root)
	root.Version = built().String()
	root.SetVersionTemplate("{{.Version}}\n")
	a.complete(root)
	return root
}

func (a *app) schemaCommand() *cobra.Command {
	schemas := map[string]func() ([]byte, error){
		"experiment": func() ([]byte, error) { return config.Schema(a.Areas) },
		"report":     func() ([]byte, error) { return schema.Report, nil },
	}
	return &cobra.Command{
		Use: "schema [experiment|report]", Short: "Print the JSON Schema of experiment files, or of reports in JSON",
		Args: cobra.MaximumNArgs(1), ValidArgs: sortedKeys(schemas),
		RunE: func(_ *cobra.Command, args []string) error {
			what := "experiment"
			if len(args) == 1 {
				what = args[0]
			}
			write, ok := schemas[what]
			if !ok {
				return usage("no schema %q; there are: %s", what, strings.Join(sortedKeys(schemas), ", "))
			}
			text, err := write()
			if err == nil {
				a.print("%s", text)
			}
			return err
		},
	}
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit and date", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			a.print("%s\n", built())
			return nil
		},
	}
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, got %q", c.CommandPath(), args)
	}
	return nil
}

// exactly checks the number of arguments; its error names them.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usage("%s expects %s, got %s; see '%[1]s --help'",
				c.CommandPath(), strings.Join(names, " and "), argumentCount(len(args)))
		}
		return nil
	}
}

// oneOrMore accepts any arguments but none.
func oneOrMore(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("%s expects at least one %s; see '%[1]s --help'", c.CommandPath(), name)
		}
		return nil
	}
}

func argumentCount(n int) string {
	if n == 1 {
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", n)
}

// atMostOne refuses further arguments.
func atMostOne(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage("%s expects at most one %s, got %d arguments; see '%[1]s --help'", c.CommandPath(), name, len(args))
		}
		return nil
	}
}

// unknownCommand refuses an unknown command, and suggests similar names.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "'tare --help' lists them all"
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage("unknown command %q; %s", args[0], hint)
}
