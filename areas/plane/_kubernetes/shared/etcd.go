package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

// runEtcd runs a single member on a Unix socket until SIGTERM, and returns the exit code. It opens no port.
func runEtcd() int {
	cfg, err := etcdConfig(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 2
	}
	syscall.Umask(0o077) // for the socket
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 1
	}
	defer e.Close()
	select {
	case <-stop:
		return 0
	case err := <-e.Err():
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 1
	}
}

// etcdConfig parses the few of etcd's flags that are supported.
func etcdConfig(args []string) (*embed.Config, error) {
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	dir := flags.String("data-dir", "", "folder of the database")
	client := flags.String("listen-client-urls", "", "the Unix socket for clients")
	quota := flags.Int64("quota-backend-bytes", 0, "how large the database may grow")
	noFsync := flags.Bool("unsafe-no-fsync", false, "do not wait for the disk")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("arguments that are no flags: %q", flags.Args())
	}
	if *dir == "" {
		return nil, errors.New("--data-dir is missing")
	}
	if *quota <= 0 { // etcd reads it as its default or as no quota
		return nil, fmt.Errorf("--quota-backend-bytes=%d: want a number of bytes above 0", *quota)
	}
	at, err := socket(*client, ".")
	if err != nil {
		return nil, fmt.Errorf("--listen-client-urls: %w", err)
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = "default", *dir
	listen(cfg, at)
	cfg.EnableGRPCGateway = false // an interface that nobody uses
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = *noFsync
	cfg.LogLevel = "warn"
	cfg.QuotaBackendBytes = *quota
	return cfg, nil
}
