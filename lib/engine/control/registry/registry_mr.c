/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions. A registration names extents of memory that the client has passed to the engine.
 * The control stage checks each extent against its private record of that memory. A region to which
 * windows are bound cannot be deregistered (verbs: EBUSY).
 */
#include <errno.h>
#include <stdlib.h>

#include "registry.h"

#define MR_ACCESS                                                                                  \
	(RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_ATOMIC |    \
		RD_ACC_MW_BIND | RD_ACC_ZERO_BASED)

/* Returns the engine's address of an extent, or NULL when the client may not register all of its
 * bytes. */
static uint8_t *
extent_host(const struct ctl_client *cl, const struct shm_extent *e)
{
	const struct eng_region *r;
	uint64_t from, size;

	if (e->region >= SHM_MAX_REGIONS || e->len == 0)
		return NULL;
	r = &cl->region[e->region];
	if (r->base == NULL)
		return NULL;
	/* In the home region, the client may register its own memory only, and no rings. */
	from = e->region == SHM_HOME ? cl->mem_at : 0;
	size = e->region == SHM_HOME ? cl->mem_len : r->size;
	if (e->offset < from || e->offset - from > size || e->len > size - (e->offset - from))
		return NULL;
	return r->base + e->offset;
}

/* Checks the command, and takes a unit of CTL_POOL_MR. */
static int
mr_check(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_mr *i = &m->body.mr;

	if (ctl_pd_find(cl, i->pd) == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no protection domain %u", i->pd);
	if (i->access & ~(uint32_t)MR_ACCESS)
		return ctl_refuse(c, m, -EINVAL, "access rights %#x do not exist",
			i->access & ~(uint32_t)MR_ACCESS);
	if ((i->access & (RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_ATOMIC)) &&
		!(i->access & RD_ACC_LOCAL_WRITE))
		return ctl_refuse(c, m, -EINVAL,
			"access rights %#x have remote write or remote atomic without local write",
			i->access);
	if (i->len == 0 || i->len - 1 > UINT64_MAX - i->base)
		return ctl_refuse(c, m, -EINVAL,
			"a region of %llu bytes at address %#llx is empty or wraps around",
			(unsigned long long)i->len, (unsigned long long)i->base);
	if (i->nextents < 1 || i->nextents > SHM_MAX_EXTENTS)
		return ctl_refuse(c, m, -EINVAL, "a region has 1 to %u extents, not %u",
			SHM_MAX_EXTENTS, i->nextents);
	return ctl_take(c, cl, CTL_POOL_MR, m);
}

/* Fills in mr->extents. The sum of their lengths must be the length of the region. */
static int
mr_extents(struct eng_control *c, struct ctl_client *cl, struct ctl_mr *mr, struct shm_msg *m)
{
	const struct shm_mr *i = &m->body.mr;
	uint64_t sum = 0;

	for (uint32_t n = 0; n < i->nextents; n++) {
		const struct shm_extent *e = &i->extents[n];
		uint8_t *host = extent_host(cl, e);

		if (host == NULL)
			return ctl_refuse(c, m, -EFAULT,
				"extent %u (%llu bytes at %llu of memory %u) is not the client's",
				n, (unsigned long long)e->len, (unsigned long long)e->offset,
				e->region);
		if (e->len > i->len - sum)
			break;
		mr->extents[n] = (struct rd_extent){.off = sum, .len = e->len, .host = host};
		mr->regions[n] = e->region;
		mr->rd.nextents = n + 1;
		sum += e->len;
	}
	if (sum != i->len || mr->rd.nextents != i->nextents)
		return ctl_refuse(c, m, -EINVAL, "%u extents do not add up to %llu bytes",
			i->nextents, (unsigned long long)i->len);
	return 0;
}

/* Returns how many bytes of the region are in sparse memory. */
static uint64_t
mr_sparse(const struct ctl_client *cl, const struct ctl_mr *mr)
{
	uint64_t bytes = 0;

	for (uint32_t n = 0; n < mr->rd.nextents; n++)
		if (cl->region[mr->regions[n]].sparse)
			bytes += mr->extents[n].len;
	return bytes;
}

/* Checks the limit of memory per client, which counts the size of each ordinary region of memory,
 * and of each sparse region the bytes that are registered. */
static int
mr_quota(struct eng_control *c, struct ctl_client *cl, const struct ctl_mr *mr, struct shm_msg *m)
{
	uint64_t most = c->cfg->limits.client_mem_bytes, used = cl->sparse_bytes;
	uint64_t more = mr_sparse(cl, mr);

	for (uint32_t n = SHM_HOME + 1; n < SHM_MAX_REGIONS; n++)
		used += cl->region[n].sparse ? 0 : cl->region[n].size;
	if (more == 0 || (used <= most && more <= most - used))
		return 0;
	return ctl_refuse(c, m, -EDQUOT,
		"no more than %llu bytes of memory are allowed to one client",
		(unsigned long long)most);
}

static void
mr_enter(struct eng_control *c, struct ctl_client *cl, struct ctl_mr *mr)
{
	for (uint32_t n = 0; n < mr->rd.nextents; n++)
		cl->region[mr->regions[n]].mrs++;
	__atomic_fetch_add(&cl->sparse_bytes, mr_sparse(cl, mr), __ATOMIC_RELAXED);
	((struct rd_pd *)mr->rd.pd)->refs++;
	mr->end.client = cl;
	mr->handle = (uint32_t)ctl_table_add(&cl->mrs, mr);
	ctl_total(&c->totals.mrs, 1);
}

static void
mr_free(struct eng_control *c, struct ctl_retired *r)
{
	struct ctl_mr *mr = (struct ctl_mr *)r;

	__atomic_fetch_sub(&r->client->sparse_bytes, mr_sparse(r->client, mr), __ATOMIC_RELAXED);
	for (uint32_t n = 0; n < mr->rd.nextents; n++)
		r->client->region[mr->regions[n]].mrs--;
	((struct rd_pd *)mr->rd.pd)->refs--;
	ctl_total(&c->totals.mrs, -1);
	ctl_give(c, r->client, CTL_POOL_MR);
	free(mr);
}

/* Enters a complete region in the place of `old`, which it ends. The reply comes when no stage uses
 * `old` any more, because the client then frees its memory. */
static int
mr_replace(struct eng_control *c, struct ctl_client *cl, struct ctl_mr *mr, struct ctl_mr *old,
	struct shm_msg *m)
{
	struct ctl_op *op = ctl_op_new(c, cl, m, old, NULL);

	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	if (!rd_mr_close(&old->rd)) {
		ctl_op_free(c, op);
		return ctl_refuse(
			c, m, -EBUSY, "memory region %u has windows bound to it", old->handle);
	}
	mr_enter(c, cl, mr);
	rd_mr_replace(c->a.mrs, &old->rd, &mr->rd);
	op->reply.body.mr.mr = mr->handle;
	op->reply.body.mr.stag = mr->rd.stag;
	old->end.op = op;
	ctl_mr_retire(c, old);
	return CTL_LATER;
}

/* Enters a complete region, and fills in the reply. */
static int
mr_add(struct eng_control *c, struct ctl_client *cl, struct ctl_mr *mr, struct shm_msg *m)
{
	if (ctl_stag_add(c, &mr->rd) < 0)
		return ctl_refuse(c, m, -ENOSPC, "all STags are in use");
	mr_enter(c, cl, mr);
	m->body.mr.mr = mr->handle;
	m->body.mr.stag = mr->rd.stag;
	return 0;
}

int
ctl_mr_create(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct shm_mr *i = &m->body.mr;
	struct ctl_mr *mr, *old = NULL;
	int rc;

	/* The memory may still be in the inbox: the socket's thread has put it there before it
	 * answered the client, and the client has sent this command after that answer. */
	ctl_inbox_poll(c);
	if (i->replaces != 0) {
		old = ctl_table_get(&cl->mrs, i->replaces - 1);
		if (old == NULL)
			return ctl_refuse(
				c, m, -EINVAL, "there is no memory region %u", i->replaces - 1);
	}
	rc = mr_check(c, cl, m);
	if (rc < 0)
		return rc;
	mr = calloc(1, sizeof(*mr) + i->nextents * sizeof(mr->extents[0]));
	if (mr == NULL) {
		ctl_give(c, cl, CTL_POOL_MR);
		return ctl_refuse(c, m, -ENOMEM, "no memory for a memory region");
	}
	mr->rd.access = i->access;
	mr->rd.pd = &ctl_pd_find(cl, i->pd)->rd;
	mr->rd.base = i->access & RD_ACC_ZERO_BASED ? 0 : i->base;
	mr->rd.len = i->len;
	mr->rd.valid = true;
	mr->rd.extents = mr->extents;
	rc = mr_extents(c, cl, mr, m);
	if (rc == 0)
		rc = mr_quota(c, cl, mr, m);
	if (rc == 0)
		rc = old != NULL ? mr_replace(c, cl, mr, old, m) : mr_add(c, cl, mr, m);
	if (rc < 0) {
		ctl_give(c, cl, CTL_POOL_MR);
		free(mr);
	}
	return rc;
}

void
ctl_mr_retire(struct eng_control *c, struct ctl_mr *mr)
{
	struct ctl_client *cl = mr->end.client;

	rd_mr_del(c->a.mrs, &mr->rd);
	ctl_table_del(&cl->mrs, mr->handle);
	mr->end.free = mr_free;
	ctl_retire(c, cl, &mr->end);
}

int
ctl_mr_destroy(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_mr *mr = ctl_table_get(&cl->mrs, m->body.handle);
	struct ctl_op *op;

	if (mr == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no memory region %u", m->body.handle);
	op = ctl_op_new(c, cl, m, mr, NULL);
	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	if (!rd_mr_close(&mr->rd)) {
		ctl_op_free(c, op);
		return ctl_refuse(
			c, m, -EBUSY, "memory region %u has windows bound to it", m->body.handle);
	}
	mr->end.op = op;
	ctl_mr_retire(c, mr);
	return CTL_LATER;
}
