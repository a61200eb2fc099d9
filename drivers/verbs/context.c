/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opened devices. The inline functions of <infiniband/verbs.h> call the library through a table in
 * each context. In a child after fork(2) the library replaces the data path in that table by
 * functions that return an error.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/client/path.h"
#include "events_priv.h"
#include "ops_priv.h"
#include "process_priv.h"
#include "verbs_priv.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, vb_context) contexts = LIST_HEAD_INITIALIZER(contexts);

int
vb_alive(struct ibv_context *c)
{
	if (__atomic_load_n(&vb_context(c)->dead, __ATOMIC_RELAXED) == 0)
		return 0;
	return vb_fail(EIO, "the context belongs to the parent process");
}

/* ---- Objects ---- */

void
vb_owned_enter(struct ibv_context *context, struct vb_owned *o, enum vb_owned_kind kind)
{
	o->context = vb_context(context);
	o->kind = kind;
	o->ended = false;
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&o->context->owned, o, next);
	pthread_mutex_unlock(&lock);
}

/* Frees a closed context without objects. Call with the lock held. */
static void
context_sweep(struct vb_context *c)
{
	if (!c->closed || !LIST_EMPTY(&c->owned))
		return;
	LIST_REMOVE(c, next);
	free(c);
}

void
vb_owned_leave(struct vb_owned *o)
{
	pthread_mutex_lock(&lock);
	LIST_REMOVE(o, next);
	context_sweep(o->context);
	pthread_mutex_unlock(&lock);
}

/* ---- async_fd ---- */

/* async_fd is an epoll descriptor. It contains the eventfd of the context's queue and, while no
 * thread delivers events, libsaker's descriptor, which no reply makes readable. A thread that every
 * context started would make a program with one thread take the locks of the data path. */

static int
context_watch(int epoll, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? errno : 0;
}

static int
async_begin(struct vb_context *c)
{
	int rc = vb_waitq_init(&c->async, vb_async_taken);

	if (rc != 0)
		return rc;
	c->vctx.context.async_fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->vctx.context.async_fd < 0) {
		rc = errno;
		vb_waitq_fini(&c->async);
		return rc;
	}
	rc = context_watch(c->vctx.context.async_fd, c->async.event);
	if (rc == 0 && !vb_dispatch_running(c->at))
		rc = context_watch(c->vctx.context.async_fd, cl_fd_events(c->saker));
	if (rc != 0) {
		close(c->vctx.context.async_fd);
		vb_waitq_fini(&c->async);
	}
	return rc;
}

/* Removes libsaker's descriptor from async_fd. Call with the lock held. */
static void
unwatch(struct vb_context *c)
{
	epoll_ctl(c->vctx.context.async_fd, EPOLL_CTL_DEL, cl_fd_events(c->saker), NULL);
}

void
vb_contexts_dispatched(const struct vb_attachment *a)
{
	struct vb_context *c;

	pthread_mutex_lock(&lock);
	LIST_FOREACH (c, &contexts, next)
		if (!c->dead && !c->closed && c->at == a)
			unwatch(c);
	pthread_mutex_unlock(&lock);
}

void
vb_contexts_gone(const struct vb_attachment *a)
{
	struct vb_context *c;

	pthread_mutex_lock(&lock);
	LIST_FOREACH (c, &contexts, next) {
		if (c->dead || c->closed || c->at != a)
			continue;
		unwatch(c); /* libsaker's descriptor stays readable from now on */
		vb_async_raise(&c->vctx.context, IBV_EVENT_DEVICE_FATAL, NULL);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- Opening and closing ---- */

static void
context_enter(struct vb_context *c)
{
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&contexts, c, next);
	pthread_mutex_unlock(&lock);
	/* The dispatching thread may have started before the context was in the list. */
	if (vb_dispatch_running(c->at))
		vb_contexts_dispatched(c->at);
}

/* Makes a context, which takes over the attachment and, if there is one, the descriptor. Returns
 * NULL with errno. */
static struct ibv_context *
context_new(struct ibv_device *device, struct vb_attachment *a, int cmd_fd)
{
	struct vb_context *c = calloc(1, sizeof(*c));
	const char *poll;
	struct stat file;
	int rc;

	if (c == NULL) {
		vb_attachment_release(a);
		errno = ENOMEM;
		return NULL;
	}
	c->kind = ((struct vb_device *)device)->kind;
	c->at = a;
	c->saker = a->saker;
	c->info = a->device;
	poll = getenv("SAKER_POLL");
	c->poll_yields = poll != NULL && strcmp(poll, "yield") == 0;
	c->vctx.sz = sizeof(c->vctx);
	c->vctx.context.device = device;
	c->vctx.context.cmd_fd = cmd_fd;
	c->vctx.context.num_comp_vectors = 1;
	c->vctx.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	if (cmd_fd >= 0 && fstat(cmd_fd, &file) == 0) {
		c->dev = file.st_dev;
		c->ino = file.st_ino;
	}
	LIST_INIT(&c->owned);
	pthread_mutex_init(&c->vctx.context.mutex, NULL);
	vb_ops_fill(&c->vctx);
	rc = async_begin(c);
	if (rc != 0) {
		free(c);
		vb_attachment_release(a);
		errno = rc;
		return NULL;
	}
	context_enter(c);
	return &c->vctx.context;
}

/* The command descriptor of a context is an empty file, which only identifies the context. */
VB_EXPORT struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	struct vb_attachment *a = vb_attach();
	struct ibv_context *context;
	int fd;

	if (a == NULL)
		return NULL;
	fd = memfd_create("saker-context", MFD_CLOEXEC);
	context = context_new(device, a, fd);
	if (context == NULL && fd >= 0)
		close(fd);
	return context;
}

static bool
same_file(const struct vb_context *a, const struct vb_context *b)
{
	return a == b || (a->ino != 0 && a->ino == b->ino && a->dev == b->dev);
}

/* Returns whether a context that is not closed has the file of the command descriptor of `c`. Call
 * with the lock held. */
static bool
context_file_open(const struct vb_context *c)
{
	const struct vb_context *other;

	LIST_FOREACH (other, &contexts, next)
		if (!other->closed && same_file(c, other))
			return true;
	return false;
}

/* Destroys the objects that are left in a closed context and in the closed ones that have its file
 * in common: contexts that were imported use each other's objects until the last one is closed. The
 * caller holds the events' lock, under which contexts are closed. */
static void
objects_end(struct vb_context *c)
{
	struct vb_context *other;

	pthread_mutex_lock(&lock);
	if (!c->dead && !context_file_open(c))
		LIST_FOREACH (other, &contexts, next)
			if (same_file(c, other))
				vb_owned_end(other);
	pthread_mutex_unlock(&lock);
}

VB_EXPORT int
ibv_close_device(struct ibv_context *context)
{
	struct vb_context *c = vb_context(context);
	struct vb_attachment *a = c->dead ? NULL : c->at;

	vb_objects_hide(context);
	vb_events_lock();
	c->closed = true;
	objects_end(c);
	vb_async_purge(context);
	vb_waitq_fini(&c->async);
	vb_events_unlock();
	close(context->async_fd);
	if (context->cmd_fd >= 0)
		close(context->cmd_fd);
	pthread_mutex_destroy(&context->mutex);
	pthread_mutex_lock(&lock);
	context_sweep(c);
	pthread_mutex_unlock(&lock);
	if (a != NULL)
		vb_attachment_release(a);
	return 0;
}

/* Returns the live context whose command descriptor is a duplicate of `fd`, or NULL. Call with the
 * lock held. */
static struct vb_context *
context_of(int fd)
{
	struct vb_context *c;
	struct stat its;

	if (fstat(fd, &its) != 0)
		return NULL;
	LIST_FOREACH (c, &contexts, next)
		if (!c->dead && !c->closed && c->ino == its.st_ino && c->dev == its.st_dev)
			return c;
	return NULL;
}

VB_EXPORT struct ibv_context *
ibv_import_device(int cmd_fd)
{
	struct vb_attachment *a = NULL;
	struct ibv_device *device = NULL;
	struct vb_context *c;

	pthread_mutex_lock(&lock);
	c = context_of(cmd_fd);
	if (c != NULL) {
		a = c->at;
		device = c->vctx.context.device;
		vb_attachment_hold(a);
	}
	pthread_mutex_unlock(&lock);
	if (c != NULL)
		return context_new(device, a, cmd_fd);
	vb_fail(EINVAL, "descriptor %d belongs to no context of this process", cmd_fd);
	return NULL;
}

/* ---- fork(2) ---- */

void
vb_contexts_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void
vb_contexts_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

void
vb_contexts_fork_child(void)
{
	struct vb_context *c;

	LIST_FOREACH (c, &contexts, next) {
		c->dead = 1;
		vb_ops_refuse(&c->vctx);
	}
	pthread_mutex_init(&lock, NULL);
}
