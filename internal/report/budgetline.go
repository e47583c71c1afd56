package report

import "strings"

// Found is what a budget's metric came to, with its interval, as people read it: "+4.1 % [+3.2 %, +5 %]"; "" where
// nothing was measured.
func (b *Budget) Found() string { return strings.TrimSpace(b.measured() + " " + b.interval()) }
