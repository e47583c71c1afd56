package decision

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"tare/areas/bundle"
	"tare/areas/decision/cedarset"
	"tare/areas/decision/engine"
	"tare/areas/decision/fga"
	"tare/areas/decision/replica"
)

// mostRequests bounds the questions of an experiment, as the schema does.
const mostRequests = 200

// expectations are the decisions that folders of requests are named after.
var expectations = map[string]string{"allow": "permit", "permit": "permit", "deny": "deny"}

// bodies make requests of what files hold, by the adapter.
var bodies = map[string]func([]byte) (json.RawMessage, error){
	"authzen": cedarset.AuthZEN,
	"opa":     inputOf,
	"openfga": checkOf,
	"xacml":   xacmlRequest,
}

// checkOf takes the body of a check of OpenFGA as it is.
func checkOf(text []byte) (json.RawMessage, error) {
	var check struct {
		Key struct{ User, Relation, Object string } `json:"tuple_key"`
	}
	if err := json.Unmarshal(text, &check); err != nil {
		return nil, err
	}
	if check.Key.User == "" || check.Key.Relation == "" || check.Key.Object == "" {
		return nil, errors.New(`it is no check of OpenFGA: want "tuple_key" with user, relation and object`)
	}
	return text, nil
}

// xacmlRequest takes a request of the JSON profile of XACML as it is.
func xacmlRequest(text []byte) (json.RawMessage, error) {
	var request struct{ Request map[string]json.RawMessage }
	if err := json.Unmarshal(text, &request); err != nil {
		return nil, err
	}
	if len(request.Request) == 0 {
		return nil, errors.New(`it holds no "Request" of the JSON profile of XACML 3.0`)
	}
	return text, nil
}

// inputOf makes a request for OPA of an input document.
func inputOf(text []byte) (json.RawMessage, error) {
	var input json.RawMessage
	if err := json.Unmarshal(text, &input); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]json.RawMessage{"input": input})
}

// readRequests reads the questions of a folder: those in its folder ALLOW must be permitted, and those in DENY denied.
func readRequests(from, adapter string) ([]Request, error) {
	if adapter == engine.OpenFGA.Adapter() && fga.IsStore(from) {
		return checksOf(from)
	}
	body := bodies[adapter]
	if body == nil {
		return nil, fmt.Errorf("files can hold requests for %s, not for %s",
			strings.Join(slices.Sorted(maps.Keys(bodies)), ", "), adapter)
	}
	var out []Request
	err := bundle.Each(from, func(name string, text []byte) error {
		expect := expectations[strings.ToLower(path.Base(path.Dir(name)))]
		if expect == "" {
			return nil
		}
		at := filepath.Join(from, name)
		all, err := documents(name, text, adapter)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		for _, document := range all {
			if len(out) == mostRequests {
				return fmt.Errorf("%s holds more than %d requests", from, mostRequests)
			}
			is, err := body(document)
			if err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			out = append(out, Request{Name: requestName(name, out), Body: string(is), Expect: expect})
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("there is no request in %s: those that must be permitted are ALLOW/*.json in it, and those that "+
			"must be denied DENY/*.json", from)
	}
	return out, err
}

// documents are those of a file that can be requests, in JSON: one, and of OPA's inputs also each document of YAML, as
// OPA and Conftest read it.
func documents(name string, text []byte, adapter string) (out [][]byte, err error) {
	switch path.Ext(name) {
	case ".json":
		return [][]byte{text}, nil
	case ".yaml", ".yml":
	default:
		return nil, nil
	}
	if adapter != engine.OPA.Adapter() {
		return nil, nil
	}
	if len(text) > replica.MostYAML {
		return nil, fmt.Errorf("more than %d MiB of YAML: write it as JSON", replica.MostYAML>>20)
	}
	in := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		one, err := in.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err == nil {
			one, err = replica.JSON(one)
		}
		if err != nil {
			return nil, err
		}
		if string(one) != "null" { // nothing stands between two separators
			out = append(out, one)
		}
	}
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// requestName is the name of a request: that of its file, with its folder where another has it.
func requestName(file string, others []Request) string {
	name := strings.TrimSuffix(path.Base(file), path.Ext(file))
	return nameOf(name, "-"+strings.ToLower(path.Base(path.Dir(file))), others)
}

// nameOf makes a request's name of a text, with an end where another request has that.
func nameOf(text, end string, others []Request) string {
	const most = 64
	name := strings.Trim(notInNames.ReplaceAllString(text, "-"), "_-")
	if name == "" {
		name = "request"
	}
	name = strings.TrimRight(name[:min(len(name), most)], "_-")
	taken := func(n string) bool {
		return slices.ContainsFunc(others, func(r Request) bool { return r.Name == n })
	}
	for i, base := 2, name; taken(name); end = "" {
		if end == "" {
			end = fmt.Sprint("-", i)
			i++
		}
		name = base[:min(len(base), most-len(end))] + end
	}
	return name
}
