package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	authv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"tare/internal/clock"
	"tare/internal/proc"
)

// pluginTime bounds one run of a plugin. client-go's own runner has no bound and no context: a plugin that waits for an
// unattended login would block a run indefinitely.
const pluginTime = time.Minute

// mostCredential bounds a plugin's output, in bytes.
const mostCredential = 1 << 20

// A plugin is the credential program that a kubeconfig names (client.authentication.k8s.io), and its latest output.
type plugin struct {
	exec  *api.ExecConfig
	info  string // KUBERNETES_EXEC_INFO
	clock clock.Clock
	turn  chan struct{} // held by the one process of the program

	mu  sync.Mutex
	now credential
}

// credential is the output of a plugin.
type credential struct {
	token string
	pair  *tls.Certificate
	cert  []byte
	key   []byte
	until time.Time // zero: until the server rejects it
}

func newPlugin(c *rest.Config, clk clock.Clock) (*plugin, error) {
	e := c.ExecProvider
	if e.InteractiveMode == api.AlwaysExecInteractiveMode {
		return nil, fmt.Errorf("its exec plugin %q wants a terminal (interactiveMode: Always): log in first, and use a "+
			"context that needs none", e.Command)
	}
	p := &plugin{exec: e, clock: clk, turn: make(chan struct{}, 1)}
	if p.clock == nil {
		p.clock = clock.System{}
	}
	in := authv1.ExecCredential{TypeMeta: metav1.TypeMeta{APIVersion: e.APIVersion, Kind: "ExecCredential"}}
	if e.ProvideClusterInfo {
		in.Spec.Cluster = &authv1.Cluster{
			Server: c.Host, TLSServerName: c.ServerName, InsecureSkipTLSVerify: c.Insecure, CertificateAuthorityData: c.CAData,
			DisableCompression: c.DisableCompression,
		}
		if known, ok := e.Config.(*runtime.Unknown); ok {
			in.Spec.Cluster.Config.Raw = known.Raw
		}
	}
	text, err := json.Marshal(in)
	if err != nil {
		return nil, errors.New("the input of its exec plugin cannot be encoded as JSON")
	}
	p.info = string(text)
	return p, nil
}

// into requests credentials and adds the certificate to c. Tokens are added to each request instead, as they expire.
func (p *plugin) into(ctx context.Context, c *rest.Config) error {
	now, err := p.fresh(ctx)
	if err != nil {
		return err
	}
	c.ExecProvider = nil
	if now.pair != nil {
		c.CertData, c.KeyData, c.CertFile, c.KeyFile = now.cert, now.key, "", ""
	}
	return nil
}

// wrap adds the current token to requests.
func (p *plugin) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		now, err := p.fresh(r.Context())
		if err != nil {
			return nil, err
		}
		if now.token != "" && r.Header.Get("Authorization") == "" {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+now.token)
		}
		res, err := next.RoundTrip(r)
		if err == nil && res.StatusCode == http.StatusUnauthorized {
			p.refused(now)
		}
		return res, err
	})
}

// refused makes the next request run the plugin again, unless another has done so already.
func (p *plugin) refused(c credential) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.token == c.token && p.now.pair == c.pair {
		p.now = credential{}
	}
}

func (p *plugin) current() (credential, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ok := (p.now.token != "" || p.now.pair != nil) && (p.now.until.IsZero() || p.clock.Now().Before(p.now.until))
	return p.now, ok
}

// fresh returns a credential that has not expired.
func (p *plugin) fresh(ctx context.Context) (credential, error) {
	if now, ok := p.current(); ok {
		return now, nil
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return credential{}, ctx.Err()
	}
	defer func() { <-p.turn }()
	if now, ok := p.current(); ok {
		return now, nil // another request has renewed it meanwhile
	}
	now, err := p.run(ctx)
	if err != nil {
		return credential{}, fmt.Errorf("exec plugin %q: %w", p.exec.Command, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
	return now, nil
}

// hasCertificate reports whether the plugin authenticates by a certificate.
func (p *plugin) hasCertificate() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now.pair != nil
}

// certificate implements tls.Config.GetClientCertificate.
func (p *plugin) certificate(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	now, err := p.fresh(r.Context())
	if err != nil {
		return nil, err
	}
	if now.pair == nil {
		return &tls.Certificate{}, nil
	}
	return now.pair, nil
}

// run runs the program once. It discards standard error, which may hold secrets.
func (p *plugin) run(ctx context.Context) (credential, error) {
	ctx, cancel := context.WithTimeout(ctx, pluginTime)
	defer cancel()
	out := &limited{left: mostCredential}
	cmd := proc.Command(ctx, p.exec.Command, p.exec.Args...)
	cmd.Stdout = out
	cmd.Env = os.Environ()
	for _, v := range p.exec.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Env = append(cmd.Env, "KUBERNETES_EXEC_INFO="+p.info)
	err := cmd.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return credential{}, fmt.Errorf("it gave no credentials in time: %w", context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return credential{}, errors.New("it is not on the PATH: install it, or write its whole path into the kubeconfig")
	case errors.As(err, &ended):
		return credential{}, fmt.Errorf("it ended with %s: run kubectl with the same context to see its words",
			ended.ProcessState)
	case err != nil:
		return credential{}, fmt.Errorf("start it: %w", err)
	}
	return parseCredential(out.text.Bytes(), p.exec.APIVersion)
}

// parseCredential parses a plugin's output. Its errors quote nothing of it.
func parseCredential(text []byte, version string) (credential, error) {
	var said authv1.ExecCredential // v1beta1 has the same fields
	if err := json.Unmarshal(text, &said); err != nil {
		return credential{}, errors.New("what it printed is not an ExecCredential in JSON")
	}
	if said.Kind != "ExecCredential" || said.APIVersion != version {
		return credential{}, fmt.Errorf("what it printed is not an ExecCredential of %s, as the kubeconfig says",
			clean(version))
	}
	if said.Status == nil {
		return credential{}, errors.New("it printed no status, so no credentials")
	}
	c := credential{token: said.Status.Token}
	if said.Status.ExpirationTimestamp != nil {
		c.until = said.Status.ExpirationTimestamp.Time
	}
	cert, key := said.Status.ClientCertificateData, said.Status.ClientKeyData
	if (cert == "") != (key == "") {
		return credential{}, errors.New("it printed a client certificate without its key, or the other way around")
	}
	if cert != "" {
		pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
		if err != nil {
			return credential{}, errors.New("the client certificate and the key that it printed do not belong together, or " +
				"are not PEM")
		}
		c.pair, c.cert, c.key = &pair, []byte(cert), []byte(key)
	}
	if c.token == "" && c.pair == nil {
		return credential{}, errors.New("it printed neither a token nor a client certificate")
	}
	return c, nil
}

// limited keeps what is written up to a length, and then fails.
type limited struct {
	text bytes.Buffer // not embedded: io.Copy would use its ReadFrom instead of Write
	left int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errors.New("it says too much")
	}
	return l.text.Write(p)
}
