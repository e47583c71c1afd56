package bpflsm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"tare/area"
	"tare/internal/files"
)

// MaxProfiles bounds the confined mount namespaces or control groups at a time.
const MaxProfiles = 1024

// ProfilesID returns the kernel's id of the map of profiles, by which other processes find it.
func (p *Programs) ProfilesID() (uint32, error) {
	info, err := p.collection.Maps[profilesMap].Info()
	if err != nil {
		return 0, fmt.Errorf("ask for the BPF map of profiles: %w", err)
	}
	id, ok := info.ID()
	if !ok {
		return 0, errors.New("this kernel gives no id of the BPF map of profiles")
	}
	return uint32(id), nil
}

// Enroll confines the calling thread, and what it executes and starts, by the rules of a slot: it moves the thread to a
// mount namespace of its own and gives that a profile. The thread stays locked; it must execute a program or end.
// The programs must have been loaded with ByMountNamespace, by a process that still lives.
func Enroll(profilesID, slot uint32) error {
	e, err := NewEnroller(profilesID, slot)
	if err != nil {
		return err
	}
	defer e.profiles.Close() //nolint:errcheck // nothing to lose
	return e.Enroll()
}

// An Enroller confines any number of threads by the rules of a slot.
type Enroller struct {
	profiles *ebpf.Map
	slot     uint32
}

// NewEnroller returns an Enroller that is open while this process lives.
func NewEnroller(profilesID, slot uint32) (*Enroller, error) {
	m, err := openProfiles(profilesID, slot)
	return &Enroller{m, slot}, err
}

// Enroll confines the calling thread, as the function Enroll does.
func (e *Enroller) Enroll() error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts of the new mount namespace private: %w", err)
	}
	key, err := namespaceKey(ownNamespace)
	if err != nil {
		return err
	}
	return putProfile(e.profiles, key, e.slot)
}

const ownNamespace = "/proc/thread-self/ns/mnt"

// Leave removes the profile of the calling thread, which is about to end. Another thread does it: the rules may refuse
// it to this one.
func (e *Enroller) Leave() error {
	key, err := namespaceKey(ownNamespace)
	if err != nil {
		return err
	}
	left := make(chan error, 1)
	go func() { left <- forget(e.profiles, key) }()
	return <-left
}

// noNamespace is a number beyond those of mount namespaces, which have 32 bits.
const noNamespace = 1 << 32

// Fill gives n profiles with the rules of a slot to mount namespaces that do not exist. The function that it returns
// removes them.
func (p *Programs) Fill(slot uint32, n int) (remove func() error, err error) {
	profiles := p.collection.Maps[profilesMap]
	remove = func() error {
		var errs []error
		for i := range n {
			errs = append(errs, forget(profiles, noNamespace+uint64(i)))
		}
		return errors.Join(errs...)
	}
	for i := range n {
		if err := putProfile(profiles, noNamespace+uint64(i), slot); err != nil {
			return nil, errors.Join(err, remove())
		}
	}
	return remove, nil
}

func openProfiles(id, slot uint32) (*ebpf.Map, error) {
	if err := checkSlot(slot); err != nil {
		return nil, err
	}
	m, err := ebpf.NewMapFromID(ebpf.MapID(id))
	if errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("there is no BPF map %d: has the process that loaded the programs ended?", id)
	}
	if err != nil {
		return nil, fmt.Errorf("open the BPF map %d: %w", id, err)
	}
	// Map.Info would tell the name, but reads /proc/self, which does not show a thread with descriptors of its own.
	if m.Type() != ebpf.Hash || m.KeySize() != 8 || m.ValueSize() != 4 {
		return nil, errors.Join(fmt.Errorf("the BPF map %d does not hold profiles: it is %v", id, m), m.Close())
	}
	return m, nil
}

func putProfile(m *ebpf.Map, key uint64, slot uint32) error {
	err := m.Update(key, slot, ebpf.UpdateAny)
	if errors.Is(err, unix.E2BIG) {
		return area.WithHint(fmt.Errorf("confine %d by slot %d: all %d profiles are in use", key, slot, MaxProfiles),
			"end workers, or measure fewer at a time")
	}
	if err != nil {
		return fmt.Errorf("confine %d by slot %d: %w", key, slot, err)
	}
	return nil
}

// namespaceKey returns the number of a mount namespace.
func namespaceKey(file string) (uint64, error) {
	var s unix.Stat_t
	if err := unix.Stat(file, &s); err != nil {
		return 0, fmt.Errorf("ask for the mount namespace %s: %w", file, err)
	}
	return s.Ino, nil
}

// A Confined process has a profile. Its mount namespace lasts until Forget, since the kernel would otherwise give its
// number, and with it the profile, to another.
type Confined struct {
	Key       uint64
	Slot      uint32
	profiles  *ebpf.Map
	namespace *os.File
}

// Confined returns the profile of a process that has enrolled itself. Whoever starts the process calls Forget after its
// end.
func (p *Programs) Confined(pid int) (*Confined, error) {
	if p.key != ByMountNamespace {
		return nil, errors.New("the BPF programs recognise processes by control groups, not by mount namespaces")
	}
	f, err := files.ForReading(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if err != nil {
		return nil, fmt.Errorf("open the mount namespace of process %d: %w", pid, err)
	}
	c := &Confined{profiles: p.collection.Maps[profilesMap], namespace: f}
	var s unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &s)
	if err == nil {
		c.Key = s.Ino
		err = c.profiles.Lookup(c.Key, &c.Slot)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("process %d has no BPF profile: %w", pid, err), f.Close())
	}
	return c, nil
}

// Move confines the process by the rules of another slot from now on. Programs that have begun may still read the slot
// before until Settle has returned.
func (c *Confined) Move(slot uint32) error {
	if err := checkSlot(slot); err != nil {
		return err
	}
	if err := c.profiles.Update(c.Key, slot, ebpf.UpdateExist); err != nil {
		return fmt.Errorf("confine %d by slot %d: %w", c.Key, slot, err)
	}
	c.Slot = slot
	return nil
}

// Settle waits until all programs that had begun when it was called have ended, so that rules which no profile names
// any more can be written.
func Settle() error {
	const global = 1 // MEMBARRIER_CMD_GLOBAL, which waits as synchronize_rcu does
	_, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0)
	if errno != 0 {
		return fmt.Errorf("wait until BPF programs have ended: %w", errno)
	}
	return nil
}

// Forget removes the profile.
func (c *Confined) Forget() error {
	return errors.Join(forget(c.profiles, c.Key), c.namespace.Close())
}

// Forget removes the profile of a mount namespace or control group, if it has one.
func (p *Programs) Forget(key uint64) error { return forget(p.collection.Maps[profilesMap], key) }

func forget(profiles *ebpf.Map, key uint64) error {
	if err := profiles.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove the BPF profile of %d: %w", key, err)
	}
	return nil
}

// ForgetEnded removes the profiles of mount namespaces in which no process lives, and returns their number. It is for
// processes that ended before Confined was called.
func (p *Programs) ForgetEnded() (int, error) {
	if p.key != ByMountNamespace {
		return 0, errors.New("the BPF programs recognise processes by control groups: use Forget")
	}
	profiles := p.collection.Maps[profilesMap]
	var ended []uint64
	var key uint64
	var slot uint32
	it := profiles.Iterate()
	for it.Next(&key, &slot) {
		ended = append(ended, key)
	}
	if err := it.Err(); err != nil {
		return 0, fmt.Errorf("list the BPF profiles: %w", err)
	}
	lives, err := livingNamespaces() // after the list, so that no new profile is taken for an ended one
	if err != nil {
		return 0, err
	}
	n := 0
	for _, key := range ended {
		if lives[key] || key >= noNamespace {
			continue
		}
		if err := forget(profiles, key); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// livingNamespaces returns the mount namespaces of all threads.
func livingNamespaces() (map[uint64]bool, error) {
	lives := map[uint64]bool{}
	tasks, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*/ns/mnt")
	if err != nil {
		return nil, err
	}
	for _, task := range tasks {
		if key, err := namespaceKey(task); err == nil {
			lives[key] = true
		} else if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ESRCH) {
			return nil, err
		}
	}
	if len(tasks) == 0 {
		return nil, errors.New("list the mount namespaces of processes: /proc is not mounted")
	}
	return lives, nil
}
