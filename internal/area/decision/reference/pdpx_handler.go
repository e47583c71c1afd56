package reference

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
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

// An errorResponse is how ONAP says that a request failed.
type errorResponse struct {
	ResponseCode   string   `json:"responseCode"` // the status in words: BAD_REQUEST
	ErrorMessage   string   `json:"errorMessage"`
	ErrorDetails   []string `json:"errorDetails"`
	WarningDetails []string `json:"warningDetails"`
}

func (p *pdpx) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pdpxBase+"/healthcheck", p.healthcheck)
	mux.HandleFunc("GET "+pdpxBase+"/statistics", func(w http.ResponseWriter, _ *http.Request) {
		writePDPX(w, p.statistics())
	})
	mux.HandleFunc("POST "+pdpxBase+"/decision", p.whenReady(p.posted("application/json", p.decision)))
	mux.HandleFunc("POST "+pdpxBase+"/xacml", p.whenReady(p.posted(xacmlJSON, p.native)))
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
			writeError(w, http.StatusUnauthorized, "wrong user name or password")
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
				p.refuse(w, http.StatusUnsupportedMediaType, "the request must be "+media)
				return
			}
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			p.refuse(w, http.StatusRequestEntityTooLarge, err.Error())
			return
		}
		if err != nil {
			p.refuse(w, http.StatusBadRequest, err.Error())
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

// refuse counts an error and answers with it.
func (p *pdpx) refuse(w http.ResponseWriter, status int, message string) {
	p.counts.errors.Add(1)
	writeError(w, status, message)
}

func writeError(w http.ResponseWriter, status int, message string) {
	code := strings.ReplaceAll(strings.ToUpper(http.StatusText(status)), " ", "_")
	body, err := json.Marshal(errorResponse{code, message, []string{}, []string{}})
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"responseCode":"INTERNAL_SERVER_ERROR"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that has gone away is its own concern
}

func writePDPX(w http.ResponseWriter, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		writeError(w, http.StatusInternalServerError, err.Error())
		return
	}
	writeBytes(w, "application/json", body)
}

func writeBytes(w http.ResponseWriter, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	_, _ = w.Write(body) // a caller that has gone away is its own concern
}
