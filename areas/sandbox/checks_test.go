package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/areas/sandbox/vm"
)

func TestCheckOfLab(t *testing.T) {
	cache := t.TempDir()
	getenv := func(name string) (string, bool) { return cache, name == "TARE_CACHE" }
	c := checkLab(getenv)
	if _, err := vm.Emulator(); err != nil {
		if c.Found != err.Error() {
			t.Errorf("got %+v, want %v", c, err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Join(cache, "lab", "boot"), 0o755); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(cache, "lab", "boot", "vmlinuz-99.1.2-lab")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c = checkLab(getenv); !strings.HasPrefix(c.Found, "QEMU with Linux 99.1.2-lab") || c.Next != "" {
		t.Errorf("got %+v, want the kernel in the cache", c)
	}
}
