/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: creating, polling, resizing, destroying. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_priv.h"
#include "events_priv.h"
#include "ops_priv.h"
#include "path_priv.h"
#include "verbs_priv.h"
#include "wc_priv.h"

#define BATCH 16 /* the most completions that one poll of libsaker returns */

static void
cq_fill(struct vb_cq *cq, struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
	cq->cq.context = context;
	cq->cq.channel = attr->channel;
	cq->cq.cq_context = attr->cq_context;
	cq->cq.cqe = (int)attr->cqe;
	cq->single = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 &&
		     (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0)
		cq->single |= vb_pd(attr->parent_domain)->single;
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	if (attr->channel != NULL)
		__atomic_add_fetch(&attr->channel->refcnt, 1, __ATOMIC_RELAXED);
}

struct vb_cq *
vb_cq_create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_pd *pd =
		(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 ? attr->parent_domain : NULL;
	struct vb_pd *owner = NULL;
	struct vb_cq *cq = NULL;
	int rc = vb_alive(context);

	if (rc == 0 && (attr->cqe == 0 || attr->cqe > vb_context(context)->info.max_cq_depth ||
			       attr->comp_vector >= (uint32_t)context->num_comp_vectors))
		rc = vb_fail(EINVAL, "a completion queue cannot have %u entries and vector %u",
			attr->cqe, attr->comp_vector);
	if (rc == 0 && (cq = vb_object_alloc(pd, sizeof(*cq), VB_RESOURCE_CQ, &owner)) == NULL)
		rc = ENOMEM;
	if (rc == 0)
		rc = vb_rc(saker_cq_create(vb_context(context)->saker, attr->cqe, cq, &cq->saker),
			"ibv_create_cq");
	if (rc != 0) {
		vb_object_free(cq, VB_RESOURCE_CQ, owner);
		errno = rc;
		return NULL;
	}
	cq->owner = owner;
	cq_fill(cq, context, attr);
	vb_owned_enter(context, &cq->owned, VB_CQ);
	return cq;
}

VB_EXPORT struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
	struct ibv_comp_channel *channel, int comp_vector)
{
	const struct ibv_cq_init_attr_ex attr = {.cqe = cqe > 0 ? (uint32_t)cqe : 0,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector};
	struct vb_cq *cq = vb_cq_create(context, &attr);

	return cq != NULL ? &cq->cq : NULL;
}

VB_EXPORT int
ibv_destroy_cq(struct ibv_cq *p)
{
	struct vb_cq *cq = vb_cq(p);
	struct vb_retire r = {.context = p->context,
		.element = cq,
		.mutex = &p->mutex,
		.cond = &p->cond,
		.async_acked = &p->async_events_completed,
		.async_got = &cq->async_got,
		.cq = cq};
	int rc = 0;

	if (vb_held(&cq->refs))
		return vb_fail(EBUSY, "the completion queue is in use by %u queue pairs and SRQs",
			__atomic_load_n(&cq->refs, __ATOMIC_RELAXED));
	vb_retire_begin(&r);
	if (vb_owned_live(p->context, &cq->owned))
		rc = vb_rc(saker_cq_destroy(cq->saker), "ibv_destroy_cq");
	vb_retire_end(&r, rc == 0);
	if (rc != 0)
		return rc;
	if (p->channel != NULL)
		__atomic_sub_fetch(&p->channel->refcnt, 1, __ATOMIC_RELEASE);
	pthread_mutex_destroy(&p->mutex);
	pthread_cond_destroy(&p->cond);
	free(cq->kept);
	vb_owned_leave(&cq->owned);
	vb_object_free(cq, VB_RESOURCE_CQ, cq->owner);
	return 0;
}

/* ---- Polling ---- */

/* Completions that vb_cq_clean() took out of the rings and that belong to other QPs. Guarded by the
 * lock of the CQ. */
struct vb_kept {
	uint32_t at, n; /* the first and the number of those that wait */
	struct {
		struct rd_wc wc;
		bool news; /* no event has reported it */
	} entry[];
};

static void
kept_free(struct vb_cq *cq)
{
	struct vb_kept *k = cq->kept;

	__atomic_store_n(&cq->kept, NULL, __ATOMIC_RELAXED);
	free(k);
}

int
vb_cq_take_kept(struct vb_cq *cq, struct rd_wc *wc, int n)
{
	struct vb_kept *k = cq->kept;
	int got = 0;

	while (got < n && k->n > 0) {
		wc[got++] = k->entry[k->at++].wc;
		k->n--;
	}
	if (k->n == 0)
		kept_free(cq);
	return got;
}

/* Removes the kept completions of the QP, and moves the others to the front of the list. */
static void
kept_clean(struct vb_kept *k, uint32_t qpn)
{
	uint32_t n = 0;

	for (uint32_t i = k->at; i < k->at + k->n; i++)
		if (k->entry[i].wc.qpn != qpn)
			k->entry[n++] = k->entry[i];
	k->at = 0;
	k->n = n;
}

/* Makes space for BATCH more completions in the list. Returns false without memory. */
static bool
kept_reserve(struct vb_cq *cq)
{
	struct vb_kept *k = cq->kept;
	uint32_t had = k != NULL ? k->at + k->n : 0;

	k = realloc(k, sizeof(*k) + (had + BATCH) * sizeof(k->entry[0]));
	if (k == NULL)
		return false;
	if (had == 0)
		k->at = k->n = 0;
	__atomic_store_n(&cq->kept, k, __ATOMIC_RELAXED);
	return true;
}

/* Moves completions from the rings to the list, without those of the QP. Returns whether there may
 * be more. */
static bool
kept_fill(struct vb_cq *cq, uint32_t qpn)
{
	struct rd_wc wc[BATCH];
	bool news[BATCH];
	struct vb_kept *k;
	int got;

	if (!kept_reserve(cq)) {
		vb_fail(ENOMEM, "no memory to keep the completions of other queue pairs");
		return false;
	}
	k = cq->kept;
	got = cl_cq_poll_news(cq->saker, wc, news, BATCH);
	for (int i = 0; i < got; i++) {
		if (wc[i].qpn == qpn)
			continue;
		k->entry[k->at + k->n].wc = wc[i];
		k->entry[k->at + k->n++].news = news[i];
	}
	return got > 0;
}

void
vb_cq_clean(struct ibv_cq *p, uint32_t qpn)
{
	struct vb_cq *cq = vb_cq(p);

	/* In the middle of ibv_start_poll() the queue stays as it is. */
	if (p == NULL || (!cq->single && !vb_path_enter(&cq->lock)))
		return;
	if (cq->kept != NULL)
		kept_clean(cq->kept, qpn);
	while (kept_fill(cq, qpn))
		;
	if (cq->kept != NULL && cq->kept->n == 0)
		kept_free(cq);
	if (!cq->single)
		vb_path_leave(&cq->lock);
}

/* Resizes a locked queue. A queue does not shrink: it may be larger than the program requests, but
 * not smaller than what is in it. */
static int
cq_resize(struct vb_cq *cq, uint32_t cqe)
{
	uint32_t n = (cq->kept != NULL ? cq->kept->n : 0) + cl_cq_count(cq->saker);
	int rc;

	if (cqe < n)
		return vb_fail(EINVAL,
			"a completion queue with %u completions cannot have %u entries", n, cqe);
	if (cqe <= (uint32_t)cq->cq.cqe)
		return 0;
	rc = vb_rc(saker_cq_resize(cq->saker, cqe), "ibv_resize_cq");
	if (rc == 0)
		cq->cq.cqe = (int)cqe;
	return rc;
}

/* Other threads that poll or arm the queue wait for the engine's reply. */
VB_EXPORT int
ibv_resize_cq(struct ibv_cq *p, int cqe)
{
	struct vb_cq *cq = vb_cq(p);
	int rc = vb_alive(p->context);

	if (rc != 0)
		return rc;
	if (cqe <= 0 || (uint32_t)cqe > vb_context(p->context)->info.max_cq_depth)
		return vb_fail(EINVAL, "a completion queue cannot have %d entries", cqe);
	if (!cq->single && !vb_path_enter(&cq->lock))
		return vb_fail(EBUSY, "a completion queue cannot be resized while it is polled");
	rc = cq_resize(cq, (uint32_t)cqe);
	if (!cq->single)
		vb_path_leave(&cq->lock);
	return rc;
}

static inline void
wc_fill(struct ibv_wc *to, const struct rd_wc *from)
{
	to->wr_id = from->wr_id;
	to->status = (enum ibv_wc_status)from->status;
	to->opcode = vb_wc_opcode(from->opcode);
	to->vendor_err = from->vendor_err;
	to->byte_len = from->byte_len;
	to->wc_flags = vb_wc_flags(from->flags);
	if ((from->flags & RD_WC_INV) != 0)
		to->invalidated_rkey = from->inv_stag;
	else
		to->imm_data = htonl((uint32_t)from->imm);
	to->qp_num = from->qpn;
	to->src_qp = from->src_qp;
	to->pkey_index = 0;
	to->slid = 0;
	to->sl = vb_wc_sl(from->flags);
	to->dlid_path_bits = 0;
}

/* Polls a queue that is not empty. It stands apart so that a poll of an empty queue saves no
 * registers. */
static __attribute__((noinline)) int
poll_some(struct vb_cq *cq, int n, struct ibv_wc *wc)
{
	struct rd_wc batch[BATCH];
	int done = 0;

	/* A signal handler that interrupted a poll of this queue finds no completion. */
	if (!cq->single && !vb_path_enter(&cq->lock))
		return 0;
	while (done < n) {
		int want = n - done < BATCH ? n - done : BATCH;
		int got = vb_cq_take(cq, batch, want);

		for (int i = 0; i < got; i++)
			wc_fill(&wc[done + i], &batch[i]);
		done += got;
		if (got < want)
			break;
	}
	if (!cq->single)
		vb_path_leave(&cq->lock);
	vb_poll_found(cq, done);
	return done;
}

int
vb_poll_cq(struct ibv_cq *p, int n, struct ibv_wc *wc)
{
	struct vb_cq *cq = vb_cq(p);

	/* An empty queue is not locked: most polls find no completion. */
	if (vb_cq_any(cq))
		return poll_some(cq, n, wc);
	vb_poll_found(cq, 0);
	return 0;
}

/* Disarms a locked queue and returns true if the program must get an event at once. That event
 * reports the kept completions, too. */
static bool
cq_fire(struct vb_cq *cq)
{
	struct vb_kept *k = cq->kept;
	bool any = false, solicited = false;

	if (__builtin_expect(k == NULL, 1))
		return cl_cq_fire(cq->saker, false, false);
	for (uint32_t i = k->at; i < k->at + k->n; i++) {
		if (!k->entry[i].news)
			continue;
		any = true;
		solicited |= (k->entry[i].wc.flags & RD_WC_SOLICITED) != 0 ||
			     k->entry[i].wc.status != RD_SUCCESS;
	}
	if (!cl_cq_fire(cq->saker, any, solicited))
		return false;
	for (uint32_t i = k->at; i < k->at + k->n; i++)
		k->entry[i].news = false;
	return true;
}

/* InfiniBand promises an event for a later completion alone. The devices of the field also report
 * one that is in the queue already, and programs sleep after this call without a further poll. One
 * that an earlier event has reported gets no other: programs also arm before they poll. */
int
vb_req_notify_cq(struct ibv_cq *p, int solicited_only)
{
	struct vb_cq *cq = vb_cq(p);
	bool fired;

	/* The event of a queue without a channel would wake the program for nothing. */
	if (p->channel == NULL)
		return 0;
	saker_cq_arm(cq->saker, solicited_only != 0);
	if ((!cq->single && !vb_path_enter(&cq->lock)))
		return 0;
	fired = cq_fire(cq);
	if (!cq->single)
		vb_path_leave(&cq->lock);
	if (fired)
		vb_channel_ring(cq);
	return 0;
}
