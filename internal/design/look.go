package design

// The looks at a growing experiment: after so many blocks it is judged, and may stop. Between them nothing is judged, since each look
// costs a share of the error that is allowed in all (package stat has the level of one look).
var looks = []int{10, 20, 40, 80, 160}

// MaxBlocks is the last look.
const MaxBlocks = 160

// Looks are the numbers of blocks at which an experiment of at most so many blocks is judged, in ascending order: the usual ones below
// it, and its end. There are never more than five.
func Looks(blocks int) []int {
	var out []int
	for _, l := range looks {
		if l < blocks {
			out = append(out, l)
		}
	}
	if len(out) == len(looks) {
		out = out[:len(out)-1] // the end takes the last look's place
	}
	if blocks > 0 {
		out = append(out, blocks)
	}
	return out
}

// Spare is how many blocks beyond the planned ones may be measured in place of those whose times cannot be used.
func Spare(blocks int) int { return (blocks + 1) / 2 }

// NextLook is the first usual look at or above so many blocks; beyond the last, the number itself.
func NextLook(blocks int) int {
	for _, l := range looks {
		if l >= blocks {
			return l
		}
	}
	return blocks
}
