package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sort"
	"syscall"
)

// mostConfig bounds the line of configuration, in bytes.
const mostConfig = 1 << 20

// run is a component's whole life: `tare-plane COMPONENT` reads {"args": […]} as one line from standard input, says {"ready": {}} when it has
// understood it, and runs the component with these arguments. It ends with its standard input: whoever holds the other end may die by SIGKILL, and
// nothing is left. Whether the component answers is for its health endpoint to say.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer, components map[string]func() int) int {
	if len(args) == 1 && args[0] == "version" {
		fmt.Fprintln(stdout, versions())
		return 0
	}
	if len(args) != 1 || components[args[0]] == nil {
		fmt.Fprintf(stderr, "usage: tare-plane version or one of %v, with {\"args\": […]} on standard input\n", names(components))
		return 2
	}
	in := bufio.NewReaderSize(io.LimitReader(stdin, mostConfig), mostConfig)
	line, err := in.ReadSlice('\n')
	var config struct {
		Args []string `json:"args"`
	}
	if err == nil {
		err = json.Unmarshal(line, &config)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: read the configuration: %v\n", args[0], err)
		return 2
	}
	os.Args = append([]string{args[0]}, config.Args...)
	go endWith(stdin)
	fmt.Fprintln(stdout, `{"ready":{}}`)
	return components[args[0]]()
}

// endWith asks this process to end when its standard input does. The goroutine lives as long as the process.
func endWith(stdin io.Reader) {
	_, _ = io.Copy(io.Discard, stdin) // an error and the end mean the same
	_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
}

// versions names what this binary was built from, as JSON.
func versions() string {
	out := map[string]string{}
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, m := range info.Deps {
			switch m.Path {
			case "k8s.io/kubernetes":
				out["kubernetes"] = m.Version
			case "go.etcd.io/etcd/server/v3":
				out["etcd"] = m.Version
			}
		}
		out["go"] = info.GoVersion
	}
	text, _ := json.Marshal(out)
	return string(text)
}

func names(components map[string]func() int) (out []string) {
	for name := range components {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}
