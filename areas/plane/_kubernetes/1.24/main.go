// Tare-plane-psp is the last Kubernetes control plane with the original PodSecurityPolicy: etcd and the components,
// each run as a separate process.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	os.Exit(program{
		name: "tare-plane-psp",
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
