/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues. Each engine stage has a sub-ring of its own, and polling merges them. Verbs
 * guarantee order within a queue pair only, and a queue pair belongs to one stage, so a round robin
 * over the sub-rings suffices.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

static int
cq_bind(struct saker_cq *cq, struct saker *s, const struct shm_cq_info *info)
{
	uint64_t bytes = shm_cq_bytes(s->nstages);

	if (s->size < bytes || info->at > s->size - bytes || info->at % SHM_LINE != 0 ||
		info->depth < 1 || info->depth != 1u << shm_log2(info->depth))
		return -EPROTO;
	cq->cq.shared = (struct shm_cq *)(s->home + info->at);
	cq->cq.sub = cq->sub;
	cq->reported = (uint32_t *)&cq->sub[s->nstages];
	cq->cq.max_subs = s->nstages;
	cq->log2_depth = shm_log2(info->depth);
	return 0;
}

/* Prepares for the sub-rings that the engine has made, from number `n` to number `most`. An invalid
 * offset ends the queue's growth. Returns the number of the next one. */
static uint32_t
subs_take(struct saker_cq *cq, uint32_t n, uint32_t most)
{
	const struct cl_cq *c = &cq->cq;
	uint32_t to = __atomic_load_n(&c->shared->nsubs, __ATOMIC_ACQUIRE);

	for (; n < to && n < most; n++) {
		uint64_t at = __atomic_load_n(&c->shared->sub[n], __ATOMIC_RELAXED);
		struct shm_ring_at ring = shm_cq_ring(at, cq->log2_depth);

		if (!shm_ring_ok(&ring, cq->obj.s->size, sizeof(struct shm_cqe)))
			break;
		shm_take_init(&c->sub[n], cq->obj.s->home, &ring);
	}
	return n;
}

/* Takes over the sub-rings that the engine has made since the last call. */
static void
cq_grow(struct saker_cq *cq)
{
	struct cl_cq *c = &cq->cq;

	__atomic_store_n(&c->nsubs, subs_take(cq, c->nsubs, c->max_subs), __ATOMIC_RELEASE);
}

int
saker_cq_create(struct saker *s, uint32_t depth, void *user, struct saker_cq **out)
{
	struct saker_cq *cq = cl_zalloc(
		sizeof(*cq) + s->nstages * (sizeof(cq->sub[0]) + sizeof(cq->reported[0])));
	struct shm_msg m;
	int rc;

	if (cq == NULL)
		return cl_fail(-ENOMEM, "no memory for a completion queue");
	memset(&m, 0, sizeof(m));
	m.body.cq.depth = depth;
	rc = cl_command(s, &m, SHM_CQ_CREATE);
	if (rc == 0 && cq_bind(cq, s, &m.body.cq) < 0) {
		cl_command_handle(s, SHM_CQ_DESTROY, m.body.cq.cq);
		rc = cl_fail(
			-EPROTO, "the engine reported an invalid place for a completion queue");
	}
	if (rc == 0)
		rc = cl_obj_add(s, &cq->obj, cq, CL_CQ, m.body.cq.cq);
	if (rc < 0) {
		free(cq);
		return rc;
	}
	cq->user = user;
	*out = cq;
	return 0;
}

int
saker_cq_destroy(struct saker_cq *cq)
{
	return cl_obj_destroy(&cq->obj);
}

void *
saker_cq_user(const struct saker_cq *cq)
{
	return cq->user;
}

static inline void
cqe_read(const struct shm_cqe *e, struct rd_wc *wc)
{
	wc->wr_id = e->wr_id;
	wc->qpn = e->qpn;
	wc->opcode = e->opcode;
	wc->status = e->status;
	wc->flags = e->flags;
	wc->byte_len = e->byte_len;
	wc->imm = 0;
	wc->inv_stag = wc->vendor_err = wc->src_qp = 0;
	if (__builtin_expect(wc->status != RD_SUCCESS, 0)) {
		wc->vendor_err = e->vendor_err;
	} else if (wc->flags & RD_WC_INV) {
		wc->inv_stag = e->inv_stag;
	} else if (wc->flags & RD_WC_GRH) {
		wc->src_qp = e->datagram.src_qpn;
		wc->imm = e->datagram.imm;
	} else {
		wc->imm = e->imm;
	}
}

static inline int
sub_poll(struct saker *s, struct shm_take *t, struct rd_wc *wc, int n)
{
	int got = 0;

	while (got < n) {
		const struct shm_cqe *e = shm_take_peek(t);

		if (e == NULL)
			break;
		cqe_read(e, &wc[got]);
		if (__builtin_expect(wc[got].status != RD_SUCCESS, 0))
			cl_qp_failed(s, wc[got].qpn);
		got++;
		/* cl_cq_any() reads it in other threads. */
		__atomic_store_n(&t->next, t->next + 1, __ATOMIC_RELAXED);
	}
	if (got > 0)
		shm_take_publish(t);
	return got;
}

int
saker_cq_poll(struct saker_cq *cq, struct rd_wc *wc, int n)
{
	uint32_t i, nsubs;
	int got = 0;

	if (__builtin_expect(
		    __atomic_load_n(&cq->cq.shared->nsubs, __ATOMIC_RELAXED) != cq->cq.nsubs, 0))
		cq_grow(cq);
	nsubs = cq->cq.nsubs;
	if (nsubs == 1)
		return sub_poll(cq->obj.s, &cq->cq.sub[0], wc, n);
	/* The next poll starts behind the sub-ring where this one ends. */
	i = cq->first;
	for (uint32_t looked = 0; looked < nsubs && got < n; looked++) {
		got += sub_poll(cq->obj.s, &cq->cq.sub[i], wc + got, n - got);
		i = i + 1 >= nsubs ? 0 : i + 1;
	}
	cq->first = i;
	return got;
}

void
saker_cq_arm(struct saker_cq *cq, bool solicited_only)
{
	shm_arm(&cq->cq.shared->arm, solicited_only);
}

/* Notes that an event has reported so many completions of a sub-ring, of which the program may have
 * polled some. */
static void
sub_reported(struct saker_cq *cq, uint32_t sub, uint32_t until)
{
	uint32_t was = __atomic_load_n(&cq->reported[sub], __ATOMIC_RELAXED);

	while ((int32_t)(until - was) > 0 &&
		!__atomic_compare_exchange_n(
			&cq->reported[sub], &was, until, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Returns the number of the first completion of the sub-ring that is neither polled nor reported.
 */
static uint32_t
sub_first_news(const struct saker_cq *cq, uint32_t sub)
{
	const struct shm_take *t = &cq->cq.sub[sub];
	uint32_t i = __atomic_load_n(&cq->reported[sub], __ATOMIC_RELAXED);

	/* The completion may be polled already, or the engine may never have sent this number. */
	return i - t->next > t->count ? t->next : i;
}

/* Returns how many completions of the sub-ring there were up to now. Sets `any` if one of them is
 * neither polled nor reported, and `solicited` if such a one is solicited or an error. */
static uint32_t
sub_news(const struct saker_cq *cq, uint32_t sub, bool *any, bool *solicited)
{
	const struct shm_take *t = &cq->cq.sub[sub];
	uint32_t i = sub_first_news(cq, sub);

	for (; i - t->next < t->count; i++) {
		const struct shm_cqe *e = shm_take_at(t, i);

		if (__atomic_load_n(&e->turn, __ATOMIC_ACQUIRE) != shm_turn(i, t->log2_count))
			break;
		*any = true;
		if ((e->flags & RD_WC_SOLICITED) != 0 || e->status != RD_SUCCESS)
			*solicited = true;
	}
	return i;
}

bool
cl_cq_fire(struct saker_cq *cq, bool any, bool solicited)
{
	uint32_t until[SHM_MAX_STAGES], *arm = &cq->cq.shared->arm;

	cq_grow(cq);
	for (uint32_t i = 0; i < cq->cq.nsubs; i++)
		until[i] = sub_news(cq, i, &any, &solicited);
	if (!any || !shm_arm_fire(arm, solicited))
		return false;
	for (uint32_t i = 0; i < cq->cq.nsubs; i++)
		sub_reported(cq, i, until[i]);
	return true;
}

int
cl_cq_poll_news(struct saker_cq *cq, struct rd_wc *wc, bool *news, int n)
{
	int got = 0;

	cq_grow(cq);
	for (uint32_t sub = 0; sub < cq->cq.nsubs && got < n; sub++) {
		struct shm_take *t = &cq->cq.sub[sub];
		uint32_t reported = sub_first_news(cq, sub) - t->next;
		int found = sub_poll(cq->obj.s, t, wc + got, n - got);

		for (int i = 0; i < found; i++)
			news[got + i] = (uint32_t)i >= reported;
		got += found;
	}
	return got;
}

/* ---- Growth ---- */

/* Returns the number of the first entry that is not valid. */
static uint32_t
sub_end(const struct shm_take *t)
{
	uint32_t i = t->next;

	while (i - t->next < t->count) {
		const uint32_t *turn = shm_take_at(t, i);

		if (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != shm_turn(i, t->log2_count))
			break;
		i++;
	}
	return i;
}

uint32_t
cl_cq_count(struct saker_cq *cq)
{
	uint32_t n = 0;

	cq_grow(cq);
	for (uint32_t i = 0; i < cq->cq.nsubs; i++)
		n += sub_end(&cq->cq.sub[i]) - cq->cq.sub[i].next;
	return n;
}

/* Copies the entries that are not taken, up to `end`, in front of those that the engine writes to
 * the larger ring `to`. */
static void
sub_carry(const struct shm_take *from, uint32_t end, struct shm_take *to)
{
	uint32_t shift = shm_ring_moved(end, to->count) - end;

	to->next = from->next + shift;
	for (uint32_t i = from->next; i != end; i++) {
		uint8_t *e = to->entries + (size_t)((i + shift) & (to->count - 1)) * to->stride;

		memcpy(e, shm_take_at(from, i), to->stride);
		__atomic_store_n((uint32_t *)(void *)e, shm_turn(i + shift, to->log2_count),
			__ATOMIC_RELAXED);
	}
	shm_take_publish(to);
}

/* Converts the number of reported completions of a sub-ring that ended at `end` and went on
 * `shift` entries further. An event of the larger ring may have come already. */
static void
sub_renumber(uint32_t *reported, uint32_t end, uint32_t shift)
{
	uint32_t was = __atomic_load_n(reported, __ATOMIC_RELAXED);

	while ((int32_t)(was - end) <= 0 &&
		!__atomic_compare_exchange_n(
			reported, &was, was + shift, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Prepares for the larger sub-rings of the reply. Returns false when one is invalid. */
static bool
subs_larger(const struct saker_cq *cq, const struct shm_cq_info *info, struct shm_take *to)
{
	struct saker *s = cq->obj.s;
	uint8_t log2 = shm_log2(info->depth);

	for (uint32_t i = 0; i < info->nsubs; i++) {
		struct shm_ring_at ring = shm_cq_ring(info->at + i * shm_cq_ring_bytes(log2), log2);

		if (!shm_ring_ok(&ring, s->size, sizeof(struct shm_cqe)))
			return false;
		shm_take_init(&to[i], s->home, &ring);
	}
	return true;
}

/* Moves from `nsubs` sub-rings to those of the reply, in `to`. Returns how many there are then, or
 * -EPROTO. */
static int
cq_move(struct saker_cq *cq, uint32_t nsubs, const struct shm_cq_info *info, struct shm_take *to)
{
	uint8_t log2 = shm_log2(info->depth);
	struct cl_cq *c = &cq->cq;

	if (info->depth != 1u << log2 || log2 < cq->log2_depth || info->nsubs > cq->obj.s->nstages)
		return -EPROTO;
	if (log2 == cq->log2_depth)
		return (int)nsubs;
	/* The engine may have made sub-rings of the former depth that no poll has found yet. */
	if (subs_take(cq, nsubs, info->nsubs) != info->nsubs || !subs_larger(cq, info, to))
		return -EPROTO;
	for (uint32_t i = 0; i < info->nsubs; i++) {
		uint32_t end = sub_end(&c->sub[i]);

		sub_carry(&c->sub[i], end, &to[i]);
		sub_renumber(&cq->reported[i], end, shm_ring_moved(end, to[i].count) - end);
	}
	cq->log2_depth = log2;
	__atomic_store_n(&c->sub, to, __ATOMIC_RELAXED);
	return (int)info->nsubs;
}

/* Has the engine resize the queue, which has `nsubs` sub-rings. Returns how many there are then, in
 * `to` if the queue has grown, or -errno. */
static int
cq_larger(struct saker_cq *cq, uint32_t nsubs, uint32_t depth, struct shm_take *to)
{
	struct shm_msg m;
	int rc;

	memset(&m, 0, sizeof(m));
	m.body.cq.cq = cq->obj.handle;
	m.body.cq.depth = depth;
	rc = cl_command(cq->obj.s, &m, SHM_CQ_RESIZE);
	if (rc < 0)
		return rc;
	rc = cq_move(cq, nsubs, &m.body.cq, to);
	if (rc < 0)
		cl_fail(rc, "the engine reported invalid places for a larger completion queue");
	return rc;
}

int
saker_cq_resize(struct saker_cq *cq, uint32_t depth)
{
	struct saker *s = cq->obj.s;
	struct cl_cq_subs *grown = cl_zalloc(sizeof(*grown) + s->nstages * sizeof(grown->sub[0]));
	uint32_t nsubs = cq->cq.nsubs;
	int now;

	if (grown == NULL)
		return cl_fail(-ENOMEM, "no memory for a larger completion queue");
	/* Meanwhile cl_cq_any() returns true, and a poll in a signal handler finds nothing. */
	cq->cq.max_subs = 0;
	__atomic_store_n(&cq->cq.nsubs, 0, __ATOMIC_RELAXED);
	now = cq_larger(cq, nsubs, depth, grown->sub);
	cq->cq.max_subs = s->nstages;
	__atomic_store_n(&cq->cq.nsubs, now < 0 ? nsubs : (uint32_t)now, __ATOMIC_RELEASE);
	if (cq->cq.sub != grown->sub) {
		free(grown);
		return now < 0 ? now : 0;
	}
	grown->older = cq->grown;
	cq->grown = grown;
	return 0;
}

void
cl_cq_forget(struct saker_cq *cq)
{
	struct cl_cq_subs *g;

	while ((g = cq->grown) != NULL) {
		cq->grown = g->older;
		free(g);
	}
}

/* ---- Events ---- */

/* Takes the next event of any stage. The caller holds the lock. */
static bool
event_take(struct saker *s, struct shm_cq_event *event)
{
	for (uint32_t looked = 0; looked < s->nstages; looked++) {
		struct shm_take *t = &s->cqev.ring[s->cqev.first];
		const struct shm_cq_event *e = shm_take_peek(t);

		s->cqev.first = s->cqev.first + 1 == s->nstages ? 0 : s->cqev.first + 1;
		if (e == NULL)
			continue;
		*event = *e;
		shm_take_pop(t);
		shm_take_publish(t);
		return true;
	}
	return false;
}

int
saker_cq_event(struct saker *s, struct saker_cq **cq)
{
	for (;;) {
		struct shm_cq_event e;
		bool any;

		sk_spin(&s->cqev.lock);
		any = event_take(s, &e);
		sk_unspin(&s->cqev.lock);
		if (!any)
			break;
		/* An event of a queue that was destroyed meanwhile is dropped. */
		*cq = cl_table_find(&s->table, cl_key(CL_CQ, e.cq));
		if (*cq == NULL)
			continue;
		if (e.sub < s->nstages)
			sub_reported(*cq, e.sub, e.until);
		return 1;
	}
	cl_settle(s);
	return 0;
}
