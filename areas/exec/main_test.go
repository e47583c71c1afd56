package exec

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// TestMain lets this test binary be a driver, and a worker that a driver calls.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "be-a-driver" {
		runDriver()
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "be-a-worker" {
		runWorker(os.Args[2])
		return
	}
	goleak.VerifyTestMain(hosttest.Sharing(m))
}

// burns is the CPU time that the worker takes for a call.
const burns = 2 * time.Millisecond

// runWorker burns CPU time for each byte that it receives on the socket, sends the byte back, and ends with its
// standard input.
func runWorker(socket string) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		os.Exit(0)
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			runtime.LockOSThread() // whose CPU time is read
			one := make([]byte, 1)
			for {
				if _, err := c.Read(one); err != nil {
					return
				}
				from, _ := proc.ThreadCPU()
				for now := from; now-from < burns; now, _ = proc.ThreadCPU() {
				}
				if _, err := c.Write(one); err != nil {
					return
				}
			}
		}()
	}
}

// runDriver is a driver whose calls are made by a worker that it did not start. It names that process only if the level
// "named" says so, and counts no CPU time.
func runDriver() {
	var worker net.Conn
	answers := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var r struct {
			ID     uint64            `json:"id"`
			Do     string            `json:"do"`
			Levels map[string]string `json:"levels"`
			Calls  int               `json:"calls"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			os.Exit(1)
		}
		ok := map[string]any{}
		switch r.Do {
		case "describe":
			ok = map[string]any{
				"protocol": 1, "name": "asker", "version": "7", "operations": []any{
					map[string]any{"name": "ask"},
					map[string]any{"name": "nothing", "harness": true},
				},
				"factors": map[string][]string{"named": {"yes", "no"}, "socket": {}, "pid": {}},
			}
		case "prepare":
			var err error
			if worker, err = net.Dial("unix", r.Levels["socket"]); err != nil {
				os.Exit(1)
			}
			if pid, _ := strconv.Atoi(r.Levels["pid"]); r.Levels["named"] == "yes" {
				ok["pids"] = map[string]int{"worker": pid}
			}
		case "verify":
			ok["checks"] = []string{os.Getenv("MY_TOKEN")}
		case "operate":
			start, one := time.Now(), []byte{1}
			for range r.Calls {
				_, err1 := worker.Write(one)
				_, err2 := worker.Read(one)
				if err1 != nil || err2 != nil {
					os.Exit(1)
				}
			}
			ok = map[string]any{"calls": r.Calls, "total": map[string]float64{"wall": time.Since(start).Seconds()}}
		}
		if answers.Encode(map[string]any{"id": r.ID, "ok": ok}) != nil || r.Do == "stop" {
			return
		}
	}
}
