/* SPDX-License-Identifier: BSD-3-Clause */
/* Two transport stages, connected by rings: the test plays the control stage and the engine stage
 * of both. */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>
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

static uint64_t stopped_ns;

static void
stopped(struct eng_transport *t, uint64_t gap)
{
	stopped_ns += gap;
}

static void
no_timers(struct eng_transport *t, uint64_t now)
{
}

static unsigned
none_known(struct eng_transport *t, uint16_t port, struct rte_mbuf **m, unsigned n)
{
	return 0;
}

/* A sleep that a frame ends is no stop of the loop, and no backlog at the port. */
Test(engine_transport, a_sleep_is_no_stop)
{
	const struct eng_link link = {
		.stopped = stopped, .timers = no_timers, .rx_known = none_known};
	const uint64_t ms = 1000000;
	struct eng_transport *t;
	struct world w;

	pair_init(&w.pair);
	world_start(&w);
	turn(&w);
	t = w.pair.e[SIDE_A]->transports[0];
	t->packet_links[0] = &link;
	t->npacket_links = 1;
	w.now += 100 * ms;
	eng_transport_slept(t, w.now);
	cr_assert_eq(t->empty_at, w.now);
	eng_transport_rx(t, w.now);
	cr_assert_eq(stopped_ns, 0);
	cr_assert_eq(t->waited, ms, "a frame waited for %lu ns", t->waited);
	/* The loop runs 10 ms after the end of its sleep: that is a stop. */
	eng_transport_slept(t, w.now + 100 * ms);
	w.now += 110 * ms;
	eng_transport_rx(t, w.now);
	cr_assert_gt(stopped_ns, 9 * ms);
	cr_assert_leq(stopped_ns, 10 * ms);
	cr_assert_eq(t->waited, 11 * ms, "a frame waited for %lu ns", t->waited);
	t->npacket_links = 0;
	pair_end(&w.pair);
}

/* A turn receives two bursts of a port at most, and each of their frames is work. */
Test(engine_transport, received_frames_are_work)
{
	struct world w;
	struct rte_ring *wire;
	struct rte_mempool *pool;
	struct eng_transport *t;

	pair_init(&w.pair);
	world_start(&w);
	turn(&w); /* takes what the stages send when they start */
	turn(&w);
	t = w.pair.e[SIDE_A]->transports[0];
	wire = rte_ring_lookup("wire0_0");
	pool = rte_pktmbuf_pool_create("frames", 127, 0, 0, 256, SOCKET_ID_ANY);
	cr_assert(wire != NULL && pool != NULL);
	cr_assert_not(eng_transport_rx(t, w.now));
	for (unsigned n = 1; n <= 127; n += 42) {
		for (unsigned i = 0; i < n; i++) {
			struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

			cr_assert_not_null(rte_pktmbuf_append(m, 60));
			cr_assert_eq(rte_ring_enqueue(wire, m), 0);
		}
		for (unsigned left = n; left > 0; left -= SK_MIN(left, 2u * ENG_BURST)) {
			cr_assert_eq(rte_mempool_in_use_count(pool), left);
			cr_assert(eng_transport_rx(t, w.now), "%u frames are no work", left);
		}
		cr_assert_eq(rte_mempool_in_use_count(pool), 0);
		cr_assert_not(eng_transport_rx(t, w.now));
	}
	pair_end(&w.pair);
}

/* RFC 5044 7.1: request and reply, then bytes in both directions, then an orderly end. */
Test(engine_transport, startup_then_bytes_both_ways_then_end)
{
	struct world w;
	uint32_t conn[2];

	pair_init(&w.pair);
	world_start(&w);
	connect_both(&w, conn);
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

/* The engine stage has no QP for a connection that the peer has already accepted. The peer receives
 * the Terminate for errors without a code of their own (RFC 6581 9.3), and no reset. */
Test(engine_transport, abort_behind_an_acceptance_is_a_terminate_6581_9_3)
{
	static const uint8_t ulpdu[] = {
		0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x20, 5, 0, 0};
	static struct eng_ctl accept;
	struct tcp_slice *chain;
	uint32_t ours, theirs;
	struct world w;
	struct eng_ctl *m;

	pair_init(&w.pair);
	world_start(&w);
	listen_at(&w, SIDE_B);
	ours = connect_from(&w, SIDE_A, PAIR_ADDR_B);
	m = expect(&w, SIDE_B, ENG_TC_REQUEST);
	theirs = m->conn;
	command(&w, SIDE_B, m);
	accept = (struct eng_ctl){
		.type = ENG_CT_ACCEPT, .conn = theirs, .qp_index = 9, .connect.offer = offer};
	command(&w, SIDE_B, &accept);
	command(&w, SIDE_A, expect(&w, SIDE_A, ENG_TC_ESTABLISHED));
	m = &(struct eng_ctl){.type = ENG_CT_ABORT, .conn = ours};
	do_command(&w, SIDE_A, m, 0);
	chain = (struct tcp_slice *)(uintptr_t)expect_told(&w, SIDE_B, ENG_E_DATA).u;
	cr_assert_eq(chain->len, 2 + sizeof(ulpdu) + 4);
	cr_assert_eq(chain->data[1], sizeof(ulpdu));
	cr_assert_arr_eq(chain->data + 2, ulpdu, sizeof(ulpdu));
	say(&w, SIDE_B, ENG_T_CONSUMED, theirs, NULL, chain->len);
	eng_slice_free(chain);
	expect_told(&w, SIDE_B, ENG_E_FIN);
	say(&w, SIDE_B, ENG_T_CLOSE, theirs, NULL, 0);
	cr_assert_eq(expect_told(&w, SIDE_B, ENG_E_CLOSED).arg, 0);
	say(&w, SIDE_B, ENG_T_RELEASE, theirs, NULL, 0);
	for (int i = 0; i < 2; i++)
		while (w.pair.e[i]->transports[0]->nused > 0)
			turn(&w);
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

/* A full ring loses no bytes: they wait in TCP, and arrive in order when the ring has room. */
Test(engine_transport, full_ring_to_the_engine_stage_loses_nothing)
{
	struct world w;
	struct rte_ring *ring;
	struct eng_dmsg filler = {.id_type = ENG_DMSG(ENG_E_SPACE, 0)}, m;
	uint32_t conn[2];

	pair_init(&w.pair);
	world_start(&w);
	connect_both(&w, conn);
	ring = w.pair.e[1]->stages[0]->from_transport[0];
	while (rte_ring_sp_enqueue_elem(ring, &filler, sizeof(filler)) == 0)
		;
	for (unsigned k = 0; k < 20; k++) {
		send_bytes(&w, SIDE_A, conn[SIDE_A], (uint8_t)(k * 200), 200);
		turn(&w);
	}
	for (int i = 0; i < 100; i++)
		turn(&w);
	cr_assert_gt(pair_counter(w.pair.e[1], "eng", "ENG_RING_FULL"), 0);
	while (told(&w, SIDE_B, &m))
		cr_assert_neq(m.id_type & 15, ENG_E_DATA);
	expect_bytes(&w, SIDE_B, conn[SIDE_B], 0, 20 * 200);
	close_both(&w, conn);
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
	c.connect.tuple.raddr = pair_addr(PAIR_ADDR_B);
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

	pair_init(&w.pair);
	world_start(&w);
	connect_both(&w, conn);
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

/* Sends one step of a change from the stage's configuration to `next`. */
static uint32_t
change_step(struct world *w, int side, uint8_t step, const struct eng_config *next, int status)
{
	struct eng_ctl m = {.type = ENG_CT_CHANGE};

	m.change.step = step;
	m.change.was = &w->pair.e[side]->cfg;
	m.change.next = next;
	do_command(w, side, &m, status);
	return m.change.ended;
}

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

/* ---- Connections that are left to TCP ---- */

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

/* Ends B's end after the peer's FIN, or checks that the peer has reset it. */
static void
peer_ends(struct world *w, const uint32_t conn[2], uint32_t error)
{
	if (error == 0) {
		expect_told(w, SIDE_B, ENG_E_FIN);
		say(w, SIDE_B, ENG_T_CLOSE, conn[SIDE_B], NULL, 0);
	}
	cr_assert_eq(expect_told(w, SIDE_B, ENG_E_CLOSED).arg, error);
	say(w, SIDE_B, ENG_T_RELEASE, conn[SIDE_B], NULL, 0);
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

Test(engine_transport, left_connection_delivers_all_and_ends_in_order_rfc9293_3_10_4)
{
	struct eng_transport *t;
	struct eng_dmsg m;
	struct world w;
	uint32_t conn[2];

	pair_init(&w.pair);
	world_start(&w);
	connect_both(&w, conn);
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

Test(engine_transport, connection_with_unread_bytes_is_not_left_rfc1122_4_2_2_13)
{
	struct world w;
	struct eng_dmsg m;
	uint32_t conn[2];

	pair_init(&w.pair);
	world_start(&w);
	connect_both(&w, conn);
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

Test(engine_transport, left_connection_is_reset_by_new_bytes_rfc2525_2_17)
{
	struct world w;
	uint32_t conn[2];

	pair_init(&w.pair);
	world_start(&w);
	connect_both(&w, conn);
	leave(&w, conn, 0);
	expect_told(&w, SIDE_B, ENG_E_FIN);
	send_bytes(&w, SIDE_B, conn[SIDE_B], 7, 30);
	peer_ends(&w, conn, ECONNRESET);
	cr_assert_eq(w.pair.e[SIDE_A]->transports[0]->left_share.held, 0);
	cr_assert_eq(count_of(&w, SIDE_A, "TCP_LEFT_UNREAD"), 1);
	pair_end(&w.pair);
}

/* The peer takes nothing: after a minute the records are free, and no share is held. */
Test(engine_transport, left_connection_ends_although_the_peer_takes_nothing)
{
	struct eng_transport *t;
	struct world w;
	uint32_t conn[2], before, held;

	pair_init(&w.pair);
	world_start(&w);
	connect_both(&w, conn);
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
Test(engine_transport, user_leaves_no_more_records_than_its_share)
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
Test(engine_transport, left_connection_keeps_its_class)
{
	const struct net_class class = {.dscp = 24};
	struct rte_mbuf *m;
	struct rte_ring *wire;
	struct world w;
	uint32_t conn[2];
	unsigned n = 0;

	pair_init(&w.pair);
	world_start(&w);
	connect_both(&w, conn);
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

Test(engine_transport, removed_address_ends_left_connections)
{
	static struct eng_config next;
	struct world w;
	uint32_t conn[2];

	pair_init(&w.pair);
	world_start(&w);
	connect_both(&w, conn);
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

Test(engine_transport, removed_port_ends_left_connections)
{
	struct eng *e;
	struct world w;
	uint32_t conn[2];

	pair_init(&w.pair);
	world_start(&w);
	connect_both(&w, conn);
	w.still = true;
	send_bytes(&w, SIDE_A, conn[SIDE_A], 0, 100);
	leave(&w, conn, 0);
	e = w.pair.e[SIDE_A];
	cr_assert_eq(e->transports[0]->left_share.held, 2);
	w.still = false;
	__atomic_store_n(&e->ports[0].gone, true, __ATOMIC_RELEASE);
	turn(&w);
	cr_assert_eq(e->transports[0]->left_share.held, 0);
	__atomic_store_n(&e->ports[0].gone, false, __ATOMIC_RELEASE);
	pair_end(&w.pair);
}

Test(engine_transport, end_of_the_instance_frees_left_connections)
{
	struct world w;
	uint32_t conn[2];

	pair_init(&w.pair);
	world_start(&w);
	connect_both(&w, conn);
	w.still = true;
	send_bytes(&w, SIDE_A, conn[SIDE_A], 0, 100);
	leave(&w, conn, 0);
	pair_end(&w.pair); /* checks that all mbufs are back */
}
