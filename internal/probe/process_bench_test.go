package probe_test

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tare/internal/probe"
)

// BenchmarkProcess reads a process with 2 GiB of resident memory in small pages. See the doc comment of probe.Process
// for what it found.
func BenchmarkProcess(b *testing.B) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "TARE_PROBE_TEST_CHILD=hold "+strconv.Itoa(2<<10))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if s, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(s) != "holding" {
		b.Fatal(s, err)
	}
	for name, light := range map[string]bool{"full": false, "light": true} {
		p := probe.Process{Name: "pdp", PID: cmd.Process.Pid, Light: light}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Read(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkJVM reads a live JVM: located each time, and as in the periodic readings of a soak.
func BenchmarkJVM(b *testing.B) {
	java(b, "java")
	v := startJVM(b, false, "-XX:+UseG1GC")
	for name, p := range map[string]probe.Probe{
		"jvm":      probe.JVM{Name: "pdp", PID: v.pid},
		"attached": &probe.Attached{Name: "pdp", Port: v.port, Light: true},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Read(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
