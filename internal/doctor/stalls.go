package doctor

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/internal/files"
	"tare/internal/probe"
	"tare/internal/proc"
)

const (
	// nap is how long a watching thread sleeps at a time, as do the generator's threads at 1000/s.
	nap = time.Millisecond
	// stallFrom is the lateness from which a wake-up counts as a stall.
	stallFrom = time.Millisecond
	// stallWindow is the time over which the share of lost time is computed to see how it varies.
	stallWindow = 500 * time.Millisecond
	// mostWatched is how many processors are watched, of a larger host the first ones.
	mostWatched = 64
)

// Stalls is what threads saw that slept 1 ms at a time, one on each processor at an ordinary priority and one at the
// generator's. Shares are of their time.
type Stalls struct {
	Seconds  float64 `json:"seconds"`
	CPUs     int     `json:"cpus"`
	Priority bool    `json:"real_time_priority"` // the generator's threads had one
	// Lost is the share of the time for which a processor did not run an ordinary thread that was due. Taken is the part
	// of it that was taken from every thread: that of the generator's threads, without the time for which they waited for
	// processes of the same priority. TakenLow and TakenHigh are its smallest and largest value in half a second, absent
	// where there were fewer than two.
	Lost      float64  `json:"lost"`
	Taken     float64  `json:"taken"`
	TakenLow  *float64 `json:"taken_low,omitempty"`
	TakenHigh *float64 `json:"taken_high,omitempty"`
	// Count and Longest are of the wake-ups of the generator's threads that were 1 ms late or more.
	Count   int     `json:"count"`
	Longest float64 `json:"longest"`
	// Tail is a bound of what a p99 owes to this host: see delayBound.
	Tail float64 `json:"p99_bound"`
	// Steal is the share of the CPU time that the hypervisor took, Waited the share of the time for which threads of
	// ordinary priority waited while other processes ran, and Throttled the share for which a CPU quota stopped this
	// process. Absent where the kernel does not tell.
	Steal     *float64 `json:"steal,omitempty"`
	Waited    *float64 `json:"waited,omitempty"`
	Throttled float64  `json:"throttled"`
}

// stalls watches the processors for a while.
func (x *examiner) stalls(ctx context.Context, d *Diagnosis) {
	cpus, err := proc.Allowed()
	if err != nil {
		return // the forecast says that it is not known
	}
	cpus = cpus[:min(len(cpus), mostWatched)]
	d.Stalls = x.watch(ctx, cpus, x.timeShare(4, 3*time.Second))
}

// watch returns nil if no thread could watch.
func (x *examiner) watch(ctx context.Context, cpus []int, length time.Duration) *Stalls {
	_, refused := x.priority()
	// A watching thread keeps its share of Go's scheduler while it sleeps.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2*len(cpus) + 2))
	before, throttled, began := x.pressures(ctx), probe.Generator{Root: x.root}.Throttled(), monotonic()
	watchers := make([]watcher, 2*len(cpus))
	var all sync.WaitGroup
	for i := range watchers {
		w := &watchers[i]
		w.cpu, w.generator = cpus[i/2], i%2 == 0
		w.first = w.generator && refused == nil
		all.Go(func() { w.run(ctx, began, began+int64(length)) })
	}
	all.Wait()
	s := summarizeStalls(watchers, length)
	if s == nil {
		return nil
	}
	s.Priority, s.CPUs = refused == nil, len(cpus)
	if v, ok := probe.Share(probe.Delta(before, x.pressures(ctx), elapsed), probe.HostSubject, probe.Steal,
		probe.HostAll); ok {
		s.Steal = &v
	}
	s.Throttled = max(0, probe.Generator{Root: x.root}.Throttled()-throttled) / (length.Seconds() * float64(len(cpus)))
	return s
}

// A watcher is a thread on one processor that sleeps, and notes when it wakes.
type watcher struct {
	cpu       int
	generator bool            // at the generator's priority
	first     bool            // which is a real-time priority
	waits     []time.Duration // of the moments at which it was due
	windows   []lostTime
	stalls    int
	longest   time.Duration
	blind     bool // the kernel does not tell how long a thread waited for others
	err       error
}

// lostTime is the time for which a thread did not run though it was due, and the part of it for which it waited for
// others on its processor.
type lostTime struct{ late, waited time.Duration }

// run watches from began until end. Its thread ends with it, with its priority and its processor.
func (w *watcher) run(ctx context.Context, began, end int64) {
	runtime.LockOSThread() // never unlocked
	var set unix.CPUSet
	set.Set(w.cpu)
	if w.err = unix.SchedSetaffinity(0, &set); w.err != nil {
		return
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	if w.first {
		if w.err = realtime(); w.err != nil {
			return
		}
	}
	w.windows = make([]lostTime, int((end-began)/int64(stallWindow))+1)
	last, known := runDelay()
	w.blind = !known
	window := 0
	account := func() {
		waited, _ := runDelay()
		w.windows[window].waited += waited - last
		last = waited
	}
	defer account()
	due := began + int64(nap)
	if !w.generator {
		due += int64(nap / 2) // not at the moment at which the other thread of this processor wakes
	}
	for due < end && ctx.Err() == nil {
		now := monotonic()
		if now < due {
			sleepUntil(due)
			continue
		}
		w.note(time.Duration(now-due), window)
		if at := min(int((now-began)/int64(stallWindow)), len(w.windows)-1); at != window {
			account() // to the window to which the delay was added
			window = at
		}
		due += (now - due + int64(nap)) / int64(nap) * int64(nap)
	}
}

// note adds a wake-up that was late. A call that was due during the wait, at any of the moments when the thread should
// have woken, had to wait for the rest of it.
func (w *watcher) note(late time.Duration, window int) {
	for wait := late; wait >= 0; wait -= nap {
		w.waits = append(w.waits, wait)
	}
	w.windows[window].late += late
	if late >= stallFrom {
		w.stalls++
		w.longest = max(w.longest, late)
	}
}

// sleepUntil returns when the monotonic clock shows due, or earlier. It keeps this thread's share of Go's scheduler, so
// that nothing but the kernel decides when the thread runs again.
func sleepUntil(due int64) {
	ts := unix.NsecToTimespec(due)
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME,
		uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

// runDelay returns for how long this thread has been ready to run while something else ran (sched-stats.rst).
func runDelay() (time.Duration, bool) {
	b, err := files.Kernel("/proc/thread-self/schedstat")
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, false
	}
	ns, err := strconv.ParseInt(f[1], 10, 64)
	return time.Duration(ns), err == nil
}

// summarizeStalls returns nil if no ordinary thread watched, or none of the generator's.
func summarizeStalls(all []watcher, length time.Duration) *Stalls {
	s := &Stalls{Seconds: length.Seconds()}
	var generator, ordinary []*watcher
	for i := range all {
		switch w := &all[i]; {
		case w.err != nil || len(w.waits) == 0:
		case w.generator:
			generator = append(generator, w)
			s.Count, s.Longest = s.Count+w.stalls, max(s.Longest, w.longest.Seconds())
		default:
			ordinary = append(ordinary, w)
		}
	}
	if len(generator) == 0 || len(ordinary) == 0 {
		return nil
	}
	s.Tail = delayBound(waitsOf(generator), waitsOf(ordinary), 0.01).Seconds()
	s.Lost = share(ordinary, 0, windowsOf(ordinary), length, (*watcher).lost)
	s.Taken = share(generator, 0, windowsOf(generator), length, (*watcher).taken)
	if whole := int(length / stallWindow); whole >= 2 {
		var by []float64
		for k := range whole {
			by = append(by, share(generator, k, k+1, stallWindow, (*watcher).taken))
		}
		s.TakenLow, s.TakenHigh = new(slices.Min(by)), new(slices.Max(by))
	}
	if !slices.ContainsFunc(ordinary, func(w *watcher) bool { return w.blind }) {
		s.Waited = new(share(ordinary, 0, windowsOf(ordinary), length, (*watcher).waited))
	}
	return s
}

func windowsOf(all []*watcher) int { return len(all[0].windows) }

func waitsOf(all []*watcher) (waits []time.Duration) {
	for _, w := range all {
		waits = append(waits, w.waits...)
	}
	slices.Sort(waits)
	return waits
}

// share sums a part of the windows from and before to over threads, as a share of their time.
func share(all []*watcher, from, to int, length time.Duration, part func(*watcher, int) time.Duration) float64 {
	sum := time.Duration(0)
	for _, w := range all {
		for k := from; k < min(to, len(w.windows)); k++ {
			sum += part(w, k)
		}
	}
	return min(1, max(0, sum.Seconds())/(length.Seconds()*float64(len(all))))
}

func (w *watcher) lost(k int) time.Duration   { return w.windows[k].late }
func (w *watcher) waited(k int) time.Duration { return w.windows[k].waited }

// taken is what every thread would have lost: a thread with real-time priority waits only for what comes before all.
func (w *watcher) taken(k int) time.Duration {
	if w.first {
		return w.windows[k].late
	}
	return w.windows[k].late - w.windows[k].waited
}

// delayBound returns a delay that at most the given share of calls suffers. A call waits for a processor four times:
// the generator must run to send it and to read its answer, and the target to read it and to answer. The probability
// that one of these waits is longer is at most the sum of the four. The waits are sorted.
func delayBound(generator, ordinary []time.Duration, share float64) time.Duration {
	longer := func(d time.Duration) float64 { return 2*shareAbove(generator, d) + 2*shareAbove(ordinary, d) }
	lo, hi := time.Duration(0), max(generator[len(generator)-1], ordinary[len(ordinary)-1])
	for hi-lo > time.Microsecond {
		if mid := lo + (hi-lo)/2; longer(mid) <= share {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// shareAbove returns the share of sorted values that are above d.
func shareAbove(sorted []time.Duration, d time.Duration) float64 {
	i, _ := slices.BinarySearch(sorted, d+1)
	return float64(len(sorted)-i) / float64(len(sorted))
}
