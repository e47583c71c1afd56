package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tare/internal/cli"
	"tare/rigs/hosttest"
)

// TestLostReader: where the reader of all output ends after some lines, as head does, the run goes on, undoes its
// changes, has its verdict, and says in its record that it was not read.
func TestLostReader(t *testing.T) {
	needsAreas(t, "identity")
	hosttest.SkipIfShort(t)
	t.Parallel()
	bin := buildTare(t)
	for _, lines := range []int{0, 1, 3} {
		t.Run(fmt.Sprintf("%d lines", lines), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte("name: read\narea: identity\nquestion: capacity\n"+
				"target: {adapter: gce-metadata, embedded: {preset: healthy}}\nload: {rates: [50/s], duration: 1s, "+
				"timeout: 2s}\nseed: 1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			run := exec.CommandContext(t.Context(), bin, "run", "x.yaml")
			run.Dir, run.Stdout, run.Stderr = dir, write, write
			if err := errors.Join(run.Start(), write.Close()); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewScanner(read)
			for range lines {
				in.Scan()
			}
			_ = read.Close()
			_ = run.Wait()
			if code := run.ProcessState.ExitCode(); code != cli.ExitPass && code != cli.ExitInvalid { // on a busy host
				t.Errorf("%v", run.ProcessState)
			}
			records, _ := filepath.Glob(filepath.Join(dir, "results", "*"))
			if len(records) != 1 {
				t.Fatalf("records: %v", records)
			}
			journal := readAll(filepath.Join(records[0], "record.jsonl"))
			for _, want := range []string{`"finish"`, "ended during the run, which went on"} {
				if !bytes.Contains(journal, []byte(want)) {
					t.Errorf("the record lacks %q", want)
				}
			}
			if out, _ := execTare(t, bin, dir, "undo", records[0]); !strings.Contains(out, "nothing to undo") {
				t.Errorf("undo: %s", out)
			}
		})
	}
}
