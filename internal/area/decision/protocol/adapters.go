package protocol

import (
	"fmt"
	"strings"
)

// adapters lists what can be measured, in the order of the documentation.
func adapters() []Adapter {
	return []Adapter{
		pdpx{},
		authZEN{},
		opa{},
		xacml{},
		openFGA{},
		extAuthz{},
		k8sSAR{},
	}
}

// Names are the words of all adapters in experiment files.
func Names() []string {
	var out []string
	for _, a := range adapters() {
		out = append(out, a.Name())
	}
	return out
}

// Find returns the adapter of that name.
func Find(name string) (Adapter, error) {
	for _, a := range adapters() {
		if a.Name() == name {
			return a, nil
		}
	}
	return nil, fmt.Errorf("adapter: %q is not one of %s", name, strings.Join(Names(), ", "))
}

// webSchemes are those of adapters over HTTP.
func webSchemes() []string { return []string{"http", "https"} }
