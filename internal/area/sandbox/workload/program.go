package workload

import (
	"encoding/binary"
	"fmt"
)

// counterDigits is the length of the program's counter, in decimal digits: enough for maxCalls.
const counterDigits = 10

// programCode returns machine code of a program that executes itself as often as its argument says and then exits with
// status 0; without an argument it exits immediately. The argument has counterDigits decimal digits, which the program
// counts down in place. If an execve fails, it exits with the errno as its status.
func programCode(arch string) (machine uint16, code []byte, ok bool) {
	switch arch {
	case "amd64":
		return 62, amd64Code(), true // EM_X86_64
	case "arm64":
		return 183, arm64Code(), true // EM_AARCH64
	}
	return 0, nil, false
}

func amd64Code() []byte {
	return []byte{
		0x31, 0xff, //                   xor edi, edi          status 0
		0x83, 0x3c, 0x24, 0x02, //       cmp dword [rsp], 2    argc
		0x72, 0x34, //                   jb exit
		0x48, 0x8b, 0x5c, 0x24, 0x10, // mov rbx, [rsp+16]     argv[1]
		0x48, 0x8d, 0x4b, 0x09, //       lea rcx, [rbx+9]      its last digit
		0x80, 0x39, 0x30, //       next: cmp byte [rcx], '0'
		0x75, 0x0d, //                   jne take
		0xc6, 0x01, 0x39, //             mov byte [rcx], '9'   borrow from the digit before
		0x48, 0xff, 0xc9, //             dec rcx
		0x48, 0x39, 0xd9, //             cmp rcx, rbx
		0x73, 0xf0, //                   jae next
		0xeb, 0x19, //                   jmp exit              it was 0
		0xfe, 0x09, //             take: dec byte [rcx]
		0x48, 0x8b, 0x7c, 0x24, 0x08, // mov rdi, [rsp+8]      argv[0] is the path
		0x48, 0x8d, 0x74, 0x24, 0x08, // lea rsi, [rsp+8]      argv
		0x31, 0xd2, //                   xor edx, edx          no environment
		0xb8, 0x3b, 0x00, 0x00, 0x00, // mov eax, 59           execve
		0x0f, 0x05, //                   syscall
		0xf7, 0xd8, //                   neg eax
		0x89, 0xc7, //                   mov edi, eax          status errno
		0xb8, 0x3c, 0x00, 0x00, 0x00, // exit: mov eax, 60     exit
		0x0f, 0x05, //                   syscall
	}
}

func arm64Code() []byte {
	return words(
		0xf94003e1, //       ldr x1, [sp]      argc
		0xd2800000, //       mov x0, #0        status 0
		0xf100083f, //       cmp x1, #2
		0x54000283, //       b.lo exit
		0xf9400be2, //       ldr x2, [sp, #16] argv[1]
		0x91002443, //       add x3, x2, #9    its last digit
		0x39400064, // next: ldrb w4, [x3]
		0x7100c09f, //       cmp w4, #'0'
		0x540000e1, //       b.ne take
		0x52800724, //       mov w4, #'9'      borrow from the digit before
		0x39000064, //       strb w4, [x3]
		0xd1000463, //       sub x3, x3, #1
		0xeb02007f, //       cmp x3, x2
		0x54ffff22, //       b.hs next
		0x14000009, //       b exit            it was 0
		0x51000484, // take: sub w4, w4, #1
		0x39000064, //       strb w4, [x3]
		0xf94007e0, //       ldr x0, [sp, #8]  argv[0] is the path
		0x910023e1, //       add x1, sp, #8    argv
		0xd2800002, //       mov x2, #0        no environment
		0xd2801ba8, //       mov x8, #221      execve
		0xd4000001, //       svc #0
		0xcb0003e0, //       neg x0, x0        status errno
		0xd2800ba8, // exit: mov x8, #93       exit
		0xd4000001, //       svc #0
	)
}

func words(code ...uint32) (b []byte) {
	for _, w := range code {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// program returns a static executable of one page: an ELF header, one program header that maps the whole file (elf(5)),
// and the code.
func program(arch string) ([]byte, error) {
	machine, code, ok := programCode(arch)
	if !ok {
		return nil, fmt.Errorf("no program for %s: exec can be timed on amd64 and arm64", arch)
	}
	const (
		base, ehdr, phdr = 0x400000, 64, 56
		size             = ehdr + phdr
		page             = 0x10000 // the largest that arm64 may have
	)
	le := binary.LittleEndian
	b := []byte("\x7fELF\x02\x01\x01") // 64 bit, little-endian, version 1
	b = append(b, make([]byte, 16-len(b))...)
	b = le.AppendUint16(b, 2) // ET_EXEC
	b = le.AppendUint16(b, machine)
	b = le.AppendUint32(b, 1)         // EV_CURRENT
	b = le.AppendUint64(b, base+size) // e_entry
	b = le.AppendUint64(b, ehdr)      // e_phoff
	b = le.AppendUint64(b, 0)         // e_shoff
	b = le.AppendUint32(b, 0)         // e_flags
	for _, v := range []uint16{ehdr, phdr, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, 1) // PT_LOAD
	b = le.AppendUint32(b, 5) // PF_R | PF_X
	whole := uint64(size + len(code))
	for _, v := range []uint64{0, base, base, whole, whole, page} {
		b = le.AppendUint64(b, v)
	}
	return append(b, code...), nil
}
