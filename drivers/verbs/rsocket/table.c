/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of descriptors, the list of sockets, and what fork(2) does to both. */
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rs_priv.h"

#define PAGE_FDS 1024
#define PAGES    1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_rs **pages[PAGES]; /* atomic; so are their entries */
static LIST_HEAD(, vb_rs) sockets = LIST_HEAD_INITIALIZER(sockets);
static uint32_t epoch;
static pid_t owner; /* the process whose descriptors the table has */

bool
vb_rs_foreign(void)
{
	return owner != 0 && getpid() != owner;
}

uint32_t
vb_rs_epoch(void)
{
	return __atomic_load_n(&epoch, __ATOMIC_RELAXED);
}

static struct vb_rs **
table_entry(int fd)
{
	struct vb_rs **page;

	if (fd < 0 || fd >= PAGE_FDS * PAGES)
		return NULL;
	page = __atomic_load_n(&pages[fd / PAGE_FDS], __ATOMIC_ACQUIRE);
	return page != NULL ? &page[fd % PAGE_FDS] : NULL;
}

bool
vb_rs_known(int fd)
{
	struct vb_rs **e = table_entry(fd);

	return e != NULL && __atomic_load_n(e, __ATOMIC_RELAXED) != NULL;
}

int
vb_rs_next(int fd)
{
	if (fd < 0)
		fd = 0;
	while (fd < PAGE_FDS * PAGES) {
		if (table_entry(fd) == NULL)
			fd += PAGE_FDS - fd % PAGE_FDS;
		else if (vb_rs_known(fd))
			return fd;
		else
			fd++;
	}
	return -1;
}

struct vb_rs *
vb_rs_new(int domain)
{
	struct vb_rs *rs = calloc(1, sizeof(*rs));

	if (rs == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	rs->domain = domain;
	rs->epoch = vb_rs_epoch();
	rs->a = rs->b = rs->shadow = -1;
	rs->state = RS_NEW;
	rs->slots_rx = rs->slots_tx = RS_SLOTS;
	rs->out = true;
	STAILQ_INIT(&rs->ready);
	pthread_mutex_init(&rs->lock, NULL);
	rs->refs = 1;
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&sockets, rs, next);
	pthread_mutex_unlock(&lock);
	return rs;
}

struct vb_rs *
vb_rs_get(int fd)
{
	struct vb_rs **e = table_entry(fd), *rs = NULL;

	if (e != NULL && __atomic_load_n(e, __ATOMIC_RELAXED) != NULL) {
		pthread_mutex_lock(&lock);
		rs = *e;
		if (rs != NULL)
			rs->refs++;
		pthread_mutex_unlock(&lock);
	}
	if (rs == NULL)
		errno = EBADF;
	return rs;
}

void
vb_rs_hold(struct vb_rs *rs)
{
	pthread_mutex_lock(&lock);
	rs->refs++;
	pthread_mutex_unlock(&lock);
}

void
vb_rs_put(struct vb_rs *rs)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = --rs->refs == 0;
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	vb_rs_fds_close(rs);
	pthread_mutex_destroy(&rs->lock);
	free(rs);
}

int
vb_rs_enter(int fd, struct vb_rs *rs)
{
	struct vb_rs **page;
	int err = 0;

	if (fd < 0 || fd >= PAGE_FDS * PAGES)
		return EMFILE;
	pthread_mutex_lock(&lock);
	page = pages[fd / PAGE_FDS];
	if (page == NULL) {
		page = calloc(PAGE_FDS, sizeof(struct vb_rs *));
		__atomic_store_n(&pages[fd / PAGE_FDS], page, __ATOMIC_RELEASE);
	}
	if (page == NULL) {
		err = ENOMEM;
	} else {
		__atomic_store_n(&page[fd % PAGE_FDS], rs, __ATOMIC_RELEASE);
		rs->refs++;
		rs->users++;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

struct vb_rs *
vb_rs_leave(int fd, bool *last)
{
	struct vb_rs **e = table_entry(fd), *rs = NULL;

	*last = false;
	if (e == NULL)
		return NULL;
	pthread_mutex_lock(&lock);
	rs = *e;
	__atomic_store_n(e, NULL, __ATOMIC_RELEASE);
	if (rs != NULL)
		*last = --rs->users == 0;
	pthread_mutex_unlock(&lock);
	return rs;
}

void
vb_rs_unlist(struct vb_rs *rs)
{
	pthread_mutex_lock(&lock);
	LIST_REMOVE(rs, next);
	pthread_mutex_unlock(&lock);
	vb_rs_put(rs);
}

void
vb_rs_each(void (*each)(struct vb_rs *rs))
{
	struct vb_rs *rs, *then;

	pthread_mutex_lock(&lock);
	for (rs = LIST_FIRST(&sockets); rs != NULL; rs = then) {
		then = LIST_NEXT(rs, next);
		each(rs);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- Descriptors of the library ---- */

/* With the lock of the table, a fork(2) comes before a change or after it: the child closes the
 * descriptors of a socket by their numbers, and the parent watches `b`. */

void
vb_rs_end_set(struct vb_rs *rs, int b)
{
	pthread_mutex_lock(&lock);
	rs->b = b;
	pthread_mutex_unlock(&lock);
}

/* A child may have a copy of `b` after this, and as long as a copy exists, epoll(7) reports what
 * happens at it with the address of the socket, which the caller is going to free. */
void
vb_rs_fd_close(struct vb_rs *rs, int *fd)
{
	pthread_mutex_lock(&lock);
	if (fd == &rs->b && rs->epoch == vb_rs_epoch())
		vb_rs_thread_watch(rs, 0);
	if (*fd >= 0)
		vb_rs_sys_close(*fd);
	*fd = -1;
	pthread_mutex_unlock(&lock);
}

void
vb_rs_watch(struct vb_rs *rs, uint32_t events)
{
	pthread_mutex_lock(&lock);
	vb_rs_thread_watch(rs, events);
	pthread_mutex_unlock(&lock);
}

/* ---- fork(2) ---- */

static void
table_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void
table_fork_parent(void)
{
	struct vb_rs *rs;

	LIST_FOREACH (rs, &sockets, next) {
		__atomic_store_n(&rs->shared, true, __ATOMIC_RELEASE);
		if (!__atomic_load_n(&rs->relay, __ATOMIC_ACQUIRE))
			vb_rs_thread_watch(rs, EPOLLIN | EPOLLET);
	}
	pthread_mutex_unlock(&lock);
}

/* The sockets stay with the parent. The child keeps their descriptors and states, and closes its
 * copies of the parent's ends, so that each process detects the other one's close. */
static void
table_fork_child(void)
{
	struct vb_rs *rs;

	__atomic_store_n(&epoch, epoch + 1, __ATOMIC_RELAXED);
	owner = getpid();
	pthread_mutex_init(&lock, NULL);
	while ((rs = LIST_FIRST(&sockets)) != NULL) {
		LIST_REMOVE(rs, next);
		pthread_mutex_init(&rs->lock, NULL);
		vb_rs_fds_close(rs);
	}
	vb_rs_thread_fork_child();
}

__attribute__((constructor)) static void
table_watch_forks(void)
{
	owner = getpid();
	pthread_atfork(table_fork_prepare, table_fork_parent, table_fork_child);
}
