package plane

import (
	"encoding/base64"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// A connection is the part of a kubeconfig (v1 Config of client-go's clientcmd) that a plane needs. CA data is base64,
// as []byte is in JSON.
type connection struct {
	APIVersion string    `yaml:"apiVersion"`
	Kind       string    `yaml:"kind"`
	Clusters   []cluster `yaml:"clusters"`
	Users      []user    `yaml:"users"`
	Contexts   []where   `yaml:"contexts"`
	Current    string    `yaml:"current-context"`
}

type cluster struct {
	Name    string `yaml:"name"`
	Cluster struct {
		Server string `yaml:"server"`
		CA     string `yaml:"certificate-authority-data"`
	} `yaml:"cluster"`
}

type user struct {
	Name string `yaml:"name"`
	User struct {
		Token string `yaml:"token"`
	} `yaml:"user"`
}

type where struct {
	Name    string `yaml:"name"`
	Context struct {
		Cluster string `yaml:"cluster"`
		User    string `yaml:"user"`
	} `yaml:"context"`
}

// kubeconfig returns the file for one user of the plane at server, with the authority's certificate (PEM) in it.
func kubeconfig(server string, ca []byte, name, token string) ([]byte, error) {
	const tare = "tare"
	c := connection{
		APIVersion: "v1", Kind: "Config", Current: tare,
		Clusters: []cluster{{Name: tare}}, Users: []user{{Name: name}}, Contexts: []where{{Name: tare}},
	}
	c.Clusters[0].Cluster.Server, c.Clusters[0].Cluster.CA = server, base64.StdEncoding.EncodeToString(ca)
	c.Users[0].User.Token = token
	c.Contexts[0].Context.Cluster, c.Contexts[0].Context.User = tare, name
	text, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	return text, nil
}
