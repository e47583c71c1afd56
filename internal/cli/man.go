package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tare/internal/files"
)

func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the manual pages of all commands into a folder", Args: exactly("DIR"), Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			if err := files.MakeForAll(args[0]); err != nil {
				return err
			}
			return a.manPages(c.Root(), args[0])
		},
	}
}

// manPages writes the page of a command and those of its subcommands. Equal versions give equal bytes.
func (a *app) manPages(c *cobra.Command, dir string) error {
	if c.Hidden || (!c.IsAvailableCommand() && c.HasParent()) {
		return nil
	}
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	file := filepath.Join(dir, name+".1")
	err := files.Save(file, whole(manPage(c, name)))
	if err != nil {
		return err
	}
	a.print("%s\n", file)
	for _, sub := range c.Commands() {
		if err := a.manPages(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// manPage returns a command's page in the macros of man(7).
func manPage(c *cobra.Command, name string) []byte {
	var b bytes.Buffer
	v, _ := buildVersion()
	about := c.Long
	if about == "" {
		about = c.Short
	}
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"tare %s\" \"tare manual\"\n", strings.ToUpper(roff(name)), roff(v))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", roff(name), roff(c.Short), roff(c.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	for paragraph := range strings.SplitSeq(about, "\n\n") {
		fmt.Fprintf(&b, ".PP\n%s\n", roff(strings.Join(strings.Fields(paragraph), " ")))
	}
	if c.HasAvailableFlags() {
		b.WriteString(".SH OPTIONS\n")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { manFlag(&b, f) })
		c.InheritedFlags().VisitAll(func(f *pflag.Flag) { manFlag(&b, f) })
	}
	var see []string
	if c.HasParent() {
		see = append(see, strings.ReplaceAll(c.Parent().CommandPath(), " ", "-"))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			see = append(see, name+"-"+sub.Name())
		}
	}
	if len(see) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s(1)\n", roff(strings.Join(see, "(1), ")))
	}
	return b.Bytes()
}

func manFlag(b *bytes.Buffer, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	flag := "--" + f.Name
	if f.Shorthand != "" {
		flag = "-" + f.Shorthand + ", " + flag
	}
	value, usage := pflag.UnquoteUsage(f)
	fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(flag+" "+value)), roff(usage))
}

// roff returns text that troff prints as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "\n.", "\n\\&.").Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
