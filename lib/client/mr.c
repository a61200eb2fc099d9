/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client_priv.h"

_Static_assert(MV_WINDOW <= SHM_SPARSE_MAX, "the engine accepts a window's memfd as a region");

int
saker_pd_create(struct saker *s, struct saker_pd **out)
{
	struct saker_pd *pd = cl_zalloc(sizeof(*pd));
	struct shm_msg m;
	int rc;

	if (pd == NULL)
		return cl_fail(-ENOMEM, "no memory for a protection domain");
	memset(&m, 0, sizeof(m));
	rc = cl_command(s, &m, SHM_PD_CREATE);
	if (rc == 0)
		rc = cl_obj_add(s, &pd->obj, pd, CL_PD, m.body.handle);
	if (rc < 0) {
		free(pd);
		return rc;
	}
	*out = pd;
	return 0;
}

int
saker_pd_destroy(struct saker_pd *pd)
{
	return cl_obj_destroy(&pd->obj);
}

/* Returns the engine's region number of a window of lib/move. The memfd is passed to the engine at
 * first use. */
static int
window_region(struct saker *s, unsigned window)
{
	int rc;

	cl_mem_lock(s);
	rc = (int)s->mem.window[window];
	if (rc == 0)
		rc = cl_sock_region(s, mv_window_fd(window), MV_WINDOW, SHM_REGION_SPARSE);
	if (rc > 0)
		s->mem.window[window] = (uint32_t)rc;
	cl_mem_unlock(s);
	return rc;
}

/* Adds an extent to a registration, or to its last extent if it continues that. */
static int
extent_add(struct shm_mr *m, uint32_t region, uint64_t offset, uint64_t len)
{
	struct shm_extent *e = &m->extents[m->nextents];

	if (m->nextents > 0 && e[-1].region == region && e[-1].offset + e[-1].len == offset) {
		e[-1].len += len;
		return 0;
	}
	if (m->nextents == SHM_MAX_EXTENTS)
		return cl_fail(-EOPNOTSUPP,
			"a memory region has more than %u parts: windows of memory, or mappings",
			SHM_MAX_EXTENTS);
	*e = (struct shm_extent){.region = region, .offset = offset, .len = len};
	m->nextents++;
	return 0;
}

/* Adds the extents of moved memory to a registration. */
static int
moved_extents(struct saker *s, const uint8_t *addr, size_t len, struct shm_mr *m)
{
	while (len > 0) {
		uint64_t off, part;
		int region = window_region(s, mv_extent(addr, len, &off, &part));
		int rc = region < 0 ? region : extent_add(m, (uint32_t)region, off, part);

		if (rc < 0)
			return rc;
		addr += part;
		len -= part;
	}
	return 0;
}

/* ---- Memory that the program shares with others ---- */

/* Returns the object if the engine has its first `end` bytes. The caller holds mem.lock. */
static struct cl_object *
object_find(struct saker *s, const struct mv_object *o, uint64_t end)
{
	struct cl_object *at;

	LIST_FOREACH (at, &s->mem.objects, next)
		if (at->dev == o->dev && at->ino == o->ino && at->size >= end)
			return at;
	return NULL;
}

/* Passes the object that the program has mapped at `addr` to the engine. Returns NULL, with *rc and
 * a sentence, on failure. The caller holds mem.lock. */
static struct cl_object *
object_bring(struct saker *s, const uint8_t *addr, const struct mv_object *o, uint64_t end, int *rc)
{
	struct cl_object *new = calloc(1, sizeof(*new));
	uint64_t size = 0;
	int fd = new != NULL ? mv_object_open(addr, o, &size) : -ENOMEM;

	*rc = fd;
	if (fd < 0)
		cl_fail(fd, "%s", new != NULL ? mv_error() : "no memory");
	else if (size < end)
		*rc = cl_fail(
			-EFAULT, "the shared memory at %p ends before the registered range", addr);
	else
		*rc = cl_sock_region(s, fd, size, SHM_REGION_OBJECT);
	if (fd >= 0)
		close(fd);
	if (*rc < 0) {
		free(new);
		return NULL;
	}
	*new = (struct cl_object){
		.dev = o->dev, .ino = o->ino, .size = size, .region = (uint32_t)*rc};
	LIST_INSERT_HEAD(&s->mem.objects, new, next);
	return new;
}

static struct cl_object *
object_hold(struct saker *s, const uint8_t *addr, const struct mv_object *o, size_t len, int *rc)
{
	struct cl_object *at;

	cl_mem_lock(s);
	at = object_find(s, o, o->offset + len);
	if (at == NULL)
		at = object_bring(s, addr, o, o->offset + len, rc);
	if (at != NULL)
		at->refs++;
	cl_mem_unlock(s);
	return at;
}

/* Releases an object. The engine drops it after its last use, so that the program can free it. */
static void
object_release(struct saker *s, struct cl_object *o)
{
	cl_mem_lock(s);
	if (--o->refs == 0 && cl_command_handle(s, SHM_REGION_DROP, o->region) == 0) {
		LIST_REMOVE(o, next);
		free(o);
	}
	cl_mem_unlock(s);
}

/* ---- Placing a registration ---- */

static void
parts_forget(struct saker_mr *mr)
{
	const uint8_t *at = mr->moved;

	for (uint32_t i = 0; i < mr->nparts; at += mr->part[i++].len) {
		if (mr->part[i].object != NULL)
			object_release(mr->obj.s, mr->part[i].object);
		else
			mv_out(at, mr->part[i].len);
	}
}

void
cl_mr_forget(struct saker_mr *mr)
{
	if (mr->moved == NULL)
		return;
	if (mr->obj.s->bar != NULL && !mr->obj.s->mem.parents)
		cl_bar_move_out(mr->obj.s, mr->moved, mr->len);
	else if (!mr->obj.s->mem.parents)
		parts_forget(mr);
	free(mr->part);
	mr->part = NULL;
	mr->moved = NULL;
	__atomic_fetch_sub(&mr->obj.s->mem.moved, 1, __ATOMIC_RELAXED);
}

/* Adds a part to the registration's list. */
static int
part_add(struct saker_mr *mr, size_t len, struct cl_object *o)
{
	struct cl_mr_part *more = realloc(mr->part, (mr->nparts + 1) * sizeof(*mr->part));

	if (more == NULL)
		return cl_fail(-ENOMEM, "no memory for a memory region");
	mr->part = more;
	mr->part[mr->nparts++] = (struct cl_mr_part){.len = len, .object = o};
	return 0;
}

/* Places the first part of [addr, addr + len): moved memory, or memory of one object. Returns its
 * length, or -errno. */
static ssize_t
part_place(struct saker *s, struct saker_mr *mr, const uint8_t *addr, size_t len, bool write,
	struct shm_mr *m)
{
	struct cl_object *object;
	struct mv_object o;
	size_t part;
	int rc = mv_look(addr, len, write, &o, &part);

	if (rc < 0)
		return cl_fail(rc, "%s", mv_error());
	if (rc == 0) {
		rc = mv_in(addr, part, write);
		if (rc < 0)
			return cl_fail(rc, "%s", mv_error());
		rc = part_add(mr, part, NULL);
		if (rc < 0)
			mv_out(addr, part);
		else
			rc = moved_extents(s, addr, part, m);
		return rc < 0 ? rc : (ssize_t)part;
	}
	object = object_hold(s, addr, &o, part, &rc);
	if (object == NULL)
		return rc;
	rc = part_add(mr, part, object);
	if (rc < 0)
		object_release(s, object);
	else
		rc = extent_add(m, object->region, o.offset, part);
	return rc < 0 ? rc : (ssize_t)part;
}

static int
parts_place(struct saker *s, struct saker_mr *mr, const uint8_t *addr, size_t len, bool write,
	struct shm_mr *m)
{
	m->nextents = 0;
	while (len > 0) {
		ssize_t part = part_place(s, mr, addr, len, write, m);

		if (part < 0)
			return (int)part;
		addr += part;
		len -= (size_t)part;
	}
	return 0;
}

/* Sets the extents of a registration, and moves memory that is the program's own. */
static int
mr_place(struct saker *s, struct saker_mr *mr, void *addr, size_t len, struct shm_mr *m)
{
	const uint32_t writes = RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_ATOMIC;
	bool write = (m->access & writes) != 0;
	int rc;

	m->nextents = 1;
	if (len != 0 && cl_mem_find(s, addr, len, &m->extents[0]))
		return 0;
	if (len == 0 || (s->mapped == 0 && s->bar == NULL))
		return cl_fail(
			-EFAULT, "%zu bytes at %p are not memory from saker_alloc()", len, addr);
	if (s->bar != NULL) {
		rc = cl_bar_move_in(s, addr, len, write, m);
		if (rc < 0)
			return rc;
	}
	__atomic_fetch_add(&s->mem.moved, 1, __ATOMIC_RELAXED);
	mr->obj.s = s;
	mr->moved = addr;
	mr->len = len;
	if (s->bar != NULL)
		return 0;
	rc = parts_place(s, mr, addr, len, write, m);
	if (rc < 0)
		cl_mr_forget(mr);
	return rc;
}

int
saker_mr_create(struct saker_pd *pd, void *addr, size_t len, uint32_t access, struct saker_mr **out)
{
	return saker_mr_create_at(pd, addr, len, (uintptr_t)addr, access, out);
}

/* Creates a region, in the place of `old` unless that is NULL. `old` still exists on failure. */
static int
mr_make(struct saker_pd *pd, void *addr, size_t len, uint64_t base, uint32_t access,
	const struct saker_mr *old, struct saker_mr **out)
{
	struct saker *s = pd->obj.s;
	struct saker_mr *mr;
	struct shm_msg m;
	int rc;

	mr = cl_zalloc(sizeof(*mr));
	if (mr == NULL)
		return cl_fail(-ENOMEM, "no memory for a memory region");
	memset(&m, 0, sizeof(m));
	m.body.mr.pd = pd->obj.handle;
	m.body.mr.access = access;
	m.body.mr.base = base;
	m.body.mr.len = len;
	m.body.mr.replaces = old != NULL ? old->obj.handle + 1 : 0;
	rc = mr_place(s, mr, addr, len, &m.body.mr);
	if (rc == 0) {
		rc = cl_command(s, &m, SHM_MR_CREATE);
		mr->stag = m.body.mr.stag;
		if (rc == 0)
			rc = cl_obj_add(s, &mr->obj, mr, CL_MR, m.body.mr.mr);
		if (rc < 0)
			cl_mr_forget(mr);
	}
	if (rc < 0) {
		free(mr);
		return rc;
	}
	*out = mr;
	return 0;
}

int
saker_mr_create_at(struct saker_pd *pd, void *addr, size_t len, uint64_t base, uint32_t access,
	struct saker_mr **out)
{
	return mr_make(pd, addr, len, base, access, NULL, out);
}

int
saker_mr_replace(struct saker_mr **mr, struct saker_pd *pd, void *addr, size_t len, uint64_t base,
	uint32_t access)
{
	struct saker_mr *old = *mr;
	int rc = mr_make(pd, addr, len, base, access, old, mr);

	if (rc == 0)
		cl_obj_forget(&old->obj);
	return rc;
}

int
saker_mr_destroy(struct saker_mr *mr)
{
	return cl_obj_destroy(&mr->obj);
}

uint32_t
saker_mr_stag(const struct saker_mr *mr)
{
	return mr->stag;
}
