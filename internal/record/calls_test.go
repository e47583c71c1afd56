package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/load"
)

// A file of version 1, which had no causes, stays readable.
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

// Every cause survives, alone and with a status and an errno, and takes two bytes at most.
func TestCausesSurvive(t *testing.T) {
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
