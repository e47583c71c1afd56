package reference

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

const (
	// requestIDHeader goes back as it came, or with a new UUID.
	requestIDHeader = "X-Onap-Requestid"
	xacmlJSON       = "application/xacml+json"
)

// An errorResponse is how ONAP's decision provider says that a request failed.
type errorResponse struct {
	Code    string   `json:"code"` // the status in words: BAD_REQUEST
	Error   string   `json:"error"`
	Details []string `json:"details"`
}

// requestFailed is what the servlet container says when ONAP's own code has thrown.
const requestFailed = "Request failed."

// A parseError is how a body that is no JSON is answered; it is not counted.
type parseError struct {
	Details string `json:"errorDetails"`
}

func (p *pdpx) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pdpxBase+"/healthcheck", p.healthcheck)
	mux.HandleFunc("GET "+pdpxBase+"/statistics", func(w http.ResponseWriter, _ *http.Request) {
		writePDPX(w, p.statistics())
	})
	mux.HandleFunc("POST "+pdpxBase+"/decision", p.whenReady(p.posted("application/json", p.decision)))
	mux.HandleFunc("POST "+pdpxBase+"/xacml", p.whenReady(p.posted(xacmlJSON, p.native)))
	for _, path := range []string{"/healthcheck", "/statistics", "/decision", "/xacml"} {
		mux.HandleFunc(pdpxBase+path, func(w http.ResponseWriter, r *http.Request) {
			writeContainerError(w, r, http.StatusMethodNotAllowed, "")
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeContainerError(w, r, http.StatusNotFound, "")
	})
	return p.authenticated(mux)
}

// authenticated lets only callers in that know the credentials, where there are any, and names each answer.
func (p *pdpx) authenticated(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(p.username + "\x00" + p.password))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth()
		got := sha256.Sum256([]byte(name + "\x00" + password))
		if p.username+p.password != "" && subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="`+strings.TrimPrefix(p.name, "xacml-")+`"`)
			writeContainerError(w, r, http.StatusUnauthorized, "")
			return
		}
		id := r.Header.Get(requestIDHeader)
		if id == "" {
			id = newUUID()
		}
		h := w.Header()
		h[requestIDHeader] = []string{id}
		h["X-Minorversion"], h["X-Patchversion"], h["X-Latestversion"] = []string{"0"}, []string{"0"}, []string{"1.0.0"}
		next.ServeHTTP(w, r)
	})
}

func (p *pdpx) whenReady(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p.clock.Now().Before(p.readyAt) {
			w.WriteHeader(http.StatusConflict)
			return
		}
		next(w, r)
	}
}

// posted reads a body of the wanted type and of a bounded size.
func (p *pdpx) posted(media string, next func(w http.ResponseWriter, r *http.Request, body []byte)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if t := r.Header.Get("Content-Type"); t != "" {
			if got, _, err := mime.ParseMediaType(t); err != nil || got != media {
				writeContainerError(w, r, http.StatusUnsupportedMediaType, "")
				return
			}
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			writeContainerError(w, r, http.StatusRequestEntityTooLarge, "")
			return
		}
		if err != nil {
			writeContainerError(w, r, http.StatusBadRequest, "")
			return
		}
		next(w, r, body)
	}
}

func (p *pdpx) healthcheck(w http.ResponseWriter, _ *http.Request) {
	writePDPX(w, struct {
		Name    string `json:"name"`
		URL     string `json:"url"`
		Healthy bool   `json:"healthy"`
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{p.name, "self", true, 200, "alive"})
}

// refuse counts an error and answers with it, as ONAP's decision provider does.
func (p *pdpx) refuse(w http.ResponseWriter, message string) {
	p.counts.errors.Add(1)
	writeJSON(w, http.StatusBadRequest, errorResponse{"BAD_REQUEST", message, []string{message}})
}

// writeContainerError answers as the servlet container (Jetty 12) does callers that accept JSON: the request did not
// come to ONAP's own code, or that has thrown, and it is not counted.
func writeContainerError(w http.ResponseWriter, r *http.Request, status int, message string) {
	url, _ := json.Marshal("http://" + r.Host + r.URL.Path) // it cannot fail: this is a text
	writeStatus(w, status, fmt.Appendf(nil, "{\n\"message\":%q,\n\"url\":%s,\n\"status\":\"%d\"\n}",
		cmp.Or(message, http.StatusText(status)), url, status))
}

func writePDPX(w http.ResponseWriter, answer any) { writeJSON(w, http.StatusOK, answer) }

func writeJSON(w http.ResponseWriter, status int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil { // it cannot be: these are texts and numbers
		status, body = http.StatusInternalServerError, nil
	}
	writeStatus(w, status, body)
}

func writeStatus(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that has gone away is its own concern
}

func writeBytes(w http.ResponseWriter, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	_, _ = w.Write(body) // a caller that has gone away is its own concern
}
