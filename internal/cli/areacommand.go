package cli

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tare/area"
	"tare/internal/record"
)

// addAreaCommands adds the commands of all areas, and their modes of tare's own.
func (a *app) addAreaCommands(root *cobra.Command) {
	for _, ar := range a.Areas {
		commands := ar.Parts().Commands
		if commands == nil {
			continue
		}
		for _, c := range commands() {
			if c.Of != "" {
				if base, _, err := root.Find([]string{c.Of}); err == nil && base != root {
					a.addMode(base, c)
				}
				continue
			}
			root.AddCommand(a.areaCommand(c))
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
		out.RunE = func(cc *cobra.Command, args []string) error { return c.Run(cc.Context(), a.shell(cc, f), args) }
	}
	for _, x := range c.Below {
		out.AddCommand(a.areaCommand(x))
	}
	return out
}

// addMode adds a mode to a command of tare's own.
func (a *app) addMode(base *cobra.Command, c area.Command) {
	var own []string
	if c.Flags != nil {
		before := flagNames(base)
		addFlags(base, c.Flags)
		for name := range flagNames(base) {
			if !before[name] {
				own = append(own, name)
			}
		}
	}
	run, check, f := base.RunE, base.Args, &oneLineFlags{}
	if c.Asks {
		f = a.asked[c.Of]
	}
	is := func(cc *cobra.Command) bool {
		if c.With == "--" {
			return cc.ArgsLenAtDash() == 0
		}
		return cc.Flags().Changed(c.With)
	}
	base.Args = func(cc *cobra.Command, args []string) error {
		if is(cc) || check == nil {
			return argumentsOf(c)(cc, args)
		}
		return check(cc, args)
	}
	base.RunE = func(cc *cobra.Command, args []string) error {
		if !is(cc) {
			for _, name := range own {
				if cc.Flags().Changed(name) {
					return usage("--%s belongs to --%s", name, c.With)
				}
			}
			return run(cc, args)
		}
		if c.With != "--" {
			foreign := ""
			cc.Flags().Visit(func(x *pflag.Flag) {
				if !slices.Contains(own, x.Name) && cc.InheritedFlags().Lookup(x.Name) == nil {
					foreign = x.Name
				}
			})
			if foreign != "" {
				return usage("--%s does not go with --%s", foreign, c.With)
			}
		}
		return c.Run(cc.Context(), a.shell(cc, f), args)
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
func (a *app) shell(c *cobra.Command, f *oneLineFlags) *area.Shell {
	return &area.Shell{
		Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Args0: a.Args[0], Getenv: a.lookup, Log: a.logger(a.Stderr),
		Given: c.Flags().Changed, Print: a.print, Tell: a.tell, Lost: func() error { return a.lost }, Limits: f.limits,
		Ask: func(ctx context.Context, x area.Composed) error {
			return a.ask(ctx, composed{text: x.Text, label: x.Label, what: x.What, needs: x.Needs}, f)
		},
		Lock: func(key, who string, since time.Time) (func(), error) {
			held, err := record.Lock(lockFolder(), key, record.Holder{Run: who, Since: since})
			if err != nil {
				return nil, fmt.Errorf("lock: %w", err)
			}
			return func() { _ = held.Unlock() }, nil
		},
	}
}
