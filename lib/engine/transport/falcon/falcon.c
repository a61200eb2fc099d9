/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Falcon stack on a transport stage, and its connections. A CID is a keyed permutation of the
 * stage's and the connection's index: it reveals neither to the peer, and every stage can compute
 * which stage a packet belongs to.
 */
#include "falcon_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "../../../base/mem.h"
#include "../../../base/secret.h"

#define FALCON_BUDGET    256 /* most packets that a turn sends */
#define FALCON_BURST     64  /* packets that have the same time of departure */
#define BY_QPN_BACKLOG   1024
#define REPLAY_MARGIN_NS 10000000 /* above the delay of reordered packets in a data centre */

/* ---- The functions of struct fa_ops ---- */

static bool
op_deliver(void *ctx, struct fa_conn *conn, const struct fa_delivery *d)
{
	static const uint8_t types[] = {
		[FA_PUSH] = ENG_E_PUSH,
		[FA_PULL] = ENG_E_PULL,
		[FA_PULL_DATA] = ENG_E_PULL_DATA,
		[FA_COMPLETION] = ENG_E_COMPLETION,
	};
	struct eng_transport *t = ctx;
	struct eng_falcon_conn *fc = fa_conn_user(conn);
	uint64_t u = d->type == FA_COMPLETION
			     ? ENG_OUTCOME(d->completion, d->ulp_code) | ENG_MORE(d->more)
			     : (uintptr_t)d->buf | d->restart;

	/* Before the connection is bound, there is no QP to deliver to. */
	if (fc->c->state == ECONN_BOUND && fc->start == NULL &&
		eng_conn_send(t, fc->c, (enum eng_to_stage)types[d->type], u, d->rsn))
		return true;
	if (!fc->busy)
		TAILQ_INSERT_TAIL(&eng_falcon_of(t)->busy, fc, next);
	fc->busy = true;
	return false;
}

static void
op_buf_free(void *ctx, struct fa_buf *buf)
{
	eng_fbuf_free(buf);
}

static void
op_bufs_free(void *ctx, struct fa_buf *chain)
{
	eng_fbufs_free(chain);
}

/* Handles events. Xoff and Xon need no action, because credits limit the requests that the engine
 * stages start. */
static void
op_event(void *ctx, struct fa_conn *conn, enum fa_event ev)
{
	struct eng_falcon_conn *fc = conn == NULL ? NULL : fa_conn_user(conn);

	if (ev != FA_EV_DEAD)
		return;
	eng_falcon_fail(ctx, fc->c, ROFX_TIMEOUT, -ETIMEDOUT);
}

static void
op_trace(void *ctx, struct fa_conn *conn, unsigned reason)
{
	struct eng_falcon_conn *fc = fa_conn_user(conn);
	struct fa_info info;

	if (fc == NULL)
		return;
	fa_get_info(conn, &info);
	eng_flight_note(ctx, fc->c, &fa_reasons, reason,
		&(struct eng_event){.srtt_ns = info.rtt_ns,
			.rto_ns = info.rto_ns,
			.window = info.fcwnd_milli / 1000,
			.in_flight = info.request_outstanding + info.data_outstanding});
}

/* Sends ENG_E_OPEN, with the parameters of the QP, to the engine stage of a bound connection.
 * Returns false when the ring is full. */
static bool
send_open(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_start *start;

	if (c->part == NULL || eng_falcon_conn_of(c)->start == NULL)
		return true;
	start = eng_falcon_conn_of(c)->start;
	if (!eng_conn_send(t, c, ENG_E_OPEN, (uintptr_t)start, 0))
		return false;
	eng_falcon_conn_of(c)->start = NULL;
	return true;
}

/* ---- The stack ---- */

static int
falcon_link_create(struct eng_transport *t, uint64_t now)
{
	const struct fa_ops ops = {.output = eng_falcon_output,
		.deliver = op_deliver,
		.buf_free = op_buf_free,
		.bufs_free = op_bufs_free,
		.event = op_event,
		.trace = op_trace};
	const struct eng_limits *l = &t->e->cfg.limits;
	struct fa_config cfg = t->e->cfg.falcon.stack;
	struct eng_falcon *f;

	if (!t->e->cfg.falcon.enabled)
		return 0;
	f = sk_mem_alloc(sizeof(*f));
	if (f == NULL)
		return -ENOMEM;
	t->part[ENG_FALCON] = f;
	f->general = cfg.general;
	cfg.runs = !cfg.general;
	cfg.shares = (struct fa_shares){.users = l->clients + 1,
		.reserved = l->users + 1,
		.minimum = (uint8_t)l->user_min,
		.most = (uint8_t)l->user_most};
	f->algorithm = *fa_algorithm_find(t->e->cfg.falcon.cc);
	f->algorithm.param = &t->e->cfg.falcon.rue;
	TAILQ_INIT(&f->free);
	TAILQ_INIT(&f->busy);
	TAILQ_INIT(&f->waiting);
	TAILQ_INIT(&f->behind);
	f->index = t->index;
	eng_falcon_hosts_init(f, now);
	f->tls_from = SK_NEVER;
	sk_random(&cfg.seed, sizeof(cfg.seed));
	f->device = sk_secret_alloc(sizeof(*f->device));
	if (f->device == NULL)
		return -ENOMEM;
	psp_device_init(f->device);
	f->device->match_cookie = t->e->cfg.falcon.pcid;
	eng_falcon_keys_init(t, now);
	eng_falcon_known_init(f);
	f->nconns = cfg.max_conns;
	f->conns = sk_mem_alloc(f->nconns * sizeof(f->conns[0]));
	f->crypto = psp_crypto_create();
	if (f->conns == NULL || f->crypto == NULL)
		return -ENOMEM;
	f->fa = fa_stack_create(&cfg, &ops, t, now);
	return f->fa == NULL ? -EINVAL : 0;
}

static void
falcon_link_destroy(struct eng_transport *t)
{
	struct eng_falcon *f = eng_falcon_of(t);

	for (uint32_t i = 0; i < f->fresh; i++)
		if (f->conns[i].c != NULL)
			eng_falcon_close(t, &f->conns[i]);
	for (uint32_t i = 0; i < t->fresh; i++)
		if (t->conns[i].state == ECONN_CARRIER)
			eng_falcon_carrier_free(t, t->conns[i].part, -ECONNABORTED);
	eng_falcon_hosts_free(f);
	if (f->fa != NULL)
		fa_stack_destroy(f->fa);
	if (f->crypto != NULL)
		psp_crypto_destroy(f->crypto);
	sk_secret_free(f->device, sizeof(*f->device));
	sk_mem_free(f->conns, f->nconns * sizeof(f->conns[0]));
	sk_mem_free(f, sizeof(*f));
	t->part[ENG_FALCON] = NULL;
}

/* Resumes the deliveries for which the ring of an engine stage was full. */
static bool
falcon_link_offer_again(struct eng_falcon *f, uint64_t now)
{
	struct eng_falcon_conn *fc, *last = TAILQ_LAST(&f->busy, eng_falcon_conns);

	while (last != NULL) {
		fc = TAILQ_FIRST(&f->busy);
		TAILQ_REMOVE(&f->busy, fc, next);
		fc->busy = false;
		fa_deliver_resume(fc->fa, now);
		if (fc == last)
			break;
	}
	return last != NULL;
}

static void
falcon_link_stopped(struct eng_transport *t, uint64_t gap)
{
	fa_stack_stopped(eng_falcon_of(t)->fa, gap);
}

static void
falcon_link_scarce(struct eng_transport *t, bool scarce)
{
	fa_stack_scarce(eng_falcon_of(t)->fa, scarce);
}

static void
falcon_link_timers(struct eng_transport *t, uint64_t now)
{
	struct eng_falcon *f = eng_falcon_of(t);

	if (f->tls_from != SK_NEVER)
		eng_falcon_turn_over(f, now);
	fa_stack_backlog(f->fa, now - t->empty_at);
	if (now < f->due)
		return;
	fa_stack_timers(f->fa, now);
	eng_falcon_keys_poll(t, now);
	f->due = SK_MIN(fa_stack_deadline(f->fa), f->keys_due);
	f->work = true;
}

/* Sends packets. Each burst leaves, with the time at which it does, before the next one is made. A
 * time of the beginning of the turn would count the rest of the turn as delay of the network. While
 * frames wait in the port, most of them acknowledgements, a turn sends one burst: if it sent more
 * than it receives, they would wait until the peer resends what they acknowledge. */
static unsigned
falcon_link_send(struct eng_transport *t, struct eng_falcon *f)
{
	unsigned n = 0, sent;

	do {
		if (n > 0)
			eng_tx_flush(t);
		t->now = t->e->clock();
		sent = fa_stack_send(f->fa, t->now, FALCON_BURST);
		if (f->seals.n > 0)
			eng_falcon_seal(t);
		n += sent;
	} while (sent == FALCON_BURST && n < (t->left ? FALCON_BURST : FALCON_BUDGET));
	t->unsent |= fa_stack_ready(f->fa);
	return n;
}

static bool
falcon_link_poll(struct eng_transport *t, uint64_t now)
{
	struct eng_falcon *f = eng_falcon_of(t);
	bool turn = !TAILQ_EMPTY(&f->waiting) && eng_falcon_turn(t, now);
	unsigned n;

	turn |= eng_falcon_frames_turn(t);
	if (!TAILQ_EMPTY(&f->turns) || now >= f->hosts_due)
		turn |= eng_falcon_hosts_poll(t, now);
	if (!TAILQ_EMPTY(&f->busy))
		f->work |= falcon_link_offer_again(f, now);
	if (!f->work)
		return turn;
	f->work = false; /* eng_falcon_output() sets it when the port accepts no more */
	f->checked = NULL;
	n = falcon_link_send(t, f);
	f->due = SK_MIN(fa_stack_deadline(f->fa), f->keys_due);
	return n > 0 || turn;
}

static uint64_t
falcon_link_deadline(const struct eng_transport *t)
{
	const struct eng_falcon *f = eng_falcon_of(t);

	uint64_t due = SK_MIN(f->due, f->hosts_due);

	if (f->work || !TAILQ_EMPTY(&f->busy) || !TAILQ_EMPTY(&f->turns) ||
		!TAILQ_EMPTY(&f->behind) || f->tls_from != SK_NEVER)
		return 0;
	return TAILQ_EMPTY(&f->waiting) ? due : SK_MIN(due, f->tls_at);
}

static const uint64_t *
falcon_link_counters(const struct eng_transport *t, const struct sk_reason_list *list)
{
	const struct eng_falcon *f = eng_falcon_of(t);

	if (list == &fa_reasons)
		return fa_stack_counters(f->fa);
	if (list == &rofx_reasons)
		return f->rofx_counters;
	return list == &psp_reasons ? f->psp_counters : NULL;
}

void
eng_transport_falcon(const struct eng_transport *t, uint64_t now, struct eng_falcon_view *out)
{
	const struct eng_falcon *f = eng_falcon_of(t);
	uint64_t age;

	if (f == NULL)
		return;
	age = now - __atomic_load_n(&f->key_since, __ATOMIC_RELAXED);
	out->most += f->nconns;
	out->reserved += __atomic_load_n(&f->nreserved, __ATOMIC_RELAXED);
	out->starting += __atomic_load_n(&f->nstarting, __ATOMIC_RELAXED);
	out->waiting += __atomic_load_n(&f->nwaiting, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < SK_ARRAY_LEN(f->nopen); i++)
		out->open[i] += __atomic_load_n(&f->nopen[i], __ATOMIC_RELAXED);
	out->device_key_age_ns = SK_MAX(out->device_key_age_ns, age);
	out->rekeyed += __atomic_load_n(&t->counters[ENG_FALCON_REKEYED], __ATOMIC_RELAXED);
}

/* ---- Connections ---- */

unsigned
eng_falcon_stage(const struct eng *e, uint32_t cid, uint32_t *slot)
{
	uint32_t v = sk_perm24_inv(&e->cid_key, cid);

	*slot = v / e->cfg.ntransports;
	return v % e->cfg.ntransports;
}

struct eng_falcon_conn *
eng_falcon_reserve(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_falcon_conn *fc = TAILQ_FIRST(&f->free);
	uint32_t slot;

	if (fc != NULL) {
		TAILQ_REMOVE(&f->free, fc, next);
		slot = fc->slot;
	} else if (f->fresh < f->nconns) {
		slot = f->fresh++;
		fc = &f->conns[slot];
	} else {
		return NULL;
	}
	*fc = (struct eng_falcon_conn){
		.c = c, .slot = slot, .use = fc->use == UINT8_MAX ? 1 : (uint8_t)(fc->use + 1)};
	eng_falcon_add(&f->nreserved, 1);
	fc->cid = sk_perm24(&t->e->cid_key, slot * t->e->cfg.ntransports + t->index);
	return fc;
}

static int
open_psp(struct eng_falcon *f, struct eng_falcon_conn *fc, const struct eng_falcon_open *o)
{
	uint8_t key[PSP_KEY_MAX] = {0};

	if (f->device->generation - fc->generation > 1) /* the device key of rx_spi is gone */
		return -ESTALE;
	if (o->psp != PSP_NO_CRYPTO)
		psp_derive_key(
			f->crypto, key, psp_device_key(f->device, o->rx_spi), o->rx_spi, o->psp);
	fc->rx_sa = psp_sa_create(f->crypto, o->psp, o->rx_spi, key);
	fc->tx_sa = psp_sa_create(f->crypto, o->psp, o->tx_spi, o->tx_key);
	explicit_bzero(key, sizeof(key));
	psp_rx_init(&fc->accept, f->device, o->rx_spi, psp_rx_margin(REPLAY_MARGIN_NS));
	fc->accept.generation = fc->generation;
	fc->accept.cookie = o->rx_cookie;
	fc->tx_psp.version = o->psp;
	fc->tx_psp.spi = o->tx_spi;
	fc->accept.bounded = o->psp == PSP_NO_CRYPTO;
	return fc->rx_sa == NULL || fc->tx_sa == NULL ? -ENOMEM : 0;
}

static void
close_psp(struct eng_falcon_conn *fc)
{
	if (fc->tx_sa != NULL)
		psp_sa_destroy(fc->tx_sa);
	if (fc->rx_sa != NULL)
		psp_sa_destroy(fc->rx_sa);
	fc->tx_sa = fc->rx_sa = NULL;
	eng_falcon_tunnel_close(fc);
}

int
eng_falcon_open(
	struct eng_transport *t, struct eng_falcon_conn *fc, const struct eng_falcon_open *o)
{
	struct fa_params p = o->fa;
	int rc = eng_falcon_tunnel_open(t, fc, o);

	if (rc == 0)
		rc = open_psp(eng_falcon_of(t), fc, o);
	p.cid = fc->cid;
	p.user = fc;
	p.algorithm = &eng_falcon_of(t)->algorithm;
	if (rc == 0)
		rc = fa_conn_create(eng_falcon_of(t)->fa, t->now, &p, &fc->fa);
	if (rc < 0) {
		close_psp(fc);
		return rc;
	}
	fa_conn_share(fc->fa, fc->out.user);
	if (o->class.flow != 0)
		fa_conn_path(fc->fa, o->class.flow);
	eng_falcon_keys_start(t, fc);
	eng_falcon_expect(t, fc);
	eng_falcon_add(&eng_falcon_of(t)->nopen[o->psp], 1);
	return 0;
}

void
eng_falcon_close(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	struct eng_falcon *f = eng_falcon_of(t);

	if (fc->busy)
		TAILQ_REMOVE(&f->busy, fc, next);
	eng_falcon_keys_stop(t, fc);
	eng_falcon_add(&f->nreserved, -1);
	if (fc->fa != NULL) {
		eng_falcon_add(&f->nopen[psp_sa_version(fc->rx_sa)], -1);
		fa_conn_destroy(fc->fa);
	}
	close_psp(fc);
	eng_falcon_leave(f, fc);
	free(fc->start);
	free(fc->paths);
	*fc = (struct eng_falcon_conn){.slot = fc->slot, .use = fc->use};
	/* At the tail, so that the CID is not used again soon. */
	TAILQ_INSERT_TAIL(&f->free, fc, next);
}

static void
falcon_link_look(const struct eng_transport *t, const struct eng_conn *c, struct eng_qp_view *view)
{
	const struct eng_falcon_conn *fc = eng_falcon_conn_of(c);

	if (fc == NULL || fc->fa == NULL)
		return;
	view->class = fc->path.class;
	view->falcon = (struct eng_falcon_qp_view){.open = true,
		.psp = psp_sa_version(fc->rx_sa),
		.spi = psp_sa_spi(fc->rx_sa),
		.key_age_ns = t->now - fc->key_since,
		.tunnel = fc->tunnel != NULL};
	fa_get_info(fc->fa, &view->falcon.info);
}

/* Submits a chain of requests. */
static void
falcon_link_requests(struct eng_transport *t, struct eng_falcon_conn *fc, struct fa_buf *buf)
{
	while (buf != NULL) {
		struct fa_buf *next = buf->next;

		buf->next = NULL;
		fa_request(fc->fa, t->now, buf);
		buf = next;
	}
}

static void
falcon_link_message(struct eng_transport *t, struct eng_conn *c, const struct eng_dmsg *m)
{
	struct eng_falcon_conn *fc = eng_falcon_conn_of(c);
	struct fa_buf *buf = (struct fa_buf *)(uintptr_t)m->u;
	uint32_t type = m->id_type & 15;
	struct fa_outcome o;

	if (fc == NULL || fc->fa == NULL || type < ENG_T_REQUEST) {
		eng_conn_drop(m);
		return;
	}
	eng_falcon_of(t)->work = true;
	if (type == ENG_T_REQUEST) {
		falcon_link_requests(t, fc, buf);
		return;
	}
	o = (struct fa_outcome){.rsn = m->arg};
	switch (type) {
	case ENG_T_ANSWER:
		fa_answer(fc->fa, t->now, m->arg, buf);
		break;
	case ENG_T_DATA:
		fa_pull_data(fc->fa, t->now, m->arg, buf);
		break;
	case ENG_T_OUTCOME:
		o.verdict = (uint8_t)m->u;
		o.ulp_code = (uint8_t)(m->u >> 8);
		o.more = (uint16_t)(m->u >> 16);
		o.rnr = (uint8_t)(m->u >> 32);
		fa_outcome(fc->fa, t->now, &o);
		break;
	case ENG_T_RNR:
		o.verdict = FA_RNR;
		o.rnr = ((struct eng_fbuf *)buf)->rnr;
		o.buf = buf;
		fa_outcome(fc->fa, t->now, &o);
		break;
	}
}

static void
falcon_link_drop(const struct eng_dmsg *m)
{
	struct fa_buf *next;

	switch (m->id_type & 15) {
	case ENG_T_REQUEST:
	case ENG_T_ANSWER:
		for (struct fa_buf *b = (struct fa_buf *)(uintptr_t)m->u; b != NULL; b = next) {
			next = b->next;
			eng_fbuf_free(b);
		}
		break;
	case ENG_T_DATA:
	case ENG_T_RNR:
		if (m->u != 0)
			eng_fbuf_free((struct fa_buf *)(uintptr_t)m->u);
		break;
	}
}

/* ---- Functions of eng_link_falcon ---- */

/* Adds the listener for connect requests that name a QP by its QPN. */
static int
falcon_link_start(struct eng_transport *t)
{
	const struct eng_ctl m = {.listen = {.number = ENG_LISTENER_BY_QPN,
					  .port = t->e->cfg.falcon.port,
					  .backlog = BY_QPN_BACKLOG}};

	return eng_transport_listen(t, &m);
}

static void
falcon_link_bound(struct eng_transport *t, struct eng_conn *c)
{
	eng_conn_pend(t, c, ECONN_P_OPEN | ECONN_P_RESUME);
}

/* Frees the state of the start-up, which ends when the peer has confirmed the terms. */
static bool
falcon_link_resume(struct eng_transport *t, struct eng_conn *c)
{
	if (c->part != NULL && eng_falcon_conn_of(c)->fa != NULL)
		eng_startup_free(t, c);
	return true;
}

static void
falcon_link_ahead(const struct eng_conn *c)
{
	if (c->state != ECONN_CARRIER)
		sk_prefetch(eng_falcon_conn_of(c)->fa, 8);
}

/* A carrier's queue has more room. */
static void
falcon_link_sent(struct eng_transport *t, struct eng_conn *c)
{
	const struct eng_falcon_carrier *k = eng_falcon_carrier_of(c);

	if (k->host->filled != 0)
		eng_falcon_host_wake(eng_falcon_of(t), k->host);
}

static void
falcon_link_no_news(struct eng_transport *t, struct eng_conn *c)
{
}

static void
falcon_link_pending_first(struct eng_transport *t, struct eng_conn *c)
{
	if (!(c->pending & ECONN_P_FAIL))
		return;
	c->pending &= ~ECONN_P_FAIL;
	if (c->rides)
		eng_falcon_failed(t, c);
}

static void
falcon_link_pending(struct eng_transport *t, struct eng_conn *c)
{
	if ((c->pending & ECONN_P_OPEN) && send_open(t, c))
		c->pending &= ~ECONN_P_OPEN;
}

static void
falcon_link_abort(struct eng_transport *t, struct eng_conn *c)
{
	eng_falcon_fail(t, c, ROFX_REFUSED, -ECONNABORTED);
}

static void
falcon_link_connected(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_carrier *k = eng_falcon_carrier_of(c);

	k->connected = true;
	if (eng_falcon_may(eng_falcon_of(t), k, true))
		eng_falcon_carrier_begin(t, k);
}

static void
falcon_link_expired(struct eng_transport *t, struct eng_conn *c)
{
	if (c->state == ECONN_CARRIER)
		eng_falcon_carrier_expired(t, eng_falcon_carrier_of(c));
	else if (c->rides)
		eng_falcon_expired(t, c);
}

/* The exchange of Falcon has no reduced form, so there is no second attempt. */
static void
falcon_link_retry(const struct eng_conn *c, struct eng_ctl *m)
{
}

static void
falcon_link_startup_free(struct eng_transport *t, struct eng_conn *c)
{
}

static void
falcon_link_closed(struct eng_transport *t, struct eng_conn *c)
{
	if (c->state == ECONN_CARRIER)
		eng_falcon_carrier_ended(t, eng_falcon_carrier_of(c));
	else if (c->rides)
		eng_falcon_release(t, c);
}

/* Ends a start-up that something outside of the exchange has failed: the peer would wait. */
static void
falcon_link_break_off(struct eng_transport *t, struct eng_conn *c)
{
	if (c->error != 0 && eng_falcon_conn_of(c)->why == ROFX_NONE)
		eng_falcon_conn_of(c)->why = ROFX_NO_RESOURCE;
	eng_falcon_failed(t, c);
}

const struct eng_link eng_link_falcon = {
	.create = falcon_link_create,
	.start = falcon_link_start,
	.destroy = falcon_link_destroy,
	.counters = falcon_link_counters,
	.stopped = falcon_link_stopped,
	.scarce = falcon_link_scarce,
	.timers = falcon_link_timers,
	.poll = falcon_link_poll,
	.deadline = falcon_link_deadline,
	.rx = eng_falcon_rx,
	.rx_known = eng_falcon_rx_known,
	.udp_port = PSP_UDP_PORT,
	.begins = eng_falcon_begins,
	.shares = true,
	.listen = eng_falcon_carrier_listen,
	.connect = eng_falcon_connect,
	.connected = falcon_link_connected,
	.startup = eng_falcon_carrier_deliver,
	.accept = eng_falcon_accept,
	.reject = eng_falcon_reject,
	.found = eng_falcon_found,
	.self = eng_falcon_self,
	.expired = falcon_link_expired,
	.retry = falcon_link_retry,
	.abandon = eng_falcon_abandon,
	.startup_free = falcon_link_startup_free,
	.bound = falcon_link_bound,
	.deliver = eng_falcon_carrier_deliver,
	.resume = falcon_link_resume,
	.ahead = falcon_link_ahead,
	.sent = falcon_link_sent,
	.emss = falcon_link_no_news,
	.message = falcon_link_message,
	.close = eng_falcon_finish,
	.abort = falcon_link_abort,
	.pending_first = falcon_link_pending_first,
	.pending = falcon_link_pending,
	.break_off = falcon_link_break_off,
	.ends = eng_falcon_ends,
	.peer_fin = eng_falcon_carrier_fin,
	.closed = falcon_link_closed,
	.look = falcon_link_look,
	.drop = falcon_link_drop,
};
