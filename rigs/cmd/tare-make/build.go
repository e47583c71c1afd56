package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const mainFile = "cmd/tare/main.go"

// build compiles tare with some areas, or with all. Go takes cmd/tare/main.go without the lines of the others, so that
// nothing of them is compiled.
func build(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	areas := flags.String("areas", "", "areas, separated by commas; default all")
	to := flags.String("o", "bin/tare", "file to write")
	ldflags := flags.String("ldflags", "", "flags of the linker")
	if err := flags.Parse(args); err != nil {
		return err
	}
	source, err := os.ReadFile(mainFile)
	if err != nil {
		return err
	}
	if *areas == "" {
		return command(ctx, out, "go", "build", "-ldflags", *ldflags, "-o", *to, "./cmd/tare").Run()
	}
	if source, err = only(source, strings.Split(*areas, ",")); err != nil {
		return err
	}
	overlay, err := writeOverlay(*to, source)
	if err != nil {
		return err
	}
	return command(ctx, out, "go", "build", "-overlay", overlay, "-ldflags", *ldflags, "-o", *to, "./cmd/tare").Run()
}

var areaImport = regexp.MustCompile(`(?m)^\t"tare/areas/([a-z0-9]+)"\n`)

// only returns main.go without the areas that keep does not name.
func only(source []byte, keep []string) ([]byte, error) {
	var all []string
	for _, m := range areaImport.FindAllSubmatch(source, -1) {
		all = append(all, string(m[1]))
	}
	for i, name := range keep {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("there is no area %q; the areas are: %s", name, strings.Join(all, ", "))
		}
		if slices.Contains(keep[:i], name) {
			return nil, fmt.Errorf("area %s is named twice", name)
		}
	}
	for _, name := range all {
		if !slices.Contains(keep, name) {
			lines := regexp.MustCompile(`(?m)^\t("tare/areas/` + name + `"|\t` + name + `\.Area\{\},)\n`)
			source = lines.ReplaceAll(source, nil)
		}
	}
	return source, nil
}

// writeOverlay writes main.go and the overlay that replaces it beside the binary.
func writeOverlay(binary string, source []byte) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	with := binary + ".go.txt"
	overlay, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(dir, mainFile): filepath.Join(dir, with)},
	})
	if err != nil {
		return "", err
	}
	return binary + ".json", errors.Join(os.MkdirAll(filepath.Dir(binary), 0o755),
		os.WriteFile(with, source, 0o644), os.WriteFile(binary+".json", overlay, 0o644))
}
