package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"tare/internal/kit"
)

// gitVersion is what a server's version looks like, such as v1.30.2-eks-1552ad0.
var gitVersion = regexp.MustCompile(`^v[0-9]{1,4}(\.[0-9]{1,6}){1,2}([-+][0-9A-Za-z.+-]{0,50})?$`)

// Version asks the server for its version. What the server calls so, and does not look like one, is not repeated.
func (c *Cluster) Version(ctx context.Context) (version.Info, error) {
	var v version.Info
	text, err := c.get(ctx, "/version", jsonType)
	if err != nil {
		return v, err
	}
	if json.Unmarshal(text, &v) != nil || v.Major == "" {
		return v, c.scrub(fmt.Errorf("%s answers, but not with a version: it is no Kubernetes API server", c.location))
	}
	if v.GitVersion = c.guard.scrub(v.GitVersion); !gitVersion.MatchString(v.GitVersion) {
		v.GitVersion = "of an unknown version"
	}
	return v, nil
}

// Metrics returns the text of the server's /metrics.
func (c *Cluster) Metrics(ctx context.Context) ([]byte, error) {
	return c.get(ctx, metricsPath, textType)
}

// Has reports whether the server has a resource: PodSecurityPolicies are in Kubernetes up to 1.24 only.
func (c *Cluster) Has(ctx context.Context, r schema.GroupVersionResource) (bool, error) {
	kinds, err := c.kindsOf(ctx, r.GroupVersion())
	if err != nil {
		return false, err
	}
	for _, k := range kinds {
		if k.Resource == r.Resource {
			return true, nil
		}
	}
	return false, nil
}

// get requests a non-resource path.
func (c *Cluster) get(ctx context.Context, path, form string) ([]byte, error) {
	if err := c.limit.Wait(ctx); err != nil {
		return nil, fmt.Errorf("get %s of %s: %w", path, c.location, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url.Scheme+"://"+c.url.Host+c.Prefix()+path, http.NoBody)
	if err != nil {
		return nil, c.scrub(fmt.Errorf("get %s of %s: %w", path, c.location, err))
	}
	r.Header.Set("Accept", form)
	if kit.LoopbackHost(r.URL.Hostname()) {
		r.Header.Set("Accept-Encoding", "identity") // to compress metrics takes nearly as long as to write them
	}
	res, err := c.client.Do(r)
	if err != nil {
		return nil, c.scrub(fmt.Errorf("get %s of %s: %w", path, c.location, err))
	}
	text, err := io.ReadAll(res.Body)
	err = errors.Join(err, res.Body.Close())
	if err == nil && res.StatusCode != http.StatusOK {
		err = statusError(res.StatusCode, text)
	}
	if err != nil {
		return nil, c.scrub(fmt.Errorf("get %s of %s: %w", path, c.location, err))
	}
	return text, nil
}

// statusError returns the error for an answer that is not 200: the server's Status if it sends one.
func statusError(code int, text []byte) error {
	var s metav1.Status
	if json.Unmarshal(text, &s) != nil || s.Kind != "Status" || s.Message == "" {
		s = metav1.Status{Message: fmt.Sprintf("the server answers %d %s", code, http.StatusText(code))}
	}
	s.Status, s.Code = metav1.StatusFailure, int32(code) //nolint:gosec // An HTTP status has three digits.
	if s.Reason == "" {
		s.Reason = reasonOf(code)
	}
	return &apierrors.StatusError{ErrStatus: s}
}

func reasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusNotFound:
		return metav1.StatusReasonNotFound
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusUnauthorized:
		return metav1.StatusReasonUnauthorized
	}
	return metav1.StatusReasonUnknown
}

// kindOf finds the resource of a kind.
func (c *Cluster) kindOf(ctx context.Context, gvk schema.GroupVersionKind) (kind, error) {
	if gvk.Kind == "" || gvk.Version == "" {
		return kind{}, errors.New("it needs apiVersion and kind")
	}
	kinds, err := c.kindsOf(ctx, gvk.GroupVersion())
	if err != nil {
		return kind{}, err
	}
	for _, k := range kinds {
		if k.Kind == gvk.Kind {
			return k, nil
		}
	}
	c.forget(gvk.GroupVersion()) // it may appear yet
	return kind{}, fmt.Errorf("%s %s: %w", gvk.GroupVersion(), gvk.Kind, errNoKind)
}

// kindsOf returns the kinds of a group version; none: the server does not have it. It caches only what exists.
func (c *Cluster) kindsOf(ctx context.Context, gv schema.GroupVersion) ([]kind, error) {
	c.mu.Lock()
	known := c.kinds[gv]
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	text, err := c.get(ctx, path, jsonType)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	kinds, err := parseKinds(text, gv)
	if err != nil {
		return nil, c.scrub(fmt.Errorf("get %s of %s: %w", path, c.location, err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[gv] = kinds
	return kinds, nil
}

// forget drops what is cached of a group version.
func (c *Cluster) forget(gv schema.GroupVersion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.kinds, gv)
}

// parseKinds parses an APIResourceList. It omits subresources.
func parseKinds(text []byte, gv schema.GroupVersion) ([]kind, error) {
	var list metav1.APIResourceList
	if err := json.Unmarshal(text, &list); err != nil || list.Kind != "APIResourceList" ||
		list.GroupVersion != gv.String() {
		return nil, errors.New("the answer is not the list of resources that an API server gives")
	}
	out := make([]kind, 0, len(list.APIResources))
	for i := range list.APIResources {
		r := &list.APIResources[i]
		if r.Name == "" || r.Kind == "" || strings.Contains(r.Name, "/") {
			continue
		}
		out = append(out, kind{GroupVersionResource: gv.WithResource(r.Name), Kind: r.Kind, Namespaced: r.Namespaced})
	}
	return out, nil
}
