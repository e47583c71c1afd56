package workload

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"tare/internal/proc"
)

// newNginx returns an nginx with one worker, which opens the file for each request.
func newNginx(dir string, connections int) (*Daemon, error) {
	program, err := installed("nginx", "nginx-light")
	if err != nil {
		return nil, err
	}
	conf, err := nginxConfig(program, connections)
	if err != nil {
		return nil, fmt.Errorf("prepare nginx: %w", err)
	}
	w, err := newWeb(dir, "nginx.conf", conf)
	if err != nil {
		return nil, fmt.Errorf("prepare nginx: %w", err)
	}
	return &Daemon{
		Name: "nginx", Dir: dir, protocol: w,
		Command: []string{program, "-p", dir, "-c", "nginx.conf", "-e", errorLog},
	}, nil
}

// nginxConfig overrides every path that was compiled into the program, so that it uses none outside its directory.
func nginxConfig(program string, connections int) ([]byte, error) {
	built, err := output(program, "-V")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("daemon off;\nworker_processes 1;\npid nginx.pid;\nerror_log error.log;\n")
	if os.Geteuid() == 0 { // otherwise the worker would run as a user who cannot enter the directory
		root, err := user.LookupId("0")
		if err != nil {
			return nil, fmt.Errorf("look up user 0: %w", err)
		}
		fmt.Fprintf(&b, "user %s %s;\n", root.Username, root.Username)
	}
	fmt.Fprintf(&b, "events { worker_connections %d; }\n", connections+spareConnections)
	b.WriteString("http {\n\taccess_log off;\n\tkeepalive_requests 1000000000;\n\tkeepalive_timeout 1h;\n")
	for _, what := range []string{"client-body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		if bytes.Contains(built, []byte("--http-"+what+"-temp-path=")) {
			fmt.Fprintf(&b, "\t%s_temp_path %s;\n", strings.ReplaceAll(what, "-", "_"), what)
		}
	}
	fmt.Fprintf(&b, "\tserver { listen unix:%s; root html; }\n}\n", socketFile)
	return b.Bytes(), nil
}

// output returns what a program says about itself.
func output(program, option string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := proc.Command(ctx, program, option)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w", program, option, err)
	}
	return out.Bytes(), nil
}
