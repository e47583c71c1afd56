package vm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"tare/internal/build"
	"tare/internal/files"
)

// A Kernel is a kernel of the distribution that can be booted.
type Kernel struct {
	Release string // "6.1.0-56-cloud-amd64"
	Path    string // of its image
}

// Missing says what a lab VM lacks on this host, and the command that installs it.
type Missing struct{ What, Install string }

// Error implements error.
func (m *Missing) Error() string { return m.What }

// Emulator returns the path of QEMU for this architecture.
func Emulator() (string, error) {
	name := map[string]string{"amd64": "qemu-system-x86_64"}[runtime.GOARCH]
	if name == "" {
		return "", fmt.Errorf("the lab VM is built for amd64 only, not for %s", runtime.GOARCH)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", &Missing{
			What: name + " is not installed", Install: "apt-get install --no-install-recommends qemu-system-x86",
		}
	}
	return path, nil
}

// Cache is where kernels lie that are not installed in /boot: the folder "boot" below it.
func Cache(getenv func(string) (string, bool)) (string, error) {
	return build.Cache{Sub: "lab", Getenv: getenv}.Folder()
}

var image = regexp.MustCompile(`^vmlinuz-([0-9]+\.[0-9]+.*)$`)

// installed is where the distribution puts its kernels.
const installed = "/boot"

// Kernels lists the kernels in /boot and in the cache, the newest first. Packages unpacked into the cache come before
// the same release in /boot. It fails if another user could have put a kernel into the cache.
func Kernels(getenv func(string) (string, bool)) ([]Kernel, error) {
	cache, err := Cache(getenv)
	if err != nil {
		return nil, err
	}
	var out []Kernel
	for _, dir := range []string{filepath.Join(cache, "boot"), installed} {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for kernels: %w", err)
		}
		if dir != installed {
			if err := files.Trusted(dir); err != nil {
				return nil, fmt.Errorf("look for kernels: %w; set %s to a folder of your own", err, build.Variable)
			}
		}
		for _, e := range entries {
			m := image.FindStringSubmatch(e.Name())
			known := m != nil && slices.ContainsFunc(out, func(k Kernel) bool { return k.Release == m[1] })
			if m == nil || known || !usable(filepath.Join(dir, e.Name())) {
				continue
			}
			out = append(out, Kernel{Release: m[1], Path: filepath.Join(dir, e.Name())})
		}
	}
	slices.SortStableFunc(out, func(a, b Kernel) int { return -compareReleases(a.Release, b.Release) })
	return out, nil
}

// usable reports whether a path leads to a file that can be read. It opens nothing else: not every device stands that.
func usable(path string) bool {
	if is, err := os.Stat(path); err != nil || !is.Mode().IsRegular() {
		return false
	}
	f, err := files.ForReading(path)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

var number = regexp.MustCompile(`[0-9]+`)

// compareReleases compares the numbers of two releases, from left to right.
func compareReleases(a, b string) int {
	x, y := number.FindAllString(a, -1), number.FindAllString(b, -1)
	for i := range min(len(x), len(y)) {
		m, _ := strconv.Atoi(x[i])
		n, _ := strconv.Atoi(y[i])
		if m != n {
			return cmp.Compare(m, n)
		}
	}
	return cmp.Compare(len(x), len(y))
}

// InstallKernel is the command that makes a kernel available without installing it on the host.
func InstallKernel(getenv func(string) (string, bool)) string {
	dir, err := Cache(getenv)
	if err != nil {
		dir = "~/.cache/tare/lab"
	}
	return `cd "$(mktemp -d)" && apt-get download ` +
		`"$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2}')" && dpkg-deb -x *.deb ` + dir
}

// FindKernel returns the kernel of that release, the newest whose release begins with it, or the newest of all if it is
// empty.
func FindKernel(all []Kernel, release string) (Kernel, error) {
	for _, k := range all {
		if k.Release == release || release == "" || strings.HasPrefix(k.Release, release+".") ||
			strings.HasPrefix(k.Release, release+"-") {
			return k, nil
		}
	}
	names := make([]string, len(all))
	for i, k := range all {
		names[i] = k.Release
	}
	if len(all) == 0 {
		return Kernel{}, errors.New("there is no kernel to boot")
	}
	return Kernel{}, fmt.Errorf("there is no kernel %q; there are %s", release, strings.Join(names, ", "))
}

// check returns an error if the file is no kernel image (Documentation/arch/x86/boot.rst, "The
// Real-Mode Kernel Header").
func (k Kernel) check() error {
	const at, magic = 0x202, "HdrS"
	f, err := files.ForReading(k.Path)
	if err != nil {
		return fmt.Errorf("read the kernel image: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	head := make([]byte, len(magic))
	if _, err := f.ReadAt(head, at); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the kernel image: %w", err)
	}
	if string(head) != magic {
		return fmt.Errorf("%s is not a kernel image of x86 (no %q at byte %d): unpack the kernel's package again, or remove "+
			"this file", k.Path, magic, at)
	}
	return nil
}
