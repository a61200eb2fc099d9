/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that their QPs have left to TCP. */
#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/transport/link.h"
#include "transport_rig.h"

TestSuite(engine_transport_left, .init = pair_eal);

/* Leaves A's end, whose QP learns it at once, and releases it. */
static void
leave(struct world *w, const uint32_t conn[2], uint32_t consumed)
{
	struct eng_transport *t = w->pair.e[SIDE_A]->transports[0];
	struct eng_dmsg m;

	say(w, SIDE_A, ENG_T_LEAVE, conn[SIDE_A], NULL, consumed);
	m = expect_told(w, SIDE_A, ENG_E_CLOSED);
	cr_assert_eq(m.arg, ECONNABORTED);
	say(w, SIDE_A, ENG_T_RELEASE, conn[SIDE_A], NULL, 0);
	turn(w);
	cr_assert_eq(t->nused, 0);
	cr_assert_eq(t->conn_share.held, 0);
}

/* Connects, and leaves A's end with a record that the peer does not acknowledge. */
static void
leave_with_record(struct world *w, uint32_t conn[2])
{
	world_connect(w, conn);
	w->still = true;
	send_bytes(w, SIDE_A, conn[SIDE_A], 0, 100);
	leave(w, conn, 0);
}

/* Ends B's end after the peer's FIN, or checks that the peer has reset it. */
static void
peer_ends(struct world *w, const uint32_t conn[2], uint32_t error)
{
	if (error == 0) {
		close_after_peer(w, conn);
	} else {
		cr_assert_eq(expect_told(w, SIDE_B, ENG_E_CLOSED).arg, error);
		say(w, SIDE_B, ENG_T_RELEASE, conn[SIDE_B], NULL, 0);
	}
	turn(w);
	cr_assert_eq(w->pair.e[SIDE_B]->transports[0]->nused, 0);
}

static uint64_t
count_of(const struct world *w, int side, const char *name)
{
	return pair_counter(w->pair.e[side], "tcp", name);
}

static void
pass(struct world *w, uint64_t ns)
{
	for (uint64_t end = w->now + ns; w->now < end; w->now += 1000000)
		turn(w);
}

Test(engine_transport_left, left_connection_delivers_all_and_ends_in_order_rfc9293_3_10_4)
{
	struct eng_transport *t;
	struct eng_dmsg m;
	struct world w;
	uint32_t conn[2];

	world_connect(&w, conn);
	t = w.pair.e[SIDE_A]->transports[0];
	send_bytes(&w, SIDE_B, conn[SIDE_B], 7, 30);
	turn(&w);
	w.still = true; /* the bytes are not acknowledged */
	for (unsigned i = 0; i < 4; i++)
		send_bytes(&w, SIDE_A, conn[SIDE_A], (uint8_t)(100 * i), 100);
	m = expect_told(&w, SIDE_A, ENG_E_DATA);
	eng_slice_free((struct tcp_slice *)(uintptr_t)m.u);
	leave(&w, conn, 30);
	cr_assert_eq(t->left_share.held, 5, "four records and the connection");
	w.still = false;
	cr_assert_eq(count_of(&w, SIDE_A, "TCP_LEFT"), 1);
	expect_bytes(&w, SIDE_B, conn[SIDE_B], 0, 400);
	peer_ends(&w, conn, 0);
	pass(&w, 2 * w.pair.e[SIDE_A]->cfg.tcp.msl_ns + 100000000);
	cr_assert_eq(t->left_share.held, 0);
	cr_assert_eq(count_of(&w, SIDE_A, "TCP_RESET_OUT"), 0);
	cr_assert_eq(count_of(&w, SIDE_B, "TCP_RESET_IN"), 0);
	pair_end(&w.pair);
}

Test(engine_transport_left, connection_with_unread_bytes_is_not_left_rfc1122_4_2_2_13)
{
	struct world w;
	struct eng_dmsg m;
	uint32_t conn[2];

	world_connect(&w, conn);
	send_bytes(&w, SIDE_B, conn[SIDE_B], 7, 30);
	m = expect_told(&w, SIDE_A, ENG_E_DATA);
	eng_slice_free((struct tcp_slice *)(uintptr_t)m.u);
	leave(&w, conn, 29);
	cr_assert_eq(w.pair.e[SIDE_A]->transports[0]->left_share.held, 0);
	peer_ends(&w, conn, ECONNRESET);
	cr_assert_eq(count_of(&w, SIDE_A, "TCP_LEFT"), 0);
	cr_assert_eq(count_of(&w, SIDE_A, "TCP_LEFT_UNREAD"), 1);
	cr_assert_eq(count_of(&w, SIDE_A, "TCP_RESET_OUT"), 1);
	pair_end(&w.pair);
}

Test(engine_transport_left, left_connection_is_reset_by_new_bytes_rfc2525_2_17)
{
	struct world w;
	uint32_t conn[2];

	world_connect(&w, conn);
	leave(&w, conn, 0);
	expect_told(&w, SIDE_B, ENG_E_FIN);
	send_bytes(&w, SIDE_B, conn[SIDE_B], 7, 30);
	peer_ends(&w, conn, ECONNRESET);
	cr_assert_eq(w.pair.e[SIDE_A]->transports[0]->left_share.held, 0);
	cr_assert_eq(count_of(&w, SIDE_A, "TCP_LEFT_UNREAD"), 1);
	pair_end(&w.pair);
}

/* The peer takes nothing: after a minute the records are free, and no share is held. */
Test(engine_transport_left, left_connection_ends_although_the_peer_takes_nothing)
{
	struct eng_transport *t;
	struct world w;
	uint32_t conn[2], before, held;

	world_connect(&w, conn);
	t = w.pair.e[SIDE_A]->transports[0];
	pass(&w, 100000000);
	before = rte_mempool_in_use_count(w.pair.e[SIDE_A]->stages[0]->store);
	w.still = true;
	for (unsigned i = 0; i < 8; i++)
		send_bytes(&w, SIDE_A, conn[SIDE_A], 0, 100);
	turn(&w);
	leave(&w, conn, 0);
	held = rte_mempool_in_use_count(w.pair.e[SIDE_A]->stages[0]->store);
	cr_assert_eq(held - before, 8);
	cr_assert_eq(t->left_share.held, 9, "eight records and the connection");
	pass(&w, 61000000000);
	cr_assert_eq(t->left_share.held, 0);
	cr_assert_eq(rte_mempool_in_use_count(w.pair.e[SIDE_A]->stages[0]->store), before);
	pair_end(&w.pair);
}

/* A user that leaves too many records has its next connections reset; nobody else is concerned. */
Test(engine_transport_left, user_leaves_no_more_records_than_its_share)
{
	struct eng_transport *t;
	struct world w;
	uint32_t conn[2];

	pair_init(&w.pair);
	w.pair.cfg[SIDE_A].limits.user_most = 10;
	world_start(&w);
	connect_both(&w, conn);
	t = w.pair.e[SIDE_A]->transports[0];
	cr_assert_eq(t->left_share.size, w.pair.cfg[SIDE_A].limits.tx_mbufs / ENG_LEFT_PART);
	w.still = true;
	for (uint32_t i = 0; i < t->left_share.most; i++)
		send_bytes(&w, SIDE_A, conn[SIDE_A], 0, 8);
	leave(&w, conn, 0);
	cr_assert_eq(t->left_share.held, 0);
	cr_assert_eq(pair_counter(w.pair.e[SIDE_A], "eng", "ENG_LEFT_SHARE"), 1);
	cr_assert_eq(count_of(&w, SIDE_A, "TCP_LEFT"), 0);
	cr_assert_eq(count_of(&w, SIDE_A, "TCP_RESET_OUT"), 1);
	pair_end(&w.pair);
}

/* Its packets have the class of the connection to the end. */
Test(engine_transport_left, left_connection_keeps_its_class)
{
	const struct net_class class = {.dscp = 24};
	struct rte_mbuf *m;
	struct rte_ring *wire;
	struct world w;
	uint32_t conn[2];
	unsigned n = 0;

	world_connect(&w, conn);
	pass(&w, 100000000);
	wire = rte_ring_lookup("wire1_0");
	net_path_set_class(&w.pair.e[SIDE_A]->transports[0]->conns[conn[SIDE_A]].path, &class);
	w.still = true;
	send_bytes(&w, SIDE_A, conn[SIDE_A], 0, 100);
	leave(&w, conn, 0);
	cr_assert_gt(rte_ring_count(wire), 0);
	while (rte_ring_sc_dequeue(wire, (void **)&m) == 0) {
		cr_assert_eq(rte_pktmbuf_mtod(m, const uint8_t *)[ETH_LEN + 1] >> 2, 24);
		rte_pktmbuf_free(m);
		n++;
	}
	cr_assert_gt(n, 0);
	w.still = false;
	expect_bytes(&w, SIDE_B, conn[SIDE_B], 0, 100); /* sent again */
	peer_ends(&w, conn, 0);
	pair_end(&w.pair);
}

Test(engine_transport_left, removed_address_ends_left_connections)
{
	static struct eng_config next;
	struct world w;
	uint32_t conn[2];

	world_connect(&w, conn);
	leave(&w, conn, 0);
	expect_told(&w, SIDE_B, ENG_E_FIN);
	cr_assert_eq(w.pair.e[SIDE_A]->transports[0]->left_share.held, 1);
	next = w.pair.e[SIDE_A]->cfg;
	cr_assert_eq(sk_addr_parse("10.0.0.77", &next.ifs[0].addr), 0);
	cr_assert_eq(change_step(&w, SIDE_A, ENG_CHANGE_END, &next, 0), 0);
	cr_assert_eq(w.pair.e[SIDE_A]->transports[0]->left_share.held, 0);
	peer_ends(&w, conn, ECONNRESET);
	pair_end(&w.pair);
}

Test(engine_transport_left, removed_port_ends_left_connections)
{
	struct eng *e;
	struct world w;
	uint32_t conn[2];

	leave_with_record(&w, conn);
	e = w.pair.e[SIDE_A];
	cr_assert_eq(e->transports[0]->left_share.held, 2);
	w.still = false;
	__atomic_store_n(&e->ports[0].dev.gone, true, __ATOMIC_RELEASE);
	turn(&w);
	cr_assert_eq(e->transports[0]->left_share.held, 0);
	__atomic_store_n(&e->ports[0].dev.gone, false, __ATOMIC_RELEASE);
	pair_end(&w.pair);
}

Test(engine_transport_left, end_of_the_instance_frees_left_connections)
{
	struct world w;
	uint32_t conn[2];

	leave_with_record(&w, conn);
	pair_end(&w.pair); /* checks that all mbufs are back */
}
