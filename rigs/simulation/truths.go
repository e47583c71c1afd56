package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Truths remembers the truths of compositions in a file: computing them takes several times as long as a search. They
// are those of the simulator that wrote the file: whoever changes it has to remove the file.
type Truths struct {
	path  string
	mu    sync.Mutex
	known map[string]Truth
	added bool
}

// OpenTruths reads the file, where there is one. Without a path the truths are remembered for this run only.
func OpenTruths(path string) (*Truths, error) {
	t := &Truths{path: path, known: map[string]Truth{}}
	if path == "" {
		return t, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &t.known)
	}
	if err != nil {
		return nil, fmt.Errorf("read truths: %w", err)
	}
	return t, nil
}

// Of returns the truth of a composition, computed once.
func (t *Truths) Of(c Composition) Truth {
	key := fmt.Sprintf("%d %x", c.Seed, hash(c.String()))
	t.mu.Lock()
	truth, ok := t.known[key]
	t.mu.Unlock()
	if ok {
		return truth
	}
	truth = c.Truth()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[key], t.added = truth, true
	return truth
}

// Save writes the file if there is anything new.
func (t *Truths) Save() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.added {
		return nil
	}
	text, err := json.Marshal(t.known)
	if err == nil {
		err = os.WriteFile(t.path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write truths: %w", err)
	}
	return nil
}
