package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"tare/areas/decision/model"
)

// The messages of envoy.service.auth.v3, as far as they are used: external_auth.proto and attribute_context.proto of
// Envoy's data-plane API. They are written by hand because Envoy's generated types bring in a hundred packages for
// eleven fields.

// An attributeContext is how Envoy describes a request. Its JSON form is that of Envoy's messages, so that a file can
// hold a complete one.
type attributeContext struct {
	Source            authPeer          `json:"source,omitzero"`
	Destination       authPeer          `json:"destination,omitzero"`
	Request           authRequest       `json:"request,omitzero"`
	ContextExtensions map[string]string `json:"contextExtensions,omitempty"`
}

type authPeer struct {
	Service   string            `json:"service,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Principal string            `json:"principal,omitempty"`
}

type authRequest struct {
	HTTP authHTTP `json:"http,omitzero"`
}

type authHTTP struct {
	ID       string            `json:"id,omitempty"`
	Method   string            `json:"method,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Path     string            `json:"path,omitempty"`
	Host     string            `json:"host,omitempty"`
	Scheme   string            `json:"scheme,omitempty"`
	Query    string            `json:"query,omitempty"`
	Fragment string            `json:"fragment,omitempty"`
	Size     int64             `json:"size,omitempty"`
	Protocol string            `json:"protocol,omitempty"`
	Body     string            `json:"body,omitempty"`
}

// checkRequest returns a question as a CheckRequest.
func checkRequest(s *Session, q model.Question) ([]byte, error) {
	if len(q.Body) == 0 {
		return protoMessage(nil, 1, attributesOf(s, q).proto()), nil
	}
	a, err := readAttributes(q.Body)
	if err != nil {
		return nil, fmt.Errorf("requests: the body of %q %w", q.Name, err)
	}
	return protoMessage(nil, 1, a.proto()), nil
}

// readAttributes reads {"attributes": {…}}. What it does not know is an error: it would not be sent.
func readAttributes(body json.RawMessage) (attributeContext, error) {
	var doc struct {
		Attributes *attributeContext `json:"attributes"`
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return attributeContext{}, fmt.Errorf("is no CheckRequest: %w", err)
	}
	if doc.Attributes == nil {
		return attributeContext{}, errors.New("is no CheckRequest: it has no attributes")
	}
	return *doc.Attributes, nil
}

// attributesOf returns a question as Envoy would tell it: the subject is the principal of the source, the resource the
// path, the action the method; all of them, and the properties, are headers too, because policies look there. The
// question's context are the context extensions.
func attributesOf(s *Session, q model.Question) attributeContext {
	headers := map[string]string{}
	add := func(prefix string, e model.Entity) {
		for name, value := range e.Properties {
			headers[headerName(name)] = value
		}
		headers["x-"+prefix], headers["x-"+prefix+"-type"] = e.ID, e.Type
	}
	add("resource", q.Resource)
	add("subject", q.Subject)
	headers["x-action"] = q.Action
	maps.DeleteFunc(headers, func(_, value string) bool { return value == "" })
	path := (&url.URL{Path: "/" + strings.TrimPrefix(q.Resource.ID, "/")}).EscapedPath()
	return attributeContext{
		Source: authPeer{Principal: q.Subject.ID},
		Request: authRequest{authHTTP{
			Method: methodOf(q.Action), Path: path, Host: s.Host, Scheme: "http", Protocol: "HTTP/1.1", Headers: headers,
		}},
		ContextExtensions: q.Context,
	}
}

// headerName returns a property as a header.
func headerName(property string) string {
	return "x-" + strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, strings.ToLower(property))
}

// methodOf returns an action as an HTTP method: the verbs of the field have one, a method is its own, and the rest is
// done with POST.
func methodOf(action string) string {
	switch strings.ToLower(action) {
	case "read", "get", "list", "view", "watch":
		return http.MethodGet
	case "update", "put", "replace":
		return http.MethodPut
	case "patch":
		return http.MethodPatch
	case "delete", "remove":
		return http.MethodDelete
	case "head":
		return http.MethodHead
	}
	return http.MethodPost
}

// proto writes fields source 1, destination 2, request 4 and context_extensions 10.
func (a attributeContext) proto() []byte {
	b := a.Source.proto(nil, 1)
	b = a.Destination.proto(b, 2)
	if h := a.Request.HTTP.proto(); len(h) > 0 {
		b = protoMessage(b, 4, protoMessage(nil, 2, h)) // the request's time (1) is left out
	}
	return protoMap(b, 10, a.ContextExtensions)
}

// proto writes fields service 2, labels 3 and principal 4 as message num.
func (p authPeer) proto(b []byte, num protowire.Number) []byte {
	var m []byte
	m = protoText(m, 2, p.Service)
	m = protoMap(m, 3, p.Labels)
	if m = protoText(m, 4, p.Principal); len(m) == 0 {
		return b
	}
	return protoMessage(b, num, m)
}

func (h authHTTP) proto() []byte {
	var b []byte
	b = protoText(b, 1, h.ID)
	b = protoText(b, 2, h.Method)
	b = protoMap(b, 3, h.Headers)
	b = protoText(b, 4, h.Path)
	b = protoText(b, 5, h.Host)
	b = protoText(b, 6, h.Scheme)
	b = protoText(b, 7, h.Query)
	b = protoText(b, 8, h.Fragment)
	if h.Size != 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, 9, protowire.VarintType), uint64(h.Size))
	}
	b = protoText(b, 10, h.Protocol)
	return protoText(b, 11, h.Body)
}

// protoText appends a string field; proto3 leaves out what is empty.
func protoText(b []byte, num protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), text)
}

func protoMessage(b []byte, num protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), message)
}

// protoMap appends a map<string, string>, sorted by key.
func protoMap(b []byte, num protowire.Number, m map[string]string) []byte {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		// An entry has both fields, also where they are empty.
		entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
		entry = protowire.AppendString(protowire.AppendTag(entry, 2, protowire.BytesType), m[key])
		b = protoMessage(b, num, entry)
	}
	return b
}

// A checkResponse is what is read of a CheckResponse.
type checkResponse struct {
	code    int32  // status.code, a gRPC code
	message []byte // status.message
	denied  int32  // denied_response.status.code, an HTTP status; 0: there is none
}

// readCheckResponse reads fields status 1 and denied_response 2. Others are passed over, but must be well-formed. It
// does not allocate.
func readCheckResponse(b []byte) (checkResponse, bool) {
	var r checkResponse
	ok := protoFields(b, func(f protoField) bool {
		if f.num == 1 {
			return f.kind == protowire.BytesType && r.readStatus(f.bytes)
		}
		return f.num != 2 || f.kind == protowire.BytesType && r.readDenied(f.bytes)
	})
	return r, ok
}

// readStatus reads fields code 1 and message 2 of google.rpc.Status.
func (r *checkResponse) readStatus(b []byte) bool {
	return protoFields(b, func(f protoField) bool {
		if f.num == 1 {
			r.code = int32(f.varint)
			return f.kind == protowire.VarintType
		}
		if f.num == 2 {
			r.message = f.bytes
			return f.kind == protowire.BytesType
		}
		return true
	})
}

// readDenied reads field status 1 of DeniedHttpResponse, and of it field code 1.
func (r *checkResponse) readDenied(b []byte) bool {
	return protoFields(b, func(f protoField) bool {
		return f.num != 1 || f.kind == protowire.BytesType && protoFields(f.bytes, func(f protoField) bool {
			if f.num != 1 {
				return true
			}
			r.denied = int32(f.varint)
			return f.kind == protowire.VarintType
		})
	})
}

// A protoField is a field of a message: a varint's value, or the bytes of a text or message.
type protoField struct {
	num    protowire.Number
	kind   protowire.Type
	varint uint64
	bytes  []byte
}

// protoFields hands the fields of a message to each, until each returns false. It reports whether all were well-formed
// and taken.
func protoFields(b []byte, each func(protoField) bool) bool {
	for len(b) > 0 {
		var f protoField
		var n int
		if f.num, f.kind, n = protowire.ConsumeTag(b); n < 0 {
			return false
		}
		b = b[n:]
		switch f.kind { //nolint:exhaustive // the others are passed over
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(f.num, f.kind, b)
		}
		if n < 0 || !each(f) {
			return false
		}
		b = b[n:]
	}
	return true
}
