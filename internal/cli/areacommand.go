package cli

import (
	"context"
	"flag"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tare/area"
	"tare/internal/proc"
	"tare/internal/record"
)

// addAreaCommands adds the commands of all areas.
func (a *app) addAreaCommands(root *cobra.Command) {
	for _, ar := range a.Areas {
		if commands := ar.Parts().Commands; commands != nil {
			for _, c := range commands() {
				root.AddCommand(a.areaCommand(c))
			}
		}
	}
}

// areaCommand returns an area's command with those below it.
func (a *app) areaCommand(c area.Command) *cobra.Command {
	out := &cobra.Command{
		Use: c.Use, Short: c.Short, Long: c.Long, Example: c.Example, GroupID: string(c.Group), Hidden: c.Hidden,
		Args: argumentsOf(c),
	}
	f := &oneLineFlags{}
	if c.Flags != nil {
		addFlags(out, c.Flags)
	}
	if c.Asks {
		f.add(out)
		f.marginFlag(out)
	}
	if c.Rest {
		out.Flags().SetInterspersed(false)
	}
	if c.Run == nil {
		out.Args = unknownCommand
		out.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	} else {
		out.RunE = func(cc *cobra.Command, args []string) error {
			if _, err := f.limits(); err != nil { // before anything is built or asked
				return err
			}
			return c.Run(cc.Context(), a.shell(f), args)
		}
	}
	for _, x := range c.Below {
		out.AddCommand(a.areaCommand(x))
	}
	return out
}

// addMode adds an area's mode to a command of tare's own. The mode takes its own flags only, and the command none of
// them.
func (a *app) addMode(base *cobra.Command, m area.Mode) {
	before := flagNames(base)
	on := base.Flags().Bool(m.Flag, false, m.Help)
	if m.Flags != nil {
		addFlags(base, m.Flags)
	}
	run := base.RunE
	base.RunE = func(cc *cobra.Command, args []string) error {
		var wrong error
		cc.Flags().Visit(func(x *pflag.Flag) {
			switch common := cc.InheritedFlags().Lookup(x.Name) != nil; {
			case common || x.Name == m.Flag:
			case *on && before[x.Name]:
				wrong = usage("--%s does not go with --%s", x.Name, m.Flag)
			case !*on && !before[x.Name]:
				wrong = usage("--%s belongs to --%s", x.Name, m.Flag)
			}
		})
		switch {
		case wrong != nil:
			return wrong
		case *on:
			return m.Run(cc.Context(), a.shell(&oneLineFlags{}))
		}
		return run(cc, args)
	}
}

func flagNames(c *cobra.Command) map[string]bool {
	out := map[string]bool{}
	c.Flags().VisitAll(func(x *pflag.Flag) { out[x.Name] = true })
	return out
}

// argumentsOf bounds the number of arguments.
func argumentsOf(c area.Command) cobra.PositionalArgs {
	return func(cc *cobra.Command, args []string) error {
		n := len(args)
		if dash := cc.ArgsLenAtDash(); c.After && dash >= 0 {
			n = dash
		}
		switch {
		case c.Most == 0 && n > 0:
			return usage("%s takes no arguments, got %q", cc.CommandPath(), args)
		case n < c.Least || c.Most > 0 && n > c.Most:
			return usage("%s expects %s, got %s; see '%[1]s --help'", cc.CommandPath(), argumentNames(c), argumentCount(n))
		}
		return nil
	}
}

// argumentNames are the arguments that a command must have: "OLD and NEW".
func argumentNames(c area.Command) string {
	var names []string
	for word := range strings.FieldsSeq(c.Use) {
		if strings.HasPrefix(word, "[") || strings.HasPrefix(word, "-") {
			break
		}
		names = append(names, word)
	}
	return strings.Join(names[min(1, len(names)):], " and ")
}

// addFlags adds flags of package flag. One named output has the short form -o.
func addFlags(c *cobra.Command, add func(*flag.FlagSet)) {
	own := flag.NewFlagSet("", flag.ContinueOnError)
	add(own)
	own.VisitAll(func(x *flag.Flag) {
		p := pflag.PFlagFromGoFlag(x)
		if x.Name == "output" {
			p.Shorthand = "o"
		}
		c.Flags().AddFlag(p)
	})
}

// shell returns the outside world of an area's command.
func (a *app) shell(f *oneLineFlags) *area.Shell {
	return &area.Shell{
		Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Getenv: a.lookup, Log: a.logger(a.Stderr),
		Print: a.print, Tell: a.tell,
		Ask: func(ctx context.Context, x area.Composed) error { return a.askComposed(ctx, x, f) },
		Lock: func(key, who string, since time.Time) (func(), error) {
			return lock(key, record.Holder{Run: who, Since: since})
		},
	}
}

// askComposed runs an experiment that an area has composed, with the margin and the budgets of the command line.
func (a *app) askComposed(ctx context.Context, x area.Composed, f *oneLineFlags) error {
	limits, err := f.limits()
	if err != nil {
		return err
	}
	x.Text += limits
	return a.ask(ctx, x, f)
}

// serveCommand runs an area's own server as a child of this binary; its configuration comes on standard input.
func (a *app) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve AREA SERVER", Short: "Run one of an area's own servers (tare starts these itself)", Hidden: true,
		Args: exactly("AREA", "SERVER"),
		RunE: func(c *cobra.Command, args []string) error {
			ar, err := a.area(args[0])
			if err != nil {
				return err
			}
			servers := ar.Parts().Servers
			serve, ok := servers[args[1]]
			switch {
			case len(servers) == 0:
				return usage("area %q has no servers of its own", args[0])
			case !ok:
				return fmt.Errorf("serve: %s has no server %q, only %s", args[0], args[1],
					strings.Join(sortedKeys(servers), " and "))
			}
			return a.serve(c.Context(), serve)
		},
	}
}

// serve ends with its parent. An interrupt at the terminal reaches the whole process group, but the parent decides when
// its servers end: after it has probed them and undone its changes.
func (a *app) serve(ctx context.Context, serve area.Serve) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	return proc.Serve(ctx, a.Stdin, a.Stdout, serve)
}
