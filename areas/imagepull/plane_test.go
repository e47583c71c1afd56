package imagepull

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/area"
	"tare/internal/design"
	"tare/internal/files"
)

// TestCosts compares the costs of upstream's pull manager with what is known of it: objects are exact, shares match the
// level, and times are in the expected order.
func TestCosts(t *testing.T) {
	off, files, memory := treatment("accessor", "disabled"), treatment("accessor", "directfs"),
		treatment("accessor", "cached")
	spec := &Spec{Operations: []string{opCheck, opPull}, Hits: new(Share(75)), Records: new(40)}
	tg, _ := opened(t, spec, off, files, memory)
	got := map[string]map[string]float64{}
	empty := map[string]map[string]float64{}
	for _, tr := range []design.Treatment{off, files, memory} {
		enterAndVerify(t, tg, tr)
		runBatch(t, tg, tr, opCheck, 400) // whatever is made at first
		got[tr.ID] = runBatch(t, tg, tr, opCheck, 400)
		empty[tr.ID] = runBatch(t, tg, tr, opEmpty, 400)
		if pull := runBatch(t, tg, tr, opPull, 10); pull["wall"] <= 0 || pull["cpu"] <= 0 {
			t.Errorf("%s: a pull costs %v", tr.ID, pull)
		}
		if err := tg.Can().Leave(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
	}
	for id, m := range got {
		for _, metric := range []string{"wall", "cpu", "allocations", "allocated", "hits", "cache-hits"} {
			if _, ok := m[metric]; !ok {
				t.Errorf("%s: a check has no %s: %v", id, metric, slices.Sorted(maps.Keys(m)))
			}
		}
		if e := empty[id]; e["allocations"] > 0.5 || e["wall"] > 0.2*m["wall"] && id != off.ID {
			t.Errorf("%s: nothing costs %v, and a check %v", id, e, m)
		}
	}
	within := func(what string, got, want, by float64) {
		if math.Abs(got-want) > by {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	within("disabled: hits", got[off.ID]["hits"], 1, 0)
	within("disabled: objects", got[off.ID]["allocations"], 0, 1)
	within("directfs: hits", got[files.ID]["hits"], 0.75, 1e-9)
	within("cached: hits", got[memory.ID]["hits"], 0.75, 1e-9)
	within("directfs: cache hits", got[files.ID]["cache-hits"], 0, 1e-9)
	within("cached: cache hits", got[memory.ID]["cache-hits"], 1, 1e-9)
	if a, b := got[memory.ID]["allocations"], got[files.ID]["allocations"]; a >= b || a < 4 || b > 120 {
		t.Errorf("a check allocates %v objects from memory, %v from files", a, b)
	}
	if a, b, c := got[off.ID]["cpu"], got[memory.ID]["cpu"], got[files.ID]["cpu"]; a >= b || b >= c {
		t.Errorf("CPU time of a check: %v disabled, %v cached, %v from files", a, b, c)
	}
}

// TestSameSequence: batches of the same length make the same requests in every process of a treatment, so that blocks
// differ by chance only.
func TestSameSequence(t *testing.T) {
	tr := treatment("accessor", "lru:10", "pattern", "zipf", "hits", "70%", "records", "60")
	tg, _ := opened(t, &Spec{}, tr)
	var hits []float64
	for range 2 {
		enterAndVerify(t, tg, tr)
		for range 2 {
			m := runBatch(t, tg, tr, opCheck, 200)
			hits = append(hits, m["hits"])
			if m["cache-hits"] <= 0 || m["cache-hits"] >= 1 {
				t.Errorf("a cache of 10 for 60 images answers %v of the checks", m["cache-hits"])
			}
		}
		if err := tg.Can().Leave(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range hits {
		if math.Abs(h-0.7) > 1e-9 {
			t.Errorf("hits %v, want 0.7 in each batch", hits)
		}
	}
}

// TestRecordsStayComplete: the number of records matches the treatment before and after operations that add and remove
// some.
func TestRecordsStayComplete(t *testing.T) {
	tr := treatment("accessor", "directfs", "records", "250")
	spec := &Spec{Operations: []string{opPull, opNewNamespace, opPrune}, Dir: t.TempDir()}
	tg, _ := opened(t, spec, tr)
	if n := len(recordFiles(t, spec.Dir)); n != 250 {
		t.Errorf("%d records are there, want 250", n)
	}
	enterAndVerify(t, tg, tr)
	for _, name := range spec.Operations {
		runBatch(t, tg, tr, name, 3)
		if n := len(recordFiles(t, spec.Dir)); n != 250 {
			t.Errorf("%d records are there after %s, want 250", n, name)
		}
	}
	if err := tg.Verify(t.Context(), tr); err != nil {
		t.Error(err)
	}
}

// TestForecastOfDiskSpace: records take the disk space that Preflight expects, or somewhat less.
func TestForecastOfDiskSpace(t *testing.T) {
	tr := treatment("accessor", "directfs", "records", "20", "secrets", "50")
	spec := &Spec{Dir: t.TempDir()}
	opened(t, spec, tr)
	all := recordFiles(t, spec.Dir)
	if len(all) != 20 {
		t.Fatalf("%d records, want 20", len(all))
	}
	var bytes int64
	for _, path := range all {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	if need := spec.need([]design.Treatment{tr}); bytes > need.bytes || 3*bytes < need.bytes {
		t.Errorf("the records are %d bytes, %d were foretold", bytes, need.bytes)
	}
}

// TestPreflight: an existing program is named; a file that is no program, or that has no pull manager, is rejected with
// a next step.
func TestPreflight(t *testing.T) {
	requireBinary(t)
	dir := t.TempDir()
	found := (Area{}).Preflight(t.Context(), &Spec{Dir: dir}, testEnv(t, treatment("accessor", "cached")))
	if len(found) != 1 || found[0].Severity != area.Info || !strings.Contains(found[0].Message, "Kubernetes v1.36") {
		t.Errorf("got %+v, want the version of Kubernetes", found)
	}
	nothingLeft(t, dir)
	for title, script := range map[string]string{
		"another program": "#!/bin/sh\necho hello\n",
		"an older one": "#!/bin/sh\n[ \"$1\" = version ] && echo " +
			"'{\"kubernetes\":\"v1.36.3\",\"etcd\":\"v3.6.8\",\"go\":\"go1.26.8\"}' && exit 0\n" +
			"echo \"there is no component $1\" >&2\nexit 2\n",
	} {
		path := filepath.Join(t.TempDir(), "tare-plane")
		if err := files.WriteProgram(path, []byte(script)); err != nil {
			t.Fatal(err)
		}
		found := (Area{}).Preflight(t.Context(), &Spec{Dir: dir, Binary: path}, testEnv(t))
		if len(found) != 1 || found[0].Severity != area.Error || found[0].Path != "binary" || found[0].Hint == "" ||
			!strings.Contains(found[0].Message, path) {
			t.Errorf("%s: got %+v, want one error about binary with a hint", title, found)
		}
	}
}
