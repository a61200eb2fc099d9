/* SPDX-License-Identifier: BSD-3-Clause */
/* The stack: configuration, the turn of the loop, timers, and connections that have failed. */
#include <stdlib.h>

#include "conn_priv.h"

#define TIMERS_PER_POLL 256
#define FAILS_PER_POLL  64
/* The age of a backlog at the port from which peers must not increase ncwnd, and from which they
 * must reduce it; the level that means the former (Swift's default target, 10.5.3), and the age
 * that adds one to it. A burst of a few hundred frames takes less than the first. Peers reduce it
 * only if an acknowledgement has reported a missing packet within the last time below: otherwise
 * the queue of the port holds all that they send, and with windows of one packet each packet would
 * cost an acknowledgement. */
#define BACKLOG_HOLD_NS    1000000u
#define BACKLOG_CUT_NS     2000000u
#define BACKLOG_LEVEL      15u
#define BACKLOG_STEP_NS    500000u
#define BACKLOG_MISSING_NS 100000000u

void
fa_config_default(struct fa_config *cfg)
{
	*cfg = (struct fa_config){
		.max_conns = 4096,
		/* Before the first measurement, the peer may be busy with other connections. */
		.rto_initial_ns = 4000000,
		/* One millisecond: tail loss probes and RACK repair a loss within a few round
		 * trips. The RTO is for the cases that they cannot repair, and a spurious one costs
		 * a packet. */
		.rto_min_ns = 1000000,
		.ulp_rto_ns = 5000000,
		/* A host whose processors are busy may not run for some hundred milliseconds. With
		 * these timeouts, a peer is given up after 3.5 s of silence, and as long again for
		 * the Resync; after 9.6 s at most, whatever the round trip was. */
		.rto_max_ns = 200000000,
		.max_retransmits = 23,
		.ack_delay_ns = 8000,
		.ack_count = 10,
		.ar_window = 2,
		.ar_percent = 10,
		.ooo_threshold = 3,
		.rack = true,
		.ttl = 64,
		.seed = 1,
	};
	tl_config_default(cfg);
}

static bool
falcon_stack_config_ok(const struct fa_config *cfg)
{
	return cfg->max_conns && cfg->max_conns <= 1u << 24 && cfg->rto_initial_ns &&
	       cfg->rto_min_ns && cfg->rto_max_ns && cfg->ulp_rto_ns && cfg->ack_count &&
	       cfg->ack_count <= 1024 && cfg->ar_percent <= 100 &&
	       cfg->ooo_threshold < FA_DATA_WINDOW;
}

struct fa_stack *
fa_stack_create(const struct fa_config *cfg, const struct fa_ops *ops, void *ctx, uint64_t now)
{
	struct fa_stack *s;

	if (!falcon_stack_config_ok(cfg))
		return NULL;
	s = sk_mem_alloc(sizeof(*s));
	if (s == NULL)
		return NULL;
	s->cfg = *cfg;
	s->ops = *ops;
	s->ctx = ctx;
	s->now = s->epoch = now;
	TAILQ_INIT(&s->failed);
	TAILQ_INIT(&s->free);
	sk_wheel_init(&s->wheel, 0);
	pdl_stack_init(s);
	s->pool = sk_mem_alloc(cfg->max_conns * sizeof(*s->pool));
	if (s->pool == NULL || tl_stack_init(s, now)) {
		sk_mem_free(s->pool, cfg->max_conns * sizeof(*s->pool));
		sk_mem_free(s, sizeof(*s));
		return NULL;
	}
	return s;
}

void
fa_stack_destroy(struct fa_stack *s)
{
	for (uint32_t i = 0; i < s->pool_fresh; i++)
		if (s->pool[i].live)
			fa_conn_destroy(&s->pool[i]);
	tl_stack_fini(s);
	pdl_stack_fini(s);
	sk_mem_free(s->pool, s->cfg.max_conns * sizeof(*s->pool));
	sk_mem_free(s, sizeof(*s));
}

void
fa_stack_scarce(struct fa_stack *s, bool scarce)
{
	s->scarce = scarce;
}

const uint64_t *
fa_stack_counters(const struct fa_stack *s)
{
	return s->counters;
}

/* ---- Timers ---- */

void
fa_timer_set(struct fa_stack *s, struct sk_timer *t, uint64_t deadline)
{
	uint64_t span = deadline > s->epoch ? deadline - s->epoch : 0;

	if (deadline != SK_NEVER)
		deadline = SK_MIN(span, SK_NEVER / FA_WHEEL_SCALE - 1) * FA_WHEEL_SCALE;
	sk_timer_set(&s->wheel, t, deadline);
}

static void
falcon_stack_fire(void *ctx, struct sk_timer *timer, uint64_t scaled)
{
	struct fa_stack *s = ctx;
	struct fa_conn *c =
		&s->pool[((uintptr_t)timer - (uintptr_t)s->pool) / sizeof(struct fa_conn)];

	if (timer == &c->pdl.timer)
		pdl_timer(c, s->now);
	else
		tl_timer(c, s->now);
}

/* ---- The turn ---- */

static void
falcon_stack_bury(struct fa_stack *s, uint64_t now)
{
	struct fa_conn *c;

	for (unsigned n = 0; n < FAILS_PER_POLL && (c = TAILQ_FIRST(&s->failed)) != NULL; n++) {
		TAILQ_REMOVE(&s->failed, c, link);
		c->failing = false;
		pdl_conn_fini(c, now, c->fail_code);
		tl_dead(c, now, c->fail_code);
	}
}

void
fa_stack_stopped(struct fa_stack *s, uint64_t gap)
{
	s->stopped += gap;
}

void
fa_stack_missing(struct fa_stack *s)
{
	s->pdl.missing_until = s->now + BACKLOG_MISSING_NS;
}

void
fa_stack_backlog(struct fa_stack *s, uint64_t ns)
{
	uint64_t steps = 0;

	s->pdl.backlog = 0;
	if (ns < BACKLOG_HOLD_NS)
		return;
	if (ns >= BACKLOG_CUT_NS && s->now <= s->pdl.missing_until)
		steps = 1 + (ns - BACKLOG_CUT_NS) / BACKLOG_STEP_NS;
	s->pdl.backlog = (uint8_t)SK_MIN(BACKLOG_LEVEL + steps, 31u);
}

bool
fa_stack_ready(const struct fa_stack *s)
{
	return !TAILQ_EMPTY(&s->pdl.tx);
}

void
fa_stack_timers(struct fa_stack *s, uint64_t now)
{
	s->now = now;
	sk_wheel_poll(&s->wheel, (now - s->epoch) * FA_WHEEL_SCALE, TIMERS_PER_POLL,
		falcon_stack_fire, s);
}

unsigned
fa_stack_send(struct fa_stack *s, uint64_t now, unsigned budget)
{
	s->now = now;
	if (!TAILQ_EMPTY(&s->failed))
		falcon_stack_bury(s, now);
	tl_poll(s, now);
	return pdl_poll(s, now, budget);
}

unsigned
fa_stack_poll(struct fa_stack *s, uint64_t now, unsigned budget)
{
	fa_stack_timers(s, now);
	return fa_stack_send(s, now, budget);
}

uint64_t
fa_stack_deadline(const struct fa_stack *s)
{
	uint64_t wheel = sk_wheel_next(&s->wheel);
	uint64_t next = tl_deadline(s);

	if (!TAILQ_EMPTY(&s->failed) || pdl_busy(s))
		return s->now;
	if (wheel != SK_NEVER)
		next = SK_MIN(next, s->epoch + wheel / FA_WHEEL_SCALE);
	return SK_MAX(next, s->now);
}
