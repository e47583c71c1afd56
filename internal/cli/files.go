package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/question"
	"tare/schema"
)

func (a *app) initCommand() *cobra.Command {
	var asked, file string
	c := &cobra.Command{
		Use: "init AREA", Short: "Write a commented experiment file to start from", Args: exactly("AREA"),
		ValidArgs: a.areas.Names(),
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := a.area(args[0]); err != nil {
				return err
			}
			if asked == "" {
				asked = firstQuestion(args[0])
			}
			text, err := config.Template(args[0], design.Question(asked))
			if err != nil {
				return usage("%w", err)
			}
			if file == "-" {
				_, err := a.Stdout.Write(text)
				return err
			}
			if file == "" {
				file = args[0] + ".yaml"
			}
			if _, err := os.Stat(file); err == nil {
				return usage("%s exists already; name another file with --file, or '-' for standard output", file)
			}
			if err := writeFile(file, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
				return err
			}
			if err := a.writeSchema(filepath.Dir(file)); err != nil {
				return err
			}
			a.print("wrote %s\nnext: tare validate %s && tare run %s\n", file, file, file)
			return nil
		},
	}
	c.Flags().StringVar(&asked, "question", "",
		question.Listed(question.Names(nil), "or")+" (default: the area's first template)")
	c.Flags().StringVar(&file, "file", "", "where to write (default AREA.yaml; '-' is standard output)")
	return c
}

// firstQuestion returns the question that an area's own template asks.
func firstQuestion(area string) string {
	for _, name := range config.Templates() {
		if q, ok := strings.CutPrefix(name, area+"-"); ok {
			return q
		}
	}
	return string(question.All()[0].Name)
}

// writeSchema writes the JSON Schema that the template names beside it, for editors. It leaves an existing one alone.
func (a *app) writeSchema(dir string) error {
	file := filepath.Join(dir, config.SchemaFile)
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	if err := writeFile(file, func(w io.Writer) error { _, err := w.Write(schema.Experiment); return err }); err != nil {
		return err
	}
	a.print("wrote %s, for editors that complete and check YAML\n", file)
	return nil
}

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "validate FILE…", Short: "Check experiment files, all errors at once", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			bad := 0
			for _, file := range args {
				src, err := a.read(file)
				if err == nil {
					_, err = a.experiment(src)
				}
				if err == nil {
					a.print("%s  ok\n", src.name)
					continue
				}
				bad++
				var x *exit
				if !errors.As(err, &x) || !x.quiet {
					a.tell("tare: %v\n", err)
				}
			}
			if bad > 0 {
				return &exit{code: ExitUsage, quiet: true}
			}
			return nil
		},
	}
}
