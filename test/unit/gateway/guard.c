/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the source addresses that a machine may use (drivers/gateway/guard.c), with a machine's
 * engine, its card and the host, all without a VLAN. The card is an Ethernet device that consists
 * of rings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_bus_vdev.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../../../drivers/gateway/tunnel.h"
#include "../../../lib/base/mem.h"
#include "../../../lib/wire/falcon.h"
#include "../engine/pair.h"

#define NOW  1000000000ull
#define RATE 1000000 /* bytes per second, of one card */

enum { HOST, ENGINE, CARD, STRICT, PACED, PORTS };

/* All frames are addressed to the host, because these tests check their source only. */
static struct rte_mempool *pool;
static struct gw_switch *sw;
static struct rte_ring *in[PORTS], *out[PORTS];
static struct gw_claim claims[PORTS][2];
static uint8_t mac[PORTS][6];

static const char *const addrs[PORTS][2] = {
	[HOST] = {"10.0.0.1", "2001:db8::1"},
	[ENGINE] = {"10.0.0.2", "2001:db8::2"},
	[STRICT] = {"10.0.0.4", "2001:db8::4"},
	[PACED] = {"10.0.0.6"},
};

static uint16_t
device(int i)
{
	struct rte_eth_conf conf = {0};
	char name[16];
	int d;

	snprintf(name, sizeof(name), "card%d", i);
	d = rte_eth_from_rings(name, &in[i], 1, &out[i], 1, SOCKET_ID_ANY);
	cr_assert_geq(d, 0);
	cr_assert_eq(rte_eth_dev_configure((uint16_t)d, 1, 1, &conf), 0);
	cr_assert_eq(rte_eth_rx_queue_setup((uint16_t)d, 0, 64, SOCKET_ID_ANY, NULL, pool), 0);
	cr_assert_eq(rte_eth_tx_queue_setup((uint16_t)d, 0, 64, SOCKET_ID_ANY, NULL), 0);
	cr_assert_eq(rte_eth_dev_start((uint16_t)d), 0);
	return (uint16_t)d;
}

static void
add(int i, enum gw_port_kind kind, unsigned tenant)
{
	struct gw_port_config cfg = {
		.kind = kind, .tenant = tenant, .vlan = ETH_NO_VLAN, .claims = claims[i]};
	char name[16];

	snprintf(name, sizeof(name), "in%d", i);
	in[i] = rte_ring_create(name, 64, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	snprintf(name, sizeof(name), "out%d", i);
	out[i] = rte_ring_create(name, 64, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	memcpy(mac[i], (uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)(i + 1)}, 6);
	memcpy(cfg.mac, mac[i], 6);
	for (; cfg.nclaims < 2 && addrs[i][cfg.nclaims] != NULL; cfg.nclaims++)
		claims[i][cfg.nclaims] =
			(struct gw_claim){addr(addrs[i][cfg.nclaims]), ETH_NO_VLAN};
	cfg.in = in[i];
	cfg.out = out[i];
	cfg.rate = i == PACED ? RATE : 0;
	if (kind == GW_NIC)
		cfg.device = device(i);
	cr_assert_geq(gw_switch_add(sw, &cfg), 0);
}

static void
setup(void)
{
	pair_eal();
	pool = rte_pktmbuf_pool_create("frames", 255, 0, 0, 2048, SOCKET_ID_ANY);
	sw = gw_switch_create(pool);
	add(HOST, GW_ENGINE, GW_HOST);
	add(ENGINE, GW_ENGINE, 1);
	add(CARD, GW_NIC, 1);
	add(STRICT, GW_NIC, 2);
	add(PACED, GW_NIC, 3);
}

static void
teardown(void)
{
	cr_assert_eq(rte_mempool_in_use_count(pool), 0, "mbufs are still out");
	gw_switch_destroy(sw);
}

TestSuite(guard, .init = setup, .fini = teardown);

/* ---- Frames ---- */

static uint8_t frame[512];
static uint32_t frame_len;

static void
begin(int from, uint16_t type)
{
	struct wire_eth eth = {.type = type, .vlan = ETH_NO_VLAN};

	memset(frame, 0, sizeof(frame));
	memcpy(eth.dst, mac[HOST], 6);
	memcpy(eth.src, mac[from], 6);
	frame_len = wire_eth_emit(frame, &eth);
}

/* Builds an IP packet with `len` bytes behind its header, and returns a pointer to these bytes. */
static uint8_t *
ip(int from, const char *src, uint8_t proto, uint32_t len)
{
	struct wire_ip h = {.src = addr(src), .proto = proto, .ttl = 255, .payload_len = len};
	bool v4 = sk_addr_is_v4(&h.src);
	uint8_t *at;

	h.dst = addr(v4 ? "10.0.0.1" : "2001:db8::1");
	begin(from, v4 ? ETH_IPV4 : ETH_IPV6);
	frame_len += wire_ip_emit(frame + frame_len, &h);
	at = frame + frame_len;
	frame_len += len;
	return at;
}

static void
udp(int from, const char *src, uint16_t dport)
{
	struct wire_udp h = {.sport = 9, .dport = dport};

	wire_udp_emit(ip(from, src, IP_UDP, 20), &h);
}

static void
arp(int from, uint16_t op, const char *spa, const uint8_t *sha)
{
	struct wire_arp a = {.op = op, .spa = addr(spa), .tpa = addr("10.0.0.1")};

	memcpy(a.sha, sha, 6);
	begin(from, ETH_ARP);
	frame_len += wire_arp_emit(frame + frame_len, &a);
}

/* Builds a neighbour discovery message with one option, which holds `lladdr`, or the sender's MAC
 * address if that is NULL. */
static void
nd(int from, uint8_t type, const char *src, const char *target, const uint8_t *lladdr)
{
	uint32_t option = type == 133 ? 8 : 24;
	struct sk_addr a = addr(target);
	uint8_t *at = ip(from, src, IP_ICMP6, option + 8);

	at[0] = type;
	memcpy(at + 8, a.b, option - 8);
	at[option] = type == 136 ? 2 : 1;
	at[option + 1] = 1;
	memcpy(at + option + 2, lladdr, 6);
}

/* Inserts an extension header of 8 bytes behind the IPv6 header. */
static void
extend(uint8_t kind, uint16_t offset)
{
	uint8_t *at = frame + ETH_LEN + IP6_LEN;

	memmove(at + 8, at, frame_len - ETH_LEN - IP6_LEN);
	memset(at, 0, 8);
	at[0] = frame[ETH_LEN + 6];
	at[2] = (uint8_t)(offset >> 8);
	at[3] = (uint8_t)offset;
	frame[ETH_LEN + 6] = kind;
	frame[ETH_LEN + 5] = (uint8_t)(frame[ETH_LEN + 5] + 8);
	frame_len += 8;
}

/* Sends the frame. Returns the reason why the switch dropped it, or GW_NONE when the host received
 * it. */
static enum gw_reason
fate(int from)
{
	uint64_t before[gw_reason_count];
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	unsigned got = 0, why = GW_NONE;

	memcpy(rte_pktmbuf_append(m, (uint16_t)frame_len), frame, frame_len);
	memcpy(before, gw_switch_counters(sw), sizeof(before));
	cr_assert_eq(rte_ring_sp_enqueue(in[from], m), 0);
	gw_switch_poll(sw, NOW);
	while (rte_ring_sc_dequeue(out[HOST], (void **)&m) == 0) {
		rte_pktmbuf_free(m);
		got++;
	}
	for (unsigned r = 1; r < gw_reason_count; r++)
		if (gw_switch_counters(sw)[r] != before[r]) {
			cr_assert_eq(why, GW_NONE, "two reasons: %u and %u", why, r);
			why = r;
		}
	cr_assert_eq(got, why == GW_NONE, "reason %u, and the host got %u", why, got);
	return (enum gw_reason)why;
}

#define UDP_FATE(from, src) (udp(from, src, 80), fate(from))
#define ARP_FATE(from, ...) (arp(from, __VA_ARGS__), fate(from))
#define ND_FATE(from, ...)  (nd(from, __VA_ARGS__), fate(from))

/* ---- IP ---- */

Test(guard, an_engine_sends_from_its_addresses)
{
	cr_assert_eq(UDP_FATE(ENGINE, "10.0.0.2"), GW_NONE);
	cr_assert_eq(UDP_FATE(ENGINE, "2001:db8::2"), GW_NONE);
	cr_assert_eq(UDP_FATE(ENGINE, "fe80::ff:fe00:2"), GW_NONE, "made of its MAC address");
	cr_assert_eq(UDP_FATE(ENGINE, "10.0.0.3"), GW_SPOOFED_IP);
	cr_assert_eq(UDP_FATE(ENGINE, "10.0.0.1"), GW_SPOOFED_IP);
	cr_assert_eq(UDP_FATE(ENGINE, "2001:db8::3"), GW_SPOOFED_IP);
	cr_assert_eq(UDP_FATE(ENGINE, "fe80::9"), GW_SPOOFED_IP);
	cr_assert_eq(UDP_FATE(ENGINE, "0.0.0.0"), GW_SPOOFED_IP);
}

Test(guard, a_card_with_configured_addresses_has_no_others)
{
	cr_assert_eq(UDP_FATE(STRICT, "10.0.0.4"), GW_NONE);
	cr_assert_eq(UDP_FATE(STRICT, "2001:db8::4"), GW_NONE);
	cr_assert_eq(UDP_FATE(STRICT, "fe80::1234"), GW_NONE, "nobody's link-local one");
	cr_assert_eq(UDP_FATE(STRICT, "fe80::ff:fe00:2"), GW_SPOOFED_IP, "the engine's");
	cr_assert_eq(UDP_FATE(STRICT, "10.0.0.5"), GW_SPOOFED_IP);
	cr_assert_eq(UDP_FATE(STRICT, "2001:db8::5"), GW_SPOOFED_IP);
}

Test(guard, a_card_without_configured_addresses_has_those_of_no_other_port)
{
	static struct gw_claim more;

	cr_assert_eq(UDP_FATE(CARD, "10.0.0.3"), GW_NONE);
	cr_assert_eq(UDP_FATE(CARD, "2001:db8::3"), GW_NONE);
	for (int i = HOST; i < PORTS; i++)
		for (int k = 0; k < 2 && addrs[i][k] != NULL; k++)
			cr_assert_eq(UDP_FATE(CARD, addrs[i][k]), GW_SPOOFED_IP, "%s", addrs[i][k]);
	cr_assert_eq(UDP_FATE(CARD, "127.0.0.1"), GW_SPOOFED_IP);
	cr_assert_eq(UDP_FATE(CARD, "224.0.0.1"), GW_SPOOFED_IP);
	cr_assert_eq(UDP_FATE(CARD, "ff02::1"), GW_SPOOFED_IP);
	cr_assert_eq(UDP_FATE(CARD, "::1"), GW_SPOOFED_IP);
	/* Another port claims an address that the card has used until now. */
	cr_assert_eq(UDP_FATE(CARD, "10.0.0.3"), GW_NONE);
	more = (struct gw_claim){addr("10.0.0.3"), ETH_NO_VLAN};
	gw_switch_claim(sw, HOST, &more, 1);
	cr_assert_eq(UDP_FATE(CARD, "10.0.0.3"), GW_SPOOFED_IP);
	/* A claim in another VLAN has no effect. */
	more.vlan = 7;
	gw_switch_claim(sw, HOST, &more, 1);
	cr_assert_eq(UDP_FATE(CARD, "10.0.0.3"), GW_NONE);
}

Test(guard, a_machine_without_an_address_may_request_one)
{
	udp(STRICT, "0.0.0.0", 67);
	cr_assert_eq(fate(STRICT), GW_NONE, "DHCP");
	cr_assert_eq(UDP_FATE(STRICT, "0.0.0.0"), GW_SPOOFED_IP);
	cr_assert_eq(ND_FATE(STRICT, 133, "::", "::", mac[STRICT]), GW_NONE);
	cr_assert_eq(ND_FATE(STRICT, 135, "::", "2001:db8::1", mac[STRICT]), GW_NONE);
	cr_assert_eq(UDP_FATE(STRICT, "::"), GW_SPOOFED_IP);
	cr_assert_eq(ND_FATE(STRICT, 128, "::", "::", mac[STRICT]), GW_SPOOFED_IP, "an echo");
}

Test(guard, what_cannot_be_read_does_not_pass)
{
	udp(CARD, "10.0.0.3", 80);
	frame[ETH_LEN] = 0x43;
	cr_assert_eq(fate(CARD), GW_SHORT, "a header of 12 bytes");
	udp(CARD, "10.0.0.3", 80);
	frame[ETH_LEN] = 0x65;
	cr_assert_eq(fate(CARD), GW_SHORT, "version 6");
	udp(CARD, "10.0.0.3", 80);
	frame_len = ETH_LEN + 19;
	cr_assert_eq(fate(CARD), GW_SHORT);
	udp(CARD, "2001:db8::3", 80);
	frame_len = ETH_LEN + 39;
	cr_assert_eq(fate(CARD), GW_SHORT);
	udp(CARD, "2001:db8::3", 80);
	for (unsigned i = 0; i < 8; i++)
		extend(60, 0);
	cr_assert_eq(fate(CARD), GW_SHORT, "eight extension headers");
	begin(CARD, 0x88cc);
	frame_len += 50;
	cr_assert_eq(fate(CARD), GW_ETHERTYPE, "LLDP");
	begin(CARD, 0x88a8);
	frame_len += 50;
	cr_assert_eq(fate(CARD), GW_ETHERTYPE, "a service tag");
}

/* ---- ARP ---- */

Test(guard, rfc826_a_machine_sends_arp_for_itself)
{
	cr_assert_eq(ARP_FATE(ENGINE, ARP_REPLY, "10.0.0.2", mac[ENGINE]), GW_NONE);
	cr_assert_eq(ARP_FATE(ENGINE, ARP_REQUEST, "10.0.0.2", mac[ENGINE]), GW_NONE);
	cr_assert_eq(ARP_FATE(CARD, ARP_REQUEST, "0.0.0.0", mac[CARD]), GW_NONE, "RFC 5227");
	cr_assert_eq(ARP_FATE(CARD, ARP_REPLY, "10.0.0.3", mac[CARD]), GW_NONE);
	cr_assert_eq(ARP_FATE(CARD, ARP_REPLY, "10.0.0.2", mac[CARD]), GW_SPOOFED_ARP);
	cr_assert_eq(ARP_FATE(CARD, ARP_REQUEST, "10.0.0.1", mac[CARD]), GW_SPOOFED_ARP);
	cr_assert_eq(ARP_FATE(CARD, ARP_REPLY, "10.0.0.3", mac[HOST]), GW_SPOOFED_ARP);
	arp(CARD, ARP_REPLY, "10.0.0.3", mac[CARD]);
	frame_len -= 1;
	cr_assert_eq(fate(CARD), GW_SPOOFED_ARP, "cut off");
}

/* ---- Neighbour discovery ---- */

Test(guard, rfc4861_a_machine_advertises_itself)
{
	cr_assert_eq(ND_FATE(ENGINE, 136, "2001:db8::2", "2001:db8::2", mac[ENGINE]), GW_NONE);
	cr_assert_eq(ND_FATE(CARD, 135, "2001:db8::3", "2001:db8::1", mac[CARD]), GW_NONE);
	cr_assert_eq(ND_FATE(CARD, 136, "2001:db8::3", "2001:db8::3", mac[CARD]), GW_NONE);
	cr_assert_eq(ND_FATE(CARD, 136, "2001:db8::3", "2001:db8::2", mac[CARD]), GW_SPOOFED_ND);
	cr_assert_eq(ND_FATE(CARD, 136, "2001:db8::3", "2001:db8::3", mac[HOST]), GW_SPOOFED_ND);
	cr_assert_eq(ND_FATE(CARD, 135, "2001:db8::3", "2001:db8::1", mac[HOST]), GW_SPOOFED_ND);
	cr_assert_eq(ND_FATE(CARD, 136, "2001:db8::2", "2001:db8::3", mac[CARD]), GW_SPOOFED_IP);
	nd(CARD, 136, "2001:db8::3", "2001:db8::3", mac[CARD]);
	frame[ETH_LEN + IP6_LEN + 25] = 0;
	cr_assert_eq(fate(CARD), GW_SPOOFED_ND, "an option of no bytes");
	nd(CARD, 136, "2001:db8::3", "2001:db8::3", mac[CARD]);
	frame[ETH_LEN + IP6_LEN + 25] = 2;
	cr_assert_eq(fate(CARD), GW_SPOOFED_ND, "an option that is cut off");
	/* Options that end at HEAD_MAX, and then one more. */
	nd(CARD, 136, "2001:db8::3", "2001:db8::3", mac[CARD]);
	for (unsigned at = 24 + 8; at < 300; at += 8)
		memcpy(frame + ETH_LEN + IP6_LEN + at, frame + ETH_LEN + IP6_LEN + 24, 8);
	frame[ETH_LEN + 4] = 304 >> 8;
	frame[ETH_LEN + 5] = (uint8_t)304;
	frame_len = ETH_LEN + IP6_LEN + 304;
	cr_assert_eq(fate(CARD), GW_SPOOFED_ND, "longer than what is looked at");
}

Test(guard, rfc6105_a_machine_is_no_router)
{
	cr_assert_eq(ND_FATE(CARD, 134, "2001:db8::3", "::", mac[CARD]), GW_SPOOFED_ND);
	cr_assert_eq(ND_FATE(CARD, 137, "2001:db8::3", "2001:db8::3", mac[CARD]), GW_SPOOFED_ND);
	cr_assert_eq(ND_FATE(STRICT, 134, "fe80::1234", "::", mac[STRICT]), GW_SPOOFED_ND);
}

Test(guard, rfc6980_nothing_is_hidden_behind_other_headers)
{
	static const uint8_t kinds[] = {0, 43, 60};

	for (unsigned i = 0; i < sizeof(kinds); i++) {
		nd(CARD, 134, "2001:db8::3", "::", mac[CARD]);
		extend(kinds[i], 0);
		cr_assert_eq(fate(CARD), GW_SPOOFED_ND, "behind %u", kinds[i]);
	}
	nd(CARD, 136, "2001:db8::3", "2001:db8::3", mac[CARD]);
	extend(44, 1);
	cr_assert_eq(fate(CARD), GW_SPOOFED_ND, "the first fragment");
	nd(CARD, 128, "2001:db8::3", "::", mac[CARD]);
	extend(44, 1);
	cr_assert_eq(fate(CARD), GW_NONE, "of an echo");
	nd(CARD, 134, "2001:db8::3", "::", mac[CARD]);
	extend(44, 8);
	cr_assert_eq(fate(CARD), GW_NONE, "a later fragment, which says nothing by itself");
}

/* ---- Rate ---- */

/* The card may send 131072 bytes at once, then a million bytes per second. Frames that the switch
 * does not read stay in the guest's queue. */
Test(guard, a_cards_rate_holds)
{
	unsigned sent = 0, got = 0;
	struct rte_mbuf *m;

	for (unsigned ms = 0; ms <= 500; ms++) {
		while (rte_ring_count(in[PACED]) < 32) {
			ip(PACED, "10.0.0.6", IP_UDP, 400);
			m = rte_pktmbuf_alloc(pool);
			memcpy(rte_pktmbuf_append(m, (uint16_t)frame_len), frame, frame_len);
			cr_assert_eq(rte_ring_sp_enqueue(in[PACED], m), 0);
			sent++;
		}
		gw_switch_poll(sw, NOW + ms * 1000000);
		while (rte_ring_sc_dequeue(out[HOST], (void **)&m) == 0) {
			rte_pktmbuf_free(m);
			got++;
		}
	}
	cr_assert_geq(got * frame_len, RATE / 2);
	cr_assert_leq(got * frame_len, RATE / 2 + 131072 + 32 * frame_len);
	cr_assert_eq(sent - got, rte_ring_count(in[PACED]), "nothing is lost");
	cr_assert_gt(gw_switch_counters(sw)[GW_PACED], 0);
	while (rte_ring_sc_dequeue(in[PACED], (void **)&m) == 0)
		rte_pktmbuf_free(m);
}

/* ---- Tunnels ---- */

Test(guard, a_card_does_not_send_from_a_tunnel)
{
	const struct sk_addr outer = addr("10.0.0.9");
	struct gw_tunnel *t;
	char err[128];

	t = gw_tunnel_create(sw, &outer, ETH_NO_VLAN, 1500, err, sizeof(err));
	cr_assert_not_null(t, "%s", err);
	udp(CARD, "10.0.0.9", PSP_UDP_PORT);
	cr_assert_eq(fate(CARD), GW_SPOOFED_IP);
	cr_assert_eq(ARP_FATE(CARD, ARP_REPLY, "10.0.0.9", mac[CARD]), GW_SPOOFED_ARP);
	/* The same holds for an engine that does not use the tunnel. */
	udp(ENGINE, "10.0.0.9", PSP_UDP_PORT);
	cr_assert_eq(fate(ENGINE), GW_SPOOFED_IP);
	cr_assert_null(gw_tunnel_create(sw, &outer, ETH_NO_VLAN, 1500, err, sizeof(err)));
	gw_tunnel_unplug(t);
	gw_tunnel_destroy(t);
}
