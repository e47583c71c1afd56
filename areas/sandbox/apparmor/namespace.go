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

	"tare/area"
	"tare/internal/files"
)

// What the kernel offers to change the policy.
const (
	policyDir   = kernelDir + "/policy"
	replaceFile = kernelDir + "/.replace"
	removeFile  = kernelDir + "/.remove"
	// namespacesDir has a folder for each policy namespace, which mkdir and rmdir make and remove.
	namespacesDir = policyDir + "/namespaces"
)

// ours begins the names of the namespaces that tare makes, and of no other.
const ours = "tare-"

// nameMark stands between a namespace's name and the rest of the name of a profile beside the host's.
const nameMark = "."

// longestNamespace bounds the name of a namespace: it becomes the name of a folder.
const longestNamespace = 200

// Namespace returns the name under which a run loads profiles. Journal it before one is loaded.
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

// loadInto puts compiled profiles into a namespace, which it makes if it does not exist.
func loadInto(namespace string, profiles []byte) error {
	dir := filepath.Join(namespacesDir, namespace)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // the kernel's folder
		return fmt.Errorf("make the AppArmor namespace %s: %w", namespace, refused(err))
	}
	if err := files.SetKernel(filepath.Join(dir, ".replace"), string(profiles)); err != nil {
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

// loaded returns the mode of each profile below a folder of the kernel's, by name.
func loaded(dir string) (map[string]string, error) {
	dirs, err := filepath.Glob(filepath.Join(dir, "profiles", "*"))
	if err != nil {
		return nil, err
	}
	modes := map[string]string{}
	for _, d := range dirs {
		name, err := files.Kernel(filepath.Join(d, "name")) //nolint:gosec // the kernel's folder
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("list AppArmor's profiles: %w", err)
		}
		mode, _ := files.Kernel(filepath.Join(d, "mode")) //nolint:gosec // empty if it was removed meanwhile
		modes[strings.TrimSpace(string(name))] = strings.TrimSpace(string(mode))
	}
	return modes, nil
}

// Remove removes all profiles that were loaded under a name: its namespace, and those beside the host's. Removing them
// again is no error. Processes that they still confine become unconfined: end them first.
func Remove(namespace string) error {
	if err := checkNamespace(namespace); err != nil {
		return err
	}
	var wrong []error
	err := unix.Rmdir(filepath.Join(namespacesDir, namespace))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		wrong = append(wrong, fmt.Errorf("remove the AppArmor namespace %s: %w", namespace, refused(err)))
	}
	modes, err := loaded(policyDir)
	if err != nil {
		wrong = append(wrong, err)
	}
	for name := range modes {
		if !strings.HasPrefix(name, namespace+nameMark) || strings.Contains(name, "//") {
			continue
		}
		if err := files.SetKernel(removeFile, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			wrong = append(wrong, fmt.Errorf("remove the AppArmor profile %s: %w", name, refused(err)))
		}
	}
	return errors.Join(wrong...)
}

// Namespaces lists the names under which tare's runs have loaded profiles on this host.
func Namespaces() ([]string, error) {
	all, err := os.ReadDir(namespacesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list AppArmor's namespaces: %w", err)
	}
	modes, err := loaded(policyDir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	for profile := range modes {
		name, _, _ := strings.Cut(profile, nameMark)
		names = append(names, name)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return checkNamespace(name) != nil })
	slices.Sort(names)
	return slices.Compact(names), nil
}
