//go:build !linux || !(amd64 || arm64 || riscv64)

package load

import "errors"

const fastMissing = "it needs Linux on amd64, arm64 or riscv64"

func newFast(Config, streamClock) (carrier, error) { return nil, errors.New(fastMissing) }
