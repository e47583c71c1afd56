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
	hosttest.SkipIfShort(t)
	t.Parallel()
	bin := tareBinary(t)
	quick := map[string]string{"identity": "name: read\narea: identity\nquestion: capacity\n" +
		"target: {adapter: gce-metadata, embedded: {preset: healthy}}\nload: {rates: [50/s], duration: 1s, timeout: 2s}\n" +
		"seed: 1\n"}
	for _, k := range killables() {
		if k.name == "exec" || k.name == "sandbox" {
			quick[k.name] = strings.Replace(k.experiment, "blocks: 4", "blocks: 2", 1)
		}
	}
	for area, experiment := range quick {
		for _, lines := range []int{0, 2, 9} {
			t.Run(fmt.Sprintf("%s, %d lines", area, lines), func(t *testing.T) {
				needsAreas(t, area)
				t.Parallel()
				loseReader(t, bin, &killable{name: area, experiment: experiment}, lines)
			})
		}
	}
}

// loseReader runs an experiment whose reader ends after so many lines: the run goes on and is undone, and its record
// says so.
func loseReader(t *testing.T, bin string, k *killable, lines int) {
	t.Helper()
	dir := folderWith(t, k.experiment)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), bin, k.run()...)
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
	if code := run.ProcessState.ExitCode(); code == cli.ExitError || code < 0 {
		t.Errorf("%v", run.ProcessState)
	}
	records, _ := filepath.Glob(filepath.Join(dir, "results", "*"))
	if len(records) != 1 {
		t.Fatalf("records: %v", records)
	}
	journal := readAll(filepath.Join(records[0], "record.jsonl"))
	said := bytes.Contains(journal, []byte("ended during the run, which went on"))
	const ofReport = 9 // that many lines come only with the report
	if !bytes.Contains(journal, []byte(`"finish"`)) || !said && lines < ofReport {
		t.Errorf("the record says that a reader ended: %v; it ends with %.300s", said, journal[max(0, len(journal)-300):])
	}
	if out, _ := execTare(t, bin, dir, "undo", records[0]); !strings.Contains(out, "nothing to undo") {
		t.Errorf("undo: %s", out)
	}
}
