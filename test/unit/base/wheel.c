/* SPDX-License-Identifier: BSD-3-Clause */
/* The timer wheel: the timers that fire, their times, and the number of steps. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "../../../lib/base/wheel.h"

#define TICK ((uint64_t)SK_WHEEL_TICK_NS)
#define MANY 100000

static struct sk_wheel w;

struct owner {
	struct sk_timer t;
	unsigned fired;
	uint64_t at;
};

/* Actions of the callback besides its notes. */
struct plan {
	struct sk_timer *stop; /* the timer to stop */
	struct sk_timer *move; /* the timer to set to `to` */
	uint64_t again;        /* time after `now` to which the fired timer is set again */
	uint64_t to;
	unsigned fired;
	struct sk_timer *order[16];
};

static void
note(void *ctx, struct sk_timer *t, uint64_t now)
{
	struct plan *plan = ctx;
	struct owner *o = (struct owner *)t;

	cr_assert(!sk_timer_is_set(t));
	cr_assert_geq(now, t->deadline, "early");
	o->fired++;
	o->at = now;
	if (plan == NULL)
		return;
	if (plan->fired < 16)
		plan->order[plan->fired] = t;
	plan->fired++;
	if (plan->stop != NULL)
		sk_timer_stop(&w, plan->stop);
	if (plan->move != NULL)
		sk_timer_set(&w, plan->move, plan->to);
	if (plan->again != 0)
		sk_timer_set(&w, t, now + plan->again - 1);
}

static uint64_t rng = 88172645463325252ull;

static uint64_t
random64(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

Test(wheel, empty_wheel_has_nothing_to_do)
{
	sk_wheel_init(&w, 5 * TICK);
	cr_assert_eq(sk_wheel_next(&w), SK_NEVER);
	cr_assert_eq(sk_wheel_poll(&w, UINT64_MAX, 10, note, NULL), 0);
	cr_assert_eq(sk_wheel_next(&w), SK_NEVER);
}

/* Deadlines around each boundary of ticks and levels, from a start just before a carry. */
Test(wheel, never_early_and_at_most_a_tick_late)
{
	static const uint64_t starts[] = {0, 1, 255, 256, 65535, (1ull << 24) - 1, (1ull << 32) - 1,
		(1ull << 32) - 300, 0x123456789ull};

	for (unsigned s = 0; s < sizeof(starts) / sizeof(starts[0]); s++)
		for (unsigned e = 0; e < 47; e++)
			for (int off = -1; off <= 1; off++) {
				uint64_t start = starts[s] * TICK + 77;
				uint64_t deadline = start + (1ull << e) + (uint64_t)off;
				struct owner o = {0};

				sk_wheel_init(&w, start);
				sk_timer_set(&w, &o.t, deadline);
				cr_assert(sk_timer_is_set(&o.t));
				sk_wheel_poll(&w, deadline - 1, 10, note, NULL);
				cr_assert_eq(o.fired, 0, "early: %lu + %lu", start, deadline);
				sk_wheel_poll(&w, deadline + TICK - 1, 10, note, NULL);
				cr_assert_eq(o.fired, 1, "late: %lu + %lu", start, deadline);
				cr_assert_eq(w.armed, 0);
				cr_assert_eq(sk_wheel_next(&w), SK_NEVER);
			}
}

Test(wheel, deadline_in_the_past_fires_at_the_next_poll)
{
	struct owner o = {0};

	sk_wheel_init(&w, 1000 * TICK);
	sk_timer_set(&w, &o.t, 3);
	cr_assert_eq(sk_wheel_next(&w), 1000 * TICK);
	cr_assert_eq(sk_wheel_poll(&w, 1000 * TICK, 10, note, NULL), 1);
	cr_assert_eq(o.fired, 1);
	/* The same holds when time does not advance, or the caller's clock is behind. */
	sk_timer_set(&w, &o.t, 4);
	cr_assert_eq(sk_wheel_poll(&w, 999 * TICK, 10, note, NULL), 1);
	cr_assert_eq(o.fired, 2);
}

Test(wheel, deadline_beyond_the_reach_is_kept)
{
	uint64_t reach = TICK << 32;
	struct owner far = {0}, farther = {0};

	sk_wheel_init(&w, 12345 * TICK);
	sk_timer_set(&w, &far.t, 5 * reach + 99);
	sk_timer_set(&w, &farther.t, 7 * reach + 99);
	sk_wheel_poll(&w, 5 * reach + 98, 1000, note, NULL);
	cr_assert_eq(far.fired, 0);
	sk_wheel_poll(&w, 5 * reach + 98 + TICK, 1000, note, NULL);
	cr_assert_eq(far.fired, 1);
	cr_assert_eq(farther.fired, 0);
	sk_wheel_poll(&w, 7 * reach + 98 + TICK, 1000, note, NULL);
	cr_assert_eq(farther.fired, 1);
}

Test(wheel, never_stops_the_timer)
{
	struct owner o = {0};

	sk_wheel_init(&w, 0);
	sk_timer_set(&w, &o.t, 10 * TICK);
	sk_timer_set(&w, &o.t, SK_NEVER);
	cr_assert(!sk_timer_is_set(&o.t));
	cr_assert_eq(w.armed, 0);
	cr_assert_eq(sk_wheel_next(&w), SK_NEVER);
}

Test(wheel, set_moves_a_timer_that_is_set)
{
	struct owner o = {0};

	sk_wheel_init(&w, 0);
	sk_timer_set(&w, &o.t, 10 * TICK);
	sk_timer_set(&w, &o.t, 100000 * TICK);
	cr_assert_eq(w.armed, 1);
	cr_assert_eq(sk_wheel_poll(&w, 99999 * TICK, 10, note, NULL), 0);
	sk_timer_set(&w, &o.t, 100001 * TICK);
	cr_assert_eq(sk_wheel_poll(&w, 100000 * TICK, 10, note, NULL), 0);
	cr_assert_eq(sk_wheel_poll(&w, 100001 * TICK, 10, note, NULL), 1);
	cr_assert_eq(o.fired, 1);
}

Test(wheel, stopped_timer_does_not_fire_and_leaves_its_neighbours)
{
	struct owner o[3] = {0};

	sk_wheel_init(&w, 0);
	for (unsigned stop = 0; stop < 3; stop++) {
		for (unsigned i = 0; i < 3; i++)
			sk_timer_set(&w, &o[i].t, 700 * TICK);
		sk_timer_stop(&w, &o[stop].t);
		cr_assert(!sk_timer_is_set(&o[stop].t));
		sk_timer_stop(&w, &o[stop].t);
		cr_assert_eq(w.armed, 2);
		cr_assert_eq(sk_wheel_poll(&w, 700 * TICK, 10, note, NULL), 2);
		for (unsigned i = 0; i < 3; i++) {
			cr_assert_eq(o[i].fired, i != stop);
			o[i].fired = 0;
		}
		sk_wheel_init(&w, 0);
	}
}

Test(wheel, callback_may_stop_another_that_is_due)
{
	struct owner o[3] = {0};
	struct plan plan = {0};

	sk_wheel_init(&w, 0);
	sk_timer_set(&w, &o[0].t, 1 * TICK);
	sk_timer_set(&w, &o[1].t, 2 * TICK);
	sk_timer_set(&w, &o[2].t, 3 * TICK);
	plan.stop = &o[1].t;
	cr_assert_eq(sk_wheel_poll(&w, 10 * TICK, 10, note, &plan), 2);
	cr_assert_eq(o[0].fired, 1);
	cr_assert_eq(o[1].fired, 0);
	cr_assert_eq(o[2].fired, 1);
	cr_assert_eq(w.armed, 0);
	cr_assert_eq(sk_wheel_poll(&w, 99 * TICK, 10, note, NULL), 0);
}

Test(wheel, callback_may_move_another_that_is_due)
{
	struct owner o[2] = {0};
	struct plan plan = {.to = 50 * TICK};

	sk_wheel_init(&w, 0);
	sk_timer_set(&w, &o[0].t, 1 * TICK);
	sk_timer_set(&w, &o[1].t, 2 * TICK);
	plan.move = &o[1].t;
	cr_assert_eq(sk_wheel_poll(&w, 10 * TICK, 10, note, &plan), 1);
	cr_assert_eq(w.armed, 1);
	cr_assert_eq(sk_wheel_poll(&w, 49 * TICK, 10, note, NULL), 0);
	cr_assert_eq(sk_wheel_poll(&w, 50 * TICK, 10, note, NULL), 1);
	cr_assert_eq(o[1].fired, 1);
}

Test(wheel, callback_that_sets_its_timer_again_does_not_loop)
{
	struct plan plan = {.again = 1};
	struct owner o = {0};

	sk_wheel_init(&w, 0);
	sk_timer_set(&w, &o.t, 3 * TICK);
	cr_assert_eq(sk_wheel_poll(&w, 10 * TICK, 100, note, &plan), 1);
	cr_assert_eq(sk_wheel_poll(&w, 10 * TICK, 100, note, &plan), 1);
	cr_assert_eq(w.armed, 1);
	plan.again = 2 * TICK;
	cr_assert_eq(sk_wheel_poll(&w, 10 * TICK, 100, note, &plan), 1);
	cr_assert_eq(sk_wheel_poll(&w, 11 * TICK, 100, note, &plan), 0);
	cr_assert_eq(sk_wheel_poll(&w, 12 * TICK, 100, note, &plan), 1);
}

Test(wheel, budget_bounds_a_poll_and_the_earliest_go_first)
{
	struct owner o[10] = {0};
	struct plan plan = {0};
	unsigned fired = 0;

	sk_wheel_init(&w, 0);
	for (unsigned i = 0; i < 10; i++)
		sk_timer_set(&w, &o[i].t, (uint64_t)(10 - i) * 1000 * TICK);
	for (unsigned poll = 0; fired < 10; poll++) {
		unsigned n = sk_wheel_poll(&w, 20000 * TICK, 3, note, &plan);

		cr_assert_leq(n, 3);
		cr_assert_lt(poll, 20, "no progress");
		fired += n;
		cr_assert_eq(w.armed, 10 - fired);
	}
	for (unsigned i = 0; i < 10; i++)
		cr_assert_eq(plan.order[i], &o[9 - i].t, "number %u", i);
	cr_assert_eq(sk_wheel_poll(&w, 20000 * TICK, 0, note, NULL), 0);
}

/* A slot of a higher level has more timers than one poll may move. */
Test(wheel, moves_are_bounded_and_delay_nothing_for_good)
{
	static struct owner o[1000];
	unsigned fired = 0;

	sk_wheel_init(&w, 0);
	for (unsigned i = 0; i < 1000; i++)
		sk_timer_set(&w, &o[i].t, (70000 + i % 7) * TICK);
	for (unsigned poll = 0; fired < 1000; poll++) {
		cr_assert_lt(poll, 1000, "no progress");
		fired += sk_wheel_poll(&w, 80000 * TICK, 10, note, NULL);
		cr_assert_leq(sk_wheel_next(&w) == SK_NEVER ? 0 : sk_wheel_next(&w), 70007 * TICK);
		if (poll == 10)
			cr_assert_eq(fired, 0, "all moved at once");
	}
	for (unsigned i = 0; i < 1000; i++)
		cr_assert_eq(o[i].fired, 1);
}

Test(wheel, backlog_does_not_hide_from_next)
{
	struct owner o[4] = {0};

	sk_wheel_init(&w, 0);
	for (unsigned i = 0; i < 4; i++)
		sk_timer_set(&w, &o[i].t, 300 * TICK);
	cr_assert_eq(sk_wheel_poll(&w, 5000 * TICK, 1, note, NULL), 1);
	cr_assert_leq(sk_wheel_next(&w), 300 * TICK);
	cr_assert_eq(sk_wheel_poll(&w, 5000 * TICK, 10, note, NULL), 3);
	cr_assert_eq(sk_wheel_next(&w), SK_NEVER);
}

/* Polls at each time that sk_wheel_next() returns reach each deadline within a tick, and stop when
 * all timers have fired. */
Test(wheel, next_leads_to_every_deadline)
{
	static struct owner o[500];
	unsigned fired = 0, polls = 0;
	uint64_t now = 999 * TICK;

	sk_wheel_init(&w, now);
	for (unsigned i = 0; i < 500; i++)
		sk_timer_set(&w, &o[i].t, now + (random64() >> (18 + random64() % 46)));
	for (; w.armed > 0; polls++) {
		uint64_t next = sk_wheel_next(&w);

		cr_assert_neq(next, SK_NEVER);
		cr_assert_lt(polls, 5000, "no progress");
		/* Until that time, no poll is necessary. */
		if (next > now + 1) {
			cr_assert_eq(sk_wheel_poll(&w, next - 1, 1000, note, NULL), 0);
			now = next;
		}
		fired += sk_wheel_poll(&w, now, 1000, note, NULL);
	}
	cr_assert_eq(fired, 500);
	for (unsigned i = 0; i < 500; i++)
		cr_assert_lt(
			o[i].at - o[i].t.deadline, TICK + 1, "%lu late", o[i].at - o[i].t.deadline);
}

Test(wheel, next_is_exact_to_a_tick_near_by)
{
	struct owner o = {0};

	for (uint64_t off = 1; off < 255; off++) {
		o = (struct owner){0};
		sk_wheel_init(&w, 512 * TICK);
		sk_timer_set(&w, &o.t, (512 + off) * TICK - 5);
		cr_assert_eq(sk_wheel_next(&w), (512 + off) * TICK);
	}
}

/* The time of a stopped timer remains the time of the next poll, once. */
Test(wheel, stopped_timer_costs_one_poll)
{
	struct owner early = {0}, late = {0};

	sk_wheel_init(&w, 512 * TICK);
	sk_timer_set(&w, &early.t, 520 * TICK);
	sk_timer_set(&w, &late.t, 600 * TICK);
	sk_timer_stop(&w, &early.t);
	cr_assert_eq(sk_wheel_next(&w), 520 * TICK);
	cr_assert_eq(sk_wheel_poll(&w, 520 * TICK, 10, note, NULL), 0);
	cr_assert_eq(sk_wheel_next(&w), 600 * TICK);
	cr_assert_eq(sk_wheel_poll(&w, 600 * TICK, 10, note, NULL), 1);
}

/* Polls before the first deadline leave the wheel's tick behind. Timers that are set meanwhile fire
 * in time. */
Test(wheel, early_polls_delay_no_timer)
{
	struct owner o[3] = {0};

	sk_wheel_init(&w, 512 * TICK);
	sk_timer_set(&w, &o[0].t, 90000 * TICK);
	for (uint64_t at = 512; at < 80000; at += 7)
		cr_assert_eq(sk_wheel_poll(&w, at * TICK, 10, note, NULL), 0);
	sk_timer_set(&w, &o[1].t, 80001 * TICK);
	sk_timer_set(&w, &o[2].t, 80300 * TICK);
	for (uint64_t at = 80000; at < 90001; at++)
		sk_wheel_poll(&w, at * TICK, 10, note, NULL);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(o[i].fired, 1);
		cr_assert_eq(o[i].at, o[i].t.deadline);
	}
}

/* A hundred thousand timers are set, moved and stopped at random: none fires late, none fires early
 * (note() checks that), and none is lost. */
Test(wheel, random_use_agrees_with_a_list)
{
	struct owner *o = calloc(MANY, sizeof(*o));
	uint64_t now = 17, armed = 0;

	cr_assert_not_null(o);
	sk_wheel_init(&w, now);
	for (unsigned i = 0; i < MANY; i++)
		sk_timer_set(&w, &o[i].t, now + random64() % (TICK << 20));
	for (unsigned step = 0; step < 2000; step++) {
		for (unsigned i = 0; i < 20; i++) {
			struct owner *one = &o[random64() % MANY];

			if (i % 3 == 0)
				sk_timer_stop(&w, &one->t);
			else
				sk_timer_set(&w, &one->t, now + random64() % (TICK << (i + 1)));
		}
		now += random64() % (TICK << 11);
		sk_wheel_poll(&w, now, MANY, note, NULL);
	}
	for (unsigned i = 0; i < MANY; i++) {
		armed += sk_timer_is_set(&o[i].t);
		if (sk_timer_is_set(&o[i].t) && o[i].t.deadline + TICK <= now)
			cr_assert_fail("%u is overdue by %lu", i, now - o[i].t.deadline);
	}
	cr_assert_eq(w.armed, armed);
	sk_wheel_poll(&w, now + (TICK << 33), 2 * MANY, note, NULL);
	cr_assert_eq(w.armed, 0);
	free(o);
}
