//go:build !linux || !(amd64 || arm64 || riscv64)

package load

import "errors"

const fastMissing = "this system has no epoll that we know"

func newFast(Config, streamClock) (carrier, error) { return nil, errors.New(fastMissing) }
