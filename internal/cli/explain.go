package cli

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"tare/internal/glossary"
	"tare/internal/limit"
)

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [WORD]",
		Short: "Explain a metric, verdict, limit, failure, question or term of the report, with its source",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			words := glossary.Of(a.Areas)
			if len(args) == 0 {
				for _, e := range words {
					a.print("%s\n", e.Word)
				}
				return nil
			}
			e, near, ok := words.Lookup(args[0])
			if !ok {
				hint := "'tare explain' without a word lists them all"
				if len(near) > 0 {
					hint = "did you mean " + strings.Join(near, ", ") + "?"
				}
				return usage("no entry for %q; %s", args[0], hint)
			}
			a.print("%s\n\n%s\n", e.Word, wrap(e.Text, 80))
			if advice := limit.Kind(e.Word).Advice(); advice != "" {
				a.print("\n%s\n", wrap(advice, 80))
			}
			if e.Source != "" {
				a.print("\nsource: %s\n", e.Source)
			}
			return nil
		},
	}
}

// wrap breaks text into lines of at most width characters.
func wrap(text string, width int) string {
	var b strings.Builder
	n := 0
	for word := range strings.FieldsSeq(text) {
		w := utf8.RuneCountInString(word)
		switch {
		case n == 0:
		case n+1+w > width:
			b.WriteByte('\n')
			n = 0
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += w
	}
	return b.String()
}
