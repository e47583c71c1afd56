package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
)

// TestOldCallsFile: a file of version 1, which had no causes, can still be read.
func TestOldCallsFile(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "records", "calls-v1.bin"))
	must(t, err)
	if b[3] != 1 {
		t.Fatalf("the file has version %d", b[3])
	}
	var want []load.Call
	text, err := os.ReadFile(filepath.Join("testdata", "records", "calls-v1.json"))
	must(t, err, json.Unmarshal(text, &want))
	c, err := newCallsReader(bytes.NewReader(b), "calls-v1.bin")
	must(t, err)
	var got []load.Call
	for err == nil {
		got, err = c.next(got)
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" || len(got) != 120 || c.meta.Operations[1] != "identity" {
		t.Errorf("%d calls of %+v (-want +got):\n%s", len(got), c.meta, d)
	}
}

// TestEachCallsReadsInChunks: EachCalls reads the same calls as Calls, at most a chunk at a time, and Calls allocates
// only what it needs.
func TestEachCallsReadsInChunks(t *testing.T) {
	w, err := Create(t.TempDir(), Header{Experiment: Experiment{Name: "parts"}}, nil, clock.NewFake(epoch))
	must(t, err)
	trial := design.Trial{Treatment: "a"}
	want := make([]load.Call, 2*chunkCalls+100)
	for i := range want {
		want[i] = load.Call{Conn: 1, Intended: time.Duration(i), Done: time.Duration(i) + time.Second, Status: 200}
	}
	must(t, w.Plan(Plan{Trials: []design.Trial{trial}}), w.TrialBegin(TrialBegin{Trial: trial}), w.Calls("a", 0, want),
		w.TrialEnd(TrialEnd{Treatment: "a", Status: Complete}), w.Close())
	r, err := Open(w.Dir())
	must(t, err)
	var got []load.Call
	parts := 0
	must(t, r.Trials[0].EachCalls(func(part []load.Call) {
		parts++
		if len(part) > chunkCalls {
			t.Errorf("a part has %d calls", len(part))
		}
		got = append(got, part...)
	}))
	all, err := r.Trials[0].Calls()
	must(t, err)
	if parts != 3 || !slices.Equal(got, want) || !slices.Equal(all, want) || cap(all) != len(want) {
		t.Errorf("%d parts, %d calls; at once %d in the room of %d; want %d", parts, len(got), len(all), cap(all), len(want))
	}
}

// TestCausesRoundTrip: every cause is read back, alone and with a status and an errno, and takes at most two bytes.
func TestCausesRoundTrip(t *testing.T) {
	var calls []load.Call
	for k := range 256 {
		calls = append(calls, load.Call{Cause: load.Cause(k)}, load.Call{Cause: load.Cause(k), Status: 65535, Errno: 65535},
			load.Call{Cause: load.Cause(k), Status: 302})
	}
	got, err := decodeCalls(nil, encodedCalls(calls), len(calls))
	must(t, err)
	if d := cmp.Diff(calls, got); d != "" {
		t.Error(d)
	}
	plain := load.Call{Conn: 1, Intended: time.Second, Done: 2 * time.Second, Outcome: load.Wrong, Status: 200}
	with := plain
	with.Cause = load.CauseRedirect
	if grown := len(appendCall(nil, &with, 0)) - len(appendCall(nil, &plain, 0)); grown < 1 || grown > 2 {
		t.Errorf("a cause takes %d bytes", grown)
	}
	if _, err := decodeCalls(nil, []byte{hasStatus & 0xff, 0, 0, 0, 0x80, 0x80, 0x80, 0x08, 0},
		1); !errors.Is(err, errTorn) {
		t.Errorf("a cause beyond 255 was taken: %v", err)
	}
}
