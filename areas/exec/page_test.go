package exec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/driver"
)

// readPage returns README.md, the page of the area.
func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dialogues returns the blocks of requests and answers on the page.
func dialogues(t *testing.T) (out [][2][]string) {
	t.Helper()
	for _, block := range regexp.MustCompile("(?s)```text\n(> .*?)```").FindAllStringSubmatch(readPage(t), -1) {
		var d [2][]string
		for line := range strings.Lines(block[1]) {
			switch text := strings.TrimSuffix(line[2:], "\n"); line[0] {
			case '>':
				d[0] = append(d[0], text)
			case '<':
				d[1] = append(d[1], text)
			default:
				t.Fatalf("no line of a dialogue: %q", line)
			}
		}
		if len(d[0]) == 0 || len(d[0]) != len(d[1]) {
			t.Fatalf("%d requests, %d answers", len(d[0]), len(d[1]))
		}
		out = append(out, d)
	}
	return out
}

// TestPageShowsRealAnswers: the example answers the page's requests with the page's answers, except for the measured
// numbers.
func TestPageShowsRealAnswers(t *testing.T) {
	interpreter := python(t)
	all := dialogues(t)
	if len(all) < 2 {
		t.Fatalf("%d dialogues on the page", len(all))
	}
	folder := regexp.MustCompile(`/tmp/tare-exec-[0-9a-f]+`)
	for _, d := range all {
		mine := t.TempDir()
		cmd := exec.CommandContext(t.Context(), interpreter, "areas/exec/examples/hash.py")
		cmd.Dir = projectRoot(t)
		cmd.Stdin = strings.NewReader(folder.ReplaceAllString(strings.Join(d[0], "\n")+"\n", mine))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("the example failed: %v\n%s", err, &stderr)
		}
		said := strings.Split(strings.TrimSpace(string(out)), "\n")
		if len(said) != len(d[1]) {
			t.Fatalf("%d answers, the page shows %d:\n%s", len(said), len(d[1]), out)
		}
		for i, want := range d[1] {
			if diff := cmp.Diff(withoutMeasurements(t, want), withoutMeasurements(t, said[i])); diff != "" {
				t.Errorf("to %s (-page +hash.py):\n%s", d[0][i], diff)
			}
		}
		if left, _ := os.ReadDir(mine); strings.Contains(strings.Join(d[0], ""), `"undo"`) && len(left) > 0 {
			t.Errorf("after undo there is still %v", left)
		}
	}
}

// withoutMeasurements returns an answer without its measured values.
func withoutMeasurements(t *testing.T, line string) any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatalf("answer %s: %v", line, err)
	}
	if ok, _ := v["ok"].(map[string]any); ok != nil {
		if total, _ := ok["total"].(map[string]any); total != nil {
			for name, value := range total {
				if x, isNumber := value.(float64); !isNumber || x < 0 {
					t.Errorf("%s: %s is %v", line, name, value)
				}
				total[name] = "measured"
			}
		}
	}
	return v
}

// TestPageShowsRealRequests: the page's requests have the fields that tare sends, and no others.
func TestPageShowsRealRequests(t *testing.T) {
	asked := map[string]bool{}
	for _, d := range dialogues(t) {
		for _, line := range d[0] {
			var r driver.Request
			in := json.NewDecoder(strings.NewReader(line))
			in.DisallowUnknownFields()
			if err := in.Decode(&r); err != nil {
				t.Errorf("request %s: %v", line, err)
			}
			var page, tare any
			text, err := json.Marshal(r)
			if err := errors.Join(err, json.Unmarshal([]byte(line), &page), json.Unmarshal(text, &tare)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tare, page); d != "" {
				t.Errorf("request %s (-tare +page):\n%s", line, d)
			}
			asked[r.Do] = true
		}
	}
	for _, do := range []string{
		driver.DoDescribe, driver.DoPrepare, driver.DoVerify, driver.DoOperate, driver.DoUndo, driver.DoStop,
	} {
		if !asked[do] {
			t.Errorf("the page shows no %s", do)
		}
	}
}

// TestPageExplainsEveryField: the page explains every field of the protocol and of the target's section.
func TestPageExplainsEveryField(t *testing.T) {
	text := readPage(t)
	if want := fmt.Sprintf("## The protocol, version %d\n", driver.Protocol); !strings.Contains(text, want) {
		t.Errorf("no heading %q", want)
	}
	for _, of := range []any{
		driver.Request{},
		driver.Preparation{},
		driver.Answer{},
		driver.Description{},
		driver.Operation{},
		driver.Prepared{},
		driver.Verified{},
		driver.Cost{},
		Spec{},
	} {
		for f := range reflect.TypeOf(of).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" && !strings.Contains(text, "`"+name+"`") {
				t.Errorf("%T.%s: the page does not explain `%s`", of, f.Name, name)
			}
		}
	}
	for _, name := range append(driver.Usual(), driver.Mark) {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the page does not say that a program gets %s", name)
		}
	}
	if !slices.Contains(strings.Split(text, "\n"), "## Checklist") {
		t.Error("there is no checklist")
	}
}

// TestPageNamesTheEnvironment: the page lists the variables that a program gets in any case.
func TestPageNamesTheEnvironment(t *testing.T) {
	_, row, _ := strings.Cut(readPage(t), "\n| `env` | environment variables that it gets in addition to ")
	list, _, _ := strings.Cut(row, ":")
	var names []string
	for _, m := range regexp.MustCompile("`([A-Z]+)`").FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	if diff := cmp.Diff(driver.Usual(), names); diff != "" {
		t.Errorf("the page lists other variables (-gets +listed):\n%s", diff)
	}
}
