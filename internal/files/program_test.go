package files_test

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"tare/internal/files"
)

// TestWrittenProgramsRun: a program can be executed at once, whatever this process starts meanwhile.
func TestWrittenProgramsRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var starters sync.WaitGroup
	for i := range 4 {
		starters.Go(func() {
			for j := range 50 {
				path := filepath.Join(dir, strconv.Itoa(i)+"-"+strconv.Itoa(j))
				if err := files.WriteProgram(path, []byte("#!/bin/true\n")); err != nil {
					t.Error(err)
				}
				if err := exec.Command(path).Run(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	starters.Wait()
}
