package doctor

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tare/internal/vm"
)

// tools looks for programs and sockets that single areas use. It starts nothing and reads no file.
func (x *examiner) tools(ctx context.Context) []Check {
	return []Check{x.java(), x.containers(ctx), x.kubernetes(), x.lab()}
}

func (x *examiner) java() Check {
	c := Check{Group: groupTools, Name: "Java", State: Info, Found: "not found in JAVA_HOME or PATH"}
	dirs := filepath.SplitList(x.Getenv("PATH"))
	if home := x.Getenv("JAVA_HOME"); home != "" {
		dirs = append([]string{filepath.Join(home, "bin")}, dirs...)
	}
	for _, dir := range dirs {
		file := filepath.Join(dir, "java")
		if s, err := os.Stat(file); err == nil && !s.IsDir() && s.Mode()&0o111 != 0 {
			c.Found = file
			break
		}
	}
	return c
}

// containers connects to the sockets of container runtimes, and sends them nothing.
func (x *examiner) containers(ctx context.Context) Check {
	sockets := []string{
		"/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
		"/var/run/crio/crio.sock",
	}
	if file, ok := strings.CutPrefix(x.Getenv("DOCKER_HOST"), "unix://"); ok {
		sockets = append([]string{file}, sockets...)
	}
	var found []string
	for _, s := range sockets {
		if _, err := os.Stat(s); err != nil {
			continue
		}
		dialer := net.Dialer{Timeout: time.Second}
		conn, err := dialer.DialContext(ctx, "unix", s)
		if err != nil {
			found = append(found, s+" does not answer: "+err.Error())
			continue
		}
		_ = conn.Close()
		found = append(found, s)
	}
	c := Check{
		Group: groupTools, Name: "container runtime", State: Info,
		Found: "no socket of Docker, containerd, Podman or CRI-O",
	}
	if len(found) > 0 {
		c.Found = strings.Join(found, "; ")
	}
	return c
}

// lab looks for what a lab VM needs, and boots nothing.
func (x *examiner) lab() Check {
	c := Check{Group: groupTools, Name: "lab VM", State: Info}
	if _, err := vm.Emulator(); err != nil {
		c.Found = err.Error()
		if m, ok := errors.AsType[*vm.Missing](err); ok {
			c.Next = m.Install
		}
		return c
	}
	getenv := func(name string) (string, bool) { v := x.Getenv(name); return v, v != "" }
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

func (x *examiner) kubernetes() Check {
	c := Check{Group: groupTools, Name: "kubeconfig", State: Info, Found: "none in KUBECONFIG or ~/.kube/config"}
	files := filepath.SplitList(x.Getenv("KUBECONFIG"))
	if home := x.Getenv("HOME"); len(files) == 0 && home != "" {
		files = []string{filepath.Join(home, ".kube", "config")}
	}
	var found []string
	for _, f := range append(files, "/var/run/secrets/kubernetes.io/serviceaccount/token") {
		if s, err := os.Stat(f); err == nil && !s.IsDir() {
			found = append(found, f)
		}
	}
	if len(found) > 0 {
		c.Found = strings.Join(found, ", ")
	}
	return c
}
