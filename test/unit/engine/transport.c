/* SPDX-License-Identifier: BSD-3-Clause */
/* Two transport stages, connected by rings: the test plays the control stage and the engine stage
 * of both. */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_hash_crc.h>
#include <rte_ethdev.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/transport/link.h"
#include "transport_rig.h"

TestSuite(engine_transport, .init = pair_eal);

/* An initiator waits only a limited time for the reply of a program that never answers. */
Test(engine_transport, a_reply_that_does_not_come_5044_7_1)
{
	struct world w;
	struct eng_ctl *m;

	pair_init(&w.pair);
	world_start(&w);
	listen_at(&w, SIDE_B);
	connect_from(&w, SIDE_A, PAIR_ADDR_B);
	command(&w, SIDE_B, expect(&w, SIDE_B, ENG_TC_REQUEST));
	w.now += ENG_REPLY_TIMEOUT_NS - 1000000000;
	cr_assert_null(heard(&w, SIDE_A), "too early");
	w.now += 2000000000;
	m = expect(&w, SIDE_A, ENG_TC_FAILED);
	cr_assert_eq(m->status, -ETIMEDOUT);
	command(&w, SIDE_A, m);
	m = expect(&w, SIDE_B, ENG_TC_FAILED); /* the request is withdrawn */
	command(&w, SIDE_B, m);
	pair_end(&w.pair);
}

/* Fills the ring that A's port sends to, or empties it. */
static void
block(struct rte_ring *wire, struct rte_mempool *pool)
{
	while (rte_ring_free_count(wire) > 0) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

		cr_assert_not_null(m);
		cr_assert_eq(rte_ring_sp_enqueue(wire, m), 0);
	}
}

static void
unblock(struct rte_ring *wire)
{
	void *m;

	while (rte_ring_sc_dequeue(wire, &m) == 0)
		rte_pktmbuf_free(m);
}

/* Frames wait for a full queue of a port with a link. A port without a link drops them, and sends
 * again when the link is back. */
Test(engine_transport, without_a_link_frames_are_dropped)
{
	struct world w;
	struct rte_ring *wire;
	struct rte_mempool *pool;
	struct eng *e;
	struct eng_tx *tx;

	pair_init(&w.pair);
	world_start(&w);
	e = w.pair.e[SIDE_A];
	tx = &e->transports[0]->tx[0];
	wire = rte_ring_lookup("wire1_0");
	pool = rte_pktmbuf_pool_create("block", 2047, 0, 0, 256, SOCKET_ID_ANY);
	cr_assert(wire != NULL && pool != NULL);
	block(wire, pool);
	listen_at(&w, SIDE_B);
	connect_from(&w, SIDE_A, PAIR_ADDR_B);
	unblock(wire);
	block(wire, pool);
	w.now += 2000000000;
	eng_transport_tx(e->transports[0], w.now);
	eng_transport_tx(e->transports[0], w.now);
	cr_assert_gt(tx->n, 0, "a frame waits");
	cr_assert_gt(pair_counter(e, "eng", "ENG_TX_FULL"), 0);
	cr_assert_eq(pair_counter(e, "eng", "ENG_TX_LINK_DOWN"), 0);

	cr_assert_eq(rte_eth_dev_set_link_down(w.pair.port[SIDE_A]), 0);
	eng_ports_look(e);
	eng_transport_tx(e->transports[0], w.now);
	cr_assert_eq(tx->n, 0);
	cr_assert_gt(pair_counter(e, "eng", "ENG_TX_LINK_DOWN"), 0);

	cr_assert_eq(rte_eth_dev_set_link_up(w.pair.port[SIDE_A]), 0);
	eng_ports_look(e);
	unblock(wire);
	w.now += 2000000000;
	command(&w, SIDE_B, expect(&w, SIDE_B, ENG_TC_REQUEST));
	pair_end(&w.pair);
	cr_assert_eq(rte_mempool_in_use_count(pool), 0);
}

/* RFC 5044 7.1: request and reply, then bytes in both directions, then an orderly end. */
Test(engine_transport, startup_then_bytes_both_ways_then_end)
{
	struct world w;
	uint32_t conn[2];

	world_connect(&w, conn);
	for (unsigned round = 0; round < 50; round++) {
		send_bytes(&w, SIDE_A, conn[SIDE_A], (uint8_t)round, 64);
		send_bytes(&w, SIDE_B, conn[SIDE_B], (uint8_t)(round + 7), 1000);
		expect_bytes(&w, SIDE_B, conn[SIDE_B], (uint8_t)round, 64);
		expect_bytes(&w, SIDE_A, conn[SIDE_A], (uint8_t)(round + 7), 1000);
	}
	close_both(&w, conn);
	cr_assert_eq(pair_counter(w.pair.e[0], "eng", "ENG_RX_BAD"), 0);
	pair_end(&w.pair);
}

/* A payload above ENG_COPY_MAX is sent in an mbuf attached to its record, which TCP keeps. */
Test(engine_transport, long_records_are_attached)
{
	struct world w;
	uint32_t conn[2];

	pair_init(&w.pair);
	w.pair.cfg[0].ports[0].mtu = w.pair.cfg[1].ports[0].mtu = 9000;
	world_start(&w);
	connect_both(&w, conn);
	for (unsigned round = 0; round < 20; round++) {
		send_bytes(&w, SIDE_A, conn[SIDE_A], (uint8_t)round, 8900);
		expect_bytes(&w, SIDE_B, conn[SIDE_B], (uint8_t)round, 8900);
	}
	close_both(&w, conn);
	pair_end(&w.pair);
}

/* Two clients of one instance connect over the internal loop port. */
Test(engine_transport, own_address_goes_over_the_loop_port)
{
	struct world w;
	static struct eng_ctl c;
	struct eng_ctl *m;
	uint32_t conn;

	pair_init(&w.pair);
	world_start(&w);
	listen_at(&w, SIDE_A);
	conn = connect_from(&w, SIDE_A, PAIR_ADDR_A);
	m = expect(&w, SIDE_A, ENG_TC_REQUEST);
	c = (struct eng_ctl){.type = ENG_CT_REJECT, .conn = m->conn, .private_len = 2};
	memcpy(c.private_data, "no", 2);
	command(&w, SIDE_A, m);
	do_command(&w, SIDE_A, &c, 0);
	m = expect(&w, SIDE_A, ENG_TC_REJECTED);
	cr_assert_eq(m->conn, conn);
	cr_assert_eq(m->private_len, 2);
	cr_assert_eq(pair_counter(w.pair.e[0], "mpa", "MPA_REJECTED"), 1);
	cr_assert_gt(pair_counter(w.pair.e[0], "eng", "ENG_LOOP_PORT"), 5);
	/* The index is not free until the notice has been returned. */
	for (int i = 0; i < 100; i++)
		turn(&w);
	cr_assert_eq(w.pair.e[0]->transports[0]->nused, 1);
	command(&w, SIDE_A, m);
	turn(&w);
	cr_assert_eq(w.pair.e[0]->transports[0]->nused, 0);
	pair_end(&w.pair);
}

/* The initiator acknowledges all bytes, sends new ones, and never closes. */
Test(engine_transport, rejected_connection_ends_within_a_minute)
{
	static struct eng_ctl c;
	struct eng_transport *a, *b;
	struct world w;
	uint32_t conn[2];
	uint64_t end;

	pair_init(&w.pair);
	world_start(&w);
	request(&w, conn);
	a = w.pair.e[SIDE_A]->transports[0];
	b = w.pair.e[SIDE_B]->transports[0];
	sk_timer_stop(&a->wheel, &a->conns[conn[SIDE_A]].su->timer);
	a->conns[conn[SIDE_A]].state = ECONN_DEAD; /* takes all bytes, and ignores the FIN */
	c = (struct eng_ctl){.type = ENG_CT_REJECT, .conn = conn[SIDE_B]};
	do_command(&w, SIDE_B, &c, 0);
	for (unsigned i = 0; i < 12; i++) {
		for (end = w.now + 5000000000; w.now < end; w.now += 5000000)
			turn(&w);
		if (i == 10)
			cr_assert_eq(b->conn_share.held, 1);
		send_bytes(&w, SIDE_A, conn[SIDE_A], 0, 1);
	}
	for (end = w.now + 1000000000; w.now < end; w.now += 5000000)
		turn(&w);
	cr_assert_eq(b->nused, 0);
	cr_assert_eq(b->conn_share.held, 0);
	pair_end(&w.pair);
}

/* A connection ends before it is bound: the engine stage that it is bound to receives ENG_E_CLOSED,
 * and the index is free only after that. */
Test(engine_transport, bind_at_a_dead_connection_ends_with_closed)
{
	struct world w;
	struct eng_ctl *m, *failed;
	static struct eng_ctl c;
	uint32_t conn;

	pair_init(&w.pair);
	world_start(&w);
	listen_at(&w, SIDE_B);
	conn = connect_from(&w, SIDE_A, PAIR_ADDR_B);
	m = expect(&w, SIDE_B, ENG_TC_REQUEST);
	c = (struct eng_ctl){.type = ENG_CT_ABORT, .conn = conn};
	do_command(&w, SIDE_A, &c, 0);
	failed = expect(&w, SIDE_B, ENG_TC_FAILED);
	cr_assert_eq(failed->status, -ECONNRESET);
	cr_assert_eq(failed->conn, m->conn);
	c = (struct eng_ctl){
		.type = ENG_CT_ACCEPT, .conn = m->conn, .qp_index = 4, .connect.offer = offer};
	do_command(&w, SIDE_B, &c, 0);
	command(&w, SIDE_B, m);
	command(&w, SIDE_B, failed);
	cr_assert_eq(expect_told(&w, SIDE_B, ENG_E_CLOSED).arg, ECONNRESET);
	cr_assert_eq(w.pair.e[1]->transports[0]->nused, 1);
	say(&w, SIDE_B, ENG_T_RELEASE, m->conn, NULL, 0);
	turn(&w);
	cr_assert_eq(w.pair.e[1]->transports[0]->nused, 0);
	pair_end(&w.pair);
}

/* The depth that means "not negotiated" is not valid as a limit (RFC 6581 9.1). */
Test(engine_transport, limits_of_all_ones_are_refused_6581_9_1)
{
	struct pair p;
	char err[256] = "";

	pair_init(&p);
	p.cfg[0].limits.ird = SHM_DEPTH_AUTO;
	cr_assert_null(eng_create(&p.cfg[0], err, sizeof(err)));
	cr_assert_not_null(strstr(err, "16382"), "%s", err);
	p.cfg[0].limits.ird = 1;
	p.cfg[0].limits.ord = UINT16_MAX;
	cr_assert_null(eng_create(&p.cfg[0], err, sizeof(err)));
	pair_end(&p);
}

/* Connects A to B, whose QP is bound; A's engine stage has no QP yet. */
static void
connect_unbound(struct world *w, uint32_t conn[2])
{
	pair_init(&w->pair);
	world_start(w);
	request(w, conn);
	accept_request(w, conn);
	command(w, SIDE_A, expect(w, SIDE_A, ENG_TC_ESTABLISHED));
}

/* The engine stage has no QP for a connection that the peer has already accepted. The peer receives
 * the Terminate for errors without a code of their own (RFC 6581 9.3), and no reset. */
Test(engine_transport, abort_behind_an_acceptance_is_a_terminate_6581_9_3)
{
	static const uint8_t ulpdu[] = {
		0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x20, 5, 0, 0};
	struct tcp_slice *chain;
	struct eng_ctl abort;
	uint32_t conn[2];
	struct world w;

	connect_unbound(&w, conn);
	abort = (struct eng_ctl){.type = ENG_CT_ABORT, .conn = conn[SIDE_A]};
	do_command(&w, SIDE_A, &abort, 0);
	chain = (struct tcp_slice *)(uintptr_t)expect_told(&w, SIDE_B, ENG_E_DATA).u;
	cr_assert_eq(chain->len, 2 + sizeof(ulpdu) + 4);
	cr_assert_eq(chain->data[1], sizeof(ulpdu));
	cr_assert_arr_eq(chain->data + 2, ulpdu, sizeof(ulpdu));
	say(&w, SIDE_B, ENG_T_CONSUMED, conn[SIDE_B], NULL, chain->len);
	eng_slice_free(chain);
	close_after_peer(&w, conn);
	for (int i = 0; i < 2; i++)
		while (w.pair.e[i]->transports[0]->nused > 0)
			turn(&w);
	pair_end(&w.pair);
}

/* Bytes that arrived before the engine stage has a QP wait in TCP, which keeps a connection until
 * its owner has accepted all of them. An abort then accepts them. */
Test(engine_transport, abort_behind_bytes_of_the_peer_leaves_no_connection)
{
	struct eng_ctl abort;
	uint32_t conn[2];
	struct world w;

	connect_unbound(&w, conn);
	for (unsigned i = 0; i < 3; i++) {
		send_bytes(&w, SIDE_B, conn[SIDE_B], 7, 100);
		turn(&w);
		turn(&w);
	}
	abort = (struct eng_ctl){.type = ENG_CT_ABORT, .conn = conn[SIDE_A]};
	do_command(&w, SIDE_A, &abort, 0);
	eng_slice_free((struct tcp_slice *)(uintptr_t)expect_told(&w, SIDE_B, ENG_E_DATA).u);
	close_after_peer(&w, conn);
	for (unsigned i = 0; i < 1000; i++) {
		turn(&w);
		w.now += 100000000;
	}
	for (int i = 0; i < 2; i++)
		cr_assert_eq(w.pair.e[i]->transports[0]->nused, 0);
	pair_end(&w.pair);
}

/* There is no listener: the peer sends a reset (RFC 9293 3.10.7.1), and the control stage receives
 * ENG_TC_FAILED. */
Test(engine_transport, connection_refused)
{
	struct world w;
	struct eng_ctl *m;
	uint32_t conn;

	pair_init(&w.pair);
	world_start(&w);
	conn = connect_from(&w, SIDE_A, PAIR_ADDR_B);
	m = expect(&w, SIDE_A, ENG_TC_FAILED);
	cr_assert_eq(m->conn, conn);
	cr_assert_eq(m->status, -ECONNREFUSED);
	command(&w, SIDE_A, m);
	turn(&w);
	cr_assert_eq(w.pair.e[0]->transports[0]->nused, 0);
	pair_end(&w.pair);
}

/* ---- Notices ---- */

/* The control stage returns no message for a while. Turns do not visit the connections that wait
 * for one, however many a peer opens, and the first one that waits gets the first message. */
Test(engine_transport, connections_that_wait_for_a_notice_cost_no_turn)
{
	struct eng_transport *t;
	struct world w;
	struct eng_ctl *m;
	unsigned n;

	pair_init(&w.pair);
	world_start(&w);
	listen_at(&w, SIDE_B);
	t = w.pair.e[SIDE_B]->transports[0];
	n = t->nnotices;
	t->nnotices = 0;
	for (uint32_t i = 0; i < 4; i++) {
		connect_from(&w, SIDE_A, PAIR_ADDR_B);
		for (unsigned k = 0; k < 200; k++)
			turn(&w);
	}
	cr_assert(TAILQ_EMPTY(&t->pending));
	cr_assert_not(eng_conns_due(t));
	cr_assert_eq(t->nused, 4);
	for (uint32_t i = 0; i < 4; i++) {
		t->nnotices = 1;
		m = expect(&w, SIDE_B, ENG_TC_REQUEST);
		cr_assert_eq(m->conn, i);
		cr_assert_eq(t->nnotices, 0);
		cr_assert_null(heard(&w, SIDE_B));
	}
	cr_assert(TAILQ_EMPTY(&t->unnoticed));
	t->nnotices = n;
	pair_end(&w.pair);
}

/* ---- Shares ---- */

/* Opens a listener of a user at B. */
static void
listen_of(struct world *w, uint16_t user, uint16_t port)
{
	static struct eng_ctl m;

	m = (struct eng_ctl){.type = ENG_CT_LISTEN,
		.user = user,
		.listen = {.number = port, .backlog = 32, .port = port, .offer = offer}};
	do_command(w, SIDE_B, &m, 0);
}

/* Connects A to a port of B. Returns whether the request arrives; otherwise, the connection
 * fails. */
static bool
request_at(struct world *w, uint16_t port)
{
	static struct eng_ctl c;
	struct eng_ctl *m;

	c = (struct eng_ctl){.type = ENG_CT_CONNECT, .cookie = 77, .connect.offer = offer};
	c.connect.tuple.raddr = addr(PAIR_ADDR_B);
	c.connect.tuple.rport = port;
	do_command(w, SIDE_A, &c, 0);
	for (unsigned i = 0; i < 200; i++)
		turn(w);
	m = heard(w, SIDE_B);
	if (m != NULL) {
		cr_assert_eq(m->type, ENG_TC_REQUEST);
		cr_assert_eq(m->peer.listener, port);
		command(w, SIDE_B, m);
		return true;
	}
	m = expect(w, SIDE_A, ENG_TC_FAILED);
	cr_assert_eq(m->status, -ECONNRESET);
	command(w, SIDE_A, m);
	return false;
}

/* A user has at most `most`, and another user's minimum is free for it. */
Test(engine_transport, listener_of_one_user_does_not_take_all_connections)
{
	struct world w;
	struct eng_limits *l;
	unsigned got = 0;

	pair_init(&w.pair);
	l = &w.pair.cfg[SIDE_B].limits;
	l->conns = 20;
	l->clients = 4;
	l->users = 3;
	l->user_min = 10;
	l->user_most = 50;
	world_start(&w);
	listen_of(&w, 1, PORT);
	listen_of(&w, 2, PORT + 1);
	for (unsigned i = 0; i < 12; i++)
		got += request_at(&w, PORT);
	cr_assert_eq(got, 10);
	cr_assert_eq(w.pair.e[SIDE_B]->transports[0]->counters[ENG_CONN_SHARE], 2);
	for (unsigned i = 0; i < 3; i++)
		cr_assert(request_at(&w, PORT + 1));
	pair_end(&w.pair);
}

/* The end of a connection returns its place. */
Test(engine_transport, connection_that_ends_returns_its_share)
{
	struct world w;
	uint32_t conn[2];

	world_connect(&w, conn);
	for (unsigned side = 0; side < 2; side++)
		cr_assert_eq(w.pair.e[side]->transports[0]->conn_share.held, 1);
	close_both(&w, conn);
	for (unsigned side = 0; side < 2; side++)
		cr_assert_eq(w.pair.e[side]->transports[0]->conn_share.held, 0);
	pair_end(&w.pair);
}

/* With place for one half-done connection of a host, several follow one another: each is done when
 * its request is complete. */
Test(engine_transport, connection_is_half_done_until_its_request_is_complete)
{
	struct world w;

	pair_init(&w.pair);
	w.pair.cfg[SIDE_B].tcp.half_open_per_prefix = 1;
	world_start(&w);
	listen_of(&w, 1, PORT);
	for (unsigned i = 0; i < 5; i++)
		cr_assert(request_at(&w, PORT), "connection %u", i);
	pair_end(&w.pair);
}

/* ---- Changes of addresses ---- */

/* A connection whose local address is removed ends with that reason, its peer receives a reset, and
 * a connection of another address is not disturbed. */
Test(engine_transport, a_removed_address_ends_its_connections_only)
{
	static struct eng_config next, last;
	struct world w;
	struct eng_dmsg m;
	uint32_t conn[2];

	pair_init(&w.pair);
	world_start(&w);
	listen_at(&w, SIDE_B);
	connect_both(&w, conn);
	next = w.pair.e[SIDE_B]->cfg;
	next.ifs[next.nifs] = next.ifs[0];
	cr_assert_eq(sk_addr_parse("10.0.0.77", &next.ifs[next.nifs++].addr), 0);
	cr_assert_eq(change_step(&w, SIDE_B, ENG_CHANGE_CHECK, &next, 0), 0);
	cr_assert_eq(change_step(&w, SIDE_B, ENG_CHANGE_APPLY, &next, 0), 0);
	w.pair.e[SIDE_B]->cfg = next;

	connect_from(&w, SIDE_A, "10.0.0.77");
	command(&w, SIDE_B, expect(&w, SIDE_B, ENG_TC_REQUEST));
	last = next;
	last.ifs[0] = last.ifs[1];
	last.nifs = 1;
	cr_assert_eq(change_step(&w, SIDE_B, ENG_CHANGE_END, &last, 0), 1);
	m = expect_told(&w, SIDE_B, ENG_E_CLOSED);
	cr_assert_eq(m.arg, EADDRNOTAVAIL);
	m = expect_told(&w, SIDE_A, ENG_E_CLOSED);
	cr_assert_eq(m.arg, ECONNRESET);
	say(&w, SIDE_A, ENG_T_RELEASE, conn[SIDE_A], NULL, 0);
	say(&w, SIDE_B, ENG_T_RELEASE, conn[SIDE_B], NULL, 0);
	cr_assert_eq(change_step(&w, SIDE_B, ENG_CHANGE_APPLY, &last, 0), 0);
	w.pair.e[SIDE_B]->cfg = last;
	cr_assert_null(heard(&w, SIDE_A), "the other connection waits for its reply");
	turn(&w);
	cr_assert_eq(w.pair.e[SIDE_B]->transports[0]->nused, 1);
	pair_end(&w.pair);
}

Test(engine_transport, a_change_that_the_tables_cannot_hold_is_refused_by_the_check)
{
	static struct eng_config next;
	struct world w;

	pair_init(&w.pair);
	world_start(&w);
	next = w.pair.e[SIDE_A]->cfg;
	while (next.nifs < NET_MAX_ADDRS - 1) {
		next.ifs[next.nifs] = next.ifs[0];
		next.ifs[next.nifs].addr.b[15] = (uint8_t)(100 + next.nifs);
		next.nifs++;
	}
	change_step(&w, SIDE_A, ENG_CHANGE_CHECK, &next, 0);
	next.ifs[next.nifs++] = next.ifs[0];
	change_step(&w, SIDE_A, ENG_CHANGE_CHECK, &next, -ENOSPC);
	next.nifs = 1;
	for (unsigned i = 1; i < NET_MAX_IFS; i++) {
		next.ifs[i] = next.ifs[0];
		next.ifs[i].vlan = (uint16_t)i;
		next.nifs++;
	}
	/* The loopback interface takes a place, too. */
	change_step(&w, SIDE_A, ENG_CHANGE_CHECK, &next, -ENOSPC);
	next.nifs--;
	change_step(&w, SIDE_A, ENG_CHANGE_CHECK, &next, 0);
	next.ifs[1] = next.ifs[2];
	change_step(&w, SIDE_A, ENG_CHANGE_CHECK, &next, -EEXIST);
	pair_end(&w.pair);
}

/* A prefix that becomes longer or shorter, or a route, does not end a connection. */
Test(engine_transport, a_changed_prefix_or_route_keeps_connections)
{
	static struct eng_config next;
	struct world w;
	uint32_t conn[2];

	pair_init(&w.pair);
	world_start(&w);
	listen_at(&w, SIDE_B);
	connect_both(&w, conn);
	next = w.pair.e[SIDE_A]->cfg;
	next.ifs[0].prefix = 8;
	next.nroutes = 1;
	cr_assert_eq(sk_addr_parse("10.0.0.9", &next.routes[0].gateway), 0);
	next.routes[0].dst = (struct sk_addr){{0}};
	cr_assert_eq(change_step(&w, SIDE_A, ENG_CHANGE_END, &next, 0), 0);
	change_step(&w, SIDE_A, ENG_CHANGE_APPLY, &next, 0);
	w.pair.e[SIDE_A]->cfg = next;
	send_bytes(&w, SIDE_A, conn[SIDE_A], 1, 100);
	expect_bytes(&w, SIDE_B, conn[SIDE_B], 1, 100);
	next.nroutes = 0;
	change_step(&w, SIDE_A, ENG_CHANGE_APPLY, &next, 0);
	send_bytes(&w, SIDE_A, conn[SIDE_A], 101, 100);
	expect_bytes(&w, SIDE_B, conn[SIDE_B], 101, 100);
	close_both(&w, conn);
	pair_end(&w.pair);
}

/* ---- The table of tuples */

#define TWINS 256u

/* Returns a tuple whose remote address ends with the bits `bits`. */
static struct tcp_tuple
tuple_with(uint64_t bits)
{
	struct tcp_tuple t = {.lport = PORT, .rport = 9999};

	memset(t.raddr.b, 0x20, sizeof(t.raddr.b));
	memcpy(t.raddr.b + 8, &bits, sizeof(bits));
	return t;
}

/* Makes differences between tuples that leave their CRC as it is, for each initial value: a CRC is
 * linear. Returns their number, at least 32. */
static unsigned
differences_of(uint64_t diff[64])
{
	struct tcp_tuple none = tuple_with(0), one;
	uint64_t row[64], lead[32] = {0};
	uint32_t crc0 = rte_hash_crc(&none, sizeof(none), 0);
	unsigned n = 0;

	for (unsigned i = 0; i < 64; i++) {
		/* The upper half is the change of the CRC, as far as it is not cancelled. */
		uint64_t bits = 1ull << i;

		one = tuple_with(bits);
		row[i] = rte_hash_crc(&one, sizeof(one), 0) ^ crc0;
		for (int b = 31; b >= 0 && row[i] != 0; b--) {
			if ((row[i] >> b & 1) == 0)
				continue;
			if (lead[b] == 0) {
				lead[b] = bits;
				break;
			}
			bits ^= lead[b];
			one = tuple_with(bits);
			row[i] = rte_hash_crc(&one, sizeof(one), 0) ^ crc0;
		}
		if (row[i] == 0)
			diff[n++] = bits;
	}
	return n;
}

/* Otherwise a peer makes each look-up walk through as many connections as it may have. */
Test(engine_transport, tuples_that_a_peer_computes_do_not_collide)
{
	struct eng_transport *t;
	uint32_t hash[TWINS], crc = 0, same = 0;
	uint64_t diff[64], bits = 0;
	struct world w = {0};

	pair_init(&w.pair);
	world_start(&w);
	t = w.pair.e[SIDE_A]->transports[0];
	cr_assert_geq(differences_of(diff), 32);
	for (uint32_t i = 0; i < TWINS; i++) {
		struct tcp_tuple one = tuple_with(bits);

		cr_assert(i == 0 || rte_hash_crc(&one, sizeof(one), 12345) == crc);
		crc = rte_hash_crc(&one, sizeof(one), 12345);
		hash[i] = eng_tuple_hash(t, &one);
		for (uint32_t k = 0; k < i; k++)
			same += hash[k] == hash[i];
		bits ^= diff[__builtin_ctz(i + 1)]; /* a Gray code: each is another sum */
	}
	cr_assert_leq(same, 2, "%u pairs collide", same);
	pair_end(&w.pair);
}

/* The stage has read that the port is gone; before it reads more, the port is back. */
Test(engine_transport, a_port_that_comes_back_keeps_its_connections)
{
	struct eng_transport *t;
	struct world w = {0};
	struct eng_port *p;
	uint32_t conn[2];

	world_connect(&w, conn);
	t = w.pair.e[SIDE_A]->transports[0];
	p = &t->e->ports[0];
	p->dev.gone = p->dev.again = true;
	turn(&w);
	cr_assert_eq(p->left, 1);
	eng_port_back(p);
	eng_port_leave(t, 0);
	cr_assert_eq(p->left, 0, "the stage has left the port again");
	send_bytes(&w, SIDE_A, conn[SIDE_A], 3, 100);
	expect_bytes(&w, SIDE_B, conn[SIDE_B], 3, 100);
	close_both(&w, conn);
	pair_end(&w.pair);
}

/* ---- Mbufs of others */

/* Receives a segment, and returns the pool of its mbuf. */
static const struct rte_mempool *
pool_of_next(struct world *w, const uint32_t conn[2])
{
	const struct rte_mempool *mp;
	struct tcp_slice *s;

	send_bytes(w, SIDE_A, conn[SIDE_A], 3, 100);
	s = (struct tcp_slice *)(uintptr_t)expect_told(w, SIDE_B, ENG_E_DATA).u;
	mp = ((struct rte_mbuf *)s->owner)->pool;
	cr_assert_eq(s->data[99], 102);
	eng_slice_free(s);
	say(w, SIDE_B, ENG_T_CONSUMED, conn[SIDE_B], NULL, 100);
	return mp;
}

/* A receiver that holds what it received must not stop the sender, which others need, too. */
Test(engine_transport, frames_of_a_sender_with_few_mbufs_are_copied)
{
	struct rte_mempool *sender, *own;
	struct rte_mbuf **held;
	struct world w = {0};
	uint32_t conn[2], n;

	world_connect(&w, conn);
	sender = w.pair.e[SIDE_A]->transports[0]->tx_pool;
	own = w.pair.e[SIDE_B]->transports[0]->rx_pool;
	cr_assert_eq(pool_of_next(&w, conn), sender, "net_ring passes the mbufs themselves");
	n = sender->size - sender->size / 8;
	held = calloc(n, sizeof(*held));
	cr_assert_eq(rte_pktmbuf_alloc_bulk(sender, held, n), 0);
	for (unsigned i = 0; i < 128; i++) /* until the next look */
		pool_of_next(&w, conn);
	cr_assert_eq(pool_of_next(&w, conn), own);
	rte_pktmbuf_free_bulk(held, n);
	pool_of_next(&w, conn);
	cr_assert_eq(pool_of_next(&w, conn), sender);
	free(held);
	close_both(&w, conn);
	pair_end(&w.pair);
}
