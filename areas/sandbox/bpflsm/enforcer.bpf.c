//go:build ignore

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Programs for the BPF LSM that refuse what the rules of the current process's slot name. "go generate" builds them,
// with clang alone.

#include "kernel.h"
#include "rules.h"

#define BEGINNING 4
#define ATTEMPTS 4

// The order of the counters, of which bpflsm.go repeats the hooks.
enum hook { FILE_OPEN, EXEC, CONNECT, CAPABLE, MOUNT, UMOUNT, PTRACE, TRACEME, LOST };

char license_of_programs[] SEC("license") = "Dual MIT/GPL";

// by_cgroup is set before loading: the key is the id of the control group, not the number of the mount namespace.
const volatile u32 by_cgroup = 0;

// observing is set before loading: what the rules would refuse is allowed, and reported as an event. The verifier
// removes the code for it where it is not set.
const volatile u32 observing = 0;

// current_slot returns the slot of the current process, or nothing where it is not confined.
static inline_always u32 *current_slot(void)
{
	u64 key;
	if (by_cgroup)
		key = bpf_get_current_cgroup_id();
	else
		key = bpf_get_current_task_btf()->nsproxy->mnt_ns->ns.inum;
	return bpf_map_lookup_elem(&tare_profiles, &key);
}

static inline_always void *current_rules(void *map)
{
	u32 *slot = current_slot();
	return slot ? bpf_map_lookup_elem(map, slot) : 0;
}

static inline_always void count(u32 counter)
{
	u64 *count = bpf_map_lookup_elem(&tare_refused, &counter);
	if (count)
		(*count)++;
}

// report makes an event. Its path and type are those of the scratch memory, if there is one.
static noinline void report(u32 hook, u32 number, struct scratch *s, u64 first, u64 second)
{
	struct event *e = bpf_ringbuf_reserve(&tare_events, sizeof(*e), 0);
	if (!e) {
		count(LOST);
		return;
	}
	e->hook = hook;
	e->number = number;
	e->address[0] = first;
	e->address[1] = second;
	e->type[0] = e->path[0] = 0;
	if (s) {
		bpf_probe_read_kernel_str(e->type, MAX_TYPE, s->type);
		bpf_probe_read_kernel_str(e->path, PATH_SIZE, s->path);
	}
	bpf_ringbuf_submit(e, 0);
}

// refuse refuses what a hook is asked, or reports it.
static inline_always int refuse(u32 hook, u32 number, struct scratch *s, u64 first, u64 second)
{
	count(hook);
	if (observing) {
		report(hook, number, s, first, second);
		return 0;
	}
	return -EPERM;
}

static inline_always struct scratch *get_scratch(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&tare_scratch, &zero);
}

// begins_alike compares the first bytes, one by one up to the first difference. It is inlined, so that a rule about
// another folder does not cost a call. Were it to compare more, the verifier would take seconds.
static inline_always int begins_alike(struct path_rule *r, struct scratch *s)
{
	u32 n = r->prefix_length;
	for (u32 i = 0; i < BEGINNING && i < n; i++)
		if (r->prefix[i] != s->path[i])
			return 0;
	return 1;
}

// rest_matches compares what follows the beginning. It is not static, nor are the functions that go through the rules:
// the verifier then checks it once and not at each call.
noinline int rest_matches(struct path_rule *r, struct scratch *s, u32 length)
{
	if (!r || !s)
		return 0;
	u32 n = r->prefix_length;
	for (u32 i = BEGINNING; i < MAX_PART && i < n; i++)
		if (r->prefix[i] != s->path[i])
			return 0;
	if (r->exact)
		return length == n;
	u32 m = r->suffix_length;
	if (length < n + m)
		return 0;
	u32 start = length - m;
	for (u32 i = 0; i < MAX_PART && i < m; i++)
		if (r->suffix[i] != s->path[(start + i) & (PATH_SIZE - 1)])
			return 0;
	return 1;
}

// scan reports whether a rule refuses the path in the scratch memory.
noinline int scan(struct path_rules *list, struct scratch *s, u32 length, u32 access)
{
	if (!list || !s)
		return 1;
	u32 n = list->count;
	for (u32 i = 0; i < MAX_RULES && i < n; i++) {
		struct path_rule *r = &list->rules[i];
		if ((r->access & access) && begins_alike(r, s) && rest_matches(r, s, length))
			return 1;
	}
	return 0;
}

// refuse_path also refuses paths that the kernel cannot write out. A preemptible kernel may run another task between the
// reading of the path and the end of the scan, which then overwrites the scratch memory: the scan is then repeated.
static inline_always int refuse_path(u32 hook, struct path *path, struct path_rules *list, u32 access)
{
	struct scratch *s = get_scratch(), *found = 0;
	int refused = 1;
	for (int i = 0; s && i < ATTEMPTS; i++) {
		u64 me = (u64)bpf_get_current_task_btf();
		s->owner = me;
		long size = bpf_d_path(path, s->path, PATH_SIZE);
		if (size < 1)
			break;
		int matches = scan(list, s, size - 1, access);
		if (s->owner == me) {
			refused = matches;
			found = s;
			break;
		}
	}
	return refused ? refuse(hook, access, found, 0, 0) : 0;
}

// Executing opens the file too; what may be executed is told by the rules of execs only.
SEC("lsm/file_open")
int tare_file_open(u64 *ctx)
{
	struct file *file = (void *)ctx[0];
	int before = ctx[1];
	if (before)
		return before;
	struct path_rules *list = current_rules(&tare_files);
	if (!list || !list->count || file->f_flags & FMODE_EXEC)
		return 0;
	return refuse_path(FILE_OPEN, &file->f_path, list, file->f_mode & (FMODE_READ | FMODE_WRITE));
}

SEC("lsm/bprm_check_security")
int tare_exec(u64 *ctx)
{
	struct linux_binprm *program = (void *)ctx[0];
	int before = ctx[1];
	if (before)
		return before;
	struct path_rules *list = current_rules(&tare_execs);
	if (!list || !list->count)
		return 0;
	return refuse_path(EXEC, &program->file->f_path, list, FMODE_READ);
}

// The beginning of struct sockaddr_in and all of struct sockaddr_in6.
struct socket_address {
	u16 family;
	u16 port;
	u32 ipv4;
	u32 ipv6[4];
	u32 scope;
};

// An IPv6 address that maps an IPv4 address is an IPv4 address: the kernel connects by IPv4.
SEC("lsm/socket_connect")
int tare_connect(u64 *ctx)
{
	int before = ctx[3];
	if (before)
		return before;
	struct address_rules *list = current_rules(&tare_connects);
	if (!list || !list->count)
		return 0;
	struct socket_address a = {};
	if (bpf_probe_read_kernel(&a, sizeof(a), (void *)ctx[1]))
		return refuse(CONNECT, 0, 0, 0, 0);
	u64 first = a.ipv4, second = 0;
	u16 family = a.family;
	if (family == AF_INET6) {
		first = (u64)a.ipv6[1] << 32 | a.ipv6[0];
		second = (u64)a.ipv6[3] << 32 | a.ipv6[2];
		if (!first && a.ipv6[2] == 0xffff0000) {
			family = AF_INET;
			first = a.ipv6[3];
			second = 0;
		}
	}
	u32 n = list->count;
	for (u32 i = 0; i < MAX_RULES && i < n; i++) {
		struct address_rule *r = &list->rules[i];
		if (r->family == family && (first & r->mask[0]) == r->address[0] &&
		    (second & r->mask[1]) == r->address[1] && (!r->port || r->port == a.port))
			return refuse(CONNECT, (u32)family << 16 | a.port, 0, first, second);
	}
	return 0;
}

SEC("lsm/capable")
int tare_capable(u64 *ctx)
{
	int before = ctx[4];
	if (before)
		return before;
	struct switches *s = current_rules(&tare_switches);
	return s && s->capabilities >> (ctx[2] & 63) & 1 ? refuse(CAPABLE, ctx[2], 0, 0, 0) : 0;
}

noinline int type_matches(struct mount_rule *r, struct scratch *s)
{
	if (!r || !s)
		return 0;
	for (u32 i = 0; i < MAX_TYPE; i++) {
		if (r->type[i] != s->type[i])
			return 0;
		if (!r->type[i])
			return 1;
	}
	return 1;
}

noinline int scan_mounts(struct mount_rules *list, struct scratch *s, u32 length)
{
	if (!list || !s)
		return 1;
	u32 n = list->count;
	for (u32 i = 0; i < MAX_RULES && i < n; i++) {
		struct mount_rule *r = &list->rules[i];
		if ((!r->type[0] || type_matches(r, s)) && begins_alike(&r->source, s) &&
		    rest_matches(&r->source, s, length))
			return 1;
	}
	return 0;
}

// Callers of mount(2) may leave out the source or the type, which is then empty.
SEC("lsm/sb_mount")
int tare_mount(u64 *ctx)
{
	int before = ctx[5];
	if (before)
		return before;
	struct mount_rules *list = current_rules(&tare_mounts);
	if (!list || !list->count)
		return 0;
	struct scratch *s = get_scratch(), *found = 0;
	int refused = 1;
	for (int i = 0; s && i < ATTEMPTS; i++) {
		u64 me = (u64)bpf_get_current_task_btf();
		s->owner = me;
		long size = bpf_probe_read_kernel_str(s->path, PATH_SIZE, (void *)ctx[0]);
		if (bpf_probe_read_kernel_str(s->type, MAX_TYPE, (void *)ctx[2]) < 1)
			s->type[0] = 0;
		int matches = scan_mounts(list, s, size < 1 ? 0 : size - 1);
		if (s->owner == me) {
			refused = matches;
			found = s;
			break;
		}
	}
	return refused ? refuse(MOUNT, 0, found, 0, 0) : 0;
}

SEC("lsm/sb_umount")
int tare_umount(u64 *ctx)
{
	int before = ctx[2];
	if (before)
		return before;
	struct switches *s = current_rules(&tare_switches);
	return s && s->umount ? refuse(UMOUNT, 0, 0, 0, 0) : 0;
}

SEC("lsm/ptrace_access_check")
int tare_ptrace(u64 *ctx)
{
	int before = ctx[2];
	if (before)
		return before;
	struct switches *s = current_rules(&tare_switches);
	return s && s->ptrace ? refuse(PTRACE, 0, 0, 0, 0) : 0;
}

// A process that asks to be traced would let its parent, which has the same rules, do what the rules refuse.
SEC("lsm/ptrace_traceme")
int tare_traceme(u64 *ctx)
{
	int before = ctx[1];
	if (before)
		return before;
	struct switches *s = current_rules(&tare_switches);
	return s && s->ptrace ? refuse(TRACEME, 0, 0, 0, 0) : 0;
}
