/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane: the fate of frames between one queue and the wire. A frame draws its fate when it enters
 * the lane, waits in a queue, and is overtaken when it would leave the lane.
 */
#include "impair_priv.h"

#include <errno.h>
#include <rte_cycles.h>
#include <rte_malloc.h>

#include "../../../lib/base/mem.h"

SK_REASONS_DEFINE(impair, IMPAIR_NONE, IMPAIR_REASONS)

/* The random numbers that each frame draws, in this order and whatever the probabilities are, so
 * that one impairment does not change another's pattern. */
struct draws {
	uint64_t drop, dup, reorder, span, ecn, corrupt, corrupt_crc, where, jitter;
};

/* Distributes seeds (splitmix64). draw() generates the random numbers (xorshift64*). */
static uint64_t
lane_spread(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static uint64_t
draw(struct lane *l)
{
	uint64_t x = l->rng;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	l->rng = x;
	return x * 0x2545f4914f6cdd1dULL;
}

static void
draw_all(struct lane *l, struct draws *d)
{
	d->drop = draw(l);
	d->dup = draw(l);
	d->reorder = draw(l);
	d->span = draw(l);
	d->ecn = draw(l);
	d->corrupt = draw(l);
	d->corrupt_crc = draw(l);
	d->where = draw(l);
	d->jitter = draw(l);
}

static bool
hits(uint64_t random, uint64_t threshold)
{
	return random >> 11 < threshold;
}

static uint64_t
threshold(double p)
{
	return (uint64_t)(p * (double)(1ULL << 53));
}

int
impair_lane_init(struct lane *l, uint32_t size, struct rte_mempool *pool, int socket)
{
	memset(l, 0, sizeof(*l));
	rte_spinlock_init(&l->lock);
	l->slots = rte_zmalloc_socket("impair", size * sizeof(*l->slots), 0, socket);
	l->size = size;
	l->pool = pool;
	return l->slots != NULL ? 0 : -ENOMEM;
}

void
impair_lane_fini(struct lane *l)
{
	impair_lane_free_held(l);
	rte_free(l->slots);
	l->slots = NULL;
}

static bool
asks_for_anything(const struct impair_cfg *cfg)
{
	return cfg->drop + cfg->dup + cfg->reorder + cfg->ecn + cfg->corrupt + cfg->corrupt_crc >
		       0 ||
	       (cfg->delay_us | cfg->jitter_us | cfg->rate_mbps) != 0;
}

void
impair_lane_set(struct lane *l, const struct impair_cfg *cfg, bool tx, unsigned id)
{
	double hz = (double)rte_get_tsc_hz();
	double cycles_per_us = hz / 1e6;

	rte_spinlock_lock(&l->lock);
	l->cfg = (struct lane_cfg){
		.active = (tx ? cfg->tx : cfg->rx) && asks_for_anything(cfg),
		.timed = (cfg->delay_us | cfg->jitter_us | cfg->rate_mbps) != 0,
		.drop = threshold(cfg->drop),
		.dup = threshold(cfg->dup),
		.reorder = threshold(cfg->reorder),
		.ecn = threshold(cfg->ecn),
		.corrupt = threshold(cfg->corrupt),
		.corrupt_crc = threshold(cfg->corrupt_crc),
		.delay = (uint64_t)(cfg->delay_us * cycles_per_us),
		.jitter = (uint64_t)(cfg->jitter_us * cycles_per_us),
		.reorder_time = (uint64_t)(cfg->reorder_us * cycles_per_us),
		.reorder_frames = cfg->reorder_frames,
	};
	if (cfg->rate_mbps != 0)
		l->cfg.cycles_per_byte = 8 * cycles_per_us / cfg->rate_mbps;
	/* The state of the generator must not be 0, which it would never leave. */
	l->rng = lane_spread(cfg->seed ^ lane_spread(id * 2 + tx)) | 1;
	rte_spinlock_unlock(&l->lock);
}

/* Returns the slot `i` places behind the head. */
static struct lane_slot *
slot(const struct lane *l, uint32_t i)
{
	uint32_t at = l->head + i;

	return &l->slots[at < l->size ? at : at - l->size];
}

static void
push(struct lane *l, struct rte_mbuf *m, uint64_t due, uint32_t span)
{
	if (l->count == l->size) {
		sk_count(l->counters, IMPAIR_QUEUE_FULL);
		rte_pktmbuf_free(m);
		return;
	}
	*slot(l, l->count++) = (struct lane_slot){.m = m, .due = due, .span = span};
	l->last_due = due;
}

/* Counts the outcome of an alteration. Returns false if the frame was lost. */
static bool
altered(struct lane *l, struct rte_mbuf *m, int rc, enum impair_reason reason)
{
	if (rc > 0)
		sk_count(l->counters, reason);
	if (rc >= 0)
		return true;
	sk_count(l->counters, IMPAIR_NO_MBUF);
	rte_pktmbuf_free(m);
	return false;
}

static bool
alter(struct lane *l, struct rte_mbuf **m, const struct draws *d)
{
	const struct lane_cfg *c = &l->cfg;
	struct rte_mempool *pool = impair_lane_pool(l, *m);

	if (hits(d->corrupt, c->corrupt) &&
		!altered(l, *m, impair_alter_word(m, pool, d->where), IMPAIR_CORRUPT))
		return false;
	if (hits(d->corrupt_crc, c->corrupt_crc) &&
		!altered(l, *m, impair_alter_neutral(m, pool, d->where), IMPAIR_CORRUPT_CRC))
		return false;
	return !hits(d->ecn, c->ecn) || altered(l, *m, impair_alter_ecn(m, pool), IMPAIR_ECN);
}

/* Returns the time at which the rate limiter has sent the frame, and reserves it. */
static uint64_t
link_time(struct lane *l, const struct rte_mbuf *m, uint64_t now)
{
	if (l->cfg.cycles_per_byte == 0)
		return now;
	l->link_free = SK_MAX(l->link_free, now) +
		       (uint64_t)((m->pkt_len + IMPAIR_WIRE_BYTES) * l->cfg.cycles_per_byte);
	return l->link_free;
}

/* Returns the time at which a frame that arrived at `now` leaves the lane. The order is kept. */
static uint64_t
due_time(struct lane *l, const struct rte_mbuf *m, const struct draws *d, uint64_t now)
{
	uint64_t due = link_time(l, m, now);

	due += l->cfg.delay;
	if (l->cfg.jitter != 0)
		due += d->jitter % (l->cfg.jitter + 1);
	return SK_MAX(due, l->last_due);
}

void
impair_lane_put(struct lane *l, struct rte_mbuf *m, uint64_t now)
{
	struct rte_mbuf *twin = NULL;
	uint32_t span = 0;
	struct draws d;

	sk_count(l->counters, IMPAIR_FRAMES);
	if (!l->cfg.active) {
		push(l, m, SK_MAX(now, l->last_due), 0);
		return;
	}
	draw_all(l, &d);
	if (hits(d.drop, l->cfg.drop)) {
		sk_count(l->counters, IMPAIR_DROP);
		if (l->count < l->size)
			link_time(l, m, now); /* the frame is lost on the wire, after the limiter */
		rte_pktmbuf_free(m);
		return;
	}
	if (!alter(l, &m, &d))
		return;
	/* A frame that a full queue drops does not use the rate limiter. */
	if (l->count == l->size) {
		push(l, m, now, 0);
		return;
	}
	if (hits(d.dup, l->cfg.dup)) {
		twin = rte_pktmbuf_copy(m, impair_lane_pool(l, m), 0, UINT32_MAX);
		sk_count(l->counters, twin != NULL ? IMPAIR_DUP : IMPAIR_NO_MBUF);
	}
	if (hits(d.reorder, l->cfg.reorder))
		span = (uint32_t)(1 + d.span % l->cfg.reorder_frames);
	push(l, m, due_time(l, m, &d, now), span);
	if (twin != NULL)
		push(l, twin, due_time(l, twin, &d, now), 0);
}

/* Takes a frame that has been overtaken often enough or has waited long enough. */
static struct rte_mbuf *
take_aside(struct lane *l, uint64_t now)
{
	for (unsigned i = 0; i < l->naside; i++) {
		struct rte_mbuf *m = l->aside[i].m;

		if (l->aside[i].left != 0 && l->aside[i].deadline > now)
			continue;
		l->naside--;
		memmove(&l->aside[i], &l->aside[i + 1], (l->naside - i) * sizeof(l->aside[0]));
		return m;
	}
	return NULL;
}

static void
step_aside(struct lane *l, const struct lane_slot *s, uint64_t now)
{
	l->aside[l->naside++] = (struct lane_aside){
		.m = s->m,
		.deadline = now + l->cfg.reorder_time,
		.left = s->span,
	};
	sk_count(l->counters, IMPAIR_REORDER);
}

/* Returns the next frame that is due, or NULL. */
static struct rte_mbuf *
take_one(struct lane *l, uint64_t now)
{
	struct rte_mbuf *m = l->naside != 0 ? take_aside(l, now) : NULL;

	while (m == NULL && l->count != 0) {
		struct lane_slot s = l->slots[l->head];

		if (s.due > now)
			break;
		l->head = l->head + 1 < l->size ? l->head + 1 : 0;
		l->count--;
		if (s.span != 0 && l->naside < IMPAIR_ASIDE) {
			step_aside(l, &s, now);
			continue;
		}
		m = s.m;
		for (unsigned i = 0; i < l->naside; i++)
			l->aside[i].left -= l->aside[i].left != 0;
	}
	return m;
}

unsigned
impair_lane_take(struct lane *l, uint64_t now, struct rte_mbuf **out, unsigned max)
{
	unsigned n = 0;

	while (n < max) {
		struct rte_mbuf *m = take_one(l, now);

		if (m == NULL)
			break;
		l->bytes += m->pkt_len;
		out[n++] = m;
	}
	sk_count_n(l->counters, IMPAIR_PASSED, n);
	return n;
}

void
impair_lane_flush(struct lane *l)
{
	rte_spinlock_lock(&l->lock);
	for (uint32_t i = 0; i < l->count; i++) {
		struct lane_slot *s = slot(l, i);

		s->due = 0;
		s->span = 0;
	}
	for (unsigned i = 0; i < l->naside; i++)
		l->aside[i].left = 0;
	l->last_due = 0;
	l->link_free = 0;
	rte_spinlock_unlock(&l->lock);
}

void
impair_lane_free_held(struct lane *l)
{
	rte_spinlock_lock(&l->lock);
	sk_count_n(l->counters, IMPAIR_FLUSHED, l->count + l->naside + l->nready);
	for (; l->count != 0; l->count--) {
		rte_pktmbuf_free(l->slots[l->head].m);
		l->head = l->head + 1 < l->size ? l->head + 1 : 0;
	}
	while (l->naside != 0)
		rte_pktmbuf_free(l->aside[--l->naside].m);
	while (l->nready != 0)
		rte_pktmbuf_free(l->ready[--l->nready]);
	l->last_due = 0;
	l->link_free = 0;
	rte_spinlock_unlock(&l->lock);
}
