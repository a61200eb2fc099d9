/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a TCP connection to one that carries FPDUs: MPA's exchange of a request and a reply (RFC
 * 5044 7.1), and what the control stage is told about it. What this needs is allocated for the time
 * of the start-up only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>

#include "../../base/mem.h"
#include "falcon/falcon_priv.h"
#include "handoff_priv.h"

#define TIMER_BUDGET 32

struct eng_startup *
eng_startup_create(struct eng_transport *t, struct eng_conn *c)
{
	c->su = calloc(1, sizeof(*c->su));
	if (c->su != NULL) {
		c->su->conn = c;
		t->nstartups++;
	}
	return c->su;
}

void
eng_startup_free(struct eng_transport *t, struct eng_conn *c)
{
	if (c->su == NULL)
		return;
	sk_timer_stop(&t->wheel, &c->su->timer);
	eng_slice_free(c->su->held);
	free(c->su);
	c->su = NULL;
	t->nstartups--;
}

/* The peer closed without a word: so do those that do not know enhanced requests (RFC 6581 10). */
static void
fill_again(const struct eng_conn *c, struct eng_ctl *m)
{
	const struct eng_startup *su = c->su;

	m->fall_back = su->fall_back && c->error == -ECONNRESET && su->mpa.initiator &&
		       mpa_fall_back(&su->mpa, &m->offer);
	if (!m->fall_back)
		return;
	m->tuple = su->asked;
	m->private_len = su->private_len;
	memcpy(m->private_data, su->private_data, su->private_len);
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
	m->listener = su->listener;
	m->mpa = su->mpa.result;
	m->falcon = su->falcon;
	m->ask = su->ask;
	if (m->type == ENG_TC_FAILED)
		fill_again(c, m);
	if (c->tcp == NULL)
		return;
	m->tuple = *tcp_tuple(c->tcp);
	m->params.initiator = su->mpa.initiator;
	m->params.emss = tcp_emss(c->tcp);
	m->params.send_space = tcp_send_space(c->tcp);
	if (c->state != ECONN_BOUND)
		c->credit = m->params.send_space;
}

bool
eng_startup_say(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_ctl *m;

	if (t->nunasked == 0)
		return false;
	m = t->unasked_free[--t->nunasked];
	memset(m, 0, sizeof(*m));
	fill_notice(t, c, m);
	if (m->type == ENG_TC_FAILED || m->type == ENG_TC_REJECTED)
		c->notice_out = true;
	/* The ring has a place for each message that there is. */
	rte_ring_sp_enqueue(t->to_control, m);
	return true;
}

void
eng_startup_notice(struct eng_transport *t, struct eng_conn *c, uint16_t notice)
{
	c->su->notice = notice;
	sk_timer_stop(&t->wheel, &c->su->timer);
	c->pending &= ~ECONN_P_NOTICE;
	if (!eng_startup_say(t, c))
		eng_conn_pend(t, c, ECONN_P_NOTICE);
}

void
eng_startup_closed(struct eng_transport *t, struct eng_conn *c)
{
	bool unsaid = c->state == ECONN_WAITING ||
		      (c->state == ECONN_REQUESTED && (c->pending & ECONN_P_NOTICE));

	c->pending = 0;
	if (unsaid) {
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

/* Sends a start-up frame of `n` bytes that stands in `rec`; a negative `n` is the reason why there
 * is none. */
static int
send_frame(struct eng_transport *t, struct eng_conn *c, struct tcp_rec *rec, int n)
{
	if (n < 0) {
		eng_rec_free(rec);
		return n;
	}
	rec->len = (uint32_t)n;
	t->tcp_work = true;
	return tcp_send(c->tcp, rec);
}

int
eng_startup_reply(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m, bool accept)
{
	struct tcp_rec *rec;

	if (c->falcon != NULL)
		return eng_falcon_reply(t, c, m, accept);
	rec = eng_rec_alloc(t->tx_pool);
	if (rec == NULL)
		return -ENOMEM;
	if (accept)
		mpa_startup_choose(&c->su->mpa, &m->offer);
	return send_frame(t, c, rec,
		mpa_reply_emit(&c->su->mpa, rec->data, accept, m->offer.ird, m->offer.ord,
			m->private_data, m->private_len));
}

/* A peer that agreed on a ready-to-receive message sends it: it is always waited for. */
void
eng_startup_hold(struct eng_transport *t, struct eng_conn *c)
{
	uint64_t most = t->e->cfg.mpa_first_fpdu_ns;

	if (most == 0 || c->su->mpa.result.rtr != MPA_RTR_NONE)
		return;
	c->su->holds = true;
	sk_timer_set(&t->wheel, &c->su->timer, t->now + most);
}

static void
conn_startup_established(struct eng_transport *t, struct eng_conn *c)
{
	uint64_t delay = t->e->cfg.mpa_first_fpdu_delay_ns;

	c->state = ECONN_ESTABLISHED;
	c->su->holds = delay > 0;
	if (c->su->holds)
		sk_timer_set(&t->wheel, &c->su->timer, t->now + delay);
	else
		eng_startup_notice(t, c, ENG_TC_ESTABLISHED);
}

/* Of the responder: an FPDU before the reply, or with it, might be taken for a part of it: the
 * peer's TCP must have the reply first. */
static void
hold_ends(struct eng_transport *t, struct eng_conn *c)
{
	bool passive = !c->su->mpa.initiator;

	if (passive && c->tcp != NULL && !tcp_all_acked(c->tcp)) {
		eng_startup_hold(t, c);
		return;
	}
	c->su->holds = false;
	if (c->state == ECONN_ESTABLISHED)
		eng_startup_notice(t, c, ENG_TC_ESTABLISHED);
	else if (passive && c->state == ECONN_BOUND && c->tcp != NULL)
		eng_conn_pend(t, c, ECONN_P_SPEAK);
}

void
eng_startup_terminate(struct eng_transport *t, struct eng_conn *c)
{
	struct tcp_rec *rec = eng_rec_alloc(t->tx_pool);
	int n = rec != NULL ? (int)mpa_terminate_emit(&c->su->mpa, rec->data) : 0;
	bool said = n > 0 && send_frame(t, c, rec, n) == 0;

	if (n == 0 && rec != NULL)
		eng_rec_free(rec);
	eng_conn_pend(t, c, said ? ECONN_P_CLOSE : ECONN_P_ABORT);
}

/* What the application is told of it. */
static int
conn_startup_error_of(enum mpa_reason why)
{
	switch (why) {
	case MPA_NO_IRD:
		return -ENOBUFS;
	case MPA_NO_RTR:
		return -EOPNOTSUPP;
	default:
		return -EPROTO;
	}
}

/* The peer has said something wrong: no answer of ours can mend it (RFC 6581 8). */
static void
conn_startup_refuse(struct eng_transport *t, struct eng_conn *c)
{
	enum mpa_reason why = c->su->mpa.why;

	sk_count(t->mpa_counters, why);
	if (!c->su->mpa.accepted) {
		eng_startup_fail(t, c, conn_startup_error_of(why));
		return;
	}
	c->error = conn_startup_error_of(why);
	c->state = ECONN_DEAD;
	eng_startup_notice(t, c, ENG_TC_FAILED);
	eng_startup_terminate(t, c);
}

static void
use_offloads(struct eng_transport *t, struct eng_conn *c)
{
	if (c->path.port < t->e->cfg.nports)
		tcp_set_tso(c->tcp, t->e->ports[c->path.port].tso);
}

void
eng_startup_passive(struct eng_transport *t, struct tcp_conn *tcp)
{
	struct eng_listener *l = tcp_listener_user(tcp_conn_listener(tcp));
	struct eng_conn *c = eng_conn_alloc(t, ECONN_WAITING);
	const struct tcp_tuple *tuple = tcp_tuple(tcp);
	struct sk_addr src = tuple->laddr;

	if (c == NULL)
		return; /* there are as many as TCP can have: it stays in the backlog */
	c->tcp = tcp;
	c->addr_sum = eng_addr_sum(tuple, IP_TCP);
	tcp_claim(tcp, c);
	if (net_path_init(t->net, &c->path, &src, &tuple->raddr, IP_TCP, t->now) != 0 ||
		eng_startup_create(t, c) == NULL) {
		c->state = ECONN_DRAIN;
		eng_conn_pend(t, c, ECONN_P_ABORT);
		return;
	}
	use_offloads(t, c);
	c->su->listener = l->number;
	mpa_startup_init(&c->su->mpa, false, &l->offer);
	sk_timer_set(&t->wheel, &c->su->timer, t->now + ENG_REQUEST_TIMEOUT_NS);
}

void
eng_startup_connected(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_startup *su = c->su;
	struct tcp_rec *rec;

	if (c->state != ECONN_OPENING)
		return;
	use_offloads(t, c);
	if (c->falcon != NULL) {
		eng_falcon_connected(t, c);
		return;
	}
	rec = eng_rec_alloc(t->tx_pool);
	if (rec == NULL || send_frame(t, c, rec,
				   mpa_request_emit(&su->mpa, rec->data, su->private_data,
					   su->private_len)) != 0)
		eng_startup_fail(t, c, -ENOMEM);
	sk_timer_set(&t->wheel, &su->timer, t->now + ENG_REPLY_TIMEOUT_NS);
}

/* The exchange has come a step further. */
static void
conn_startup_advance(struct eng_transport *t, struct eng_conn *c)
{
	switch (c->su->mpa.state) {
	case MPA_REQUESTED:
		c->state = ECONN_REQUESTED;
		eng_startup_notice(t, c, ENG_TC_REQUEST);
		break;
	case MPA_ACCEPTED:
		conn_startup_established(t, c);
		break;
	case MPA_REFUSED:
		c->state = ECONN_DEAD;
		eng_startup_notice(t, c, ENG_TC_REJECTED);
		eng_conn_pend(t, c, ECONN_P_CLOSE);
		break;
	default:
		break;
	}
}

bool
eng_startup_deliver(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain)
{
	struct mpa_startup *mpa = &c->su->mpa;

	if (c->pending & ECONN_P_ABORT)
		return false;
	/* The first byte tells the two exchanges apart. */
	if (c->state == ECONN_WAITING && c->falcon == NULL && mpa->have == 0 &&
		eng_falcon_begins(t, chain)) {
		c->su->falcon = true;
		if (eng_falcon_listen(t, c) < 0) {
			eng_startup_fail(t, c, -ENOBUFS);
			return false;
		}
	}
	if (c->falcon != NULL)
		return eng_falcon_deliver(t, c, chain);
	while (chain != NULL) {
		int n = mpa_startup_input(mpa, chain->data, chain->len);
		struct tcp_slice *next = chain->next;

		if (n < 0) {
			conn_startup_refuse(t, c);
			break;
		}
		tcp_consumed(c->tcp, (uint32_t)n);
		chain->data += n;
		chain->len -= (uint32_t)n;
		/* Behind a reply FPDUs may stand, behind a request nothing (RFC 5044 7.1.2). */
		if (chain->len > 0 && mpa->initiator)
			break;
		if (chain->len > 0)
			continue;
		chain->next = NULL;
		eng_slice_free(chain);
		chain = next;
	}
	c->su->held = chain; /* FPDUs already, or bytes of a stream that ends */
	conn_startup_advance(t, c);
	return true;
}

static void
conn_startup_fire(void *ctx, struct sk_timer *timer, uint64_t now)
{
	struct eng_startup *su = SK_CONTAINER(timer, struct eng_startup, timer);

	(void)now;
	if (su->conn->falcon != NULL)
		eng_falcon_expired(ctx, su->conn);
	else if (su->holds)
		hold_ends(ctx, su->conn);
	else
		eng_startup_fail(ctx, su->conn, -ETIMEDOUT);
}

unsigned
eng_startup_poll(struct eng_transport *t, uint64_t now)
{
	return sk_wheel_poll(&t->wheel, now, TIMER_BUDGET, conn_startup_fire, t);
}

static int
choose_tuple(struct eng_transport *t, struct eng_conn *c, struct tcp_tuple *tuple)
{
	struct wire_eth eth;
	int rc = net_path_init(t->net, &c->path, &tuple->laddr, &tuple->raddr, IP_TCP, t->now);

	if (rc != 0)
		return rc;
	wire_eth_parse(&eth, c->path.head, c->path.l2_len);
	tuple->vlan = eth.vlan;
	tuple->port = c->path.port;
	c->addr_sum = eng_addr_sum(tuple, IP_TCP);
	if (tuple->lport == 0) {
		tuple->lport = eng_lport_choose(t, tuple);
		return tuple->lport == 0 ? -EADDRNOTAVAIL : 0;
	}
	if (eng_home(t->e, tuple) != t->index)
		return -EXDEV;
	return eng_conn_find(t, tuple) == NULL ? 0 : -EADDRINUSE;
}

int
eng_startup_connect(struct eng_transport *t, struct eng_ctl *m, struct eng_conn **out)
{
	struct eng_conn *c = eng_conn_alloc(t, ECONN_OPENING);
	struct tcp_tuple tuple = m->tuple;
	int rc;

	if (c == NULL)
		return -ENOBUFS;
	rc = choose_tuple(t, c, &tuple);
	if (rc == -EXDEV)
		m->transport = (uint8_t)eng_home(t->e, &tuple);
	if (rc == 0 && (m->private_len > sizeof(c->su->private_data) ||
			       m->private_len > mpa_private_max(m->offer.revision)))
		rc = -EMSGSIZE;
	if (rc == 0 && eng_startup_create(t, c) == NULL)
		rc = -ENOMEM;
	if (rc == 0 && m->ask.falcon) {
		c->su->falcon = true;
		rc = eng_falcon_connect(t, c, &tuple, m);
	}
	if (rc == 0)
		rc = tcp_connect(t->tcp, t->now, &tuple, c->path.mtu, c, &c->tcp);
	if (rc != 0) {
		c->tcp = NULL;
		c->state = ECONN_DRAIN;
		if (c->falcon != NULL)
			eng_falcon_close(t, c->falcon);
		c->falcon = NULL;
		eng_conn_put(t, c);
		return rc;
	}
	t->tcp_work = true;
	c->su->cookie = m->cookie;
	c->su->fall_back = m->fall_back;
	c->su->asked = m->tuple;
	c->su->private_len = m->private_len;
	memcpy(c->su->private_data, m->private_data, m->private_len);
	mpa_startup_init(&c->su->mpa, true, &m->offer);
	*out = c;
	return 0;
}
