package doctor

import (
	"context"
	"net"
	"os"
	"strings"
	"time"
)

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
