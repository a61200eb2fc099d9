/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairs of hosts. All Falcon connections of this stage with a peer's address send the frames of
 * their exchanges over the carriers to that address, normally one. Users take turns, frame by
 * frame, and TCP's queue is kept short, so no exchange waits for another one's frames for long.
 *
 * The end of a carrier ends no connection. A carrier is made again while there are connections, and
 * then each of them asks the peer whether it still has its end: a peer that has been restarted has
 * none. If no carrier can be made for a while, and no packet of any connection arrives meanwhile,
 * the host has gone and all of its connections end; one packet proves that the host is alive. A
 * connection that has work notices the end of its peer by itself, as Falcon defines it.
 *
 * A peer with several stages has connections at each of them, and a carrier belongs to one. So a
 * connection's frames need a carrier to its peer's stage. Where a new carrier arrives, the peer's
 * port decides, so this side opens carriers until one belongs to that stage.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../../base/mem.h"
#include "../../../base/secret.h"
#include "falcon_priv.h"

#define HOSTS_TURN    8    /* hosts that a turn handles */
#define SWEEP_TURN    64   /* connections of a host that a turn visits */
#define STARTING_MOST 4096 /* exchanges that a host may have begun and not completed */
#define ORPHANS_MOST  1024 /* ended connections of a host with frames to send */
#define PREFIX_PART   8    /* of all connections: what a source prefix may have begun */
#define PREFIX_LEAST  16
#define TRIES_MOST    32           /* carriers that are opened at once for one stage */
#define RETRY_NS      500000000ull /* from a carrier that could not be opened to the next one */

/* ---- Hosts ---- */

void
eng_falcon_hosts_init(struct eng_falcon *f, uint64_t now)
{
	TAILQ_INIT(&f->turns);
	sk_wheel_init(&f->host_wheel, now);
	sk_random(&f->host_key, sizeof(f->host_key));
	f->hosts_due = SK_NEVER;
}

static struct eng_falcon_hosts *
host_bucket_of(struct eng_falcon *f, const struct sk_addr *laddr, const struct sk_addr *raddr)
{
	const struct sk_addr both[2] = {*laddr, *raddr};

	return &f->hosts[sk_siphash(&f->host_key, both, sizeof(both)) % ENG_FALCON_HOSTS];
}

/* Returns the counter of the source prefix of an address: a host may have all addresses of an IPv6
 * prefix of 64 bits, but of IPv4 only one. */
static uint16_t *
falcon_host_prefix(struct eng_falcon *f, const struct sk_addr *raddr)
{
	size_t len = sk_addr_is_v4(raddr) ? sizeof(*raddr) : 8;

	return &f->per_prefix[sk_siphash(&f->host_key, raddr, len) % ENG_FALCON_HOSTS];
}

static struct eng_falcon_host *
falcon_host_create(const struct tcp_tuple *ends)
{
	struct eng_falcon_host *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->laddr = ends->laddr;
	h->raddr = ends->raddr;
	h->vlan = ends->vlan;
	h->port = ends->port;
	h->lost_at = SK_NEVER;
	TAILQ_INIT(&h->carriers);
	TAILQ_INIT(&h->live);
	TAILQ_INIT(&h->asking);
	for (unsigned i = 0; i < ENG_FALCON_BUCKETS; i++)
		TAILQ_INIT(&h->starting[i]);
	for (unsigned i = 0; i < ENG_FALCON_LANES; i++)
		TAILQ_INIT(&h->lanes[i]);
	return h;
}

struct eng_falcon_host *
eng_falcon_host_get(struct eng_falcon *f, const struct tcp_tuple *ends)
{
	struct eng_falcon_hosts *bucket = host_bucket_of(f, &ends->laddr, &ends->raddr);
	struct eng_falcon_host *h;

	LIST_FOREACH (h, bucket, bucket)
		if (sk_addr_eq(&h->laddr, &ends->laddr) && sk_addr_eq(&h->raddr, &ends->raddr))
			return h;
	h = falcon_host_create(ends);
	if (h != NULL)
		LIST_INSERT_HEAD(bucket, h, bucket);
	return h;
}

static void
falcon_host_free(struct eng_falcon *f, struct eng_falcon_host *h)
{
	if (h->in_turn)
		TAILQ_REMOVE(&f->turns, h, turn);
	sk_timer_stop(&f->host_wheel, &h->timer);
	LIST_REMOVE(h, bucket);
	free(h);
}

void
eng_falcon_host_put(struct eng_falcon *f, struct eng_falcon_host *h)
{
	if (TAILQ_EMPTY(&h->carriers) && h->nlive == 0 && h->nstarting == 0 &&
		TAILQ_EMPTY(&h->asking) && h->norphans == 0)
		falcon_host_free(f, h);
}

void
eng_falcon_host_wake(struct eng_falcon *f, struct eng_falcon_host *h)
{
	if (h->in_turn)
		return;
	TAILQ_INSERT_TAIL(&f->turns, h, turn);
	h->in_turn = true;
}

/* Returns how long a host that has no carrier may be silent: half of the time after which a silent
 * host is given up, as TCP's keepalive takes the other half. */
static uint64_t
silence(const struct eng_transport *t)
{
	uint64_t ns = t->e->cfg.falcon.keepalive_ns;

	return ns == 0 ? SK_NEVER : ns + ns / 10;
}

/* Sets the timer to the next attempt to open a carrier, or to the end of the patience with a host
 * that has none. */
static void
host_arm(struct eng_transport *t, struct eng_falcon_host *h)
{
	struct eng_falcon *f = eng_falcon_of(t);
	uint64_t at = h->retry_at > t->now ? h->retry_at : SK_NEVER;

	if (h->lost_at != SK_NEVER && silence(t) != SK_NEVER)
		at = SK_MIN(at, h->lost_at + silence(t));
	if (at == SK_NEVER)
		sk_timer_stop(&f->host_wheel, &h->timer);
	else
		sk_timer_set(&f->host_wheel, &h->timer, at);
	f->hosts_due = SK_MIN(f->hosts_due, at);
}

/* ---- Senders ---- */

static void
sender_enter(struct eng_falcon_host *h, struct eng_falcon_sender *s)
{
	if (s->queued)
		return;
	TAILQ_INSERT_TAIL(&h->lanes[s->lane], s, next);
	h->filled |= (uint16_t)(1u << s->lane);
	s->queued = true;
}

static void
sender_leave(struct eng_falcon_host *h, struct eng_falcon_sender *s)
{
	if (!s->queued)
		return;
	TAILQ_REMOVE(&h->lanes[s->lane], s, next);
	if (TAILQ_EMPTY(&h->lanes[s->lane]))
		h->filled &= (uint16_t) ~(1u << s->lane);
	s->queued = false;
}

static void
orphan_free(struct eng_falcon_host *h, struct eng_falcon_sender *s)
{
	sender_leave(h, s);
	rofx_destroy(s->x);
	free(s);
	h->norphans--;
}

static void
orphans_free(struct eng_falcon_host *h)
{
	struct eng_falcon_sender *s, *next;

	for (unsigned i = 0; i < ENG_FALCON_LANES; i++) {
		for (s = TAILQ_FIRST(&h->lanes[i]); s != NULL; s = next) {
			next = TAILQ_NEXT(s, next);
			if (s->orphan)
				orphan_free(h, s);
		}
	}
}

void
eng_falcon_hosts_free(struct eng_falcon *f)
{
	struct eng_falcon_host *h;

	for (unsigned i = 0; i < ENG_FALCON_HOSTS; i++) {
		while ((h = LIST_FIRST(&f->hosts[i])) != NULL) {
			orphans_free(h);
			falcon_host_free(f, h);
		}
	}
}

/* Moves the exchange of a connection that ends to a sender of its own, if it has frames left. */
static void
orphan_create(struct eng_falcon_host *h, struct eng_falcon_conn *fc)
{
	struct eng_falcon_sender *s = NULL;

	if (rofx_waits(fc->out.x) && h->norphans < ORPHANS_MOST)
		s = calloc(1, sizeof(*s));
	if (s == NULL) {
		rofx_destroy(fc->out.x);
		return;
	}
	s->x = fc->out.x;
	s->lane = fc->out.lane;
	s->stage = fc->out.stage;
	s->orphan = true;
	h->norphans++;
	sender_enter(h, s);
}

/* ---- Connections ---- */

static struct eng_falcon_members *
host_list(struct eng_falcon_host *h, const struct eng_falcon_conn *fc)
{
	if (fc->list == ENG_FALCON_STARTING)
		return &h->starting[rofx_peer_id(fc->out.x) % ENG_FALCON_BUCKETS];
	return fc->list == ENG_FALCON_LIVE ? &h->live : &h->asking;
}

static void
host_remove(struct eng_falcon *f, struct eng_falcon_conn *fc)
{
	struct eng_falcon_host *h = fc->host;

	TAILQ_REMOVE(host_list(h, fc), fc, of_host);
	if (fc->list == ENG_FALCON_STARTING) {
		h->nstarting--;
		--*falcon_host_prefix(f, &h->raddr);
	} else if (fc->list == ENG_FALCON_LIVE) {
		h->nlive--;
	}
	fc->host = NULL;
}

bool
eng_falcon_join(struct eng_falcon *f, struct eng_falcon_host *h, struct eng_falcon_conn *fc,
	enum eng_falcon_list list)
{
	uint32_t most = SK_MAX(f->nconns / PREFIX_PART, PREFIX_LEAST);
	uint16_t *prefix = falcon_host_prefix(f, &h->raddr);

	if (list == ENG_FALCON_STARTING &&
		(h->nstarting >= STARTING_MOST || *prefix >= SK_MIN(most, UINT16_MAX)))
		return false;
	if (fc->host != NULL)
		host_remove(f, fc);
	fc->host = h;
	fc->list = (uint8_t)list;
	TAILQ_INSERT_TAIL(host_list(h, fc), fc, of_host);
	if (list == ENG_FALCON_STARTING) {
		h->nstarting++;
		++*prefix;
	} else if (list == ENG_FALCON_LIVE) {
		h->nlive++;
	}
	return true;
}

void
eng_falcon_leave(struct eng_falcon *f, struct eng_falcon_conn *fc)
{
	struct eng_falcon_host *h = fc->host;

	if (h == NULL) {
		rofx_destroy(fc->out.x);
		return;
	}
	host_remove(f, fc);
	sender_leave(h, &fc->out);
	if (fc->out.x != NULL)
		orphan_create(h, fc);
	eng_falcon_host_wake(f, h); /* which may free it */
}

struct eng_falcon_conn *
eng_falcon_starting(const struct eng_falcon_host *h, uint32_t peer_id)
{
	struct eng_falcon_conn *fc;

	TAILQ_FOREACH (fc, &h->starting[peer_id % ENG_FALCON_BUCKETS], of_host)
		if (rofx_peer_id(fc->out.x) == peer_id)
			return fc;
	return NULL;
}

/* ---- Frames to carriers ---- */

static bool
falcon_host_is_self(const struct eng_falcon_host *h)
{
	return sk_addr_eq(&h->laddr, &h->raddr);
}

/* Returns whether a carrier is the one of two that have crossed that survives: the one that the
 * greater address has opened. */
static bool
survives(const struct eng_falcon_carrier *k)
{
	const struct eng_falcon_host *h = k->host;

	return k->ours == (memcmp(h->laddr.b, h->raddr.b, sizeof(h->laddr.b)) > 0);
}

static bool
host_usable(const struct eng_transport *t, struct eng_falcon_carrier *k)
{
	const struct rofx_tls *tls = t->e->cfg.falcon.tls;

	if (!k->up || k->closing || (tls != NULL && !rofx_carrier_secure(k->k)))
		return false;
	k->retired |= rofx_carrier_outdated(k->k, tls);
	return true;
}

/* Returns the carrier for the first frame of the sender, or NULL. */
static struct eng_falcon_carrier *
host_pick(
	const struct eng_transport *t, struct eng_falcon_host *h, const struct eng_falcon_sender *s)
{
	bool begins = rofx_begins(s->x);
	struct eng_falcon_carrier *k, *best = NULL;

	TAILQ_FOREACH (k, &h->carriers, of_host) {
		if (!host_usable(t, k) || (begins && k->retired) ||
			(!begins && rofx_carrier_peer_stage(k->k) != s->stage))
			continue;
		/* Of two that the peer has opened, the older one may be that of a peer that has
		 * been restarted. */
		if (best == NULL || best->retired > k->retired ||
			(best->retired == k->retired && (survives(k) || !survives(best))))
			best = k;
	}
	return best;
}

/* Passes one frame. Returns whether there may be more to pass in the lane. */
static bool
host_pass(struct eng_transport *t, struct eng_falcon_host *h, struct eng_falcon_sender *s)
{
	struct eng_falcon_carrier *k = host_pick(t, h, s);
	int rc;

	if (k == NULL || !eng_falcon_carrier_open_for(t, k))
		return false;
	rc = rofx_pass(s->x, k->k);
	if (rc == -EAGAIN && eng_falcon_carrier_flush(t, k) == 0)
		rc = rofx_pass(s->x, k->k);
	if (rc != 0 && rc != -ENOENT)
		return false;
	k->used_at = t->now;
	if (!s->orphan)
		SK_CONTAINER(s, struct eng_falcon_conn, out)->via = k->number;
	sender_leave(h, s);
	if (rofx_waits(s->x))
		sender_enter(h, s); /* behind the others of its lane */
	else if (s->orphan)
		orphan_free(h, s);
	return true;
}

void
eng_falcon_flush(struct eng_transport *t, struct eng_falcon_host *h)
{
	struct eng_falcon_carrier *k;
	uint16_t stuck = 0, left;

	while ((left = (uint16_t)(h->filled & ~stuck)) != 0) {
		unsigned lane = h->lane;

		while (!(left & 1u << lane))
			lane = (lane + 1) % ENG_FALCON_LANES;
		h->lane = (uint8_t)((lane + 1) % ENG_FALCON_LANES);
		if (!host_pass(t, h, TAILQ_FIRST(&h->lanes[lane])))
			stuck |= (uint16_t)(1u << lane);
	}
	TAILQ_FOREACH (k, &h->carriers, of_host)
		if (k->up)
			eng_falcon_carrier_flush(t, k);
}

void
eng_falcon_send(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	struct eng_falcon_host *h = fc->host;

	if (h == NULL || !rofx_waits(fc->out.x))
		return;
	sender_enter(h, &fc->out);
	eng_falcon_flush(t, h);
	if (h->filled != 0)
		eng_falcon_host_wake(eng_falcon_of(t), h);
}

/* ---- Carriers that come and go ---- */

/* Returns whether there is a carrier that is ready, and on which exchanges begin if `fresh`. */
static bool
host_has_carrier(const struct eng_falcon_host *h, bool fresh)
{
	const struct eng_falcon_carrier *k;

	TAILQ_FOREACH (k, &h->carriers, of_host)
		if (k->up && !k->closing && !(fresh && k->retired))
			return true;
	return false;
}

static bool
host_opens(const struct eng_falcon_host *h)
{
	const struct eng_falcon_carrier *k;

	TAILQ_FOREACH (k, &h->carriers, of_host)
		if (k->ours && !k->up && !k->closing)
			return true;
	return false;
}

static void
host_sweep(struct eng_falcon *f, struct eng_falcon_host *h, enum eng_falcon_sweep sweep)
{
	h->sweep = (uint8_t)sweep;
	h->left = h->nlive;
	h->heard = false;
	eng_falcon_host_wake(f, h);
}

/* Of two carriers to one stage of the peer that this side has opened, the older one remains, and of
 * two that have crossed the one that survives; but one that is retired never does. */
static void
host_settle(struct eng_transport *t, struct eng_falcon_carrier *k)
{
	struct eng_falcon_carrier *o, *next;

	for (o = TAILQ_FIRST(&k->host->carriers); o != NULL; o = next) {
		struct eng_falcon_carrier *loser = o;

		next = TAILQ_NEXT(o, of_host);
		if (o == k || !host_usable(t, o) ||
			rofx_carrier_peer_stage(o->k) != rofx_carrier_peer_stage(k->k))
			continue;
		if (!o->retired && (o->ours == k->ours || survives(o)))
			loser = k;
		if (loser->ours || loser->retired)
			eng_falcon_carrier_close(t, loser);
		if (loser == k)
			break;
	}
}

void
eng_falcon_host_up(struct eng_transport *t, struct eng_falcon_carrier *k)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_falcon_host *h = k->host;

	k->up = true;
	if (h->lost_at != SK_NEVER && h->nlive > 0)
		host_sweep(f, h, ENG_FALCON_CHECK);
	h->lost_at = SK_NEVER;
	h->retry_at = 0;
	if (!falcon_host_is_self(h))
		host_settle(t, k);
	eng_falcon_host_wake(f, h);
}

/* Fails the starting exchanges of a list that have sent frames on the carrier `via`, or, with 0,
 * that have a request to send. */
static void
host_fail(struct eng_transport *t, struct eng_falcon_members *list, uint32_t via, int error)
{
	struct eng_falcon_conn *fc, *next;

	for (fc = TAILQ_FIRST(list); fc != NULL; fc = next) {
		next = TAILQ_NEXT(fc, of_host);
		if (via == 0 ? !rofx_begins(fc->out.x) : fc->via != via)
			continue;
		if (fc->c->error == 0)
			fc->c->error = error;
		rofx_lost(fc->out.x);
		eng_falcon_fail(t, fc->c, ROFX_CLOSED, error);
	}
}

/* No carrier can be opened: the requests that wait for one fail. */
static void
host_unreachable(struct eng_transport *t, struct eng_falcon_host *h, int error)
{
	host_fail(t, &h->asking, 0, error);
	if (!host_has_carrier(h, false))
		orphans_free(h);
	h->retry_at = t->now + RETRY_NS;
	eng_falcon_host_wake(eng_falcon_of(t), h);
}

void
eng_falcon_host_down(struct eng_transport *t, struct eng_falcon_carrier *k, int error)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_falcon_host *h = k->host;

	if (error != 0) {
		host_fail(t, &h->asking, k->number, error);
		for (unsigned i = 0; i < ENG_FALCON_BUCKETS; i++)
			host_fail(t, &h->starting[i], k->number, error);
	}
	eng_falcon_host_wake(f, h);
	if (!k->up && k->ours && !host_opens(h) && !host_has_carrier(h, true))
		host_unreachable(t, h, error != 0 ? error : -ECONNRESET);
	if (host_has_carrier(h, false)) {
		if (k->up && error != 0 && h->nlive > 0)
			host_sweep(f, h, ENG_FALCON_CHECK);
		return;
	}
	if (k->up && h->nlive > 0 && h->lost_at == SK_NEVER) {
		h->lost_at = t->now;
		host_sweep(f, h, ENG_FALCON_MARK);
	}
}

/* ---- Turns ---- */

static void
sweep_visit(struct eng_transport *t, struct eng_falcon_host *h, struct eng_falcon_conn *fc)
{
	switch (h->sweep) {
	case ENG_FALCON_CHECK:
		if (fc->self)
			break;
		rofx_lost(fc->out.x);
		if (rofx_waits(fc->out.x))
			sender_enter(h, &fc->out);
		break;
	case ENG_FALCON_MARK:
		fc->mark = (uint32_t)fc->rx_left;
		break;
	case ENG_FALCON_LOOK:
		h->heard |= fc->mark != (uint32_t)fc->rx_left;
		break;
	case ENG_FALCON_KILL:
		eng_falcon_fail(t, fc->c, ROFX_TIMEOUT, -ETIMEDOUT);
		break;
	}
}

/* Begins the next sweep after one. */
static void
sweep_next(struct eng_transport *t, struct eng_falcon_host *h)
{
	struct eng_falcon *f = eng_falcon_of(t);
	uint8_t was = h->sweep;

	h->sweep = ENG_FALCON_REST;
	if (was == ENG_FALCON_LOOK && h->heard) {
		h->lost_at = t->now;
		host_sweep(f, h, ENG_FALCON_MARK);
	} else if (was == ENG_FALCON_LOOK) {
		host_sweep(f, h, ENG_FALCON_KILL);
	} else if (was == ENG_FALCON_KILL) {
		h->lost_at = SK_NEVER;
	}
}

static void
host_visit(struct eng_transport *t, struct eng_falcon_host *h)
{
	for (unsigned i = 0; i < SWEEP_TURN && h->left > 0; i++) {
		struct eng_falcon_conn *fc = TAILQ_FIRST(&h->live);

		h->left = fc != NULL ? h->left - 1 : 0;
		if (fc == NULL)
			break;
		TAILQ_REMOVE(&h->live, fc, of_host);
		TAILQ_INSERT_TAIL(&h->live, fc, of_host);
		sweep_visit(t, h, fc);
	}
	if (h->left == 0)
		sweep_next(t, h);
}

/* Returns whether the host needs a carrier that it does not have: for frames, or because it has
 * connections. */
static bool
host_needs_carrier(struct eng_transport *t, struct eng_falcon_host *h)
{
	for (unsigned i = 0; i < ENG_FALCON_LANES; i++)
		if ((h->filled & 1u << i) && host_pick(t, h, TAILQ_FIRST(&h->lanes[i])) == NULL)
			return true;
	return h->nlive > 0 && !host_has_carrier(h, false);
}

/* A carrier that belongs to another stage of the peer than the one that a frame needs causes a
 * further one. */
static void
falcon_host_open(struct eng_transport *t, struct eng_falcon_host *h)
{
	int rc;

	if (h->tries++ >= TRIES_MOST) {
		h->tries = 0;
		h->retry_at = t->now + RETRY_NS;
		return;
	}
	rc = eng_falcon_carrier_open(t, h);
	if (rc < 0)
		host_unreachable(t, h, rc);
}

static void
falcon_host_turn(struct eng_transport *t, struct eng_falcon_host *h)
{
	struct eng_falcon *f = eng_falcon_of(t);

	if (h->sweep != ENG_FALCON_REST)
		host_visit(t, h);
	eng_falcon_flush(t, h);
	if (h->lost_at != SK_NEVER && h->sweep == ENG_FALCON_REST && silence(t) != SK_NEVER &&
		t->now - h->lost_at >= silence(t))
		host_sweep(f, h, ENG_FALCON_LOOK);
	if (h->filled == 0)
		h->tries = 0;
	if (t->now >= h->retry_at && !host_opens(h) && host_needs_carrier(t, h))
		falcon_host_open(t, h);
	host_arm(t, h);
	if (h->sweep != ENG_FALCON_REST)
		eng_falcon_host_wake(f, h);
	else
		eng_falcon_host_put(f, h);
}

static void
host_fire(void *ctx, struct sk_timer *timer, uint64_t now)
{
	struct eng_transport *t = ctx;

	eng_falcon_host_wake(eng_falcon_of(t), SK_CONTAINER(timer, struct eng_falcon_host, timer));
}

bool
eng_falcon_hosts_poll(struct eng_transport *t, uint64_t now)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_falcon_host *h;
	unsigned n;

	if (now >= f->hosts_due) {
		sk_wheel_poll(&f->host_wheel, now, HOSTS_TURN, host_fire, t);
		f->hosts_due = f->host_wheel.armed > 0 ? sk_wheel_next(&f->host_wheel) : SK_NEVER;
	}
	for (n = 0; n < HOSTS_TURN && (h = TAILQ_FIRST(&f->turns)) != NULL; n++) {
		TAILQ_REMOVE(&f->turns, h, turn);
		h->in_turn = false;
		falcon_host_turn(t, h);
	}
	return n > 0;
}
