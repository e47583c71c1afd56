// Hash is a program for tare's area "exec": what does it cost to check a file before it is used? Factor check: none
// (the baseline), sha256 (its SHA-256 must be the one that was written down), hmac (its HMAC-SHA-256 must be, so that
// whoever changes the file cannot change the sum with it). The protocol is in areas/exec/README.md. The standard
// library is all that is used: copy this file, and change what stands below "The control".
package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const description = `{"protocol": 1, "name": "hash", "version": "1",
	"operations": [{"name": "load", "expect": "the file's content, checked", "span_ms": 20}, {"name": "empty", "harness": true}],
	"factors": {"check": ["none", "sha256", "hmac"], "size": []}, "notes": ["the file lies in the page cache: no disk is read"]}`

// The control: a file is handed out only if it is what it was.
var errRefused = errors.New("refused")

func sum(check string, content []byte) []byte {
	h := sha256.New()
	if check == "hmac" {
		h = hmac.New(sha256.New, []byte("a key of this example alone"))
	}
	h.Write(content)
	return h.Sum(nil)
}

// load is the call that is measured.
func load(check, path string) error {
	content, err := os.ReadFile(path)
	if err != nil || check == "none" {
		return err
	}
	written, err := os.ReadFile(path + "." + check)
	if err == nil && !hmac.Equal(sum(check, content), written) {
		err = errRefused
	}
	return err
}

// What tare asks for, and what it is answered.
type object map[string]any

type request struct {
	ID                    uint64
	Do, Folder, Operation string
	Levels                map[string]string
	Calls                 int
}

// driver serves one treatment: prepare, verify, operate, again and again.
type driver struct{ check, intact, tampered string }

func (d *driver) do(r request) (any, error) {
	switch r.Do {
	case "describe":
		return json.RawMessage(description), nil
	case "prepare":
		return d.prepare(r)
	case "verify":
		return d.verify()
	case "operate":
		return d.operate(r)
	case "undo": // removes all that prepare made; it may be asked of a new process, and twice
		return object{}, os.RemoveAll(filepath.Join(r.Folder, "files"))
	case "stop":
		return object{}, nil
	}
	return nil, errors.New("unknown request " + r.Do)
}

// prepare makes two files in the folder that tare gives. A later process of the same treatment makes the very same ones
// again: it is idempotent.
func (d *driver) prepare(r request) (any, error) {
	size, err := strconv.Atoi(cmp.Or(r.Levels["size"], "65536"))
	if err != nil || size < 1 || size > 1<<30 {
		return nil, fmt.Errorf("size=%s: want 1 to %d bytes", r.Levels["size"], 1<<30)
	}
	folder := filepath.Join(r.Folder, "files")
	d.check, d.intact, d.tampered = cmp.Or(r.Levels["check"], "none"), filepath.Join(folder, "intact"),
		filepath.Join(folder, "tampered")
	content := make([]byte, size)
	written := sum(d.check, content)
	err = os.MkdirAll(folder, 0o700)
	for _, path := range []string{d.intact, d.tampered} {
		err = errors.Join(err, os.WriteFile(path, content, 0o600), os.WriteFile(path+"."+d.check, written, 0o600))
		content[size-1] ^= 1 // of the second file, a single bit
	}
	return object{}, err
}

// verify proves the control: what must be refused is refused, what must be allowed is allowed.
func (d *driver) verify() (any, error) {
	intact, tampered := load(d.check, d.intact), load(d.check, d.tampered)
	if refused := errors.Is(tampered, errRefused); intact != nil || refused == (d.check == "none") {
		return nil, fmt.Errorf("under check=%s the intact file gives the error %w, and one with a changed bit %w",
			d.check, intact, tampered)
	}
	return object{"checks": []string{"the intact file is loaded", fmt.Sprintf("a file with one changed bit is refused: %v",
		tampered != nil)}}, nil
}

// operate performs the calls and says what they took together. Only the loop stands between the clocks, and the slow
// look at the heap outside of them.
func (d *driver) operate(r request) (any, error) {
	var err error
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuTime(), time.Now()
	for i := 0; i < r.Calls && err == nil; i++ {
		if r.Operation == "load" {
			err = load(d.check, d.intact)
		}
	}
	wall, cpu := time.Since(start), cpuTime()-cpu
	runtime.ReadMemStats(&after)
	return object{"calls": r.Calls, "total": object{
		"wall": wall.Seconds(), "cpu": cpu.Seconds(), "allocations": after.Mallocs - before.Mallocs,
		"allocated": after.TotalAlloc - before.TotalAlloc,
	}}, err
}

// cpuTime is what all threads of this process have used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for no valid argument
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func main() {
	requests, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	os.Stdout = os.Stderr // what is printed by mistake goes to the log, and not between the answers
	var d driver
	for last := false; !last; {
		var r request
		if requests.Decode(&r) != nil {
			return // tare has closed it, or was killed
		}
		ok, err := d.do(r)
		answer := object{"id": r.ID, "ok": ok}
		if err != nil {
			answer = object{"id": r.ID, "error": err.Error()}
		}
		last = answers.Encode(answer) != nil || r.Do == "stop"
	}
}
