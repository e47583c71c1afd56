package cli

import (
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"tare/internal/glossary"
	"tare/internal/question"
	"tare/internal/record"
)

// complete tells shells what may follow each command and flag: experiment files, runs, names.
func (a *app) complete(c *cobra.Command) {
	for _, sub := range c.Commands() {
		a.complete(sub)
	}
	switch word, _, _ := strings.Cut(c.Use[len(c.Name()):], "|"); strings.Trim(word, " []…") {
	case "FILE":
		if c.Name() != "import" {
			c.ValidArgsFunction = experimentFiles
		}
	case "RUN", "A B":
		c.ValidArgsFunction = runNames
	case "WORD":
		c.ValidArgsFunction = oneOf(func() (all []string) {
			for _, e := range glossary.Of(a.Areas) {
				all = append(all, e.Word)
			}
			return all
		})
	}
	for flag, names := range map[string]cobra.CompletionFunc{
		"resume": runNames, "adapter": oneOf(a.adapterNames),
		"question": oneOf(func() []string { return question.Names(nil) }),
		"results": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		"output": outputNames,
	} {
		if c.Flags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, names) // it fails for a flag that has one already
		}
	}
}

func oneOf(all func() []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return all(), cobra.ShellCompDirectiveNoFileComp
	}
}

func experimentFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// runNames completes the names of the records below --results, and folders elsewhere.
func runNames(c *cobra.Command, _ []string, typed string) (names []string, next cobra.ShellCompDirective) {
	results := resultsDir
	if f := c.Flags().Lookup("results"); f != nil {
		results = f.Value.String()
	}
	dirs, _ := os.ReadDir(results) // without the folder there are no names
	for _, d := range dirs {
		_, err := os.Stat(filepath.Join(results, d.Name(), record.JournalFile))
		if err == nil && isCompletion(d.Name()) {
			names = append(names, d.Name())
		}
	}
	if strings.ContainsRune(typed, filepath.Separator) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// isCompletion reports whether shells take a name for one, and can show it: they print what begins with helpMark, and
// send what is not printable to the terminal.
func isCompletion(name string) bool {
	const helpMark = "_activeHelp_ " // cobra's, which does not export it
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) &&
		!strings.HasPrefix(name, helpMark)
}

func (a *app) adapterNames() (names []string) {
	for _, x := range a.listNames("adapters") {
		names = append(names, x.Name+"\t"+x.Area+": "+x.Help)
	}
	return names
}

// outputNames completes the formats of a command: those of reports where -o can be repeated.
func outputNames(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	names := []string{"json", "text"}
	if c.Flags().Lookup("output").Value.Type() == "stringArray" {
		names = formats()
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
