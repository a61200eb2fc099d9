/* SPDX-License-Identifier: BSD-3-Clause */
/* The common part of all kinds of attachments: rings, objects, end. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client_priv.h"

/* All attachments, for the child of a fork(2). The lock of lib/move protects the list. */
static TAILQ_HEAD(, saker) attachments = TAILQ_HEAD_INITIALIZER(attachments);

static _Thread_local char error_text[256];

const char *
saker_error(void)
{
	return error_text;
}

int
cl_fail(int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error_text, sizeof(error_text), fmt, ap);
	va_end(ap);
	return rc;
}

void *
cl_zalloc(size_t len)
{
	size_t whole = (len + SHM_LINE - 1) & ~(size_t)(SHM_LINE - 1);
	void *p = aligned_alloc(SHM_LINE, whole);

	if (p != NULL)
		memset(p, 0, whole);
	return p;
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void
cl_orphan_pages(void *at, size_t len)
{
	if (mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		MAP_FAILED)
		abort();
}

static void
orphan(struct saker *s)
{
	s->gone = 1;
	s->mem.parents = true;
	/* Threads of the parent may have held them at the time of the fork. */
	pthread_mutex_init(&s->mail.lock, NULL);
	pthread_mutex_init(&s->mem.lock, NULL);
	cl_wait_renew(s);
	s->table.lock = s->objs_lock = s->cqev.lock = 0;
	if (s->bar != NULL)
		cl_bar_orphan(s->bar);
	close_fd(&s->sock);
	close_fd(&s->wake_engine);
	close_fd(&s->wait.wake);
	close_fd(&s->wait.kick);
	close_fd(&s->wait.epoll);
	/* The child reads rings that stay empty. */
	if (s->mapped != 0)
		cl_orphan_pages(s->home, s->mapped);
}

/* Detaches a child of fork(2) from all of the parent's attachments. lib/move calls it, with its
 * lock held. */
static void
orphan_all(void)
{
	struct saker *s;

	TAILQ_FOREACH (s, &attachments, all)
		orphan(s);
}

struct saker *
cl_new(void)
{
	struct saker *s = cl_zalloc(sizeof(*s));

	if (s == NULL)
		return NULL;
	s->sock = s->wake_engine = s->wait.wake = s->wait.kick = s->wait.epoll = -1;
	for (unsigned k = 0; k < CL_KINDS; k++)
		TAILQ_INIT(&s->objs[k]);
	TAILQ_INIT(&s->mail.calls);
	STAILQ_INIT(&s->mail.events);
	pthread_mutex_init(&s->mail.lock, NULL);
	cl_mem_init(s);
	mv_on_child(orphan_all);
	mv_lock();
	TAILQ_INSERT_TAIL(&attachments, s, all);
	mv_unlock();
	return s;
}

/* Checks the header, against an engine of another version and against foreign memory. A client
 * otherwise trusts the engine. */
static int
header_check(const struct shm_header *h, uint64_t size)
{
	if (size < sizeof(*h) || __atomic_load_n(&h->magic, __ATOMIC_ACQUIRE) != SHM_MAGIC)
		return cl_fail(-EPROTO, "the memory is not the home region of a saker");
	if (h->version != SHM_VERSION)
		return cl_fail(-EPROTO, "the saker has version %u of the shared memory, not %u",
			h->version, SHM_VERSION);
	if (h->nstages < 1 || h->nstages > SHM_MAX_STAGES || h->size > size ||
		!shm_ring_ok(&h->cmd, size, sizeof(struct shm_msg)) ||
		!shm_ring_ok(&h->evt, size, sizeof(struct shm_msg)) || h->mem > h->size ||
		h->mem_len > h->size - h->mem)
		return cl_fail(-EPROTO, "the header of the home region is invalid");
	for (uint32_t i = 0; i < h->nstages; i++)
		if (!shm_ring_ok(&h->doorbell[i], size, sizeof(struct shm_doorbell)) ||
			!shm_ring_ok(&h->event[i], size, sizeof(struct shm_cq_event)))
			return cl_fail(-EPROTO, "the rings of stage %u are invalid", i);
	return 0;
}

int
cl_start(struct saker *s, void *home, uint64_t size)
{
	struct shm_header *shared = home, h;
	int rc;

	if (size < sizeof(h) || __atomic_load_n(&shared->magic, __ATOMIC_ACQUIRE) != SHM_MAGIC)
		return cl_fail(-EPROTO, "the memory is not the home region of a saker");
	/* Read once, so that the checked values are those in use. */
	memcpy(&h, shared, sizeof(h));
	rc = header_check(&h, size);
	if (rc < 0)
		return rc;
	s->home = home;
	s->header = shared;
	s->size = h.size;
	s->nstages = h.nstages;
	for (uint32_t i = 0; i < s->nstages; i++) {
		shm_prod_init(&s->doorbell[i].ring, home, &h.doorbell[i]);
		shm_take_init(&s->cqev.ring[i], home, &h.event[i]);
	}
	cl_mail_init(s, &h);
	rc = cl_wait_init(s);
	if (rc == 0)
		rc = cl_post_init(s);
	if (rc == 0 && h.mem_len != 0 &&
		cl_mem_add(s, s->home + h.mem, h.mem_len, SHM_HOME, h.mem, false) < 0)
		rc = cl_fail(-ENOMEM, "no memory for an attachment");
	/* Other programs have used an ivshmem device's memory before: none of it is zero. */
	if (rc == 0 && h.mem_len != 0 && s->bar != NULL)
		TAILQ_FIRST(&s->mem.arenas)->fresh = h.mem_len;
	if (rc == 0)
		rc = saker_device(s, &s->device);
	return rc;
}

static const enum shm_op destroy_op[CL_KINDS] = {
	[CL_QP] = SHM_QP_DESTROY,
	[CL_AH] = SHM_AH_DESTROY,
	[CL_SRQ] = SHM_SRQ_DESTROY,
	[CL_XRCD] = SHM_XRCD_CLOSE,
	[CL_LISTENER] = SHM_UNLISTEN,
	[CL_CQ] = SHM_CQ_DESTROY,
	[CL_MW] = SHM_MW_DESTROY,
	[CL_MR] = SHM_MR_DESTROY,
	[CL_PD] = SHM_PD_DESTROY,
};

int
cl_obj_add(struct saker *s, struct cl_obj *o, void *self, enum cl_kind kind, uint32_t handle)
{
	o->s = s;
	o->self = self;
	o->kind = kind;
	o->handle = handle;
	if (cl_table_add(&s->table, &o->node, cl_key(kind, handle), self) < 0) {
		cl_command_handle(s, destroy_op[kind], handle);
		return cl_fail(-ENOMEM, "no memory for an object");
	}
	sk_spin(&s->objs_lock);
	TAILQ_INSERT_TAIL(&s->objs[kind], o, next);
	sk_unspin(&s->objs_lock);
	__atomic_add_fetch(&s->nobjs, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Removes an object from all lists and frees it. */
void
cl_obj_forget(struct cl_obj *o)
{
	struct saker *s = o->s;

	if (o->kind == CL_QP)
		cl_table_del(&s->table, &((struct saker_qp *)o->self)->by_number);
	if (o->kind == CL_MR)
		cl_mr_forget(o->self);
	if (o->kind == CL_CQ)
		cl_cq_forget(o->self);
	cl_table_del(&s->table, &o->node);
	sk_spin(&s->objs_lock);
	TAILQ_REMOVE(&s->objs[o->kind], o, next);
	sk_unspin(&s->objs_lock);
	__atomic_sub_fetch(&s->nobjs, 1, __ATOMIC_RELAXED);
	cl_mail_purge(s, o->kind, o->handle);
	free(o->self);
}

int
cl_obj_destroy(struct cl_obj *o)
{
	int rc = cl_command_handle(o->s, destroy_op[o->kind], o->handle);

	if (rc < 0 && rc != -EPIPE)
		return rc;
	cl_obj_forget(o);
	return 0;
}

uint32_t
saker_objects(const struct saker *s)
{
	return __atomic_load_n(&s->nobjs, __ATOMIC_RELAXED);
}

void
cl_free(struct saker *s)
{
	mv_lock();
	TAILQ_REMOVE(&attachments, s, all);
	mv_unlock();
	cl_bar_quiet(s->bar);
	for (unsigned k = 0; k < CL_KINDS; k++)
		while (!TAILQ_EMPTY(&s->objs[k]))
			cl_obj_forget(TAILQ_FIRST(&s->objs[k]));
	cl_mem_free(s);
	cl_mail_free(s);
	cl_wait_free(s);
	cl_post_free(s);
	cl_table_free(&s->table);
	close_fd(&s->wake_engine);
	close_fd(&s->sock);
	if (s->mapped != 0)
		munmap(s->home, s->mapped);
	cl_bar_free(s->bar);
	free(s);
}

static void
destroy_all(struct saker *s, unsigned kind)
{
	struct cl_obj *o, *next;

	for (o = TAILQ_FIRST(&s->objs[kind]); o != NULL && !cl_gone(s); o = next) {
		next = TAILQ_NEXT(o, next);
		cl_obj_destroy(o);
	}
}

void
saker_close(struct saker *s)
{
	if (s == NULL)
		return;
	cl_mail_close(s);
	/* The engine destroys all objects when the socket ends or the slot is released. Any other
	 * flat client destroys each object by a command. Regions of moved memory always end by a
	 * command, so that the engine has stopped using the memory before it becomes private. */
	for (unsigned k = 0; k < CL_KINDS; k++)
		if ((s->sock < 0 && s->bar == NULL) ||
			((k == CL_MW || k == CL_MR) && s->mem.moved != 0))
			destroy_all(s, k);
	cl_free(s);
}

int
saker_device(struct saker *s, struct saker_device *out)
{
	struct shm_msg m;
	int rc;

	memset(&m, 0, sizeof(m));
	rc = cl_command(s, &m, SHM_QUERY_DEVICE);
	if (rc == 0)
		cl_device_of(&m.body.device, out);
	return rc;
}
