package pull

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"

	"tare/plane/driver"
	"tare/plane/recordfile"
)

func TestMain(m *testing.M) {
	silence()
	os.Exit(m.Run())
}

func preparation(folder string, levels ...string) driver.Preparation {
	p := driver.Preparation{Run: "r", Folder: folder, Levels: map[string]string{}}
	for _, l := range levels {
		name, value, _ := strings.Cut(l, "=")
		p.Levels[name] = value
	}
	return p
}

func prepared(t *testing.T, p driver.Preparation) *Manager {
	t.Helper()
	m := &Manager{}
	if _, err := m.Prepare(p); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestOperations: every operation of every accessor does what its name says, leaves the records as they were, and finds
// what it should.
func TestOperations(t *testing.T) {
	for _, c := range []struct {
		levels    string
		hits      float64 // of 100 checks
		fromCache float64
	}{
		{"accessor=disabled records=50", 100, 100},
		{"accessor=disabled records=50 hits=50", 100, 100},
		{"accessor=directfs records=50", 100, 0},
		{"accessor=directfs records=50 hits=20 concurrency=3 stripes=31", 20, 0},
		{"accessor=cached records=50 hits=75", 75, 100},
		{"accessor=cached records=50 secrets=3 pattern=churn", 100, 100},
		{"accessor=lru size=10 records=50 pattern=scan", 100, 0},
		{"accessor=lru size=10 records=50 pattern=zipf concurrency=2", 100, -1},
	} {
		p := preparation(t.TempDir(), strings.Fields(c.levels)...)
		m := prepared(t, p)
		checks, err := m.Verify()
		if err != nil || len(checks) < 2 {
			t.Errorf("%s: %q, %v", c.levels, checks, err)
		}
		for _, o := range m.Describe().Operations {
			if o.Name == foreignPull {
				continue // see TestGuard
			}
			calls := min(100, o.Most)
			cost, err := m.Operate(o.Name, calls)
			total := cost.Total
			strict := !strings.Contains(c.levels, "disabled")
			if o.Trespass != "" && (cost.Refused == calls) != strict {
				t.Errorf("%s: %s: %+v", c.levels, o.Name, cost)
			}
			if err != nil || total["wall"] <= 0 || total["cpu"] <= 0 {
				t.Errorf("%s: %s: %v, %v", c.levels, o.Name, total, err)
			}
			if o.Name == "check" && (total["hits"] != c.hits || (c.fromCache >= 0 && total["cache-hits"] != c.fromCache)) {
				t.Errorf("%s: hits %v, of the cache %v, want %v and %v", c.levels, total["hits"], total["cache-hits"], c.hits,
					c.fromCache)
			}
			if h, ok := total["hits"]; ok && o.Name != "check" && h != float64(calls) {
				t.Errorf("%s: %s: %v of %d need no pull", c.levels, o.Name, h, calls)
			}
		}
		if _, err := m.Verify(); err != nil {
			t.Errorf("%s: afterwards: %v", c.levels, err)
		}
		if err := errors.Join(m.Undo(p), m.Undo(p)); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(p.Folder); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", c.levels, left, err)
		}
	}
}

// TestPrepareAgain: a later process uses the records that are there, mends what an interrupted call has left, and draws
// another part of the sequence.
func TestPrepareAgain(t *testing.T) {
	p := preparation(t.TempDir(), "records=150")
	prepared(t, p)
	dir := filepath.Join(p.Folder, whole, filepath.FromSlash(recordfile.Pulled))
	before, err := os.Stat(filepath.Join(dir, recordfile.Name(imageOf(7).ref)))
	if err != nil {
		t.Fatal(err)
	}
	m := prepared(t, p)
	must, err := m.must(3, m.copies[0]) // recorded, and not taken back
	if must || err != nil {
		t.Fatal(must, err)
	}
	of := m.images[m.s.Records+unknownImages]
	if err := m.manager.RecordPullIntent(m.logger, of.name); err != nil {
		t.Fatal(err)
	}
	if err := m.accessor.WriteImagePulledRecord(m.logger, recordOf(of, m.secrets)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Verify(); err == nil || !strings.Contains(err.Error(), "151 record files lie in") {
		t.Errorf("one record too many: %v", err)
	}
	m = prepared(t, p)
	if _, err := m.Verify(); err != nil {
		t.Error(err)
	}
	if f, err := wanted(m.images[:150], 1).Look(filepath.Join(p.Folder, whole)); err != nil || f.Records != 150 ||
		len(f.Left)+len(f.Changed) > 0 {
		t.Errorf("%+v, %v", f, err)
	}
	after, err := os.Stat(filepath.Join(dir, recordfile.Name(imageOf(7).ref)))
	if err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("a record was written again: %v", err)
	}
	if n, err := visits(p.Folder); n != 3 || err != nil {
		t.Errorf("%d visits, %v", n, err)
	}
}

// TestDamagedRecords: upstream starts over damaged records and says nothing; the driver names the file.
func TestDamagedRecords(t *testing.T) {
	for name, text := range map[string]string{"truncated": `{"kind":"ImagePulledRecord","apiV`, "garbage": "\x00moo", "version": `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v9"}`} {
		p := preparation(t.TempDir(), "records=20", "accessor=directfs")
		m := prepared(t, p)
		path := filepath.Join(p.Folder, whole, filepath.FromSlash(recordfile.Pulled), recordfile.Name(imageOf(5).ref))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Operate("check", 500); err == nil || !strings.Contains(err.Error(), "Unable to access cache records") {
			t.Errorf("%s: a check that cannot read its record: %v", name, err)
		}
		_, err := (&Manager{}).Prepare(p)
		var f *driver.Failure
		if !errors.As(err, &f) || f.Next == "" || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if text2, err := os.ReadFile(path); err != nil || string(text2) != text {
			t.Errorf("%s: the file was touched: %v", name, err)
		}
	}
}

// TestFolders: what cannot be written to is named, and nothing half filled is left or used.
func TestFolders(t *testing.T) {
	if _, err := (&Manager{}).Prepare(preparation("relative")); err == nil {
		t.Error("a relative folder was taken")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Manager{}).Prepare(preparation(file)); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file: %v", err)
	}
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, filling, little), 0o700); err != nil { // a process was killed here
		t.Fatal(err)
	}
	prepared(t, preparation(folder, "records=3"))
	if _, err := os.Stat(filepath.Join(folder, filling)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a folder is left: %v", err)
	}
	if _, err := (&Manager{}).Operate("check", 1); err == nil {
		t.Error("operated without preparation")
	}
	if _, err := (&Manager{}).Prepare(preparation(folder, "records=4")); err == nil ||
		!strings.Contains(err.Error(), "missing") {
		t.Errorf("fewer records than wanted: %v", err)
	}
}

// TestStripes is why more than 31 stripes are refused: if this fails, Kubernetes has been mended, and the bound can go.
func TestStripes(t *testing.T) {
	try := func(stripes int32) (said any) {
		defer func() { said = recover() }()
		set := pullmanager.NewStripedLockSet(stripes)
		for i := range 1000 {
			key := fmt.Sprint(i)
			set.Lock(key)
			set.Unlock(key)
		}
		return nil
	}
	if said := try(31); said != nil {
		t.Errorf("31: %v", said)
	}
	if said := fmt.Sprint(try(32)); !strings.Contains(said, "index out of range") {
		t.Errorf("32: %s", said)
	}
	t.Logf("32 stripes: %v", try(32))
	if _, err := (&Manager{}).Prepare(preparation(t.TempDir(), "stripes=32")); err == nil ||
		!strings.Contains(err.Error(), "issues/138935") {
		t.Errorf("32 stripes were prepared: %v", err)
	}
}
