package main

import (
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// listen sets where the member is reached: by clients only, since it has no peers. What it advertises to them nobody asks for, and it cannot be a Unix
// socket: it stays etcd's default, where nobody listens. The fields' names are those of etcd 3.5.
func listen(cfg *embed.Config, client url.URL) {
	cfg.LCUrls, cfg.LPUrls = []url.URL{client}, nil
}
