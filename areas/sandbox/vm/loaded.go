package vm

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
)

// loaded is what a kernel and a dynamic loader need of a program of 64 bits: its header, which then says that there are
// no sections, and its segments. Sections say where symbols and what debuggers read are, which stand behind these.
func loaded(f io.ReaderAt, size int64) (io.Reader, int64, error) {
	program, err := elf.NewFile(f)
	if err != nil {
		return nil, 0, fmt.Errorf("read the program: %w", err)
	}
	var header elf.Header64
	raw := make([]byte, binary.Size(header))
	if program.Class != elf.ELFCLASS64 {
		return nil, 0, fmt.Errorf("read the program: want one of 64 bits, not %v", program.Class)
	}
	if _, err := f.ReadAt(raw, 0); err != nil {
		return nil, 0, fmt.Errorf("read the program: %w", err)
	}
	if _, err := binary.Decode(raw, program.ByteOrder, &header); err != nil {
		return nil, 0, fmt.Errorf("read the program: %w", err)
	}
	end := int64(header.Phoff) + int64(header.Phnum)*int64(header.Phentsize)
	for _, p := range program.Progs {
		end = max(end, int64(p.Off+p.Filesz))
	}
	if end < int64(len(raw)) || end > size {
		return nil, 0, fmt.Errorf("read the program: its segments end at byte %d of %d", end, size)
	}
	header.Shoff, header.Shnum, header.Shstrndx = 0, 0, 0
	if raw, err = binary.Append(nil, program.ByteOrder, &header); err != nil {
		return nil, 0, err
	}
	rest := io.NewSectionReader(f, int64(len(raw)), end-int64(len(raw)))
	return io.MultiReader(bytes.NewReader(raw), rest), end, nil
}
