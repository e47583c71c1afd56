package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"tare/areas/plane"
	"tare/internal/kit"
)

// holderEndsWithin limits how long a holder may take to end after it was told that nobody waits.
const holderEndsWithin = kit.HolderEndsWithin

// holdOptions tell a holder what to start. It reads them from its standard input.
type holdOptions struct {
	Name        string        `json:"name"`
	Version     plane.Version `json:"version"`
	Binary      plane.Binary  `json:"binary"`
	Nodes       int           `json:"nodes"`
	Etcd        string        `json:"etcd"`
	PSP         bool          `json:"psp"`
	StateFolder string        `json:"shelf"`
	Logs        string        `json:"logs"`
}

// launch starts the holder of a plane, and returns when it reports that the plane is ready.
func launch(ctx context.Context, o holdOptions) (plane.Kept, error) {
	line, err := kit.StartHolder(ctx, o.Logs, o, "plane", "hold")
	if err == nil {
		var k plane.Kept
		if k, err = keptIn(line); err == nil {
			return k, nil
		}
	}
	return plane.Kept{}, fmt.Errorf("start plane %s: %w", o.Name, err)
}

// A holderLine is one line of a holder's output: it has one of the two fields.
type holderLine struct {
	Ready  *plane.Kept `json:"ready,omitempty"`
	Failed string      `json:"failed,omitempty"`
}

// keptIn parses the holder's line.
func keptIn(line []byte) (plane.Kept, error) {
	var said holderLine
	switch err := json.Unmarshal(line, &said); {
	case err != nil:
		return plane.Kept{}, fmt.Errorf("its holder says %.80q: %w", line, err)
	case said.Ready == nil:
		return plane.Kept{}, errors.New(said.Failed)
	}
	return *said.Ready, nil
}
