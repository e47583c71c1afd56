package driver

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
)

// told is a driver that notes what it is asked.
type told struct {
	said []string
	both *sync.WaitGroup // two calls must be under way for one to end
}

func (d *told) Describe() Description {
	return Description{Protocol: Protocol, Name: "told", Operations: []Operation{{Name: "a"}}}
}

func (d *told) Prepare(p Preparation) (Prepared, error) {
	d.said = append(d.said, "prepare "+p.Run+" "+p.Levels["x"]+" "+p.Folder)
	return Prepared{Notes: []string{"a note"}, Conditions: map[string]string{"rain": "it rains"}}, nil
}

func (d *told) Together() bool { return d.both != nil }

func (d *told) Impose(condition string) error { return errors.New("no " + condition) }

func (d *told) Lift(string) error { return nil }

func (d *told) Verify() ([]string, error) { return []string{"seen"}, nil }

func (d *told) Operate(name string, calls int) (Cost, error) {
	if d.both != nil {
		d.both.Done()
		d.both.Wait()
	}
	switch name {
	case "panics":
		panic("the first line\nand the second")
	case "fails":
		return Cost{}, &Failure{Err: errors.New("it failed"), Next: "try again"}
	}
	return Cost{Total: map[string]float64{"wall": float64(calls)}}, nil
}

func (d *told) Undo(p Preparation) error {
	d.said = append(d.said, "undo "+p.Run)
	return nil
}

// TestServe: each request has its answer, in order, and what fails or panics does not end the driver.
func TestServe(t *testing.T) {
	for _, c := range []struct{ ask, want string }{
		{`{"id":1,"do":"describe","protocol":1}`, `{"id":1,"ok":{"protocol":1,"name":"told","operations":[{"name":"a"}]}}`},
		{`{"id":2,"do":"describe","protocol":2}`, `{"id":2,"error":"protocol 2 is not spoken, but 1"}`},
		{`{"id":3,"do":"prepare","run":"r","levels":{"x":"y"},"folder":"/f"}`, `{"id":3,"ok":{"notes":["a note"],"conditions":{"rain":"it rains"}}}`},
		{`{"id":4,"do":"verify"}`, `{"id":4,"ok":{"checks":["seen"]}}`},
		{`{"id":5,"do":"operate","operation":"a","calls":7}`, `{"id":5,"ok":{"calls":7,"total":{"wall":7}}}`},
		{`{"id":6,"do":"operate","operation":"panics","calls":0}`, `{"id":6,"ok":{"calls":0}}`},
		{`{"id":7,"do":"operate","operation":"panics","calls":1}`, `{"id":7,"error":"panic: the first line"}`},
		{`{"id":8,"do":"operate","operation":"fails","calls":1}`, `{"id":8,"error":"it failed","next":"try again"}`},
		{`{"id":9,"do":"operate","operation":"a"}`, `{"id":9,"error":"operate: want a number of calls, 0 or more"}`},
		{`{"id":10,"do":"operate","operation":"a","calls":-1}`, `{"id":10,"error":"operate: want a number of calls, 0 or more"}`},
		{`{"id":11,"do":"moo"}`, `{"id":11,"error":"request \"moo\" is none of describe, prepare, verify, operate, impose, lift, undo, stop"}`},
		{`{"id":12,"do":"undo","run":"r"}`, `{"id":12,"ok":{}}`},
		{`{"id":13,"do":"stop"}`, `{"id":13,"ok":{}}`},
		{`{"id":14,"do":"impose","condition":"rain"}`, `{"id":14,"error":"no rain"}`},
		{`{"id":15,"do":"lift","condition":"rain"}`, `{"id":15,"ok":{}}`},
	} {
		var out strings.Builder
		if err := Serve(strings.NewReader(c.ask+"\n"), &out, &told{}); err != nil || out.String() != c.want+"\n" {
			t.Errorf("%s: %v, %s, want %s", c.ask, err, out.String(), c.want)
		}
	}
}

// TestServeLife: one process answers many, what is no request too, reads nothing after stop, and ends with its input.
func TestServeLife(t *testing.T) {
	d := &told{}
	var out strings.Builder
	in := strings.NewReader(`{"id":1,"do":"prepare","run":"r","levels":{"x":"y"},"folder":"/f"}` + "\nmoo\n" + `{"id":2,"do":"undo","run":"r"}` + "\n" +
		`{"id":3,"do":"stop"}` + "\n" + `{"id":4,"do":"undo","run":"s"}` + "\n")
	if err := Serve(in, &out, d); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(d.said, "; "); got != "prepare r y /f; undo r" {
		t.Errorf("asked %q", got)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 4 || !strings.Contains(lines[1], `"error":"no request of protocol 1`) || lines[3] != `{"id":3,"ok":{}}` {
		t.Errorf("answers %q", lines)
	}
	for name, c := range map[string]struct {
		in   string
		good bool
	}{"nothing": {"", true}, "half": {`{"id":1`, false}, "endless": {strings.Repeat("x", MaxLine+1), false}} {
		if err := Serve(strings.NewReader(c.in), io.Discard, &told{}); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServeTogether: single calls are made side by side where the driver takes them together, and what follows waits for
// them.
func TestServeTogether(t *testing.T) {
	d, out := &told{both: &sync.WaitGroup{}}, &strings.Builder{}
	d.both.Add(2)
	asks := `{"id":1,"do":"operate","operation":"a","calls":1}
{"id":2,"do":"operate","operation":"a","calls":1}
{"id":3,"do":"undo","run":"r"}
{"id":4,"do":"lift"}
`
	if err := Serve(strings.NewReader(asks), out, d); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || lines[2] != `{"id":3,"ok":{}}` || lines[3] != `{"id":4,"ok":{}}` {
		t.Errorf("answers %q", lines)
	}
}

func FuzzServe(f *testing.F) {
	for _, line := range []string{"", "null", "{}", `{"id":1,"do":"operate","operation":"panics","calls":1}`, `{"id":-1}`, `{"do":"prepare","levels":null}`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "\n") {
			t.Skip()
		}
		var out strings.Builder
		if err := Serve(strings.NewReader(line+"\n"), &out, &told{}); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		r := bufio.NewScanner(strings.NewReader(out.String()))
		r.Buffer(nil, 2*MaxLine)
		for n := 0; r.Scan(); n++ {
			var a answer
			if err := json.Unmarshal(r.Bytes(), &a); err != nil || n > 0 || (a.Error == "") == (a.OK == nil) {
				t.Errorf("%q: answer %q: %v", line, r.Text(), err)
			}
		}
	})
}
