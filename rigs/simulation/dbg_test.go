package simulation

import (
	"fmt"
	"os"
	"testing"

	"tare/internal/capacity"
)

func TestDbg(t *testing.T) {
	var name string
	var i int
	var share float64
	if n, _ := fmt.Sscan(os.Getenv("DBG"), &name, &i, &share); n != 3 {
		t.Skip()
	}
	w, o, truth := Instance(kind(t, name), 7, i)
	w.Steal(share, 7+uint64(i))
	tr, err := capacity.Search(t.Context(), w, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("truth", truth.Capacity, truth.Classes)
	for _, s := range tr.Steps {
		p := "-"
		if s.Passed != nil {
			p = fmt.Sprint(*s.Passed)
		}
		fmt.Printf("%7.2f %6.2fs %-13s %8.2f off %5d sent %5d %s lim=%v %s\n", s.Segment.Start.Seconds(), s.Length().Seconds(), s.Role, s.Rate, s.Segment.Offered, s.Segment.Sent, p, s.ClientLimited, s.Note)
	}
	r := capacity.Assess(tr)
	fmt.Println(r.Rate, r.Lo, r.Hi, r.Signature.Class, r.Signature.Evidence, r.Signature.Scores, r.Warnings, r.Reason)
}
