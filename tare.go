// Package tare makes a program of areas: its main function is one call of Main.
package tare

import (
	"context"
	"os"

	"tare/area"
	"tare/internal/cli"
)

// Main runs the command line with these areas, in the order in which lists have them, and exits.
func Main(areas ...area.Area) {
	os.Exit(cli.Main(context.Background(), cli.Env{
		Args: os.Args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Areas: areas,
	}))
}
