/* SPDX-License-Identifier: BSD-3-Clause */
/* Echo requests of each length to an instance whose port has jumbo frames. The test is the peer. */
#include <criterion/criterion.h>
#include <rte_ring.h>
#include <string.h>

#include "../../../lib/engine/transport/transport_priv.h"
#include "pair.h"

#define MTU 9000

TestSuite(engine_echo, .init = pair_eal);

static struct pair both; /* its first instance alone runs */

static void
begin(uint32_t mtu)
{
	char err[256];
	void *m;

	pair_init(&both);
	both.cfg[0].ports[0].mtu = mtu;
	both.e[0] = eng_create(&both.cfg[0], err, sizeof(err));
	cr_assert_not_null(both.e[0], "%s", err);
	pair_turn(&both);
	while (rte_ring_sc_dequeue(rte_ring_lookup("wire1_0"), &m) == 0)
		rte_pktmbuf_free(m); /* its first frames */
}

/* Writes an IP packet of `ip_len` bytes with an echo request, and returns the frame's length. */
static unsigned
request(uint8_t *at, unsigned ip_len)
{
	struct wire_eth eth = {.type = ETH_IPV4, .vlan = ETH_NO_VLAN, .src = {2, 0, 0, 0, 0, 9}};
	struct wire_ip ip = {.src = addr(PAIR_ADDR_B),
		.dst = addr(PAIR_ADDR_A),
		.proto = IP_ICMP,
		.ttl = 64,
		.payload_len = ip_len - IP4_LEN};
	struct wire_icmp icmp = {.kind = ICMP_ECHO_REQUEST};
	unsigned l4;

	memcpy(eth.dst, both.e[0]->ports[0].mac, 6);
	l4 = wire_eth_emit(at, &eth);
	l4 += wire_ip_emit(at + l4, &ip);
	wire_icmp_emit(at + l4, &icmp, false);
	for (unsigned i = ICMP_ECHO_LEN; i < ip.payload_len; i++)
		at[l4 + i] = (uint8_t)(i * 7 + i / 251);
	wire_icmp_checksum(at + l4, ip.payload_len, &ip.src, &ip.dst);
	return ETH_LEN + ip_len;
}

/* Checks that the instance sends one frame: the reply with the bytes of `frame`. */
static void
replied(const uint8_t *frame, unsigned len)
{
	const unsigned data = ETH_LEN + IP4_LEN + ICMP_ECHO_LEN;
	struct wire_pkt pkt;
	struct rte_mbuf *m;
	void *got = NULL;

	cr_assert_eq(rte_ring_sc_dequeue(rte_ring_lookup("wire1_0"), &got), 0,
		"no reply to an IP packet of %u bytes", len - ETH_LEN);
	m = got;
	cr_assert(m->nb_segs == 1 && m->pkt_len == len);
	cr_assert_geq(wire_pkt_parse(&pkt, rte_pktmbuf_mtod(m, uint8_t *), m->data_len, len), 0);
	cr_assert_eq(pkt.icmp.kind, ICMP_ECHO_REPLY);
	cr_assert_arr_eq(rte_pktmbuf_mtod_offset(m, uint8_t *, data), frame + data, len - data);
	rte_pktmbuf_free(m);
	cr_assert_neq(rte_ring_sc_dequeue(rte_ring_lookup("wire1_0"), &got), 0);
}

static void
ping(unsigned ip_len)
{
	static uint8_t frame[ETH_LEN + MTU];
	unsigned len = request(frame, ip_len);
	struct rte_mbuf *m = rte_pktmbuf_alloc(both.e[0]->transports[0]->rx_pool);

	cr_assert_not_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	cr_assert_eq(rte_ring_sp_enqueue(rte_ring_lookup("wire0_0"), m), 0);
	for (int i = 0; i < 4; i++)
		pair_turn(&both);
	replied(frame, len);
}

/* The reply has the whole data of the request. A longer frame than ENG_COPY_MAX does not fit into
 * an mbuf of tx_pool. */
Test(engine_echo, a_reply_has_all_data_on_a_port_with_jumbo_frames_rfc1122_3_2_2_6)
{
	static const unsigned ip_len[] = {IP4_LEN + ICMP_ECHO_LEN, ENG_COPY_MAX - ETH_LEN - 1,
		ENG_COPY_MAX - ETH_LEN, ENG_COPY_MAX - ETH_LEN + 1, ENG_COPY_MAX,
		ENG_COPY_MAX + RTE_PKTMBUF_HEADROOM, MTU - 28, MTU};

	begin(MTU);
	for (unsigned i = 0; i < SK_ARRAY_LEN(ip_len); i++) {
		ping(ip_len[i]);
		cr_assert_eq(pair_counter(both.e[0], "net", "NET_ECHO"), i + 1);
	}
	cr_assert_eq(pair_counter(both.e[0], "eng", "ENG_TX_NO_MBUF"), 0);
	pair_end(&both);
}
