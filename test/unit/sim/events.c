/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the queue of events: order, ties, and scheduling from inside an event. */
#include <criterion/criterion.h>

#include "../../../app/saker-sim/events.h"
#include "../../../app/saker-sim/random.h"

#define MANY 100000

static struct sim_events q;

struct note {
	sim_time planned, fired;
	unsigned serial, place;
};

static unsigned places;

static void
note(void *obj, sim_time now)
{
	struct note *n = obj;

	n->fired = now;
	n->place = places++;
	cr_assert_eq(q.now, now);
}

static void
init(void)
{
	sim_events_init(&q);
	places = 0;
}

static void
fini(void)
{
	sim_events_free(&q);
}

TestSuite(events, .init = init, .fini = fini);

Test(events, an_empty_queue_has_no_step)
{
	cr_assert_eq(sim_step(&q, SIM_NEVER), 0);
	cr_assert_eq(q.fired, 0);
}

Test(events, happen_in_order_of_time_then_of_planning)
{
	static struct note n[MANY];
	struct sim_random r;
	sim_time last = 0;
	static struct note *by_place[MANY];

	sim_random_seed(&r, 7, 0);
	for (unsigned i = 0; i < MANY; i++) {
		n[i].planned = sim_random_below(&r, MANY / 4); /* many ties */
		n[i].serial = i;
		sim_at(&q, n[i].planned, note, &n[i]);
	}
	while (sim_step(&q, SIM_NEVER)) {
		cr_assert_geq(q.now, last);
		last = q.now;
	}
	cr_assert_eq(places, MANY);
	cr_assert_eq(q.fired, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		cr_assert_eq(n[i].fired, n[i].planned);
		by_place[n[i].place] = &n[i];
	}
	for (unsigned i = 1; i < MANY; i++)
		cr_assert(by_place[i - 1]->planned < by_place[i]->planned ||
				  by_place[i - 1]->serial < by_place[i]->serial,
			"place %u", i);
}

Test(events, until_is_inclusive_and_nothing_beyond_happens)
{
	struct note a = {0}, b = {0};

	sim_at(&q, 100, note, &a);
	sim_at(&q, 101, note, &b);
	cr_assert_eq(sim_step(&q, 99), 0);
	cr_assert_eq(sim_step(&q, 100), 1);
	cr_assert_eq(a.fired, 100);
	cr_assert_eq(sim_step(&q, 100), 0);
	cr_assert_eq(sim_step(&q, 101), 1);
	cr_assert_eq(b.fired, 101);
}

static struct note late;

static void
plan_the_past(void *obj, sim_time now)
{
	sim_at(&q, 5, note, obj);
}

Test(events, what_is_planned_for_the_past_happens_now)
{
	sim_at(&q, 50, plan_the_past, &late);
	while (sim_step(&q, SIM_NEVER))
		;
	cr_assert_eq(late.fired, 50);
}

/* A hold model: each event schedules another one, so that the queue keeps its length. */
static unsigned left;
static struct sim_random chance;

static void
hold(void *obj, sim_time now)
{
	if (left > 0) {
		left--;
		sim_at(&q, now + sim_random_below(&chance, 1000), hold, NULL);
	}
}

Test(events, survives_a_steady_state)
{
	sim_time last = 0;

	left = MANY;
	sim_random_seed(&chance, 1, 1);
	for (unsigned i = 0; i < 777; i++)
		sim_at(&q, i, hold, NULL);
	while (sim_step(&q, SIM_NEVER)) {
		cr_assert_geq(q.now, last);
		last = q.now;
		cr_assert_leq(q.count, 777);
	}
	cr_assert_eq(q.fired, MANY + 777);
}
