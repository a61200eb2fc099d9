/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transactions over a wire that loses certain packets (sections 8 and 11), with both sublayers at
 * both ends. Node 0 is the initiator. The target's ULP takes each request immediately unless the
 * test sets `decide`.
 */
#include "pair.h"

#define PULL FALCON_PULL_REQUEST
#define DATA FALCON_PULL_DATA
#define PUSH FALCON_PUSH_DATA
#define MS   1000000ull
#define SEC  1000000000ull
#define MAX  1024

static struct fa_delivery at_target[MAX], at_initiator[MAX];
static unsigned targets, initiators;
static bool (*decide)(const struct fa_delivery *d); /* returns true when it has answered itself */
static bool way_full;

static bool
deliver(unsigned node, unsigned conn, const struct fa_delivery *d)
{
	struct fa_outcome o = {.rsn = d->rsn, .verdict = FA_TAKEN};
	struct fa_conn *c = pair.n[node].c[conn];

	if (way_full)
		return false;
	if (node == 0 && (d->type == FA_COMPLETION || d->type == FA_PULL_DATA)) {
		cr_assert_lt(initiators, MAX);
		at_initiator[initiators++] = *d;
		if (d->buf != NULL)
			pair_buf_free(d->buf);
		return true;
	}
	cr_assert_lt(targets, MAX);
	at_target[targets++] = *d;
	if (decide != NULL && decide(d))
		return true;
	if (d->buf != NULL)
		pair_buf_free(d->buf);
	fa_outcome(c, pair.now, &o);
	if (d->type == FA_PULL)
		fa_pull_data(c, pair.now, d->rsn, pair_buf(d->request_len));
	return true;
}

static void
setup(void)
{
	pair_init();
	pair.deliver = deliver;
}

TestSuite(falcon_tl_whole, .init = setup);

static void
push(unsigned n)
{
	while (n--)
		fa_push(pair.n[0].c[0], pair.now, pair_buf(64));
}

static void
pull(unsigned n)
{
	while (n--)
		fa_pull(pair.n[0].c[0], pair.now, pair_buf(28), 256);
}

/* Asserts that the `i`th completion at node 0 has this RSN and code. */
static void
ended(unsigned i, uint32_t rsn, enum fa_completion code)
{
	cr_assert_lt(i, initiators, "only %u have ended", initiators);
	cr_assert_eq(at_initiator[i].rsn, rsn, "number %u is RSN %u", i, at_initiator[i].rsn);
	if (at_initiator[i].type == FA_PULL_DATA)
		cr_assert_eq(code, FA_DONE);
	else
		cr_assert_eq(at_initiator[i].completion, (unsigned)code, "RSN %u: code %u", rsn,
			at_initiator[i].completion);
}

static void
stop_after(unsigned ends, unsigned requests)
{
	pair_run(1 * SEC);
	cr_assert_eq(initiators, ends, "%u have ended", initiators);
	cr_assert_eq(targets, requests, "%u were delivered", targets);
	pair_stop();
}

static unsigned
sent_by(unsigned node, uint8_t type)
{
	unsigned i, n = 0;

	for (i = 0; i < pair.count; i++)
		n += pair.trace[i].from == node && pair.trace[i].h.type == type;
	return n;
}

/* ---- One loss ---- */

static uint8_t lose_type;
static unsigned lose_from, lose_count;

static struct pair_fate
lose_some(const struct pair_packet *p)
{
	bool lose = lose_count && p->from == lose_from && p->h.type == lose_type;

	lose_count -= lose;
	return (struct pair_fate){.lose = lose};
}

static void
lose(unsigned from, uint8_t type, unsigned count)
{
	lose_from = from;
	lose_type = type;
	lose_count = count;
	pair.wire = lose_some;
	pair_start();
}

Test(falcon_tl_whole, a_lost_pull_request_is_sent_again)
{
	lose(0, PULL, 1);
	pull(1);
	pair_run(20 * MS);
	ended(0, 1, FA_DONE);
	cr_assert_geq(sent_by(0, PULL), 2);
	stop_after(1, 1);
}

Test(falcon_tl_whole, a_lost_acknowledgement_of_a_pull_costs_nothing_its_data_acknowledges_too)
{
	lose(1, FALCON_BACK, 1000);
	pull(1);
	pair_run(20 * MS);
	ended(0, 1, FA_DONE);
	cr_assert_eq(sent_by(0, PULL), 1);
	stop_after(1, 1);
}

Test(falcon_tl_whole, lost_pull_data_is_sent_again_the_pull_is_not)
{
	lose(1, DATA, 2);
	pull(1);
	pair_run(40 * MS);
	ended(0, 1, FA_DONE);
	cr_assert_geq(sent_by(1, DATA), 3);
	stop_after(1, 1);
}

Test(falcon_tl_whole, a_lost_push_is_sent_again)
{
	lose(0, PUSH, 2);
	push(1);
	pair_run(40 * MS);
	ended(0, 1, FA_DONE);
	stop_after(1, 1);
}

Test(falcon_tl_whole, a_lost_acknowledgement_of_a_push_is_repeated_the_push_not_delivered_again)
{
	lose(1, FALCON_BACK, 1);
	push(1);
	pair_run(40 * MS);
	ended(0, 1, FA_DONE);
	cr_assert_geq(sent_by(0, PUSH), 2);
	cr_assert_gt(pair_counted(1, FA_DUPLICATE), 0);
	stop_after(1, 1);
}

/* ---- Order ---- */

static void
mixed(bool ordered)
{
	pair.n[0].params.ordered = pair.n[1].params.ordered = ordered;
	lose(0, PUSH, 1);
	push(1);
	pull(2);
	pair_run(40 * PAIR_US);
}

Test(falcon_tl_whole, s8_4_2_ordered_pulls_wait_for_a_push_that_was_lost)
{
	mixed(true);
	cr_assert_eq(initiators, 0);
	pair_run(20 * MS);
	for (unsigned i = 0; i < 3; i++) {
		ended(i, 1 + i, FA_DONE);
		cr_assert_eq(at_target[i].rsn, 1 + i);
	}
	stop_after(3, 3);
}

Test(falcon_tl_whole, s8_4_2_unordered_pulls_overtake_a_push_that_was_lost)
{
	mixed(false);
	cr_assert_eq(initiators, 2);
	ended(0, 2, FA_DONE);
	ended(1, 3, FA_DONE);
	pair_run(20 * MS);
	ended(2, 1, FA_DONE);
	stop_after(3, 3);
}

/* ---- Resources ---- */

static bool
later(const struct fa_delivery *d)
{
	return true;
}

static void
take(uint32_t rsn)
{
	struct fa_outcome o = {.rsn = rsn, .verdict = FA_TAKEN};
	unsigned i;

	for (i = 0; i < targets; i++) {
		if (at_target[i].rsn == rsn && at_target[i].buf != NULL) {
			pair_buf_free(at_target[i].buf);
			at_target[i].buf = NULL;
			break;
		}
	}
	fa_outcome(pair.n[1].c[0], pair.now, &o);
}

Test(falcon_tl_whole, s8_5_3_1_without_resources_a_request_is_nacked_with_code_1_and_comes_again)
{
	const struct fa_pools *p = &pair.n[1].cfg.pools;
	unsigned i, refused = 0;

	pair.n[1].cfg.pools.rx_pkt_net = pair.n[1].cfg.pools.rx_pkt_red = 1;
	cr_assert_eq(p->rx_pkt_red, 1);
	decide = later;
	pair_start();
	push(1);
	pull(1);
	pair_run(100 * PAIR_US);
	cr_assert_eq(targets, 1);
	for (i = 0; i < pair.count; i++) {
		if (pair.trace[i].h.type != FALCON_NACK)
			continue;
		refused++;
		cr_assert_eq(pair.trace[i].h.nack_code, FALCON_NACK_RESOURCES);
		cr_assert(pair.trace[i].h.nack_request);
		cr_assert_eq(pair.trace[i].h.psn, 100);
	}
	cr_assert_geq(refused, 1);
	decide = NULL;
	take(1);
	pair_run(40 * MS);
	ended(0, 1, FA_DONE);
	ended(1, 2, FA_DONE);
	stop_after(2, 2);
}

Test(falcon_tl_whole, xoff_does_not_hold_up_pull_data)
{
	pair.n[0].cfg.pools.tx_pkt_req = 4;
	pair.n[0].cfg.pools.rx_pkt_ulp = 4;
	decide = later;
	pair_start();
	push(4);
	cr_assert(pair.n[0].xoff);
	/* The other end pulls meanwhile; node 0's ULP answers though it may not submit requests. */
	fa_pull(pair.n[1].c[0], pair.now, pair_buf(28), 256);
	pair_run(50 * PAIR_US);
	cr_assert_eq(at_target[4].type, FA_PULL);
	pair_buf_free(at_target[4].buf);
	at_target[4].buf = NULL;
	fa_outcome(pair.n[0].c[0], pair.now,
		&(struct fa_outcome){.rsn = at_target[4].rsn, .verdict = FA_TAKEN});
	fa_pull_data(pair.n[0].c[0], pair.now, at_target[4].rsn, pair_buf(256));
	pair_run(50 * PAIR_US);
	cr_assert_eq(at_target[5].type, FA_PULL_DATA);
	pair_buf_free(at_target[5].buf);
	cr_assert(pair.n[0].xoff);
	for (unsigned i = 0; i < 4; i++)
		take(1 + i);
	pair_run(50 * PAIR_US);
	cr_assert(!pair.n[0].xoff);
	stop_after(4, 6);
}

Test(falcon_tl_whole, a_full_way_closes_the_window_and_nothing_is_lost_or_doubled)
{
	unsigned i;

	pair_start();
	way_full = true;
	push(300);
	pull(100);
	pair_run(100 * MS);
	cr_assert_eq(targets, 0);
	way_full = false;
	fa_deliver_resume(pair.n[1].c[0], pair.now);
	fa_deliver_resume(pair.n[0].c[0], pair.now);
	pair_run(500 * MS);
	for (i = 0; i < 400; i++) {
		ended(i, 1 + i, FA_DONE);
		cr_assert_eq(at_target[i].rsn, 1 + i);
	}
	stop_after(400, 400);
}

/* ---- Errors ---- */

static enum fa_verdict error;

static bool
in_error(const struct fa_delivery *d)
{
	struct fa_outcome o = {.rsn = d->rsn, .verdict = error, .ulp_code = 0x77};

	if (d->rsn != 2)
		return false;
	pair_buf_free(d->buf);
	fa_outcome(pair.n[1].c[0], pair.now, &o);
	return true;
}

static void
each_error(enum fa_verdict v, uint8_t nack, uint8_t resync, enum fa_completion code)
{
	unsigned i, nacks = 0, resyncs = 0;

	error = v;
	decide = in_error;
	pair_start();
	push(4);
	pair_run(20 * MS);
	for (i = 0; i < 4; i++)
		ended(i, 1 + i, i == 1 ? code : FA_DONE);
	cr_assert_eq(at_initiator[1].ulp_code, 0x77);
	for (i = 0; i < pair.count; i++) {
		const struct wire_falcon *h = &pair.trace[i].h;

		nacks += h->type == FALCON_NACK && h->nack_code == nack && h->psn == 301;
		resyncs += h->type == FALCON_RESYNC && h->resync_code == resync && h->psn == 301;
	}
	cr_assert_eq(nacks, 1);
	cr_assert_eq(resyncs, 1);
	stop_after(4, 4);
}

Test(falcon_tl_whole, s11_complete_in_error)
{
	each_error(FA_CIE, FALCON_NACK_CIE, FALCON_RESYNC_CIE, FA_TARGET_CIE);
}

Test(falcon_tl_whole, s11_non_recoverable)
{
	each_error(FA_FATAL_ERROR, FALCON_NACK_NON_RECOVERABLE, FALCON_RESYNC_NON_RECOVERABLE,
		FA_TARGET_FATAL);
}

Test(falcon_tl_whole, s11_invalid_cid)
{
	each_error(FA_WRONG_CID, FALCON_NACK_INVALID_CID, FALCON_RESYNC_INVALID_CID, FA_TARGET_CID);
}

static bool
no_data(const struct fa_delivery *d)
{
	pair_buf_free(d->buf);
	fa_outcome(
		pair.n[1].c[0], pair.now, &(struct fa_outcome){.rsn = d->rsn, .verdict = FA_TAKEN});
	fa_pull_data(pair.n[1].c[0], pair.now, d->rsn, NULL);
	return true;
}

Test(falcon_tl_whole, s6_4_a_pull_that_completes_in_error_has_pull_data_of_no_bytes)
{
	decide = no_data;
	pair_start();
	pull(2);
	pair_run(1 * MS);
	ended(0, 1, FA_DONE);
	ended(1, 2, FA_DONE);
	cr_assert_null(at_initiator[0].buf);
	stop_after(2, 2);
}

static struct pair_fate
lose_rsn_2(const struct pair_packet *p)
{
	return (struct pair_fate){
		.lose = p->from == 0 && p->h.rsn == 2 && (p->h.type == PUSH || p->h.type == PULL)};
}

static void
exhausted(bool with_pull)
{
	unsigned i;

	pair.n[0].cfg.max_retransmits = 3;
	pair.n[0].cfg.rack = false; /* attempts are timeouts: RACK would retransmit before */
	pair.wire = lose_rsn_2;
	pair_start();
	push(1);
	with_pull ? pull(1) : push(1);
	push(2);
	pair_run(2 * SEC);
	for (i = 0; i < 4; i++)
		ended(i, 1 + i, i == 1 ? FA_LOCAL_TIMEOUT : FA_DONE);
	push(1);
	pair_run(20 * MS);
	ended(4, 5, FA_DONE);
	cr_assert_eq(pair.n[0].deaths, 0);
	stop_after(5, 4);
}

Test(falcon_tl_whole, s11_a_push_that_never_gets_through_becomes_a_resync_and_the_rest_goes_on)
{
	exhausted(false);
}

Test(falcon_tl_whole, s11_a_pull_that_never_gets_through_becomes_a_resync_and_the_rest_goes_on)
{
	exhausted(true);
}

static struct pair_fate
lose_all(const struct pair_packet *p)
{
	return (struct pair_fate){.lose = true};
}

Test(falcon_tl_whole, s11_a_peer_that_is_gone_ends_the_connection_and_completes_all_once)
{
	unsigned i;

	pair.n[0].cfg.max_retransmits = 3;
	pair.wire = lose_all;
	pair_start();
	push(200); /* more than a window */
	pull(100);
	pair_run(20 * SEC);
	cr_assert_eq(pair.n[0].deaths, 1);
	cr_assert_eq(initiators, 300);
	for (i = 0; i < 300; i++)
		ended(i, 1 + i, FA_DEAD_CONNECTION);
	push(1);
	ended(300, 301, FA_DEAD_CONNECTION);
	stop_after(301, 0);
}

/* ---- Reclaim ---- */

static bool
never_data(const struct fa_delivery *d)
{
	if (d->type != FA_PULL || d->rsn != 1)
		return false;
	pair_buf_free(d->buf);
	fa_outcome(
		pair.n[1].c[0], pair.now, &(struct fa_outcome){.rsn = d->rsn, .verdict = FA_TAKEN});
	return true;
}

Test(falcon_tl_whole, s11_pull_data_that_never_comes_is_timed_out_and_the_rest_goes_on)
{
	pair.n[0].cfg.reclaim_ns = 5 * SEC;
	decide = never_data;
	pair_start();
	pull(2);
	pair_run(4 * SEC);
	cr_assert_eq(initiators, 0);
	pair_run(2 * SEC);
	ended(0, 1, FA_LOCAL_TIMEOUT);
	ended(1, 2, FA_DONE);
	/* Late data has no request. */
	fa_pull_data(pair.n[1].c[0], pair.now, 1, pair_buf(16));
	push(1);
	pair_run(20 * MS);
	ended(2, 3, FA_DONE);
	cr_assert_eq(pair_counted(0, FA_NO_REQUEST), 1);
	stop_after(3, 3);
}

Test(falcon_tl_whole, s11_requests_that_were_never_sent_are_passed_over_at_the_target)
{
	unsigned i;

	pair.n[0].cfg.reclaim_ns = 5 * SEC;
	pair.n[0].cfg.max_retransmits = 0;
	decide = later; /* a ULP that answers nothing */
	pair_start();
	push(200); /* more than a window */
	pair_run(8 * SEC);
	cr_assert_eq(initiators, 200);
	for (i = 0; i < 200; i++)
		ended(i, 1 + i, FA_LOCAL_TIMEOUT);
	cr_assert_leq(targets, FA_DATA_WINDOW);
	decide = NULL;
	for (i = 0; i < FA_DATA_WINDOW; i++)
		take(1 + i); /* too late */
	pair_run(1 * SEC);
	i = targets;
	push(1);
	pair_run(1 * SEC);
	ended(200, 201, FA_DONE);
	cr_assert_eq(
		at_target[i].rsn, 201, "what follows is delivered, next is %u", at_target[i].rsn);
	stop_after(201, i + 1);
}
