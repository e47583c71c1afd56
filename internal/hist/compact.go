package hist

import "slices"

// few holds the non-empty cells, ascending.
type few struct {
	cell  []uint16
	count []uint64
	adds  int
}

// mostFew is the number of cells above which an array of all cells is hardly larger, and faster.
const mostFew = 4096

// mostAdds is the number of additions above which their time matters more than the memory of an array.
const mostAdds = 1 << 14

// Compact returns an empty histogram that takes 10 bytes for each non-empty cell, up to mostFew. It is for histograms
// with few values, of which a record can have thousands. After many additions it takes an array of all cells.
func Compact() Histogram { return Histogram{few: &few{}} }

func (f *few) add(i int, n uint64) {
	c := uint16(i) // there are 14,336 cells
	k, found := slices.BinarySearch(f.cell, c)
	if !found {
		f.cell, f.count = slices.Insert(f.cell, k, c), slices.Insert(f.count, k, 0)
	}
	f.count[k] += n
	f.adds++
}

// many reports whether an array of all cells is better.
func (f *few) many() bool { return len(f.cell) > mostFew || f.adds > mostAdds }

// spread converts to an array of all cells.
func (h *Histogram) spread() {
	f := h.few
	h.few = nil
	h.grow(int(f.cell[len(f.cell)-1]))
	for k, c := range f.cell {
		h.counts[c] = f.count[k]
	}
}

// each calls f for every non-empty cell, ascending, until f returns false.
func (h *Histogram) each(f func(i int, count uint64) bool) {
	if h.few != nil {
		for k, c := range h.few.cell {
			if h.few.count[k] > 0 && !f(int(c), h.few.count[k]) {
				return
			}
		}
		return
	}
	for i, c := range h.counts {
		if c > 0 && !f(i, c) {
			return
		}
	}
}
