/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address handles, and the host connections that they share. No client owns a host connection. The
 * connection manager makes it like the connection of a QP modified by the program, but its request
 * names a host instead of a QP. It is destroyed when no address handle uses it, and there is no
 * datagram QP or no datagram has come for HOST_IDLE_NS.
 */
#include <errno.h>
#include <stdlib.h>

#include "cm.h"

#define HOST_LOOK_NS (1000ull * 1000 * 1000)
#define HOST_IDLE_NS (30 * HOST_LOOK_NS)
/* The part of CTL_POOL_HOST that the peers of one network may request, and the part below which the
 * free ones are so few that a host connection is idle after HOST_LOOK_NS. */
#define HOST_PREFIX_PART 8
#define HOST_FREE_PART   8

/* Returns the list of a host connection. A client chooses the class of its address handles, so that
 * it can have very many host connections to one address. */
static struct cm_hosts *
host_bucket(
	const struct eng_control *c, const struct sk_addr *remote, bool ordered, uint32_t number)
{
	struct {
		struct sk_addr remote;
		uint32_t number;
	} key = {*remote, number << 1 | ordered};

	return &c->host_hash[sk_siphash(&c->qpn_key, &key, sizeof(key)) % CTL_HOST_HASH];
}

/* Returns the counter of the network of an address. */
static uint32_t *
host_prefix(const struct eng_control *c, const struct sk_addr *remote)
{
	uint64_t hash = sk_siphash(&c->qpn_key, remote, sk_network_len(remote));

	return &c->host_prefix[hash % CTL_HOST_HASH];
}

/* Returns the number of the host connection for packets of a class from an engine stage, or the
 * class of a number. The flow label has no part in it: Falcon chooses that of each packet. */
static uint32_t
host_number(const struct shm_class *k, int stage)
{
	return k->traffic_class >> 2 | (uint32_t)k->priority << 6 |
	       (uint32_t)stage << CM_HOST_STAGE;
}

static struct shm_class
host_class(uint32_t number)
{
	return (struct shm_class){.set = SHM_CLASS_TRAFFIC | SHM_CLASS_PRIORITY | SHM_CLASS_FLOW,
		.traffic_class = (uint8_t)(number << 2),
		.priority = number >> 6 & (ENG_PRIORITIES - 1)};
}

static struct ctl_host *
host_find(const struct eng_control *c, const struct sk_addr *remote, bool ordered, uint32_t number)
{
	struct ctl_host *h;

	LIST_FOREACH (h, host_bucket(c, remote, ordered, number), bucket)
		if (!h->conn.dying && !h->conn.given_up && h->eng.ordered == ordered &&
			h->qp.rd.qpn == number && sk_addr_eq(&h->eng.raddr, remote))
			return h;
	return NULL;
}

/* Without memory at the engine stage, the host connection is given up: the address handles that
 * were to use it are refused, and the next one gets another host connection. */
static void
host_added(struct eng_control *c, struct ctl_msg *msg)
{
	struct cm_conn *q = cm_conn_of_cookie(c, msg->m.cookie);

	if (q != NULL && msg->m.status == 0)
		q->qp_index = msg->m.qp_index;
	else if (q != NULL)
		cm_modified_give_up(c, q);
}

/* Takes the units of a host connection for the instance. Returns false when it may have no more. */
static bool
host_take(struct eng_control *c)
{
	if (!ctl_share_take(c, CTL_POOL_HOST, SK_USER_INSTANCE))
		return false;
	if (ctl_share_take(c, CTL_POOL_QP, SK_USER_INSTANCE))
		return true;
	ctl_share_give(c, CTL_POOL_HOST, SK_USER_INSTANCE);
	return false;
}

static void
host_give(struct eng_control *c, uint16_t user)
{
	ctl_share_give(c, CTL_POOL_QP, user);
	ctl_share_give(c, CTL_POOL_HOST, user);
}

/* Takes a host connection that a peer has requested out of the number of its network: it ends, or a
 * client pays for it. */
static void
host_uncount(struct eng_control *c, struct ctl_host *h)
{
	*host_prefix(c, &h->eng.raddr) -= h->counted;
	h->counted = false;
}

static void
host_free(struct eng_control *c, struct cm_conn *q)
{
	struct ctl_host *h = SK_CONTAINER(q, struct ctl_host, conn);

	cm_conn_ops.forget(c, q);
	TAILQ_REMOVE(&c->hosts, h, all);
	LIST_REMOVE(h, bucket);
	c->nhosts--;
	host_uncount(c, h);
	host_give(c, h->user);
	ctl_table_del(&c->conns, q->slot);
	free(h);
}

static void
host_init(struct eng_control *c, struct ctl_host *h, const struct sk_addr *remote, bool ordered,
	uint32_t number)
{
	struct cm_conn *q = &h->conn;

	h->eng.raddr = *remote;
	h->eng.ordered = ordered;
	h->qp = (struct eng_qp){.handle = SHM_NONE,
		.stage = (uint8_t)((number >> CM_HOST_STAGE) % c->cfg->nstages),
		.type = SHM_UD,
		.kind = ENG_FALCON, /* only Falcon has address handles */
		.host = &h->eng,
		.control = q};
	h->qp.rd.state = RD_QP_INIT;
	h->qp.rd.qpn = number;
	q->class = host_class(number);
	q->qp = &h->qp;
	q->free = host_free;
	q->slot = (uint32_t)ctl_table_add(&c->conns, q);
	q->generation = ++c->conn_generation[q->slot];
	q->state = CM_WAITING;
	q->modified = true;
	/* Until an address handle uses the connection, it makes no attempt and waits for a
	 * request. */
	q->move = (struct shm_qp_move){.state = RD_QP_RTR,
		.remote = *remote,
		.remote_qpn = number,
		.timeout = 1,
		.modes = {.ordering = ordered ? SHM_ORDER_STRONG : SHM_ORDER_NONE,
			.errors = SHM_ERRORS_COMPLETE}};
	TAILQ_INSERT_TAIL(&c->hosts, h, all);
	LIST_INSERT_HEAD(host_bucket(c, remote, ordered, number), h, bucket);
	c->nhosts++;
}

/* Creates a host connection, for which the caller has taken the units of the user. Returns NULL
 * when there is no memory. */
static struct ctl_host *
host_new(struct eng_control *c, const struct sk_addr *remote, bool ordered, uint32_t number,
	uint16_t user)
{
	struct ctl_host *h = aligned_alloc(64, (sizeof(*h) + 63) & ~(size_t)63);
	struct ctl_msg *msg;

	if (h == NULL) {
		host_give(c, user);
		return NULL;
	}
	memset(h, 0, sizeof(*h));
	h->user = user;
	host_init(c, h, remote, ordered, number);
	msg = ctl_msg_get(c, ENG_CE_QP_ADD, host_added);
	msg->m.qp = &h->qp;
	msg->m.cookie = cm_conn_cookie(&h->conn);
	ctl_send_stage(c, h->qp.stage, msg);
	if (c->nhosts == 1)
		c->hosts_look = c->now + HOST_LOOK_NS;
	return h;
}

/* Returns whether so many host connections exist that idle ones end early. */
static bool
hosts_are_scarce(const struct eng_control *c)
{
	const struct sk_share *s = &c->share[CTL_POOL_HOST];

	return sk_share_room(s, SK_USER_INSTANCE) <= s->size / HOST_FREE_PART;
}

struct ctl_host *
cm_host_get(struct eng_control *c, const struct sk_addr *remote, bool ordered, uint32_t number)
{
	uint32_t most = SK_MAX(c->share[CTL_POOL_HOST].size / HOST_PREFIX_PART, 1u);
	uint32_t *prefix = host_prefix(c, remote);
	struct ctl_host *h = host_find(c, remote, ordered, number);

	if (h != NULL)
		return h;
	if (*prefix >= most || !host_take(c)) {
		sk_count(c->counters, ENG_HOST_REFUSED);
		return NULL;
	}
	h = host_new(c, remote, ordered, number, SK_USER_INSTANCE);
	if (h != NULL) {
		h->counted = true;
		++*prefix;
	}
	return h;
}

/* Returns the enum rof_ordering for an enum shm_ordering of a client. */
static uint8_t
datagram_ordering(const struct eng_control *c, uint8_t chosen)
{
	return chosen == SHM_ORDER_CONFIGURED ? c->cfg->falcon.datagram_ordering : chosen - 1;
}

/* Returns the host connection to `remote` for an address handle of the client, which pays for it if
 * no client does yet. Returns NULL with a refusal in `m`. */
static struct ctl_host *
host_of_client(struct eng_control *c, struct ctl_client *cl, int stage, struct shm_msg *m)
{
	const struct sk_addr *remote = &m->body.ah.remote;
	bool ordered = datagram_ordering(c, m->body.ah.ordering) == ROF_ORDER_STRONG;
	uint32_t number = host_number(&m->body.ah.class, stage);
	struct ctl_host *h = host_find(c, remote, ordered, number);

	if (h != NULL && h->user != SK_USER_INSTANCE)
		return h;
	if (ctl_take_shared(c, cl, CTL_POOL_HOST, m) < 0)
		return NULL;
	if (ctl_take_shared(c, cl, CTL_POOL_QP, m) < 0) {
		ctl_give(c, cl, CTL_POOL_HOST);
		return NULL;
	}
	if (h != NULL) { /* at a peer's request, or of a user that has left it */
		host_give(c, h->user);
		host_uncount(c, h);
		h->user = cl->eng.user;
		return h;
	}
	h = host_new(c, remote, ordered, number, cl->eng.user);
	if (h == NULL)
		ctl_refuse(c, m, -ENOMEM, "no memory for a host connection");
	return h;
}

void
cm_hosts_free(struct eng_control *c)
{
	struct ctl_host *h;

	while ((h = TAILQ_FIRST(&c->hosts)) != NULL) {
		free(h->conn.request);
		h->conn.request = NULL;
		host_free(c, &h->conn);
	}
}

/* Returns whether datagrams may be sent or received over the host connection. */
static bool
is_used(const struct eng_control *c, struct ctl_host *h)
{
	uint64_t packets = __atomic_load_n(&h->eng.packets, __ATOMIC_RELAXED);

	if (h->refs > 0)
		return true;
	if (h->conn.state != CM_ESTABLISHED && h->conn.state != CM_WAITING &&
		h->conn.state != CM_CLOSED)
		return true; /* the outcome of an attempt is pending */
	if (h->conn.state != CM_ESTABLISHED || c->ud_qps == 0 || h->user != SK_USER_INSTANCE)
		return false;
	if (packets != h->packets)
		h->seen = c->now;
	h->packets = packets;
	return c->now < h->seen + (hosts_are_scarce(c) ? HOST_LOOK_NS : HOST_IDLE_NS);
}

/* Begins to destroy the host connection. Returns false when there is no memory for that. */
static bool
host_end(struct eng_control *c, struct ctl_host *h)
{
	struct ctl_op *op = ctl_op_new(c, NULL, NULL, h, NULL);

	if (op == NULL)
		return false;
	h->conn.dying = true;
	h->conn.op = op;
	cm_conn_ops.leave(c, &h->conn);
	return true;
}

bool
cm_host_poll(struct eng_control *c)
{
	struct ctl_host *h;
	bool work = false;

	if (c->hosts_unseen == 0 && (c->now >= c->hosts_look || c->ud_qps == 0)) {
		c->hosts_look = c->now + HOST_LOOK_NS;
		c->hosts_unseen = c->nhosts;
	}
	for (unsigned i = 0; i < CTL_TURN_HOSTS && c->hosts_unseen > 0; i++) {
		c->hosts_unseen--;
		h = TAILQ_FIRST(&c->hosts);
		if (h == NULL)
			break;
		TAILQ_REMOVE(&c->hosts, h, all);
		TAILQ_INSERT_TAIL(&c->hosts, h, all);
		if (!h->conn.dying && !is_used(c, h) && ctl_has_reserve(c))
			work |= host_end(c, h);
	}
	return work;
}

/* ---- Address handles ---- */

/* Passes a host connection that no address handle uses any more to the instance, since the user may
 * leave. If the instance may not have it, it remains the user's, and cm_host_poll() ends it. */
static void
host_leave_user(struct eng_control *c, struct ctl_host *h)
{
	if (h->user == SK_USER_INSTANCE || !host_take(c))
		return;
	host_give(c, h->user);
	h->user = SK_USER_INSTANCE;
}

static void
ah_put(struct eng_control *c, struct ctl_client *cl, struct ctl_ah *ah)
{
	struct ctl_host *h = ah->host;

	if (--h->refs == 0) {
		h->conn.move.state = RD_QP_RTR;
		h->conn.reserved = false;
		host_leave_user(c, h);
	}
	h->seen = c->now;
	((struct rd_pd *)ah->eng.pd)->refs--;
	ctl_table_del(&cl->ahs, ah->handle);
	ctl_give(c, cl, CTL_POOL_AH);
	free(ah);
}

void
ctl_ah_free(struct eng_control *c, struct ctl_client *cl, struct ctl_ah *ah)
{
	ah_put(c, cl, ah);
}

static int
ah_check(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_ah *a = &m->body.ah;
	char text[SK_ADDR_STRLEN];

	if (!c->datagrams)
		return ctl_refuse(c, m, -EPROTONOSUPPORT, "no enabled transport has datagrams");
	if (ctl_pd_find(cl, a->pd) == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no protection domain %u", a->pd);
	if (sk_addr_is_any(&a->remote) || sk_addr_is_multicast(&a->remote))
		return ctl_refuse(c, m, -EINVAL, "%s is not the address of a host",
			sk_addr_str(&a->remote, text));
	if (ctl_class_check(c, m, &a->class) < 0)
		return m->status;
	return cm_modes_check(c, m, &(struct shm_modes){.ordering = a->ordering}, false);
}

static void
ah_send(struct eng_control *c, struct ctl_op *op, struct ctl_client *cl, struct ctl_ah *ah,
	enum eng_ctl_type type)
{
	struct ctl_msg *msg = ctl_msg_get(c, type, NULL);

	msg->m.client = &cl->eng;
	msg->m.object.object = &ah->eng;
	msg->m.object.number = ah->handle;
	ctl_op_send_stage(c, op, ah->host->qp.stage, msg);
}

static void
ah_refused(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	ah_put(c, op->client, op->object);
	ctl_refuse(c, &op->reply, -ENOMEM, "no memory for a host connection");
	ctl_op_reply(c, op);
}

/* Replies, or removes the handle when its host connection was given up. The stage has answered
 * ENG_CE_QP_ADD before. */
static void
ah_added(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	struct ctl_ah *ah = op->object;

	if (!ah->host->conn.given_up) {
		ctl_op_reply(c, op);
	} else if (ah->dying) {
		ctl_refuse(c, &op->reply, -ENOMEM, "no memory for a host connection");
		ctl_op_reply(c, op);
	} else {
		ah->dying = true;
		op->finish = ah_refused;
		ah_send(c, op, op->client, ah, ENG_CE_AH_DEL);
	}
}

int
ctl_ah_create(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	int rc = ah_check(c, cl, m);
	struct ctl_host *h;
	struct ctl_ah *ah;
	struct ctl_op *op;
	struct ctl_pd *pd;

	if (rc < 0)
		return m->status;
	pd = ctl_pd_find(cl, m->body.ah.pd);
	if (ctl_pd_settle(c, cl, pd, -1, m) < 0 || ctl_take(c, cl, CTL_POOL_AH, m) < 0)
		return m->status;
	ctl_class_fill(&m->body.ah.class, &cl->class);
	h = host_of_client(c, cl, pd->stage, m);
	if (h == NULL) {
		ctl_give(c, cl, CTL_POOL_AH);
		return m->status;
	}
	ah = calloc(1, sizeof(*ah));
	op = ah != NULL ? ctl_op_new(c, cl, m, ah, ah_added) : NULL;
	if (op == NULL) {
		ctl_give(c, cl, CTL_POOL_AH);
		free(ah);
		return ctl_refuse(c, m, -ENOMEM, "no memory for an address handle");
	}
	ah->host = h;
	ah->eng.host = &h->qp;
	ah->eng.pd = &pd->rd;
	pd->rd.refs++;
	ah->handle = (uint32_t)ctl_table_add(&cl->ahs, ah);
	op->reply.body.ah.ah = ah->handle;
	if (h->refs++ == 0) {
		h->conn.move.state = RD_QP_RTS;
		if (h->conn.state == CM_WAITING)
			cm_modified_rts(c, &h->conn);
	}
	ah_send(c, op, cl, ah, ENG_CE_AH_ADD);
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
	ah_send(c, op, cl, ah, ENG_CE_AH_DEL);
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

/* ---- State changes of a datagram QP ---- */

/* Converts the modes of a move to RTR: the order of completions and the effect of faults. Returns
 * 0, or the status of a refusal in `m`. */
static int
datagram_modes(struct eng_control *c, struct shm_msg *m, const struct shm_modes *modes,
	uint8_t *ordering, uint8_t *errors)
{
	if (cm_modes_check(c, m, modes, false) < 0)
		return m->status;
	*ordering = datagram_ordering(c, modes->ordering);
	if (modes->errors != SHM_ERRORS_CONFIGURED)
		*errors = modes->errors - 1;
	else
		*errors = *ordering == ROF_ORDER_NONE ? ROF_ERRORS_COMPLETE
						      : c->cfg->falcon.datagram_errors;
	if (*ordering == ROF_ORDER_NONE && *errors != ROF_ERRORS_COMPLETE)
		return ctl_refuse(c, m, -EINVAL,
			"unordered datagrams complete in error (RDMA over Falcon 6.4)");
	return 0;
}

int
cm_datagram_move(struct eng_control *c, struct cm_conn *q, struct shm_msg *m, ctl_finish *finish)
{
	static const struct shm_modes configured;
	const struct shm_qp_move *w = &m->body.move;
	uint8_t from = q->move.state, ordering = 0, errors = 0;
	struct ctl_op *op;
	struct ctl_msg *msg;

	if (w->state == RD_QP_INIT ? from > RD_QP_INIT : from != w->state && from != w->state - 1)
		return ctl_refuse(c, m, -EINVAL, "QP %u is in state %s", w->qp,
			rd_qp_state_name((enum rd_qp_state)from));
	if (datagram_modes(
		    c, m, w->state == RD_QP_RTR ? &w->modes : &configured, &ordering, &errors) < 0)
		return m->status;
	op = ctl_op_new(c, q->client, m, NULL, finish);
	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	q->move.state = w->state;
	if (w->state == RD_QP_INIT)
		q->move.qkey = w->qkey;
	msg = ctl_msg_get(c, ENG_CE_QP_MOVE, NULL);
	msg->m.qp = q->qp;
	msg->m.client = cm_client_of(q);
	msg->m.move.state = w->state;
	msg->m.move.ordering = ordering;
	msg->m.move.errors = errors;
	msg->m.move.qkey = q->move.qkey;
	msg->m.move.access = q->qp->rd.access;
	ctl_op_send_stage(c, op, q->qp->stage, msg);
	return CTL_LATER;
}
