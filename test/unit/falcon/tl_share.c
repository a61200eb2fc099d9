/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shares that users have of the pools: section 8.2.1.1 requires that the progress of a
 * connection does not depend on another one, and here it does not depend on another user. Of each
 * pool of 24 packet contexts, each of the three users has a minimum of 4. So a user that returns
 * nothing gets 16.
 */
#include "tl_fake.h"

#include <errno.h>

#define PUSH  FALCON_PUSH_DATA
#define PULL  FALCON_PULL_REQUEST
#define DATA  FALCON_PULL_DATA
#define USERS 3
#define POOL  24
#define MOST  16
#define LEAST 4

/* Connections of user 0, and of the others. */
enum { A0 = 0, B0 = 1, C0 = 2, A1 = A0 + USERS, A2 = A1 + USERS, B1 = B0 + USERS };

static void
shared(struct fa_config *cfg, struct fa_params *p)
{
	cfg->pools = (struct fa_pools){.tx_pkt_req = POOL,
		.tx_buf_req = POOL * 64,
		.rx_pkt_ulp = POOL,
		.rx_buf_ulp = POOL * 8,
		.tx_pkt_data = POOL,
		.tx_buf_data = POOL * 64,
		.rx_pkt_net = POOL + 4,
		.rx_buf_net = (POOL + 4) * 8,
		.rx_pkt_red = 4,
		.rx_buf_red = 4 * 8,
		.pulls = POOL,
		.tx_cell = 64,
		.rx_cell = 512};
	cfg->shares = (struct fa_shares){.users = USERS, .reserved = USERS, .minimum = 17};
	cfg->conn_waiting = 64;
}

static void
push(unsigned conn, unsigned n, uint32_t len)
{
	while (n-- > 0)
		fa_push(&fk.c[conn], fk.now, fake_buf(len));
}

/* Returns the number of packets of the connection that PDL has. */
static unsigned
with_pdl(unsigned conn)
{
	unsigned n = 0;

	for (unsigned i = 0; i < fk.sent_count; i++)
		n += fk.sent_by[i] == &fk.c[conn];
	return n;
}

Test(falcon_tl_share, s8_2_1_1_requests_of_a_user_leave_the_minimum_of_others)
{
	fake_start(true, shared);
	push(A0, 6, 8);
	push(A1, 6, 8);
	push(A2, 6, 8);
	cr_assert_eq(with_pdl(A0) + with_pdl(A1) + with_pdl(A2), MOST);
	cr_assert_eq(fake_counted(FA_POOL_EMPTY), 2);
	push(B0, LEAST, 8);
	cr_assert_eq(with_pdl(B0), LEAST, "requests of another user wait for none of these");
	push(B0, 1, 8);
	cr_assert_eq(with_pdl(B0), LEAST);
	fake_sent(B0, PUSH, 1, FA_DONE, 0);
	cr_assert_eq(with_pdl(B0), LEAST, "the next one follows");
	cr_assert_eq(with_pdl(A2), 4);
	fake_sent(A0, PUSH, 1, FA_DONE, 0);
	cr_assert_eq(with_pdl(A2), 5, "a connection of the same user");
	fake_stop();
}

Test(falcon_tl_share, s8_2_1_1_users_take_turns_and_then_their_connections)
{
	static const unsigned order[] = {A0, B0, A1, B0, A0, B0, A1, B0};

	fake_start(true, shared);
	push(C0, MOST, 8);
	push(A0, LEAST, 8);
	push(B0, LEAST, 8);
	/* All units are taken: two connections of user 0 wait, and one of user 1. */
	push(A0, 4, 8);
	push(A1, 4, 8);
	push(B0, 4, 8);
	for (unsigned i = 0; i < SK_ARRAY_LEN(order); i++) {
		unsigned before = with_pdl(order[i]);

		fake_sent(C0, PUSH, 1 + i, FA_DONE, 0);
		cr_assert_eq(with_pdl(order[i]), before + 1, "turn %u", i);
	}
	fake_stop();
}

/* A packet of a full MTU has twice the buffers that a packet context has on average. */
static void
few_buffers(struct fa_config *cfg, struct fa_params *p)
{
	shared(cfg, p);
	cfg->pools.tx_buf_req /= 2;
	cfg->pools.rx_buf_ulp /= 2;
	cfg->pools.tx_buf_data /= 2;
}

Test(falcon_tl_share, s8_2_2_a_packet_with_more_buffers_than_the_average_takes_more_of_the_share)
{
	fake_start(true, few_buffers);
	push(A0, 30, 4096);
	cr_assert_eq(with_pdl(A0), MOST / 2);
	push(B0, 30, 4096);
	cr_assert_eq(with_pdl(B0), LEAST / 2);
	for (unsigned i = 0; i < 30; i++)
		fa_pull(&fk.c[C0], fk.now, fake_buf(28), 4096);
	cr_assert_eq(with_pdl(C0), LEAST / 2, "the buffers of the response count as well");
	fake_stop();
}

/* The ULP takes a pull and gives its data. */
static void
pull_and_data(unsigned conn, uint32_t rsn)
{
	cr_assert_eq(fake_rx_pull(conn, rsn, 100 + rsn, 8), TL_TAKEN);
	fake_outcome(conn, rsn, FA_TAKEN);
	fa_pull_data(&fk.c[conn], fk.now, rsn, fake_buf(8));
}

Test(falcon_tl_share, s8_2_1_1_pull_data_of_a_user_leaves_the_minimum_of_others)
{
	fake_start(true, shared);
	for (uint32_t i = 1; i <= 10; i++) {
		pull_and_data(A0, i);
		pull_and_data(A1, i);
	}
	cr_assert_eq(with_pdl(A0) + with_pdl(A1), MOST);
	for (uint32_t i = 1; i <= LEAST; i++)
		pull_and_data(B0, i);
	cr_assert_eq(with_pdl(B0), LEAST);
	pull_and_data(B1, 1);
	cr_assert_eq(with_pdl(B1), 0);
	fake_sent(B0, DATA, 1, FA_DONE, 0);
	cr_assert_eq(with_pdl(B1), 1);
	cr_assert_eq(with_pdl(A0) + with_pdl(A1), MOST);
	fake_sent(A0, DATA, 1, FA_DONE, 0);
	cr_assert_eq(with_pdl(A0) + with_pdl(A1), MOST, "the next one follows");
	fake_stop();
}

/* fa_answer() is the usual way of pull data. */
Test(falcon_tl_share, s8_2_1_1_answers_wait_behind_those_of_their_user_only)
{
	fake_start(true, shared);
	for (uint32_t i = 1; i <= MOST + 1; i++) {
		cr_assert_eq(fake_rx_pull(A0, i, 100 + i, 8), TL_TAKEN);
		fa_answer(&fk.c[A0], fk.now, i, fake_buf(8));
	}
	cr_assert_eq(with_pdl(A0), MOST);
	for (uint32_t i = 1; i <= LEAST; i++) {
		cr_assert_eq(fake_rx_pull(B0, i, 100 + i, 8), TL_TAKEN);
		fa_answer(&fk.c[B0], fk.now, i, fake_buf(8));
	}
	cr_assert_eq(with_pdl(B0), LEAST);
	fake_stop();
}

/* The answer takes more of one share than its request has of another one. */
Test(falcon_tl_share, s8_2_2_a_long_answer_returns_what_its_short_request_took)
{
	fake_start(true, few_buffers);
	for (uint32_t i = 1; i <= 2; i++) {
		cr_assert_eq(fake_rx_pull(A0, i, 100 + i, 4096), TL_TAKEN);
		cr_assert_eq(fake_rx_pull(B0, i, 100 + i, 4096), TL_TAKEN);
	}
	for (uint32_t i = 1; i <= 2; i++) {
		cr_assert_eq(fk.s.tl.shares.net.held, 5 - i);
		fa_answer(&fk.c[A0], fk.now, i, fake_buf(4096));
	}
	cr_assert_eq(fk.s.tl.shares.net.held, 2);
	cr_assert_eq(fk.s.tl.shares.pulls.held, 2);
	cr_assert_eq(fk.s.tl.shares.data.held, 4);
	fake_sent(A0, DATA, 1, FA_DONE, 0);
	cr_assert_eq(fk.s.tl.shares.data.held, 2);
	fake_stop();
}

Test(falcon_tl_share, s8_2_4_requests_behind_a_gap_leave_the_minimum_of_others)
{
	fake_start(true, shared);
	for (uint32_t i = 0; i < MOST / 2; i++) {
		cr_assert_eq(fake_rx(A0, PUSH, 2 + i, 100 + i, 8), TL_TAKEN);
		cr_assert_eq(fake_rx(A1, PUSH, 2 + i, 100 + i, 8), TL_TAKEN);
	}
	cr_assert_eq(fake_rx(A0, PUSH, 20, 120, 8), TL_REFUSED);
	cr_assert_eq(fake_rx(A2, PUSH, 2, 100, 8), TL_REFUSED);
	for (uint32_t i = 0; i < LEAST; i++)
		cr_assert_eq(fake_rx(B0, PUSH, 2 + i, 100 + i, 8), TL_TAKEN);
	cr_assert_eq(fake_rx(B0, PUSH, 9, 120, 8), TL_REFUSED);
	/* The request that all others of a connection wait for is never refused for a share
	 * (CR#3). */
	cr_assert_eq(fake_rx(A0, PUSH, 1, 90, 8), TL_TAKEN);
	cr_assert_eq(fk.s.tl.shares.net.held, MOST + LEAST, "a share does not count it");
	for (uint32_t i = 0; i < 1 + MOST / 2; i++)
		fake_outcome(A0, 1 + i, FA_TAKEN);
	cr_assert_eq(fake_rx(A2, PUSH, 2, 100, 8), TL_TAKEN);
	fake_stop();
}

/* On an ordered connection each request that arrives in order is the head of its line. */
Test(falcon_tl_share, s8_2_4_requests_in_order_leave_the_minimum_of_others)
{
	fake_start(true, shared);
	for (uint32_t i = 1; i <= MOST; i++)
		cr_assert_eq(fake_rx(A0, PUSH, i, 100 + i, 8), TL_TAKEN);
	cr_assert_eq(fake_rx(A0, PUSH, MOST + 1, 117, 8), TL_REFUSED, "others are inside");
	cr_assert_eq(fake_rx(A1, PUSH, 1, 101, 8), TL_TAKEN, "none of its connection is");
	cr_assert_eq(fake_rx(A1, PUSH, 2, 102, 8), TL_REFUSED);
	for (uint32_t i = 1; i <= LEAST; i++)
		cr_assert_eq(fake_rx(B0, PUSH, i, 100 + i, 8), TL_TAKEN);
	cr_assert_eq(fk.s.tl.rx_pkt_net.used, MOST + 1 + LEAST);
	/* CR#3: each of them continues when what it waits for is over. */
	fake_outcome(A1, 1, FA_TAKEN);
	cr_assert_eq(fake_rx(A1, PUSH, 2, 102, 8), TL_TAKEN);
	fake_outcome(A0, 1, FA_TAKEN);
	cr_assert_eq(fake_rx(A0, PUSH, MOST + 1, 117, 8), TL_TAKEN);
	fake_stop();
}

/* All that an unordered connection holds may be pushes that the ULP refused: each further one is
 * the head of its line. */
Test(falcon_tl_share, s8_2_4_refused_pushes_without_an_order_leave_the_minimum_of_others)
{
	fake_start(false, shared);
	for (uint32_t i = 1; i <= POOL + 10; i++) {
		cr_assert_eq(fake_rx(A0, PUSH, i, 100 + i, 8), TL_TAKEN);
		fake_rnr(A0, i, 12);
	}
	cr_assert_eq(fk.s.tl.shares.net.held, MOST);
	cr_assert_eq(fk.s.tl.rx_pkt_net.used, MOST, "a further one takes the place of one");
	cr_assert_eq(fake_counted(FA_EVICTED), POOL + 10 - MOST);
	for (uint32_t i = 1; i <= LEAST; i++)
		cr_assert_eq(fake_rx(B0, PUSH, i, 100 + i, 8), TL_TAKEN);
	fake_stop();
}

/* Adds a packet to a run, as fa_run_add() does. */
static bool
run_accept(unsigned conn, uint8_t type, uint32_t rsn)
{
	struct wire_falcon_plain h = {.type = type, .rsn = rsn, .psn = 100 + rsn, .len = 8};

	if (type == PULL) {
		h.len = 0;
		h.request_len = 8;
	}
	return tl_run_accept(&fk.c[conn], fk.now, &h);
}

/* A connection of user 0 with a backlog in order holds what tl_pool_share() permits, and the red
 * zone stays free: also where its pushes arrive in runs. */
static void
backlog_in_order(bool (*take)(unsigned conn, uint32_t rsn))
{
	fake_start(true, NULL);
	for (unsigned k = 0; k < FAKE_CONNS; k++)
		for (uint32_t i = 1; i <= 1024 && take(k, i); i++)
			;
	cr_assert_geq(fk.c[0].tl.in_net, 1024);
	cr_assert_leq(fk.c[FAKE_CONNS / 2].tl.in_net, 96);
	cr_assert_geq(fk.c[FAKE_CONNS - 1].tl.in_net, 6);
	cr_assert_leq(
		fk.s.tl.rx_pkt_net.used, fk.s.cfg.pools.rx_pkt_net - fk.s.cfg.pools.rx_pkt_red);
	fake_stop();
}

static bool
one_by_one(unsigned conn, uint32_t rsn)
{
	return fake_rx(conn, PUSH, rsn, 100 + rsn, 8) == TL_TAKEN;
}

/* A packet that a run does not accept is processed by itself. */
static bool
in_runs(unsigned conn, uint32_t rsn)
{
	return run_accept(conn, PUSH, rsn) || one_by_one(conn, rsn);
}

Test(falcon_tl_share, s8_2_4_connections_with_requests_in_order_leave_room_for_others)
{
	backlog_in_order(one_by_one);
	backlog_in_order(in_runs);
}

Test(falcon_tl_share, s8_2_2_pulls_of_the_peers_of_a_user_leave_the_minimum_of_others)
{
	fake_start(true, shared);
	for (uint32_t i = 1; i <= MOST / 2; i++) {
		cr_assert_eq(fake_rx_pull(A0, i, 100 + i, 8), TL_TAKEN);
		fake_outcome(A0, i, FA_TAKEN); /* its data does not come */
		cr_assert_eq(fake_rx_pull(A1, i, 100 + i, 8), TL_TAKEN);
		fake_outcome(A1, i, FA_TAKEN);
	}
	cr_assert_eq(fake_rx_pull(A2, 1, 101, 8), TL_REFUSED);
	for (uint32_t i = 1; i <= LEAST; i++) {
		cr_assert_eq(fake_rx_pull(B0, i, 100 + i, 8), TL_TAKEN);
		fake_outcome(B0, i, FA_TAKEN);
	}
	fa_pull_data(&fk.c[A0], fk.now, 1, fake_buf(8));
	cr_assert_eq(fake_rx_pull(A2, 1, 101, 8), TL_TAKEN);
	fake_stop();
}

static void
runs_end_at_the_share(uint8_t type)
{
	fake_start(true, shared);
	for (uint32_t i = 1; i <= MOST; i++)
		cr_assert(run_accept(A0, type, i), "request %u", i);
	cr_assert(!run_accept(A0, type, MOST + 1));
	cr_assert_eq(tl_run_room(&fk.c[A0]), 0);
	cr_assert(!run_accept(A1, type, 1));
	for (uint32_t i = 1; i <= LEAST; i++)
		cr_assert(run_accept(B0, type, i), "request %u of another user", i);
	cr_assert(!run_accept(B0, type, LEAST + 1));
	for (uint32_t i = 1; i <= MOST; i++)
		fake_outcome(A0, i, FA_TAKEN);
	cr_assert_eq(run_accept(A1, type, 1), type == PUSH, "pulls wait for their data");
	fake_stop();
}

Test(falcon_tl_share, s8_2_4_a_run_ends_where_the_share_of_the_user_ends)
{
	runs_end_at_the_share(PUSH);
	runs_end_at_the_share(PULL);
}

static void
no_user(struct fa_config *cfg, struct fa_params *p)
{
	shared(cfg, p);
	cfg->shares.users = 0;
}

Test(falcon_tl_share, a_stack_without_users_has_one_that_can_take_all)
{
	fake_start(true, no_user);
	push(A0, 12, 4096);
	push(B0, 13, 4096);
	cr_assert_eq(with_pdl(A0) + with_pdl(B0), POOL);
	cr_assert_eq(fa_conn_share(&fk.c[C0], 1), -EINVAL);
	fake_stop();
}

Test(falcon_tl_share, shares_that_cannot_be_are_refused)
{
	struct fa_config good;

	fake_start(true, shared);
	good = fk.s.cfg;
	cr_assert_eq(fa_conn_share(&fk.c[A0], USERS), -EINVAL, "there is no such user");
	fake_stop();
	fk.s.cfg.shares.minimum = 101;
	cr_assert_eq(tl_stack_init(&fk.s, fk.now), -EINVAL);
	fk.s.cfg = good;
	fk.s.cfg.shares.most = 101;
	cr_assert_eq(tl_stack_init(&fk.s, fk.now), -EINVAL);
	/* A user may have 4 units, and a packet of a full MTU would take 8. */
	fk.s.cfg = good;
	fk.s.cfg.shares.most = 1;
	fk.s.cfg.pools.tx_buf_data = POOL * 8;
	cr_assert_eq(tl_stack_init(&fk.s, fk.now), 0);
	cr_assert_eq(tl_conn_init(&fk.c[A0], fk.now), -EINVAL);
	fk.c[A0].params.mtu = 2048;
	cr_assert_eq(tl_conn_init(&fk.c[A0], fk.now), 0);
	tl_stack_fini(&fk.s);
}
