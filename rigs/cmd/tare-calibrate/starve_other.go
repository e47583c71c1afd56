//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
)

var errLinux = errors.New("starving the generator needs Linux")

func starved(context.Context, options, io.Writer, io.Writer) error { return errLinux }
func serveAs(context.Context, string, io.Writer) error             { return errLinux }
func generate(context.Context, string, io.Writer) error            { return errLinux }
