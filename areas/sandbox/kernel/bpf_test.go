package kernel

import (
	"encoding/binary"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/rigs/hosttest"
	"tare/rigs/memtest"
)

// btfOf returns BTF types: an integer, a struct of two members, a prototype of one argument, then a function of each
// name.
func btfOf(names ...string) []byte {
	order := binary.NativeEndian
	strs := []byte{0}
	var types []byte
	add := func(name string, info uint32, tail ...uint32) {
		off := 0
		if name != "" {
			off = len(strs)
			strs = append(append(strs, name...), 0)
		}
		for _, v := range append([]uint32{uint32(off), info, 0}, tail...) {
			types = order.AppendUint32(types, v)
		}
	}
	add("int", 1<<24, 32)
	add("pair", 4<<24|2, 0, 1, 0, 0, 1, 32)
	add("", 13<<24|1, 0, 1)
	for _, n := range names {
		add(n, btfKindFunc<<24)
	}
	raw := order.AppendUint16(nil, btfMagic)
	raw = append(raw, 1, 0)
	for _, v := range []int{btfHeader, 0, len(types), len(types), len(strs)} {
		raw = order.AppendUint32(raw, uint32(v))
	}
	return append(append(raw, types...), strs...)
}

func TestBTFFunction(t *testing.T) {
	good := btfOf("first", lsmHook+"_more", lsmHook)
	if id, ok := btfFunction(good, lsmHook); !ok || id != 6 {
		t.Errorf("type %d (%v), want 6", id, ok)
	}
	if id, ok := btfFunction(good, "pair"); ok {
		t.Errorf("a struct was taken for a function: type %d", id)
	}
	for name, raw := range map[string][]byte{
		"nothing": nil, "no hook": btfOf("first"), "torn header": good[:20], "torn types": good[:60],
		"other magic": append([]byte{0, 0}, good[2:]...),
		"unknown kind": []byte(strings.Replace(string(good), string(binary.NativeEndian.AppendUint32(nil, 13<<24|1)),
			string(binary.NativeEndian.AppendUint32(nil, 30<<24|1)), 1)),
	} {
		if id, ok := btfFunction(raw, lsmHook); ok {
			t.Errorf("%s: type %d", name, id)
		}
	}
}

func FuzzBTF(f *testing.F) {
	f.Add(btfOf("a", lsmHook))
	f.Add(btfOf())
	f.Fuzz(func(t *testing.T, raw []byte) {
		defer memtest.Bound(t, len(raw))()
		if id, ok := btfFunction(raw, lsmHook); ok && (id == 0 || len(raw) < btfHeader+int(id)*btfType ||
			!strings.Contains(string(raw), lsmHook)) {
			t.Errorf("type %d of %d bytes", id, len(raw))
		}
	})
}

func TestBPFLSM(t *testing.T) {
	for name, x := range map[string]host{
		"no types": {root: fstest.MapFS{}},
		"no hooks": {root: fstest.MapFS{"sys/kernel/btf/vmlinux": {Data: btfOf("first")}}},
		"nonsense": {root: fstest.MapFS{"sys/kernel/btf/vmlinux": {Data: []byte("nonsense")}}},
		// The third type is no function of this kernel, so that it refuses the program, whatever rights we have.
		"a wrong number": {root: fstest.MapFS{"sys/kernel/btf/vmlinux": {Data: btfOf(lsmHook)}}},
	} {
		if c := x.bpfLSM(); c.State != area.CheckMissing || c.Found == "" || c.Cause == "" || c.Next == "" {
			t.Errorf("%s: got %+v, want Missing with a cause and a next step", name, c)
		}
	}
	c := (host{os.DirFS("/")}).bpfLSM()
	t.Logf("here: %+v", c)
	if c.State != area.CheckOK && (c.Cause == "" || c.Next == "") {
		t.Errorf("got %+v, want OK, or a cause and a next step", c)
	}
}

func TestModules(t *testing.T) {
	x := host{root: fstest.MapFS{"sys/kernel/security/lsm": {Data: []byte("lockdown,capability,bpf\n")}}}
	if names, ok := x.modules(); !ok || strings.Join(names, " ") != "lockdown capability bpf" {
		t.Errorf("got modules %v, %v", names, ok)
	}
	names, ok := (host{root: fstest.MapFS{}}).modules()
	t.Logf("here: %v, %v", names, ok)
	if ok && len(names) == 0 {
		t.Error("the list is known, and empty: capability is always there")
	}
}

func TestLoadBPFRejectsInvalidPrograms(t *testing.T) {
	if err := loadBPF(unix.BPF_PROG_TYPE_LSM, unix.BPF_LSM_MAC, 1<<31); err == nil {
		t.Error("a program for a function that there is not was loaded")
	}
}

// TestTrialsEndWithTheirThreads: what a trial enforces is in force nowhere else in this process.
func TestTrialsEndWithTheirThreads(t *testing.T) {
	for name, trial := range map[string]struct {
		try     func() (string, error)
		refused func() error
	}{
		"seccomp": {trySeccomp, func() error {
			if _, _, e := unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); e != 0 {
				return e
			}
			return nil
		}},
		"landlock": {tryLandlock, func() error { return tryOpen("/proc/self/status") }},
	} {
		for range 20 {
			found, err := onOwnThread(trial.try)
			if err == nil && !strings.Contains(found, "refused") || err != nil && found != "" {
				t.Errorf("%s found %q, %v", name, found, err)
			}
			if err := trial.refused(); err != nil {
				t.Errorf("%s is in force in this process: %v", name, err)
			}
			for i, err := range onAllThreads(trial.refused) {
				if err != nil {
					t.Errorf("%s is in force in thread %d of 8: %v", name, i, err)
				}
			}
		}
	}
}

// onAllThreads calls do on several threads at the same time.
func onAllThreads(do func() error) (errs [8]error) {
	var all sync.WaitGroup
	locked := make(chan struct{}, len(errs))
	release := make(chan struct{})
	for i := range errs {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			locked <- struct{}{}
			<-release // so that no two have the same thread
			errs[i] = do()
		})
	}
	for range errs {
		<-locked
	}
	close(release)
	all.Wait()
	return errs
}

func TestOwnThreadIsNotTheMainThread(t *testing.T) {
	for range 100 {
		if _, err := onOwnThread(func() (string, error) {
			if unix.Gettid() == unix.Getpid() {
				t.Error("a trial ran on the main thread")
			}
			return "", nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestChecks(t *testing.T) {
	for _, c := range Checks() {
		t.Logf("here: %+v", c)
		if c.Group == "" || c.Name == "" || c.State == "" || c.Found == "" {
			t.Errorf("check lacks its group, name, state or finding: %+v", c)
		}
		if c.State != "ok" && (c.Cause == "" || c.Next == "") {
			t.Errorf("neither cause nor next step: %+v", c)
		}
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }
