package servers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/signature"
	"tare/rigs/hosttest"
)

// A tokenCall asks for the token, as that many callers in turn.
type tokenCall struct{ callers int }

var _ load.Wire = tokenCall{}

// ConnKey implements load.Wire.
func (p tokenCall) ConnKey(i uint64) int { return int(i % uint64(p.callers)) }

// addressOf returns the source address of a caller.
func addressOf(caller int) netip.Addr { return netip.AddrFrom4([4]byte{127, 1, 0, byte(caller + 1)}) }

// Render implements load.Wire.
func (tokenCall) Render(dst []byte, _ uint64) []byte {
	return append(dst, "GET /token HTTP/1.1\r\nHost: target\r\n\r\n"...)
}

// Check implements load.Wire.
func (tokenCall) Explain(uint64, int, []byte) int { return -1 }

func (tokenCall) Check(_ uint64, status int, body []byte) load.Outcome {
	switch {
	case status == 429 || status == 503:
		return load.Refused
	case status != 200:
		return load.Failed
	case !bytes.Equal(body, []byte(good.body)):
		return load.Wrong
	}
	return load.OK
}

// TestSearch searches the capacity of limiters over real sockets. A search during which the host delayed tare or the
// server finds no number, and is not judged.
func TestSearch(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	for _, name := range []string{"token-bucket", "fixed-window", "per-client", "gcra"} {
		t.Run(name, func(t *testing.T) {
			if name != "per-client" { // its callers are tried one by one, for which the host must not be late
				t.Parallel() // they mostly wait
			}
			truth := newTrialOf(t, name).f.Truth
			result, why := searchOnce(t, name)
			if why != "" {
				t.Log("no number was found, and tare says so: ", why)
				return
			}
			checkResult(t, truth, result)
		})
	}
}

// searchOnce searches a fixture. why says why the host does not allow to judge the result; empty: it does.
func searchOnce(t *testing.T, name string) (result capacity.Result, why string) {
	t.Helper()
	f := newTrialOf(t, name).f
	addr, stop := startChild(t, name)
	s, err := load.Open(t.Context(), load.Config{
		Endpoint: load.Endpoint{Addr: addr, Host: "target", Keys: f.Callers, Local: addressOf}, KeepCalls: true,
		Timeout: f.Timeout, MaxConns: 512, MaxRate: f.MaxRate,
		Operations: []load.Operation{{Name: "token", Weight: 1, Wire: tokenCall{f.Callers}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := capacity.Options{MaxRate: f.MaxRate, MaxConns: 512, Timeout: f.Timeout, MaxSeconds: 60, Callers: f.Callers}
	trace, err := capacity.Search(t.Context(), s, o, nil)
	if err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if late := stop(); late > MostLate {
		return result, fmt.Sprintf("the host was late for %.1f %% of what the server did", 100*late)
	}
	result = capacity.Assess(trace)
	switch {
	case !result.Valid:
		why = "tare or its host was the limit: " + result.Reason
	case result.Stop == capacity.StopTime:
		why = "the search did not end within a minute on this host"
	}
	return result, why
}

// serverVariable names the fixture that this program is to be, in its environment.
const serverVariable = "TARE_TEST_SERVER"

// serveChild serves the fixture of that name until in ends. It prints its address, and at the end how late it was.
func serveChild(name string, in io.Reader, out io.Writer) error {
	i := slices.IndexFunc(All(), func(f Fixture) bool { return f.Name == name })
	if i < 0 {
		return fmt.Errorf("no fixture %s", name)
	}
	r, err := All()[i].Start(context.Background(), 1)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, r.Addr)
	_, ended := io.Copy(io.Discard, in)
	_, late := fmt.Fprintln(out, r.Late())
	return errors.Join(err, ended, late, r.Stop())
}

// startChild serves a fixture from its own process, since callers would delay its timers in theirs. stop ends it and
// returns how late it was.
func startChild(t *testing.T, name string) (addr netip.AddrPort, stop func() float64) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(os.Environ(), serverVariable+"="+name)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if addr, err = netip.ParseAddrPort(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	return addr, func() float64 {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		line, err := lines.ReadString('\n')
		if err := errors.Join(err, c.Wait()); err != nil {
			t.Error(err)
		}
		late, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		if err != nil {
			t.Error(err)
		}
		return late
	}
}

// checkResult compares a result with the truth: it may claim less, and nothing that is wrong.
func checkResult(t *testing.T, truth Truth, r capacity.Result) {
	t.Helper()
	t.Logf("%.4g/s [%.4g, %.4g], at least %.4g/s, %s: %s", r.Rate, r.Lo, r.Hi, r.AtLeast, r.Signature.Class, r.Reason)
	if r.AtLeast > 1.05*truth.Rate {
		t.Errorf("the search claims at least %.4g/s, the truth is %.4g/s", r.AtLeast, truth.Rate)
	}
	if r.Rate > 0 && r.Hi > 0 && (r.Lo > 1.05*truth.Rate || r.Hi < 0.95*truth.Rate) {
		t.Errorf("the search finds %.4g/s [%.4g, %.4g], the truth is %.4g/s", r.Rate, r.Lo, r.Hi, truth.Rate)
	}
	if c := r.Signature.Class; !slices.Contains(truth.Classes, c) && c != signature.Unknown && c != signature.Client {
		t.Errorf("the search finds class %s, the truth is %v", c, truth.Classes)
	}
	if r.Rate == 0 {
		t.Errorf("no answer: %s", r.Reason)
	}
	for _, f := range r.Findings {
		t.Log(f.Sentence)
	}
	// On a busy host the callers are not told apart: rigs/simulation tests that they are on a quiet one.
	for _, f := range r.Findings {
		ofCallers := f.Kind == capacity.LimitShared || f.Kind == capacity.LimitPerCaller
		if ofCallers && !slices.Contains(truth.Findings, f.Kind) {
			t.Errorf("the search finds %s, the truth is %v", f.Kind, truth.Findings)
		}
	}
}
