package workload

import (
	"encoding/binary"
	"fmt"
)

// counterDigits is the length of the program's counter, in decimal digits: enough for maxCalls.
const counterDigits = 10

// What the program does once it has passed the gate.
const (
	doExecute = 'e' // execute itself as often as the counter says
	doFork    = 'f' // fork as many children, each of which ends at once, and wait for each
	doSpawn   = 's' // fork as many children, each of which executes the program, and wait for each
)

// refusedClone is in the program's status beside the errno if it was a clone that failed.
const refusedClone = 0x80

// programCode returns the machine code of a program that uses next to no memory.
//
// Without an argument it exits immediately. With one, a counter of counterDigits decimal digits, it executes itself as
// often as that says, counting down in place, and exits with status 0. A second argument puts a gate before that: its
// bytes are what to do, and the descriptors to read and to write. The program then writes a byte, and reads its
// counter. If a system call fails, it exits with the errno as its status.
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
		0x31, 0xff, // start: xor edi, edi
		0x83, 0x3c, 0x24, 0x02, // cmp dword [rsp], 2                argc
		0x0f, 0x82, 0x0d, 0x01, 0x00, 0x00, // jb exit
		0x48, 0x8b, 0x5c, 0x24, 0x10, // mov rbx, [rsp+16]                 argv[1], the counter
		0x0f, 0x84, 0xd1, 0x00, 0x00, 0x00, // je count
		0x4c, 0x8b, 0x64, 0x24, 0x18, // mov r12, [rsp+24]                 argv[2]
		0x48, 0xc7, 0x44, 0x24, 0x18, 0x00, 0x00, 0x00, 0x00, // mov qword [rsp+24], 0             of no use after the gate
		0x41, 0x0f, 0xb6, 0x7c, 0x24, 0x02, // movzx edi, byte [r12+2]
		0x48, 0x89, 0xde, // mov rsi, rbx
		0xba, 0x01, 0x00, 0x00, 0x00, // mov edx, 1
		0x89, 0xd0, // mov eax, edx                      write
		0x0f, 0x05, // syscall
		0x83, 0xf8, 0x01, // cmp eax, 1
		0x0f, 0x85, 0x84, 0x00, 0x00, 0x00, // jne broken
		0x41, 0x0f, 0xb6, 0x7c, 0x24, 0x01, // movzx edi, byte [r12+1]
		0xba, 0x0a, 0x00, 0x00, 0x00, // mov edx, 10
		0x31, 0xc0, // xor eax, eax                      read
		0x0f, 0x05, // syscall
		0x83, 0xf8, 0x0a, // cmp eax, 10
		0x75, 0x70, // jne broken
		0x41, 0x80, 0x3c, 0x24, 0x65, // cmp byte [r12], 'e'
		0x0f, 0x84, 0x89, 0x00, 0x00, 0x00, // je count
		0x31, 0xed, // xor ebp, ebp
		0x31, 0xc9, // xor ecx, ecx
		0x6b, 0xed, 0x0a, // digit: imul ebp, ebp, 10
		0x0f, 0xb6, 0x04, 0x0b, // movzx eax, byte [rbx+rcx]
		0x8d, 0x6c, 0x05, 0xd0, // lea ebp, [rbp+rax-48]
		0xff, 0xc1, // inc ecx
		0x83, 0xf9, 0x0a, // cmp ecx, 10
		0x72, 0xee, // jb digit
		0x48, 0xc7, 0x44, 0x24, 0x10, 0x00, 0x00, 0x00, 0x00, // mov qword [rsp+16], 0             children have no counter
		0x31, 0xff, // again: xor edi, edi
		0x83, 0xed, 0x01, // sub ebp, 1
		0x0f, 0x82, 0x90, 0x00, 0x00, 0x00, // jb exit
		0xbf, 0x11, 0x00, 0x00, 0x00, // mov edi, 17                       SIGCHLD
		0x31, 0xf6, // xor esi, esi
		0x31, 0xd2, // xor edx, edx
		0x45, 0x31, 0xd2, // xor r10d, r10d
		0x45, 0x31, 0xc0, // xor r8d, r8d
		0xb8, 0x38, 0x00, 0x00, 0x00, // mov eax, 56                       clone
		0x0f, 0x05, // syscall
		0x85, 0xc0, // test eax, eax
		0x74, 0x33, // jz child
		0x78, 0x26, // js refused
		0x89, 0xc7, // mov edi, eax
		0x48, 0x8d, 0x74, 0x24, 0xf0, // lea rsi, [rsp-16]
		0xb8, 0x3d, 0x00, 0x00, 0x00, // mov eax, 61                       wait4
		0x0f, 0x05, // syscall
		0x85, 0xc0, // test eax, eax
		0x78, 0x5e, // js failed
		0x8b, 0x7c, 0x24, 0xf0, // mov edi, [rsp-16]
		0x85, 0xff, // test edi, edi
		0x74, 0xbf, // jz again
		0xc1, 0xef, 0x08, // shr edi, 8
		0x75, 0x55, // jnz exit
		0xbf, 0x05, 0x00, 0x00, 0x00, // broken: mov edi, 5                EIO
		0xeb, 0x4e, // jmp exit
		0xf7, 0xd8, // refused: neg eax
		0x0d, 0x80, 0x00, 0x00, 0x00, // or eax, 0x80
		0x89, 0xc7, // mov edi, eax
		0xeb, 0x43, // jmp exit
		0x41, 0x80, 0x3c, 0x24, 0x73, // child: cmp byte [r12], 's'
		0x74, 0x25, // je execute
		0x31, 0xff, // xor edi, edi
		0xb8, 0xe7, 0x00, 0x00, 0x00, // mov eax, 231                      exit_group
		0x0f, 0x05, // syscall
		0xeb, 0x31, // jmp exit
		0x48, 0x8d, 0x4b, 0x09, // count: lea rcx, [rbx+9]           its last digit
		0x80, 0x39, 0x30, // next: cmp byte [rcx], '0'
		0x75, 0x0f, // jne take
		0xc6, 0x01, 0x39, // mov byte [rcx], '9'               borrow from the digit before
		0x48, 0xff, 0xc9, // dec rcx
		0x48, 0x39, 0xd9, // cmp rcx, rbx
		0x73, 0xf0, // jae next
		0x31, 0xff, // xor edi, edi
		0xeb, 0x19, // jmp exit
		0xfe, 0x09, // take: dec byte [rcx]
		0x48, 0x8b, 0x7c, 0x24, 0x08, // execute: mov rdi, [rsp+8]         argv[0] is the path
		0x48, 0x8d, 0x74, 0x24, 0x08, // lea rsi, [rsp+8]                  argv
		0x31, 0xd2, // xor edx, edx
		0xb8, 0x3b, 0x00, 0x00, 0x00, // mov eax, 59                       execve
		0x0f, 0x05, // syscall
		0xf7, 0xd8, // failed: neg eax
		0x89, 0xc7, // mov edi, eax
		0xb8, 0x3c, 0x00, 0x00, 0x00, // exit: mov eax, 60                 exit
		0x0f, 0x05, // syscall
	}
}

func arm64Code() []byte {
	return words(
		0xf94003e1, // start: ldr x1, [sp]               argc
		0xd2800000, // mov x0, #0
		0xf100083f, // cmp x1, #2
		0x54000a03, // b.lo exit
		0xf9400bf3, // ldr x19, [sp, #16]                argv[1], the counter
		0x54000760, // b.eq count
		0xf9400ff4, // ldr x20, [sp, #24]                argv[2]
		0xf9000fff, // str xzr, [sp, #24]                of no use after the gate
		0x39400a80, // ldrb w0, [x20, #2]
		0xaa1303e1, // mov x1, x19
		0xd2800022, // mov x2, #1
		0xd2800808, // mov x8, #64                       write
		0xd4000001, // svc #0
		0xf100041f, // cmp x0, #1
		0x54000501, // b.ne broken
		0x39400680, // ldrb w0, [x20, #1]
		0xd2800142, // mov x2, #10
		0xd28007e8, // mov x8, #63                       read
		0xd4000001, // svc #0
		0xf100281f, // cmp x0, #10
		0x54000441, // b.ne broken
		0x39400295, // ldrb w21, [x20]
		0x710196bf, // cmp w21, #'e'
		0x54000520, // b.eq count
		0xd2800016, // mov x22, #0
		0xd2800003, // mov x3, #0
		0xd2800144, // mov x4, #10
		0x38636a65, // digit: ldrb w5, [x19, x3]
		0x5100c0a5, // sub w5, w5, #'0'
		0x9b0416d6, // madd x22, x22, x4, x5
		0x91000463, // add x3, x3, #1
		0xf100287f, // cmp x3, #10
		0x54ffff63, // b.lo digit
		0xf9000bff, // str xzr, [sp, #16]                children have no counter
		0xd2800000, // again: mov x0, #0
		0xb4000616, // cbz x22, exit
		0xd10006d6, // sub x22, x22, #1
		0xd2800220, // mov x0, #17                       SIGCHLD
		0xd2800001, // mov x1, #0
		0xd2800002, // mov x2, #0
		0xd2800003, // mov x3, #0
		0xd2800004, // mov x4, #0
		0xd2801b88, // mov x8, #220                      clone
		0xd4000001, // svc #0
		0xb40001e0, // cbz x0, child
		0xb7f80160, // tbnz x0, #63, refused
		0xd10043e1, // sub x1, sp, #16
		0xd2802088, // mov x8, #260                      wait4
		0xd4000001, // svc #0
		0xb7f80420, // tbnz x0, #63, failed
		0xb85f03e0, // ldur w0, [sp, #-16]
		0x34fffde0, // cbz w0, again
		0x53087c00, // lsr w0, w0, #8
		0x350003c0, // cbnz w0, exit
		0xd28000a0, // broken: mov x0, #5                EIO
		0x1400001c, // b exit
		0xcb0003e0, // refused: neg x0, x0
		0xb2790000, // orr x0, x0, #0x80
		0x14000019, // b exit
		0x7101cebf, // child: cmp w21, #'s'
		0x54000220, // b.eq execute
		0xd2800bc8, // mov x8, #94                       exit_group
		0xd4000001, // svc #0
		0x14000014, // b exit
		0x91002663, // count: add x3, x19, #9            its last digit
		0x39400064, // next: ldrb w4, [x3]
		0x7100c09f, // cmp w4, #'0'
		0x54000101, // b.ne take
		0x52800724, // mov w4, #'9'                      borrow from the digit before
		0x39000064, // strb w4, [x3]
		0xd1000463, // sub x3, x3, #1
		0xeb13007f, // cmp x3, x19
		0x54ffff22, // b.hs next
		0xd2800000, // mov x0, #0
		0x14000009, // b exit
		0x51000484, // take: sub w4, w4, #1
		0x39000064, // strb w4, [x3]
		0xf94007e0, // execute: ldr x0, [sp, #8]         argv[0] is the path
		0x910023e1, // add x1, sp, #8                    argv
		0xd2800002, // mov x2, #0
		0xd2801ba8, // mov x8, #221                      execve
		0xd4000001, // svc #0
		0xcb0003e0, // failed: neg x0, x0
		0xd2800ba8, // exit: mov x8, #93                 exit
		0xd4000001, // svc #0
	)
}

func words(code ...uint32) (b []byte) {
	for _, w := range code {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// program returns the executable of the micro-workloads.
func program(arch string) ([]byte, error) {
	machine, code, ok := programCode(arch)
	if !ok {
		return nil, fmt.Errorf("no program for %s: exec can be timed on amd64 and arm64", arch)
	}
	return executable(machine, code), nil
}

// codeAt is where the code of an executable is in memory.
const codeAt = 0x400000 + 64 + 56

// executable returns a static executable of one page: an ELF header, one program header that maps the whole file
// (elf(5)), and the code.
func executable(machine uint16, code []byte) []byte {
	const (
		ehdr, phdr = 64, 56
		size       = ehdr + phdr
		base       = codeAt - size
		page       = 0x10000 // the largest that arm64 may have
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
	return append(b, code...)
}
