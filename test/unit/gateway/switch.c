/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests which ports of the switch receive a frame: the host, two machines on one VLAN and a third
 * machine on another VLAN. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../../../drivers/gateway/switch.h"
#include "../../../lib/base/mem.h"
#include "../../../lib/wire/wire.h"
#include "../engine/pair.h"

#define FRAME 100
#define NOW   1000000000ull

enum { HOST, A, B, C, NODES };

static struct rte_mempool *pool;
static struct gw_switch *sw;
static struct node {
	struct rte_ring *in, *out;
	uint8_t mac[6];
	uint16_t vlan;
	struct gw_claim claim;
	int port;
} node[NODES];

static void
add(int i, unsigned tenant, uint16_t vlan, bool peers, uint64_t rate)
{
	struct node *n = &node[i];
	struct gw_port_config cfg = {
		.kind = GW_ENGINE, .tenant = tenant, .vlan = vlan, .peers = peers, .rate = rate};
	char name[16];

	snprintf(name, sizeof(name), "in%d", i);
	n->in = rte_ring_create(name, 64, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	snprintf(name, sizeof(name), "out%d", i);
	n->out = rte_ring_create(name, 64, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	memcpy(n->mac, (uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)(i + 1)}, 6);
	n->vlan = vlan;
	memcpy(cfg.mac, n->mac, 6);
	n->claim = (struct gw_claim){{{[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1)}}, vlan};
	cfg.claims = &n->claim;
	cfg.nclaims = 1;
	cfg.in = n->in;
	cfg.out = n->out;
	n->port = gw_switch_add(sw, &cfg);
	cr_assert_geq(n->port, 0);
}

static void
setup(bool peers, uint64_t rate)
{
	pool = rte_pktmbuf_pool_create("frames", 255, 0, 0, 2048, SOCKET_ID_ANY);
	sw = gw_switch_create(pool);
	add(HOST, GW_HOST, ETH_NO_VLAN, false, 0);
	add(A, 1, 7, peers, rate);
	add(B, 2, 7, peers, 0);
	add(C, 3, ETH_NO_VLAN, peers, 0);
}

static void
send_frame(int from, const uint8_t dst[6], const uint8_t src[6], uint16_t vlan)
{
	const struct wire_ip ip = {.src = node[from].claim.addr,
		.dst = node[from].claim.addr,
		.proto = IP_UDP,
		.payload_len = FRAME - ETH_MAX - IP4_LEN};
	struct wire_eth eth = {.type = ETH_IPV4, .vlan = vlan};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *at = m == NULL ? NULL : (uint8_t *)rte_pktmbuf_append(m, FRAME);

	if (at == NULL)
		abort();
	memset(at, 0, FRAME);
	memcpy(eth.dst, dst, 6);
	memcpy(eth.src, src, 6);
	wire_ip_emit(at + wire_eth_emit(at, &eth), &ip);
	cr_assert_eq(rte_ring_sp_enqueue(node[from].in, m), 0);
}

/* Sends one frame. Returns the nodes that receive it, one bit for each. */
static unsigned
reaches(int from, const uint8_t dst[6], uint16_t vlan)
{
	unsigned who = 0;
	struct rte_mbuf *m;

	send_frame(from, dst, node[from].mac, vlan);
	cr_assert(gw_switch_poll(sw, NOW));
	for (int i = 0; i < NODES; i++)
		while (rte_ring_sc_dequeue(node[i].out, (void **)&m) == 0) {
			cr_assert_eq(m->pkt_len, FRAME);
			cr_assert_eq(who & 1u << i, 0, "twice");
			who |= 1u << i;
			rte_pktmbuf_free(m);
		}
	return who;
}

static uint64_t
counted(enum gw_reason r)
{
	return gw_switch_counters(sw)[r];
}

static void
teardown(void)
{
	cr_assert_eq(rte_mempool_in_use_count(pool), 0, "mbufs are still out");
	gw_switch_destroy(sw);
}

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t stranger[6] = {2, 9, 9, 9, 9, 9};

TestSuite(gw_switch, .init = pair_eal);

Test(gw_switch, a_known_address_is_found_in_its_vlan)
{
	setup(true, 0);
	cr_assert_eq(reaches(A, node[B].mac, 7), 1u << B);
	cr_assert_eq(reaches(HOST, node[B].mac, 7), 1u << B);
	cr_assert_eq(reaches(HOST, node[C].mac, ETH_NO_VLAN), 1u << C);
	cr_assert_eq(reaches(A, node[HOST].mac, 7), 1u << HOST);
	cr_assert_eq(counted(GW_UNKNOWN), 0);
	/* The address is unknown in another VLAN, and there is no wire. */
	cr_assert_eq(reaches(HOST, node[B].mac, ETH_NO_VLAN), 0);
	cr_assert_eq(reaches(HOST, node[C].mac, 7), 0);
	cr_assert_eq(reaches(A, stranger, 7), 0);
	cr_assert_eq(counted(GW_UNKNOWN), 3);
	teardown();
}

Test(gw_switch, a_broadcast_stays_in_its_vlan)
{
	setup(true, 0);
	cr_assert_eq(reaches(A, broadcast, 7), 1u << HOST | 1u << B);
	cr_assert_eq(reaches(C, broadcast, ETH_NO_VLAN), 1u << HOST);
	cr_assert_eq(reaches(HOST, broadcast, 7), 1u << A | 1u << B);
	cr_assert_eq(counted(GW_FLOODED), 3);
	teardown();
}

Test(gw_switch, machines_meet_only_if_both_may)
{
	setup(false, 0);
	cr_assert_eq(reaches(A, node[B].mac, 7), 0);
	cr_assert_eq(counted(GW_TENANT), 1);
	cr_assert_eq(reaches(A, broadcast, 7), 1u << HOST);
	cr_assert_eq(reaches(HOST, node[B].mac, 7), 1u << B);
	teardown();
}

Test(gw_switch, a_machine_sends_from_its_address_and_in_its_vlan)
{
	setup(true, 0);
	send_frame(A, node[HOST].mac, node[B].mac, 7);
	gw_switch_poll(sw, NOW);
	cr_assert_eq(counted(GW_SPOOFED), 1);
	cr_assert_eq(reaches(A, node[HOST].mac, 8), 0);
	cr_assert_eq(reaches(A, node[HOST].mac, ETH_NO_VLAN), 0);
	cr_assert_eq(reaches(C, node[HOST].mac, 7), 0);
	cr_assert_eq(counted(GW_VLAN), 3);
	teardown();
}

Test(gw_switch, a_frame_without_a_header_goes_nowhere)
{
	struct rte_mbuf *m;

	setup(true, 0);
	m = rte_pktmbuf_alloc(pool);
	rte_pktmbuf_append(m, 13);
	rte_ring_sp_enqueue(node[A].in, m);
	gw_switch_poll(sw, NOW);
	cr_assert_eq(counted(GW_SHORT), 1);
	teardown();
}

/* The machine may send 131072 bytes at once, then a million bytes per second. */
Test(gw_switch, a_machine_that_has_used_its_rate_is_not_read_from)
{
	struct rte_mbuf *m;
	unsigned sent = 0, got = 0;

	setup(true, 1000000);
	for (unsigned turn = 0; turn < 200; turn++) {
		for (unsigned i = 0; i < 32 && rte_ring_free_count(node[A].in) > 0; i++, sent++)
			send_frame(A, node[HOST].mac, node[A].mac, 7);
		gw_switch_poll(sw, NOW);
		while (rte_ring_sc_dequeue(node[HOST].out, (void **)&m) == 0) {
			rte_pktmbuf_free(m);
			got++;
		}
	}
	cr_assert_geq(got, 131072 / FRAME);
	cr_assert_leq(got, 131072 / FRAME + 32);
	cr_assert_gt(counted(GW_PACED), 0);
	cr_assert_eq(sent - got, rte_ring_count(node[A].in), "nothing is lost");
	/* 6.4 ms add enough tokens for the frames in the ring. */
	gw_switch_poll(sw, NOW + 6400000);
	cr_assert_eq(rte_ring_count(node[HOST].out), 32);
	while (rte_ring_sc_dequeue(node[HOST].out, (void **)&m) == 0 ||
		rte_ring_sc_dequeue(node[A].in, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	teardown();
}

Test(gw_switch, a_port_without_room_loses_frames_and_counts_them)
{
	struct rte_mbuf *m;

	setup(true, 0);
	for (unsigned turn = 0; turn < 5; turn++) {
		for (unsigned i = 0; i < 20; i++)
			send_frame(A, node[B].mac, node[A].mac, 7);
		gw_switch_poll(sw, NOW);
	}
	cr_assert_eq(counted(GW_FULL), 100 - 63);
	while (rte_ring_sc_dequeue(node[B].out, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	teardown();
}

Test(gw_switch, a_port_that_goes_is_not_used_again_in_the_same_turn)
{
	struct gw_port_config cfg = {.kind = GW_ENGINE, .tenant = 9, .vlan = 7};
	int port;

	setup(true, 0);
	memcpy(cfg.mac, node[B].mac, 6);
	cfg.in = node[B].in;
	cfg.out = node[B].out;
	cr_assert_eq(gw_switch_add(sw, &cfg), -EEXIST);
	gw_switch_del(sw, node[B].port);
	cr_assert_eq(reaches(A, node[B].mac, 7), 0);
	port = gw_switch_add(sw, &cfg);
	cr_assert_neq(port, node[B].port);
	gw_switch_del(sw, port);
	gw_switch_poll(sw, NOW);
	gw_switch_poll(sw, NOW);
	cr_assert_eq(gw_switch_add(sw, &cfg), node[B].port);
	teardown();
}
