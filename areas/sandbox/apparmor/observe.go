package apparmor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/internal/files"
)

// An Observer collects what profiles of one namespace do not allow. The profiles are loaded in complain mode.
type Observer struct {
	namespace string
	fd        int
	lostAt    uint32 // the kernel's count of dropped records when the observation began
	dropped   int    // batches that were dropped because the observer was late
	stop      chan struct{}
	ended     chan struct{}
	marks     chan string // names of threads that made records on purpose
	marked    int
	refusals  []Refusal
	err       error
}

// marker is the profile of a thread that makes a record on purpose. Its records show that the observer receives
// records, and that all earlier ones have arrived.
const marker = "tare-marker"

// Observe begins to collect. It loads a profile into the namespace and fails if a record that it causes on purpose does
// not arrive. Stop must be called.
func Observe(ctx context.Context, namespace string) (*Observer, error) {
	f := &File{Name: "a profile of tare's", Text: "profile " + marker + " { }\n"}
	if _, err := LoadFile(ctx, namespace, f, marker, Complain); err != nil {
		return nil, err
	}
	var err error
	o := &Observer{
		namespace: namespace, stop: make(chan struct{}), ended: make(chan struct{}), marks: make(chan string, 8),
	}
	if o.lostAt, err = lostRecords(); err != nil {
		return nil, err
	}
	if o.fd, err = openAudit(); err != nil {
		return nil, err
	}
	go o.collect(ctx)
	if err := o.mark(ctx); err != nil {
		_, _, stopped := o.end()
		return nil, errors.Join(err, stopped)
	}
	return o, nil
}

// Stop ends the observation. It returns what was not allowed, without duplicates, in the order of the first time. If
// lost is not 0, at least that many records are missing, of whatever origin: another refusal may be among them.
func (o *Observer) Stop(ctx context.Context) (refusals []Refusal, lost int, err error) {
	marked := o.mark(ctx)
	refusals, lost, err = o.end()
	if lost > 0 {
		marked = nil // it was lost too
	}
	return refusals, lost, errors.Join(marked, err)
}

func (o *Observer) end() ([]Refusal, int, error) {
	close(o.stop)
	<-o.ended
	lost, err := lostRecords()
	return o.refusals, int(lost-o.lostAt) + o.dropped, errors.Join(o.err, err)
}

// collect receives records until Stop, the end of the context or an error.
func (o *Observer) collect(ctx context.Context) {
	defer close(o.ended)
	defer func() { o.err = errors.Join(o.err, os.NewSyscallError("close", unix.Close(o.fd))) }()
	const pause = 20 * time.Millisecond
	for ctx.Err() == nil {
		select {
		case <-o.stop:
			return
		default:
		}
		err := receive(o.fd, pause, func(_ uint16, body []byte) { o.note(string(body)) })
		if errors.Is(err, errLost) {
			o.dropped++
		} else if err != nil {
			o.err = err
			return
		}
	}
}

// note keeps a record if it is about a profile of the namespace. In complain mode a program that a profile does not
// allow to be executed runs under a profile that allows nothing: of those records only that of the execution is kept.
func (o *Observer) note(record string) {
	r, namespace, ok := parseRecord(record)
	if !ok || namespace != o.namespace || strings.Contains(r.Profile, "//null-") {
		return
	}
	if r.Profile == marker {
		select {
		case o.marks <- r.Command:
		default:
		}
		return
	}
	if !slices.ContainsFunc(o.refusals, r.same) {
		o.refusals = append(o.refusals, r)
	}
}

// mark makes a record and waits for it.
func (o *Observer) mark(ctx context.Context) error {
	o.marked++
	name := fmt.Sprintf("tare-mark-%d", o.marked) // at most 15 letters
	made := make(chan error, 1)
	go onSpareThread(func() { made <- makeRecord(o.namespace, name) })
	if err := <-made; err != nil {
		return err
	}
	inTime, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	for {
		select {
		case arrived := <-o.marks:
			if arrived == name {
				return nil
			}
		case <-o.ended:
			return errors.Join(errors.New("the observation ended before its last record arrived"), ctx.Err())
		case <-inTime.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return area.WithHint(fmt.Errorf("an audit record of AppArmor's did not arrive within %s, so refusals cannot be "+
				"observed", answerWithin),
				"look for rules that exclude AVC records (auditctl -l), and for audit=0 in the kernel's command line")
		}
	}
}

// onSpareThread calls do on a thread that ends afterwards: one that stays locked, and is not the process's first, which
// never ends.
func onSpareThread(do func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		do()
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		onSpareThread(do)
	}()
	<-ended
	runtime.UnlockOSThread()
}

// makeRecord names this thread, puts it under the marker's profile and opens a file.
func makeRecord(namespace, name string) error {
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(unsafe.StringData(name+"\x00"))), 0, 0, 0); err != nil {
		return fmt.Errorf("make an audit record: name a thread: %w", err)
	}
	f, err := openAttribute("thread-self", "current", os.O_WRONLY)
	if err != nil {
		return fmt.Errorf("make an audit record: %w", err)
	}
	defer f.Close() //nolint:errcheck // the kernel acts on the write
	l := Label{Namespace: namespace, Profile: marker}
	if _, err := f.WriteString("changeprofile " + l.String()); err != nil {
		return fmt.Errorf("make an audit record: change this thread's profile: %w", err)
	}
	dir, err := files.ForReading("/")
	if err != nil {
		return fmt.Errorf("make an audit record: %w", err)
	}
	return dir.Close()
}

// quietDeny finds "deny" rules. A comment or a quoted text is matched as a whole, so that none is found in it.
var quietDeny = regexp.MustCompile(`#[^\n]*|"[^"\n]*"|(?:^|[\s,{}])(?:(?:audit|profile|hat)\s+)?deny\s`)

// Observed returns the source to be compiled in complain mode for an Observer. In that mode the kernel still refuses
// what "deny" rules say, without a record; what "audit deny" rules say it reports and allows.
func (f *File) Observed() Source {
	text := quietDeny.ReplaceAllStringFunc(f.Text, func(m string) string {
		if m[0] == '#' || m[0] == '"' || len(strings.Fields(strings.TrimLeft(m, ",{}"))) > 1 {
			return m
		}
		return strings.Replace(m, "deny", "audit deny", 1)
	})
	return Source{Name: f.Name, Text: text}
}
