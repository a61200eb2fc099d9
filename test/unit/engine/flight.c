/* SPDX-License-Identifier: BSD-3-Clause */
/* The flight recorder of a transport stage: the last events of connections. */
#include <errno.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "transport_rig.h"

#define RING   65536u /* events that the recorder holds */
#define KEPT   64     /* failed connections that it keeps */
#define SECOND 1000000000ull

TestSuite(engine_flight, .init = pair_eal, .timeout = 100);

static struct world w;
static uint32_t ends[2];
static struct eng_transport *t;
static struct eng_conn *c;

static void
setup(void)
{
	pair_init(&w.pair);
	world_start(&w);
	connect_both(&w, ends);
	t = w.pair.e[SIDE_A]->transports[0];
	c = &t->conns[ends[SIDE_A]];
	c->noted = 0; /* the start of the connection is not looked at */
}

static void
teardown(void)
{
	close_both(&w, ends);
	pair_end(&w.pair);
}

/* Notes an event that the value `mark` distinguishes. */
static void
note(struct eng_conn *conn, uint32_t mark)
{
	eng_flight_note(t, conn, &tcp_reasons, 1 + mark % 3,
		&(struct eng_event){.srtt_ns = mark + 1ull,
			.rto_ns = mark + 2ull,
			.window = mark,
			.in_flight = mark + 3});
}

static struct eng_flight *
events_of(struct eng_conn *conn)
{
	struct eng_flight *f = calloc(1, sizeof(*f));
	struct eng_ctl m = {.flight.view = f, .flight.n = 1};

	cr_assert_eq(eng_flight_events(t, conn, &m), 0);
	cr_assert_eq(m.flight.n, 1);
	return f;
}

/* Checks that a copy has the `n` events with the marks from `first` on. */
static void
expect_marks(const struct eng_flight *f, unsigned n, uint32_t first)
{
	cr_assert_eq(f->n, n, "%u events instead of %u", f->n, n);
	for (unsigned i = 0; i < n; i++) {
		uint32_t mark = first + i;

		cr_assert_eq(f->event[i].window, mark, "event %u is %u", i, f->event[i].window);
		cr_assert_eq(f->event[i].in_flight, mark + 3);
		cr_assert_eq(f->event[i].srtt_ns, mark + 1ull);
		cr_assert_eq(f->event[i].rto_ns, mark + 2ull);
		cr_assert_str_eq(f->event[i].name, tcp_reasons.reasons[1 + mark % 3].name);
	}
}

static void
expect_events(struct eng_conn *conn, unsigned n, uint32_t first)
{
	struct eng_flight *f = events_of(conn);

	expect_marks(f, n, first);
	free(f);
}

Test(engine_flight, the_last_hundred_events_are_shown_oldest_first)
{
	struct eng_flight *f;

	setup();
	expect_events(c, 0, 0);
	for (uint32_t i = 0; i < ENG_EVENTS; i++) {
		note(c, i);
		t->now += 1000;
	}
	expect_events(c, ENG_EVENTS, 0);
	f = events_of(c);
	cr_assert_eq(f->event[0].age_ns, ENG_EVENTS * 1000);
	cr_assert_eq(f->event[ENG_EVENTS - 1].age_ns, 1000);
	cr_assert_eq(f->tuple.rport, PORT);
	free(f);
	for (uint32_t i = ENG_EVENTS; i < ENG_EVENTS + 7; i++)
		note(c, i);
	expect_events(c, ENG_EVENTS, 7);
	teardown();
}

Test(engine_flight, connections_do_not_mix)
{
	struct eng_conn *other;

	setup();
	other = calloc(1, sizeof(*other));
	other->tcp = c->tcp;
	for (uint32_t i = 0; i < 10; i++) {
		note(c, i);
		note(other, 1000 + i);
	}
	expect_events(c, 10, 0);
	expect_events(other, 10, 1000);
	free(other);
	teardown();
}

/* Events that others have overwritten are gone, and the list ends before them. */
Test(engine_flight, a_ring_that_wraps_forgets_the_oldest)
{
	struct eng_conn *other;

	setup();
	other = calloc(1, sizeof(*other));
	other->tcp = c->tcp;
	for (uint32_t i = 0; i < 3; i++)
		note(c, i);
	for (uint32_t i = 0; i < RING - 3; i++)
		note(other, i);
	expect_events(c, 3, 0);
	note(other, RING - 3);
	expect_events(c, 2, 1);
	note(other, RING - 2);
	expect_events(c, 1, 2);
	note(c, 3); /* takes the place of its own event 2, to which it refers */
	expect_events(c, 1, 3);
	expect_events(other, ENG_EVENTS, RING - 1 - ENG_EVENTS);
	free(other);
	teardown();
}

static struct eng_flight *
failed(uint32_t max, uint32_t *n)
{
	struct eng_flight *f = calloc(max, sizeof(*f));
	struct eng_ctl m = {.flight.view = f, .flight.n = max};

	cr_assert_eq(eng_flight_failed(t, &m), 0);
	*n = m.flight.n;
	return f;
}

Test(engine_flight, the_events_of_a_failed_connection_are_kept)
{
	struct eng_flight *f;
	uint32_t n;

	setup();
	for (uint32_t i = 0; i < 5; i++)
		note(c, i);
	eng_flight_keep(t, c);
	f = failed(KEPT, &n);
	cr_assert_eq(n, 0, "a connection that ends without an error leaves nothing");
	free(f);
	c->error = -ETIMEDOUT;
	t->now += 77;
	eng_flight_keep(t, c);
	/* Later events do not change them. */
	for (uint32_t i = 0; i < RING; i++)
		note(c, i);
	t->now += 1000;
	f = failed(KEPT, &n);
	cr_assert_eq(n, 1);
	expect_marks(f, 5, 0);
	cr_assert_eq(f->error, ETIMEDOUT);
	cr_assert_eq(f->age_ns, 1000);
	cr_assert_eq(f->event[4].age_ns, 77, "before its failure");
	cr_assert_eq(f->tuple.rport, PORT);
	free(f);
	c->error = 0;
	teardown();
}

/* A peer that resets the connection: the stage keeps the events by itself, as it does at any end
 * with an error. */
Test(engine_flight, a_reset_by_the_peer_leaves_the_events)
{
	struct eng_flight *f;
	uint32_t n;

	setup();
	for (uint32_t i = 0; i < 5; i++)
		note(c, i);
	say(&w, SIDE_B, ENG_T_ABORT, ends[SIDE_B], NULL, 0);
	cr_assert_eq(expect_told(&w, SIDE_A, ENG_E_CLOSED).arg, ECONNRESET);
	f = failed(KEPT, &n);
	cr_assert_eq(n, 1);
	cr_assert_eq(f->n, 6);
	cr_assert_eq(f->event[5].age_ns, 0, "the reset is the last event");
	f->n = 5;
	expect_marks(f, 5, 0);
	cr_assert_eq(f->error, ECONNRESET);
	free(f);
	pair_end(&w.pair);
}

Test(engine_flight, a_storm_of_failures_keeps_sixteen_a_second)
{
	struct eng_flight *f;
	uint32_t n;

	setup();
	c->error = -ECONNRESET;
	t->now += SECOND;
	for (uint32_t i = 0; i < 40; i++)
		eng_flight_keep(t, c);
	free(failed(KEPT, &n));
	cr_assert_eq(n, 16);
	/* The newest ones replace the oldest, and come first. */
	for (uint32_t i = 0; i < KEPT; i++) {
		t->now += SECOND;
		note(c, i);
		eng_flight_keep(t, c);
	}
	f = failed(2 * KEPT, &n);
	cr_assert_eq(n, KEPT);
	for (uint32_t i = 0; i < KEPT; i++) {
		cr_assert_eq(f[i].n, KEPT - i);
		cr_assert_eq(f[i].event[f[i].n - 1].window, KEPT - 1 - i);
		cr_assert_eq(f[i].age_ns, i * SECOND);
	}
	free(f);
	free(failed(3, &n));
	cr_assert_eq(n, 3, "as many as there is room for");
	c->error = 0;
	teardown();
}
