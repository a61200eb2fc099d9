/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of hostile machines and of the wire through the gateway's switch and its tunnels. Two
 * machines may be peers, a third may not, and a fourth is in another VLAN. A frame of a machine
 * must reach another machine only if both may have peers and are in one VLAN; every mbuf must come
 * home.
 *
 * Input: frames of [port][addresses][kind][function and cut][count][offset, value]...: a frame that
 * is valid for that port, some bytes of which are changed.
 */
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../../drivers/gateway/tunnel.h"
#include "../../lib/base/mem.h"
#include "../../lib/wire/falcon.h"
#include "fuzz.h"

#define FRAMES 24
#define FRAME  200
#define RING   64

enum { WIRE, HOST, ONE, TWO, ALONE, AWAY, NIC, PORTS };

static const struct shape {
	enum gw_port_kind kind;
	unsigned tenant;
	uint16_t vlan;
	bool peers;
	uint32_t function;
} shapes[PORTS] = {
	[WIRE] = {GW_WIRE, GW_HOST, ETH_NO_VLAN, false, 0},
	[HOST] = {GW_ENGINE, GW_HOST, ETH_NO_VLAN, false, 0},
	[ONE] = {GW_ENGINE, 1, 7, true, 0x010101},
	[TWO] = {GW_ENGINE, 2, 7, true, 0x020202},
	[ALONE] = {GW_ENGINE, 3, 7, false, 0x030303},
	[AWAY] = {GW_ENGINE, 4, ETH_NO_VLAN, true, 0},
	[NIC] = {GW_NIC, 1, 7, true, 0},
};
static struct gw_switch *sw;
static struct rte_mempool *pool;
static struct gw_claim claims[PORTS];
static struct rte_ring *in[PORTS], *out[PORTS];
static struct sk_addr tunnel_addr;
static uint8_t tunnel_mac[6];
static uint64_t now;

static void
mac_of(unsigned i, uint8_t mac[6])
{
	memcpy(mac, (const uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)(i + 1)}, 6);
}

static struct rte_ring *
ring(const char *kind, unsigned i)
{
	char name[32];
	struct rte_ring *r;

	snprintf(name, sizeof(name), "%s%u", kind, i);
	r = rte_ring_create(name, RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	CLAIM(r != NULL);
	return r;
}

static uint16_t
device(unsigned i)
{
	const struct rte_eth_conf conf = {0};
	char name[32];
	int port;

	snprintf(name, sizeof(name), "dev%u", i);
	port = rte_eth_from_rings(name, &in[i], 1, &out[i], 1, 0);
	CLAIM(port >= 0);
	CLAIM(rte_eth_dev_configure((uint16_t)port, 1, 1, &conf) == 0);
	CLAIM(rte_eth_rx_queue_setup((uint16_t)port, 0, RING, 0, NULL, pool) == 0);
	CLAIM(rte_eth_tx_queue_setup((uint16_t)port, 0, RING, 0, NULL) == 0);
	CLAIM(rte_eth_dev_start((uint16_t)port) == 0);
	return (uint16_t)port;
}

static void
add_port(unsigned i)
{
	const struct shape *s = &shapes[i];
	struct gw_port_config pc = {
		.kind = s->kind, .tenant = s->tenant, .vlan = s->vlan, .peers = s->peers};

	in[i] = ring("in", i);
	out[i] = ring("out", i);
	mac_of(i, pc.mac);
	claims[i] = (struct gw_claim){{{[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1)}}, s->vlan};
	if (s->kind != GW_WIRE && s->kind != GW_NIC) {
		pc.claims = &claims[i];
		pc.nclaims = 1;
	}
	if (s->kind == GW_ENGINE) {
		pc.in = in[i];
		pc.out = out[i];
	} else {
		pc.device = device(i);
		pc.multi_seg = i == WIRE;
	}
	if (s->function != 0) {
		pc.tunnel = tunnel_addr;
		pc.function = s->function;
	}
	pc.rate = i == TWO ? 1000000 : 0;
	CLAIM(gw_switch_add(sw, &pc) >= 0);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char *args[] = {"fuzz", "--no-huge", "--no-shconf", "--no-pci", "-m", "64", "-l", "0",
		"--no-telemetry", "--log-level=error"};
	uint64_t h = 14695981039346656037ull;
	char err[256];

	CLAIM(rte_eal_init(SK_ARRAY_LEN(args), args) >= 0);
	pool = rte_pktmbuf_pool_create("frames", 255, 0, 0, 2048, SOCKET_ID_ANY);
	CLAIM(pool != NULL);
	sw = gw_switch_create(pool);
	CLAIM(sw != NULL);
	CLAIM(sk_addr_parse("10.0.0.99", &tunnel_addr) == 0);
	CLAIM(gw_tunnel_create(sw, &tunnel_addr, 7, 1500, err, sizeof(err)) != NULL);
	/* The address that the tunnel derives from its own (tunnel.c). */
	for (unsigned i = 0; i < sizeof(tunnel_addr.b); i++)
		h = (h ^ tunnel_addr.b[i]) * 1099511628211ull;
	for (unsigned i = 0; i < 6; i++)
		tunnel_mac[i] = (uint8_t)(h >> (8 * i));
	tunnel_mac[0] = (tunnel_mac[0] & 0xfc) | 0x02;
	for (unsigned i = 0; i < PORTS; i++)
		add_port(i);
	return 0;
}

/* ---- Frames ---- */

static size_t
put_payload(uint8_t *p, unsigned kind, unsigned from, unsigned function)
{
	static const uint32_t functions[4] = {0x010101, 0x020202, 0x030303, 0x0a0a0a};
	const bool tunneled = kind & 1;
	const size_t inner = PSP_LEN + PSP_VC_LEN + 60;
	struct wire_ip ip = {.src = kind & 8 ? tunnel_addr : claims[from].addr,
		.dst = kind & 16 ? claims[TWO].addr : tunnel_addr,
		.ttl = 64,
		.proto = IP_UDP,
		.payload_len = (uint32_t)(UDP_LEN + inner)};
	const struct wire_psp psp = {.next = kind & 2 ? PSP_NEXT_IP6 : PSP_NEXT_IP4,
		.has_vc = tunneled,
		.vc = (uint64_t)functions[function & 3] << 40,
		.spi = 1};
	const struct wire_udp udp = {
		.sport = 1000, .dport = PSP_UDP_PORT, .payload_len = (uint16_t)inner};
	uint8_t *at = p + wire_ip_emit(p, &ip);

	memset(at, 0, UDP_LEN + inner);
	wire_udp_emit(at, &udp);
	wire_psp_emit(at + UDP_LEN, &psp);
	return (size_t)(at - p) + UDP_LEN + inner;
}

static size_t
put_arp(uint8_t *p, unsigned kind, unsigned from)
{
	struct wire_arp arp = {.op = kind & 2 ? 2 : 1};

	mac_of(from, arp.sha);
	arp.spa = claims[from].addr;
	arp.tpa = kind & 8 ? claims[ONE].addr : tunnel_addr;
	return wire_arp_emit(p, &arp);
}

static void
one_frame(struct fuzz_input *i, unsigned from)
{
	unsigned who = fuzz_byte(i), kind = fuzz_byte(i), more = fuzz_byte(i);
	struct wire_eth eth = {.type = kind & 4 ? ETH_ARP : ETH_IPV4, .vlan = shapes[from].vlan};
	uint8_t frame[FRAME + 64];
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool), *tail;
	size_t len, cut = more >> 3 & 31;

	if (m == NULL)
		return;
	mac_of(from, eth.src);
	mac_of(who % PORTS, eth.dst);
	if (who & 16)
		memset(eth.dst, 0xff, 6);
	if (who & 32)
		memcpy(eth.dst, tunnel_mac, 6);
	if (from == NIC || who & 64)
		eth.vlan = ETH_NO_VLAN;
	if (from == WIRE || from == HOST)
		eth.vlan = who & 128 ? 7 : ETH_NO_VLAN;
	len = wire_eth_emit(frame, &eth);
	len += kind & 4 ? put_arp(frame + len, kind, from)
			: put_payload(frame + len, kind, from, more);
	for (unsigned n = fuzz_byte(i) % 8u; n > 0; n--) {
		unsigned at = fuzz_byte(i);

		frame[at % len] = fuzz_byte(i);
	}
	if (kind & 32)
		len = SK_MIN(len, 1 + cut * 4);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	if (kind & 64 && cut > 0 && len > cut) { /* in two mbufs */
		tail = rte_pktmbuf_alloc(pool);
		if (tail != NULL) {
			memcpy(rte_pktmbuf_append(tail, (uint16_t)cut), frame + len - cut, cut);
			rte_pktmbuf_trim(m, (uint16_t)cut);
			CLAIM(rte_pktmbuf_chain(m, tail) == 0);
		}
	}
	if (rte_ring_enqueue(in[from], m) != 0)
		rte_pktmbuf_free(m);
}

/* Takes what has arrived at port `to`, which a frame of port `from` caused. */
static void
arrived(unsigned from, unsigned to)
{
	const struct shape *a = &shapes[from], *b = &shapes[to];
	void *m;

	while (rte_ring_dequeue(out[to], &m) == 0) {
		if (a->tenant != GW_HOST && b->tenant != GW_HOST && a->tenant != b->tenant)
			CLAIM(a->peers && b->peers && a->vlan == b->vlan);
		rte_pktmbuf_free(m);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input i = {.p = data, .len = size};

	for (unsigned n = 0; n < FRAMES && i.at < i.len; n++) {
		unsigned from = fuzz_byte(&i) % PORTS;

		one_frame(&i, from);
		/* A machine that exceeds its rate waits for later turns. */
		for (unsigned k = 0; k < 4 && rte_ring_count(in[from]) > 0; k++) {
			now += 1000000000;
			gw_switch_poll(sw, now);
		}
		gw_switch_poll(sw, now);
		for (unsigned to = 0; to < PORTS; to++)
			arrived(from, to);
	}
	now += 60000000000;
	for (unsigned k = 0; k < 4; k++)
		gw_switch_poll(sw, now);
	for (unsigned to = 0; to < PORTS; to++)
		arrived(to, to);
	CLAIM(rte_mempool_full(pool));
	return 0;
}
