/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a connection and of a stack: the parts of the two sublayers side by side, and the
 * few fields that both use. Only stack.c and conn.c access both parts.
 */
#ifndef SAKER_FALCON_CONN_PRIV_H
#define SAKER_FALCON_CONN_PRIV_H

#include <sys/queue.h>

#include "../base/mem.h"
#include "pdl_priv.h"
#include "tl_priv.h"

/* A tick of the wheel is 16 us, but timers here are as short as a round trip of 10 us. The wheel
 * runs on time multiplied by this factor, so that its tick is 1.024 us. */
#define FA_WHEEL_SCALE 16

/* The members that each packet uses come first, in as few cache lines as possible: with thousands
 * of connections that take turns, each line is a cache miss. */
struct fa_conn {
	_Alignas(64) struct fa_stack *s;
	bool live;                 /* between fa_conn_create() and fa_conn_destroy() */
	bool dead;                 /* failed: Falcon sends no packet, and drops those that arrive */
	bool failing;              /* in s->failed: tl_dead() has not run yet */
	uint8_t fail_code;         /* enum fa_completion */
	struct fa_params params;   /* its first 40 bytes */
	TAILQ_ENTRY(fa_conn) link; /* in s->failed, or in s->free */
	struct sk_timer tl_timer;
	struct tl_conn tl;
	struct pdl_conn pdl;
};

struct fa_stack {
	struct fa_config cfg;
	struct fa_ops ops;
	void *ctx;
	uint64_t now, epoch;   /* time of the current poll; time of creation */
	uint64_t stopped;      /* ns in all calls of fa_stack_stopped() */
	struct sk_wheel wheel; /* starts at epoch; see FA_WHEEL_SCALE */
	struct pdl_stack pdl;
	struct tl_stack tl;
	/* Connections that have failed since the last poll, which calls tl_dead() for them: so no
	 * caller sees a connection lose its packets during its own call. */
	TAILQ_HEAD(, fa_conn) failed;
	TAILQ_HEAD(, fa_conn) free;
	struct fa_conn *pool;
	uint32_t pool_fresh; /* elements of `pool` that were ever used */
	bool scarce;         /* fa_stack_scarce() */
	uint64_t counters[fa_reason_count];
};

/* Returns `now` on a clock (ns) that stands still while the owner's loop does not run. The time for
 * which a peer is silent is the difference of two times of this clock. */
static inline uint64_t
fa_observed(const struct fa_stack *s, uint64_t now)
{
	return now - s->stopped;
}

static inline void
fa_count(struct fa_stack *s, enum fa_reason r)
{
	sk_count(s->counters, r);
}

/* Counts an event of a connection that is rare, and reports it to fa_ops.trace. */
static inline void
fa_trace(struct fa_conn *c, enum fa_reason r)
{
	fa_count(c->s, r);
	if (c->s->ops.trace != NULL)
		c->s->ops.trace(c->s->ctx, c, r);
}

static inline void
fa_buf_free(struct fa_stack *s, struct fa_buf *b)
{
	if (b != NULL)
		s->ops.buf_free(s->ctx, b);
}

/* Frees a chain of payloads. */
static inline void
fa_bufs_free(struct fa_stack *s, struct fa_buf *chain)
{
	struct fa_buf *next;

	if (chain != NULL && s->ops.bufs_free != NULL) {
		s->ops.bufs_free(s->ctx, chain);
		return;
	}
	for (; chain != NULL; chain = next) {
		next = chain->next;
		s->ops.buf_free(s->ctx, chain);
	}
}

/* Records that an acknowledgement reports packets as missing. Until pdl_stack.missing_until, a
 * backlog then means that the port drops packets. */
void fa_stack_missing(struct fa_stack *s);
/* Sets a timer to `deadline` in ns of the owner's clock; SK_NEVER stops it. */
void fa_timer_set(struct fa_stack *s, struct sk_timer *t, uint64_t deadline);

#endif
