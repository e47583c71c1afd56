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

// quota is how large the database may grow, in bytes: 5,000 policies and 3,000 pods need a tenth of it.
const quota = 4 << 30

// runEtcd runs a single member on loopback until SIGTERM, and returns the exit code.
func runEtcd() int {
	cfg, err := etcdConfig(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 2
	}
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

// etcdConfig reads etcd's own names of the few flags that there are.
func etcdConfig(args []string) (*embed.Config, error) {
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	dir := flags.String("data-dir", "", "folder of the database")
	client := flags.String("listen-client-urls", "", "where clients are served")
	peer := flags.String("listen-peer-urls", "", "where peers would be")
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
	cu, err := loopback(*client)
	if err != nil {
		return nil, fmt.Errorf("--listen-client-urls: %w", err)
	}
	pu, err := loopback(*peer)
	if err != nil {
		return nil, fmt.Errorf("--listen-peer-urls: %w", err)
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = "default", *dir
	listen(cfg, cu, pu)
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = *noFsync
	cfg.LogLevel = "warn"
	cfg.QuotaBackendBytes = quota
	return cfg, nil
}
