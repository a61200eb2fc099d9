/* SPDX-License-Identifier: BSD-3-Clause */
/* fork(2) while another thread holds a lock of the process: the child, in which that thread does
 * not exist, uses the lock. */
#include <criterion/criterion.h>
#include <ftw.h>
#include <ifaddrs.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../drivers/verbs/process_priv.h"
#include "../../../drivers/verbs/sysfs/sysfs_priv.h"
#include "../../../drivers/verbs/verbs_priv.h"
#include "../../../lib/client/path.h"

#define LIMIT 60 /* seconds */

/* ---- The thread that holds a lock ---- */

static sem_t inside, go;
static __thread bool holding;  /* this thread stops before it releases its next lock */
static pthread_mutex_t *taken; /* the lock that it holds then */

int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);

static void
sem_take(sem_t *sem)
{
	while (sem_wait(sem) != 0)
		;
}

/* A handler of fork(2) that waits for the lock lets the holder go on. */
int
__wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	if (m == taken) {
		taken = NULL;
		sem_post(&go);
	}
	return __real_pthread_mutex_lock(m);
}

static void
hold(void)
{
	sem_post(&inside);
	sem_take(&go);
}

int
__wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
	if (holding) {
		holding = false;
		taken = m;
		hold();
	}
	return __real_pthread_mutex_unlock(m);
}

/* ---- What the tested files need of others ---- */

void
cl_wait_for_events(void)
{
}

int
saker_open(const char *where, const char *name, struct saker **out)
{
	return 0;
}

int
saker_device(struct saker *s, struct saker_device *out)
{
	return 0;
}

void
saker_close(struct saker *s)
{
}

bool
saker_gone(struct saker *s)
{
	return false;
}

const char *
saker_error(void)
{
	return "";
}

bool
vb_dispatch(struct vb_attachment *a)
{
	return true;
}

void
vb_dispatch_fork_prepare(void)
{
}

void
vb_dispatch_fork_parent(void)
{
}

void
vb_dispatch_fork_child(struct vb_attachment *a)
{
}

void
vb_contexts_fork_prepare(void)
{
}

void
vb_contexts_fork_parent(void)
{
}

void
vb_contexts_fork_child(void)
{
}

void
vb_objects_fork_prepare(void)
{
}

void
vb_objects_fork_parent(void)
{
}

void
vb_objects_fork_child(void)
{
}

/* Does nothing, in the place of both functions for lists of addresses. */
static int
no_addresses(struct ifaddrs **list)
{
	return -1;
}

void *
vb_sysfs_next(void **cache, const char *name)
{
	*(__typeof__(&no_addresses) *)(void *)cache = no_addresses;
	return *cache;
}

static bool stops; /* a thread that opens a device stops */

struct ibv_context *
ibv_open_device(struct ibv_device *d)
{
	if (stops) {
		stops = false;
		hold();
	}
	return NULL;
}

int
ibv_close_device(struct ibv_context *c)
{
	return 0;
}

int
ibv_query_device(struct ibv_context *c, struct ibv_device_attr *attr)
{
	return -1;
}

int
ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return -1;
}

int
ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
	return -1;
}

int
_ibv_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
	uint32_t flags, size_t size)
{
	return -1;
}

const char *
ibv_node_type_str(enum ibv_node_type type)
{
	return "";
}

/* ---- Tests ---- */

/* Forks while a thread runs `use` and holds its lock. Asserts that the child can run it, too. */
static void
fork_beside(void (*use)(void), void *(*thread)(void *arg))
{
	pthread_t holder;
	int status;
	pid_t pid;

	cr_assert_eq(sem_init(&inside, 0, 0), 0);
	cr_assert_eq(sem_init(&go, 0, 0), 0);
	cr_assert_eq(pthread_create(&holder, NULL, thread, NULL), 0);
	sem_take(&inside);
	pid = fork();
	if (pid == 0) {
		stops = false;
		alarm(LIMIT / 3);
		use();
		_exit(0);
	}
	cr_assert_gt(pid, 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "the child waits for a lock of its parent");
	sem_post(&go);
	cr_assert_eq(pthread_join(holder, NULL), 0);
}

static struct ibv_device **list;

static void
use_devices(void)
{
	ibv_get_device_guid(list[0]);
}

static void *
holder_of_devices(void *arg)
{
	holding = true;
	use_devices();
	return NULL;
}

Test(verbs_fork, a_child_uses_the_devices, .timeout = LIMIT)
{
	list = ibv_get_device_list(NULL);
	cr_assert_not_null(list);
	cr_assert_not_null(list[0]);
	fork_beside(use_devices, holder_of_devices);
	ibv_free_device_list(list);
}

static void
use_ifaddrs(void)
{
	freeifaddrs(NULL);
}

static void *
holder_of_ifaddrs(void *arg)
{
	holding = true;
	use_ifaddrs();
	return NULL;
}

Test(verbs_fork, a_child_uses_the_lists_of_addresses, .timeout = LIMIT)
{
	fork_beside(use_ifaddrs, holder_of_ifaddrs);
}

/* The child has no devices, so that it makes no folders. */
static void
use_tree(void)
{
	char place[PATH_MAX];

	setenv("SAKER_DEVICES", "none", 1);
	vb_sysfs_path("/sys/class/infiniband", place);
}

/* Holds the lock of the folders while it describes a device. */
static void *
holder_of_tree(void *arg)
{
	char place[PATH_MAX];

	stops = true;
	vb_sysfs_path("/sys/class/infiniband", place);
	return NULL;
}

static int
remove_one_of(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

Test(verbs_fork, a_child_uses_the_folders_of_devices, .timeout = LIMIT)
{
	char folder[] = "/tmp/saker-fork-XXXXXX";

	cr_assert_not_null(mkdtemp(folder));
	cr_assert_eq(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
	fork_beside(use_tree, holder_of_tree);
	cr_assert_eq(nftw(folder, remove_one_of, 8, FTW_DEPTH | FTW_PHYS), 0);
}
