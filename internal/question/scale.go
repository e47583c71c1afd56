package question

import (
	"slices"
	"strconv"
	"strings"

	"tare/internal/design"
)

// scale asks how the cost of a treatment grows with a factor.
func scale() *Question {
	return &Question{
		Name:            design.Scale,
		Asks:            "how does the cost grow with N?",
		Drive:           Blocks,
		Answer:          Growth,
		LeastTreatments: 1,
		Needs:           onlyTreatments,
		CheckTreatments: checkScaled,
		CheckLoad:       func(f File) { checkBlockLoad(f, design.Scale) },
		Form:            Form{Required: []string{"factors"}, Load: blockLoad()},
		MaxConnections:  usualConnections,
		AbortAfter:      usualAbort,
		Budgets:         blockBudgets(design.Scale),
	}
}

func checkScaled(f File) {
	f.Missing("factors", "question", "scale needs a factor to grow: factors: {name: [1, 10, 100]}")
	if f.Given("factors") && !slices.ContainsFunc(f.Factors(), grows) {
		f.Fail("factors", "scale needs a factor with at least three different numbers as levels: a growth law has no "+
			"fewer points")
	}
}

// grows reports whether a factor has three numbers among its levels.
func grows(f design.Factor) bool {
	numbers := map[float64]bool{}
	for _, level := range f.Levels {
		if x, err := strconv.ParseFloat(strings.TrimSpace(level), 64); err == nil {
			numbers[x] = true
		}
	}
	return len(numbers) >= 3
}
