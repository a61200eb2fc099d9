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

/* ---- async_fd ---- */

/* async_fd is an epoll descriptor. It contains the eventfd of the context's queue and, while no
 * thread delivers events, libsaker's descriptor. */

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
		rc = context_watch(c->vctx.context.async_fd, saker_fd(c->saker));
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
	epoll_ctl(c->vctx.context.async_fd, EPOLL_CTL_DEL, saker_fd(c->saker), NULL);
}

void
vb_contexts_dispatched(const struct vb_attachment *a)
{
	struct vb_context *c;

	pthread_mutex_lock(&lock);
	LIST_FOREACH (c, &contexts, next)
		if (!c->dead && c->at == a)
			unwatch(c);
	pthread_mutex_unlock(&lock);
}

void
vb_contexts_gone(const struct vb_attachment *a)
{
	struct vb_context *c;

	pthread_mutex_lock(&lock);
	LIST_FOREACH (c, &contexts, next) {
		if (c->dead || c->at != a)
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

static LIST_HEAD(, vb_pd) pds = LIST_HEAD_INITIALIZER(pds);
static LIST_HEAD(, vb_mr) mrs = LIST_HEAD_INITIALIZER(mrs);
static uint32_t last_handle;

/* Makes that nothing finds the objects that a program has left in a context. Call with the lock
 * held. */
static void
objects_hide(const struct ibv_context *context)
{
	struct vb_pd *pd;
	struct vb_mr *mr;

	LIST_FOREACH (pd, &pds, next)
		if (pd->pd.context == context)
			pd->pd.handle = 0;
	LIST_FOREACH (mr, &mrs, next)
		if (mr->mr.context == context)
			mr->mr.handle = 0;
}

VB_EXPORT int
ibv_close_device(struct ibv_context *context)
{
	struct vb_context *c = vb_context(context);

	pthread_mutex_lock(&lock);
	LIST_REMOVE(c, next);
	objects_hide(context);
	pthread_mutex_unlock(&lock);
	vb_async_purge(context, NULL);
	close(context->async_fd);
	if (context->cmd_fd >= 0)
		close(context->cmd_fd);
	vb_waitq_fini(&c->async);
	pthread_mutex_destroy(&context->mutex);
	if (!c->dead)
		vb_attachment_release(c->at);
	free(c);
	return 0;
}

/* ---- Objects of other contexts of the process ---- */

void
vb_pd_enter(struct vb_pd *pd)
{
	pthread_mutex_lock(&lock);
	pd->at = vb_context(pd->pd.context)->at;
	pd->pd.handle = ++last_handle;
	LIST_INSERT_HEAD(&pds, pd, next);
	pthread_mutex_unlock(&lock);
}

void
vb_mr_enter(struct vb_mr *mr)
{
	pthread_mutex_lock(&lock);
	mr->domain = vb_pd(mr->mr.pd)->saker;
	mr->mr.handle = ++last_handle;
	LIST_INSERT_HEAD(&mrs, mr, next);
	pthread_mutex_unlock(&lock);
}

void
vb_pd_leave(struct vb_pd *pd)
{
	pthread_mutex_lock(&lock);
	LIST_REMOVE(pd, next);
	pthread_mutex_unlock(&lock);
}

void
vb_mr_leave(struct vb_mr *mr)
{
	pthread_mutex_lock(&lock);
	LIST_REMOVE(mr, next);
	pthread_mutex_unlock(&lock);
}

/* Returns the live context whose command descriptor is a duplicate of `fd`, or NULL. Call with the
 * lock held. */
static struct vb_context *
context_of(int fd)
{
	struct stat its, any;
	struct vb_context *c;

	if (fstat(fd, &its) != 0)
		return NULL;
	LIST_FOREACH (c, &contexts, next)
		if (!c->dead && c->vctx.context.cmd_fd >= 0 &&
			fstat(c->vctx.context.cmd_fd, &any) == 0 && any.st_dev == its.st_dev &&
			any.st_ino == its.st_ino)
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

VB_EXPORT struct ibv_pd *
ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct vb_pd *pd = calloc(1, sizeof(*pd)), *of;

	if (pd == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&lock);
	LIST_FOREACH (of, &pds, next)
		if (pd_handle != 0 && of->pd.handle == pd_handle &&
			of->at == vb_context(context)->at)
			break;
	if (of != NULL)
		vb_hold(&of->refs);
	pthread_mutex_unlock(&lock);
	if (of == NULL) {
		free(pd);
		vb_fail(EINVAL, "the process has no protection domain with handle %u", pd_handle);
		return NULL;
	}
	pd->pd.context = context;
	pd->parent = of;
	pd->saker = of->saker;
	vb_pd_enter(pd);
	return &pd->pd;
}

VB_EXPORT void
ibv_unimport_pd(struct ibv_pd *p)
{
	struct vb_pd *pd = vb_pd(p);

	vb_pd_leave(pd);
	vb_release(&pd->parent->refs);
	free(pd);
}

/* As with real devices, the program cannot see the address of the region. */
VB_EXPORT struct ibv_mr *
ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct vb_mr *mr = calloc(1, sizeof(*mr)), *of;

	if (mr == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&lock);
	LIST_FOREACH (of, &mrs, next)
		if (mr_handle != 0 && of->mr.handle == mr_handle && of->domain == vb_pd(pd)->saker)
			break;
	if (of != NULL)
		mr->mr = of->mr;
	pthread_mutex_unlock(&lock);
	if (of == NULL) {
		free(mr);
		vb_fail(EINVAL, "the protection domain has no memory region with handle %u",
			mr_handle);
		return NULL;
	}
	mr->mr.context = pd->context;
	mr->mr.pd = pd;
	mr->mr.addr = NULL;
	vb_mr_enter(mr);
	return &mr->mr;
}

VB_EXPORT void
ibv_unimport_mr(struct ibv_mr *mr)
{
	vb_mr_leave((struct vb_mr *)mr);
	free(mr);
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
