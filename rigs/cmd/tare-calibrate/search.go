package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"text/template"
	"time"

	"tare/internal/limit"
	"tare/internal/record"
	"tare/internal/signature"
	"tare/rigs/servers"
)

// longest is when a search that does not end is given up. tare's own limit is far below it.
const longest = 15 * time.Minute

// searchAll searches the capacity of every server that can be had here, as often as asked for, and prints the answers
// beside the truth.
func searchAll(ctx context.Context, o options, stdout, stderr io.Writer) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	text, err := template.New(filepath.Base(o.file)).Option("missingkey=error").ParseFiles(o.file)
	if err != nil {
		return err
	}
	dir, remove, err := o.folder()
	if err != nil {
		return err
	}
	defer remove()
	s := &survey{options: o, dir: dir, template: text, stderr: stderr}
	for _, f := range servers.All() {
		switch err := f.Missing(); {
		case !only.MatchString(f.Name):
		case err != nil:
			s.skipped = append(s.skipped, fmt.Sprintf("%s: SKIPPED: %v", f.Name, err))
		default:
			for i := range o.n {
				s.todo = append(s.todo, task{f, o.seed + uint64(i)})
			}
		}
	}
	s.answers = make([]*answer, len(s.todo))
	s.failed = make([]error, len(s.todo))
	s.work(ctx)
	err = errors.Join(s.failed...)
	if o.out != "" {
		err = errors.Join(err, s.save(o.out))
	}
	return errors.Join(err, s.write(stdout))
}

// A survey is a number of searches and their answers.
type survey struct {
	options

	dir      string
	template *template.Template // of the experiment file
	stderr   io.Writer
	todo     []task
	answers  []*answer // by number of the task; nil: it failed
	failed   []error
	skipped  []string

	mu      sync.Mutex
	done    int
	spoiled int // searches that were repeated
}

// A task is one search.
type task struct {
	servers.Fixture

	seed uint64
}

// work does all that is to be done, several at a time.
func (s *survey) work(ctx context.Context) {
	var all sync.WaitGroup
	next := make(chan int)
	for range max(1, s.parallel) {
		all.Go(func() {
			for i := range next {
				s.answers[i], s.failed[i] = s.insist(ctx, s.todo[i])
				s.tell(i)
			}
		})
	}
	for i := range s.todo {
		next <- i
	}
	close(next)
	all.Wait()
}

// tell says how a search ended.
func (s *survey) tell(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done++
	line := "failed"
	if a := s.answers[i]; a != nil {
		line = fmt.Sprintf("%.0f s  truth %s  answer %s  %s, %s  number %s, limit %s, class %s, findings %s, budgets %s",
			a.Seconds, number(a.Truth), a.said(), a.Limit, a.Class, a.Number, a.Limited, a.Named, a.Beside, a.Budgets)
	}
	_, _ = fmt.Fprintf(s.stderr, "%d/%d  %s  seed %d  %s\n", s.done, len(s.todo), s.todo[i].Name, s.todo[i].seed, line)
}

// insist repeats a search, as often as is allowed, while its answer cannot be judged.
func (s *survey) insist(ctx context.Context, t task) (*answer, error) {
	for again := 0; ; again++ {
		a, err := s.search(ctx, t)
		if err != nil || again >= s.retries || !a.spoiled() {
			return a, err
		}
		s.mu.Lock()
		s.spoiled++
		s.mu.Unlock()
	}
}

// spoiled reports whether the host held the server up, or all that was said is that tare, or its host, was the limit.
func (a *answer) spoiled() bool {
	return a.Late > servers.MostLate || a.Class == signature.Client && worst(a.Number, a.Beside, a.Budgets) != wrong
}

// search starts a server and has tare find its capacity.
func (s *survey) search(ctx context.Context, t task) (a *answer, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	running, err := t.Start(ctx, t.seed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	text, err := s.experiment(t, running)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-%d", t.Name, t.seed)
	dir := filepath.Join(s.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	b, _, err := runFile(ctx, s.tare, dir, name, text)
	if err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", t.Name, t.seed, err)
	}
	if a, err = read(b, t.Fixture, t.seed); err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", t.Name, t.seed, err)
	}
	a.Late = running.Late()
	a.Tried, err = experiments(dir)
	return a, err
}

// experiments are those of the latest record in dir.
func experiments(dir string) (out []limit.Experiment, err error) {
	records, err := filepath.Glob(filepath.Join(dir, "*", "record.jsonl"))
	if err != nil || len(records) == 0 {
		return nil, errors.Join(err, fmt.Errorf("no record in %s", dir))
	}
	slices.Sort(records) // their names end with the time
	rec, err := record.Open(filepath.Dir(records[len(records)-1]))
	if err != nil {
		return nil, err
	}
	for _, t := range rec.Trials {
		for _, step := range t.Steps {
			if step.Name != limit.Step {
				continue
			}
			var x limit.Experiment
			if err := json.Unmarshal(step.Payload, &x); err != nil {
				return nil, err
			}
			out = append(out, x)
		}
	}
	return out, nil
}

// experiment fills in the file that asks for the capacity of a server. The rates Below and Above, for its budgets, lie
// on both sides of the truth.
func (s *survey) experiment(t task, running *servers.Running) ([]byte, error) {
	var b bytes.Buffer
	err := s.template.Execute(&b, map[string]any{
		"Name": t.Name, "Addr": running.Addr, "Callers": t.Callers, "Timeout": t.Timeout, "MaxRate": t.MaxRate,
		"Below": below * t.Truth.Rate, "Above": above * t.Truth.Rate, "Seed": t.seed,
	})
	return b.Bytes(), err
}

// save keeps all answers as JSON.
func (s *survey) save(file string) error {
	b, err := json.MarshalIndent(s.answers, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o600)
}
