/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first FPDU after the reply (RFC 5044 7.1.2): how long a responder waits for it before it
 * sends, and how long an initiator delays it so that a slow responder is ready.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/transport/iwarp/iwarp_priv.h"
#include "transport_rig.h"

TestSuite(engine_first_fpdu, .init = pair_eal);

#define MS 1000000ull

/* Returns the time until side B's engine stage receives ENG_E_SPEAK, or SK_NEVER when it does not
 * receive it within `within` ns. */
static uint64_t
until_speak(struct world *w, uint64_t within)
{
	uint64_t from = w->now;
	struct eng_dmsg m;

	for (; w->now - from < within; turn(w))
		while (told(w, SIDE_B, &m))
			if ((m.id_type & 15) == ENG_E_SPEAK)
				return w->now - from;
	return SK_NEVER;
}

/* Returns the time for which a responder does not send. It counts from the reply if the reply
 * arrives immediately (`deaf` is 0), and otherwise from the arrival of the reply, before which the
 * responder never sends. */
static uint64_t
held_back(uint64_t wait, uint64_t deaf)
{
	uint32_t conn[2];
	struct world w;
	uint64_t took;

	pair_init(&w.pair);
	w.pair.cfg[SIDE_B].mpa_first_fpdu_ns = wait;
	world_start(&w);
	request(&w, conn);
	w.deaf = deaf > 0;
	accept_request(&w, conn);
	cr_assert_eq(until_speak(&w, deaf), SK_NEVER, "the reply has not arrived");
	w.deaf = false;
	take_reply(&w, conn);
	took = until_speak(&w, 1000 * MS);
	cr_assert_eq(until_speak(&w, 100 * MS), SK_NEVER, "it is said again");
	close_both(&w, conn);
	pair_end(&w.pair);
	return took;
}

Test(engine_first_fpdu, a_responder_waits_for_it_for_ever_5044_7_1_2)
{
	cr_assert_eq(held_back(0, 0), SK_NEVER);
}

/* The configuration can limit the wait. */
Test(engine_first_fpdu, a_responder_waits_for_it_as_configured_5044_7_1_2)
{
	uint64_t took = held_back(30 * MS, 0);

	cr_assert(took > 28 * MS && took < 31 * MS, "%lu ns", took);
}

/* The wait does not end before the reply is acknowledged. */
Test(engine_first_fpdu, a_responder_does_not_overtake_its_reply_5044_7_1_2)
{
	cr_assert_leq(held_back(30 * MS, 100 * MS), 31 * MS);
}

/* The stream ends during the wait: ENG_E_SPEAK is not sent. */
Test(engine_first_fpdu, a_connection_ends_while_its_responder_waits_5044_7_1_2)
{
	uint32_t conn[2];
	struct world w;

	pair_init(&w.pair);
	w.pair.cfg[SIDE_B].mpa_first_fpdu_ns = 30 * MS;
	world_start(&w);
	connect_both(&w, conn);
	close_both(&w, conn);
	cr_assert_eq(until_speak(&w, 100 * MS), SK_NEVER);
	pair_end(&w.pair);
}

/* The initiator's control stage receives ENG_TC_ESTABLISHED after the delay, and bytes that arrived
 * meanwhile are not lost. */
Test(engine_first_fpdu, an_initiator_begins_after_the_configured_delay_5044_7_1_2)
{
	uint32_t conn[2];
	struct world w;
	uint64_t from;

	pair_init(&w.pair);
	w.pair.cfg[SIDE_A].mpa_first_fpdu_delay_ns = 20 * MS;
	world_start(&w);
	request(&w, conn);
	accept_request(&w, conn);
	send_bytes(&w, SIDE_B, conn[SIDE_B], 7, 1000);
	from = w.now;
	take_reply(&w, conn);
	cr_assert(w.now - from > 19 * MS && w.now - from < 22 * MS, "%lu ns", w.now - from);
	send_bytes(&w, SIDE_B, conn[SIDE_B], 9, 1000);
	expect_bytes(&w, SIDE_A, conn[SIDE_A], 7, 1000);
	expect_bytes(&w, SIDE_A, conn[SIDE_A], 9, 1000);
	close_both(&w, conn);
	pair_end(&w.pair);
}

/* The end of a connection during the delay is reported to the control stage. */
Test(engine_first_fpdu, a_connection_ends_while_its_initiator_delays_5044_7_1_2)
{
	struct eng_ctl *m;
	uint32_t conn[2];
	struct world w;

	pair_init(&w.pair);
	w.pair.cfg[SIDE_A].mpa_first_fpdu_delay_ns = 20 * MS;
	world_start(&w);
	request(&w, conn);
	accept_request(&w, conn);
	for (int i = 0; i < 50; i++)
		turn(&w);
	say(&w, SIDE_B, ENG_T_ABORT, conn[SIDE_B], NULL, 0);
	m = expect(&w, SIDE_A, ENG_TC_FAILED);
	cr_assert_eq(m->cookie, 77);
	cr_assert_eq(m->status, -ECONNRESET);
	command(&w, SIDE_A, m);
	expect_told(&w, SIDE_B, ENG_E_CLOSED);
	say(&w, SIDE_B, ENG_T_RELEASE, conn[SIDE_B], NULL, 0);
	for (int i = 0; i < 2000; i++)
		turn(&w);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(w.pair.e[i]->transports[0]->nused, 0, "an index was not released");
	pair_end(&w.pair);
}

/* Bytes came in one segment with the reply, and the ring to the engine stage is full when the
 * connection is bound. The bytes of later segments do not overtake them. */
Test(engine_first_fpdu, bytes_that_came_with_the_reply_come_first)
{
	struct eng_dmsg other = {.id_type = ENG_DMSG(ENG_E_SPACE, 5)};
	struct tcp_slice *chain;
	struct rte_mbuf *held;
	struct rte_ring *ring;
	struct eng_transport *t;
	struct eng_conn *c;
	uint32_t conn[2];
	struct world w;

	pair_init(&w.pair);
	world_start(&w);
	t = w.pair.e[SIDE_A]->transports[0];
	request(&w, conn);
	c = &t->conns[conn[SIDE_A]];
	accept_request(&w, conn);
	while (c->state != ECONN_ESTABLISHED)
		turn(&w);
	held = rte_pktmbuf_alloc(t->rx_pool);
	memset(rte_pktmbuf_append(held, 3), 1, 3);
	eng_mpa_of(c)->held = eng_slices(held, 0, 3);
	ring = w.pair.e[SIDE_A]->stages[0]->from_transport[0];
	while (rte_ring_sp_enqueue_elem(ring, &other, sizeof(other)) == 0)
		;
	take_reply(&w, conn);
	send_bytes(&w, SIDE_B, conn[SIDE_B], 7, 100);
	eng_transport_tx(w.pair.e[SIDE_B]->transports[0], w.now);
	rte_ring_sc_dequeue_elem(ring, &other, sizeof(other));
	eng_transport_rx(t, w.now); /* the ring has room for one message */
	chain = (struct tcp_slice *)(uintptr_t)expect_told(&w, SIDE_A, ENG_E_DATA).u;
	cr_assert_eq(chain->len, 3, "later bytes come first");
	eng_slice_free(chain);
	expect_bytes(&w, SIDE_A, conn[SIDE_A], 7, 100);
	close_both(&w, conn);
	pair_end(&w.pair);
}
