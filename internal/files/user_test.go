package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesOfTheKernel: what the kernel shows is read where tare itself asks for it, and not where a user or a stranger
// names it, by whatever path: it may have no end.
func TestFilesOfTheKernel(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink("/proc/self/status", link))
	for _, path := range []string{"/proc/self/status", "/proc/version", "/sys/kernel/mm", "/proc/self/task", link} {
		for name, open := range map[string]func(path string) (*os.File, error){"ForReading": ForReading, "Given": Given} {
			if f, err := open(path); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s %s: %v, %v", name, path, f, err)
			}
		}
	}
	for path, want := range map[string]string{
		"/proc/version": "the kernel shows", link: "the kernel shows", "/dev/null": "want a regular file",
		"/proc/self/exe": "longer than 100 bytes", "/proc": "", "/none": "", "": "",
	} {
		if err := Ends(path, 100); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if text, err := Kernel("/proc/self/status"); err != nil || len(text) == 0 {
		t.Errorf("%q, %v", text, err)
	}
	f, err := ForReading("/proc/self/exe") // which leads elsewhere
	must(t, err, f.Close())
}
