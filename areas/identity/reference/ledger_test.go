package reference

import (
	"sync/atomic"
	"testing"
	"time"

	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// TestLedgerPrice: a request costs its price in total, whatever the work around it costs.
func TestLedgerPrice(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	const price = 600 * time.Microsecond
	var cpu atomic.Int64
	l := &ledger{cost: price, cpu: func() (time.Duration, error) {
		return time.Duration(cpu.Add(int64(time.Microsecond))), nil // each look costs 1 µs of work
	}}
	l.pay()
	start := cpu.Load()
	for range 1000 {
		cpu.Add(int64(60 * time.Microsecond)) // HTTP
		l.pay()
	}
	each := time.Duration((cpu.Load() - start) / 1000)
	if each < price || each > price+5*time.Microsecond {
		t.Errorf("a request costs %v, want %v", each, price)
	}
}

// TestLedgerForgivesIdleWork: the process's own work makes at most one request cheaper.
func TestLedgerForgivesIdleWork(t *testing.T) {
	l := &ledger{cost: time.Millisecond}
	l.book(0)
	at := 500 * time.Millisecond // of garbage collection, say
	var total time.Duration
	for range 10 {
		due := l.book(at)
		total += max(0, due-at)
		at = max(at, due)
	}
	if total < 9*time.Millisecond || total > 10*time.Millisecond {
		t.Errorf("ten requests after idle work pay %v", total)
	}
}

// TestLedgerOnTheRealClock burns real CPU time: never less than the price, and little more.
func TestLedgerOnTheRealClock(t *testing.T) {
	const price, n = 200 * time.Microsecond, 200
	l, err := newLedger(price)
	if err != nil {
		t.Fatal(err)
	}
	l.pay()
	before, err := proc.ProcessCPU()
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		l.pay()
	}
	after, err := proc.ProcessCPU()
	if err != nil {
		t.Fatal(err)
	}
	if each := (after - before) / n; each < price*95/100 || each > price*3/2 {
		t.Errorf("a request costs %v of CPU, want %v", each, price)
	}
}
