/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections whose path moves to another port. */
#include <criterion/criterion.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "transport_rig.h"

#define SMALL_MTU 1400

TestSuite(engine_transport_moved, .init = pair_eal);

/* Connects A, which has a second port with a smaller MTU and a neighbour there, to B. */
static void
moved_start(struct world *w, uint32_t conn[2])
{
	struct rte_ring *r = rte_ring_create("moved", 64, SOCKET_ID_ANY, 0);
	const struct sk_addr gateway = addr("10.77.0.2");
	const uint8_t mac[6] = {2, 1, 2, 3, 4, 5};
	struct eng_config *cfg = &w->pair.cfg[SIDE_A];
	struct net_stack *net;

	pair_init(&w->pair);
	cfg->ports[1] = cfg->ports[0];
	cfg->ports[1].port_id = (uint16_t)rte_eth_from_rings("moved", &r, 1, &r, 1, 0);
	cfg->ports[1].mtu = SMALL_MTU;
	cfg->nports = 2;
	cfg->ifs[1] = (struct eng_if_config){
		.port = 1, .vlan = ETH_NO_VLAN, .addr = addr("10.77.0.1"), .prefix = 24};
	cfg->nifs = 2;
	world_start(w);
	connect_both(w, conn);
	net = w->pair.e[SIDE_A]->transports[0]->net;
	cr_assert_eq(net_neighbor_add(net, net_if_index(net, 1, ETH_NO_VLAN), &gateway, mac), 0);
}

/* Sends the packets to B through the second port from here on. */
static void
move(struct world *w)
{
	const struct sk_addr b = addr(PAIR_ADDR_B), gateway = addr("10.77.0.2");

	cr_assert_eq(net_route_add(w->pair.e[SIDE_A]->transports[0]->net, &b, 32, &gateway), 0);
}

static void
moved_end(struct world *w)
{
	for (unsigned i = 0; i < 10; i++)
		turn(w); /* A receives what is left in the second port's ring */
	pair_end(&w->pair);
}

/* The port that a segment was meant for has room; the port that its path leads to has none. */
Test(engine_transport_moved, a_full_queue_takes_no_frame_of_a_path_that_moves)
{
	struct eng_transport *t;
	uint8_t frame[64] = {0};
	struct world w = {0};
	uint32_t conn[2];

	moved_start(&w, conn);
	t = w.pair.e[SIDE_A]->transports[0];
	move(&w);
	for (unsigned i = 0; i < ENG_TX_BUFFER; i++)
		eng_net_send(t, 1, frame, sizeof(frame));
	cr_assert_eq(t->tx[1].n, ENG_TX_BUFFER);
	send_bytes(&w, SIDE_A, conn[SIDE_A], 0, 100);
	eng_transport_rx(t, w.now);
	eng_transport_tx(t, w.now);
	cr_assert_eq(t->conns[conn[SIDE_A]].path.port, 1);
	cr_assert_leq(t->tx[1].n, ENG_TX_BUFFER);
	cr_assert_eq(t->tx[2].n, 0, "it lies in the next port's queue");
	moved_end(&w);
}

Test(engine_transport_moved, segments_fit_the_mtu_of_the_new_port)
{
	struct eng_transport *t;
	struct world w = {0};
	struct eng_conn *c;
	uint32_t conn[2], before;

	moved_start(&w, conn);
	t = w.pair.e[SIDE_A]->transports[0];
	c = &t->conns[conn[SIDE_A]];
	before = tcp_emss(c->tcp);
	move(&w);
	send_bytes(&w, SIDE_A, conn[SIDE_A], 0, 1000);
	for (unsigned i = 0; i < 3; i++)
		turn(&w);
	cr_assert_eq(c->path.port, 1);
	cr_assert_eq(before - tcp_emss(c->tcp), 1500 - SMALL_MTU);
	moved_end(&w);
}

/* The port that a segment was meant for has TSO; the port that its path leads to has none, and
 * sends no chains of mbufs. */
Test(engine_transport_moved, a_tso_segment_of_a_path_that_moves_is_retransmitted)
{
	struct eng_transport *t;
	struct rte_eth_stats stats;
	struct world w = {0};
	struct eng_conn *c;
	uint32_t conn[2];

	moved_start(&w, conn);
	t = w.pair.e[SIDE_A]->transports[0];
	c = &t->conns[conn[SIDE_A]];
	t->e->ports[1].multi_seg = false;
	tcp_set_tso(c->tcp, 60000);
	send_bytes(&w, SIDE_A, conn[SIDE_A], 0, tcp_emss(c->tcp));
	for (unsigned i = 0; i < 20; i++)
		turn(&w);
	move(&w);
	for (unsigned i = 0; i < 4; i++)
		send_bytes(&w, SIDE_A, conn[SIDE_A], 0, tcp_emss(c->tcp));
	turn(&w); /* it is not copied into an mbuf that is too short */
	cr_assert_eq(c->path.port, 1);
	for (unsigned i = 0; i < 100; i++)
		turn(&w);
	cr_assert_eq(rte_eth_stats_get(t->e->ports[1].dev.id, &stats), 0);
	cr_assert_geq(stats.opackets, 4, "TCP retransmits nothing");
	cr_assert_eq(t->counters[ENG_TX_NO_MBUF], 0);
	moved_end(&w);
}
