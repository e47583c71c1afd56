package controls

import (
	"context"
	"log/slog"
	"time"

	"tare/area"
	"tare/internal/analyze"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/question"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/run"
	"tare/internal/run/drive"
)

// Rates can be offered to every control; the third is below its capacity of 500/s, and the fourth above.
func Rates() []float64 { return []float64{100, 250, 400, 600, 900} }

// Watch asks tare whether a control guards, with its record below dir. Without rates, tare searches for the capacity
// and raises the rate until the control is overloaded, as it does for one line.
func Watch(ctx context.Context, c Control, dir string, seed uint64, rates []float64) (*report.Report, error) {
	treatment := design.Treatment{ID: "control"}
	w, err := record.Create(dir, record.Header{
		Experiment: record.Experiment{Name: "control", Seed: seed}, Area: Area{}.Name(), Question: design.Guard,
	}, nil, clock.System{})
	if err != nil {
		return nil, err
	}
	ask := run.Load{
		Config:   load.Config{Engine: load.Std, Timeout: 5 * time.Second, MaxConns: 512, MaxRate: 10_000},
		Trespass: float64(question.DefaultTrespass),
	}
	if len(rates) > 0 {
		ask = run.Load{
			Config: load.Config{Engine: load.Std, Timeout: 2 * time.Second, MaxConns: 512, MaxRate: 2000},
			Rates:  rates, Duration: 2 * time.Second, Trespass: 0.2,
		}
	}
	_, err = drive.Do(ctx, run.Request{
		Area: Area{c}, Spec: spec{}, Question: design.Guard, Treatments: []design.Treatment{treatment}, Seed: seed,
		Env:    area.Env{Dir: dir, Log: slog.New(slog.DiscardHandler), Clock: clock.System{}},
		Budget: []string{"permitted <= 0"}, Writer: w,
		Load: ask,
	})
	if closed := w.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	r, err := record.Open(w.Dir())
	if err != nil {
		return nil, err
	}
	return analyze.Analyze(r, analyze.Options{})
}
