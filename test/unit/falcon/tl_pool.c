/* SPDX-License-Identifier: BSD-3-Clause */
/* Resources (section 8.2): pools, zones and the head of line, credits, Xoff, the level (10.2). */
#include "tl_fake.h"

#include <errno.h>

#define PUSH FALCON_PUSH_DATA
#define PULL FALCON_PULL_REQUEST
#define DATA FALCON_PULL_DATA

static void
small(struct fa_config *cfg, struct fa_params *p)
{
	cfg->pools = (struct fa_pools){.tx_pkt_req = 4,
		.tx_buf_req = 256,
		.rx_pkt_ulp = 4,
		.rx_buf_ulp = 32,
		.tx_pkt_data = 2,
		.tx_buf_data = 128,
		.rx_pkt_net = 4,
		.rx_buf_net = 32,
		.rx_pkt_red = 1,
		.rx_buf_red = 8,
		.pulls = 8,
		.tx_cell = 64,
		.rx_cell = 512};
	cfg->rx_thresholds_log2 = 0;
	cfg->conn_waiting = 0;
}

Test(falcon_tl_pool, s8_2_3_what_each_transaction_costs)
{
	static const struct fa_pools p = {.tx_cell = 64, .rx_cell = 512};
	struct fa_credits c;

	fa_cost_push(&p, 129, &c);
	cr_assert(c.req_pkt_tx == 1 && c.req_buf_tx == 3 && c.req_pkt_rx == 1);
	cr_assert(c.req_buf_rx == 0 && c.data_pkt_tx == 0 && c.data_buf_tx == 0);
	fa_cost_push(&p, 0, &c);
	cr_assert(c.req_pkt_tx == 1 && c.req_buf_tx == 0);
	fa_cost_push(&p, UINT32_MAX, &c);
	cr_assert_eq(c.req_buf_tx, 1u << 26);
	fa_cost_pull(&p, 513, &c);
	cr_assert(c.req_pkt_tx == 1 && c.req_buf_tx == 1 && c.req_pkt_rx == 1);
	cr_assert(c.req_buf_rx == 2 && c.data_pkt_tx == 0 && c.data_buf_tx == 0);
	fa_cost_pull_data(&p, 128, &c);
	cr_assert(c.req_pkt_tx == 0 && c.req_buf_tx == 0 && c.req_pkt_rx == 0);
	cr_assert(c.req_buf_rx == 0 && c.data_pkt_tx == 1 && c.data_buf_tx == 2);
}

Test(falcon_tl_pool, s8_2_3_credits_are_taken_whole_or_not_at_all)
{
	unsigned k;

	for (k = 0; k < 6; k++) {
		struct fa_credits have = {3, 3, 3, 3, 3, 3}, cost = {1, 1, 1, 1, 1, 1};
		uint32_t *h = &have.req_pkt_tx, *n = &cost.req_pkt_tx;
		unsigned i;

		n[k] = 4;
		cr_assert(!fa_credits_take(&have, &cost), "kind %u lacks one", k);
		for (i = 0; i < 6; i++)
			cr_assert_eq(h[i], 3);
		n[k] = 3;
		cr_assert(fa_credits_take(&have, &cost));
		for (i = 0; i < 6; i++)
			cr_assert_eq(h[i], i == k ? 0 : 2);
		fa_credits_give(&have, &cost);
		for (i = 0; i < 6; i++)
			cr_assert_eq(h[i], 3);
	}
}

Test(falcon_tl_pool, s8_2_2_a_push_holds_its_resources_until_it_is_completed)
{
	const struct tl_stack *t = &fk.s.tl;

	fake_start(true, small);
	fa_push(&fk.c[0], fk.now, fake_buf(129));
	cr_assert(t->tx_pkt_req.used == 1 && t->tx_buf_req.used == 3);
	cr_assert(t->rx_pkt_ulp.used == 1 && t->rx_buf_ulp.used == 0);
	fk.room = 0;
	fake_sent(0, PUSH, 1, FA_DONE, 0);
	cr_assert(t->tx_pkt_req.used == 0 && t->tx_buf_req.used == 0, "Tx: the network's word");
	cr_assert_eq(t->rx_pkt_ulp.used, 1, "Rx: when the ULP has the completion");
	fk.room = 1;
	fa_deliver_resume(&fk.c[0], fk.now);
	cr_assert_eq(t->rx_pkt_ulp.used, 0);
	fake_stop();
}

Test(falcon_tl_pool, s8_2_2_a_pull_reserves_room_for_its_data)
{
	const struct tl_stack *t = &fk.s.tl;

	fake_start(true, small);
	fa_pull(&fk.c[0], fk.now, fake_buf(28), 4096);
	cr_assert(t->tx_pkt_req.used == 1 && t->tx_buf_req.used == 1);
	cr_assert(t->rx_pkt_ulp.used == 1 && t->rx_buf_ulp.used == 8);
	fake_sent(0, PULL, 1, FA_DONE, 0);
	cr_assert(t->tx_pkt_req.used == 0 && t->tx_buf_req.used == 0);
	cr_assert(t->rx_pkt_ulp.used == 1 && t->rx_buf_ulp.used == 8);
	fake_rx(0, DATA, 1, 200, 4096);
	cr_assert(t->rx_pkt_ulp.used == 0 && t->rx_buf_ulp.used == 0);
	cr_assert_eq(t->rx_pkt_net.used, 0, "pull data takes nothing of the network's (CR#1)");
	fake_stop();
}

Test(falcon_tl_pool, s8_2_4_what_a_request_from_the_network_takes_and_when_it_is_given_back)
{
	const struct tl_stack *t = &fk.s.tl;

	fake_start(true, small);
	fake_rx(0, PUSH, 1, 300, 1025);
	cr_assert(t->rx_pkt_net.used == 1 && t->rx_buf_net.used == 3);
	fake_rx_pull(0, 2, 100, 4096);
	cr_assert(t->rx_pkt_net.used == 2 && t->rx_buf_net.used == 4);
	fake_outcome(0, 1, FA_TAKEN);
	cr_assert(t->rx_pkt_net.used == 1 && t->rx_buf_net.used == 1);
	fake_outcome(0, 2, FA_TAKEN);
	cr_assert(t->rx_pkt_net.used == 0 && t->rx_buf_net.used == 0);
	cr_assert_eq(t->shares.pulls.held, 1);
	fa_pull_data(&fk.c[0], fk.now, 2, fake_buf(4096));
	cr_assert_eq(t->shares.pulls.held, 0);
	cr_assert(t->tx_pkt_data.used == 1 && t->tx_buf_data.used == 64);
	fake_sent(0, DATA, 2, FA_DONE, 0);
	cr_assert(t->tx_pkt_data.used == 0 && t->tx_buf_data.used == 0);
	fake_stop();
}

Test(falcon_tl_pool, s8_2_4_in_the_red_zone_only_the_head_of_line_gets_in)
{
	fake_start(true, small); /* 4 packets, the last of them red */
	cr_assert_eq(fake_rx(0, PUSH, 2, 301, 8), TL_TAKEN);
	cr_assert_eq(fake_rx(0, PUSH, 3, 302, 8), TL_TAKEN);
	cr_assert_eq(fake_rx_pull(0, 4, 100, 8), TL_TAKEN);
	cr_assert_eq(fake_rx(0, PUSH, 5, 303, 8), TL_REFUSED, "red, and not the head");
	cr_assert_eq(fake_rx(1, PUSH, 2, 301, 8), TL_REFUSED, "of no line");
	cr_assert_eq(fake_rx(0, PUSH, 1, 300, 8), TL_TAKEN);
	cr_assert_eq(fake_rx(1, PUSH, 1, 300, 8), TL_REFUSED, "another head is inside (CR#3)");
	cr_assert_eq(fake_counted(FA_NO_RESOURCE), 3);
	fake_outcome(0, 1, FA_TAKEN);
	cr_assert_eq(fake_rx(1, PUSH, 1, 300, 8), TL_TAKEN);
	fake_stop();
}

Test(falcon_tl_pool, s8_2_4_buffers_have_zones_too)
{
	fake_start(true, small); /* 32 cells, 8 of them red */
	cr_assert_eq(fake_rx(0, PUSH, 2, 301, 4096), TL_TAKEN);
	cr_assert_eq(fake_rx(0, PUSH, 3, 302, 4096), TL_TAKEN);
	cr_assert_eq(fake_rx(0, PUSH, 4, 303, 512), TL_TAKEN);
	cr_assert_eq(fk.s.tl.rx_buf_net.used, 17);
	cr_assert_eq(fake_rx(0, PUSH, 5, 304, 4096), TL_REFUSED, "25 is beyond green");
	cr_assert_eq(fake_rx(0, PUSH, 1, 300, 4096), TL_TAKEN);
	fake_stop();
}

Test(falcon_tl_pool, s8_2_1_2_a_push_that_the_ulp_refused_makes_room_for_a_head_of_line)
{
	fake_start(true, small);
	for (unsigned i = 0; i < 4; i++) /* the last one is the head */
		cr_assert_eq(fake_rx(0, PUSH, 1 + (i + 1) % 4, 300 + (i + 1) % 4, 8), TL_TAKEN);
	for (unsigned i = 0; i < 4; i++)
		fake_rnr(0, 1 + i, 12);
	fk.read = fk.count;
	/* The first connection's application may be waiting for the second. */
	cr_assert_eq(fake_rx(1, PUSH, 1, 300, 8), TL_TAKEN);
	fake_expect(FA_PUSH, 1);
	cr_assert_eq(fake_counted(FA_EVICTED), 1);
	cr_assert_eq(fake_rx(1, PUSH, 3, 302, 8), TL_REFUSED, "not for another");
	fake_outcome(1, 1, FA_TAKEN);
	fake_next(F_ACK);
	/* A dropped push returns by retransmission. */
	fake_wait(640000);
	fake_expect(FA_PUSH, 1);
	fake_outcome(0, 1, FA_TAKEN);
	fake_next(F_ACK);
	fake_expect(FA_PUSH, 2);
	fake_expect(FA_PUSH, 3);
	fake_quiet();
	cr_assert_eq(fake_rx_again(0, 4, 303, 8), TL_TAKEN);
	fake_expect(FA_PUSH, 4);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_pool, s8_2_1_2_the_refused_head_itself_may_be_let_go_and_comes_again)
{
	fake_start(true, small);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_rnr(0, 1, 12);
	for (unsigned i = 0; i < 2; i++)
		fake_rx_pull(0, 2 + i, 100 + i, 8); /* pulls are always kept */
	fk.read = fk.count;
	cr_assert_eq(fake_rx(1, PUSH, 1, 300, 8), TL_TAKEN);
	fake_expect(FA_PUSH, 1);
	cr_assert_eq(fake_rx(1, PUSH, 2, 301, 8), TL_REFUSED, "another head is inside (CR#3)");
	cr_assert_eq(fake_counted(FA_EVICTED), 0);
	cr_assert_eq(fake_rx(2, PUSH, 1, 300, 8), TL_TAKEN);
	fake_expect(FA_PUSH, 1);
	cr_assert_eq(fake_counted(FA_EVICTED), 1);
	fake_wait(640000);
	fake_quiet(); /* there is no request to deliver */
	cr_assert_eq(fake_rx_again(0, 1, 300, 8), TL_REFUSED, "other heads are inside");
	fake_outcome(1, 1, FA_TAKEN);
	fake_next(F_ACK);
	cr_assert_eq(fake_rx_again(0, 1, 300, 8), TL_TAKEN);
	cr_assert(fake_expect(FA_PUSH, 1)->restart);
	fake_outcome(0, 1, FA_TAKEN);
	fake_next(F_ACK);
	for (unsigned i = 0; i < 2; i++)
		fake_expect(FA_PULL, 2 + i);
	fake_quiet();
	fake_stop();
}

static void
limit(struct fa_config *cfg, struct fa_params *p)
{
	cfg->conn_requests = 2;
}

Test(falcon_tl_pool, s11_a_connection_holds_no_more_than_its_share)
{
	fake_start(true, limit);
	cr_assert_eq(fake_rx_pull(0, 2, 100, 8), TL_TAKEN);
	cr_assert_eq(fake_rx_pull(0, 3, 101, 8), TL_TAKEN);
	cr_assert_eq(fake_rx_pull(0, 4, 102, 8), TL_REFUSED);
	cr_assert_eq(fake_rx_pull(0, 1, 103, 8), TL_TAKEN, "what all wait for");
	cr_assert_eq(fake_rx_pull(0, 4, 102, 8), TL_REFUSED, "three are with the ULP");
	fake_outcome(0, 1, FA_TAKEN);
	cr_assert_eq(fake_rx_pull(0, 4, 102, 8), TL_REFUSED, "two are");
	fake_outcome(0, 2, FA_TAKEN);
	cr_assert_eq(fake_rx_pull(0, 4, 102, 8), TL_TAKEN);
	cr_assert_eq(fake_rx_pull(1, 1, 100, 8), TL_TAKEN, "the other has its own");
	fake_stop();
	fake_start(false, limit);
	cr_assert_eq(fake_rx(0, PUSH, 9, 100, 8), TL_TAKEN);
	cr_assert_eq(fake_rx(0, PUSH, 8, 101, 8), TL_TAKEN);
	cr_assert_eq(fake_rx(0, PUSH, 7, 102, 8), TL_REFUSED);
	fake_outcome(0, 8, FA_TAKEN);
	cr_assert_eq(fake_rx(0, PUSH, 7, 102, 8), TL_TAKEN);
	fake_stop();
}

Test(falcon_tl_pool, s8_2_1_2_pull_data_waits_for_its_own_pool_only_and_in_order)
{
	fake_start(true, small); /* resources for two packets of pull data */
	for (unsigned i = 0; i < 4; i++)
		fa_push(&fk.c[0], fk.now, fake_buf(8)); /* takes all packets for requests */
	fk.read = fk.count;
	for (unsigned i = 0; i < 4; i++) {
		fake_rx_pull(0, 1 + i, 100 + i, 8);
		fake_expect(FA_PULL, 1 + i);
		fake_outcome(0, 1 + i, FA_TAKEN);
		fa_pull_data(&fk.c[0], fk.now, 1 + i, fake_buf(8));
		if (i < 2)
			cr_assert_eq(fake_next(F_SEND)->b, 1 + i);
	}
	fake_quiet();
	/* Requests do not wait for the pull data that waits. */
	fake_sent(0, PUSH, 1, FA_DONE, 0);
	fake_expect(FA_COMPLETION, 1);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	cr_assert_eq(fake_next(F_SEND)->a, PUSH);
	fake_quiet();
	fake_sent(0, DATA, 2, FA_DONE, 0);
	cr_assert_eq(fake_next(F_SEND)->b, 3);
	fake_sent(0, DATA, 1, FA_DONE, 0);
	cr_assert_eq(fake_next(F_SEND)->b, 4);
	fake_quiet();
	fake_stop();
}

static void
one_of_two(struct fa_config *cfg, struct fa_params *p)
{
	small(cfg, p);
	cfg->conn_data = 1;
	cfg->conn_pulls = 3;
}

/* The ULP takes a pull and gives its data. */
static void
pull_and_data(unsigned conn, uint32_t rsn, uint32_t psn)
{
	cr_assert_eq(fake_rx_pull(conn, rsn, psn, 8), TL_TAKEN);
	fake_expect(FA_PULL, rsn);
	fake_outcome(conn, rsn, FA_TAKEN);
	fa_pull_data(&fk.c[conn], fk.now, rsn, fake_buf(8));
}

/* Section 8.2.1.1: the progress of a connection does not depend on another one. */
Test(falcon_tl_pool, s8_2_1_1_pull_data_without_acknowledgements_holds_one_share)
{
	fake_start(true, one_of_two);
	pull_and_data(0, 1, 100);
	cr_assert_eq(fake_next(F_SEND)->b, 1);
	for (unsigned i = 1; i < 3; i++)
		pull_and_data(0, 1 + i, 100 + i);
	fake_quiet();
	cr_assert_eq(fake_rx_pull(0, 4, 103, 8), TL_REFUSED);
	cr_assert_eq(fake_counted(FA_PULLS_SHARE), 1);
	/* The other connection has resources, in its order. */
	pull_and_data(1, 1, 100);
	cr_assert_eq(fake_next(F_SEND)->b, 1);
	pull_and_data(1, 2, 101);
	fake_quiet();
	fake_sent(1, DATA, 1, FA_DONE, 0);
	cr_assert_eq(fake_next(F_SEND)->b, 2);
	fake_quiet();
	/* An acknowledgement returns the share. */
	fake_sent(0, DATA, 1, FA_DONE, 0);
	cr_assert_eq(fake_next(F_SEND)->b, 2);
	fake_quiet();
	cr_assert_eq(fake_rx_pull(0, 4, 103, 8), TL_TAKEN);
	fake_expect(FA_PULL, 4);
	fake_stop();
}

/* Peers that acknowledge no pull data leave room for that of another connection: with `peers` such
 * connections, it has `least` packets under way. */
static void
never_acknowledged(unsigned peers, uint32_t pulls, uint32_t least)
{
	fake_start(true, NULL);
	for (unsigned k = 0; k < peers; k++) {
		for (uint32_t i = 0; i < pulls; i++) {
			fk.read = fk.count;
			pull_and_data(k, 1 + i, 100 + i);
		}
	}
	cr_assert_lt(fk.c[peers - 1].tl.data_out, pulls);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 1 + least * round; i <= least * (round + 1); i++) {
			fk.read = fk.count;
			pull_and_data(peers, i, 100 + i);
			cr_assert_eq(fake_next(F_SEND)->b, i, "%u peers, pull %u", peers, i);
		}
		for (uint32_t i = 1 + least * round; i <= least * (round + 1); i++)
			fake_sent(peers, DATA, i, FA_DONE, 0);
	}
	fake_stop();
}

Test(falcon_tl_pool, s8_2_1_1_peers_that_acknowledge_nothing_leave_room_for_others)
{
	never_acknowledged(4, 1100, 64);
	never_acknowledged(16, 1100, 16);
	never_acknowledged(64, 300, 16);
}

/* A connection that had to wait for its part sends when its own data is acknowledged, and when the
 * others have returned theirs it may have all of its limit. */
Test(falcon_tl_pool, s8_2_1_1_a_part_grows_again_when_others_return_theirs)
{
	fake_start(true, NULL);
	for (unsigned k = 0; k < 3; k++)
		for (uint32_t i = 0; i < 1100; i++) {
			fk.read = fk.count;
			pull_and_data(k, 1 + i, 100 + i);
		}
	cr_assert_eq(fk.c[0].tl.data_out, 1024);
	cr_assert_eq(fk.c[1].tl.data_out, 1024);
	cr_assert_eq(fk.c[2].tl.data_out, 64);
	fake_sent(2, DATA, 1, FA_DONE, 0);
	cr_assert_eq(fk.c[2].tl.data_out, 64, "the next one follows");
	for (uint32_t i = 0; i < 1024; i++)
		fake_sent(0, DATA, 1 + i, FA_DONE, 0);
	cr_assert_eq(fk.c[0].tl.data_out, 76, "the rest of its data");
	fake_sent(2, DATA, 2, FA_DONE, 0);
	cr_assert_gt(fk.c[2].tl.data_out, 900);
	fake_stop();
}

/* Requests that wait for a missing one hold the receive contexts: those of other connections get
 * in all the same, before the red zone. */
Test(falcon_tl_pool, s8_2_4_connections_with_gaps_leave_room_for_others)
{
	fake_start(true, NULL);
	for (unsigned k = 0; k < 64; k++)
		for (uint32_t i = 0; i < 300; i++)
			fake_rx(k, PUSH, 2 + i, 100 + i, 8);
	for (uint32_t i = 0; i < 16; i++)
		cr_assert_eq(fake_rx(64, PUSH, 2 + i, 100 + i, 8), TL_TAKEN, "push %u", i);
	fake_stop();
}

Test(falcon_tl_pool, xoff_comes_before_requests_run_out_and_xon_when_there_is_room)
{
	fake_start(true, small);
	for (unsigned i = 0; i < 3; i++) {
		fa_push(&fk.c[i % 2], fk.now, fake_buf(8));
		fake_next(F_SEND);
	}
	fake_quiet();
	fa_push(&fk.c[1], fk.now, fake_buf(8)); /* above three quarters, and still accepted */
	fake_next(F_SEND);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_XOFF);
	cr_assert_eq(fk.log[fk.read - 1].b, 0, "of the stack");
	/* Pull data continues. */
	fake_rx_pull(0, 1, 100, 8);
	fake_expect(FA_PULL, 1);
	fake_outcome(0, 1, FA_TAKEN);
	fa_pull_data(&fk.c[0], fk.now, 1, fake_buf(8));
	cr_assert_eq(fake_next(F_SEND)->b, 1);
	fake_sent(0, PUSH, 1, FA_DONE, 0);
	fake_expect(FA_COMPLETION, 1);
	fake_quiet();
	fake_sent(1, PUSH, 1, FA_DONE, 0);
	fake_expect(FA_COMPLETION, 1);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_XON);
	fake_quiet();
	fake_stop();
}

static void
few_buffers(struct fa_config *cfg, struct fa_params *p)
{
	small(cfg, p);
	cfg->pools.tx_pkt_req = cfg->pools.rx_pkt_ulp = 100;
	cfg->pools.tx_buf_req = 70; /* a full MTU takes 64 */
}

Test(falcon_tl_pool, xoff_comes_when_a_request_of_a_full_mtu_would_not_fit)
{
	fake_start(true, few_buffers);
	fa_push(&fk.c[0], fk.now, fake_buf(384));
	fake_next(F_SEND);
	fake_quiet();
	fa_push(&fk.c[0], fk.now, fake_buf(1));
	fake_next(F_SEND);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_XOFF);
	fake_sent(0, PUSH, 1, FA_DONE, 0);
	fake_expect(FA_COMPLETION, 1);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_XON);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_pool, s8_2_3_without_credits_an_unordered_connection_completes_in_error)
{
	fake_start(false, small);
	for (unsigned i = 0; i < 4; i++)
		fa_push(&fk.c[0], fk.now, fake_buf(8));
	fk.read = fk.count;
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	cr_assert_eq(fake_expect(FA_COMPLETION, 5)->c, FA_LOCAL_RESOURCE);
	fa_pull(&fk.c[1], fk.now, fake_buf(8), 8);
	cr_assert_eq(fake_expect(FA_COMPLETION, 1)->c, FA_LOCAL_RESOURCE);
	cr_assert_eq(fake_counted(FA_POOL_EMPTY), 2);
	fake_sent(0, PUSH, 3, FA_DONE, 0);
	fake_expect(FA_COMPLETION, 3);
	fa_push(&fk.c[0], fk.now, fake_buf(8)); /* and continues */
	cr_assert_eq(fake_next(F_SEND)->b, 6);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_pool, s11_an_ordered_connection_that_overran_its_resources_is_given_up)
{
	fake_start(true, small);
	for (unsigned i = 0; i < 4; i++)
		fa_push(&fk.c[0], fk.now, fake_buf(8));
	fk.read = fk.count;
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	cr_assert_eq(fake_next(F_FAIL)->a, FA_LOCAL_RESOURCE);
	fake_bury(0);
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(fake_expect(FA_COMPLETION, 1 + i)->c, FA_LOCAL_RESOURCE);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_DEAD);
	cr_assert_eq(fk.log[fk.read - 1].b, 1);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_XON);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_pool, pulls_that_owe_their_data_have_a_bound_of_their_own)
{
	fake_start(true, small);
	for (unsigned i = 0; i < 8; i++) {
		cr_assert_eq(fake_rx_pull(0, 1 + i, 100 + i, 8), TL_TAKEN);
		fake_outcome(0, 1 + i, FA_TAKEN);
	}
	cr_assert_eq(fk.s.tl.rx_pkt_net.used, 0, "CR#3: none of them is in the way of a request");
	cr_assert_eq(fake_rx_pull(0, 9, 108, 8), TL_REFUSED);
	cr_assert_eq(fake_rx(1, PUSH, 1, 300, 8), TL_TAKEN);
	fa_pull_data(&fk.c[0], fk.now, 3, NULL);
	cr_assert_eq(fake_rx_pull(0, 9, 108, 8), TL_TAKEN);
	fake_stop();
}

static void
two_pulls(struct fa_config *cfg, struct fa_params *p)
{
	p->pulls = 2;
}

/* A pull counts until its data is acknowledged, whoever keeps the peer waiting: the order, the ULP,
 * or the peer itself. */
Test(falcon_tl_pool, a_peer_has_as_many_pulls_outstanding_as_was_agreed)
{
	fake_start(true, two_pulls);
	pull_and_data(0, 1, 100);
	cr_assert_eq(fake_rx_pull(0, 3, 102, 8), TL_TAKEN, "held for its order");
	cr_assert_eq(fake_rx_pull(0, 4, 103, 8), TL_REFUSED);
	cr_assert_eq(fake_counted(FA_PULLS_EXCESS), 1);
	cr_assert_eq(fake_rx(0, PUSH, 4, 200, 8), TL_TAKEN, "a push is none");
	cr_assert_eq(fake_rx_pull(1, 1, 100, 8), TL_TAKEN, "nor is the pull of another");
	fk.read = fk.count;
	/* The head of line is not refused because of those that wait for it. */
	cr_assert_eq(fake_rx_pull(0, 2, 101, 8), TL_TAKEN);
	fake_sent(0, DATA, 1, FA_DONE, 0);
	cr_assert_eq(fake_rx_pull(0, 5, 104, 8), TL_REFUSED, "two are with the ULP");
	cr_assert_eq(fake_counted(FA_PULLS_EXCESS), 2);
	fake_stop();
}

/* The peer may have received data that it has not acknowledged, and begun other pulls. */
Test(falcon_tl_pool, pulls_whose_data_may_have_arrived_do_not_exceed_what_was_agreed)
{
	static const uint32_t in_doubt[] = {0, 0, 1, 3, 3};

	fake_start(true, two_pulls);
	for (uint32_t i = 0; i < SK_ARRAY_LEN(in_doubt); i++) {
		fk.read = fk.count;
		fk.in_doubt = in_doubt[i];
		pull_and_data(0, 1 + i, 100 + i);
		if (i == 0 || i == 3)
			continue;
		cr_assert_eq(fake_rx_pull(0, 2 + i, 101 + i, 8), TL_REFUSED, "%u", i);
	}
	fake_stop();
}

/* ---- The receive level ---- */

Test(falcon_tl_pool, s10_2_the_level_follows_the_fuller_pool_and_ends_at_31)
{
	fake_start(true, small);
	cr_assert_eq(tl_rx_level(&fk.s), 0);
	fake_rx(0, PUSH, 1, 300, 1025);
	cr_assert_eq(tl_rx_level(&fk.s), 8, "a packet of four, worth 8 cells; the buffers have 3");
	fake_rx(0, PUSH, 2, 301, 4096);
	cr_assert_eq(tl_rx_level(&fk.s), 16);
	fake_rx(0, PUSH, 3, 302, 4096);
	fake_rx(1, PUSH, 1, 300, 4096);
	cr_assert_eq(tl_rx_level(&fk.s), 31);
	for (unsigned i = 0; i < 3; i++)
		fake_outcome(0, 1 + i, FA_TAKEN);
	fake_outcome(1, 1, FA_TAKEN);
	cr_assert_eq(tl_rx_level(&fk.s), 0);
	fake_stop();
}

static void
averaged(struct fa_config *cfg, struct fa_params *p)
{
	small(cfg, p);
	cfg->rx_ema_shift = 1;
}

Test(falcon_tl_pool, s10_2_the_level_is_a_moving_average)
{
	fake_start(true, averaged);
	fake_rx(0, PUSH, 1, 300, 4096);
	cr_assert_eq(tl_rx_level(&fk.s), 4, "half of 8");
	fake_rx(0, PUSH, 2, 301, 4096);
	cr_assert_eq(tl_rx_level(&fk.s), 10, "half of 4 and of 16");
	fake_outcome(0, 1, FA_TAKEN);
	cr_assert_eq(tl_rx_level(&fk.s), 9);
	fake_stop();
}

/* ---- Valid configurations ---- */

Test(falcon_tl_pool, a_stack_without_one_request_of_each_kind_is_refused)
{
	static const size_t must[] = {offsetof(struct fa_pools, tx_pkt_req),
		offsetof(struct fa_pools, tx_buf_req), offsetof(struct fa_pools, tx_pkt_data),
		offsetof(struct fa_pools, tx_buf_data), offsetof(struct fa_pools, rx_pkt_ulp),
		offsetof(struct fa_pools, rx_buf_ulp), offsetof(struct fa_pools, rx_pkt_red),
		offsetof(struct fa_pools, rx_buf_red), offsetof(struct fa_pools, pulls),
		offsetof(struct fa_pools, tx_cell), offsetof(struct fa_pools, rx_cell)};
	struct fa_params p;
	unsigned i;

	for (i = 0; i < SK_ARRAY_LEN(must); i++) {
		fk = (struct fake){0};
		small(&fk.s.cfg, &p);
		*(uint32_t *)((char *)&fk.s.cfg.pools + must[i]) = 0;
		cr_assert_eq(tl_stack_init(&fk.s, 0), -EINVAL, "field %u", i);
	}
	fk = (struct fake){0};
	small(&fk.s.cfg, &p);
	fk.s.cfg.pools.rx_pkt_red = 5;
	cr_assert_eq(tl_stack_init(&fk.s, 0), -EINVAL, "more red than there is");
	small(&fk.s.cfg, &p);
	fk.s.cfg.rx_ema_shift = 32;
	cr_assert_eq(tl_stack_init(&fk.s, 0), -EINVAL);
	small(&fk.s.cfg, &p);
	fk.s.cfg.rx_ema_shift = 0;
	fk.s.cfg.rx_thresholds_log2 = 32;
	cr_assert_eq(tl_stack_init(&fk.s, 0), -EINVAL);
}

Test(falcon_tl_pool, a_connection_whose_mtu_does_not_fit_is_refused)
{
	fake_start(true, small);
	fk.c[0].params.mtu = 4097;
	cr_assert_eq(tl_conn_init(&fk.c[0], 0), -EINVAL);
	fk.c[0].params.mtu = 4096;
	cr_assert_eq(tl_conn_init(&fk.c[0], 0), 0);
	fake_stop();
}
