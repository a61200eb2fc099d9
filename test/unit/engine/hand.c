/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs modified by the program (doc/falcon-cm.md, section 9): two QPs that start at the same time,
 * one after the other, peers that never start or are not the named ones, and the return to RESET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "falcon_rig.h"

TestSuite(engine_hand, .init = pair_eal);

#define SECOND   1000000000ull
#define PATIENCE (3 * SECOND) /* as eng_config_default() sets it */
#define ALL_RIGHTS                                                                                 \
	(RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_ATOMIC | RD_ACC_LOCAL_WRITE)

#define STEP 2000 /* ns that a turn takes */

static uint8_t timeout;

static void
begin(bool one, void (*tweak)(struct eng_config *cfg, int node))
{
	if (one)
		frig_start_one(tweak);
	else
		frig_start(tweak);
	frig.step = STEP;
	timeout = 14;
}

/* ---- Moves ---- */

static struct saker_qp_move
move_to(enum rd_qp_state state, int peer, uint32_t qpn)
{
	return (struct saker_qp_move){.state = state,
		.remote = frig.n[peer].addr,
		.remote_qpn = qpn,
		.access = ALL_RIGHTS,
		.ird = 4,
		.ord = 4,
		.rnr_retry = 7,
		.retry = 7,
		.min_rnr_timer = 12,
		.timeout = timeout};
}

static void
move_qp(int node, enum rd_qp_state state, uint32_t qpn)
{
	struct saker_qp_move m = move_to(state, !node, qpn);

	cr_assert_eq(saker_qp_move(frig.n[node].qp, &m), 0, "%s", saker_error());
}

/* Moves a QP through INIT, RTR and RTS. Its peer is the QP of the other node. */
static void
ready(int node)
{
	uint32_t qpn = saker_qp_num(frig.n[!node].qp);

	move_qp(node, RD_QP_INIT, 0);
	move_qp(node, RD_QP_RTR, qpn);
	move_qp(node, RD_QP_RTS, 0);
}

static void
two_qps(void)
{
	frig_qp(0, SAKER_FALCON);
	frig_qp(1, SAKER_FALCON);
}

static uint32_t
state_of(int node)
{
	struct saker_qp_info info;

	cr_assert_eq(saker_qp_query(frig.n[node].qp, &info), 0);
	return info.state;
}

/* Each end of the TCP connection beside the Falcon connections of two hosts is a connection, too.
 */
#define CARRIER 1

static uint32_t
conns(int node)
{
	struct eng_totals t;

	eng_totals(frig.n[node].e, &t);
	return t.conns;
}

static void
destroy_both(void)
{
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(saker_qp_destroy(frig.n[i].qp), 0);
		frig.n[i].qp = NULL;
	}
}

/* The peer has gone, but may return as long as requests would be sent again. */
static void
has_its_time(int node)
{
	struct rd_wc wc;

	frig_sleep(PATIENCE - SECOND / 2);
	cr_assert_eq(saker_cq_poll(frig.n[node].cq, &wc, 1), 0, "status %u", wc.status);
	cr_assert_eq(state_of(node), RD_QP_RTS);
	frig_sleep(SECOND);
}

static void
retries_are_over(int node, unsigned flushed)
{
	struct saker_event ev;

	cr_assert_eq(frig_wc(node).status, RD_RETRY_EXC_ERR);
	while (flushed-- > 0)
		cr_assert_eq(frig_wc(node).status, RD_WR_FLUSH_ERR);
	ev = frig_event(node, SAKER_EV_QP_FATAL);
	cr_assert_eq(ev.qp, frig.n[node].qp);
	cr_assert_str_eq(ev.async.reason, "ROF_UNREACHABLE");
	cr_assert_eq(state_of(node), RD_QP_ERR);
}

/* ---- Two QPs that connect to each other ---- */

/* In any order of the moves there is one connection, and requests that were posted before it are
 * sent on it. */
Test(engine_hand, two_that_start_at_once_make_one_connection)
{
	begin(false, NULL);
	for (unsigned seed = 0; seed < 40; seed++) {
		int first = seed & 1;

		two_qps();
		for (int i = 0; i < 2; i++)
			move_qp(i, RD_QP_INIT, 0);
		move_qp(first, RD_QP_RTR, saker_qp_num(frig.n[!first].qp));
		move_qp(!first, RD_QP_RTR, saker_qp_num(frig.n[first].qp));
		/* Each command polls the engines; seed / 2 more turns separate the two. */
		frig.loop_idle = 0;
		move_qp(first, RD_QP_RTS, 0);
		frig_post(first, RD_WRITE, 64, 0);
		frig_turns(seed / 2);
		move_qp(!first, RD_QP_RTS, 0);
		frig_post(!first, RD_WRITE, 64, 0);
		cr_assert_eq(frig_wc(0).status, RD_SUCCESS, "seed %u", seed);
		cr_assert_eq(frig_wc(1).status, RD_SUCCESS, "seed %u", seed);
		frig_works();
		cr_assert(frig_no_event(0) && frig_no_event(1));
		frig_sleep(SECOND / 10); /* the side that gave way has closed its connection */
		cr_assert_eq(conns(0), 1 + CARRIER, "seed %u: %u", seed, conns(0));
		cr_assert_eq(conns(1), 1 + CARRIER, "seed %u: %u", seed, conns(1));
		destroy_both();
	}
	cr_assert_eq(frig_count(0, "eng", "ENG_CM_STATE"), 0);
	cr_assert_eq(frig_count(1, "eng", "ENG_CM_STATE"), 0);
	frig_stop();
}

/* The wire delays the frames of both sides until both have started. */
Test(engine_hand, attempts_that_cross_on_the_wire_leave_the_greater_ones)
{
	uint64_t crossed;

	begin(false, NULL);
	two_qps();
	frig_connect(); /* resolves the neighbours */
	destroy_both();
	two_qps();
	for (int i = 0; i < 2; i++) {
		move_qp(i, RD_QP_INIT, 0);
		move_qp(i, RD_QP_RTR, saker_qp_num(frig.n[!i].qp));
	}
	frig.delay = true;
	for (int i = 0; i < 2; i++)
		move_qp(i, RD_QP_RTS, 0);
	frig_turns(10);
	frig.delay = false;
	frig_works();
	frig_sleep(SECOND / 10);
	crossed = frig_count(0, "rofx", "ROFX_CROSSED") + frig_count(1, "rofx", "ROFX_CROSSED");
	cr_assert_leq(crossed, 1, "only who gives way may hear of it");
	cr_assert_eq(conns(0), 1 + CARRIER);
	cr_assert_eq(conns(1), 1 + CARRIER);
	frig_stop();
}

/* The wire loses, duplicates and reorders frames. At the end there is one connection, or none. */
Test(engine_hand, two_that_start_at_once_over_a_hostile_wire)
{
	begin(false, NULL);
	frig.step = 20 * STEP;
	timeout = 23; /* minutes, because the timeouts of TCP are seconds */
	for (unsigned seed = 0; seed < 12; seed++) {
		two_qps();
		for (int i = 0; i < 2; i++) {
			move_qp(i, RD_QP_INIT, 0);
			move_qp(i, RD_QP_RTR, saker_qp_num(frig.n[!i].qp));
		}
		frig.bad = 60;
		frig.rng += seed;
		for (int i = 0; i < 2; i++) {
			move_qp(i, RD_QP_RTS, 0);
			frig_post(i, RD_WRITE, 64, 0);
			frig_turns(seed);
		}
		for (int i = 0; i < 2; i++)
			cr_assert_eq(frig_wc(i).status, RD_SUCCESS, "seed %u", seed);
		frig.bad = 0;
		frig_works();
		destroy_both();
		frig_sleep(5 * SECOND);
	}
	cr_assert_gt(frig.lost, 0);
	frig_stop();
}

Test(engine_hand, one_that_is_late_by_seconds_is_waited_for)
{
	begin(false, NULL);
	for (int late = 0; late < 2; late++) {
		two_qps();
		ready(!late);
		frig_recv(!late, 9);
		frig_sleep(7 * SECOND); /* the patience does not end without work */
		frig_post(!late, RD_WRITE, 8, 0);
		frig_sleep(2 * SECOND);
		ready(late);
		cr_assert_eq(frig_wc(!late).status, RD_SUCCESS);
		frig_post(late, RD_SEND, 8, 0);
		cr_assert_eq(frig_wc(late).status, RD_SUCCESS);
		cr_assert_eq(frig_wc(!late).wr_id, 9);
		destroy_both();
	}
	frig_stop();
}

Test(engine_hand, a_qp_in_rtr_receives)
{
	begin(false, NULL);
	two_qps();
	move_qp(1, RD_QP_INIT, 0);
	frig_recv(1, 3);
	move_qp(1, RD_QP_RTR, saker_qp_num(frig.n[0].qp));
	ready(0);
	frig_post(0, RD_SEND, 100, 0);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	cr_assert_eq(frig_wc(1).wr_id, 3);
	cr_assert_eq(state_of(1), RD_QP_RTR);
	cr_assert_eq(state_of(0), RD_QP_RTS);
	move_qp(1, RD_QP_RTS, 0);
	frig_works();
	frig_stop();
}

static void
two_stages(struct eng_config *cfg, int node)
{
	cfg->nstages = cfg->ntransports = 2;
}

static void
keyed(struct eng_config *cfg, int node)
{
	cfg->falcon.psps = ROFX_PSP(PSP_AES_GCM_128);
	cfg->falcon.tls = pair_tls(7);
}

static void
eight_pairs(void (*tweak)(struct eng_config *cfg, int node))
{
	begin(false, tweak);
	for (unsigned n = 0; n < 8; n++) {
		two_qps();
		ready(n & 1);
		frig_turns(n);
		ready(!(n & 1));
		frig_works();
		destroy_both();
	}
	frig_stop();
}

Test(engine_hand, several_stages_are_all_the_same)
{
	eight_pairs(two_stages);
}

Test(engine_hand, keys_are_agreed_on_in_tls)
{
	eight_pairs(keyed);
}

Test(engine_hand, both_ends_in_one_engine)
{
	begin(true, NULL);
	two_qps();
	ready(0);
	ready(1);
	frig_works();
	cr_assert_eq(conns(0), 2 + 2 * CARRIER, "%u: both ends of each", conns(0));
	frig_stop();
}

static void
alone(void (*tweak)(struct eng_config *cfg, int node))
{
	struct rd_wc wc;
	struct fnode spare;
	unsigned got = 0;

	begin(true, tweak);
	frig_qp(0, SAKER_FALCON);
	frig.n[1].qp = frig.n[0].qp;
	ready(0);
	for (unsigned n = 0; n < 40; n++) {
		frig_recv(0, RD_RECV);
		frig_post(0, RD_SEND, 5000, 0);
		for (unsigned i = 0; i < 2; i++) {
			wc = frig_wc(0);
			cr_assert_eq(wc.status, RD_SUCCESS);
			cr_assert_eq(wc.opcode, wc.wr_id);
			got += wc.opcode == RD_RECV;
		}
	}
	cr_assert_eq(got, 40);
	spare = frig.n[1];
	frig.n[1] = frig.n[0]; /* the Read's source is its own memory */
	frig_post(0, RD_READ, 5000, 0);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	cr_assert_eq(saker_qp_destroy(frig.n[0].qp), 0);
	frig.n[1] = spare;
	frig_stop();
}

Test(engine_hand, a_qp_may_be_its_own_peer)
{
	alone(NULL);
}

Test(engine_hand, a_qp_may_be_its_own_peer_across_stages)
{
	alone(two_stages);
}

Test(engine_hand, a_qp_may_be_its_own_peer_with_keys)
{
	alone(keyed);
}

/* ---- Absent peers ---- */

Test(engine_hand, a_peer_that_never_comes_costs_the_retries)
{
	begin(false, NULL);
	frig_qp(0, SAKER_FALCON);
	move_qp(0, RD_QP_INIT, 0);
	move_qp(0, RD_QP_RTR, 0x123456);
	move_qp(0, RD_QP_RTS, 0);
	frig_sleep(20 * SECOND);
	cr_assert_eq(state_of(0), RD_QP_RTS, "there was nothing to send");
	frig_recv(0, 1);
	for (int i = 0; i < 3; i++)
		frig_post(0, RD_WRITE, 8, 0);
	frig_sleep(PATIENCE - SECOND / 2);
	cr_assert_eq(state_of(0), RD_QP_RTS, "it has its time");
	frig_sleep(SECOND);
	retries_are_over(0, 3);
	frig_post(0, RD_WRITE, 8, 0);
	cr_assert_eq(frig_wc(0).status, RD_WR_FLUSH_ERR);
	frig_stop();
}

/* The timeout of the QP applies if it is longer than the patience; it may be infinite. */
Test(engine_hand, timeout_and_retries_are_the_programs)
{
	const struct {
		uint8_t timeout, retry;
		uint64_t alive;
	} rows[] = {{20, 1, 8 * SECOND}, {0, 7, 100 * SECOND}};
	struct saker_qp_move m;

	begin(false, NULL);
	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		frig_qp(0, SAKER_FALCON);
		move_qp(0, RD_QP_INIT, 0);
		move_qp(0, RD_QP_RTR, 0x123456);
		m = move_to(RD_QP_RTS, 1, 0);
		m.timeout = rows[i].timeout;
		m.retry = rows[i].retry;
		cr_assert_eq(saker_qp_move(frig.n[0].qp, &m), 0);
		frig_post(0, RD_WRITE, 8, 0);
		frig_sleep(rows[i].alive);
		cr_assert_eq(state_of(0), RD_QP_RTS);
		if (m.timeout != 0) {
			frig_sleep(SECOND);
			retries_are_over(0, 0);
		}
		cr_assert_eq(saker_qp_destroy(frig.n[0].qp), 0);
	}
	frig_stop();
}

Test(engine_hand, a_silent_network_costs_the_retries)
{
	begin(false, NULL);
	two_qps();
	frig.silent = true;
	ready(0);
	frig_post(0, RD_WRITE, 8, 0);
	frig_sleep(PATIENCE + SECOND);
	retries_are_over(0, 0);
	frig_stop();
}

/* The QP of node 1 waits for another QP of node 0, or for a QP at another address. */
Test(engine_hand, only_the_named_peer_may_connect)
{
	struct saker_qp_move m;

	begin(false, NULL);
	for (int i = 0; i < 2; i++) {
		two_qps();
		move_qp(1, RD_QP_INIT, 0);
		m = move_to(RD_QP_RTR, 0, saker_qp_num(frig.n[0].qp) ^ (i == 0 ? 2 : 0));
		if (i == 1)
			m.remote = addr("10.0.0.77");
		cr_assert_eq(saker_qp_move(frig.n[1].qp, &m), 0);
		ready(0);
		frig_post(0, RD_WRITE, 8, 0);
		frig_sleep(PATIENCE + SECOND);
		retries_are_over(0, 0);
		cr_assert_eq(state_of(1), RD_QP_RTR);
		cr_assert_gt(frig_count(1, "eng", "ENG_REQUEST_REFUSED"), 0);
		destroy_both();
	}
	frig_stop();
}

/* No peer can address a QP of rdma_cm by its number, and the port of a listener does not reach a
 * QP. */
Test(engine_hand, the_two_ways_to_connect_do_not_meet)
{
	struct saker_listener *l;

	begin(false, NULL);
	two_qps();
	ready(0);
	frig_post(0, RD_WRITE, 8, 0);
	frig_sleep(PATIENCE + SECOND);
	retries_are_over(0, 0);
	cr_assert_eq(saker_listen(frig.n[1].s, NULL, frig.p.cfg[1].falcon.port, 4, NULL, &l),
		-EADDRINUSE);
	cr_assert_eq(saker_connect(frig.n[0].qp, NULL, &frig.n[1].addr, FRIG_PORT, NULL), -EINVAL);
	destroy_both();
	frig_qp(0, SAKER_FALCON);
	cr_assert_eq(
		saker_connect(frig.n[0].qp, NULL, &frig.n[1].addr, frig.p.cfg[1].falcon.port, NULL),
		0);
	cr_assert_lt(frig_event(0, SAKER_EV_UNREACHABLE).status, 0);
	frig_stop();
}

/* ---- Endings ---- */

/* As with hardware, receives stay posted, and a QP notices that its peer has gone when it sends. */
Test(engine_hand, a_peer_that_goes_is_noticed_by_the_next_request)
{
	begin(false, NULL);
	two_qps();
	ready(0);
	ready(1);
	frig_works();
	frig_recv(0, 4);
	cr_assert_eq(saker_qp_destroy(frig.n[1].qp), 0);
	cr_assert(frig_no_event(0));
	cr_assert_eq(state_of(0), RD_QP_RTS);
	frig_qp(1, SAKER_FALCON); /* it has another QPN than the one that was named */
	ready(1);
	frig_post(0, RD_WRITE, 8, 0);
	frig_post(0, RD_WRITE, 8, 0);
	has_its_time(0);
	retries_are_over(0, 2);
	frig_stop();
}

Test(engine_hand, what_is_under_way_when_the_peer_goes_fails)
{
	begin(false, NULL);
	two_qps();
	ready(0);
	ready(1);
	frig_works();
	frig_post(0, RD_SEND, 8, 0); /* no receive is posted: the peer answers RNR */
	frig_post(0, RD_WRITE, 8, 0);
	frig_turns(50);
	cr_assert_eq(saker_qp_destroy(frig.n[1].qp), 0);
	has_its_time(0);
	retries_are_over(0, 1);
	frig_stop();
}

/* Both programs have what they wanted, and neither waits for the requests that are still in flight.
 * The one that ends later must not see them fail. */
Test(engine_hand, an_exchange_that_both_end_at_once_ends_without_an_error)
{
	struct rd_wc wc;

	begin(false, NULL);
	for (unsigned turns = 0; turns < 8; turns++) {
		two_qps();
		ready(0);
		ready(1);
		frig_works();
		frig_post(0, RD_SEND, 8, 0); /* no receive is posted: the peer answers RNR */
		frig_turns(turns);
		cr_assert_eq(saker_qp_destroy(frig.n[1].qp), 0);
		frig_sleep(SECOND);
		cr_assert_eq(saker_cq_poll(frig.n[0].cq, &wc, 1), 0, "status %u", wc.status);
		cr_assert(frig_no_event(0));
		cr_assert_eq(saker_qp_destroy(frig.n[0].qp), 0);
	}
	frig_stop();
}

Test(engine_hand, reset_and_again)
{
	struct saker_qp_move reset = {.state = RD_QP_RESET}, err = {.state = RD_QP_ERR};
	struct rd_wc wc;

	begin(false, NULL);
	two_qps();
	for (int round = 0; round < 4; round++) {
		ready(round & 1);
		ready(!(round & 1));
		frig_works();
		for (int i = 0; i < 2; i++) {
			frig_recv(i, 50); /* must not complete in the next round */
			if (round & 1) {
				cr_assert_eq(saker_qp_move(frig.n[i].qp, &err), 0);
				cr_assert_eq(frig_wc(i).status, RD_WR_FLUSH_ERR);
				cr_assert_eq(state_of(i), RD_QP_ERR);
			}
			cr_assert_eq(saker_qp_move(frig.n[i].qp, &reset), 0, "%s", saker_error());
		}
		frig_turns(100);
		cr_assert_eq(saker_cq_poll(frig.n[0].cq, &wc, 1), 0, "no completions of a reset");
		cr_assert_eq(saker_cq_poll(frig.n[1].cq, &wc, 1), 0);
	}
	frig_stop();
}

/* One QP is reset or destroyed at each moment of the start. The other one uses its retries, or
 * waits. */
Test(engine_hand, reset_and_destroyed_in_the_middle_of_it)
{
	struct saker_qp_move reset = {.state = RD_QP_RESET};

	begin(false, NULL);
	for (unsigned turns = 0; turns < 30; turns++) {
		two_qps();
		ready(0);
		ready(1);
		frig_turns(turns);
		cr_assert_eq(saker_qp_move(frig.n[0].qp, &reset), 0, "%s", saker_error());
		frig_turns(turns / 3);
		destroy_both();
	}
	frig_turns(1000);
	cr_assert_eq(frig_count(0, "eng", "ENG_CM_STATE"), 0);
	cr_assert_eq(frig_count(1, "eng", "ENG_CM_STATE"), 0);
	two_qps();
	ready(0);
	ready(1);
	frig_works();
	frig_stop();
}

Test(engine_hand, a_client_that_dies_leaves_nothing)
{
	begin(false, NULL);
	for (unsigned i = 0; i < 2; i++) {
		two_qps();
		ready(0);
		if (i == 1)
			ready(1);
		frig_turns(20);
		cr_assert_eq(saker_qp_destroy(frig.n[1].qp), 0);
	}
	frig_kill(0);
	frig_stop();
}

/* A program that ends a QP posts a marker behind its receives, and polls until the marker has been
 * flushed. */
Test(engine_hand, a_receive_posted_after_the_move_to_err_is_flushed)
{
	struct saker_wr wr = {.wr_id = 77};
	struct rd_wc wc;

	begin(false, NULL);
	two_qps();
	ready(0);
	ready(1);
	frig_works();
	for (int rest = 1000; rest > 0 && saker_cq_poll(frig.n[0].cq, &wc, 1) > 0; rest--)
		;
	cr_assert_eq(saker_qp_modify(frig.n[0].qp, RD_QP_ERR), 0);
	frig_sleep(SECOND);
	cr_assert_eq(state_of(0), RD_QP_ERR);
	cr_assert_eq(saker_cq_poll(frig.n[0].cq, &wc, 1), 0, "nothing was outstanding");
	cr_assert_eq(saker_post_recv(frig.n[0].qp, &wr, 1), 1);
	frig_sleep(SECOND);
	cr_assert(frig_no_event(0));
	cr_assert_eq(saker_cq_poll(frig.n[0].cq, &wc, 1), 1, "the receive is not flushed");
	cr_assert_eq(wc.wr_id, 77);
	cr_assert_eq(wc.status, RD_WR_FLUSH_ERR);
	frig_stop();
}

/* ---- Invalid moves ---- */

Test(engine_hand, the_order_of_moves_is_that_of_verbs)
{
	struct saker_qp_move m;
	const enum rd_qp_state too_early[] = {RD_QP_RTR, RD_QP_SQD, RD_QP_SQE};

	begin(false, NULL);
	two_qps();
	for (unsigned i = 0; i < SK_ARRAY_LEN(too_early); i++) {
		m = move_to(too_early[i], 1, 5);
		cr_assert_eq(saker_qp_move(frig.n[0].qp, &m), -EINVAL);
	}
	move_qp(0, RD_QP_INIT, 0);
	move_qp(0, RD_QP_INIT, 0);
#define BAD(field, value, status)                                                                  \
	do {                                                                                       \
		m = move_to(RD_QP_RTR, 1, 5);                                                      \
		m.field = value;                                                                   \
		cr_assert_eq(saker_qp_move(frig.n[0].qp, &m), status, #field);                     \
	} while (0)
	BAD(remote_qpn, 0, -EINVAL);
	BAD(remote_qpn, 1 << 24, -EINVAL);
	BAD(remote, addr("0.0.0.0"), -EINVAL);
	BAD(remote, addr("224.0.0.1"), -EINVAL);
	BAD(local, addr("10.9.9.9"), -EADDRNOTAVAIL);
	BAD(min_rnr_timer, 32, -EINVAL);
	cr_assert_str_eq(saker_error(), "an RNR timer is 0 to 31, not 32");
	move_qp(0, RD_QP_RTR, 5);
	m = move_to(RD_QP_INIT, 1, 0);
	cr_assert_eq(saker_qp_move(frig.n[0].qp, &m), -EINVAL);
	m = move_to(RD_QP_RTS, 1, 0);
	m.retry = 8;
	cr_assert_eq(saker_qp_move(frig.n[0].qp, &m), -EINVAL);
	cr_assert_str_eq(saker_error(), "a retry count is 0 to 7, not 8");
	m = move_to(RD_QP_RTS, 1, 0);
	m.timeout = 32;
	cr_assert_eq(saker_qp_move(frig.n[0].qp, &m), -EINVAL);
	cr_assert_str_eq(saker_error(), "a timeout is 0 to 31, not 32");
	move_qp(0, RD_QP_RTS, 0);
	move_qp(0, RD_QP_RTS, 0);
	frig_stop();
}

/* Programs move the QPs that librdmacm connects through all states. Such moves change only the
 * access rights, which may arrive late. */
Test(engine_hand, moves_of_a_connection_managers_qp_change_its_rights_alone)
{
	struct saker_qp_move plain = {.state = RD_QP_RTR}, reset = {.state = RD_QP_RESET};
	struct saker_qp_move nothing = {.state = RD_QP_INIT};
	struct saker_qp_move rights = {.state = RD_QP_INIT,
		.access = RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ |
			  RD_ACC_REMOTE_ATOMIC};

	begin(false, NULL);
	for (int transport = SAKER_IWARP; transport <= SAKER_FALCON; transport++) {
		struct saker_conn_param p = {.crc = 2, .markers = 2, .ird = 4, .ord = 4};
		struct saker_listener *l = frig_listen(1);
		struct saker_event ev;

		frig_qp(0, (enum saker_transport)transport);
		frig_qp(1, (enum saker_transport)transport);
		for (int round = 0; round < 2; round++) {
			move_qp(0, RD_QP_INIT, 0);
			cr_assert_eq(saker_qp_move(frig.n[1].qp, &nothing), 0);
			frig_ask(&p);
			plain.state = RD_QP_RTR;
			cr_assert_eq(saker_qp_move(frig.n[0].qp, &plain), 0);
			ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
			cr_assert_eq(saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p), 0);
			frig_event(0, SAKER_EV_ESTABLISHED);
			frig_event(1, SAKER_EV_ESTABLISHED);
			cr_assert_eq(saker_qp_move(frig.n[1].qp, &rights), 0);
			plain.state = RD_QP_RTS;
			cr_assert_eq(saker_qp_move(frig.n[0].qp, &plain), 0);
			frig_works();
			cr_assert_eq(saker_disconnect(frig.n[0].qp, false), 0);
			frig_event(0, SAKER_EV_DISCONNECTED);
			frig_event(1, SAKER_EV_DISCONNECTED);
			for (int i = 0; i < 2; i++)
				cr_assert_eq(saker_qp_move(frig.n[i].qp, &reset), 0);
		}
		cr_assert_eq(saker_unlisten(l), 0);
		destroy_both();
	}
	frig_stop();
}
