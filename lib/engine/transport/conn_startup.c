/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start-up of a connection, as far as it is the same for every transport: the memory that only
 * the start-up needs, its timer, and the notices to the control stage. The link implements the
 * exchange itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>

#include "../../base/mem.h"
#include "handoff_priv.h"
#include "link.h"

#define TIMER_BUDGET 32

int
eng_startup_create(struct eng_conn *c)
{
	c->su = calloc(1, sizeof(*c->su));
	if (c->su == NULL)
		return -ENOMEM;
	c->su->conn = c;
	return 0;
}

void
eng_startup_free(struct eng_transport *t, struct eng_conn *c)
{
	if (c->su == NULL)
		return;
	sk_timer_stop(&t->wheel, &c->su->timer);
	if (c->link != NULL)
		c->link->startup_free(t, c);
	free(c->su);
	c->su = NULL;
}

static void
fill_peer(struct eng_transport *t, struct eng_conn *c, struct eng_ctl *m)
{
	const struct eng_startup *su = c->su;

	m->peer.listener = su->listener;
	m->peer.outcome = su->outcome;
	if (c->rides)
		c->link->ends(t, c, &m->peer.tuple, NULL);
	if (c->tcp == NULL)
		return;
	m->peer.tuple = *tcp_tuple(c->tcp);
	m->peer.emss = tcp_emss(c->tcp);
	m->peer.send_space = tcp_send_space(c->tcp);
	if (c->state != ECONN_BOUND)
		c->credit = m->peer.send_space;
}

static void
fill_lookup(struct eng_transport *t, const struct eng_conn *c, struct eng_ctl *m)
{
	const struct eng_startup *su = c->su;

	m->lookup.kind = su->outcome.kind;
	m->lookup.listener = su->listener;
	m->lookup.service = su->service;
	m->lookup.qpn = su->qpn;
	m->lookup.qkey = su->qkey;
	if (c->rides)
		c->link->ends(t, c, &m->lookup.tuple, NULL);
	else if (c->tcp != NULL)
		m->lookup.tuple = *tcp_tuple(c->tcp);
}

static void
fill_notice(struct eng_transport *t, struct eng_conn *c, struct eng_ctl *m)
{
	struct eng_startup *su = c->su;

	m->type = su->notice;
	m->from = m->transport = (uint8_t)t->index;
	m->status = c->error;
	m->conn = c->index;
	m->cookie = su->cookie;
	if (m->type == ENG_TC_FAILED) {
		if (c->link != NULL)
			c->link->retry(c, m);
		return;
	}
	if (m->type == ENG_TC_LOOKUP || m->type == ENG_TC_FOUND)
		fill_lookup(t, c, m);
	else
		fill_peer(t, c, m);
	m->private_len = su->private_len;
	memcpy(m->private_data, su->private_data, su->private_len);
}

bool
eng_startup_send_notice(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_ctl *m;

	if (t->nnotices == 0)
		return false;
	m = t->notices_free[--t->nnotices];
	memset(m, 0, offsetof(struct eng_ctl, private_data));
	fill_notice(t, c, m);
	if (eng_notice_is_final(m))
		c->notice_out = true;
	/* This cannot fail: the ring has a place for each message of the pool. */
	rte_ring_sp_enqueue(t->to_control, m);
	return true;
}

void
eng_startup_notice(struct eng_transport *t, struct eng_conn *c, uint16_t notice)
{
	c->su->notice = notice;
	sk_timer_stop(&t->wheel, &c->su->timer);
	if (c->tcp != NULL)
		tcp_settled(c->tcp);
	c->pending &= ~ECONN_P_NOTICE;
	if (!TAILQ_EMPTY(&t->unnoticed) || !eng_startup_send_notice(t, c))
		eng_conn_pend(t, c, ECONN_P_NOTICE);
}

void
eng_startup_closed(struct eng_transport *t, struct eng_conn *c)
{
	bool unknown = c->state == ECONN_WAITING ||
		       (c->state == ECONN_REQUESTED && (c->pending & ECONN_P_NOTICE));

	c->pending = 0;
	if (unknown) {
		c->state = ECONN_DRAIN;
		return;
	}
	c->state = ECONN_DEAD;
	eng_startup_notice(t, c, ENG_TC_FAILED);
}

void
eng_startup_fail(struct eng_transport *t, struct eng_conn *c, int error)
{
	if (c->error == 0)
		c->error = error;
	eng_conn_pend(t, c, ECONN_P_ABORT);
}

void
eng_startup_passive(struct eng_transport *t, struct tcp_conn *tcp)
{
	struct eng_listener *l = tcp_listener_user(tcp_conn_listener(tcp));
	struct eng_conn *c = eng_conn_alloc(t, ECONN_WAITING);
	const struct tcp_tuple *tuple = tcp_tuple(tcp);
	struct sk_addr src = tuple->laddr;

	if (c == NULL)
		return; /* all are in use: the TCP connection stays in the backlog */
	c->tcp = tcp;
	c->addr_sum = eng_addr_sum(tuple, IP_TCP);
	tcp_claim_early(tcp, c);
	if (!eng_conn_admit(t, c, l->user) ||
		net_path_init(t->net, &c->path, &src, &tuple->raddr, IP_TCP, t->now) != 0 ||
		eng_startup_create(c) != 0) {
		c->state = ECONN_DRAIN;
		eng_conn_pend(t, c, ECONN_P_ABORT);
		return;
	}
	eng_path_class(t, &c->path, tuple, &l->offer.class);
	eng_conn_use_path(t, c);
	c->su->listener = l->number;
	c->su->offer = l->offer;
	sk_timer_set(&t->wheel, &c->su->timer, t->now + ENG_REQUEST_TIMEOUT_NS);
}

void
eng_startup_connected(struct eng_transport *t, struct eng_conn *c)
{
	if (c->state != ECONN_OPENING && c->state != ECONN_CARRIER)
		return;
	eng_conn_use_path(t, c);
	c->link->connected(t, c);
}

/* Chooses the transport of a passive connection by the first bytes of its stream, and prepares the
 * exchange. Returns 0 or -errno. */
static int
choose_link(struct eng_transport *t, struct eng_conn *c, const struct tcp_slice *chain)
{
	unsigned k = ENG_KINDS - 1;

	while (k > 0 && !(t->part[k] != NULL && eng_links[k]->begins(t, chain)))
		k--;
	c->link = eng_links[k];
	return c->link->listen(t, c);
}

bool
eng_startup_deliver(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain)
{
	if (c->pending & ECONN_P_ABORT)
		return false;
	if (c->link == NULL && choose_link(t, c, chain) < 0) {
		eng_startup_fail(t, c, -ENOBUFS);
		return false;
	}
	return c->link->startup(t, c, chain);
}

static void
conn_startup_expired(void *ctx, struct sk_timer *timer, uint64_t now)
{
	struct eng_startup *su = SK_CONTAINER(timer, struct eng_startup, timer);

	if (su->conn->link != NULL)
		su->conn->link->expired(ctx, su->conn);
	else
		eng_startup_fail(ctx, su->conn, -ETIMEDOUT);
}

unsigned
eng_startup_poll(struct eng_transport *t, uint64_t now)
{
	return sk_wheel_poll(&t->wheel, now, TIMER_BUDGET, conn_startup_expired, t);
}

/* Fills in c->path, and the network of the tuple. Returns 0 or -errno. */
static int
conn_startup_path(struct eng_transport *t, struct eng_conn *c, struct tcp_tuple *tuple)
{
	struct wire_eth eth;
	int rc = net_path_init(t->net, &c->path, &tuple->laddr, &tuple->raddr, IP_TCP, t->now);

	if (rc != 0)
		return rc;
	wire_eth_parse(&eth, c->path.head, c->path.l2_len);
	tuple->vlan = eth.vlan;
	tuple->port = c->path.port;
	c->addr_sum = eng_addr_sum(tuple, IP_TCP);
	return 0;
}

static int
conn_startup_port(struct eng_transport *t, struct tcp_tuple *tuple)
{
	if (tuple->lport == 0) {
		tuple->lport = eng_lport_choose(t, tuple);
		return tuple->lport == 0 ? -EADDRNOTAVAIL : 0;
	}
	if (eng_home(t->e, tuple) != t->index)
		return -EXDEV;
	return eng_conn_find(t, tuple) == NULL ? 0 : -EADDRINUSE;
}

/* Prepares the exchange of an active connection, and opens its TCP connection. */
static int
connect_link(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *tuple,
	const struct eng_ctl *m)
{
	int rc = eng_startup_create(c);

	if (rc != 0)
		return rc;
	c->link = eng_links[m->connect.offer.kind];
	c->su->cookie = m->cookie;
	c->su->offer = m->connect.offer;
	rc = c->link->connect(t, c, tuple, m);
	if (rc != 0 || c->rides)
		return rc;
	eng_path_class(t, &c->path, tuple, &m->connect.offer.class);
	return tcp_connect(t->tcp, t->now, tuple, c->path.mtu, c, &c->tcp);
}

int
eng_startup_carrier(
	struct eng_transport *t, struct eng_conn *c, struct tcp_tuple *tuple, uint16_t user)
{
	static const struct net_class none;
	int rc = conn_startup_path(t, c, tuple);

	if (rc == 0)
		rc = conn_startup_port(t, tuple);
	if (rc == 0 && !eng_conn_admit(t, c, user))
		rc = -ENOBUFS;
	if (rc != 0)
		return rc;
	eng_path_class(t, &c->path, tuple, &none);
	return eng_startup_create(c);
}

int
eng_startup_connect(struct eng_transport *t, struct eng_ctl *m)
{
	struct eng_conn *c = eng_conn_alloc(t, ECONN_OPENING);
	struct tcp_tuple tuple = m->connect.tuple;
	int rc;

	if (c == NULL)
		return -ENOBUFS;
	rc = conn_startup_path(t, c, &tuple);
	if (rc == 0 && tuple.port < t->e->cfg.nports &&
		eng_device_is_removed(&t->e->ports[tuple.port].dev))
		rc = -ENETDOWN;
	if (rc == 0 && !eng_links[m->connect.offer.kind]->shares)
		rc = conn_startup_port(t, &tuple);
	if (rc == 0 && !eng_conn_admit(t, c, m->user))
		rc = -ENOBUFS;
	if (rc == -EXDEV)
		m->transport = (uint8_t)eng_home(t->e, &tuple);
	if (rc == 0)
		rc = connect_link(t, c, &tuple, m);
	if (rc != 0) {
		c->tcp = NULL;
		c->state = ECONN_DRAIN;
		if (c->link != NULL)
			c->link->closed(t, c);
		eng_conn_put(t, c);
		return rc;
	}
	m->conn = c->index;
	return 0;
}
