package driver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A Failure is a driver's report that it could not do what it was asked. The driver keeps running.
type Failure struct {
	Do   string // the request
	Said string
	Next string // what the person can do; may be empty
}

// Error implements error.
func (f *Failure) Error() string {
	if f.Next != "" {
		return fmt.Sprintf("it cannot %s: %s; %s", f.Do, f.Said, f.Next)
	}
	return fmt.Sprintf("it cannot %s: %s", f.Do, f.Said)
}

// quoted bounds the part of a malformed answer that an error quotes, in bytes.
const quoted = 120

func quote(line []byte) string {
	if len(line) > quoted {
		return fmt.Sprintf("%q…", line[:quoted])
	}
	return fmt.Sprintf("%q", line)
}

// parseAnswer parses a line, without its end, that answers request r. The error is a *Failure where the driver reports
// one, and otherwise says what is wrong with the answer.
func parseAnswer(line []byte, r Request) (json.RawMessage, error) {
	var a struct {
		ID    *uint64         `json:"id"`
		OK    json.RawMessage `json:"ok"`
		Error *string         `json:"error"`
		Next  string          `json:"next"`
	}
	if err := strictly(line, &a); err != nil {
		return nil, fmt.Errorf("its answer to %s is not one: it said %s, where {\"id\":%d,\"ok\":…} or "+
			"{\"id\":%d,\"error\":\"…\"} was expected (%w%s); "+
			"print to stderr, stdout is for answers", r.Do, quote(line), r.ID, r.ID, err, noNumber(line))
	}
	switch {
	case a.ID == nil:
		return nil, fmt.Errorf("its answer to %s has no id: it said %s; %d was asked", r.Do, quote(line), r.ID)
	case *a.ID != r.ID:
		return nil, fmt.Errorf("it answered request %d where %s, request %d, was asked: it said %s; each request has one "+
			"answer, which carries its id", *a.ID, r.Do,
			r.ID, quote(line))
	case a.OK != nil && a.Error != nil:
		return nil, fmt.Errorf("its answer to %s holds ok and error: it said %s; an answer holds one of the two",
			r.Do, quote(line))
	case a.Error != nil && *a.Error == "":
		return nil, fmt.Errorf("its answer to %s holds an error without words: it said %s", r.Do, quote(line))
	case a.Error != nil:
		return nil, &Failure{Do: r.Do, Said: *a.Error, Next: a.Next}
	case a.OK == nil:
		return nil, fmt.Errorf("its answer to %s holds neither ok nor error: it said %s; {\"id\":%d,\"ok\":{}} is the least",
			r.Do, quote(line), r.ID)
	}
	return a.OK, nil
}

// strictly decodes the whole of text. It rejects unknown names: a misspelt one would be a missing value.
func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("an empty line")
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows it on the same line")
	}
	return nil
}

// noNumber explains the words that some languages print for numbers that JSON lacks.
func noNumber(line []byte) string {
	for _, word := range []string{"NaN", "Infinity"} {
		if bytes.Contains(line, []byte(word)) {
			return ", and JSON has no " + word
		}
	}
	return ""
}

// decode parses the content of an answer.
func decode(do string, ok json.RawMessage, into any) error {
	if err := strictly(ok, into); err != nil {
		return fmt.Errorf("its answer to %s cannot be read (%w): it said %s", do, err, quote(ok))
	}
	return nil
}
