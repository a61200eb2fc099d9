/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: creation, lookup, query, transitions, end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

#define CREATE_WINDOW 8 /* commands of saker_qp_create_many() under way at a time */

/* Checks places and sizes in the reply, and copies them to the private view for posting. */
static int
qp_bind(struct saker_qp *qp, struct saker *s, const struct shm_qp_info *info)
{
	struct shm_qp *shared;

	if (info->stage >= s->nstages || info->at % SHM_LINE != 0 || s->size < sizeof(*shared) ||
		info->at > s->size - sizeof(*shared) || info->max_send_sge > RD_MAX_SGE ||
		info->max_recv_sge > RD_MAX_SGE || info->max_inline > RD_MAX_INLINE)
		return -EPROTO;
	/* Not every type has both queues. */
	if (info->sq.stride != 0) {
		if (!shm_ring_ok(&info->sq, s->size,
			    shm_sqe_stride(info->max_send_sge, info->max_inline)))
			return -EPROTO;
		shm_prod_start(&qp->sq.ring, s->home, &info->sq);
	}
	if (info->rq.stride != 0) {
		if (!shm_ring_ok(&info->rq, s->size, shm_rqe_stride(info->max_recv_sge)))
			return -EPROTO;
		shm_prod_start(&qp->rq.ring, s->home, &info->rq);
	}
	shared = (struct shm_qp *)(s->home + info->at);
	qp->sq.pending = &shared->pending;
	qp->sq.gone = &s->gone;
	qp->sq.handle = info->qp;
	qp->sq.max_inline = (uint16_t)info->max_inline;
	qp->sq.max_send_sge = (uint8_t)info->max_send_sge;
	qp->sq.stage = (uint8_t)info->stage;
	qp->sq.type = info->type;
	qp->rq.gone = &s->gone;
	qp->rq.max_sge = info->max_recv_sge;
	qp->qpn = info->qpn;
	qp->s = s;
	return 0;
}

static void
attr_to_info(const struct saker_pd *pd, const struct saker_qp_attr *a, struct shm_qp_info *info)
{
	info->pd = pd->obj.handle;
	info->send_cq = a->send_cq != NULL ? a->send_cq->obj.handle : SHM_NONE;
	info->recv_cq = a->recv_cq != NULL ? a->recv_cq->obj.handle : SHM_NONE;
	info->srq = a->srq != NULL ? a->srq->obj.handle : SHM_NONE;
	info->sq_depth = a->sq_depth;
	info->rq_depth = a->srq != NULL ? 0 : a->rq_depth;
	info->max_send_sge = a->max_send_sge;
	info->max_recv_sge = a->max_recv_sge;
	info->max_inline = a->max_inline;
	info->sig_all = a->sig_all;
	info->transport = (uint8_t)a->transport;
	info->type = a->type;
	info->xrcd = a->xrcd != NULL ? a->xrcd->obj.handle : SHM_NONE;
	info->access = a->access;
	cl_class_to(&a->traffic, &info->class);
}

static void
attr_round(struct saker_qp_attr *a, const struct shm_qp_info *info)
{
	a->sq_depth = info->sq_depth;
	a->rq_depth = info->rq_depth;
	a->max_send_sge = info->max_send_sge;
	a->max_recv_sge = info->max_recv_sge;
	a->max_inline = info->max_inline;
}

static int
qp_enter(struct saker *s, struct saker_qp *qp)
{
	int rc;

	if (cl_table_add(&s->table, &qp->by_number, cl_key(CL_QPN, qp->qpn), qp) < 0) {
		cl_command_handle(s, SHM_QP_DESTROY, qp->sq.handle);
		return cl_fail(-ENOMEM, "no memory for a queue pair");
	}
	rc = cl_obj_add(s, &qp->obj, qp, CL_QP, qp->sq.handle);
	if (rc < 0)
		cl_table_del(&s->table, &qp->by_number);
	return rc;
}

static int
attr_check(const struct saker_qp_attr *a)
{
	if ((a->send_cq == NULL && a->type != SAKER_XRC_RECV) ||
		(a->recv_cq == NULL && a->type < SAKER_XRC_SEND))
		return cl_fail(
			-EINVAL, "a queue pair of type %u lacks a completion queue", a->type);
	return 0;
}

/* Makes a QP of the reply to SHM_QP_CREATE. */
static int
qp_made(struct saker *s, const struct shm_qp_info *info, void *user, struct saker_qp **out)
{
	struct saker_qp *qp = cl_zalloc(sizeof(*qp));
	int rc;

	if (qp == NULL || qp_bind(qp, s, info) < 0) {
		cl_command_handle(s, SHM_QP_DESTROY, info->qp);
		rc = qp == NULL ? cl_fail(-ENOMEM, "no memory for a queue pair")
				: cl_fail(-EPROTO,
					  "the engine reported an invalid place for a queue pair");
	} else {
		rc = qp_enter(s, qp);
	}
	if (rc < 0) {
		free(qp);
		return rc;
	}
	qp->user = user;
	*out = qp;
	return 0;
}

int
saker_qp_create(struct saker_pd *pd, struct saker_qp_attr *attr, struct saker_qp **out)
{
	int rc = saker_qp_create_many(pd, attr, 1, out);

	return rc < 0 ? rc : 0;
}

/* Commands under way, in a ring. */
struct qp_batch {
	struct cl_call call[CREATE_WINDOW];
	struct shm_msg msg[CREATE_WINDOW];
};

static int
create_send(struct saker_pd *pd, const struct saker_qp_attr *attr, struct qp_batch *b, uint32_t i)
{
	struct shm_msg *m = &b->msg[i % CREATE_WINDOW];
	struct cl_call *c = &b->call[i % CREATE_WINDOW];

	memset(m, 0, sizeof(*m));
	attr_to_info(pd, attr, &m->body.qp);
	c->msg = m;
	return cl_call_send(pd->obj.s, c, SHM_QP_CREATE);
}

/* Waits for the replies to the commands that are still under way, and destroys their QPs. Keeps
 * saker_error(). */
static void
create_undo(struct saker *s, struct qp_batch *b, uint32_t from, uint32_t to)
{
	char why[256];

	snprintf(why, sizeof(why), "%s", saker_error());
	for (uint32_t i = from; i < to; i++)
		if (cl_call_wait(s, &b->call[i % CREATE_WINDOW]) == 0)
			cl_command_handle(s, SHM_QP_DESTROY, b->msg[i % CREATE_WINDOW].body.qp.qp);
	cl_fail(0, "%s", why);
}

int
saker_qp_create_many(
	struct saker_pd *pd, struct saker_qp_attr *attr, uint32_t n, struct saker_qp **out)
{
	const struct saker_qp_attr want = *attr;
	struct saker *s = pd->obj.s;
	uint32_t done, sent = 0;
	struct qp_batch b;
	int rc = attr_check(&want);

	if (rc < 0)
		return rc;
	for (done = 0; done < n; done++) {
		const struct shm_msg *m = &b.msg[done % CREATE_WINDOW];

		while (rc == 0 && sent < n && sent - done < CREATE_WINDOW) {
			rc = create_send(pd, &want, &b, sent);
			sent += rc == 0;
		}
		if (done == sent)
			break;
		rc = cl_call_wait(s, &b.call[done % CREATE_WINDOW]);
		if (rc == 0)
			rc = qp_made(s, &m->body.qp, want.user, &out[done]);
		if (rc < 0)
			break;
		attr_round(attr, &m->body.qp);
	}
	if (done + 1 < sent)
		create_undo(s, &b, done + 1, sent);
	return done > 0 || n == 0 ? (int)done : rc;
}

int
saker_qp_open(struct saker_xrcd *x, uint32_t qpn, struct saker_qp **out)
{
	struct saker *s = x->obj.s;
	struct saker_qp *qp = cl_zalloc(sizeof(*qp));
	struct shm_msg m;
	int rc;

	if (qp == NULL)
		return cl_fail(-ENOMEM, "no memory for a queue pair");
	memset(&m, 0, sizeof(m));
	m.body.qp.xrcd = x->obj.handle;
	m.body.qp.qpn = qpn;
	rc = cl_command(s, &m, SHM_QP_OPEN);
	if (rc == 0) {
		/* A handle has no queues: posting fails, as there is neither room nor an element
		 * allowed. */
		qp->sq.handle = m.body.qp.qp;
		qp->sq.type = SAKER_XRC_RECV;
		qp->sq.gone = &s->gone;
		qp->qpn = qpn;
		qp->s = s;
		rc = qp_enter(s, qp);
	}
	if (rc < 0) {
		free(qp);
		return rc;
	}
	*out = qp;
	return 0;
}

int
saker_qp_destroy(struct saker_qp *qp)
{
	return cl_obj_destroy(&qp->obj);
}

void *
saker_qp_user(const struct saker_qp *qp)
{
	return qp->user;
}

uint32_t
saker_qp_num(const struct saker_qp *qp)
{
	return qp->qpn;
}

struct saker_qp *
saker_qp_find(struct saker *s, uint32_t qpn)
{
	return cl_table_find(&s->table, cl_key(CL_QPN, qpn));
}

int
saker_qp_query(struct saker_qp *qp, struct saker_qp_info *out)
{
	struct shm_msg m;
	int rc;

	memset(&m, 0, sizeof(m));
	m.body.handle = qp->sq.handle;
	rc = cl_command(qp->s, &m, SHM_QP_QUERY);
	if (rc == 0)
		cl_qp_info_of(&m.body.qp, out);
	return rc;
}

int
saker_qp_move(struct saker_qp *qp, const struct saker_qp_move *move)
{
	struct shm_qp_move *to;
	struct shm_msg m;
	int rc;

	memset(&m, 0, sizeof(m));
	to = &m.body.move;
	to->qp = qp->sq.handle;
	to->state = (uint8_t)move->state;
	to->ird = move->ird;
	to->ord = move->ord;
	to->min_rnr_timer = move->min_rnr_timer;
	to->timeout = move->timeout;
	to->retry = move->retry;
	to->rnr_retry = move->rnr_retry;
	to->access = move->access;
	to->remote_qpn = move->remote_qpn;
	to->qkey = move->qkey;
	to->remote = move->remote;
	to->local = move->local;
	cl_modes_to(&move->modes, &to->modes);
	cl_class_to(&move->traffic, &to->class);
	rc = cl_command(qp->s, &m, SHM_QP_MODIFY);
	/* No event and, of a QP without outstanding requests, no completion reports this error. */
	if (rc == 0 && move->state == RD_QP_ERR)
		cl_qp_failed(qp->s, qp->qpn);
	else if (rc == 0 && move->state == RD_QP_RESET)
		cl_qp_works(qp);
	return rc;
}

int
saker_qp_modify(struct saker_qp *qp, enum rd_qp_state state)
{
	const struct saker_qp_move m = {.state = state};

	return saker_qp_move(qp, &m);
}
