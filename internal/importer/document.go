package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// document decodes a file that is one JSON value and hands it to use.
func document[T any](p *parser, src io.Reader, use func(*T) error) error {
	b, err := io.ReadAll(&bounded{src: src, left: maxDocument})
	if err != nil {
		return fmt.Errorf("read %s: %w", p.file, err)
	}
	b = bytes.TrimPrefix(b, utf8Mark)
	if err := p.countParts(b); err != nil {
		return err
	}
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return p.jsonError(b, err)
	}
	return use(&v)
}

// mostParts are how many of each a document may have: an empty object takes three bytes in a file, and a hundred times
// as much in memory. They are counted in texts as well.
var mostParts = []struct {
	sign byte
	most int
	what string
}{{'{', 200_000, "objects"}, {':', 1_000_000, "fields"}, {',', 10_000_000, "values"}}

func (p *parser) countParts(b []byte) error {
	for _, x := range mostParts {
		if n := bytes.Count(b, []byte{x.sign}); n > x.most {
			return p.finding(1, "import a part of it", "it has %d %s, and %d can be imported", n, x.what, x.most)
		}
	}
	return nil
}

// jsonError says on which line a document is malformed.
func (p *parser) jsonError(b []byte, err error) error {
	at := int64(len(b))
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &typed):
		at = typed.Offset
	}
	at = min(max(at, 0), int64(len(b)))
	line := 1 + bytes.Count(b[:at], []byte("\n"))
	next := "write the file again with " + producers[p.data.Format]
	if at == int64(len(b)) {
		next = "it seems cut off: " + next
	}
	return p.finding(line, next, "this is not what %s writes: %v", p.data.Format, err)
}

// producers say how a file of a format is made.
var producers = map[Format]string{
	GoBench:       "go test -bench . -count 10",
	Hyperfine:     "hyperfine --export-json FILE",
	K6:            "k6 run --out json=FILE",
	K6Summary:     "k6 run --summary-export FILE",
	Vegeta:        "vegeta encode --to json",
	VegetaSummary: "vegeta report -type=json",
	JMH:           "java -jar benchmarks.jar -rf json",
	JMeter:        "jmeter -n -t PLAN -l FILE",
}

// good reports whether v can be a time or another amount.
func good(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }
