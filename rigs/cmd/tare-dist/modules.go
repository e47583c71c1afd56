package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// modulesOf reads which modules a binary was built from, and refuses one for another architecture or with cgo.
func modulesOf(name, arch string) (*debug.BuildInfo, error) {
	info, err := buildinfo.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	want := map[string]string{"GOARCH": arch, "GOOS": "linux", "CGO_ENABLED": "0", "-trimpath": "true"}
	for _, s := range info.Settings {
		if v, ok := want[s.Key]; ok && v != s.Value {
			return nil, fmt.Errorf("%s was built with %s=%s, want %s", name, s.Key, s.Value, v)
		}
		delete(want, s.Key)
	}
	if len(want) > 0 {
		return nil, fmt.Errorf("%s was not built with %v", name, want)
	}
	for i, m := range info.Deps {
		if m.Replace != nil {
			info.Deps[i] = m.Replace
		}
	}
	return info, nil
}

// bill returns the software bill of materials of a binary in CycloneDX 1.6: what the binary says it was built from.
func (r *release) bill(info *debug.BuildInfo, binary []byte) []byte {
	type object = map[string]any
	library := func(path, version, goSum string) object {
		purl := "pkg:golang/" + path + "@" + version
		o := object{"type": "library", "bom-ref": purl, "purl": purl, "name": path, "version": version}
		if goSum != "" { // the hash of a module's files as in go.sum, which is not that of one file
			o["properties"] = []object{{"name": "go.sum", "value": goSum}}
		}
		return o
	}
	components := []object{library("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		components = append(components, library(m.Path, m.Version, m.Sum))
	}
	id := sha256.Sum256(binary)
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8
	return asJSON(object{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"serialNumber": fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16]),
		"metadata": object{
			"timestamp": r.date.UTC().Format(time.RFC3339),
			"component": object{
				"type": "application", "bom-ref": "tare", "name": "tare", "version": r.version,
				"hashes":     []object{{"alg": "SHA-256", "content": sum(binary)}},
				"licenses":   []object{{"license": object{"id": "Apache-2.0"}}},
				"properties": []object{{"name": "commit", "value": r.commit}},
			},
		},
		"components": components,
	})
}

func asJSON(v any) []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	must(err)
	return append(b, '\n')
}

// legal matches the names of files that a distributor of a module has to pass on.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licensesOf returns the licenses of all that a binary holds, from the module cache and Go itself.
func licensesOf(ctx context.Context, info *debug.BuildInfo) ([]byte, error) {
	args := []string{"list", "-m", "-f", "{{.Path}}\t{{.Dir}}"}
	for _, m := range info.Deps {
		args = append(args, m.Path+"@"+m.Version)
	}
	listed, err := output(ctx, "go", args...)
	if err != nil {
		return nil, err
	}
	root, err := output(ctx, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for line := range strings.Lines("Go\t" + root + listed) {
		name, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("licenses of %s: %w", name, err)
		}
		before := b.Len()
		for _, f := range files {
			if f.IsDir() || !legal.MatchString(f.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "==== %s: %s ====\n%s\n", name, f.Name(), bytes.TrimSpace(text))
		}
		if b.Len() == before {
			return nil, fmt.Errorf("%s has no license file in %s", name, dir)
		}
	}
	return b.Bytes(), nil
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return string(out), nil
}
