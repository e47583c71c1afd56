package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"tare/areas/admission/mechanism"
)

const (
	reviewVersion = "admission.k8s.io/v1"
	reviewKind    = "AdmissionReview"
	mostUID       = 128 // bytes
)

// review holds the parts of an AdmissionReview that the webhook needs. Source: k8s.io/api/admission/v1.
type review struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Request    *request `json:"request"`
}

type request struct {
	UID    string `json:"uid"`
	Object struct {
		Metadata struct {
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	} `json:"object"`
}

type answer struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Response   response `json:"response"`
}

type response struct {
	UID       string  `json:"uid"`
	Allowed   bool    `json:"allowed"`
	Status    *status `json:"status,omitempty"`
	PatchType string  `json:"patchType,omitempty"`
	Patch     []byte  `json:"patch,omitempty"` // a JSON Patch, which encoding/json encodes in base64, as required
}

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// parse parses an AdmissionReview of version v1 with a request in it.
func parse(body []byte) (*request, error) {
	var r review
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("not an AdmissionReview: %w", err)
	}
	switch {
	case r.APIVersion != reviewVersion || r.Kind != reviewKind:
		return nil, fmt.Errorf("want %s of %s, got %q of %q", reviewKind, reviewVersion, r.Kind, r.APIVersion)
	case r.Request == nil:
		return nil, errors.New("the AdmissionReview has no request")
	case r.Request.UID == "" || len(r.Request.UID) > mostUID:
		return nil, errors.New("the request has no uid")
	}
	return r.Request, nil
}

// policy returns the short name of the policy that a path stands for, and whether it mutates; ok is false for other
// paths.
func policy(path string) (short string, mutates, ok bool) {
	short, ok = strings.CutPrefix(path, mechanism.ValidatePath)
	if !ok {
		short, ok = strings.CutPrefix(path, mechanism.MutatePath)
		mutates = ok
	}
	return short, mutates, ok && plain(short)
}

// plain reports whether name consists of letters, digits and dashes, and can be the value of a label.
func plain(name string) bool {
	if name == "" || len(name) > 63 {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// decide answers a request as the policy of this name would.
func decide(r *request, short string, mutates bool) ([]byte, error) {
	out := answer{APIVersion: reviewVersion, Kind: reviewKind, Response: response{UID: r.UID, Allowed: true}}
	switch asked := r.Object.Metadata.Labels[mechanism.DenyLabel]; {
	case asked != "" && (asked == short || asked == mechanism.DenyAll):
		out.Response.Allowed = false
		out.Response.Status = &status{Code: http.StatusForbidden, Message: "denied by " + short}
	case mutates:
		patch, err := json.Marshal([]operation{mark(r.Object.Metadata.Annotations)})
		if err != nil {
			return nil, err
		}
		out.Response.PatchType, out.Response.Patch = "JSONPatch", patch
	}
	return json.Marshal(out)
}

// mark adds 1 to the annotation mechanism.MutatedKey; a value that is no number counts as 0. A JSON Patch cannot add to
// a missing map: it then adds the map. Source: RFC 6902, 4.1; RFC 6901, 3.
func mark(have map[string]string) operation {
	count, err := strconv.Atoi(have[mechanism.MutatedKey])
	if err != nil {
		count = 0
	}
	value := strconv.Itoa(count + 1)
	if len(have) == 0 {
		return operation{Op: "add", Path: "/metadata/annotations", Value: map[string]string{mechanism.MutatedKey: value}}
	}
	return operation{Op: "add", Path: "/metadata/annotations/" + escaped.Replace(mechanism.MutatedKey), Value: value}
}

var escaped = strings.NewReplacer("~", "~0", "/", "~1")
