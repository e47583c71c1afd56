package apparmor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWhatAProfileIncludes: the parser gets no directive that names a file outside of /etc/apparmor.d, however it is
// written.
func TestWhatAProfileIncludes(t *testing.T) {
	outside := t.TempDir()
	own := filepath.Join(outside, "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"more":       "# see include files\n/more r,\n",
		"nested":     "include \"" + own + "/more\"",
		"itself":     "include \"" + own + "/itself\"",
		"abi":        "abi",
		"name":       "\"/root/x\"",
		"own/inside": "/inside r,",
		"../secret":  "/secret r,",
	} {
		path := filepath.Join(own, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": "../secret", "in": "own/inside"} {
		if err := os.Symlink(to, filepath.Join(own, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(own, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	const refused = "are read, and includes of files below"
	for text, want := range map[string]string{
		"include <tunables/global>\n":                            "include <tunables/global>\n",
		"#include <a>#include <b> # for include files\n":         "#include <a>#include <b>\n",
		"include if exists \"/etc/apparmor.d/local/x\"\n":        "include if exists <local/x>\n",
		"abi <abi/3.0>, # abi of include\nprofile x {":           "abi <abi/3.0>,\nprofile x {",
		"# include \"/x\"\n/usr/include r,\n/lib/{abi,y}/z r,\n": "\n/usr/include r,\n/lib/{abi,y}/z r,\n",
		"{include \"OWN/more\"\n}":                               "{\n\n/more r,\n\n\n}",
		"include \"OWN/nested\"":                                 "\n\n\n/more r,\n\n\n",
		"include \"OWN/in\"":                                     "\n/inside r,\n",
		"include if exists \"OWN/absent\"":                       "\n\n",
		"include \"OWN/absent\"":                                 "no such file",
		"include \"OWN/out\"":                                    "secret",
		"include \"OWN/../secret\"":                              refused,
		"include \"OWN/pipe\"":                                   "want a regular file",
		"include \"OWN\"":                                        "no regular file",
		"include \"OWN/itself\"":                                 "more than 10000 files",
		"include\t\"/etc/shadow\"":                               refused,
		"include <../shadow>":                                    refused,
		"include </etc/shadow>":                                  refused,
		"include \"/etc/apparmor.d/../shadow\"":                  refused,
		"include if exists <../shadow>":                          refused,
		"include \"local/x\"":                                    refused,
		"include /etc/shadow":                                    "want <FILE>",
		"include <\"../shadow\">":                                "want <FILE>",
		"include if exists\n\"/etc/shadow\"":                     "want <FILE>",
		"include <a>include \"/etc/shadow\"":                     refused,
		"#include\n\"/etc/shadow\"":                              refused,
		"x#include\"/etc/shadow\"":                               refused,
		"{ include \n \"/etc/shadow\"":                           refused,
		"\"/a\n# b\" include \"/etc/shadow\"":                    "\"/a\n",
		"priority=5include \"/etc/shadow\"":                      refused,
		"include \"/\\x65tc/shadow\"":                            "want <FILE>",
		"abi \"/etc/shadow\",":                                   refused,
		"abi\n<../shadow>,":                                      refused,
		"abi/etc/shadow,":                                        "want <FILE>",
		"abi\\057etc/shadow,":                                    "want <FILE>",
		"abi \"OWN/more\",":                                      refused,
		"include \"OWN/abi\"include \"OWN/name\"":                "want <FILE>",
		"abi#include \"OWN/name\"":                               "want <FILE>",
	} {
		got, _, err := included(strings.ReplaceAll(text, "OWN", own), own)
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
