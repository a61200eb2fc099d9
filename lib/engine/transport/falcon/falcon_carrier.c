/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carriers on a transport stage: the TCP connections between two hosts that carry the exchanges of
 * their Falcon connections. falcon_sweep.c decides when there is one, and falcon_lanes.c what it
 * sends.
 */
#include <errno.h>
#include <stdlib.h>

#include "../../../base/log.h"
#include "../../../base/mem.h"
#include "falcon_priv.h"

/* Carriers that a peer has opened: at least one of each of its stages, and as many that replace
 * those. Beyond it the oldest one ends. A peer reports the number of its stages on each carrier. */
#define PASSIVE_LEAST 16
#define QUEUE         32768 /* bytes in TCP's queue beyond which frames wait in their exchanges */
#define PIECE         256   /* bytes in clear or in TLS between two looks at a turn's frames */
#define CLOSE_NS      10000000000ull /* from this side's FIN to that of the peer */
#define ALARM_NS      1000000000ull  /* between two warnings about a peer's version */

/* ---- Creation ---- */

static struct eng_falcon_carrier *
carrier_create(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends, bool ours,
	int *rc)
{
	struct eng_falcon_carrier *k = calloc(1, sizeof(*k));
	struct rofx_config cfg;

	*rc = -ENOMEM;
	if (k == NULL)
		return NULL;
	k->t = t;
	k->c = c;
	k->ours = ours;
	k->used_at = t->now;
	k->host = eng_falcon_host_get(eng_falcon_of(t), ends);
	if (k->host != NULL)
		k->k = rofx_carrier_create(
			eng_falcon_config(t, ends, &cfg), t->now, ours, eng_falcon_frame, k, rc);
	if (k->k == NULL) {
		if (k->host != NULL)
			eng_falcon_host_wake(eng_falcon_of(t), k->host);
		free(k);
		return NULL;
	}
	do
		k->number = ++eng_falcon_of(t)->carriers;
	while (k->number == 0);
	TAILQ_INSERT_TAIL(&k->host->carriers, k, of_host);
	c->link = &eng_link_falcon;
	c->part = k;
	c->state = ECONN_CARRIER;
	return k;
}

static void
carrier_arm(struct eng_transport *t, struct eng_falcon_carrier *k)
{
	uint64_t at = t->now + t->e->cfg.falcon.control_idle_ns;

	if (k->closing)
		at = k->used_at + CLOSE_NS;
	if (k->c->su != NULL)
		sk_timer_set(&t->wheel, &k->c->su->timer, SK_MIN(at, rofx_carrier_deadline(k->k)));
}

int
eng_falcon_carrier_open(struct eng_transport *t, struct eng_falcon_host *h, uint16_t user)
{
	struct tcp_tuple ends = {.laddr = h->laddr,
		.raddr = h->raddr,
		.rport = t->e->cfg.falcon.port,
		.vlan = ETH_NO_VLAN};
	struct eng_conn *c = eng_conn_alloc(t, ECONN_DRAIN);
	struct eng_falcon_carrier *k = NULL;
	int rc;

	if (c == NULL)
		return -ENOBUFS;
	eng_lports_jump(&t->lports);
	rc = eng_startup_carrier(t, c, &ends, user);
	if (rc == 0)
		k = carrier_create(t, c, &ends, true, &rc);
	if (rc == -ENOKEY)
		sk_count(eng_falcon_of(t)->rofx_counters, ROFX_NO_KEY);
	if (rc == 0)
		rc = tcp_connect(t->tcp, t->now, &ends, c->path.mtu, c, &c->tcp);
	if (rc == 0) {
		carrier_arm(t, k);
		return 0;
	}
	c->tcp = NULL;
	if (k != NULL)
		eng_falcon_carrier_free(t, k, rc);
	eng_conn_put(t, c);
	return rc;
}

/* Ends the oldest carrier of a peer that has opened too many. */
static void
carrier_limit(struct eng_transport *t, struct eng_falcon_host *h)
{
	struct eng_falcon_carrier *k, *oldest = NULL;
	unsigned n = 0, most = PASSIVE_LEAST;

	TAILQ_FOREACH (k, &h->carriers, of_host) {
		if (k->ours)
			continue;
		n++;
		most = SK_MAX(most, 2u * rofx_carrier_peer_stages(k->k));
		if (oldest == NULL)
			oldest = k;
	}
	if (n <= most)
		return;
	sk_count(eng_falcon_of(t)->rofx_counters, ROFX_NO_RESOURCE);
	eng_conn_pend(t, oldest->c, ECONN_P_ABORT);
}

int
eng_falcon_carrier_listen(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_carrier *k;
	int rc;

	k = carrier_create(t, c, tcp_tuple(c->tcp), false, &rc);
	if (k == NULL)
		return rc;
	k->connected = true;
	k->counted = true;
	eng_falcon_add(&eng_falcon_of(t)->nstarting, 1);
	carrier_limit(t, k->host);
	return 0;
}

/* ---- The end ---- */

void
eng_falcon_carrier_free(struct eng_transport *t, struct eng_falcon_carrier *k, int error)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_falcon_host *h = k->host;

	eng_falcon_tls_forget(f, k);
	if (k->rest != NULL)
		TAILQ_REMOVE(&f->behind, k, later);
	eng_slice_free(k->rest);
	TAILQ_REMOVE(&h->carriers, k, of_host);
	if (k->counted)
		eng_falcon_add(&f->nstarting, -1);
	k->c->part = NULL;
	eng_conn_drain(t, k->c); /* bytes may have waited for a turn of TLS */
	if (k->c->su != NULL)
		sk_timer_stop(&t->wheel, &k->c->su->timer);
	eng_falcon_host_down(t, k, error);
	rofx_carrier_destroy(k->k);
	free(k);
}

static int
carrier_error(enum rofx_reason why)
{
	switch (why) {
	case ROFX_TIMEOUT:
		return -ETIMEDOUT;
	case ROFX_CLOSED:
		return -ECONNRESET;
	case ROFX_NO_RESOURCE:
		return -ENOBUFS;
	default:
		return -EPROTO;
	}
}

/* Logs that the peer is of another release, at most once per second and stage. */
static void
carrier_version(struct eng_transport *t, const struct eng_falcon_carrier *k)
{
	struct eng_falcon *f = eng_falcon_of(t);
	char peer[SK_ADDR_STRLEN];

	if (t->now < f->version_alarm_at)
		return;
	f->version_alarm_at = t->now + ALARM_NS;
	sk_log(SK_LOG_WARNING,
		"Falcon: %s makes connections by version %u of the exchange, and this saker by "
		"version %u: install the same release on both",
		sk_addr_str(&k->host->raddr, peer), rofx_carrier_peer_version(k->k), ROFX_VERSION);
}

/* Ends a carrier that has failed. The peer receives what it still has to send: the reason. */
static void
carrier_failed(struct eng_transport *t, struct eng_falcon_carrier *k, enum rofx_reason why)
{
	struct eng_conn *c = k->c;

	sk_count(eng_falcon_of(t)->rofx_counters, why);
	if (why == ROFX_BAD_VERSION)
		carrier_version(t, k);
	(void)eng_falcon_carrier_flush(t, k);
	eng_conn_pend(
		t, c, c->state == ECONN_CARRIER && k->connected ? ECONN_P_CLOSE : ECONN_P_ABORT);
	eng_falcon_carrier_free(t, k, carrier_error(why));
}

void
eng_falcon_carrier_close(struct eng_transport *t, struct eng_falcon_carrier *k)
{
	if (k->closing)
		return;
	(void)eng_falcon_carrier_flush(t, k);
	k->closing = true;
	k->used_at = t->now;
	eng_conn_pend(t, k->c, ECONN_P_CLOSE);
	carrier_arm(t, k);
}

void
eng_falcon_carrier_fin(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_carrier *k = eng_falcon_carrier_of(c);

	if (k->rest != NULL) /* frames before the FIN wait for a turn */
		return;
	if (!k->up) {
		carrier_failed(t, k, ROFX_CLOSED);
		return;
	}
	(void)eng_falcon_carrier_flush(t, k);
	eng_conn_pend(t, c, ECONN_P_CLOSE);
	eng_falcon_carrier_free(t, k, 0);
}

void
eng_falcon_carrier_ended(struct eng_transport *t, struct eng_falcon_carrier *k)
{
	eng_falcon_carrier_free(t, k, k->c->error != 0 ? k->c->error : -ECONNRESET);
}

void
eng_falcon_carrier_expired(struct eng_transport *t, struct eng_falcon_carrier *k)
{
	const struct eng_falcon_host *h = k->host;
	bool busy = h->nlive > 0 || h->nstarting > 0 || h->filled != 0 || !TAILQ_EMPTY(&h->asking);

	rofx_carrier_timeout(k->k, t->now);
	if (rofx_carrier_why(k->k) != ROFX_NONE) {
		carrier_failed(t, k, rofx_carrier_why(k->k));
		return;
	}
	if (k->closing && t->now >= k->used_at + CLOSE_NS) {
		eng_conn_pend(t, k->c, ECONN_P_ABORT);
		return;
	}
	if (k->up && !busy && t->now >= k->used_at + t->e->cfg.falcon.control_idle_ns)
		eng_falcon_carrier_close(t, k);
	carrier_arm(t, k);
}

/* ---- Bytes ---- */

bool
eng_falcon_carrier_open_for(const struct eng_transport *t, const struct eng_falcon_carrier *k)
{
	int64_t space = tcp_send_space(k->c->tcp);

	return space > 0 && space > (int64_t)t->e->cfg.tcp.snd_buf - QUEUE;
}

/* Ends what a passive carrier costs before its first frame. */
static void
carrier_settled(struct eng_transport *t, struct eng_falcon_carrier *k)
{
	if (!k->counted || !rofx_carrier_used(k->k))
		return;
	k->counted = false;
	eng_falcon_add(&eng_falcon_of(t)->nstarting, -1);
	tcp_settled(k->c->tcp);
}

int
eng_falcon_carrier_flush(struct eng_transport *t, struct eng_falcon_carrier *k)
{
	if (k->closing || !k->connected || k->c->tcp == NULL)
		return 0;
	carrier_settled(t, k);
	for (;;) {
		struct tcp_rec *rec = eng_rec_alloc(t->tx_pool);
		size_t n;

		k->unsent = rec == NULL;
		if (rec == NULL) {
			sk_count(t->counters, ENG_TX_NO_MBUF);
			eng_falcon_host_wake(eng_falcon_of(t), k->host);
			return -ENOMEM;
		}
		n = rofx_carrier_output(k->k, rec->data, ENG_COPY_MAX);
		if (n == 0) {
			eng_rec_free(rec);
			return 0;
		}
		rec->len = (uint32_t)n;
		tcp_send(k->c->tcp, rec);
	}
}

void
eng_falcon_carrier_begin(struct eng_transport *t, struct eng_falcon_carrier *k)
{
	(void)eng_falcon_carrier_flush(t, k);
}

/* Handles what received bytes have changed. */
static void
carrier_advance(struct eng_transport *t, struct eng_falcon_carrier *k)
{
	if (rofx_carrier_why(k->k) != ROFX_NONE) {
		carrier_failed(t, k, rofx_carrier_why(k->k));
		return;
	}
	(void)eng_falcon_carrier_flush(t, k);
	if (!k->up && rofx_carrier_ready(k->k)) {
		tcp_set_keepalive(k->c->tcp, t->now, t->e->cfg.falcon.keepalive_ns / 2);
		eng_falcon_host_up(t, k);
	}
	if (k->host->filled != 0)
		eng_falcon_flush(t, k->host);
	carrier_arm(t, k);
}

/* Processes the first bytes of k->rest, and charges the turn: for the frames in them, for the
 * records of TLS that had a part of one, and for one at least, since records may be empty. Returns
 * whether the carrier goes on. */
static bool
carrier_piece(struct eng_transport *t, struct eng_falcon_carrier *k, bool over)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct tcp_slice *s = k->rest;
	uint32_t parts = rofx_carrier_parts(k->k), frames = f->nframes;
	uint32_t len = over || rofx_carrier_handshakes(k->k) ? s->len : SK_MIN(s->len, PIECE);

	if (k->c->tcp != NULL)
		tcp_consumed(k->c->tcp, len);
	if (!over) {
		over = rofx_carrier_input(k->k, t->now, s->data, len) < 0;
		f->nframes += rofx_carrier_parts(k->k) - parts;
		f->nframes += f->nframes == frames;
	}
	s->data += len;
	s->len -= len;
	if (s->len == 0) {
		k->rest = s->next;
		s->next = NULL;
		eng_slice_free(s);
	}
	return !over;
}

/* Processes k->rest as far as this turn's frames go; in a turn of TLS, at least until the handshake
 * is over. Once this side has given the carrier up, it ignores the rest of the stream, but takes
 * it: lib/tcp keeps a connection until its owner has all bytes. */
static void
carrier_take(struct eng_transport *t, struct eng_falcon_carrier *k)
{
	struct eng_falcon *f = eng_falcon_of(t);
	bool over = k->c->pending & ECONN_P_ABORT;

	while (k->rest != NULL &&
		(over || rofx_carrier_handshakes(k->k) || eng_falcon_frames_left(f)))
		over = !carrier_piece(t, k, over);
	if (k->rest != NULL)
		TAILQ_INSERT_TAIL(&f->behind, k, later);
	if (!(k->c->pending & ECONN_P_ABORT))
		carrier_advance(t, k);
}

bool
eng_falcon_carrier_deliver(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain)
{
	struct eng_falcon_carrier *k = eng_falcon_carrier_of(c);

	if (k->rest != NULL ||
		(!(c->pending & ECONN_P_ABORT) && !eng_falcon_may(eng_falcon_of(t), k, false)))
		return false;
	k->rest = chain;
	carrier_take(t, k);
	return true;
}

void
eng_falcon_carrier_resume(struct eng_transport *t, struct eng_falcon_carrier *k)
{
	struct eng_conn *c = k->c;

	carrier_take(t, k);
	if (c->part != k || k->rest != NULL) /* it has ended, or waits again */
		return;
	if (c->fin)
		eng_falcon_carrier_fin(t, c);
	else if (c->tcp != NULL)
		tcp_deliver_resume(c->tcp);
}
