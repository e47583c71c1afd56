package own

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"tare/internal/files"
	"tare/internal/proc"
)

// Builder is the server that builds a kustomization.
const Builder = "kustomize"

// What a kustomization may take: a few patches, replacements or folders can ask for more than any memory.
const (
	mostText    = 16 << 20 // of the files that it names, and of what is built, in bytes
	mostMemory  = 1 << 30  // in bytes
	mostSeconds = 60       // of processor time, so that a busy host refuses nothing
)

// An order is what is given to kustomize: it runs no git, asks no server, and finds no other file.
type order struct {
	Root   string
	Texts  map[string][]byte // by their absolute paths
	Visits map[string]int    // how often folders are built for a folder; 0: not known yet
	// Seconds bounds the processor time.
	Seconds uint64
}

// made is what the child has built, or why it has not.
type made struct {
	Text []byte
	Why  string
}

// build returns the objects that the kustomization makes, as one text. A child builds them: nothing else bounds what
// kustomize takes.
func (o order) build() ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	c := proc.Command(context.Background(), self, "serve", "admission", Builder)
	var out, says bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(append(config, '\n')), &out, &says
	c.Env = append(c.Env, "GOTRACEBACK=none")
	if err := c.Run(); err != nil {
		var more string
		switch took := c.ProcessState; {
		case took != nil && (took.UserTime()+took.SystemTime()).Round(time.Second).Seconds() >= float64(o.Seconds):
			more = fmt.Sprintf("%d s of processor time", o.Seconds)
		case bytes.Contains(says.Bytes(), []byte("memory")):
			more = fmt.Sprintf("%d MiB of memory", mostMemory>>20)
		default:
			return nil, fmt.Errorf("kustomize failed: %w: %.200s", err, says.Bytes())
		}
		return nil, fmt.Errorf("its patches, replacements or folders make so much that it takes more than %s", more)
	}
	var answer struct{ Ready made }
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return nil, err
	}
	if answer.Ready.Why != "" {
		return nil, errors.New(answer.Ready.Why)
	}
	return answer.Ready.Text, nil
}

// ServeBuild is the child's side of build.
func ServeBuild(_ context.Context, config json.RawMessage, ready func(any) error) error {
	var o order
	err := json.Unmarshal(config, &o)
	if err == nil {
		err = bound(o.Seconds)
	}
	if err != nil {
		return err
	}
	text, err := o.kustomize()
	if err == nil && len(text) > mostText {
		err = fmt.Errorf("what is built has more than %d MiB", mostText>>20)
	}
	if err != nil {
		return ready(made{Why: fmt.Sprintf("%.10000s", err)}) // it may quote what is built
	}
	return ready(made{Text: text})
}

// bound has the kernel end this process when it takes more memory than what it has and mostMemory, or more time.
func bound(seconds uint64) error {
	debug.SetMemoryLimit(mostMemory / 4 * 3) // what is garbage is collected before
	text, err := files.Kernel("/proc/self/statm")
	if err != nil {
		return err
	}
	var ignored, data uint64
	if _, err := fmt.Sscan(string(text), &ignored, &ignored, &ignored, &ignored, &ignored, &data); err != nil {
		return fmt.Errorf("read /proc/self/statm: %w", err)
	}
	return errors.Join(proc.Bound(os.Getpid(), unix.RLIMIT_DATA, data*uint64(os.Getpagesize())+mostMemory),
		proc.Bound(os.Getpid(), unix.RLIMIT_CPU, seconds))
}

func (o order) kustomize() ([]byte, error) {
	options := krusty.MakeDefaultOptions() // files of a folder or below it, no plug-ins, and no Helm
	options.Reorder = krusty.ReorderOptionUnspecified
	all, err := krusty.MakeKustomizer(options).Run(onlyGathered{filesys.MakeEmptyDirInMemory(), o}, o.Root)
	if err != nil {
		return nil, err
	}
	return all.AsYaml()
}

// onlyGathered is a file system that holds what was gathered. For the rest of filesys.FileSystem, which is not needed
// for what is taken here, an empty one stands.
type onlyGathered struct {
	filesys.FileSystem
	order
}

// Exists is filesys.FileSystem.Exists, as the others are those of that interface.
func (g onlyGathered) Exists(path string) bool { return g.Texts[path] != nil || g.IsDir(path) }

// IsDir reports whether a folder has been read.
func (g onlyGathered) IsDir(path string) bool { return g.Visits[path] > 0 }

// ReadFile returns a file that has been read.
func (g onlyGathered) ReadFile(path string) ([]byte, error) {
	if text := g.Texts[path]; text != nil {
		return text, nil
	}
	return nil, fmt.Errorf("%s: %w", path, os.ErrNotExist)
}

// CleanedAbs splits the path of a file; of a folder the second result is empty.
func (g onlyGathered) CleanedAbs(path string) (filesys.ConfirmedDir, string, error) {
	path = filepath.Clean(path)
	switch {
	case g.IsDir(path):
		return filesys.ConfirmedDir(path), "", nil
	case g.Texts[path] != nil:
		return filesys.ConfirmedDir(filepath.Dir(path)), filepath.Base(path), nil
	}
	return "", "", fmt.Errorf("%s: %w", path, os.ErrNotExist)
}
