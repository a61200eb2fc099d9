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
	struct shm_cq *shared;

	if (info->nsubs < 1 || info->nsubs > SHM_MAX_STAGES || s->size < sizeof(*shared) ||
		info->at > s->size - sizeof(*shared) || info->at % SHM_LINE != 0)
		return -EPROTO;
	for (uint32_t i = 0; i < info->nsubs; i++)
		if (!shm_ring_ok(&info->sub[i], s->size, sizeof(struct shm_cqe)))
			return -EPROTO;
	shared = (struct shm_cq *)(s->home + info->at);
	cq->arm = &shared->arm;
	cq->nsubs = info->nsubs;
	for (uint32_t i = 0; i < info->nsubs; i++) {
		shm_ring_clear(s->home, &info->sub[i]);
		shm_take_init(&cq->sub[i], s->home, &info->sub[i]);
	}
	return 0;
}

int
saker_cq_create(struct saker *s, uint32_t depth, void *user, struct saker_cq **out)
{
	struct saker_cq *cq = cl_zalloc(sizeof(*cq));
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
	wc->imm = e->imm;
	wc->inv_stag = e->inv_stag;
	wc->vendor_err = e->vendor_err;
	wc->src_qp = e->src_qpn;
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
		/* A signal handler that interrupted a change of the table leaves the completion in
		 * the queue. */
		if (__builtin_expect(wc[got].status != RD_SUCCESS, 0) &&
			!cl_qp_failed(s, wc[got].qpn))
			break;
		got++;
		shm_take_pop(t);
	}
	if (got > 0)
		shm_take_publish(t);
	return got;
}

int
saker_cq_poll(struct saker_cq *cq, struct rd_wc *wc, int n)
{
	uint32_t i = cq->first;
	int got = 0;

	if (cq->nsubs == 1)
		return sub_poll(cq->obj.s, &cq->sub[0], wc, n);
	/* The next poll starts behind the sub-ring where this one ends. */
	for (uint32_t looked = 0; looked < cq->nsubs && got < n; looked++) {
		got += sub_poll(cq->obj.s, &cq->sub[i], wc + got, n - got);
		i = i + 1 == cq->nsubs ? 0 : i + 1;
	}
	cq->first = i;
	return got;
}

void
saker_cq_arm(struct saker_cq *cq, bool solicited_only)
{
	shm_arm(cq->arm, solicited_only);
}

/* Takes the next event of any stage; *handle: its CQ. The caller holds the lock. */
static bool
event_take(struct saker *s, uint32_t *handle)
{
	for (uint32_t looked = 0; looked < s->nstages; looked++) {
		struct shm_take *t = &s->cqev.ring[s->cqev.first];
		const struct shm_cq_event *e = shm_take_peek(t);

		s->cqev.first = s->cqev.first + 1 == s->nstages ? 0 : s->cqev.first + 1;
		if (e == NULL)
			continue;
		*handle = e->cq;
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
		uint32_t handle = 0;
		bool any;

		sk_spin(&s->cqev.lock);
		any = event_take(s, &handle);
		sk_unspin(&s->cqev.lock);
		if (!any)
			break;
		/* An event of a queue that was destroyed meanwhile is dropped. */
		*cq = cl_table_find(&s->table, cl_key(CL_CQ, handle));
		if (*cq != NULL)
			return 1;
	}
	cl_settle(s);
	return 0;
}
