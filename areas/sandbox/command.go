package sandbox

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/internal/kit"
)

// commands is area.Parts.Commands.
func commands() []area.Command {
	return []area.Command{sandboxCommand(), labCommand()}
}

func sandboxCommand() area.Command {
	var profile string
	return area.Command{
		Use: "sandbox --profile FILE -- COMMAND [ARGUMENT…]", Short: "Find what a seccomp profile costs a command",
		Group: area.AskWithoutFile, Asks: true, Least: 1, Most: -1,
		Long: "Runs COMMAND once and names the system calls that the seccomp profile would refuse, and then compares\n" +
			"the command with and without it, in interleaved blocks. The profile is a JSON file in the format of\n" +
			"Docker and of OCI runtimes. The command writes the experiment file that it stands for, prints its plan\n" +
			"and runs it.\n\n" +
			"A command is timed from its start to its end, and must end by itself with status 0. Of the servers " +
			strings.Join(workload.Daemons(), " and ") +
			",\nnamed without arguments, the CPU time of a request is measured instead.\n\n" +
			"Exit codes: as of 'tare run'.",
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&profile, "profile", "", "seccomp profile (JSON), in the format of Docker and of OCI runtimes")
		},
		Run: func(ctx context.Context, sh *area.Shell, args []string) error {
			if profile == "" {
				return area.Usage("name the seccomp profile: tare sandbox --profile FILE -- COMMAND")
			}
			x, err := composeSandbox(args, profile)
			if err != nil {
				return err
			}
			return sh.Ask(ctx, x)
		},
	}
}

// composeSandbox writes the experiment that compares a command with and without a profile.
func composeSandbox(args []string, profile string) (area.Composed, error) {
	if err := kit.FindProgram(args[0]); err != nil {
		return area.Composed{}, err
	}
	name := filepath.Base(args[0])
	measured := fmt.Sprintf("  commands:   # timed from the fork to the end\n    - {name: %s, run: %s}\n",
		kit.Quote(cmp.Or(kit.NameOf(name), "command")), kit.QuoteList(args))
	what := "from its start to its end, which it must reach by itself"
	if len(args) == 1 && slices.Contains(workload.Daemons(), args[0]) {
		measured = fmt.Sprintf("  real: [%s]   # a server, confined as a whole and asked by one client\n", args[0])
		what = "the CPU time of a request"
	}
	return area.Composed{
		Label: "compares",
		What: fmt.Sprintf("%s under the seccomp profile %s with the same without it: %s", strings.Join(args, " "), profile,
			what),
		Text: fmt.Sprintf(`# What does this seccomp profile cost, and which system calls would it refuse?
name: %s
area: sandbox
question: compare
target:
%sbaseline: {enforcer: none}
treatments:
  - {enforcer: seccomp, profile: %s}
`, kit.NameOf("sandbox", strings.TrimSuffix(filepath.Base(profile), ".json"), name), measured, kit.Quote(profile)),
	}, nil
}
