// Tare-plane is a Kubernetes control plane in one binary: etcd and the components, each as a process of its own. It is the kubelet's pull manager
// besides, as a driver.
package main

import (
	"os"
	"runtime/debug"

	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"tare/plane/pull"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "pull-manager" { // no component: it is asked and answers until its standard input ends
		out := os.Stdout
		os.Stdout = os.Stderr // whatever a library prints is no answer
		os.Exit(pull.Serve(os.Stdin, out, os.Stderr, kubernetes()))
	}
	os.Exit(program{
		name: "tare-plane",
		components: map[string]func() int{
			"etcd":                    runEtcd,
			"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
			"kube-controller-manager": func() int { return cli.Run(controllers.NewControllerManagerCommand()) },
			"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
		},
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		end: endSelf,
	}.run(os.Args[1:]))
}

// kubernetes is the version of the code that is driven: "Kubernetes v1.36.3".
func kubernetes() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "k8s.io/kubernetes" {
				return "Kubernetes " + m.Version
			}
		}
	}
	return ""
}
