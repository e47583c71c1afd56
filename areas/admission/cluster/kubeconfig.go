package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"tare/internal/files"
	"tare/internal/kit"
	"tare/internal/secretfile"
)

// mostKubeconfig bounds the part of a file that is read, in bytes: a context takes about 5 kB with its certificates.
const mostKubeconfig = 8 << 20

// userAgent identifies tare in the server's log.
const userAgent = "tare"

// connection returns how to connect to the cluster of o. The plugin is nil if the credentials are in the kubeconfig.
func connection(ctx context.Context, o Options) (*rest.Config, Location, *plugin, error) {
	switch {
	case o.Kubeconfig != "" && o.Server != "":
		return nil, Location{}, nil, errors.New("a cluster is named by a kubeconfig or by its server, not by both")
	case o.Kubeconfig == "" && o.Server == "":
		return nil, Location{}, nil, errors.New("no cluster is named: a kubeconfig is needed")
	case o.Server != "":
		return ownConnection(o)
	}
	path, err := filepath.Abs(o.Kubeconfig)
	if err != nil {
		return nil, Location{}, nil, err
	}
	file, name, err := readContext(path, o.Context)
	if err != nil {
		return nil, Location{}, nil, err
	}
	err = secretfile.CheckAuthorities(file.Clusters[file.Contexts[name].Cluster].CertificateAuthority)
	for _, x := range credentialFiles(file, name) {
		err = errors.Join(err, secretfile.Check(x))
	}
	if err != nil {
		return nil, Location{}, nil, fmt.Errorf("context %q of %s: %w", name, path, err)
	}
	config, plugin, err := configOf(ctx, file, name, o)
	if err != nil {
		return nil, Location{}, nil, fmt.Errorf("context %q of %s: %w", name, path, err)
	}
	return config, Location{Kubeconfig: path, Context: name, Server: config.Host, CA: hashCA(config.CAData)}, plugin, nil
}

// SecretFiles returns the kubeconfig and the files with a key or a token that a context of it ("": the current one)
// names. It omits what it cannot read: connecting reports that.
func SecretFiles(kubeconfig, context string) []string {
	paths := []string{kubeconfig}
	file, name, err := readContext(kubeconfig, context)
	if err != nil {
		return paths
	}
	return append(paths, credentialFiles(file, name)...)
}

// credentialFiles returns the files with a key or a token that the user of a context names.
func credentialFiles(file *api.Config, name string) (paths []string) {
	user := file.AuthInfos[file.Contexts[name].AuthInfo]
	if user == nil {
		return nil
	}
	for _, path := range []string{user.ClientKey, user.TokenFile} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// Locate reads the location of a context of a kubeconfig ("": the current one), without its credentials: it runs no
// plugin.
func Locate(kubeconfig, context string) (Location, error) {
	path, err := filepath.Abs(kubeconfig)
	if err != nil {
		return Location{}, err
	}
	file, name, err := readContext(path, context)
	if err != nil {
		return Location{}, err
	}
	x := file.Clusters[file.Contexts[name].Cluster]
	c := &rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAFile: x.CertificateAuthority,
		CAData: x.CertificateAuthorityData,
	}}
	if _, err = checkServer(x.Server, false); err == nil {
		err = plain(rest.LoadTLSFiles(c))
	}
	if err != nil {
		return Location{}, fmt.Errorf("context %q of %s: %w", name, path, err)
	}
	return Location{Kubeconfig: path, Context: name, Server: x.Server, CA: hashCA(c.CAData)}, nil
}

// ownConnection connects to an embedded control plane.
func ownConnection(o Options) (*rest.Config, Location, *plugin, error) {
	c := base(&rest.Config{Host: o.Server, BearerToken: o.Token})
	c.CAData = o.CA
	if _, err := checkServer(o.Server, o.Token != ""); err != nil {
		return nil, Location{}, nil, err
	}
	return c, Location{Server: c.Host, CA: hashCA(o.CA)}, nil, nil
}

// base sets what all connections share: no rate limit of client-go's own, no server warnings on standard error, and no
// proxy. The load connects directly, so nothing else may go through a proxy.
func base(c *rest.Config) *rest.Config {
	c.QPS, c.UserAgent = -1, userAgent
	c.WarningHandler = rest.NoWarnings{}
	c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	return c
}

// readContext reads a file and chooses a context of it. If the context's user is known by a program or by other files,
// it refuses a file that another user owns: who writes it decides which program tare starts, and what it takes to the
// server that he names.
func readContext(path, wanted string) (file *api.Config, name string, err error) {
	if err := files.Ends(path, mostKubeconfig); err != nil { // a pipe could be read once only
		return nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	f, err := secretfile.Open(path)
	if err != nil {
		return nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	if file, err = readKubeconfig(f, path); err != nil {
		return nil, "", err
	}
	if name, err = chooseContext(file, path, wanted); err != nil {
		return nil, "", err
	}
	user := file.Contexts[name].AuthInfo
	if does := reachOf(file.AuthInfos[user]); does != "" {
		if err := secretfile.Owned(f); err != nil {
			return nil, "", fmt.Errorf("user %q of %s %s: %w", user, path, does, err)
		}
	}
	return file, name, nil
}

// reachOf says what of this host tare would use for a user of a kubeconfig, beyond that file; "": nothing.
func reachOf(user *api.AuthInfo) string {
	switch {
	case user == nil:
		return ""
	case user.Exec != nil:
		return "has an exec plugin, which tare would start"
	case user.TokenFile != "":
		return "has a tokenFile, which tare would send to the server"
	case user.ClientKey != "" || user.ClientCertificate != "":
		return "has a file with a certificate or its key, as whose owner tare would appear at the server"
	}
	return ""
}

// readKubeconfig parses an open file. Its errors quote nothing of the file.
func readKubeconfig(f *os.File, path string) (*api.Config, error) {
	text, err := io.ReadAll(io.LimitReader(f, mostKubeconfig+1))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	if len(text) > mostKubeconfig {
		return nil, fmt.Errorf("read kubeconfig %s: it is longer than %d bytes", path, mostKubeconfig)
	}
	c, err := parseKubeconfig(text)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	for _, x := range c.Clusters {
		x.LocationOfOrigin = path
	}
	for _, x := range c.AuthInfos {
		x.LocationOfOrigin = path
	}
	if err := clientcmd.ResolveLocalPaths(c); err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	if err := checkEnds(c); err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	return c, nil
}

// checkEnds refuses files that a kubeconfig names and that would be waited for, or read without an end: client-go reads
// them whole.
func checkEnds(c *api.Config) error {
	var named []string
	for _, x := range c.Clusters {
		named = append(named, x.CertificateAuthority)
	}
	for _, x := range c.AuthInfos {
		named = append(named, x.ClientCertificate, x.ClientKey, x.TokenFile)
	}
	var errs []error
	for _, path := range named {
		errs = append(errs, files.Ends(path, mostKubeconfig))
	}
	return errors.Join(errs...)
}

// parseKubeconfig parses the text of a file. Parsers quote what they reject, which may be a key: of their message it
// keeps only the line number.
func parseKubeconfig(text []byte) (*api.Config, error) {
	c, err := clientcmd.Load(text)
	if err != nil {
		return nil, errors.New("it is no kubeconfig in YAML or JSON" + lineOf(err.Error()))
	}
	if len(c.Contexts) == 0 {
		return nil, errors.New("it has no contexts: a kubeconfig begins with apiVersion: v1, kind: Config")
	}
	for name, x := range c.Contexts {
		if x == nil {
			return nil, fmt.Errorf("context %q is empty", name)
		}
	}
	for name, x := range c.Clusters {
		if x == nil {
			return nil, fmt.Errorf("cluster %q is empty", name)
		}
	}
	for name, x := range c.AuthInfos {
		if x == nil {
			return nil, fmt.Errorf("user %q is empty", name)
		}
	}
	return c, nil
}

// lineOf returns ", near line 7" if a parser's message names a line, and else "".
func lineOf(words string) string {
	_, after, found := strings.Cut(words, "line ")
	end := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
	if !found || end <= 0 || end > 9 {
		return ""
	}
	return ", near line " + after[:end]
}

// chooseContext returns the context's name: the wanted one or the current one. It fails unless the file has its cluster
// and its user.
func chooseContext(c *api.Config, path, wanted string) (string, error) {
	name := wanted
	if name == "" {
		name = c.CurrentContext
	}
	there := strings.Join(slices.Sorted(maps.Keys(c.Contexts)), ", ")
	x, ok := c.Contexts[name]
	switch {
	case name == "":
		return "", fmt.Errorf("%s names no current context: name one; there are: %s", path, there)
	case !ok:
		return "", fmt.Errorf("%s has no context %q; there are: %s", path, name, there)
	case c.Clusters[x.Cluster] == nil:
		return "", fmt.Errorf("context %q of %s names cluster %q, which is not there; there are: %s", name, path, x.Cluster,
			strings.Join(slices.Sorted(maps.Keys(c.Clusters)), ", "))
	case x.AuthInfo != "" && c.AuthInfos[x.AuthInfo] == nil:
		return "", fmt.Errorf("context %q of %s names user %q, which is not there; there are: %s", name, path, x.AuthInfo,
			strings.Join(slices.Sorted(maps.Keys(c.AuthInfos)), ", "))
	}
	return name, nil
}

// configOf reads a context's certificates, and its credentials, which may come from a plugin.
func configOf(ctx context.Context, file *api.Config, name string, o Options) (*rest.Config, *plugin, error) {
	cluster := file.Clusters[file.Contexts[name].Cluster]
	user := file.AuthInfos[file.Contexts[name].AuthInfo]
	if user == nil {
		user = api.NewAuthInfo()
	}
	if cluster.ProxyURL != "" {
		return nil, nil, errors.New("its cluster is reached through a proxy (proxy-url), whose time would be measured " +
			"with it: use a context that reaches the server directly")
	}
	if user.AuthProvider != nil {
		return nil, nil, fmt.Errorf("its user has an auth-provider (%s), which Kubernetes has removed: use an exec plugin",
			user.AuthProvider.Name)
	}
	server, err := checkServer(cluster.Server, user.Token != "" || user.TokenFile != "" || user.Password != "" ||
		user.Exec != nil)
	if err != nil {
		return nil, nil, err
	}
	c, err := clientcmd.NewNonInteractiveClientConfig(*file, name, nil, nil).ClientConfig()
	if err != nil {
		return nil, nil, plain(err)
	}
	base(c)
	c.Host = server
	if err := rest.LoadTLSFiles(c); err != nil {
		return nil, nil, plain(err)
	}
	if err := checkVerified(c, user.Exec != nil, o); err != nil {
		return nil, nil, err
	}
	if c.ExecProvider == nil {
		return c, nil, checkTLS(c)
	}
	p, err := newPlugin(c, o.Clock)
	if err != nil {
		return nil, nil, err
	}
	if err := p.into(ctx, c); err != nil {
		return nil, nil, err
	}
	return c, p, checkTLS(c)
}

// plain returns the errors of paths unchanged, and of others only a message that cannot hold a value of the file.
func plain(err error) error {
	if err == nil {
		return nil
	}
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path
	}
	return errors.New("its certificates or credentials cannot be used together: " + clean(err.Error()))
}

// checkTLS checks that certificate and key belong together. Its errors quote nothing of a key.
func checkTLS(c *rest.Config) error {
	if _, err := rest.TLSConfigFor(c); err != nil {
		return errors.New("its certificates cannot be used: certificate-authority, client-certificate and client-key must " +
			"be PEM, and the key the certificate's")
	}
	return nil
}

// sendsSecrets reports whether requests carry a credential. A client certificate is none: its key is not sent.
func sendsSecrets(c *rest.Config) bool {
	return c.BearerToken != "" || c.BearerTokenFile != "" || c.Password != ""
}

// checkVerified refuses to send credentials to a server whose certificate is not verified: any host on the path could
// answer in its place.
func checkVerified(c *rest.Config, plugin bool, o Options) error {
	u, err := url.Parse(c.Host)
	secrets := plugin || sendsSecrets(c)
	if err != nil || !c.Insecure || o.ExposeSecrets || kit.LoopbackHost(u.Hostname()) || !secrets {
		return err
	}
	return fmt.Errorf("server %s is not verified (insecure-skip-tls-verify), so that anybody on the way could take the "+
		"credentials: give the cluster its "+
		"certificate-authority; where that is accepted: target: {expose_secrets: true}, and every report will say it", c.Host)
}

// checkServer rejects an invalid URL, and one that would send credentials unencrypted over a network.
func checkServer(server string, secrets bool) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return "", errors.New("its server is not a URL such as https://host:6443, without a user in it")
	}
	if u.Scheme == "http" && secrets && !kit.LoopbackHost(u.Hostname()) {
		return "", fmt.Errorf("server %s has no TLS, so that everybody on the way could read the credentials: use https://",
			server)
	}
	return server, nil
}

func hashCA(pem []byte) string {
	if len(pem) == 0 {
		return ""
	}
	sum := sha256.Sum256(pem)
	return hex.EncodeToString(sum[:])
}
