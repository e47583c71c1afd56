package unit_test

import (
	"encoding"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"tare/internal/unit"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		kind, text string
		want       float64 // base units: s, 1/s, B, ratio, 1
		exact      string  // the exact form
	}{
		{"duration", "30s", 30, "30s"},
		{"duration", "1m30s", 90, "1m30s"},
		{"duration", "500ms", 0.5, "500ms"},
		{"duration", "50m", 3000, "50m"},
		{"duration", "2h", 7200, "2h"},
		{"duration", "1h0m5s", 3605, "1h0m5s"},
		{"duration", "1.5h", 5400, "1h30m"},
		{"duration", "2d", 172800, "48h"},
		{"duration", "4.02 ms", 0.00402, "4.02ms"},
		{"duration", " 60µs ", 0.00006, "60µs"},
		{"duration", "0", 0, "0s"},
		{"duration", "0s", 0, "0s"},
		{"rate", "150/s", 150, "150/s"},
		{"rate", "6000/min", 100, "100/s"},
		{"rate", "2k/s", 2000, "2000/s"},
		{"rate", "1.5 k/s", 1500, "1500/s"},
		{"rate", "36/h", 0.01, "0.01/s"},
		{"rate", "10 / s", 10, "10/s"},
		{"rate", "0/s", 0, "0/s"},
		{"size", "64KiB", 65536, "64KiB"},
		{"size", "1MiB", 1 << 20, "1MiB"},
		{"size", "500MB", 5e8, "500MB"},
		{"size", "1.5 GiB", 1.5 * (1 << 30), "1536MiB"},
		{"size", "100B", 100, "100B"},
		{"size", "10KB", 10000, "10kB"},
		{"size", "0", 0, "0B"},
		{"percent", "2%", 0.02, "2%"},
		{"percent", "0.1 %", 0.001, "0.1%"},
		{"percent", "150%", 1.5, "150%"},
		{"percent", "0%", 0, "0%"},
	} {
		got, text, err := parse(c.kind, c.text)
		if err != nil || math.Abs(got-c.want) > 1e-12*math.Abs(c.want) || text != c.exact {
			t.Errorf("%s %q = %v, printed %q, %v; want %v, %q", c.kind, c.text, got, text, err, c.want, c.exact)
		}
	}
}

// parse returns the value in base units and the exact form.
func parse(kind, text string) (v float64, printed string, err error) {
	switch kind {
	case "duration":
		d, err := unit.ParseDuration(text)
		return d.Std().Seconds(), d.String(), err
	case "rate":
		r, err := unit.ParseRate(text)
		return r.PerSecond(), r.String(), err
	case "size":
		s, err := unit.ParseSize(text)
		return float64(s), s.String(), err
	case "percent":
		p, err := unit.ParsePercent(text)
		return p.Ratio(), p.String(), err
	default:
		panic(kind)
	}
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestErrorsSayWhatToWrite(t *testing.T) {
	for _, c := range []struct{ kind, text, want string }{
		{"duration", "10", "did you mean 10s or 10ms?"},
		{"duration", "", "write it like 30s"},
		{"duration", "-5s", "negative"},
		{"duration", "soon", "does not begin with a number"},
		{"duration", "10 weeks", "units are ns, us, ms, s, m, h and d"},
		{"duration", "1m-3s", "units are"},
		{"duration", "1.2.3s", "number"},
		{"duration", "200000d", "too long"},
		{"duration", "9999999h", "units are"},
		{"rate", "150", "did you mean 150/s, or 150/min?"},
		{"rate", "150rps", "did you mean 150/s"},
		{"rate", "150 req/s", "write it like 150/s"},
		{"rate", "150/fortnight", "write it like 150/s"},
		{"rate", "-1/s", "negative"},
		{"size", "64", "did you mean 64B, 64KiB or 64MiB?"},
		{"size", "64K", "could mean two things"},
		{"size", "64 bytes", "units are B, KiB"},
		{"size", "10000PiB", "too large"},
		{"percent", "2", "did you mean 2%?"},
		{"percent", "0.02", "did you mean 2%?"},
		{"percent", "2 percent", "write it like 2%"},
	} {
		v, _, err := parse(c.kind, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, error %v; want %q", c.kind, c.text, v, err, c.want)
		}
	}
}

func TestHuman(t *testing.T) {
	for _, c := range []struct {
		f    func(float64) string
		v    float64
		want string
	}{
		{unit.Seconds, 0.00402, "4.02 ms"},
		{unit.Seconds, 31, "31 s"},
		{unit.Seconds, 31.04, "31 s"},
		{unit.Seconds, 0, "0 s"},
		{unit.Seconds, 0.0009997, "1 ms"},
		{unit.Seconds, 40e-6, "40 µs"},
		{unit.Seconds, 3.2e-9, "3.2 ns"},
		{unit.Seconds, 550, "9m10s"},
		{unit.Seconds, 119.96, "120 s"},
		{unit.Seconds, 7200, "2h"},
		{unit.Seconds, 36000 + 59*60 + 31, "11h"},
		{unit.Seconds, -0.0003, "-300 µs"},
		{unit.Seconds, math.NaN(), "–"},
		{unit.Seconds, math.Inf(1), "Inf"},
		{unit.PerSecond, 163.4, "163/s"},
		{unit.PerSecond, 1049.7, "1050/s"},
		{unit.PerSecond, 12400, "12.4k/s"},
		{unit.PerSecond, 9999.6, "10k/s"},
		{unit.PerSecond, 0, "0/s"},
		{unit.PerSecond, math.NaN(), "–"},
		{unit.PerSecond, 0.0123456, "0.0123/s"},
		{unit.Bytes, 1.2 * (1 << 30), "1.2 GiB"},
		{unit.Bytes, 65536, "64 KiB"},
		{unit.Bytes, 1000, "1000 B"},
		{unit.Bytes, 1023.7, "1 KiB"},
		{unit.Share, 0.5900, "59%"},
		{unit.Share, 0.00127, "0.127%"},
		{unit.Share, 1, "100%"},
		{unit.Number, 1234, "1234"},
		{unit.Number, 2.5e6, "2.5M"},
		{unit.Number, math.Copysign(0, -1), "0"},
	} {
		if got := c.f(c.v); got != c.want {
			t.Errorf("%v: got %q, want %q", c.v, got, c.want)
		}
	}
}

type file struct {
	Timeout unit.Duration `json:"timeout" yaml:"timeout"`
	Rate    unit.Rate     `json:"rate" yaml:"rate"`
	Body    unit.Size     `json:"body" yaml:"body"`
	Margin  unit.Percent  `json:"margin" yaml:"margin"`
}

func TestFilesDecode(t *testing.T) {
	want := file{Timeout: unit.Duration(90 * time.Second), Rate: 100, Body: 65536, Margin: 0.02}
	var fromYAML, fromJSON file
	if err := yaml.Unmarshal([]byte("timeout: 1m30s\nrate: 6000/min\nbody: 64KiB\nmargin: 2%\n"), &fromYAML); err != nil ||
		fromYAML != want {
		t.Errorf("YAML: %+v, %v; want %+v", fromYAML, err, want)
	}
	text := `{"timeout":"1m30s","rate":"100/s","body":"64KiB","margin":"2%"}`
	if err := json.Unmarshal([]byte(text), &fromJSON); err != nil || fromJSON != want {
		t.Errorf("JSON: %+v, %v; want %+v", fromJSON, err, want)
	}
	if got := jsonText(want); got != text {
		t.Errorf("encoded %s, want %s", got, text)
	}
	if err := yaml.Unmarshal([]byte("timeout: 10\n"), &fromYAML); err == nil ||
		!strings.Contains(err.Error(), "did you mean 10s or 10ms?") {
		t.Errorf("a bare number in YAML: %v", err)
	}
}

// reread checks that the exact form reads back as the same value.
func reread[T comparable](t *testing.T, v T, back encoding.TextUnmarshaler, get func() T) {
	t.Helper()
	text, err := any(v).(encoding.TextMarshaler).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if err := back.UnmarshalText(text); err != nil || get() != v {
		t.Errorf("%v → %q → %v, %v", v, text, get(), err)
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, v := range []float64{0, 1, 0.02, 150, 1e-9, 65536, 123456789.25, 1e15, 0.1 + 0.2} {
		f.Add(v, int64(v*1000))
	}
	f.Fuzz(func(t *testing.T, v float64, n int64) {
		if n >= 0 {
			var d unit.Duration
			reread(t, unit.Duration(n), &d, func() unit.Duration { return d })
			var s unit.Size
			reread(t, unit.Size(n), &s, func() unit.Size { return s })
		}
		if !(v >= 0 && v < 1e200) {
			return
		}
		var r unit.Rate
		reread(t, unit.Rate(v), &r, func() unit.Rate { return r })
		var p unit.Percent
		if text := unit.Percent(v).String(); p.UnmarshalText([]byte(text)) != nil ||
			math.Abs(p.Ratio()-v) > 4e-16*v && v > 1e-300 {
			t.Errorf("share %v → %q → %v", v, text, p.Ratio())
		}
		if v < 1e-8 || v > 1e15 {
			return
		}
		human(t, v)
	})
}

// human checks that what is shown to people is the value to three digits.
func human(t *testing.T, v float64) {
	t.Helper()
	for _, c := range []struct {
		print func(float64) string
		kind  string
		most  float64
	}{{unit.Seconds, "duration", 9e9}, {unit.PerSecond, "rate", 1e15}, {unit.Share, "percent", 1e15}} {
		if v >= c.most {
			continue
		}
		text := c.print(v)
		got, _, err := parse(c.kind, text)
		if err != nil || math.Abs(got-v) > 0.00501*v+1e-9*map[string]float64{"duration": 1}[c.kind] {
			t.Errorf("%s %v → %q → %v, %v", c.kind, v, text, got, err)
		}
	}
	text := unit.Bytes(v)
	if got, _, err := parse("size", text); err != nil || math.Abs(got-v) > 0.00501*v+0.5 {
		t.Errorf("size %v → %q → %v, %v", v, text, got, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"1m30s", "150/s", "64KiB", "2%", "10k", "1e9s", "0x1p-2s", "..", "1 /",
		"9223372036854775807B", "9223372036s",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []string{"duration", "rate", "size", "percent"} {
			v, printed, err := parse(kind, text)
			if err != nil {
				continue
			}
			if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s %q = %v", kind, text, v)
			}
			if back, _, err := parse(kind, printed); err != nil || math.Abs(back-v) > 1e-9*v {
				t.Errorf("%s %q = %v, printed %q, read back as %v, %v", kind, text, v, printed, back, err)
			}
		}
	})
}
