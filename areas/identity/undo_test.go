package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/kit"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestUndo leaves a target as a killed run would, and undoes it twice from the journal's data alone.
func TestUndo(t *testing.T) {
	opened, err := Area{}.Open(t.Context(), embedded("blog-2020"), testEnv(t))
	if err != nil {
		t.Fatal(err)
	}
	j := &areatest.Journal{}
	if err := opened.Prepare(t.Context(), standard, j); err != nil {
		t.Fatal(err)
	}
	areatest.UndoTwice(t, Area{}, j.Pending(), area.Env{})
	kinds := map[string]int{}
	for _, c := range j.Changes() {
		kinds[c.Kind]++
		if c.Kind == changeCgroup {
			if _, err := os.Stat(c.Data["path"]); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is still there: %v", c.Data["path"], err)
			}
		}
	}
	if kinds[kit.ProcessKind] != 2 {
		t.Errorf("journaled %v, want two processes", kinds)
	}
	tg, ok := opened.(*target)
	if !ok {
		t.Fatalf("a target of type %T", opened)
	}
	for _, name := range []string{serverSTS, serverEndpoint} {
		if err := tg.arm("default").child(name).Wait(t.Context()); err == nil {
			t.Errorf("%s was not killed", name)
		}
	}
	if err := tg.Leave(t.Context(), standard); err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("leave after the kill: %v", err)
	}
	if err := opened.Close(t.Context()); err != nil || len(j.Pending()) != 0 {
		t.Errorf("close after undo: %v, %d changes left", err, len(j.Pending()))
	}
}

// TestRunsOfOnePathHaveOwnControlGroups: two runs whose records have the same path do not share a control group.
func TestRunsOfOnePathHaveOwnControlGroups(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]bool{}
	for range 2 {
		env := testEnv(t)
		env.Dir = dir
		o, err := Area{}.Open(t.Context(), embedded("blog-2020"), env)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := o.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		if err := o.Prepare(t.Context(), standard, &areatest.Journal{}); err != nil {
			t.Fatal(err)
		}
		group := o.(*target).arm("default").group
		if group == nil {
			hosttest.Missing(t, "this host gives no control group", hosttest.Root)
		}
		if seen[group.Path()] {
			t.Errorf("both runs have %s", group.Path())
		}
		seen[group.Path()] = true
	}
}

func TestUndoRejectsForeignChanges(t *testing.T) {
	for _, c := range []area.Change{
		{Kind: "namespace"},
		{Kind: kit.ProcessKind, Data: map[string]string{"pid": "x", "start_ticks": "1"}},
		{Kind: kit.ProcessKind, Data: map[string]string{"pid": "1", "start_ticks": "1"}},
		{Kind: kit.ProcessKind, Data: map[string]string{"pid": "99999999"}},
		{Kind: changeCgroup, Data: map[string]string{"path": "/sys/fs/cgroup"}},
		{Kind: changeCgroup},
	} {
		if err := (Area{}).Undo(t.Context(), []area.Change{c}, area.Env{}); err == nil {
			t.Errorf("%v was undone", c)
		}
	}
}

// TestPrepareNeedsAJournal: Prepare changes nothing if the journal cannot be written.
func TestPrepareNeedsAJournal(t *testing.T) {
	opened, err := Area{}.Open(t.Context(), embedded("blog-2020"), testEnv(t))
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	j := &areatest.Journal{Deny: func(area.Change) error { return full }}
	if err := opened.Prepare(t.Context(), standard, j); !errors.Is(err, full) {
		t.Errorf("prepare: %v", err)
	}
	if err := opened.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestNoSecretsOnDisk looks for tokens and keys in everything that a run leaves on disk.
func TestNoSecretsOnDisk(t *testing.T) {
	spec := embedded("healthy")
	tg, j := prepared(t, spec, standard)
	p := tg.arm("default")
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	token, err := p.token(t.Context())
	if err != nil || token == "" {
		t.Fatalf("no token: %v", err)
	}
	// Failures are logged: a restart, a refused exchange, an STS that has ended.
	if err := p.restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	x := p.exchanger()
	defer x.Close()
	_, refused := x.Exchange(t.Context(), token, reference.Pool)
	if refused == nil {
		t.Error("the STS exchanges an access token")
	}
	if err := p.sts.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := p.client(0).Do(t.Context(), p.adapter.wire(p.session("x")).Render(nil, 0), callTimeout)
	if err != nil || got.Status != 500 {
		t.Errorf("without an STS: status %d, %v", got.Status, err)
	}
	journal, err := json.Marshal(j.Changes())
	if err != nil {
		t.Fatal(err)
	}
	private, err := p.signer.Private()
	if err != nil {
		t.Fatal(err)
	}
	key, err := json.Marshal(private) // as it travels
	if err != nil {
		t.Fatal(err)
	}
	logs := 0
	check := func(what string, b []byte) {
		for _, secret := range []string{token, "ya29.", "eyJ", strings.Trim(string(key), `"`)[:40]} {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s holds a secret", what)
			}
		}
	}
	check("the journal", journal)
	check("an error", []byte(fmt.Sprint(refused)))
	check("an answer of the endpoint", got.Body)
	err = filepath.WalkDir(p.env.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		logs++
		check(path, b)
		return err
	})
	if err != nil || logs < 2 {
		t.Errorf("%d files looked through: %v", logs, err)
	}
	for _, pid := range []int{p.endpoint.PID} {
		for _, file := range []string{"cmdline", "environ"} {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
			if err != nil {
				t.Fatal(err)
			}
			check(file, b)
		}
	}
}
