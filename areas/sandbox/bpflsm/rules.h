// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Rules, and the maps that hold them.

// Bounds and layouts that rules.go repeats.
#define MAX_PROFILES 1024
#define SLOTS 32
#define MAX_RULES 128
#define MAX_PART 64
#define MAX_TYPE 32
#define COUNTERS 9 // one for each hook, and one for lost events
#define PATH_SIZE 4096 // PATH_MAX

// A path that begins with the prefix and ends with the suffix, or that is the prefix.
struct path_rule {
	u8 access; // FMODE_READ, FMODE_WRITE or both; not of executing and mounting
	u8 exact;
	u8 prefix_length;
	u8 suffix_length;
	char prefix[MAX_PART];
	char suffix[MAX_PART];
};

struct path_rules {
	u32 count;
	struct path_rule rules[MAX_RULES];
};

struct mount_rule {
	struct path_rule source;
	char type[MAX_TYPE]; // empty: any
};

struct mount_rules {
	u32 count;
	struct mount_rule rules[MAX_RULES];
};

// Addresses are as in network packets; IPv4 takes the first 4 bytes, the others are 0.
struct address_rule {
	u64 address[2];
	u64 mask[2];
	u16 port;   // 0: any
	u16 family; // AF_INET or AF_INET6
	u32 unused;
};

struct address_rules {
	u64 count;
	struct address_rule rules[MAX_RULES];
};

// What needs no list.
struct switches {
	u64 capabilities; // a bit for each
	u32 ptrace;
	u32 umount;
};

struct scratch {
	volatile u64 owner; // the task that wrote last
	char type[MAX_TYPE];
	char path[PATH_SIZE];
};

// What the rules would refuse, where they are observed.
struct event {
	u32 hook;
	u32 number; // how a file is opened, the capability, or the family and port of an address
	u64 address[2];
	char type[MAX_TYPE];
	char path[PATH_SIZE];
};

#define MAP(name, kind, entries, key_type, value_type) \
	struct { \
		uint_of(type, kind); \
		uint_of(max_entries, entries); \
		type_of(key, key_type); \
		type_of(value, value_type); \
	} name SEC(".maps")

MAP(tare_profiles, BPF_MAP_TYPE_HASH, MAX_PROFILES, u64, u32); // slots by key
MAP(tare_files, BPF_MAP_TYPE_ARRAY, SLOTS, u32, struct path_rules);
MAP(tare_execs, BPF_MAP_TYPE_ARRAY, SLOTS, u32, struct path_rules);
MAP(tare_connects, BPF_MAP_TYPE_ARRAY, SLOTS, u32, struct address_rules);
MAP(tare_mounts, BPF_MAP_TYPE_ARRAY, SLOTS, u32, struct mount_rules);
MAP(tare_switches, BPF_MAP_TYPE_ARRAY, SLOTS, u32, struct switches);
MAP(tare_scratch, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, struct scratch);
MAP(tare_refused, BPF_MAP_TYPE_PERCPU_ARRAY, COUNTERS, u32, u64);

// The loader chooses the size.
struct {
	uint_of(type, BPF_MAP_TYPE_RINGBUF);
	uint_of(max_entries, 1);
} tare_events SEC(".maps");
