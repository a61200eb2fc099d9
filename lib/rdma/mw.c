/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows, and the checks for invalidation.
 *
 * A type 1 window may be bound on one stage while the peer of a QP on another stage uses it. A
 * reader takes the range, the rights and the region of one bind, or none of them (`seq`). An access
 * during a bind is refused: the old key expires at that moment, and no peer has received the new
 * one yet. A type 2 window is bound, used and invalidated by one QP, hence on one stage; the QPs of
 * other stages only find that the window is bound to another QP.
 *
 * A bound window holds its region: rd_mr.windows counts the windows. The count can be closed, for
 * good, while it is 0.
 */
#include "rdma_priv.h"

#include <string.h>

#define REMOTE (RD_ACC_REMOTE_READ | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_ATOMIC)
/* The rights that a bind may name. A window grants no local access, but programs pass the rights of
 * the region, as the kernel's devices permit. */
#define NAMED (REMOTE | RD_ACC_LOCAL_WRITE)

#define GET(field)    __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define PUT(field, v) __atomic_store_n(&(field), v, __ATOMIC_RELEASE)

void
rd_mw_init(struct rd_mw *mw, const struct rd_pd *pd, enum rd_mw_type type)
{
	memset(mw, 0, sizeof(*mw));
	mw->mr.pd = pd;
	mw->mr.window = true;
	mw->type = (uint8_t)type;
}

void
rd_mw_fini(struct rd_mw *mw)
{
	rd_mr_invalidate(&mw->mr);
}

/* ---- The region's count of windows ---- */

static bool
mw_hold(struct rd_mr *region)
{
	uint32_t n = GET(region->windows);

	do {
		if (n & RD_MR_CLOSED)
			return false;
	} while (!__atomic_compare_exchange_n(
		&region->windows, &n, n + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	return true;
}

static void
mw_release(struct rd_mr *region)
{
	__atomic_fetch_sub(&region->windows, 1, __ATOMIC_ACQ_REL);
}

bool
rd_mr_close(struct rd_mr *mr)
{
	uint32_t n = 0;

	return __atomic_compare_exchange_n(
		       &mr->windows, &n, RD_MR_CLOSED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
	       n == RD_MR_CLOSED;
}

/* ---- Access through a window ---- */

struct grant {
	uint64_t base, len, shift;
	struct rd_mr *region;
	uint32_t access, qpn;
};

static bool
grant_read(const struct rd_mw *mw, uint32_t stag, struct grant *g)
{
	uint32_t seq = GET(mw->seq);
	bool there = !(seq & 1) && GET(mw->mr.valid) && GET(mw->mr.stag) == stag;

	g->base = GET(mw->mr.base);
	g->len = GET(mw->mr.len);
	g->access = GET(mw->mr.access);
	g->qpn = GET(mw->mr.bound_qpn);
	g->region = GET(mw->region);
	g->shift = GET(mw->shift);
	return there && GET(mw->seq) == seq;
}

enum rd_fault
rd_mw_check(const struct rd_mw *mw, const struct rd_qp *qp, uint32_t stag, uint64_t *addr,
	uint64_t len, uint32_t need, struct rd_mr **region)
{
	enum rd_fault fault;
	struct grant g;

	if (!grant_read(mw, stag, &g))
		return RD_FAULT_STAG;
	if (mw->mr.pd != qp->pd || (g.qpn != 0 && g.qpn != qp->qpn))
		return RD_FAULT_PD;
	if ((g.access & need) != need)
		return RD_FAULT_ACCESS;
	fault = range_check(g.base, g.len, *addr, len);
	if (fault != RD_OK)
		return fault;
	*addr += g.shift;
	*region = g.region;
	return RD_OK;
}

/* ---- Bind ---- */

struct rd_bind
rd_bind_of(const struct rd_wr *wr)
{
	return (struct rd_bind){
		.stag = wr->rkey,
		.region = (uint32_t)wr->imm,
		.addr = wr->remote_addr,
		.len = wr->data,
		.access = wr->compare > UINT32_MAX ? UINT32_MAX : (uint32_t)wr->compare,
	};
}

/* Checks the window's state and the requested rights. The region is checked by region_may(). */
static bool
window_may(const struct rd_mw *mw, const struct rd_bind *b)
{
	if (mw->type == RD_MW_TYPE_1)
		return !(b->access & ~(uint32_t)NAMED) && GET(mw->mr.stag) != b->stag;
	return !(b->access & ~(uint32_t)(NAMED | RD_ACC_ZERO_BASED)) && b->len > 0 &&
	       !GET(mw->mr.valid);
}

static bool
region_may(const struct rd_mr *mr, const struct rd_qp *qp, const struct rd_bind *b)
{
	uint32_t need = RD_ACC_MW_BIND;

	if (mr == NULL || mr->window || !GET(mr->valid) || mr->pd != qp->pd)
		return false;
	if (b->access & (RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_ATOMIC))
		need |= RD_ACC_LOCAL_WRITE;
	return (mr->access & need) == need &&
	       range_check(mr->base, mr->len, b->addr, b->len) == RD_OK;
}

static bool
change_begin(struct rd_mw *mw)
{
	uint32_t seq = GET(mw->seq);

	return !(seq & 1) && __atomic_compare_exchange_n(&mw->seq, &seq, seq + 1, false,
				     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void
change_end(struct rd_mw *mw)
{
	PUT(mw->seq, GET(mw->seq) + 1);
}

static void
grant_write(struct rd_mw *mw, const struct rd_qp *qp, const struct rd_bind *b, struct rd_mr *region)
{
	bool zero_based = b->access & RD_ACC_ZERO_BASED;

	PUT(mw->mr.stag, b->stag);
	PUT(mw->mr.base, zero_based ? 0 : b->addr);
	PUT(mw->mr.len, b->len);
	PUT(mw->mr.access, b->access & (uint32_t)REMOTE);
	PUT(mw->mr.bound_qpn, mw->type == RD_MW_TYPE_2 ? qp->qpn : 0);
	PUT(mw->region, region);
	PUT(mw->shift, zero_based ? b->addr : 0);
	PUT(mw->mr.valid, region != NULL);
}

/* Replaces what `mw` is bound to by `region`, whose count the caller has raised, or unbinds it if
 * `region` is NULL. */
static enum rd_bind_result
mw_replace(struct rd_mw *mw, const struct rd_qp *qp, const struct rd_bind *b, struct rd_mr *region)
{
	struct rd_mr *before;

	if (!change_begin(mw))
		return RD_BIND_BUSY;
	if (!window_may(mw, b)) { /* another QP has changed the window since the first check */
		change_end(mw);
		return RD_BIND_REFUSED;
	}
	before = mw->mr.valid ? mw->region : NULL;
	grant_write(mw, qp, b, region);
	change_end(mw);
	if (before == NULL)
		return RD_BIND_DONE;
	mw_release(before);
	return RD_BIND_CHANGED;
}

enum rd_bind_result
rd_mw_bind(const struct rd_mr_table *t, const struct rd_qp *qp, const struct rd_bind *b)
{
	struct rd_mr *mr = mr_in_slot(t, b->stag), *region = NULL;
	enum rd_bind_result r;

	if (mr == NULL || !mr->window || (GET(mr->stag) ^ b->stag) >> 8 || mr->pd != qp->pd ||
		!window_may((struct rd_mw *)mr, b))
		return RD_BIND_REFUSED;
	if (b->len > 0) {
		region = mr_lookup(t, b->region);
		if (!region_may(region, qp, b) || !mw_hold(region))
			return RD_BIND_REFUSED;
	}
	r = mw_replace((struct rd_mw *)mr, qp, b, region);
	if (region != NULL && r != RD_BIND_DONE && r != RD_BIND_CHANGED)
		mw_release(region);
	return r;
}

/* ---- Invalidation ---- */

enum rd_fault
rd_invalidate_check(const struct rd_mr_table *t, const struct rd_qp *qp, uint32_t stag, bool remote,
	struct rd_mr **out)
{
	struct rd_mr *mr = mr_lookup(t, stag);
	uint32_t qpn;

	if (mr == NULL || !GET(mr->valid))
		return RD_FAULT_STAG;
	qpn = GET(mr->bound_qpn);
	if (mr->pd != qp->pd || (qpn != 0 && qpn != qp->qpn))
		return RD_FAULT_PD;
	*out = mr;
	if (mr->window)
		return qpn != 0 ? RD_OK : RD_FAULT_ACCESS;
	if ((remote && !(mr->access & REMOTE)) || (GET(mr->windows) & ~RD_MR_CLOSED))
		return RD_FAULT_ACCESS;
	return RD_OK;
}

bool
rd_mr_invalidate(struct rd_mr *mr)
{
	if (mr->window) {
		/* Reads the region first: after the exchange another QP may bind the window
		 * again. */
		struct rd_mr *region = GET(((struct rd_mw *)mr)->region);

		if (__atomic_exchange_n(&mr->valid, false, __ATOMIC_ACQ_REL))
			mw_release(region);
		return true;
	}
	if (!rd_mr_close(mr))
		return false;
	PUT(mr->valid, false);
	return true;
}
