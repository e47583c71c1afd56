// Tare-plane is a Kubernetes control plane in one binary: etcd and the components, each run as a separate process. It
// also contains the kubelet's pull manager, as a driver.
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
	// a driver, not a component: it answers requests until its standard input ends
	if len(os.Args) == 2 && os.Args[1] == "pull-manager" {
		out := os.Stdout
		os.Stdout = os.Stderr // output of a library must not mix with answers
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

// kubernetes returns the version of the code that the driver runs: "Kubernetes v1.36.3".
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
