package bpflsm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"

	"tare/rigs/hosttest"
)

// TestObjectIsBuiltFromItsSource builds the object by the lines of "go generate" and compares programs and maps.
func TestObjectIsBuiltFromItsSource(t *testing.T) {
	requireClang(t)
	dir := t.TempDir()
	for _, name := range []string{"enforcer.bpf.c", "kernel.h", "rules.h"} {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), source, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("bpflsm.go")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^//go:generate (.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) != 2 {
		t.Fatalf("there are %d lines of go:generate, want 2", len(commands))
	}
	for _, c := range commands {
		args := strings.Fields(c[1])
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c[1], err, out)
		}
	}
	built, err := ebpf.LoadCollectionSpec(filepath.Join(dir, "enforcer.bpf.o"))
	if err != nil {
		t.Fatal(err)
	}
	committed, err := loadSpec()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(describe(built), describe(committed)); diff != "" {
		t.Errorf("the object is not built from its source: run go generate (-built +committed)\n%s", diff)
	}
}

func requireClang(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"clang", "llvm-strip"} {
		if _, err := exec.LookPath(tool); err != nil {
			hosttest.Missing(t, fmt.Sprintf("the BPF programs cannot be compiled: %v", err), "apt-get install clang")
		}
	}
	version, err := exec.CommandContext(t.Context(), "clang", "-dumpversion").Output()
	if err != nil {
		t.Fatal(err)
	}
	if major, _, _ := strings.Cut(strings.TrimSpace(string(version)), "."); major != ClangVersion {
		hosttest.Missing(t, fmt.Sprintf("clang is of version %s", major), "have version "+ClangVersion)
	}
}

// describe returns what of an object does not depend on the folder and the patch version of clang.
func describe(spec *ebpf.CollectionSpec) map[string]any {
	all := map[string]any{}
	for name, p := range spec.Programs {
		var lines []string
		for _, i := range p.Instructions {
			line := fmt.Sprintf("%s: op %d dst %s src %s offset %d constant %d ref %s", i.Symbol(), i.OpCode, i.Dst, i.Src,
				i.Offset, i.Constant, i.Reference())
			if r := btf.CORERelocationMetadata(&i); r != nil {
				line += " " + r.String()
			}
			lines = append(lines, line)
		}
		all[name] = append(lines, p.SectionName, p.License)
	}
	for name, m := range spec.Maps {
		content := ""
		if len(m.Contents) > 0 && name == ".rodata" {
			content = fmt.Sprint(m.Contents)
		}
		all[name] = fmt.Sprint(m.Type, m.KeySize, m.ValueSize, m.MaxEntries, m.Flags, content)
	}
	return all
}
