package importer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

var utf8Mark = []byte("\xef\xbb\xbf")

// detect finds the format by the beginning of the content.
func detect(in *bufio.Reader) (Format, error) {
	head, err := in.Peek(maxLine)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return "", err
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, utf8Mark), " \t\r\n")
	switch {
	case len(head) == 0:
		return "", fmt.Errorf("%w: it is empty", ErrEmpty)
	case head[0] == '[':
		return JMH, nil
	case head[0] == '{':
		return detectJSON(head)
	case head[0] == '<':
		return JMeter, nil
	}
	first, _, _ := bytes.Cut(head, []byte("\n"))
	if isJTL(string(first)) {
		return JMeter, nil
	}
	for line := range bytes.Lines(head) {
		if bytes.HasPrefix(line, []byte("Benchmark")) {
			return GoBench, nil
		}
	}
	return "", errors.New("its content is of no tool that can be imported: gobench, hyperfine, k6, vegeta, jmh or " +
		"jmeter; if it is of one of them, name it with --format")
}

// detectJSON tells JSON documents apart by the names of the outermost object.
func detectJSON(head []byte) (Format, error) {
	keys := outerKeys(head)
	has := func(names ...string) bool {
		for _, n := range names {
			if !slices.Contains(keys, n) {
				return false
			}
		}
		return true
	}
	switch {
	case has("results"):
		return Hyperfine, nil
	case has("latencies"):
		return VegetaSummary, nil
	case has("metrics"):
		return K6Summary, nil
	case has("latency", "timestamp"):
		return Vegeta, nil
	case has("type", "metric"):
		return K6, nil
	case has("Action"):
		return "", errors.New("this is the output of 'go test -json'; run 'go test -bench' without -json and import that")
	}
	return "", fmt.Errorf("it is JSON of no tool that can be imported: its names are %s; if it is of one of them, name "+
		"it with --format", strings.Join(keys[:min(len(keys), 10)], ", "))
}

// outerKeys are the names of the first object, as far as the head reaches.
func outerKeys(head []byte) []string {
	d := json.NewDecoder(bytes.NewReader(head))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var keys []string
	for d.More() && len(keys) < 1000 {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			break
		}
		keys = append(keys, key)
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			break
		}
	}
	return keys
}
