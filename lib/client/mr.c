/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Adds the extents of moved memory to a registration. */
static int
moved_extents(struct saker *s, const uint8_t *addr, size_t len, struct shm_mr *m)
{
	while (len > 0) {
		struct shm_extent *e = &m->extents[m->nextents];
		int region;

		if (m->nextents == SHM_MAX_EXTENTS)
			return cl_fail(-EOPNOTSUPP, "a memory region crosses %u windows of memory",
				SHM_MAX_EXTENTS);
		region = window_region(s, mv_extent(addr, len, &e->offset, &e->len));
		if (region < 0)
			return region;
		e->region = (uint32_t)region;
		addr += e->len;
		len -= e->len;
		m->nextents++;
	}
	return 0;
}

void
cl_mr_forget(struct saker_mr *mr)
{
	if (mr->moved == NULL)
		return;
	if (mr->obj.s->bar != NULL && !mr->obj.s->mem.parents)
		cl_bar_move_out(mr->obj.s, mr->moved, mr->len);
	else if (!mr->obj.s->mem.parents)
		mv_out(mr->moved, mr->len);
	mr->moved = NULL;
	__atomic_fetch_sub(&mr->obj.s->mem.moved, 1, __ATOMIC_RELAXED);
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
	rc = s->bar != NULL ? cl_bar_move_in(s, addr, len, write, m) : mv_in(addr, len, write);
	if (rc < 0)
		return s->bar != NULL ? rc : cl_fail(rc, "%s", mv_error());
	__atomic_fetch_add(&s->mem.moved, 1, __ATOMIC_RELAXED);
	mr->obj.s = s;
	mr->moved = addr;
	mr->len = len;
	if (s->bar != NULL)
		return 0;
	m->nextents = 0;
	rc = moved_extents(s, addr, len, m);
	if (rc < 0)
		cl_mr_forget(mr);
	return rc;
}

int
saker_mr_create(struct saker_pd *pd, void *addr, size_t len, uint32_t access, struct saker_mr **out)
{
	return saker_mr_create_at(pd, addr, len, (uintptr_t)addr, access, out);
}

int
saker_mr_create_at(struct saker_pd *pd, void *addr, size_t len, uint64_t base, uint32_t access,
	struct saker_mr **out)
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
saker_mr_destroy(struct saker_mr *mr)
{
	return cl_obj_destroy(&mr->obj);
}

uint32_t
saker_mr_stag(const struct saker_mr *mr)
{
	return mr->stag;
}
