package plane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"tare/internal/files"
	"tare/internal/proc"
)

// Kept is a plane that keeps running, and the process that holds it: enough to find the plane again, and to end it when
// the holder was killed.
type Kept struct {
	Name         string    `json:"name"`
	Version      Version   `json:"version"`
	Kubernetes   string    `json:"kubernetes"`
	Etcd         string    `json:"etcd"` // Tmpfs or Disk
	PSP          bool      `json:"psp,omitempty"`
	Nodes        int       `json:"nodes"` // simulated
	Holder       proc.ID   `json:"holder"`
	Since        time.Time `json:"since"`
	Logs         string    `json:"logs"`            // folder
	Store        string    `json:"store,omitempty"` // Plane.Store, once ready
	Server       string    `json:"server,omitempty"`
	Kubeconfig   string    `json:"kubeconfig,omitempty"`
	ReadySeconds float64   `json:"ready_seconds,omitempty"` // 0: not ready yet
	Failed       string    `json:"failed,omitempty"`        // why the holder gave up
	Processes    []Process `json:"processes"`
	Folders      []string  `json:"folders"` // with secrets
}

// mostKept bounds a state file, in bytes.
const mostKept = 1 << 20

var keptName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// CheckName returns an error if a plane must not have this name, which becomes part of files' names.
func CheckName(name string) error {
	if !keptName.MatchString(name) {
		return fmt.Errorf("name %q: use up to 40 of a to z, 0 to 9 and '-', and do not begin with '-'", name)
	}
	return nil
}

// ParseKept reads a state file. The processes and folders in it will be killed and removed, so it rejects whatever a
// plane cannot have written: process 1, and folders whose names a plane does not give.
func ParseKept(text []byte) (Kept, error) {
	var k Kept
	if len(text) > mostKept {
		return Kept{}, fmt.Errorf("a state file cannot have %d bytes", len(text))
	}
	if err := json.Unmarshal(text, &k); err != nil {
		return Kept{}, err
	}
	if err := CheckName(k.Name); err != nil {
		return Kept{}, err
	}
	ids := []proc.ID{k.Holder}
	for _, p := range k.Processes {
		if p.Name == "" || strings.ContainsFunc(p.Name, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return Kept{}, fmt.Errorf("a process is named %q", p.Name)
		}
		ids = append(ids, p.ID)
	}
	for _, id := range ids {
		if id.PID <= 1 || id.StartTicks == 0 {
			return Kept{}, fmt.Errorf("pid %d with start time %d does not identify a process", id.PID, id.StartTicks)
		}
	}
	if bad := slices.IndexFunc(k.Folders, func(dir string) bool { return !isPlaneFolder(dir) }); bad >= 0 {
		return Kept{}, fmt.Errorf("folder %q is not a folder of a plane", k.Folders[bad])
	}
	if k.Kubeconfig != "" && !slices.Contains(k.Folders, filepath.Dir(k.Kubeconfig)) {
		return Kept{}, fmt.Errorf("kubeconfig %q is in no folder of the plane", k.Kubeconfig)
	}
	return k, nil
}

// isPlaneFolder reports whether a plane may have created the folder.
func isPlaneFolder(dir string) bool {
	return filepath.IsAbs(dir) && filepath.Clean(dir) == dir && strings.HasPrefix(filepath.Base(dir), folderPrefix)
}

// State is the state of a kept plane.
type State string

// The states.
const (
	Starting State = "starting"
	Running  State = "running"
	Broken   State = "failed" // the holder gave up and ended the components
	Lost     State = "gone"   // the holder was killed: Clear removes the rest
)

// State checks whether the holder runs.
func (k Kept) State() State {
	switch {
	case k.Failed != "":
		return Broken
	case !k.Holder.Alive():
		return Lost
	case k.ReadySeconds == 0:
		return Starting
	}
	return Running
}

// KeptFolder is the folder with the state files of kept planes, one "NAME.json" for each. It and the files must be this
// user's: what they name is ended and removed.
type KeptFolder struct{ Dir string }

// stateFile is the name of a plane's state file.
func stateFile(name string) string { return name + stateSuffix }

const stateSuffix = ".json"

// Put writes a state file, mode 0600, atomically.
func (s KeptFolder) Put(k Kept) error {
	text, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return fmt.Errorf("write state of plane %s: %w", k.Name, err)
	}
	if _, err := ParseKept(text); err != nil {
		return fmt.Errorf("write state of plane %s: %w", k.Name, err)
	}
	folder, err := files.Make(s.Dir)
	if err == nil {
		err = errors.Join(folder.Write(stateFile(k.Name), append(text, '\n')), folder.Close())
	}
	if err != nil {
		return fmt.Errorf("write state of plane %s: %w", k.Name, err)
	}
	return nil
}

// Get reads a state file; ok is false when there is none of this name.
func (s KeptFolder) Get(name string) (k Kept, ok bool, err error) {
	if err := CheckName(name); err != nil {
		return Kept{}, false, err
	}
	folder, err := files.Open(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Kept{}, false, nil
	}
	if err != nil {
		return Kept{}, false, fmt.Errorf("state of planes: %w", err)
	}
	defer folder.Close() //nolint:errcheck // nothing to lose
	return get(folder, name)
}

func get(folder *files.Folder, name string) (k Kept, ok bool, err error) {
	text, err := folder.Read(stateFile(name), mostKept)
	if errors.Is(err, fs.ErrNotExist) {
		return Kept{}, false, nil
	}
	if err == nil {
		k, err = ParseKept(text)
	}
	if err == nil && k.Name != name {
		err = fmt.Errorf("it describes plane %q", k.Name)
	}
	if err != nil {
		return Kept{}, false, fmt.Errorf("state file %s: %w; once nothing of the plane runs, remove it",
			folder.Join(stateFile(name)), err)
	}
	return k, true, nil
}

// List returns all readable state files, by name, and the joined errors of the others.
func (s KeptFolder) List() ([]Kept, error) {
	folder, err := files.Open(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state of planes: %w", err)
	}
	defer folder.Close() //nolint:errcheck // nothing to lose
	names, err := folder.Names()
	if err != nil {
		return nil, fmt.Errorf("list planes: %w", err)
	}
	slices.Sort(names)
	var list []Kept
	var errs []error
	for _, file := range names {
		name, is := strings.CutSuffix(file, stateSuffix)
		if !is || CheckName(name) != nil {
			continue // a draft, which its writer left
		}
		k, ok, err := get(folder, name)
		errs = append(errs, err)
		if ok {
			list = append(list, k)
		}
	}
	return list, errors.Join(errs...)
}

// Drop removes a state file, if it exists.
func (s KeptFolder) Drop(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	folder, err := files.Open(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(folder.Remove(stateFile(name)), folder.Close())
	}
	if err != nil {
		return fmt.Errorf("remove state of plane %s: %w", name, err)
	}
	return nil
}
