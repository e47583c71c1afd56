package record

import (
	"math/rand/v2"
	"testing"
	"time"

	"tare/internal/load"
)

func BenchmarkDecodeCalls(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var payload []byte
	var prev time.Duration
	for i := range chunkCalls {
		c := load.Call{Conn: 1, Intended: time.Duration(i) * 10 * time.Microsecond, Status: 200}
		c.Ready = c.Intended + 1 + time.Duration(r.IntN(300))
		c.Sent = c.Ready + time.Duration(2000+r.IntN(20_000))
		c.FirstByte = c.Sent + time.Duration(1e6*r.ExpFloat64())
		c.Done = c.FirstByte + 1000
		payload = appendCall(payload, &c, prev)
		prev = c.Intended
	}
	var calls []load.Call
	for b.Loop() {
		var err error
		if calls, err = decodeCalls(calls[:0], payload, chunkCalls); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunkCalls, "ns/call")
}
