/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address handles, and the connections between two hosts that they share. Such a connection belongs
 * to no client. It is found, made and kept like that of a QP which a program moves itself, only
 * that what is named is a host. It goes when no handle names it and there is nobody who could
 * receive by it, or nothing has come for a while.
 */
#include <errno.h>
#include <stdlib.h>

#include "cm_priv.h"

#define HOST_LOOK_NS (1000ull * 1000 * 1000)
#define HOST_IDLE_NS (30 * HOST_LOOK_NS)

struct ctl_host *
cm_host_find(const struct eng_control *c, const struct sk_addr *remote)
{
	struct ctl_host *h;

	LIST_FOREACH (h, &c->hosts, all)
		if (!h->q.dying && sk_addr_eq(&h->eng.raddr, remote))
			return h;
	return NULL;
}

static void
host_added(struct eng_control *c, struct ctl_msg *msg)
{
	struct ctl_qp *q = ctl_qp_of_cookie(c, msg->m.cookie);

	if (q != NULL && msg->m.status == 0)
		q->index = msg->m.qp_index;
}

struct ctl_host *
cm_host_get(struct eng_control *c, const struct sk_addr *remote)
{
	struct ctl_host *h = cm_host_find(c, remote);
	struct ctl_msg *msg;

	if (h != NULL || c->qps.used == c->qps.cap)
		return h;
	h = aligned_alloc(64, (sizeof(*h) + 63) & ~(size_t)63);
	if (h == NULL)
		return NULL;
	memset(h, 0, sizeof(*h));
	h->eng.raddr = *remote;
	h->q.client = c->own;
	h->q.host = h;
	h->q.eng = (struct eng_qp){.client = &c->own->eng,
		.handle = SHM_NONE,
		.stage = ENG_DATAGRAM_STAGE,
		.type = SHM_UD,
		.falcon = true,
		.host = &h->eng,
		.control = &h->q};
	h->q.eng.rd.state = RD_QP_INIT;
	h->q.eng.rd.user = &h->q.eng;
	h->q.slot = (uint32_t)ctl_table_add(&c->qps, &h->q);
	h->q.generation = ++c->qp_generation[h->q.slot];
	h->q.cm = CM_WAITING;
	h->q.by_hand = true;
	/* Until a handle names it, it but waits to be asked. */
	h->q.move = (struct shm_qp_move){.state = RD_QP_RTR, .remote = *remote, .timeout = 1};
	LIST_INSERT_HEAD(&c->hosts, h, all);
	msg = ctl_msg_get(c, ENG_CE_QP_ADD, host_added);
	msg->m.qp = &h->q.eng;
	msg->m.client = &c->own->eng;
	msg->m.cookie = ctl_qp_cookie(&h->q);
	ctl_send_stage(c, ENG_DATAGRAM_STAGE, msg);
	c->hosts_look = c->now + HOST_LOOK_NS;
	return h;
}

void
cm_host_free(struct eng_control *c, struct ctl_host *h)
{
	cm_hand_forget(c, &h->q);
	LIST_REMOVE(h, all);
	ctl_table_del(&c->qps, h->q.slot);
	free(h->q.outcome);
	free(h);
}

/* Datagrams may come for somebody here, or go. */
static bool
is_used(const struct eng_control *c, struct ctl_host *h)
{
	uint64_t packets = __atomic_load_n(&h->eng.packets, __ATOMIC_RELAXED);

	if (h->refs > 0)
		return true;
	if (h->q.cm != CM_ESTABLISHED && h->q.cm != CM_WAITING)
		return true; /* of an attempt the outcome is waited for */
	if (h->q.cm == CM_WAITING || c->ud_qps == 0)
		return false;
	if (packets != h->packets)
		h->seen = c->now;
	h->packets = packets;
	return c->now < h->seen + HOST_IDLE_NS;
}

bool
cm_host_poll(struct eng_control *c)
{
	struct ctl_host *h, *next;
	struct ctl_op *op;
	bool work = false;

	if (LIST_EMPTY(&c->hosts) || (c->now < c->hosts_look && c->ud_qps > 0))
		return false;
	c->hosts_look = c->now + HOST_LOOK_NS;
	for (h = LIST_FIRST(&c->hosts); h != NULL; h = next) {
		next = LIST_NEXT(h, all);
		if (h->q.dying || is_used(c, h) || !ctl_has_reserve(c))
			continue;
		op = ctl_op_new(c, c->own, NULL, &h->q, NULL);
		if (op == NULL)
			break;
		ctl_qp_delete(c, &h->q, op);
		work = true;
	}
	return work;
}

/* ---- Address handles ---- */

static void
ah_put(struct eng_control *c, struct ctl_client *cl, struct ctl_ah *ah)
{
	struct ctl_host *h = ah->host;

	if (--h->refs == 0)
		h->q.move.state = RD_QP_RTR;
	h->seen = c->now;
	((struct rd_pd *)ah->eng.pd)->refs--;
	ctl_table_del(&cl->ahs, ah->handle);
	free(ah);
}

void
ctl_ah_free(struct eng_control *c, struct ctl_client *cl, struct ctl_ah *ah)
{
	ah_put(c, cl, ah);
}

static void
ah_added(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	ctl_op_reply(c, op);
}

static int
ah_check(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_ah *a = &m->body.ah;
	char text[SK_ADDR_STRLEN];

	if (!c->cfg->falcon.enabled)
		return ctl_refuse(
			c, m, -EPROTONOSUPPORT, "datagrams are Falcon's, which is not enabled");
	if (ctl_pd_find(cl, a->pd) == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no protection domain %u", a->pd);
	if (sk_addr_is_any(&a->remote) || sk_addr_is_multicast(&a->remote))
		return ctl_refuse(
			c, m, -EINVAL, "%s is no host's address", sk_addr_str(&a->remote, text));
	if (cl->ahs.used == cl->ahs.cap)
		return ctl_refuse_quota(c, m, "address handles", cl->ahs.cap);
	return 0;
}

static void
ah_tell(struct eng_control *c, struct ctl_op *op, struct ctl_client *cl, struct ctl_ah *ah,
	enum eng_ctl_type type)
{
	struct ctl_msg *msg = ctl_msg_get(c, type, NULL);

	msg->m.object = &ah->eng;
	msg->m.client = &cl->eng;
	msg->m.code = (int)ah->handle;
	ctl_op_send_stage(c, op, ENG_DATAGRAM_STAGE, msg);
}

int
ctl_ah_create(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	int rc = ah_check(c, cl, m);
	struct ctl_host *h;
	struct ctl_ah *ah;
	struct ctl_op *op;

	if (rc < 0)
		return rc;
	h = cm_host_get(c, &m->body.ah.remote);
	ah = h != NULL ? calloc(1, sizeof(*ah)) : NULL;
	op = ah != NULL ? ctl_op_new(c, cl, m, ah, ah_added) : NULL;
	if (op == NULL) {
		free(ah);
		return ctl_refuse(c, m, -ENOMEM, "no memory for an address handle");
	}
	ah->host = h;
	ah->eng.host = &h->q.eng;
	ah->eng.pd = &ctl_pd_find(cl, m->body.ah.pd)->rd;
	((struct rd_pd *)ah->eng.pd)->refs++;
	ah->handle = (uint32_t)ctl_table_add(&cl->ahs, ah);
	op->reply.body.ah.ah = ah->handle;
	if (h->refs++ == 0) {
		h->q.move.state = RD_QP_RTS;
		if (h->q.cm == CM_WAITING)
			cm_hand_rts(c, &h->q);
	}
	ah_tell(c, op, cl, ah, ENG_CE_AH_ADD);
	return CTL_LATER;
}

static void
ah_gone(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	ah_put(c, op->client, op->object);
	ctl_op_reply(c, op);
}

void
ctl_ah_delete(struct eng_control *c, struct ctl_client *cl, struct ctl_ah *ah, struct ctl_op *op)
{
	ah->dying = true;
	op->object = ah;
	op->finish = ah_gone;
	ah_tell(c, op, cl, ah, ENG_CE_AH_DEL);
}

int
ctl_ah_destroy(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_ah *ah = ctl_table_get(&cl->ahs, m->body.handle);
	struct ctl_op *op;

	if (ah == NULL || ah->dying)
		return ctl_refuse(c, m, -EINVAL, "there is no address handle %u", m->body.handle);
	op = ctl_op_new(c, cl, m, ah, ah_gone);
	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	ctl_ah_delete(c, cl, ah, op);
	return CTL_LATER;
}

/* ---- Moves of a datagram QP ---- */

int
cm_datagram_move(struct eng_control *c, struct ctl_qp *q, struct shm_msg *m, ctl_finish *finish)
{
	const struct shm_qp_move *w = &m->body.move;
	uint8_t from = q->move.state;
	struct ctl_op *op;
	struct ctl_msg *msg;

	if (w->state == RD_QP_INIT ? from > RD_QP_INIT : from != w->state && from != w->state - 1)
		return ctl_refuse(c, m, -EINVAL, "QP %u is in %s", w->qp,
			rd_qp_state_name((enum rd_qp_state)from));
	op = ctl_op_new(c, q->client, m, NULL, finish);
	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	q->move.state = w->state;
	if (w->state == RD_QP_INIT)
		q->move.qkey = w->qkey;
	msg = ctl_msg_get(c, ENG_CE_QP_MOVE, NULL);
	msg->m.qp = &q->eng;
	msg->m.client = &q->client->eng;
	msg->m.code = w->state;
	msg->m.qkey = q->move.qkey;
	msg->m.access = q->eng.rd.access;
	ctl_op_send_stage(c, op, q->eng.stage, msg);
	return CTL_LATER;
}
