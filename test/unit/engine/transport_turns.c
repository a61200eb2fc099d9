/* SPDX-License-Identifier: BSD-3-Clause */
/* The turns of a transport stage: what they receive and send, stops of the loop, and full rings. */
#include <criterion/criterion.h>
#include <rte_ethdev.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/transport/link.h"
#include "transport_rig.h"

TestSuite(engine_transport_turns, .init = pair_eal);

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
Test(engine_transport_turns, a_sleep_is_no_stop)
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
Test(engine_transport_turns, received_frames_are_work)
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

/* Sends 20 messages while the ring to the engine stage of B is full, and empties it. `behind`: the
 * last turn before that left frames in the port. */
static void
send_at_full_ring(bool behind)
{
	struct eng_dmsg filler = {.id_type = ENG_DMSG(ENG_E_SPACE, 0)}, m;
	struct rte_ring *ring;
	uint32_t conn[2];
	struct world w;

	world_connect(&w, conn);
	w.pair.e[1]->transports[0]->left = behind;
	ring = w.pair.e[1]->stages[0]->from_transport[0];
	while (rte_ring_sp_enqueue_elem(ring, &filler, sizeof(filler)) == 0)
		;
	for (unsigned k = 0; k < 20; k++) {
		send_bytes(&w, SIDE_A, conn[SIDE_A], (uint8_t)(k * 200), 200);
		turn(&w);
	}
	for (int i = 0; i < 100; i++)
		turn(&w);
	cr_assert_eq(pair_counter(w.pair.e[1], "eng", "ENG_RING_FULL") > 0, !behind);
	while (told(&w, SIDE_B, &m))
		cr_assert_neq(m.id_type & 15, ENG_E_DATA);
	expect_bytes(&w, SIDE_B, conn[SIDE_B], 0, 20 * 200);
	close_both(&w, conn);
	pair_end(&w.pair);
}

/* A full ring loses no bytes: they wait in TCP, and arrive in order when the ring has room. */
Test(engine_transport_turns, full_ring_to_the_engine_stage_loses_nothing)
{
	send_at_full_ring(false);
}

/* Under load, frames for a stage of the same loop wait in the queue of the port. */
Test(engine_transport_turns, frames_wait_in_the_port_while_the_stage_of_the_loop_is_behind)
{
	send_at_full_ring(true);
}

/* ---- What a turn sends ---- */

#define CONNS   30
#define RECORDS 10   /* of a connection: as many segments as its first window has */
#define LEN     1200 /* bytes: a segment has one record */

/* Sends more segments than a turn may, and receives all of them. The first turn sends `budget`. */
static void
send_too_many(bool left, uint64_t budget)
{
	struct rte_eth_stats before, after;
	uint32_t conn[CONNS][2], bytes = 0;
	struct eng_transport *t;
	struct world w;

	pair_init(&w.pair);
	world_start(&w);
	listen_at(&w, SIDE_B);
	for (unsigned i = 0; i < CONNS; i++)
		connect_again(&w, conn[i]);
	t = w.pair.e[SIDE_A]->transports[0];
	turn(&w);
	cr_assert_not(eng_transport_unsent(t));
	for (unsigned i = 0; i < CONNS * RECORDS; i++)
		send_bytes(&w, SIDE_A, conn[i % CONNS][SIDE_A], (uint8_t)(i / CONNS * 7), LEN);
	t->left = left;
	rte_eth_stats_get(w.pair.port[SIDE_A], &before);
	eng_transport_tx(t, w.now);
	rte_eth_stats_get(w.pair.port[SIDE_A], &after);
	cr_assert_eq(after.opackets - before.opackets, budget);
	cr_assert(eng_transport_unsent(t));
	while (bytes < CONNS * RECORDS * LEN) {
		struct eng_dmsg m = expect_told(&w, SIDE_B, ENG_E_DATA);
		struct tcp_slice *chain = (struct tcp_slice *)(uintptr_t)m.u;

		for (const struct tcp_slice *sl = chain; sl != NULL; sl = sl->next)
			bytes += sl->len;
		eng_slice_free(chain);
	}
	cr_assert_not(eng_transport_unsent(t));
	cr_assert_eq(pair_counter(w.pair.e[SIDE_A], "tcp", "TCP_RETRANSMIT"), 0);
	pair_end(&w.pair);
}

Test(engine_transport_turns, a_turn_sends_at_most_its_budget)
{
	send_too_many(false, 256);
}

/* Acknowledgements are among the frames that wait in the port. */
Test(engine_transport_turns, a_turn_that_leaves_frames_in_the_port_sends_no_more_than_it_receives)
{
	send_too_many(true, 2 * ENG_BURST);
}
