package report

// A Table is rows of cells below a head, in the words and numbers of the text form. An empty cell is no value.
type Table struct {
	Head []Heading
	Rows [][]string
}

// A Heading names a column.
type Heading struct {
	Text string
	Left bool // the column holds words; numbers are aligned on the right
}

// shown is a table for other packages.
func (t table) shown() Table {
	out := Table{Rows: make([][]string, t.rows())}
	for _, c := range t {
		out.Head = append(out.Head, Heading{c.head, c.left})
		for i, cell := range c.cells {
			out.Rows[i] = append(out.Rows[i], cell)
		}
	}
	return out
}

// Summary is JMeter's Summary Report of a soak, column for column: a row for each operation and one for all of them.
func (r *Report) Summary() Table { return r.summary().shown() }

// Quantiles are the percentiles of a soak's response times, by operation and of all.
func (r *Report) Quantiles() Table { return r.quantiles().shown() }

// Decisions count what the answers said, by operation, and how many were other than expected.
func (r *Report) Decisions() Table { return r.decisions().shown() }

// Checks hold the target's counts of answers against its callers'; of questions other than soak, only those that disagree.
func (r *Report) Checks() Table { return r.checks(!r.soaked()).shown() }

// Drifts are the trends of a soak.
func (r *Report) Drifts() Table { return r.drifts().shown() }

// Collections are the garbage collections of the target's parts, by collector.
func (r *Report) Collections() Table { return r.collections().shown() }

// Soaked are the soaks of whole treatments; none if that is not the question.
func (r *Report) Soaked() []*Soak { return r.soakedWholes() }

// Alarms say what makes the rest worth little: answers other than expected, and answers that both sides counted differently.
// Of many of a kind the last counts the rest.
func (r *Report) Alarms() []string {
	return append(someOf(r.mismatches()), someOf(r.disagreements())...)
}

// Remark is a sentence with the word that stands before it.
type Remark struct{ Word, Text string }

// LabelsNote says what the rates of Summary are of; ChecksNote what the counts of Checks are of.
const (
	LabelsNote = labelsNote
	ChecksNote = checksNote
)
