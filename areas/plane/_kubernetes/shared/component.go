package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"time"
)

const (
	// mostConfig bounds the line of configuration, in bytes.
	mostConfig = 1 << 20
	// endWithin limits how long a component may take to end in good order after its parent has gone: kube-apiserver
	// waits for requests in progress.
	endWithin = 30 * time.Second
	// protocol is the version of what components are told: since 2, etcd gets the name of a Unix socket, and a quota.
	protocol = "2"
)

// A program is the components of a control plane in one binary.
type program struct {
	name       string
	components map[string]func() int // each runs with os.Args as its own until it has ended, and returns the exit code

	stdin          io.Reader
	stdout, stderr io.Writer
	end            func() // asks this process to end
}

// run runs a component until it ends. "NAME COMPONENT" reads {"args": […]} as one line from standard input, prints
// {"ready": {}} when it has parsed it, and runs the component with these arguments. The component ends with its
// standard input, so it ends even if its parent dies by SIGKILL. Its health endpoint says whether it answers. "NAME
// version" prints the versions that the binary was built from, as JSON.
func (p program) run(args []string) int {
	if len(args) == 1 && args[0] == "version" {
		info, _ := debug.ReadBuildInfo()
		fmt.Fprintln(p.stdout, versions(info))
		return 0
	}
	if len(args) != 1 || p.components[args[0]] == nil {
		names := slices.Sorted(maps.Keys(p.components))
		fmt.Fprintf(p.stderr, "usage: %s version, or one of %v with a line {\"args\": […]} on standard input\n",
			p.name, names)
		return 2
	}
	flags, err := readConfig(p.stdin)
	if err != nil {
		fmt.Fprintf(p.stderr, "%s: read the configuration: %v\n", args[0], err)
		return 2
	}
	os.Args = append([]string{args[0]}, flags...)
	go func() { // it lives as long as the process
		_, _ = io.Copy(io.Discard, p.stdin) // an error and the end mean the same
		p.end()
	}()
	fmt.Fprintln(p.stdout, `{"ready":{}}`)
	return p.components[args[0]]()
}

// readConfig reads the component's arguments. It ignores everything after their line.
func readConfig(stdin io.Reader) ([]string, error) {
	line, err := bufio.NewReaderSize(stdin, mostConfig).ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("more than %d bytes", mostConfig)
	}
	if err != nil {
		return nil, fmt.Errorf("no whole line: %w", err)
	}
	var config struct {
		Args []string `json:"args"`
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields() // a misspelled field would start the component without its arguments
	if err := d.Decode(&config); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value in the line")
	}
	return config.Args, nil
}

// endSelf asks this process to end, and kills it if it does not.
func endSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGTERM) // nobody is left to report an error to
	time.Sleep(endWithin)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// versions returns the versions that a binary was built from, as JSON: {"etcd": "v3.6.8", "go": "go1.26.8",
// "kubernetes": "v1.36.3", "protocol": "2"}. Unknown versions are missing.
func versions(info *debug.BuildInfo) string {
	out := map[string]string{"protocol": protocol}
	if info != nil {
		out["go"] = info.GoVersion
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			switch m.Path {
			case "k8s.io/kubernetes":
				out["kubernetes"] = m.Version
			case "go.etcd.io/etcd/server/v3":
				out["etcd"] = m.Version
			}
		}
	}
	text, _ := json.Marshal(out) // strings cannot fail
	return string(text)
}
