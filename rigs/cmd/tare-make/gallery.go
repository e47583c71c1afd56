package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const galleryIndex = "docs/gallery/README.md"

var galleryRun = regexp.MustCompile(`(?m)^    tare run (\S*?([a-z0-9-]+)\.yaml\b.*)$`)

// gallery writes the pages of docs/gallery with bin/tare. The index is the list of the commands. A run whose record is
// in bin/gallery is not measured again: remove its folder there first.
func gallery(ctx context.Context, _ []string, out io.Writer) error {
	index, err := os.ReadFile(galleryIndex)
	if err != nil {
		return err
	}
	for _, m := range galleryRun.FindAllStringSubmatch(string(index), -1) {
		if err := galleryPage(ctx, out, m[1], m[2]); err != nil {
			return fmt.Errorf("no page of %s; remove bin/gallery/%[1]s-* to measure it again: %w", m[2], err)
		}
	}
	return command(ctx, out, "go", "test", "-count=1", "-run", "^TestGallery$", "./cmd/tare", "-update").Run()
}

// galleryPage runs the experiment that is named name, unless there is a record of it, and writes its page.
func galleryPage(ctx context.Context, out io.Writer, args, name string) error {
	records, err := filepath.Glob("bin/gallery/" + name + "-2*")
	if err != nil {
		return err
	}
	if len(records) == 0 {
		// A shell reads the quotes of the command. Its exit code is a verdict, or there is no record to report.
		_ = command(ctx, out, "sh", "-c", "exec bin/tare run "+args+" --results bin/gallery").Run()
	}
	err = command(ctx, out, "bin/tare", "report", name, "--results", "bin/gallery",
		"-o", "html="+filepath.Join(filepath.Dir(galleryIndex), name+".html")).Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && slices.Contains([]int{10, 11, 12}, exit.ExitCode()) { // a verdict, and a page
		return nil
	}
	return err
}

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
