//go:build amd64 || arm64 || riscv64

package load

import "testing"

// Whatever pieces records come in, the framer finds their boundaries, and passes everything on.
func TestFramer(t *testing.T) {
	var all []byte
	ends := map[int]bool{}
	for _, n := range []int{3, 0, 16 << 10, 1, 300, 0, 65535} {
		all = append(all, 23, 3, 3, byte(n>>8), byte(n))
		all = append(all, make([]byte, n)...)
		ends[len(all)] = true
	}
	for _, piece := range []int{1, 2, 4, 5, 6, 7, 512, 1 << 10, 70_000, len(all)} {
		var f framer
		var seen []int
		for at := 0; at < len(all); {
			arrived := min(len(all), (at/piece+1)*piece)
			n := f.advance(all[at:arrived])
			if n < 1 || at+n > arrived {
				t.Fatalf("in pieces of %d: %d bytes at %d", piece, n, at)
			}
			at += n
			if !f.isWithin() {
				seen = append(seen, at)
			}
			if f.isWithin() == ends[at] {
				t.Fatalf("in pieces of %d: within a record at %d: %v", piece, at, f.isWithin())
			}
		}
		if len(seen) != len(ends) {
			t.Errorf("in pieces of %d: records end at %v", piece, seen)
		}
	}
}

// A record that began before the request was sent does not answer it, although it ends afterwards.
func TestFramerMarksEarlyRecords(t *testing.T) {
	var f framer
	record := []byte{23, 3, 3, 0, 2, 'h', 'i'}
	f.advance(record[:6])
	f.early = f.isWithin()
	if f.advance(record[6:]); !f.early {
		t.Error("the record has lost its mark")
	}
	if f.advance(record); f.early {
		t.Error("the next one has it, too")
	}
}
