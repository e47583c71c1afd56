package apparmor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/policy"
	"tare/internal/files"
)

// Probe tries whether profiles can be compiled and loaded here: it loads one under a namespace's name and one into the
// namespace, and removes both. The error holds the cause and a next step. It does not confine a process.
func Probe(ctx context.Context, namespace string) error {
	if err := checkNamespace(namespace); err != nil {
		return err
	}
	if _, err := os.Stat(namespacesDir); err != nil {
		return whyMissing(err)
	}
	return errors.Join(tryLoading(ctx, namespace), Remove(namespace))
}

func tryLoading(ctx context.Context, namespace string) error {
	beside, err := LoadPolicy(ctx, namespace, "probe", policy.Policy{Umount: true})
	if err != nil {
		return err
	}
	if err := checkLoaded(policyDir, beside.Label.Profile); err != nil {
		return err
	}
	file := &File{Name: "a profile of tare's", Text: "profile probe { }"}
	inside, err := LoadFile(ctx, namespace, file, "probe", Enforce)
	if err != nil {
		return err
	}
	return checkLoaded(filepath.Join(namespacesDir, namespace), inside.Label.Profile)
}

func checkLoaded(dir, name string) error {
	modes, err := loaded(dir)
	if err == nil && modes[name] != string(Enforce) {
		err = area.WithHint(fmt.Errorf("the kernel took a profile of AppArmor's and has it in mode %q, not %s", modes[name],
			Enforce), "write enforce to "+moduleDir+"/parameters/mode, or leave apparmor out")
	}
	return err
}

// whyMissing explains why the kernel offers no AppArmor, from the error of looking for its files.
func whyMissing(err error) error {
	const leave = ", or leave apparmor out"
	if errors.Is(err, os.ErrPermission) {
		return area.WithHint(err, "run tare as root on the host"+leave)
	}
	if _, err := os.Stat(moduleDir); err != nil {
		return area.WithHint(errors.New("kernel without AppArmor ("+moduleDir+" does not exist)"),
			"use a kernel built with CONFIG_SECURITY_APPARMOR"+leave)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(securityFS, &fs); err != nil || fs.Type != unix.SECURITYFS_MAGIC {
		return area.WithHint(errors.New("securityfs is not mounted on "+securityFS),
			"mount it: mount -t securityfs securityfs "+securityFS+"; in a container, run tare on the host"+leave)
	}
	active, _ := files.Kernel(securityFS + "/lsm")
	if !strings.Contains(string(active), "apparmor") {
		return area.WithHint(fmt.Errorf("the kernel has AppArmor, and it is switched off (active: %s)", active),
			"boot with apparmor in lsm=… and without apparmor=0"+leave)
	}
	return area.WithHint(err, "a kernel from 4.11 on has this folder: use one"+leave)
}
