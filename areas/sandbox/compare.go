package sandbox

import (
	"cmp"
	"fmt"
	"strings"

	"tare/area"
	"tare/internal/kit"
	"tare/internal/shell"
)

// compareCommands is area.Parts.CompareCommands.
func compareCommands(args []string) (area.Composed, error) {
	byShell := needsShell(args)
	var commands, treatments strings.Builder
	seen := map[string]bool{}
	for i, text := range args {
		run := strings.Fields(text)
		if byShell {
			run = []string{"sh", "-c", text}
		}
		name := cmp.Or(kit.NameOf(text), "command")
		if seen[name] {
			name = fmt.Sprintf("%d-%s", i+1, name)
		}
		if strings.TrimSpace(text) == "" {
			return area.Composed{}, area.Usage("command %d is empty", i+1)
		}
		if err := kit.FindProgram(run[0]); err != nil {
			return area.Composed{}, err
		}
		seen[name] = true
		treatments.WriteString(kit.Treatment(i, "command", name))
		fmt.Fprintf(&commands, "    - {name: %s, run: %s}\n", kit.Quote(name), kit.QuoteList(run))
	}
	by := ""
	if byShell {
		by = "; by sh -c, whose own start is in all of them"
	}
	return area.Composed{
		Label: "compares",
		What: fmt.Sprintf("%s with %s: each run from its start to its end, which it must reach by itself%s",
			strings.Join(shell.Words(args[1:]), ", "), shell.Word(args[0]), by),
		Text: fmt.Sprintf(`# What do these commands cost, compared with the first? Each run is timed from its fork to its end.
name: %s
area: sandbox
question: compare
target:
  commands:
%s%s`, kit.NameOf("compare", firstWord(args[0]), firstWord(args[1])), commands.String(), treatments.String()),
	}, nil
}

// needsShell reports whether one of the commands is more than words: then all are run by a shell, so that its cost is
// on both sides.
func needsShell(commands []string) bool {
	for _, text := range commands {
		if strings.ContainsAny(text, "|&;<>()$`\\\"'*?[]{}~#\n") || strings.Contains(firstWord(text), "=") {
			return true
		}
	}
	return false
}

func firstWord(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return first
}
