package node

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// requestWithin bounds one request, so that a hanging server costs an attempt and not a node.
const requestWithin = 10 * time.Second

// protobuf is the kubelets' format: it costs both sides a fraction of JSON.
const protobuf = "application/vnd.kubernetes.protobuf"

// client is a client of the two API groups that kubelets need.
type client struct {
	core, coordination *rest.RESTClient
}

// dial makes a client. It does not connect yet.
func dial(c Config) (*client, error) {
	cfg, err := restConfig(c)
	if err != nil {
		return nil, err
	}
	if err := checkLoopback(cfg.Host); err != nil {
		return nil, err
	}
	// loopback is reached directly, whatever proxy the environment names
	cfg.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	cfg.QPS = -1
	cfg.UserAgent = "tare-simulated-nodes"
	cfg.ContentType, cfg.AcceptContentTypes = protobuf, protobuf+",application/json"
	codecs, err := codecs()
	if err != nil {
		return nil, err
	}
	cfg.NegotiatedSerializer = codecs.WithoutConversion()
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", cfg.Host, err)
	}
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	out := &client{}
	for gv, at := range map[schema.GroupVersion]**rest.RESTClient{
		corev1.SchemeGroupVersion:         &out.core,
		coordinationv1.SchemeGroupVersion: &out.coordination,
	} {
		one := rest.CopyConfig(cfg)
		one.GroupVersion, one.APIPath = &gv, "/apis"
		if gv.Group == "" {
			one.APIPath = "/api"
		}
		if *at, err = rest.RESTClientForConfigAndClient(one, h); err != nil {
			return nil, fmt.Errorf("make a client of %s: %w", cfg.Host, err)
		}
	}
	return out, nil
}

// codecs knows the types of the two groups only: all of Kubernetes would take tens of megabytes.
func codecs() (serializer.CodecFactory, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, coordinationv1.AddToScheme,
		metav1.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			return serializer.CodecFactory{}, fmt.Errorf("register types: %w", err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme), nil
}

func restConfig(c Config) (*rest.Config, error) {
	if c.Kubeconfig == "" {
		return &rest.Config{Host: c.Server, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{CAData: c.CA}}, nil
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", c.Kubeconfig, err)
	}
	return cfg, nil
}

// checkLoopback rejects a server at anything but a literal loopback address: a name can lead to another host.
func checkLoopback(server string) error {
	u, err := url.Parse(server)
	if err != nil {
		return fmt.Errorf("server %q: %w", server, err)
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil || !addr.Unmap().IsLoopback() {
		return fmt.Errorf("server %s is not a loopback address: simulated nodes would attract the real pods of a real "+
			"cluster", server)
	}
	return nil
}

// checkOthers rejects a control plane with real nodes: a local cluster in containers is on loopback too.
func (f *fleet) checkOthers(ctx context.Context) error {
	var list corev1.NodeList
	err := f.retry(ctx, func(ctx context.Context) error {
		list = corev1.NodeList{}
		return f.client.core.Get().Resource("nodes").Param("labelSelector", "!"+Label).Param("limit", "1").Do(ctx).Into(&list)
	})
	if err != nil {
		return fmt.Errorf("look for other nodes: %w", err)
	}
	if len(list.Items) > 0 {
		return fmt.Errorf("the cluster has a node %s that is not simulated: simulated nodes would attract its pods",
			list.Items[0].Name)
	}
	return nil
}
