/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hashed, hierarchical timer wheel for one lcore: O(1) set and stop, the timer is embedded in its
 * owner, nothing is scanned that has nothing to do. It has no clock: `now` is nanoseconds on
 * whatever clock the caller keeps, and never goes back.
 */
#ifndef SAKER_BASE_WHEEL_H
#define SAKER_BASE_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SK_WHEEL_TICK_NS                                                                           \
	(1u << 14) /* 16.4 us: a timer fires at most one tick late, never early                    \
		    */
#define SK_WHEEL_SLOTS  256
#define SK_WHEEL_LEVELS 4 /* reach: 2^32 ticks = 19 hours; later deadlines are clamped */
#define SK_NEVER        UINT64_MAX

struct sk_timer {
	struct sk_timer *next, **pprev; /* pprev NULL: not set */
	uint64_t deadline;              /* ns */
};

struct sk_wheel {
	uint64_t tick;  /* the tick that has been worked off */
	uint64_t armed; /* how many timers are set */
	uint64_t occupied[SK_WHEEL_LEVELS][SK_WHEEL_SLOTS / 64];
	struct sk_timer *slot[SK_WHEEL_LEVELS][SK_WHEEL_SLOTS];
};

void sk_wheel_init(struct sk_wheel *w, uint64_t now);
/* Sets or moves `t`. A deadline in the past fires at the next poll; SK_NEVER stops the timer. */
void sk_timer_set(struct sk_wheel *w, struct sk_timer *t, uint64_t deadline);
void sk_timer_stop(struct sk_wheel *w, struct sk_timer *t);
static inline bool
sk_timer_is_set(const struct sk_timer *t)
{
	return t->pprev != NULL;
}
/* Calls `fire` for each timer whose deadline is due, after taking it off (so that it may set it
 * again, or stop others). At most `budget` timers; returns how many fired. A budget that is too
 * small for what is due makes timers late, the earliest deadlines go first. */
unsigned sk_wheel_poll(struct sk_wheel *w, uint64_t now, unsigned budget,
	void (*fire)(void *ctx, struct sk_timer *t, uint64_t now), void *ctx);
/* The earliest time (ns) at which a poll finds something to do, or SK_NEVER: never more than a tick
 * behind the next deadline, and before it by as much as the timer is far away; polls until then may
 * be left out. */
uint64_t sk_wheel_next(const struct sk_wheel *w);

#endif
