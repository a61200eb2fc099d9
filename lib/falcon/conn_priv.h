/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection and a stack as memory: each is the two sublayers' parts side by side, and the few
 * things that both need. Only stack.c and conn.c know both parts.
 */
#ifndef SAKER_FALCON_CONN_PRIV_H
#define SAKER_FALCON_CONN_PRIV_H

#include <sys/queue.h>

#include "../base/mem.h"
#include "pdl_priv.h"
#include "tl_priv.h"

/* The wheel's tick is 16 us; timers here are a round trip of 10 us long. The wheel runs on time
 * multiplied by this, so its tick is 1.024 us. */
#define FA_WHEEL_SCALE 16

enum fa_timer_kind { FA_TIMER_PDL, FA_TIMER_TL };

struct fa_timer {
	struct sk_timer timer;
	uint8_t kind; /* enum fa_timer_kind: which of the connection's two it is */
};

struct fa_conn {
	struct fa_stack *s;
	struct pdl_conn pdl;
	struct tl_conn tl;
	struct fa_params params;
	struct fa_timer pdl_timer, tl_timer;
	TAILQ_ENTRY(fa_conn) link; /* s->failed, or s->free */
	bool live;                 /* between fa_conn_create() and fa_conn_destroy() */
	bool dead;                 /* given up: nothing is sent, what comes is dropped */
	bool failing;              /* on s->failed: TL does not know yet */
	uint8_t fail_code;         /* enum fa_completion */
};

struct fa_stack {
	struct fa_config cfg;
	struct fa_ops ops;
	void *ctx;
	uint64_t now, epoch;   /* of the poll that runs; when the stack was made */
	struct sk_wheel wheel; /* runs from epoch on, see FA_WHEEL_SCALE */
	struct pdl_stack pdl;
	struct tl_stack tl;
	/* Given up since the last poll: told to TL there, so that nobody finds a connection emptied
	 * under his hands. */
	TAILQ_HEAD(, fa_conn) failed;
	TAILQ_HEAD(, fa_conn) free;
	struct fa_conn *pool;
	uint32_t pool_fresh; /* of the pool, those that were ever used */
	uint64_t counters[fa_reason_count];
};

static inline void
fa_count(struct fa_stack *s, enum fa_reason r)
{
	sk_count(s->counters, r);
}

static inline void
fa_buf_free(struct fa_stack *s, struct fa_buf *b)
{
	if (b != NULL)
		s->ops.buf_free(s->ctx, b);
}

/* `deadline` in ns of the owner's clock; SK_NEVER stops. */
void fa_timer_set(struct fa_stack *s, struct fa_timer *t, uint64_t deadline);

#endif
