/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the check of source addresses in frames of a hostile guest. The first byte of the input
 * selects the port and the place where the mbuf is split in two; the rest is the frame. When a
 * frame passes, all addresses that lib/wire parses in it must be the machine's own.
 */
#include <stdlib.h>
#include <string.h>

#include "../../drivers/gateway/switch_priv.h"
#include "../../lib/base/mem.h"
#include "../../lib/wire/wire.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1}, host_mac[6] = {2, 0, 0, 0, 0, 9};
/* 10.0.0.1 and 2001:db8::1 are the machine's, 10.0.0.9 and 2001:db8::9 the host's. */
static const struct gw_claim own[2] = {
	{{{[10] = 0xff, 0xff, 10, 0, 0, 1}}, ETH_NO_VLAN},
	{{{0x20, 0x01, 0x0d, 0xb8, [15] = 1}}, ETH_NO_VLAN},
};
static const struct gw_claim hosts[2] = {
	{{{[10] = 0xff, 0xff, 10, 0, 0, 9}}, ETH_NO_VLAN},
	{{{0x20, 0x01, 0x0d, 0xb8, [15] = 9}}, ETH_NO_VLAN},
};

enum { ENGINE, STRICT, FREE, PORTS };

static struct gw_switch *sw;
static int port[PORTS];

static void
setup(void)
{
	struct gw_port_config pc = {.kind = GW_ENGINE, .vlan = ETH_NO_VLAN, .claims = hosts};

	sw = gw_switch_create(NULL);
	memcpy(pc.mac, host_mac, 6);
	pc.nclaims = 2;
	if (sw == NULL || gw_switch_add(sw, &pc) < 0)
		abort();
	memcpy(pc.mac, mac, 6);
	for (int i = 0; i < PORTS; i++) {
		pc.kind = i == ENGINE ? GW_ENGINE : GW_NIC;
		pc.tenant = (unsigned)i + 1;
		pc.vlan = ETH_NO_VLAN;
		pc.claims = own;
		pc.nclaims = i == FREE ? 0 : 2;
		pc.mac[4] = (uint8_t)i;
		port[i] = gw_switch_add(sw, &pc);
		if (port[i] < 0)
			abort();
	}
}

/* Returns whether port `i` may use an address: no other port claims it, and if port `i` has claims,
 * it is one of these. */
static bool
lawful(int i, const struct sk_addr *a)
{
	const struct gw_sw_port *p = &sw->ports[port[i]];

	if (sk_addr_eq(a, &hosts[0].addr) || sk_addr_eq(a, &hosts[1].addr))
		return false;
	if (i == FREE || sk_addr_eq(a, &p->ll))
		return true;
	if (i == STRICT && a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80)
		return true;
	return sk_addr_eq(a, &own[0].addr) || sk_addr_eq(a, &own[1].addr);
}

static void
judge(int i, const uint8_t *frame, size_t len)
{
	const struct gw_sw_port *p = &sw->ports[port[i]];
	struct wire_pkt pkt;

	/* An engine never accepts a frame that lib/wire refuses. */
	if (wire_pkt_parse(&pkt, frame, len, len) != 0)
		return;
	if (pkt.eth.type == ETH_ARP) {
		if (memcmp(pkt.arp.sha, p->cfg.mac, 6) != 0 ||
			(!sk_addr_is_any(&pkt.arp.spa) && !lawful(i, &pkt.arp.spa)))
			abort();
		return;
	}
	if (!sk_addr_is_any(&pkt.ip.src) && !lawful(i, &pkt.ip.src))
		abort();
	if (pkt.ip.proto != IP_ICMP6)
		return;
	if (pkt.icmp.kind == ICMP_ROUTER_ADVERT ||
		(pkt.icmp.kind == ICMP_NEIGHBOR_ADVERT && !lawful(i, &pkt.icmp.target)))
		abort();
	if (pkt.icmp.has_lladdr && memcmp(pkt.icmp.lladdr, p->cfg.mac, 6) != 0)
		abort();
}

/* Corrects the checksums, because random ones would nearly always be wrong. */
static void
mend(uint8_t *frame, size_t len)
{
	uint8_t *ip = frame + ETH_LEN;
	struct sk_addr src, dst;
	size_t n = len - ETH_LEN;
	uint16_t sum;

	if (frame[12] == 0x08 && frame[13] == 0x00 && n >= IP4_LEN && ip[0] == 0x45) {
		memset(ip + 10, 0, 2);
		sum = wire_sum_fold(wire_sum(0, ip, IP4_LEN));
		memcpy(ip + 10, &sum, 2);
	}
	if (frame[12] != 0x86 || frame[13] != 0xdd || n < IP6_LEN + 4 || ip[6] != IP_ICMP6)
		return;
	memcpy(src.b, ip + 8, 16);
	memcpy(dst.b, ip + 24, 16);
	ip[4] = (uint8_t)((n - IP6_LEN) >> 8);
	ip[5] = (uint8_t)(n - IP6_LEN);
	memset(ip + IP6_LEN + 2, 0, 2);
	wire_icmp_checksum(ip + IP6_LEN, n - IP6_LEN, &src, &dst);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rte_mbuf m, rest;
	struct gw_sw_frame f = {.vlan = ETH_NO_VLAN, .l3 = ETH_LEN};
	uint8_t *exact, *tail;
	size_t len, cut;
	int i;

	if (sw == NULL)
		setup();
	if (size < 1 + ETH_LEN || size > 2000)
		return 0;
	i = data[0] % PORTS;
	len = size - 1;
	cut = ETH_LEN + data[0] / PORTS;
	cut = SK_MIN(cut, len);
	memset(&m, 0, sizeof(m));
	memset(&rest, 0, sizeof(rest));
	/* Allocations of the exact size, so that the sanitizer finds reads behind the end. */
	exact = malloc(len);
	tail = malloc(len - cut + 1);
	memcpy(exact, data + 1, len);
	memcpy(exact + 6, sw->ports[port[i]].cfg.mac, 6);
	mend(exact, len);
	memcpy(tail, exact + cut, len - cut);
	m.buf_addr = exact;
	m.pkt_len = (uint32_t)len;
	m.data_len = (uint16_t)cut;
	m.nb_segs = cut < len ? 2 : 1;
	rest.buf_addr = tail;
	rest.data_len = (uint16_t)(len - cut);
	m.next = cut < len ? &rest : NULL;
	f.type = (uint16_t)(exact[12] << 8 | exact[13]);
	if (gw_sw_guard(sw, &sw->ports[port[i]], &m, &f) == 0)
		judge(i, exact, len);
	free(tail);
	free(exact);
	return 0;
}
