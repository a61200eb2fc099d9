/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carriers that come and go, and the turns of hosts.
 *
 * The end of a carrier ends no connection, and no exchange: a request that has no answer is
 * repeated on the next carrier, which the peer recognises by its name. A carrier is made again
 * while there are connections, and then each of them asks the peer whether it still has its end: a
 * peer that has been restarted has none. If no carrier can be made for a while, and no packet of
 * any connection arrives meanwhile, the host has gone and all of its connections end; one packet
 * proves that the host is alive. A connection that has work notices the end of its peer by itself,
 * as Falcon defines it.
 *
 * Where a new carrier arrives, the peer's port decides, so this side opens carriers until one
 * belongs to the stage that a frame needs.
 */
#include <errno.h>

#include "../../../base/mem.h"
#include "falcon_priv.h"

#define HOSTS_TURN   8              /* hosts that a turn handles */
#define SWEEP_TURN   64             /* connections of a host that a turn visits */
#define BUCKETS_TURN 4              /* buckets of `starting` that a turn visits */
#define TRIES_MOST   16             /* carriers that are opened at once for a stage of the peer */
#define RESETS_MOST  3              /* carriers that the peer resets before they are ready */
#define PAYERS_TURN  64             /* exchanges that a turn asks to pay for a carrier */
#define RETRY_NS     500000000ull   /* from a carrier that could not be opened to the next one */
#define FEW_NS       10000000000ull /* for so long after these tries, requests use what there is */

/* ---- Timer ---- */

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

/* Of two carriers to one stage of the peer that one side has opened, the newer one remains: nothing
 * begins on the older one any more, and the side that has opened it closes it. Of two that have
 * crossed the one that survives remains; but one that is retired never does. */
static void
host_settle(struct eng_transport *t, struct eng_falcon_carrier *k)
{
	struct eng_falcon_carrier *o, *next;

	k->retired |= rofx_carrier_outdated(k->k, t->e->cfg.falcon.tls);
	for (o = TAILQ_FIRST(&k->host->carriers); o != NULL; o = next) {
		struct eng_falcon_carrier *loser = o;

		next = TAILQ_NEXT(o, of_host);
		if (o == k || !eng_falcon_usable(t, o) ||
			rofx_carrier_peer_stage(o->k) != rofx_carrier_peer_stage(k->k))
			continue;
		if (o->ours != k->ours ? !o->retired && eng_falcon_survives(o) : k->retired)
			loser = k;
		else if (o->ours == k->ours)
			o->retired = true;
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
	if (k->ours) /* all users of the host share it */
		(void)eng_conn_charge(t, k->c, SK_USER_INSTANCE);
	if (h->lost_at != SK_NEVER && h->nlive > 0)
		host_sweep(f, h, ENG_FALCON_CHECK);
	h->lost_at = SK_NEVER;
	h->retry_at = 0;
	h->resets = 0;
	if (!eng_falcon_host_is_self(h))
		host_settle(t, k);
	eng_falcon_unpark(h);
	eng_falcon_host_wake(f, h);
}

/* Lets the turns of the host visit the connections that are being made. */
static void
host_revisit(struct eng_falcon *f, struct eng_falcon_host *h)
{
	h->asking_left = h->nasking;
	h->buckets_left = h->nstarting > 0 ? ENG_FALCON_BUCKETS : 0;
	eng_falcon_host_wake(f, h);
}

static bool
host_has_number(const struct eng_falcon_host *h, uint32_t number)
{
	const struct eng_falcon_carrier *k;

	TAILQ_FOREACH (k, &h->carriers, of_host)
		if (k->number == number)
			return true;
	return false;
}

/* Repeats what an exchange has sent without an answer on a carrier that has ended. Peers recognise
 * what they have received before. Fails a request for which no carrier could be opened. */
static void
host_repeat(struct eng_transport *t, struct eng_falcon_host *h, struct eng_falcon_conn *fc)
{
	if (fc->list == ENG_FALCON_ASKING && h->gone_error != 0 && rofx_begins(fc->out.x) &&
		(int32_t)(fc->mark - h->gone) <= 0) {
		eng_falcon_fail(t, fc->c, ROFX_CLOSED, h->gone_error);
		return;
	}
	if (fc->via == 0 || host_has_number(h, fc->via))
		return;
	fc->via = 0;
	rofx_lost(fc->out.x, t->now);
	eng_falcon_advance(t, fc->c);
}

/* Visits some of the connections that are being made. No peer or client chooses their
 * bucket, so a bucket has few. Those that have joined meanwhile are behind the ones to be visited.
 */
static void
host_repeat_some(struct eng_transport *t, struct eng_falcon_host *h)
{
	struct eng_falcon_conn *fc, *next;

	for (unsigned i = 0; i < SWEEP_TURN && h->asking_left > 0; i++) {
		fc = TAILQ_FIRST(&h->asking);
		h->asking_left = fc != NULL ? h->asking_left - 1 : 0;
		if (fc == NULL)
			break;
		TAILQ_REMOVE(&h->asking, fc, of_host);
		TAILQ_INSERT_TAIL(&h->asking, fc, of_host);
		host_repeat(t, h, fc);
	}
	if (h->asking_left == 0)
		h->gone_error = 0;
	for (unsigned i = 0; i < BUCKETS_TURN && h->buckets_left > 0; i++, h->buckets_left--) {
		for (fc = TAILQ_FIRST(&h->starting[h->next_bucket]); fc != NULL; fc = next) {
			next = TAILQ_NEXT(fc, of_host);
			host_repeat(t, h, fc);
		}
		h->next_bucket = (h->next_bucket + 1) % ENG_FALCON_BUCKETS;
	}
}

/* No carrier can be opened: the requests that wait for one fail. Those that join the host from now
 * on have a higher number. */
static void
host_unreachable(struct eng_transport *t, struct eng_falcon_host *h, int error)
{
	struct eng_falcon *f = eng_falcon_of(t);

	h->gone = f->carriers++;
	h->gone_error = error;
	host_revisit(f, h);
	if (!host_has_carrier(h, false))
		eng_falcon_orphans_free(h);
	h->retry_at = t->now + RETRY_NS;
}

/* Returns whether a peer that was reached, but reset the carrier before it was ready, gets a
 * further one at once: it may just have been restarted. */
static bool
host_insists(struct eng_falcon_host *h, const struct eng_falcon_carrier *k, int error)
{
	return k->connected && (error == -ECONNRESET || error == -ECONNABORTED) &&
	       h->resets++ < RESETS_MOST;
}

void
eng_falcon_host_down(struct eng_transport *t, struct eng_falcon_carrier *k, int error)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_falcon_host *h = k->host;

	host_revisit(f, h); /* so it exists until its turn */
	if (!k->up && k->ours && !host_opens(h) && !host_has_carrier(h, true) &&
		!host_insists(h, k, error))
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
		rofx_lost(fc->out.x, t->now);
		eng_falcon_send(t, fc);
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
host_needs_carrier(const struct eng_falcon_host *h)
{
	return !TAILQ_EMPTY(&h->parked) || (h->nlive > 0 && !host_has_carrier(h, false));
}

/* The stages of the peer that frames need cannot be reached: its port may not distribute what
 * arrives. Requests go to those that can be. */
static void
host_settle_for_less(struct eng_transport *t, struct eng_falcon_host *h)
{
	struct eng_falcon_sender *s;

	h->tries = 0;
	h->retry_at = t->now + RETRY_NS;
	h->few_until = t->now + FEW_NS;
	TAILQ_FOREACH (s, &h->parked, next)
		s->bound = s->bound && !rofx_begins(s->x);
	eng_falcon_unpark(h);
	eng_falcon_host_wake(eng_falcon_of(t), h);
}

/* Returns how many carriers may be opened to reach all stages of the peer. Chance decides which one
 * each reaches: that a stage is missed 16 times the number of stages has a probability of e^-16. */
static unsigned
tries_most(const struct eng_falcon_host *h)
{
	const struct eng_falcon_carrier *k;
	unsigned stages = 2;

	TAILQ_FOREACH (k, &h->carriers, of_host)
		if (k->up)
			stages = SK_MAX(stages, rofx_carrier_peer_stages(k->k));
	return TRIES_MOST * stages;
}

/* Sets *user to the user that pays for a carrier until it is ready: of the first exchange that
 * needs it and whose user may have one more connection. Requests of other users before it fail.
 * Returns false when there is none. */
static bool
host_payer(struct eng_transport *t, struct eng_falcon_host *h, uint16_t *user)
{
	const struct eng_falcon_sender *first = TAILQ_FIRST(&h->parked);
	struct eng_falcon_sender *s = TAILQ_FIRST(&h->parked);
	bool failed = false;

	for (unsigned i = 0; i < PAYERS_TURN && s != NULL && (i == 0 || s != first); i++) {
		*user = s->user;
		if (sk_share_check(&t->conn_share, *user, 1) == SK_SHARE_OK)
			return true;
		if (!s->orphan && rofx_begins(s->x)) {
			sk_count(t->counters, ENG_CONN_SHARE);
			eng_falcon_fail(t, SK_CONTAINER(s, struct eng_falcon_conn, out)->c,
				ROFX_NO_RESOURCE, -ENOBUFS);
			failed = true;
		}
		TAILQ_REMOVE(&h->parked, s, next);
		TAILQ_INSERT_TAIL(&h->parked, s, next);
		s = TAILQ_FIRST(&h->parked);
	}
	if (s == NULL && h->nlive > 0) {
		*user = TAILQ_FIRST(&h->live)->out.user;
		return sk_share_check(&t->conn_share, *user, 1) == SK_SHARE_OK;
	}
	if (failed) /* those behind them are next */
		eng_falcon_host_wake(eng_falcon_of(t), h);
	return false;
}

/* A carrier that belongs to another stage of the peer than the one that a frame needs causes a
 * further one. */
static void
falcon_host_open(struct eng_transport *t, struct eng_falcon_host *h)
{
	uint16_t user;
	int rc;

	if (!host_payer(t, h, &user)) {
		if (!h->in_turn)
			h->retry_at = t->now + RETRY_NS;
		return;
	}
	if (h->tries++ >= tries_most(h)) {
		host_settle_for_less(t, h);
		return;
	}
	rc = eng_falcon_carrier_open(t, h, user);
	if (rc < 0 && host_has_carrier(h, true))
		eng_falcon_host_wake(eng_falcon_of(t), h); /* for the next try */
	else if (rc < 0)
		host_unreachable(t, h, rc);
}

static void
falcon_host_turn(struct eng_transport *t, struct eng_falcon_host *h)
{
	struct eng_falcon *f = eng_falcon_of(t);

	if (h->sweep != ENG_FALCON_REST)
		host_visit(t, h);
	host_repeat_some(t, h);
	eng_falcon_flush(t, h);
	if (h->lost_at != SK_NEVER && h->sweep == ENG_FALCON_REST && silence(t) != SK_NEVER &&
		t->now - h->lost_at >= silence(t))
		host_sweep(f, h, ENG_FALCON_LOOK);
	if (TAILQ_EMPTY(&h->parked))
		h->tries = 0;
	if (t->now >= h->retry_at && !host_opens(h) && host_needs_carrier(h))
		falcon_host_open(t, h);
	host_arm(t, h);
	if (h->sweep != ENG_FALCON_REST || h->asking_left > 0 || h->buckets_left > 0)
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
	const struct eng_falcon_host *last;
	struct eng_falcon_host *h = NULL;
	unsigned n;

	if (now >= f->hosts_due) {
		sk_wheel_poll(&f->host_wheel, now, HOSTS_TURN, host_fire, t);
		f->hosts_due = f->host_wheel.armed > 0 ? sk_wheel_next(&f->host_wheel) : SK_NEVER;
	}
	/* A host that is not done waits behind the others for the next turn of the stage. */
	last = TAILQ_LAST(&f->turns, eng_falcon_turns);
	for (n = 0; n < HOSTS_TURN && (n == 0 || h != last); n++) {
		h = TAILQ_FIRST(&f->turns);
		if (h == NULL)
			break;
		TAILQ_REMOVE(&f->turns, h, turn);
		h->in_turn = false;
		falcon_host_turn(t, h);
	}
	return n > 0;
}
