package main

import (
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// listen sets where the member is reached. The fields' names are those of etcd 3.5.
func listen(cfg *embed.Config, client, peer url.URL) {
	cfg.LCUrls, cfg.ACUrls = []url.URL{client}, []url.URL{client}
	cfg.LPUrls, cfg.APUrls = []url.URL{peer}, []url.URL{peer}
}
