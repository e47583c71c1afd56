package identity

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/kit"
)

// writeRequest is area.Adapter.Request of http-token.
func writeRequest(r area.Request) (string, error) {
	var out strings.Builder
	if r.ByStatus {
		out.WriteString("    status_only: true   # a call is good by its status 200, whatever the body is\n")
	}
	if err := checkMethod(r); err != nil {
		return "", err
	}
	body, files, err := joinBody(r.Body)
	if err != nil {
		return "", err
	}
	if len(r.Body) > 0 && r.Method == "" && body == "" {
		r.Method = http.MethodPost // as with any other body
	}
	if r.Method != "" {
		fmt.Fprintf(&out, "    method: %s\n", kit.Quote(r.Method))
	}
	if body != "" {
		fmt.Fprintf(&out, "    body: %s\n", kit.Quote(body))
	}
	if len(files) > 0 {
		fmt.Fprintf(&out, "    files: {%s}\n", strings.Join(files, ", "))
	}
	if !r.Bearer.IsZero() {
		fmt.Fprintf(&out, "    bearer: %s\n", kit.QuoteSecret(r.Bearer))
	}
	if out.Len() == 0 {
		return "", nil
	}
	return "  http:\n" + out.String(), nil
}

// checkMethod rejects methods that http-token does not send.
func checkMethod(r area.Request) error {
	methods := httpMethods()
	switch {
	case r.Method == "":
		return nil
	case !slices.Contains(methods, r.Method):
		return area.Usage("-X %.20q: tare sends %s", r.Method, strings.Join(methods, ", "))
	case r.Method == http.MethodGet && len(r.Body) > 0:
		return area.Usage("-X GET: tare sends no body with GET; leave out -X, which means POST, or name another method")
	}
	return nil
}

// httpMethods are the methods that the option http.method may name.
func httpMethods() (methods []string) {
	field, _ := reflect.TypeFor[HTTP]().FieldByName("Method")
	for rule := range strings.SplitSeq(field.Tag.Get("jsonschema"), ",") {
		if method, ok := strings.CutPrefix(rule, "enum="); ok {
			methods = append(methods, method)
		}
	}
	return methods
}

// joinBody joins the parts of a body by "&", and returns the entries of http.files for the files among them.
func joinBody(parts []area.BodyPart) (body string, files []string, err error) {
	isUsed := func(name string) bool {
		return slices.ContainsFunc(parts, func(p area.BodyPart) bool { return strings.Contains(p.Text, "{"+name+"}") })
	}
	var texts []string
	for _, p := range parts {
		if p.File == "" {
			texts = append(texts, p.Text)
			continue
		}
		name := fmt.Sprintf("data%d", len(files)+1)
		for isUsed(name) {
			name += "_"
		}
		texts = append(texts, "{"+name+"}")
		files = append(files, name+": "+kit.Quote(p.File))
	}
	body = strings.Join(texts, "&")
	if name, found := bodySecret(body); found {
		return "", nil, area.Usage("-d: the value of %q looks like a secret, which would be copied into the record; write "+
			"the body to a file, whose content is not copied: -d @FILE", name)
	}
	return body, files, nil
}
