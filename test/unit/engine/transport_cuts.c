/* SPDX-License-Identifier: BSD-3-Clause */
/* The mbufs of the rests of records that TCP cuts: how many there are, and who has them. */
#include <criterion/criterion.h>
#include <rte_ethdev.h>

#include "transport_rig.h"

TestSuite(engine_transport_cuts, .init = pair_eal);

#define MBUFS 512u /* of A's transport stage */
#define MOST  (MBUFS / ENG_CUTS_PART)

/* Frees the frames that wait for B, whose stage does not run. */
static void
lose_frames(struct world *w)
{
	struct rte_mbuf *m[64];
	unsigned n;

	while ((n = rte_eth_rx_burst(w->pair.port[SIDE_B], 0, m, 64)) > 0)
		rte_pktmbuf_free_bulk(m, n);
}

/* Sends records of 1400 bytes from A, of which TCP cuts each for a peer with an MTU of 1280. */
static void
send_long(struct world *w, uint32_t conn, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		send_bytes(w, SIDE_A, conn, (uint8_t)(1400 * i), 1400);
}

/* The peer acknowledges nothing more, with a large congestion window. */
Test(engine_transport_cuts, cuts_of_records_leave_mbufs_for_headers)
{
	struct eng_transport *t;
	struct world w;
	uint32_t conn[2];

	pair_init(&w.pair);
	w.pair.cfg[SIDE_A].limits.tx_mbufs = MBUFS;
	w.pair.cfg[SIDE_A].limits.user_min = w.pair.cfg[SIDE_A].limits.user_most = 0;
	w.pair.cfg[SIDE_B].ports[0].mtu = 1280;
	world_start(&w);
	connect_both(&w, conn);
	t = w.pair.e[SIDE_A]->transports[0];
	for (unsigned i = 0; i < 6; i++) {
		send_long(&w, conn[SIDE_A], 100);
		expect_bytes(&w, SIDE_B, conn[SIDE_B], 0, 100 * 1400);
	}
	w.still = true;
	send_long(&w, conn[SIDE_A], 200);
	for (unsigned i = 0; i < 100; i++) {
		turn(&w);
		lose_frames(&w);
		cr_assert_leq(eng_cuts_live(&t->cuts), MOST);
	}
	cr_assert_eq(eng_cuts_live(&t->cuts), MOST);
	cr_assert_geq(rte_mempool_avail_count(t->tx_pool) + eng_tx_spares(t), MBUFS - MOST);
	w.still = false;
	expect_bytes(&w, SIDE_B, conn[SIDE_B], 0, 200 * 1400);
	for (unsigned i = 0; i < 100; i++)
		turn(&w);
	cr_assert_eq(eng_cuts_live(&t->cuts), 0);
	close_both(&w, conn);
	pair_end(&w.pair);
}

/* ---- Users ---- */

/* A user may hold half of the cuts, and three users have a minimum. */
static struct eng_transport *
start_users(struct world *w)
{
	struct eng_limits *l;

	pair_init(&w->pair);
	w->pair.cfg[SIDE_B].ports[0].mtu = 1280;
	l = &w->pair.cfg[SIDE_A].limits;
	l->tx_mbufs = MBUFS;
	l->clients = 4;
	l->users = 3;
	l->user_min = 10;
	l->user_most = 50;
	world_start(w);
	listen_at(w, SIDE_B);
	return w->pair.e[SIDE_A]->transports[0];
}

static void
connect_as(struct world *w, uint16_t user, uint32_t conn[2])
{
	w->user = user;
	connect_again(w, conn);
}

/* Lets the congestion window of A's end grow. */
static void
grow(struct world *w, const uint32_t conn[2])
{
	for (unsigned i = 0; i < 6; i++) {
		send_long(w, conn[SIDE_A], 50);
		expect_bytes(w, SIDE_B, conn[SIDE_B], 0, 50 * 1400);
	}
}

/* B acknowledges nothing of the next 200 turns. */
static void
pass_still(struct world *w)
{
	w->still = true;
	for (unsigned i = 0; i < 200; i++) {
		turn(w);
		lose_frames(w);
	}
	w->still = false;
}

/* Receives the bytes of all connections of B until `len` have arrived. */
static void
drain(struct world *w, uint32_t len)
{
	for (uint32_t have = 0; have < len;) {
		struct eng_dmsg m = expect_told(w, SIDE_B, ENG_E_DATA);
		struct tcp_slice *chain = (struct tcp_slice *)(uintptr_t)m.u;
		uint32_t n = 0;

		for (const struct tcp_slice *s = chain; s != NULL; s = s->next)
			n += s->len;
		eng_slice_free(chain);
		say(w, SIDE_B, ENG_T_CONSUMED, m.id_type >> 4, NULL, n);
		have += n;
	}
}

Test(engine_transport_cuts, user_whose_peer_acknowledges_nothing_leaves_cuts_to_others)
{
	uint32_t one[2], two[2], live;
	struct eng_transport *t;
	struct world w;

	t = start_users(&w);
	connect_as(&w, 1, one);
	connect_as(&w, 2, two);
	grow(&w, one);
	send_long(&w, one[SIDE_A], 200);
	pass_still(&w);
	cr_assert_eq(eng_cuts_live(&t->cuts), MOST / 2);
	cr_assert_gt(t->counters[ENG_CUT_SHARE], 0);
	send_long(&w, two[SIDE_A], 8);
	pass_still(&w);
	live = eng_cuts_live(&t->cuts);
	cr_assert_geq(live, MOST / 2 + 4, "the other user has %u", live - MOST / 2);
	drain(&w, (200 + 8) * 1400);
	for (unsigned i = 0; i < 100; i++)
		turn(&w);
	cr_assert_eq(eng_cuts_live(&t->cuts), 0);
	pair_end(&w.pair);
}

/* Cuts that one user's peers have acknowledged are free for the next user. */
Test(engine_transport_cuts, freed_cuts_return_to_the_share)
{
	uint32_t conn[5][2];
	struct eng_transport *t;
	struct world w;

	t = start_users(&w);
	for (uint16_t user = 0; user < 5; user++) {
		connect_as(&w, user, conn[user]);
		grow(&w, conn[user]);
		send_long(&w, conn[user][SIDE_A], 200);
		pass_still(&w);
		cr_assert_eq(eng_cuts_live(&t->cuts), MOST / 2, "user %u", user);
		drain(&w, 200 * 1400);
		for (unsigned i = 0; i < 100; i++)
			turn(&w);
		cr_assert_eq(eng_cuts_live(&t->cuts), 0, "user %u", user);
	}
	pair_end(&w.pair);
}
