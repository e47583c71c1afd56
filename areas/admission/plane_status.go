package admission

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/area"
	"tare/areas/plane"
	"tare/internal/clock"
	"tare/internal/kit"
	"tare/internal/probe"
	"tare/internal/term"
	"tare/internal/unit"
)

// planeSchema names the form of 'tare plane status -o json'.
const planeSchema = "tare.planes/v1"

// A planeStatus is the current state of a kept plane.
type planeStatus struct {
	plane.Kept
	State      plane.State       `json:"state"`
	Components []componentStatus `json:"components"`
}

// A componentStatus is one of the plane's processes. RSS and CPU are absent if the process is gone.
type componentStatus struct {
	Name string   `json:"name"`
	PID  int      `json:"pid"`
	RSS  *float64 `json:"rss_bytes,omitempty"`
	CPU  *float64 `json:"cpu_seconds,omitempty"` // since its start
}

func planeStatusCommand() area.Command {
	var form string
	return area.Command{
		Use: "status", Short: "List the control planes that are running, and the CPU and memory that their processes use",
		Run: func(ctx context.Context, sh *area.Shell, _ []string) error {
			encode, err := kit.Form(form, map[string]func(io.Writer, []planeStatus) error{"json": planesJSON, "text": planesText})
			if err != nil {
				return err
			}
			list, err := planes{sh}.planeStates(ctx)
			return errors.Join(encode(sh.Stdout, list), err)
		},
		Flags: func(f *flag.FlagSet) { f.StringVar(&form, "output", "text", "format: json or text") },
	}
}

func (a planes) planeStates(ctx context.Context) ([]planeStatus, error) {
	states, err := a.stateFolder()
	if err != nil {
		return nil, err
	}
	kept, err := states.List()
	list := make([]planeStatus, 0, len(kept))
	for _, k := range kept {
		s := planeStatus{Kept: k, State: k.State(), Components: []componentStatus{}}
		slices.SortFunc(k.Processes, func(a, b plane.Process) int { return strings.Compare(a.Name, b.Name) })
		for _, p := range k.Processes {
			s.Components = append(s.Components, componentUse(ctx, p))
		}
		list = append(list, s)
	}
	return list, err
}

// componentUse reads the resources that a process uses; it knows none of a process that is gone.
func componentUse(ctx context.Context, p plane.Process) componentStatus {
	s := componentStatus{Name: p.Name, PID: p.PID}
	if !p.Alive() {
		return s
	}
	samples, err := probe.Process{Name: p.Name, PID: p.PID, StartTicks: p.StartTicks}.Read(ctx)
	if err != nil {
		return s
	}
	for _, v := range samples {
		switch v.Metric {
		case probe.RSS.Name:
			s.RSS = &v.Value
		case probe.CPU.Name:
			s.CPU = &v.Value
		}
	}
	return s
}

func planesJSON(w io.Writer, list []planeStatus) error {
	return kit.WriteIndented(w, struct {
		Schema string        `json:"schema"`
		Planes []planeStatus `json:"planes"`
	}{planeSchema, list})
}

func planesText(w io.Writer, list []planeStatus) error {
	var b strings.Builder
	if len(list) == 0 {
		b.WriteString("no plane is up; 'tare plane up' starts one\n")
	}
	now := clock.System{}.Now()
	for i, s := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		s.text(&b, now)
	}
	_, err := io.WriteString(w, term.Plain(b.String()))
	return err
}

func (s planeStatus) text(b *strings.Builder, now time.Time) {
	fmt.Fprintf(b, "plane %s: %s, %s\n", s.Name, s.State, describe(s.Kept))
	down := "tare plane down" + nameFlag(s.Name)
	switch s.State {
	case plane.Running:
		fmt.Fprintf(b, "  %s since %s (%s)\n", s.Server, s.Since.Format(time.RFC3339),
			unit.Seconds(now.Sub(s.Since).Round(time.Second).Seconds()))
		fmt.Fprintf(b, "  kubeconfig %s\n", s.Kubeconfig)
	case plane.Starting:
		fmt.Fprintf(b, "  since %s; logs are in %s\n", s.Since.Format(time.RFC3339), s.Logs)
	case plane.Lost:
		fmt.Fprintf(b, "  its holder, process %d, was killed, and its components ended with it; '%s' removes the rest\n",
			s.Holder.PID, down)
	case plane.Broken:
		fmt.Fprintf(b, "  %s\n  '%s' clears it away with its logs in %s\n", strings.ReplaceAll(s.Failed, "\n", "\n  "), down,
			s.Logs)
	}
	if len(s.Components) == 0 {
		return
	}
	rows := [][]string{{"component", "pid", "RSS", "CPU"}}
	for _, c := range s.Components {
		rss, cpu := "gone", "gone"
		if c.RSS != nil && c.CPU != nil {
			rss, cpu = unit.Bytes(*c.RSS), unit.Seconds(*c.CPU)
		}
		rows = append(rows, []string{c.Name, strconv.Itoa(c.PID), rss, cpu})
	}
	for _, line := range term.Align(rows, term.Left, term.Right, term.Right, term.Right) {
		fmt.Fprintf(b, "  %s\n", strings.TrimRight(line, " "))
	}
}
