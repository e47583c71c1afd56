package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/files"
	"tare/internal/question"
)

func (a *app) initCommand() *cobra.Command {
	var asked, file string
	c := &cobra.Command{
		Use: "init AREA", Short: "Write a commented experiment file to start from", Args: exactly("AREA"),
		ValidArgs: a.Areas.Names(),
		RunE: func(_ *cobra.Command, args []string) error {
			ar, err := a.area(args[0])
			if err != nil {
				return err
			}
			if asked == "" {
				asked = usualQuestion(ar)
			}
			text, err := config.Template(ar, design.Question(asked))
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
			err = files.SaveNew(file, whole(text))
			if errors.Is(err, fs.ErrExist) {
				return usage("%s exists already; name another file with --file, or '-' for standard output", file)
			}
			if err != nil {
				return err
			}
			if err := a.writeSchema(filepath.Dir(file)); err != nil {
				return err
			}
			a.print("wrote %s: %s of %s\nnext: tare plan --try %s, then tare run %s\n", file, asked, args[0], file, file)
			return nil
		},
	}
	c.Flags().StringVar(&asked, "question", "",
		question.Listed(question.Names(nil), "or")+" (default: "+a.usualQuestions()+")")
	c.Flags().StringVar(&file, "file", "", "where to write (default AREA.yaml; '-' is standard output)")
	return c
}

// usualQuestion returns the question that the pages about an area begin with.
func usualQuestion(ar area.Area) string {
	return cmp.Or(ar.Parts().Usual, string(question.All()[0].Name))
}

// usualQuestions says which question init takes where none is named: "compare, and capacity for identity".
func (a *app) usualQuestions() string {
	words := []string{string(question.All()[0].Name)}
	for _, ar := range a.Areas {
		if q := ar.Parts().Usual; q != "" {
			words = append(words, q+" for "+ar.Name())
		}
	}
	return strings.Join(words, ", and ")
}

// writeSchema writes the JSON Schema that the template names beside it, for editors. It leaves an existing one alone.
func (a *app) writeSchema(dir string) error {
	file := filepath.Join(dir, config.SchemaFile)
	text, err := config.Schema(a.Areas)
	if err != nil {
		return err
	}
	err = files.SaveNew(file, whole(text))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	a.print("wrote %s, for editors that complete and check YAML\n", file)
	return nil
}

func (a *app) validateCommand() *cobra.Command {
	var out form
	c := &cobra.Command{
		Use: "validate FILE…", Short: "Check experiment files, all errors at once", Args: oneOrMore("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			asJSON, err := out.json()
			if err != nil {
				return err
			}
			if asJSON {
				doc := a.validation(args)
				if err := a.printJSON(doc); err != nil || doc.OK {
					return err
				}
				return &exit{code: ExitUsage, quiet: true}
			}
			return a.validate(args)
		},
	}
	out.add(c)
	return c
}

// validate checks files and prints a line for each good one, and all errors of the others.
func (a *app) validate(files []string) error {
	bad := 0
	for _, file := range files {
		src, err := a.read(file)
		var e *config.Experiment
		if err == nil {
			e, err = a.experiment(src)
		}
		if err == nil {
			a.print("%s  ", src.name)
			open := untried(e)
			if open != "" {
				open = "; " + open
			}
			a.judged(a.Stdout, "ok", "%s\n", open)
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
}

// untried says what validating an experiment leaves open: it starts no program.
func untried(e *config.Experiment) string {
	if says := e.Target.Says(); says.Untried != nil {
		return says.Untried(e.Arms())
	}
	return ""
}
