package main

import (
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// listen sets the socket for clients, and no address for peers, since there are none. The advertised URL cannot be a
// Unix socket: it stays etcd's default, where nobody listens, and no client asks for it. The fields' names are those of
// etcd 3.5.
func listen(cfg *embed.Config, client url.URL) {
	cfg.LCUrls, cfg.LPUrls = []url.URL{client}, nil
}
