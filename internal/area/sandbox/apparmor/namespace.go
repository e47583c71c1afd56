package apparmor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tare/internal/area"
)

// namespacesDir has a folder for each policy namespace, which mkdir and rmdir make and remove.
const namespacesDir = kernelDir + "/policy/namespaces"

// ours begins the names of the namespaces that tare makes, and of no other.
const ours = "tare-"

// longestNamespace bounds the name of a namespace: it becomes the name of a folder.
const longestNamespace = 200

// Namespace returns the name of the policy namespace of a run. Journal it before Load makes it.
func Namespace(run string) string { return ours + run }

// checkNamespace returns an error if the name is not one of tare's.
func checkNamespace(name string) error {
	id, isOurs := strings.CutPrefix(name, ours)
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	if !isOurs || id == "" || len(name) > longestNamespace || strings.Trim(id, letters) != "" {
		return fmt.Errorf("%.80q is no AppArmor namespace of tare's: want %sRUN, RUN of letters, digits, '_' and '-'", name,
			ours)
	}
	return nil
}

// Load puts compiled profiles into a namespace, which it makes if it does not exist.
func Load(namespace string, profiles []byte) error {
	if err := checkNamespace(namespace); err != nil {
		return err
	}
	dir := filepath.Join(namespacesDir, namespace)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // the kernel's folder
		return fmt.Errorf("make the AppArmor namespace %s: %w", namespace, refused(err))
	}
	f, err := os.OpenFile(filepath.Join(dir, ".replace"), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("load profiles into the AppArmor namespace %s: %w", namespace, refused(err))
	}
	defer f.Close()                              //nolint:errcheck // the kernel acts on the write
	if _, err := f.Write(profiles); err != nil { // one write: the kernel takes no parts
		return fmt.Errorf("load profiles into the AppArmor namespace %s: %w", namespace, refused(err))
	}
	return nil
}

// refused adds the cause and the next step to an error of changing the policy.
func refused(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return area.WithHint(fmt.Errorf("%w: this needs CAP_MAC_ADMIN outside of containers, and AppArmor's policy must not "+
			"be locked", err),
			"run tare as root on the host and unconfined, or leave apparmor out")
	case errors.Is(err, unix.EPROTONOSUPPORT):
		return area.WithHint(fmt.Errorf("%w: the kernel does not know the format that apparmor_parser writes", err),
			"use an apparmor_parser that is as old as the kernel")
	}
	return err
}

// Loaded returns the mode of each profile of a namespace, by name.
func Loaded(namespace string) (map[string]string, error) {
	if err := checkNamespace(namespace); err != nil {
		return nil, err
	}
	dirs, err := filepath.Glob(filepath.Join(namespacesDir, namespace, "profiles", "*"))
	if err != nil {
		return nil, err
	}
	modes := map[string]string{}
	for _, dir := range dirs {
		name, err := os.ReadFile(filepath.Join(dir, "name")) //nolint:gosec // the kernel's folder
		if err != nil {
			return nil, fmt.Errorf("list the profiles of the AppArmor namespace %s: %w", namespace, err)
		}
		mode, err := os.ReadFile(filepath.Join(dir, "mode")) //nolint:gosec // the kernel's folder
		if err != nil {
			return nil, fmt.Errorf("list the profiles of the AppArmor namespace %s: %w", namespace, err)
		}
		modes[strings.TrimSpace(string(name))] = strings.TrimSpace(string(mode))
	}
	return modes, nil
}

// Remove removes a namespace with its profiles. It succeeds if there is none. Processes that are still confined by its
// profiles become unconfined: end them first.
func Remove(namespace string) error {
	if err := checkNamespace(namespace); err != nil {
		return err
	}
	err := unix.Rmdir(filepath.Join(namespacesDir, namespace))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("remove the AppArmor namespace %s: %w", namespace, refused(err))
}

// Namespaces lists the namespaces of tare's on this host, of all runs.
func Namespaces() ([]string, error) {
	all, err := os.ReadDir(namespacesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list AppArmor's namespaces: %w", err)
	}
	var names []string
	for _, e := range all {
		if checkNamespace(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}
