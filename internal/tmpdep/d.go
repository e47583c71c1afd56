package tmpdep

import (
	_ "k8s.io/api/admissionregistration/v1"
	_ "k8s.io/api/core/v1"
	_ "k8s.io/client-go/dynamic"
	_ "k8s.io/client-go/kubernetes/typed/coordination/v1"
	_ "k8s.io/client-go/kubernetes/typed/core/v1"
	_ "k8s.io/client-go/rest"
	_ "k8s.io/client-go/restmapper"
	_ "k8s.io/client-go/discovery"
	_ "k8s.io/client-go/tools/cache"
	_ "k8s.io/client-go/tools/clientcmd"
	_ "sigs.k8s.io/yaml"
)
