package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

// quota is how large the database may grow, in bytes: 5,000 policies and 3,000 pods need a tenth of it.
const quota = 4 << 30

// runEtcd runs a single member on loopback until SIGTERM.
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

func etcdConfig(args []string) (*embed.Config, error) {
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	dir := flags.String("data-dir", "", "folder of the database")
	client := flags.String("listen-client-urls", "", "where clients are served")
	peer := flags.String("listen-peer-urls", "", "where peers would be")
	noFsync := flags.Bool("unsafe-no-fsync", false, "do not wait for the disk")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = "default", *dir
	cu, err := url.Parse(*client)
	if err != nil {
		return nil, err
	}
	pu, err := url.Parse(*peer)
	if err != nil {
		return nil, err
	}
	listen(cfg, *cu, *pu)
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = *noFsync
	cfg.LogLevel = "warn"
	cfg.QuotaBackendBytes = quota
	return cfg, nil
}

// listen sets where the member is reached: loopback only, so no TLS.
func listen(cfg *embed.Config, client, peer url.URL) {
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
}
