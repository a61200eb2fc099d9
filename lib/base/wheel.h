/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hashed, hierarchical timer wheel for one lcore. Setting and stopping a timer takes constant
 * time; the owner embeds the timer in its own struct; a poll visits only slots that have a timer.
 * The wheel has no clock: `now` is in nanoseconds on any clock of the caller that never goes back.
 */
#ifndef SAKER_BASE_WHEEL_H
#define SAKER_BASE_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 16.4 us: a timer fires at most one tick late, and never early. */
#define SK_WHEEL_TICK_NS (1u << 14)
#define SK_WHEEL_SLOTS   256
/* 2^32 ticks = 19 hours; beyond, a timer is placed again */
#define SK_WHEEL_LEVELS 4
#define SK_NEVER        UINT64_MAX

struct sk_timer {
	struct sk_timer *next, **pprev; /* pprev NULL: the timer is not set */
	uint64_t deadline;              /* ns */
};

struct sk_wheel {
	uint64_t tick;  /* the tick up to which the wheel has fired */
	uint64_t due;   /* ns: before this time, a poll has nothing to do; 0: it always has */
	uint64_t armed; /* number of timers that are set */
	uint64_t occupied[SK_WHEEL_LEVELS][SK_WHEEL_SLOTS / 64];
	struct sk_timer *slot[SK_WHEEL_LEVELS][SK_WHEEL_SLOTS];
};

/* Makes an empty wheel at the time `now` (ns). */
void sk_wheel_init(struct sk_wheel *w, uint64_t now);
/* Sets the timer, or moves it, to `deadline` (ns). A deadline in the past fires at the next poll;
 * SK_NEVER stops the timer. */
void sk_timer_set(struct sk_wheel *w, struct sk_timer *t, uint64_t deadline);
void sk_timer_stop(struct sk_wheel *w, struct sk_timer *t);
static inline bool
sk_timer_is_set(const struct sk_timer *t)
{
	return t->pprev != NULL;
}
/* Fires the timers whose deadline is due, at most `budget` of them, and returns their number. It
 * removes each timer before the call of fire(), which may set that timer again and stop others.
 * When `budget` is too small, timers fire late, the earliest deadlines first. */
unsigned sk_wheel_poll(struct sk_wheel *w, uint64_t now, unsigned budget,
	void (*fire)(void *ctx, struct sk_timer *t, uint64_t now), void *ctx);
/* Returns the time (ns) of the next necessary poll, or SK_NEVER without a timer. It is never more
 * than a tick behind the next deadline. It may lie before it: the wheel has to move a timer with a
 * distant deadline down, or an earlier timer was stopped. */
static inline uint64_t
sk_wheel_next(const struct sk_wheel *w)
{
	uint64_t tick = w->tick * SK_WHEEL_TICK_NS;

	if (w->armed == 0)
		return SK_NEVER;
	return w->due > tick ? w->due : tick;
}

#endif
