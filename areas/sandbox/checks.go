package sandbox

import (
	"context"
	"errors"
	"strings"

	"tare/area"
	"tare/areas/sandbox/kernel"
	"tare/areas/sandbox/vm"
	"tare/internal/kit"
)

// checks is area.Parts.Checks.
func checks(_ context.Context, env area.Env) []area.Check {
	return append(kernel.Checks(), checkLab(kit.Environment(env.Getenv)))
}

// checkLab looks for what a lab VM needs, and boots nothing.
func checkLab(getenv func(string) (string, bool)) area.Check {
	c := area.Check{Group: area.Tools, Name: "lab VM", State: area.CheckInfo}
	if _, err := vm.Emulator(); err != nil {
		c.Found = err.Error()
		if m, ok := errors.AsType[*vm.Missing](err); ok {
			c.Next = m.Install
		}
		return c
	}
	all, err := vm.Kernels(getenv)
	if err != nil {
		c.Found = err.Error()
		return c
	}
	if len(all) == 0 {
		c.Found, c.Next = "QEMU, but no kernel", vm.InstallKernel(getenv)
		return c
	}
	names := make([]string, len(all))
	for i, k := range all {
		names[i] = k.Release
	}
	c.Found = "QEMU with Linux " + strings.Join(names, ", ")
	return c
}
