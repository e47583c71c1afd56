package bpflsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"tare/areas/sandbox/policy"
)

// eventsSize is the size of the buffer of events where accesses are observed; each event takes somewhat more than a
// path.
const eventsSize = 1 << 22

// lostCounter is the counter after those of the hooks.
const lostCounter = 8

// event is an event of the programs, as rules.h declares it.
type event struct {
	Hook, Number uint32
	Address      [16]byte
	Type         [maxType]byte
	Path         [unix.PathMax]byte
}

// An Observer receives what programs that have been loaded with Options.Observe would refuse.
type Observer struct {
	programs *Programs
	reader   *ringbuf.Reader
	lostAt   uint64 // the programs' count of lost events at the beginning
	ended    chan error
	acts     []policy.Act
}

// Observe begins to receive. Close must be called.
func (p *Programs) Observe() (*Observer, error) {
	lost, err := p.counter(lostCounter)
	if err != nil {
		return nil, fmt.Errorf("read the events of the BPF programs: %w", err)
	}
	r, err := ringbuf.NewReader(p.collection.Maps[eventsMap])
	if err != nil {
		return nil, fmt.Errorf("read the events of the BPF programs: %w", err)
	}
	o := &Observer{programs: p, reader: r, lostAt: lost, ended: make(chan error, 1)}
	go func() { o.ended <- o.receive() }()
	return o, nil
}

// receive receives events until the reader is flushed.
func (o *Observer) receive() error {
	for {
		record, err := o.reader.Read()
		if errors.Is(err, ringbuf.ErrFlushed) {
			return nil
		}
		if err != nil {
			return err
		}
		var e event
		if err := binary.Read(bytes.NewReader(record.RawSample), binary.NativeEndian, &e); err != nil {
			return err
		}
		if a := e.act(); !slices.ContainsFunc(o.acts, a.Same) {
			o.acts = append(o.acts, a)
		}
	}
}

// Close ends the observation. It returns what would have been refused, without duplicates, and how many events were
// lost.
func (o *Observer) Close() (acts []policy.Act, lost uint64, err error) {
	err = o.reader.Flush()
	if err == nil {
		err = <-o.ended
	}
	lost, failed := o.programs.counter(lostCounter)
	if err = errors.Join(err, failed, o.reader.Close()); err != nil {
		err = fmt.Errorf("read the events of the BPF programs: %w", err)
	}
	return o.acts, lost - o.lostAt, err
}

// act translates an event.
func (e *event) act() policy.Act {
	path, _, _ := bytes.Cut(e.Path[:], []byte{0})
	a := policy.Act{Kind: policy.OpenFile, Path: string(path)}
	switch hooks[e.Hook%uint32(len(hooks))].hook {
	case FileOpen:
		if e.Number&fmodeRead != 0 {
			a.Access = append(a.Access, policy.Read)
		}
		if e.Number&fmodeWrite != 0 {
			a.Access = append(a.Access, policy.Write)
		}
	case Exec:
		a.Kind = policy.Execute
	case Connect:
		a.Kind, a.Address = policy.Connect, e.address()
	case Capable:
		a.Kind, a.Name = policy.UseCapability, policy.CapabilityName(int(e.Number))
	case Mount:
		name, _, _ := bytes.Cut(e.Type[:], []byte{0})
		a.Kind, a.Name = policy.MountIt, strings.ToValidUTF8(string(name), "?")
	case Umount:
		a.Kind = policy.Unmount
	case PtraceAccess, PtraceTraced:
		a.Kind = policy.Trace
	}
	return a
}

func (e *event) address() netip.AddrPort {
	var port [2]byte
	binary.NativeEndian.PutUint16(port[:], uint16(e.Number)) //nolint:gosec // the lower half
	addr := netip.AddrFrom16(e.Address)
	if e.Number>>16 == unix.AF_INET {
		addr = netip.AddrFrom4([4]byte(e.Address[:4]))
	}
	return netip.AddrPortFrom(addr, binary.BigEndian.Uint16(port[:]))
}

// counter returns a counter of the programs.
func (p *Programs) counter(i uint32) (sum uint64, err error) {
	var perCPU []uint64
	if err := p.collection.Maps[refusedMap].Lookup(i, &perCPU); err != nil {
		return 0, err
	}
	for _, n := range perCPU {
		sum += n
	}
	return sum, nil
}

// prepareEvents sets what the programs do with what they would refuse, before they are loaded.
func prepareEvents(spec *ebpf.CollectionSpec, observe bool) error {
	size := uint32(unix.Getpagesize()) //nolint:gosec // the least that the kernel takes
	if observe {
		size = eventsSize
		if err := spec.Variables["observing"].Set(uint32(1)); err != nil {
			return fmt.Errorf("make the BPF programs observe: %w", err)
		}
	}
	spec.Maps[eventsMap].MaxEntries = size
	return nil
}
