package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"tare/internal/driver"
)

// killedDriver is the name of a program for area exec that this test binary is. It makes a file outside of its folder,
// which only itself can take back, and starts a process in a session of its own, which outlives it.
const killedDriver = "killed-driver"

// runDriver is the main function of a driver program.
func runDriver() {
	requests, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var r driver.Request
		if requests.Decode(&r) != nil {
			return // tare was killed
		}
		a := driver.Answer{ID: r.ID}
		ok, err := answerDriver(r)
		if err == nil {
			a.OK, err = json.Marshal(ok)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if answers.Encode(a) != nil || r.Do == driver.DoStop {
			return
		}
	}
}

// answerDriver answers a request.
func answerDriver(r driver.Request) (any, error) {
	switch r.Do {
	case driver.DoDescribe:
		return driver.Description{
			Protocol: driver.Protocol, Name: killedDriver, Factors: map[string][]string{"it": {}},
			Operations: []driver.Operation{
				{Name: "wait", Expect: "a moment has passed"}, {Name: "empty", Harness: true},
			},
		}, nil
	case driver.DoPrepare:
		outlives := exec.Command("sleep", "1000")
		outlives.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return driver.Prepared{}, errors.Join(os.WriteFile(outsideFile(r), nil, 0o600), outlives.Start())
	case driver.DoVerify:
		return driver.Verified{Checks: []string{"it waits"}}, nil
	case driver.DoOperate:
		begin := time.Now()
		if r.Operation == "wait" {
			time.Sleep(time.Duration(*r.Calls) * 10 * time.Microsecond)
		}
		return driver.Cost{Calls: *r.Calls, Total: map[string]float64{"wall": time.Since(begin).Seconds()}}, nil
	case driver.DoUndo:
		if err := os.Remove(outsideFile(r)); !errors.Is(err, os.ErrNotExist) {
			return struct{}{}, err
		}
	}
	return struct{}{}, nil
}

// outsideFile returns the file that a treatment makes outside of its folder.
func outsideFile(r driver.Request) string {
	return filepath.Join(os.TempDir(), "outside-"+filepath.Base(r.Folder))
}
