package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/internal/area/sandbox/workload"
)

func (a *app) sandboxCommand() *cobra.Command {
	var f oneLineFlags
	var profile string
	c := &cobra.Command{
		Use: "sandbox --profile FILE -- COMMAND [ARGUMENT…]", Short: "Find what a seccomp profile costs a command",
		Long: "Runs COMMAND once and names the system calls that the seccomp profile would refuse, and then compares\n" +
			"the command with and without it, in interleaved blocks. The profile is a JSON file in the format of\n" +
			"Docker and of OCI runtimes. The command writes the experiment file that it stands for, prints its plan\n" +
			"and runs it.\n\n" +
			"A command is timed from its start to its end, and must end by itself with status 0. Of the servers " +
			strings.Join(workload.Daemons(), " and ") +
			",\nnamed without arguments, the CPU time of a request is measured instead.\n\n" +
			"Exit codes: as of 'tare run'.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("tare sandbox expects a command after --: tare sandbox --profile FILE -- COMMAND")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if profile == "" {
				return usage("name the seccomp profile: tare sandbox --profile FILE -- COMMAND")
			}
			x, err := composeSandbox(args, profile, &f)
			if err != nil {
				return err
			}
			return a.ask(c.Context(), x, &f)
		},
	}
	f.add(c)
	f.marginFlag(c)
	c.Flags().StringVar(&profile, "profile", "", "seccomp profile (JSON), in the format of Docker and of OCI runtimes")
	return c
}

// composeSandbox writes the experiment that compares a command with and without a profile.
func composeSandbox(args []string, profile string, f *oneLineFlags) (composed, error) {
	limits, err := f.limits()
	if err != nil {
		return composed{}, err
	}
	if err := findProgram(args[0]); err != nil {
		return composed{}, err
	}
	name := filepath.Base(args[0])
	measured := fmt.Sprintf("  commands:   # timed from the fork to the end\n    - {name: %s, run: %s}\n",
		quote(cmp.Or(nameOf(name), "command")), quoteList(args))
	what := "from its start to its end, which it must reach by itself"
	if len(args) == 1 && slices.Contains(workload.Daemons(), args[0]) {
		measured = fmt.Sprintf("  real: [%s]   # a server, confined as a whole and asked by one client\n", args[0])
		what = "the CPU time of a request"
	}
	return composed{
		label: "compares",
		what: fmt.Sprintf("%s under the seccomp profile %s with the same without it: %s", strings.Join(args, " "), profile,
			what),
		text: fmt.Sprintf(`# What does this seccomp profile cost, and which system calls would it refuse?
name: %s
area: sandbox
question: compare
target:
%sbaseline: {enforcer: none}
treatments:
  - {enforcer: seccomp, profile: %s}
%s`, nameOf("sandbox", strings.TrimSuffix(filepath.Base(profile), ".json"), name), measured, quote(profile), limits),
	}, nil
}
