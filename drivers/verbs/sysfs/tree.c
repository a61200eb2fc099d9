/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree. It stands in $XDG_RUNTIME_DIR or /tmp, in a folder of its own, which only its user can
 * enter. The process holds a lock on the folder for as long as it lives. A folder without one was
 * left by a process that was killed, and goes when a process of the same user makes a tree. Numbers
 * of processes would not do: processes in different PID namespaces may share the folder.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#undef ibv_get_device_list
#undef ibv_query_port

#include "sysfs_priv.h"

#define MAJOR_UVERBS 231
#define MINOR_UVERBS 192
#define MAJOR_MISC   10
#define MINOR_CM     58
#define PREFIX       "saker-sysfs"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX / 2]; /* empty: there is no tree */
static pid_t maker;             /* the process whose tree it is */
static int held = -1;           /* descriptor of `root`, with the lock */
static __thread bool making;    /* this thread writes the tree, so that paths mean themselves */

static const char *const places[] = {
	"/sys/class/infiniband", "/sys/class/infiniband_verbs", SYSFS_NODES};

static const char *
base_folder(void)
{
	const char *run = getenv("XDG_RUNTIME_DIR");

	return run != NULL && run[0] == '/' && access(run, W_OK) == 0 ? run : "/tmp";
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static void
remove_tree(const char *path)
{
	nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Takes the lock of a folder. Returns a descriptor, or -1 when a process has it. */
static int
folder_lock(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Removes the trees of the user's processes that are no more. */
static void
tree_sweep(const char *base)
{
	DIR *d = opendir(base);
	struct dirent *e;
	char path[PATH_MAX];
	unsigned uid;
	int fd;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (sscanf(e->d_name, PREFIX ".%u.", &uid) != 1 || uid != getuid())
			continue;
		snprintf(path, sizeof(path), "%s/%s", base, e->d_name);
		fd = folder_lock(path);
		if (fd < 0)
			continue;
		remove_tree(path);
		close(fd);
	}
	if (d != NULL)
		closedir(d);
}

/* Creates the folder of the tree, and locks it. Another process may remove it in between: then the
 * lock is that of a folder without a name. Returns whether that succeeded. */
static bool
tree_folder(const char *base)
{
	struct stat named, locked;

	for (int tries = 0; tries < 16; tries++) {
		snprintf(root, sizeof(root), "%s/" PREFIX ".%u.XXXXXX", base, getuid());
		if (mkdtemp(root) == NULL)
			break;
		held = folder_lock(root);
		if (held >= 0 && fstat(held, &locked) == 0 && stat(root, &named) == 0 &&
			named.st_ino == locked.st_ino)
			return true;
		if (held >= 0)
			close(held);
		held = -1;
	}
	root[0] = '\0';
	return false;
}

static void
tree_end(void)
{
	if (root[0] != '\0' && maker == getpid())
		remove_tree(root);
}

/* ---- Writing ---- */

/* Creates a file of the tree, with its folders. The content is `fmt`, and a line end where there is
 * any. */
static void __attribute__((format(printf, 2, 3))) put(const char *path, const char *fmt, ...)
{
	char full[PATH_MAX], text[512];
	va_list ap;
	int fd, n;

	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
		return;
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	if (n > 0)
		text[n++] = '\n';
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd >= 0 && write(fd, text, (size_t)(n > 0 ? n : 0)) < 0)
		unlink(full);
	if (fd >= 0)
		close(fd);
}

static void
put_guid(const char *device, const char *name, __be64 guid)
{
	const uint16_t *g = (const uint16_t *)&guid;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", device, name);
	put(path, "%04x:%04x:%04x:%04x", be16toh(g[0]), be16toh(g[1]), be16toh(g[2]),
		be16toh(g[3]));
}

static void
put_gids(const char *device, struct ibv_context *c, int count)
{
	struct ibv_gid_entry e;
	char path[PATH_MAX];

	for (int i = 0; i < count; i++) {
		if (ibv_query_gid_ex(c, 1, (uint32_t)i, &e, 0) != 0)
			continue;
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gids/%d", device, i);
		put(path, "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x",
			e.gid.raw[0], e.gid.raw[1], e.gid.raw[2], e.gid.raw[3], e.gid.raw[4],
			e.gid.raw[5], e.gid.raw[6], e.gid.raw[7], e.gid.raw[8], e.gid.raw[9],
			e.gid.raw[10], e.gid.raw[11], e.gid.raw[12], e.gid.raw[13], e.gid.raw[14],
			e.gid.raw[15]);
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/types/%d",
			device, i);
		put(path, "%s", e.gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
	}
}

static double
lane_gbps(uint8_t speed)
{
	static const struct {
		uint8_t speed;
		double gbps;
	} lanes[] = {{1, 2.5}, {2, 5}, {4, 10}, {8, 10}, {16, 14}, {32, 25}, {64, 50}, {128, 100}};

	for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++)
		if (lanes[i].speed == speed)
			return lanes[i].gbps;
	return 2.5;
}

static unsigned
lanes_of(uint8_t width)
{
	return width == 2 ? 4 : width == 4 ? 8 : width == 8 ? 12 : width == 16 ? 2 : 1;
}

static void
put_port(const char *device, struct ibv_context *c)
{
	static const char *const states[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE"};
	struct ibv_port_attr p = {0};
	char path[PATH_MAX];
	unsigned n;

	if (ibv_query_port(c, 1, (void *)&p) != 0)
		return;
#define PORT(file, ...)                                                                            \
	do {                                                                                       \
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/" file, device);    \
		put(path, __VA_ARGS__);                                                            \
	} while (0)
	n = lanes_of(p.active_width);
	PORT("state", "%d: %s", p.state, p.state <= IBV_PORT_ACTIVE ? states[p.state] : "UNKNOWN");
	PORT("phys_state", "%s", p.state == IBV_PORT_ACTIVE ? "5: LinkUp" : "3: Disabled");
	PORT("rate", "%g Gb/sec (%uX)", lane_gbps(p.active_speed) * n, n);
	PORT("link_layer", "Ethernet");
	PORT("lid", "0x%x", p.lid);
	PORT("sm_lid", "0x%x", p.sm_lid);
	PORT("sm_sl", "%u", p.sm_sl);
	PORT("lid_mask_count", "%u", p.lmc);
	PORT("cap_mask", "0x%08x", p.port_cap_flags);
	PORT("pkeys/0", "0xffff");
#undef PORT
	put_gids(device, c, p.gid_tbl_len);
}

static void
put_device(struct ibv_device *d, unsigned index)
{
	struct ibv_context *c = ibv_open_device(d);
	struct ibv_device_attr a = {0};
	char path[PATH_MAX];

	if (c == NULL)
		return;
	ibv_query_device(c, &a);
#define DEVICE(file, ...)                                                                          \
	do {                                                                                       \
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/" file, d->name);           \
		put(path, __VA_ARGS__);                                                            \
	} while (0)
	DEVICE("node_type", "%d: %s", d->node_type, d->node_type == IBV_NODE_RNIC ? "RNIC" : "CA");
	DEVICE("node_desc", "Saker");
	DEVICE("fw_ver", "%s", a.fw_ver);
	DEVICE("hw_rev", "0x%x", a.hw_ver);
	DEVICE("hca_type", "Saker");
	DEVICE("device/vendor", "0x%04x", a.vendor_id);
	DEVICE("device/device", "0x%04x", a.vendor_part_id);
	DEVICE("device/numa_node", "-1");
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/infiniband/%s/name", d->name,
		d->name);
	put(path, "%s", d->name);
#undef DEVICE
	put_guid(d->name, "node_guid", a.node_guid);
	put_guid(d->name, "sys_image_guid", a.sys_image_guid);
	put_port(d->name, c);
	ibv_close_device(c);
#define CLASS(file, ...)                                                                           \
	do {                                                                                       \
		snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/%s/" file, d->dev_name); \
		put(path, __VA_ARGS__);                                                            \
	} while (0)
	CLASS("ibdev", "%s", d->name);
	CLASS("dev", "%d:%u", MAJOR_UVERBS, MINOR_UVERBS + index);
	CLASS("abi_version", "1");
#undef CLASS
	snprintf(path, sizeof(path), SYSFS_NODES "/%s", d->dev_name);
	put(path, "%s", "");
}

/* Writes the tree of the process. Call with the lock. */
static void
tree_make(void)
{
	const char *base = base_folder();
	struct ibv_device **list;
	int n = 0;

	list = ibv_get_device_list(&n);
	if (list == NULL || n == 0)
		return;
	tree_sweep(base);
	if (tree_folder(base)) {
		put("/sys/class/infiniband_verbs/abi_version", "6");
		put(SYSFS_NODES "/rdma_cm", "%s", "");
		for (int i = 0; i < n; i++)
			put_device(list[i], (unsigned)i);
		atexit(tree_end);
	}
	ibv_free_device_list(list);
}

/* ---- fork(2) ---- */

/* A thread that made the tree in the parent does not exist in the child, which makes its own. */
static void
tree_forked(void)
{
	pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void
tree_watch_forks(void)
{
	pthread_atfork(NULL, NULL, tree_forked);
}

/* ---- For the functions of the C library ---- */

static bool
is_place(const char *path)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		size_t n = strlen(places[i]);

		if (strncmp(path, places[i], n) == 0 && (path[n] == '\0' || path[n] == '/'))
			return true;
	}
	return false;
}

const char *
vb_sysfs_path(const char *path, char place[PATH_MAX])
{
	int saved = errno;

	if (path == NULL || making || !is_place(path))
		return path;
	making = true;
	pthread_mutex_lock(&lock);
	/* A child after fork(2) makes a tree of its own. */
	if (maker != getpid()) {
		root[0] = '\0';
		if (held >= 0)
			close(held);
		held = -1;
		maker = getpid();
		tree_make();
	}
	if (root[0] != '\0' && snprintf(place, PATH_MAX, "%s%s", root, path) < PATH_MAX)
		path = place;
	pthread_mutex_unlock(&lock);
	making = false;
	errno = saved;
	return path;
}

dev_t
vb_sysfs_node(const char *path)
{
	const size_t n = sizeof(SYSFS_NODES) - 1;
	char file[PATH_MAX], place[PATH_MAX];
	unsigned minor = 0, major = 0;
	FILE *f;

	if (path == NULL || strncmp(path, SYSFS_NODES "/", n + 1) != 0)
		return 0;
	if (strcmp(path + n + 1, "rdma_cm") == 0)
		return makedev(MAJOR_MISC, MINOR_CM);
	snprintf(file, sizeof(file), "/sys/class/infiniband_verbs/%s/dev", path + n + 1);
	f = fopen(vb_sysfs_path(file, place), "re");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%u:%u", &major, &minor) != 2)
		major = minor = 0;
	fclose(f);
	return makedev(major, minor);
}
