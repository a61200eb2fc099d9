/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a silent peer is given up, and when not (section 11): a host whose processors are busy may
 * not run for some hundred milliseconds, and its peer must wait; a host that is gone is reported
 * within 10 s.
 */
#include "pair.h"

#define MS     (1000 * PAIR_US)
#define SECOND (1000 * MS)

static struct {
	unsigned posted, done, failed;
	uint64_t died_at;
	bool silent; /* the wire loses all packets */
} me;

static bool
deliver(unsigned node, unsigned conn, const struct fa_delivery *d)
{
	struct fa_outcome o = {.rsn = d->rsn, .verdict = FA_TAKEN};

	if (d->type == FA_PUSH) {
		pair_buf_free(d->buf);
		fa_outcome(pair.n[node].c[conn], pair.now, &o);
		return true;
	}
	cr_assert_eq(d->type, FA_COMPLETION);
	if (d->completion == FA_DONE)
		me.done += 1 + d->more;
	else
		me.failed++;
	return true;
}

static struct pair_fate
wire(const struct pair_packet *p)
{
	return (struct pair_fate){.lose = me.silent};
}

static void
begin(void)
{
	pair_init();
	pair.deliver = deliver;
	pair.wire = wire;
	pair.no_trace = true;
	pair_start();
}

static void
post(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fa_push(pair.n[0].c[0], pair.now, pair_buf(64));
	me.posted += n;
}

/* Runs in steps until node 0 gives the connection up, for `ns` at most; notes the time. */
static void
run_until_dead(uint64_t ns)
{
	for (uint64_t end = pair.now + ns; pair.now < end && !pair.n[0].deaths;)
		pair_run(10 * MS);
	me.died_at = pair.now;
}

Test(patience, s11_a_peer_that_hardly_runs_is_not_given_up)
{
	begin();
	post(8);
	pair_run(5 * MS);
	for (unsigned i = 0; i < 10; i++) {
		pair_halt(1, 200 * MS);
		post(8);
		pair_run(220 * MS);
	}
	cr_assert_eq(me.done, me.posted);
	pair_halt(1, 3 * SECOND);
	post(8);
	pair_run(4 * SECOND);
	cr_assert_eq(me.done, me.posted);
	cr_assert_eq(pair.n[0].deaths + pair.n[1].deaths, 0);
	cr_assert_eq(pair_counted(0, FA_RESYNC_OUT), 0);
	pair_stop();
}

Test(patience, s11_a_peer_that_is_gone_is_reported_within_10_s)
{
	uint64_t since;

	begin();
	post(8);
	pair_run(5 * MS);
	since = pair.now;
	me.silent = true;
	post(8);
	run_until_dead(20 * SECOND);
	cr_assert_eq(pair.n[0].deaths, 1);
	cr_assert_eq(me.failed, 8);
	cr_assert_gt(me.died_at - since, 6 * SECOND);
	cr_assert_lt(me.died_at - since, 10 * SECOND);
	pair_stop();
}

/* The round trips that a busy host measures do not prolong the patience. */
Test(patience, s11_within_10_s_also_after_long_round_trips)
{
	uint64_t since;

	begin();
	for (unsigned i = 0; i < 20; i++) {
		pair_halt(1, 400 * MS);
		post(1);
		pair_run(500 * MS);
	}
	cr_assert_eq(me.done, me.posted);
	since = pair.now;
	me.silent = true;
	post(1);
	run_until_dead(20 * SECOND);
	cr_assert_eq(pair.n[0].deaths, 1);
	cr_assert_lt(me.died_at - since, 10 * SECOND);
	pair_stop();
}

/* A loop that runs for 20 ms in 220 ms has observed 2 s of silence after 22 s. */
Test(patience, a_stop_of_the_own_loop_is_not_the_peers_silence)
{
	begin();
	post(8);
	pair_run(5 * MS);
	me.silent = true;
	post(8);
	for (unsigned i = 0; i < 100; i++) {
		pair_halt(0, 200 * MS);
		pair_run(220 * MS);
	}
	cr_assert_eq(pair.n[0].deaths, 0);
	cr_assert_eq(pair_counted(0, FA_RESYNC_OUT), 0);
	run_until_dead(10 * SECOND);
	cr_assert_eq(pair.n[0].deaths, 1);
	pair_stop();
}

/* Only the decision to give the peer up waits: a packet that was lost is sent again when the loop
 * runs, not later by the time of the stop. */
Test(patience, a_stop_of_the_own_loop_delays_no_retransmission)
{
	begin();
	post(8);
	pair_run(5 * MS);
	me.silent = true;
	post(1);
	pair_run(6 * PAIR_US);
	me.silent = false;
	pair_halt(0, 1 * SECOND);
	pair_run(1 * SECOND + 200 * PAIR_US);
	cr_assert_eq(me.done, me.posted);
	pair_stop();
}

/* Acknowledgements that arrive while the loop is stopped count before any timeout. */
Test(patience, a_stop_of_the_own_loop_causes_no_retransmission)
{
	begin();
	post(8);
	pair_run(5 * MS);
	for (unsigned i = 0; i < 50; i++) {
		post(8);
		pair_run(6 * PAIR_US); /* they have left, and no acknowledgement is here */
		pair_halt(0, 200 * MS);
		pair_run(220 * MS);
	}
	cr_assert_eq(me.done, me.posted);
	cr_assert_eq(pair_counted(0, FA_RETRANSMIT), 0);
	pair_stop();
}
