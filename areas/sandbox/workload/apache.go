package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// apacheModules are the modules that Apache needs, and the files of those compiled in as "apache2 -l" lists them.
var apacheModules = []struct{ name, file, compiled string }{
	{"mpm_event_module", "mod_mpm_event.so", "event.c"},
	{"authz_core_module", "mod_authz_core.so", "mod_authz_core.c"},
}

// newApache returns an Apache httpd with one process for all connections, and a thread for each: with fewer threads
// than requests it would close connections that it should keep.
func newApache(dir string, connections int) (*Daemon, error) {
	program, err := installed("apache2", apachePackage)
	if err != nil {
		return nil, err
	}
	modules, err := apacheFiles(program)
	if err != nil {
		return nil, err
	}
	const fewest = 25 // threads of a process by default
	d := &Daemon{
		Name: "apache", Dir: dir, threads: max(fewest, connections),
		Command: []string{program, "-d", dir, "-f", "apache.conf", "-DFOREGROUND"},
	}
	if d.Port, d.release, err = reservePort(); err != nil {
		return nil, fmt.Errorf("prepare apache: %w", err)
	}
	// Apache does not serve as root. The processes of the other user start in dir, and enter nothing above it.
	if err = os.Chmod(dir, 0o711); err == nil { //nolint:gosec // the folder above it is closed to other users
		var w web
		w, err = newWeb(dir, "apache.conf", apacheConfig(modules, d.Port, d.threads))
		d.protocol, d.exchange = w, exchange{w.request, w.check}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare apache: %w", err), d.Close())
	}
	return d, nil
}

const apachePackage = "apache2-bin"

// apacheFiles returns the files of the modules that are not compiled in, by name.
func apacheFiles(program string) (map[string]string, error) {
	built, err := output(program, "-l")
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, m := range apacheModules {
		if bytes.Contains(built, []byte(" "+m.compiled+"\n")) {
			continue
		}
		// beside the program: /usr/lib for /usr/sbin, and modules for bin
		for _, dir := range []string{"../lib/apache2/modules", "../modules"} {
			path := filepath.Join(filepath.Dir(program), dir, m.file)
			if _, err := os.Stat(path); err == nil {
				out[m.name] = path
			} else if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		if out[m.name] == "" {
			return nil, &Missing{Program: m.file, Package: apachePackage}
		}
	}
	return out, nil
}

// apacheConfig names all paths relative to the directory. The document root is one that Apache's processes reach though
// the folders above it are closed to their user.
func apacheConfig(modules map[string]string, port, threads int) []byte {
	var b bytes.Buffer
	for _, m := range apacheModules {
		if path := modules[m.name]; path != "" {
			fmt.Fprintf(&b, "LoadModule %s \"%s\"\n", m.name, path)
		}
	}
	if os.Geteuid() == 0 {
		b.WriteString("User nobody\nGroup #65534\n")
	}
	fmt.Fprintf(&b, "Listen 127.0.0.1:%d\nListenBacklog %d\n", port, MostConnections)
	b.WriteString("ServerName localhost\nDefaultRuntimeDir .\nPidFile apache.pid\nErrorLog error.log\nLogLevel crit\n" +
		"DocumentRoot /proc/self/cwd/html\n" +
		"<Directory />\n\tOptions FollowSymLinks\n\tAllowOverride None\n\tRequire all granted\n</Directory>\n" +
		"KeepAlive On\nKeepAliveTimeout 3600\nMaxKeepAliveRequests 0\nMaxConnectionsPerChild 0\n")
	fmt.Fprintf(&b, "ServerLimit 1\nStartServers 1\nThreadLimit %d\nThreadsPerChild %[1]d\nMaxRequestWorkers %[1]d\n"+
		"MinSpareThreads 1\nMaxSpareThreads %[1]d\nThreadStackSize 262144\n", threads)
	return b.Bytes()
}

// reservePort returns a free TCP port of loopback, which the kernel picks, and what frees it. Until then the port stays
// bound: the kernel picks it for nobody else, and Apache can listen on it all the same, since both sockets have
// SO_REUSEADDR and this one does not listen (socket(7)). So can any user who asks for this very port before Apache
// does: see who listens. Apache itself can neither listen on a Unix socket nor ask the kernel for a port.
func reservePort() (port int, release func() error, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, err
	}
	release = func() error { return unix.Close(fd) }
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	var name unix.Sockaddr
	if err == nil {
		name, err = unix.Getsockname(fd)
	}
	in, ok := name.(*unix.SockaddrInet4)
	if err != nil || !ok {
		return 0, nil, errors.Join(fmt.Errorf("reserve a port: %w", err), release())
	}
	return in.Port, release, nil
}
