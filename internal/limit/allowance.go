package limit

import (
	"fmt"
	"slices"

	"tare/internal/unit"
)

// allowance says that the target first served more calls than its rate, and then its rate, while it refused others and
// served each as fast as before: "" if that was not seen. A limit on the rate with an allowance does so after a pause.
// Places do not: they would have refused at first what they refuse later.
func (f *facts) allowance() string {
	for _, x := range slices.Backward(f.all) {
		n := len(x.Counts)
		if n < 8 || x.Bad < 5 || x.Spread == nil || *x.Spread > 0.1*x.Service {
			continue
		}
		late := slices.Sorted(slices.Values(x.Counts[n/2:]))
		part, most := x.Seconds/float64(n), late[len(late)-1]
		usual := float64(total(late)) / float64(len(late))
		more, parts := 0.0, 0
		for _, c := range x.Counts[:n/2] {
			if c <= most {
				break
			}
			more, parts = more+float64(c)-usual, parts+1
		}
		steady := measured{usual / part, 0.5 / (part * float64(len(late)))}
		if parts == 0 || more < max(5, 0.25*usual*float64(parts)) || !steady.isAbout(measured{f.Rate, (f.Hi - f.Lo) / 4}) {
			continue
		}
		first := float64(total(x.Counts[:parts])) / (float64(parts) * part)
		return fmt.Sprintf("of %d in flight at most, it served %s for %s and then %s, each as fast: it had an allowance "+
			"after a pause", x.InFlight, perSecond(first), unit.Seconds(float64(parts)*part), perSecond(steady.rate))
	}
	return ""
}
