package simulation

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/stat"
)

// Outcome is one search against a server whose truth is known.
type Outcome struct {
	Truth  Truth
	Result capacity.Result
	Peak   float64 // highest rate offered, 1/s
	Calls  int
}

// Run searches one instance.
func Run(ctx context.Context, k Kind, seed uint64, i int) (Outcome, error) {
	return RunStolen(ctx, k, seed, i, 0)
}

// RunStolen is Run on a host of whose processors a share is stolen.
func RunStolen(ctx context.Context, k Kind, seed uint64, i int, share float64) (Outcome, error) {
	w, o, truth := Instance(k, seed, i)
	w.Steal(share, seed+uint64(i))
	t, err := capacity.Search(ctx, w, o, nil)
	if err != nil {
		return Outcome{}, fmt.Errorf("search %s %d: %w", k.Name, i, err)
	}
	return Outcome{Truth: truth, Result: capacity.Assess(t), Peak: w.Peak(), Calls: len(load.CallsOf(t.Calls))}, nil
}

// Error is the relative error of the rate, +Inf where there should have been one and is none.
func (o Outcome) Error() float64 {
	if o.Result.Rate <= 0 {
		return math.Inf(1)
	}
	return math.Abs(o.Result.Rate/o.Truth.Capacity - 1)
}

// Covered reports whether the interval holds the truth.
func (o Outcome) Covered() bool {
	return o.Result.Lo <= o.Truth.Capacity && o.Truth.Capacity <= o.Result.Hi
}

// Right reports whether the class is a right one, or, for a server that does not break, whether none was claimed.
func (o Outcome) Right() bool {
	if len(o.Truth.Classes) == 0 {
		return !o.Result.Broke
	}
	return slices.Contains(o.Truth.Classes, o.Result.Signature.Class)
}

// Failure is how the target fails, by the search; Unknown where no failure is reported.
func (o Outcome) Failure() signature.Failure {
	if !o.Result.Broke || !o.Result.Valid {
		return signature.Failure{Class: signature.Unknown, Certainty: signature.NotKnown}
	}
	return o.Result.Signature.Failure()
}

// met is what callers meet of a class.
func met(c signature.Class) signature.Class {
	if c == signature.CPUThrottling {
		return signature.Queue
	}
	return c
}

// Study is all outcomes of a kind.
type Study struct {
	Kind     Kind
	Outcomes []Outcome
}

// RunAll searches n instances of each kind, several at once. The result depends on seed only.
func RunAll(ctx context.Context, kinds []Kind, seed uint64, n, workers int) ([]Study, error) {
	studies := make([]Study, len(kinds))
	for i, k := range kinds {
		studies[i] = Study{Kind: k, Outcomes: make([]Outcome, n)}
	}
	type task struct{ kind, i int }
	tasks := make(chan task)
	errs := make([]error, max(1, workers))
	var wg sync.WaitGroup
	for worker := range errs {
		wg.Go(func() {
			for t := range tasks {
				o, err := Run(ctx, kinds[t.kind], seed, t.i)
				if err != nil {
					errs[worker] = err
				}
				studies[t.kind].Outcomes[t.i] = o
			}
		})
	}
	for k := range kinds {
		for i := range n {
			tasks <- task{k, i}
		}
	}
	close(tasks)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return studies, nil
}

// share is how many outcomes fulfil p, in percent.
func (s Study) share(p func(Outcome) bool) float64 {
	n := 0
	for _, o := range s.Outcomes {
		if p(o) {
			n++
		}
	}
	return 100 * float64(n) / float64(len(s.Outcomes))
}

func (s Study) quantile(q float64, v func(Outcome) float64) float64 {
	x := make([]float64, len(s.Outcomes))
	for i, o := range s.Outcomes {
		x[i] = v(o)
	}
	return stat.Quantile(x, q)
}

// Within is the share of outcomes with at most that relative error, in percent.
func (s Study) Within(e float64) float64 {
	return s.share(func(o Outcome) bool { return o.Error() <= e })
}

// Coverage is the share of outcomes whose interval holds the truth, in percent.
func (s Study) Coverage() float64 { return s.share(Outcome.Covered) }

// Accuracy is the share of outcomes with a right class, in percent.
func (s Study) Accuracy() float64 { return s.share(Outcome.Right) }

// Stopped is the share of outcomes that ended as they should, in percent.
func (s Study) Stopped() float64 {
	return s.share(func(o Outcome) bool { return o.Result.Stop == o.Truth.Stop })
}

// Seconds is a quantile of the time that the searches took.
func (s Study) Seconds(q float64) float64 {
	return s.quantile(q, func(o Outcome) float64 { return o.Result.Seconds })
}

// WriteTable writes one row per kind, as Markdown.
func WriteTable(w io.Writer, studies []Study) error {
	head := "| server | phases | seconds, median | p90 | error, median | p90 | within 2 % | within 5 % | interval " +
		"covers | bracket covers | class | ends right |\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
	if _, err := io.WriteString(w, head); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	for _, s := range studies {
		if _, err := fmt.Fprintln(w, s.row()); err != nil {
			return fmt.Errorf("write table: %w", err)
		}
	}
	return nil
}

func (s Study) row() string {
	errs := "– | – | – | – | – | –"
	if s.Outcomes[0].Truth.Capacity > 0 {
		e := func(q float64) float64 { return 100 * s.quantile(q, Outcome.Error) }
		errs = fmt.Sprintf("%.2f %% | %.2f %% | %.0f %% | %.0f %% | %.0f %% | %.0f %%",
			e(0.5), e(0.9), s.Within(0.02), s.Within(0.05), s.Coverage(), s.share(Outcome.bracketed))
	}
	return fmt.Sprintf("| %s | %.0f | %.1f | %.1f | %s | %.0f %% | %.0f %% |", s.Kind.Name,
		s.quantile(0.5, func(o Outcome) float64 { return float64(o.Result.Phases) }), s.Seconds(0.5), s.Seconds(0.9), errs,
		s.Accuracy(), s.Stopped())
}

// bracketed reports whether no verified rate contradicts the truth.
func (o Outcome) bracketed() bool {
	r := o.Result
	return r.VerifiedLow <= o.Truth.Capacity && (r.VerifiedHigh == 0 || r.VerifiedHigh >= o.Truth.Capacity)
}

// WriteConfusion writes how often each kind was given each class, as Markdown.
func WriteConfusion(w io.Writer, studies []Study) error {
	count := map[signature.Class]map[string]int{}
	var classes []signature.Class
	for _, s := range studies {
		for _, o := range s.Outcomes {
			c := o.Result.Signature.Class
			if !o.Result.Broke && c == signature.Unknown {
				c = "none"
			}
			if count[c] == nil {
				count[c] = map[string]int{}
				classes = append(classes, c)
			}
			count[c][s.Kind.Name]++
		}
	}
	slices.Sort(classes)
	var text, rule strings.Builder
	text.WriteString("| server |")
	rule.WriteString("|---|")
	for _, c := range classes {
		fmt.Fprintf(&text, " %s |", c)
		rule.WriteString("--:|")
	}
	fmt.Fprintf(&text, "\n%s\n", &rule)
	for _, s := range studies {
		fmt.Fprintf(&text, "| %s |", s.Kind.Name)
		for _, c := range classes {
			if n := count[c][s.Kind.Name]; n > 0 {
				fmt.Fprintf(&text, " %d |", n)
			} else {
				text.WriteString(" |")
			}
		}
		text.WriteString("\n")
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write confusion matrix: %w", err)
	}
	return nil
}
