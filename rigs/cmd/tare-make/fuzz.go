package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
)

// fuzz runs every fuzz target for a time, 30 s by default. It ends with the first that fails.
func fuzz(ctx context.Context, args []string, out io.Writer) error {
	each := "30s"
	if len(args) > 0 {
		each = args[0]
	}
	var packages bytes.Buffer
	if err := command(ctx, &packages, "go", "list", "./...").Run(); err != nil {
		return err
	}
	for pkg := range strings.FieldsSeq(packages.String()) {
		var listed bytes.Buffer
		if err := command(ctx, &listed, "go", "test", "-list", "^Fuzz", pkg).Run(); err != nil {
			return err
		}
		for target := range strings.FieldsSeq(listed.String()) {
			if !strings.HasPrefix(target, "Fuzz") {
				continue
			}
			if _, err := fmt.Fprintln(out, pkg, target); err != nil {
				return err
			}
			cmd := command(ctx, out, "go", "test", "-run", "^$", "-fuzz", "^"+target+"$", "-fuzztime", each, pkg)
			if err := cmd.Run(); err != nil {
				return err
			}
		}
	}
	return nil
}
