// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What the programs use of the kernel and of the loader. Fields of the structures are relocated at load.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define inline_always inline __attribute__((always_inline))
#define noinline __attribute__((noinline))
#define uint_of(name, value) int (*name)[value]
#define type_of(name, value) value *name

#define EPERM 1
#define AF_INET 2
#define AF_INET6 10
#define FMODE_READ 1
#define FMODE_WRITE 2
#define FMODE_EXEC 0x20
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_RINGBUF 27

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*bpf_get_current_cgroup_id)(void) = (void *)80;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static void *(*bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static long (*bpf_d_path)(void *path, char *buffer, u32 size) = (void *)147;
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
	u32 inum;
};
struct mnt_namespace {
	struct ns_common ns;
};
struct nsproxy {
	struct mnt_namespace *mnt_ns;
};
struct task_struct {
	struct nsproxy *nsproxy;
};
struct path {
	void *mnt;
	void *dentry;
};
struct file {
	u32 f_mode;
	u32 f_flags;
	struct path f_path;
};
struct linux_binprm {
	struct file *file;
};
#pragma clang attribute pop
