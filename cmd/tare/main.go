// Command tare weighs security controls: what does a control cost, and where does it break?
package main

import (
	"context"
	"os"

	"tare/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), cli.Env{
		Args: os.Args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
	}))
}
