package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/rigs/hosttest"
)

// TestExposedSecretsAreReported: whoever runs tare is warned, and so is whoever reads the report. A secret file that
// others can write stops the run.
func TestExposedSecretsAreReported(t *testing.T) {
	hosttest.SkipIfShort(t)
	needsAreas(t, "identity")
	t.Parallel()
	bin := tareBinary(t)
	l := &leakyEndpoint{mode: "good"}
	server := httptest.NewServer(l)
	defer server.Close()
	dir := secretDir(t, server.URL)
	key := filepath.Join(dir, "key")
	mode := func(m os.FileMode) {
		if err := os.Chmod(key, m); err != nil {
			t.Fatal(err)
		}
	}
	short := strings.NewReplacer("[20/s, 40/s]", "[20/s]", "duration: 2s",
		"duration: 1s").Replace(fmt.Sprintf(secretExperiment, server.URL))
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(short), 0o600); err != nil {
		t.Fatal(err)
	}
	mode(0o622)
	if said := string(secretRun(t, bin, dir, "run", "x.yaml")); !strings.Contains(said, "other users can write key") ||
		!strings.Contains(said, "chmod 600 key") || l.seen.Load() > 0 {
		t.Errorf("%d calls were made with a secret file that others can write:\n%s", l.seen.Load(), said)
	}
	mode(0o644)
	said := string(secretRun(t, bin, dir, "run", "x.yaml", "-o", "text", "-o", "json=r.json"))
	if !strings.Contains(said, "warning  other users can read the file with secrets key") ||
		!strings.Contains(said, "next: chmod 600 key") {
		t.Errorf("no warning:\n%s", said)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "r.json")); err != nil ||
		!strings.Contains(string(b), "other users can read the file with secrets key") {
		t.Errorf("the report lacks the warning: %v\n%s", err, b)
	}
	noSecretBelow(t, dir)
}
