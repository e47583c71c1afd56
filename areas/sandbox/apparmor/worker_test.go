package apparmor

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tare/rigs/hosttest"
)

// The environment of a process that confines itself, and of the worker that it becomes.
const (
	confineVariable = "TARE_TEST_CONFINE"  // a label as JSON
	attemptVariable = "TARE_TEST_ATTEMPTS" // JSON: a list of attempts
)

func TestMain(m *testing.M) {
	if what := os.Getenv(confineVariable); what != "" {
		fmt.Fprintln(os.Stderr, confineAndExecute(what))
		os.Exit(1)
	}
	if list := os.Getenv(attemptVariable); list != "" {
		attemptAll(list)
		os.Exit(0)
	}
	hosttest.Main(m)
}

// confineAndExecute does what a shim does: no_new_privs, the profile, a seccomp filter that allows all, execve.
func confineAndExecute(what string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	var label Label
	if err := json.Unmarshal([]byte(what), &label); err != nil {
		return err
	}
	if err := Enter(label); err != nil {
		return err
	}
	allow := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000}} // SECCOMP_RET_ALLOW
	program := unix.SockFprog{Len: 1, Filter: &allow[0]}
	if err := seccompFilter(&program); err != nil {
		return err
	}
	if err := os.Unsetenv(confineVariable); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", []string{"worker"}, os.Environ())
}

func attemptAll(list string) {
	var attempts [][]string
	if err := json.Unmarshal([]byte(list), &attempts); err != nil {
		fmt.Println(err)
		return
	}
	results := make([]string, len(attempts))
	for i, a := range attempts {
		results[i] = "ok"
		if err := try(a[0], a[1:]...); err != nil {
			results[i] = err.Error()
		}
	}
	text, _ := json.Marshal(results)
	fmt.Println(string(text))
	_, _ = io.ReadAll(os.Stdin) // stay until the label has been read
}

// try makes one attempt.
func try(what string, args ...string) error {
	switch what {
	case "read", "write", "append", "create":
		return tryFile(what, args[0])
	case "remove":
		return unix.Unlink(args[0])
	case "link":
		return unix.Link(args[0], args[1])
	case "exec":
		c := exec.Command(args[0])
		c.Env = noAttempts()
		return c.Run()
	case "connect":
		c, err := net.Dial(args[0], args[1])
		if err != nil {
			return err
		}
		return c.Close()
	case "mount":
		return unix.Mount(args[0], args[1], args[2], 0, "")
	case "umount":
		return unix.Unmount(args[0], 0)
	case "hostname": // takes sys_admin
		return unix.Sethostname([]byte("x"))
	case "chroot":
		return unix.Chroot("/")
	case "parent": // takes the right to read it by ptrace
		_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid()))
		return err
	case "child":
		return tryChild()
	case "signal":
		return unix.Kill(os.Getppid(), 0)
	case "raise":
		return unix.Kill(os.Getpid(), unix.SIGURG)
	case "profile": // change it, which would end the confinement
		f, err := openAttribute("thread-self", "current", os.O_WRONLY)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // the kernel acts on the write
		_, err = f.WriteString("changeprofile " + args[0])
		return err
	}
	return fmt.Errorf("there is no attempt %q", what)
}

// noAttempts is the environment of a program that is this one and ends at once.
func noAttempts() []string { return []string{attemptVariable + "=[]"} }

func tryFile(what, path string) error {
	flags := map[string]int{
		"read": unix.O_RDONLY, "write": unix.O_WRONLY, "append": unix.O_WRONLY | unix.O_APPEND,
		"create": unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL,
	}[what]
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// tryChild reads a child that runs under the same profile.
func tryChild() error {
	c := exec.Command("/proc/self/exe")
	c.Env = noAttempts()
	end, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	_, read := os.Readlink(fmt.Sprintf("/proc/%d/exe", c.Process.Pid))
	_ = end.Close()
	if err := c.Wait(); err != nil {
		return err
	}
	return read
}

// runConfined makes attempts under a profile. It returns the results, "ok" or an error each, and the
// label of the worker.
func runConfined(t *testing.T, under Label, attempts [][]string) ([]string, Label) {
	t.Helper()
	list, err := json.Marshal(attempts)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := json.Marshal(under)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "/proc/self/exe")
	c.Env = []string{attemptVariable + "=" + string(list), confineVariable + "=" + string(profile)}
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var results []string
	if err := json.NewDecoder(out).Decode(&results); err != nil {
		t.Fatalf("under %s: %v (%v)", profile, err, c.Wait())
	}
	label, err := Current(c.Process.Pid)
	if err != nil {
		t.Error(err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	return results, label
}
