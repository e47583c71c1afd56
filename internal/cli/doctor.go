package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/doctor"
	"tare/internal/unit"
)

func (a *app) doctorCommand() *cobra.Command {
	var form string
	var length string
	var seed uint64
	c := &cobra.Command{
		Use: "doctor", Short: "Check this host's capabilities and noise floor", Args: noArgs,
		Long: "Checks what runs need, and prints the cause and the next step where something is missing. Then\n" +
			"compares equal work with itself to find the noise floor, and foretells what the host does to searches\n" +
			"and times. It undoes everything that it tries.\n\n" +
			"Exit codes: 0, even if something is limited or missing; 1 if something that every run needs is\n" +
			"broken.",
		RunE: func(c *cobra.Command, _ []string) error {
			o := doctor.Options{Clock: clock.System{}, Getenv: a.Getenv, Seed: seed}
			d, err := unit.ParseDuration(length)
			if err != nil || d.Std() < doctor.MinTime || d.Std() > time.Hour {
				return usage("--time %s: want a time from %s to 1h, such as 10s", length, unit.Duration(doctor.MinTime))
			}
			o.Time = d.Std()
			if !c.Flags().Changed("seed") {
				o.Seed = rand.Uint64() >> 11 // fits a JSON number exactly
			}
			return a.doctor(c.Context(), form, o)
		},
	}
	c.Flags().StringVarP(&form, "output", "o", "text", "format: json or text")
	c.Flags().StringVar(&length, "time", doctor.DefaultTime.String(), "duration of the comparison of equal work")
	c.Flags().Uint64Var(&seed, "seed", 0, "seed of the order in the comparison (default: a new one each time)")
	for _, ar := range a.Areas {
		if modes := ar.Parts().DoctorModes; modes != nil {
			for _, m := range modes() {
				a.addMode(c, m)
			}
		}
	}
	return c
}

func (a *app) doctor(ctx context.Context, form string, o doctor.Options) error {
	forms := map[string]func(io.Writer, *doctor.Diagnosis) error{"json": doctor.JSON, "text": a.diagnosis}
	encode, ok := forms[form]
	if !ok {
		return usage("-o %s: unknown format %q; formats are: %s", form, form, strings.Join(sortedKeys(forms), ", "))
	}
	env, err := a.areaEnv(".")
	if err != nil {
		return err
	}
	o.Self = env.Self
	for _, ar := range a.Areas {
		if checks := ar.Parts().Checks; checks != nil {
			o.Areas = append(o.Areas, func(ctx context.Context) []area.Check { return checks(ctx, env) })
		}
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// The load engine's event loop occupies one of the scheduler's threads. The server needs one of its own, as in a
	// run.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	a.tell("checking this host for about %s\n", unit.Duration(o.Time+min(o.Time, 8*time.Second)))
	d, err := doctor.Examine(ctx, o)
	if err != nil {
		if errors.Is(err, context.Canceled) || ctx.Err() != nil {
			return &exit{code: ExitInterrupted, cause: errors.New("interrupted; nothing was changed")}
		}
		return err
	}
	d.Tare, _ = buildVersion()
	if err := encode(a.Stdout, d); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}
	if d.Broken() {
		return &exit{code: ExitError, quiet: true}
	}
	return nil
}

// diagnosis writes a diagnosis as text.
func (a *app) diagnosis(w io.Writer, d *doctor.Diagnosis) error {
	return doctor.Write(w, d, func(s doctor.State) string { return a.painted(w, string(s)) })
}

// trialCommand runs, in a child process, a check that cannot be undone.
func (a *app) trialCommand() *cobra.Command {
	return &cobra.Command{
		Use: doctor.TrialCommand + " NAME", Short: "Run one check in a separate process (tare doctor starts these itself)",
		Hidden: true,
		Args:   exactly("NAME"),
		RunE:   func(c *cobra.Command, args []string) error { return doctor.Trial(c.Context(), args[0], a.Stdout) },
	}
}
