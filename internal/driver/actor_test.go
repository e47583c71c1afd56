package driver

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/internal/proc"
)

// An actor is a driver that behaves as the test says. Its zero value behaves well.
type actor struct {
	World string // a folder: what is prepared, is there; so is the trace of all requests
	// At is the request at which it does How. From on that time.
	At, How string
	// Answer is said in place of what belongs into ok, at At.
	Answer string
	// Describe, Cost and PIDs replace what it would say.
	Describe *Description
	Cost     map[string]float64
	Second   map[string]float64 // the cost from the second batch on
	Permits  int                // every so many trespasses it permits one; 0: none
	Stubborn bool               // it goes on when it is asked to stop, and when its input ends
	Exit     int                // its status after stop
	Takes    time.Duration      // how long it takes to answer operate; of several at once in any order
	Offers   map[string]string  // conditions: while one is imposed it permits everything

	batches, trespasses int
	running, most       int // of several calls at once
	imposed             bool
}

// underWay counts the calls that are, and notes in its world how many there were at most.
func (a *actor) underWay(more int) {
	acting.Lock()
	defer acting.Unlock()
	if a.running += more; a.running > a.most {
		a.most = a.running
		_ = os.WriteFile(filepath.Join(a.World, "at-once"), []byte(strconv.Itoa(a.most)), 0o600)
	}
}

// acting guards the state of the actor that this process is.
var acting sync.Mutex

func (a *actor) play() int {
	if a.Stubborn {
		signal.Ignore(syscall.SIGTERM)
	}
	fmt.Fprintln(os.Stderr, "the driver starts")
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			a.linger()
			return 0
		}
		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		a.trace(r.Do)
		if r.Do == a.At {
			if status := a.misbehave(r); status >= 0 {
				return status
			}
			continue
		}
		if r.Do == DoOperate && *r.Calls == 1 && a.Describe != nil && a.Describe.AtOnce > 1 {
			go func() {
				a.underWay(1)
				time.Sleep(rand.N(2*a.Takes + 1))
				a.underWay(-1)
				a.say(a.answer(r))
			}()
			continue
		}
		a.say(a.answer(r))
		if r.Do == DoStop {
			a.linger()
			return a.Exit
		}
	}
}

func (a *actor) linger() {
	if a.Stubborn {
		time.Sleep(time.Minute)
	}
}

func (a *actor) trace(do string) {
	f, err := os.OpenFile(filepath.Join(a.World, "trace"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = fmt.Fprintln(f, do)
		_ = f.Close()
	}
}

func (a *actor) say(answer any) {
	b, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(b))
}

// answer returns a good driver's answer.
func (a *actor) answer(r Request) Answer {
	ok := func(v any) Answer {
		b, err := json.Marshal(v)
		if err != nil {
			return Answer{ID: r.ID, Error: err.Error()}
		}
		return Answer{ID: r.ID, OK: b}
	}
	fail := func(err error) Answer { return Answer{ID: r.ID, Error: err.Error(), Next: "look into its world"} }
	switch r.Do {
	case DoDescribe:
		if a.Describe != nil {
			return ok(a.Describe)
		}
		return ok(goodDescription())
	case DoPrepare:
		text, err := json.Marshal(r.Preparation)
		if err == nil {
			err = os.WriteFile(filepath.Join(a.World, "made-"+r.Run), text, 0o600)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(r.Folder, "inside"), text, 0o600)
		}
		if err != nil {
			return fail(err)
		}
		return ok(Prepared{Notes: []string{"prepared by the test"}, Conditions: a.Offers})
	case DoVerify:
		return ok(Verified{Checks: []string{"it was there"}})
	case DoOperate:
		return ok(a.operate(r))
	case DoImpose, DoLift:
		acting.Lock()
		defer acting.Unlock()
		a.imposed = r.Do == DoImpose
	case DoUndo:
		if err := os.Remove(filepath.Join(a.World, "made-"+r.Run)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fail(err)
		}
	}
	return ok(map[string]any{})
}

func goodDescription() Description {
	return Description{
		Protocol: Protocol, Name: "actor", Version: "1",
		Operations: []Operation{{Name: "empty", Harness: true}, {
			Name: "work", Expect: "done", SpanMS: 3, Rounds: 7,
			Most: 1000, Overhead: "empty",
		}},
		Factors: map[string][]string{"size": nil, "mode": {"fast", "slow"}},
		Notes:   []string{"described by the test"},
	}
}

func (a *actor) operate(r Request) Cost {
	c := Cost{Calls: *r.Calls, Total: map[string]float64{}}
	if c.Calls == 0 {
		return c
	}
	acting.Lock()
	defer acting.Unlock()
	if r.Operation == "forged" {
		for range c.Calls {
			a.trespasses++
			if a.imposed || a.Permits > 0 && a.trespasses%a.Permits == 0 {
				c.Permitted++
			} else {
				c.Refused++
			}
		}
		return c
	}
	a.batches++
	total := a.Cost
	if a.batches > 1 && a.Second != nil {
		total = a.Second
	}
	if total == nil {
		total = map[string]float64{"wall": 2e-9, "cpu": 1e-9, "allocated": 16, "allocations": 1, "hits": 1}
		if r.Operation == "empty" {
			total = map[string]float64{"wall": 1e-9, "cpu": 1e-9, "allocated": 0, "allocations": 0}
		}
	}
	for k, v := range total {
		c.Total[k] = v * float64(c.Calls)
	}
	return c
}

// misbehave returns the exit status, or −1 to go on.
func (a *actor) misbehave(r Request) int {
	switch a.How {
	case "hang":
		if r.Do == DoPrepare { // half-made
			a.answer(r)
		}
		fmt.Fprintln(os.Stderr, "I hang now")
		time.Sleep(time.Minute)
	case "die":
		fmt.Fprintln(os.Stderr, "out of cheese at", r.Do)
		return 3
	case "exit":
		return 0
	case "refuse":
		a.say(Answer{ID: r.ID, Error: "no cheese left", Next: "buy some"})
	case "raw": // Answer is the line
		fmt.Println(strings.ReplaceAll(a.Answer, "ID", fmt.Sprint(r.ID)))
	case "ok": // Answer is the value of ok
		a.say(Answer{ID: r.ID, OK: json.RawMessage(a.Answer)})
	case "long":
		fmt.Println(strings.Repeat("x", MaxLine+10))
	case "half":
		fmt.Print(`{"id":`)
		return 4
	case "twice":
		a.say(a.answer(r))
		a.say(a.answer(r))
	case "close":
		_ = os.Stdout.Close()
		time.Sleep(time.Minute)
	case "close-in":
		_ = os.Stdin.Close()
		a.say(a.answer(r))
		time.Sleep(time.Minute)
	case "fork": // a process that outlives it, in its group or in a session of its own, and holds stdout open
		for _, own := range []bool{false, true} {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), roleEnv+"=sleeper")
			cmd.Stdout, cmd.SysProcAttr = os.Stdout, &syscall.SysProcAttr{Setsid: own}
			if err := cmd.Start(); err != nil {
				panic(err)
			}
			ticks, err := proc.StartTicks(cmd.Process.Pid)
			if err != nil {
				panic(err)
			}
			text := fmt.Sprintf(`{"pid":%d,"start_ticks":%d}`, cmd.Process.Pid, ticks)
			if err := os.WriteFile(filepath.Join(a.World, fmt.Sprintf("forked-%v", own)), []byte(text), 0o600); err != nil {
				panic(err)
			}
		}
		if a.Answer == "die" {
			return 3
		}
		a.say(a.answer(r))
	case "daemon": // a process without its environment, in a session of its own, which it names
		cmd := exec.Command("/bin/sleep", "60")
		cmd.Env, cmd.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		a.answer(r)
		a.say(Answer{ID: r.ID, OK: fmt.Appendf(nil, `{"pids":{"server":%d}}`, cmd.Process.Pid)})
	case "spawn": // a child that comes and goes while the calls are made
		_ = exec.Command("true").Run()
		a.say(a.answer(r))
	case "burn": // CPU time, which it does not count
		runtime.LockOSThread()
		begun, err := proc.ThreadCPU()
		for used := time.Duration(0); err == nil && used < time.Duration(*r.Calls)*time.Millisecond; {
			used, err = proc.ThreadCPU()
			used -= begun
		}
		if err != nil {
			panic(err)
		}
		a.say(a.answer(r))
	default:
		panic("how? " + a.How)
	}
	return -1
}

// program returns the actor as a program.
func (a *actor) program(t testing.TB) Program {
	t.Helper()
	if a.World == "" {
		a.World = t.TempDir()
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return Program{Name: "actor", Path: "/proc/self/exe", Env: []string{
		// under the race detector each end takes a second otherwise
		roleEnv + "=" + string(text), "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0",
	}}
}
