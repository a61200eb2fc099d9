/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks the addresses that a machine's frames claim: source addresses of IP packets, addresses in
 * ARP and neighbour discovery (RFC 826, RFC 4861), and that the machine does not claim to be a
 * router (RFC 6105). The switch checks the frames of engines like those of cards, although Saker
 * builds the former and the guest controls every byte of the latter. The switch learns no address
 * from frames: the configuration of the machines defines which port has which address.
 */
#include <string.h>

#include "../../lib/base/mem.h"
#include "../../lib/wire/falcon.h"
#include "switch_priv.h"

#define HEAD_MAX   256 /* bytes behind the Ethernet header that are checked */
#define IP6_CHAIN  8   /* extension headers at most */
#define IP6_UNIT   8
#define DHCP_SERVE 67

#define IP6_HOP_BY_HOP  0
#define IP6_ROUTING     43
#define IP6_FRAGMENT    44
#define IP6_DESTINATION 60

enum nd_type { /* RFC 4861, RFC 3810 */
	MLD_REPORT = 131,
	MLD_DONE = 132,
	ND_ROUTER_SOLICIT = 133,
	ND_ROUTER_ADVERT = 134,
	ND_SOLICIT = 135,
	ND_ADVERT = 136,
	ND_REDIRECT = 137,
	MLD2_REPORT = 143,
};

#define ND_OPT_SOURCE 1
#define ND_OPT_TARGET 2

/* The first bytes behind the Ethernet header. */
struct packet {
	const uint8_t *p;
	uint32_t len;
};

static inline uint16_t
word(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* ---- Addresses and the ports that have them ---- */

static bool
guard_has(const struct gw_sw_port *p, const struct sk_addr *a, uint16_t vlan)
{
	/* The number is read first: with a new number, the array is new, too. An old number may
	 * meet a new array, which gw_switch_claim() allows. */
	const uint32_t n = __atomic_load_n(&p->nclaims, __ATOMIC_ACQUIRE);
	const struct gw_claim *claims = __atomic_load_n(&p->cfg.claims, __ATOMIC_ACQUIRE);

	if (p->cfg.kind == GW_WIRE)
		return false;
	if (sk_addr_eq(&p->ll, a) && (p->cfg.vlan == vlan || p->cfg.tenant == GW_HOST))
		return true;
	for (uint32_t i = 0; i < n; i++)
		if (sk_addr_eq(&claims[i].addr, a) && claims[i].vlan == vlan)
			return true;
	return false;
}

bool
gw_switch_claimed(const struct gw_switch *sw, const struct sk_addr *addr, uint16_t vlan)
{
	for (uint32_t i = 0; i < __atomic_load_n(&sw->last, __ATOMIC_ACQUIRE); i++)
		if (gw_sw_in_use(&sw->ports[i]) && guard_has(&sw->ports[i], addr, vlan))
			return true;
	return false;
}

/* Returns whether an address can be that of one host. */
static bool
is_host(const struct sk_addr *a)
{
	static const uint8_t zero[15];

	if (sk_addr_is_v4(a))
		return a->b[12] != 0 && a->b[12] != 127 && a->b[12] < 224;
	return a->b[0] != 0xff && (memcmp(a->b, zero, sizeof(zero)) != 0 || a->b[15] > 1);
}

/* Returns whether a card may use an address because no port claims it. This applies to the
 * addresses that the guest chooses: all if the card has no claims, else link-local ones. The port
 * caches one positive result, because a card sends from few addresses. */
static bool
is_free(struct gw_switch *sw, struct gw_sw_port *from, const struct sk_addr *a)
{
	const uint32_t claims = __atomic_load_n(&sw->claims, __ATOMIC_ACQUIRE);

	if (from->free_at == claims && sk_addr_eq(&from->free, a))
		return true;
	if (!is_host(a) || gw_switch_claimed(sw, a, from->cfg.vlan))
		return false;
	from->free = *a;
	from->free_at = claims;
	return true;
}

static bool
guard_is_own(struct gw_switch *sw, struct gw_sw_port *from, const struct sk_addr *a)
{
	if (guard_has(from, a, from->cfg.vlan))
		return true;
	return from->cfg.kind == GW_NIC && (from->nclaims == 0 || sk_is_link_local(a)) &&
	       is_free(sw, from, a);
}

/* ---- ARP ---- */

static int
guard_arp(struct gw_switch *sw, struct gw_sw_port *from, const struct packet *k)
{
	struct wire_arp arp;

	if (wire_arp_parse(&arp, k->p, k->len) < 0 ||
		memcmp(arp.sha, from->cfg.mac, sizeof(arp.sha)) != 0)
		return -GW_SPOOFED_ARP;
	/* An ARP probe for a free address has no sender address yet (RFC 5227). */
	return sk_addr_is_any(&arp.spa) || guard_is_own(sw, from, &arp.spa) ? 0 : -GW_SPOOFED_ARP;
}

/* ---- IPv4 ---- */

/* Returns whether a packet is a Falcon packet from the tunnel's address, which only an engine may
 * send. */
static bool
is_tunneled(const struct gw_sw_port *from, const struct sk_addr *src, uint8_t proto,
	const struct packet *l4)
{
	return !sk_addr_is_any(src) && sk_addr_eq(&from->cfg.tunnel, src) && proto == IP_UDP &&
	       l4->len >= UDP_LEN && word(l4->p + 2) == PSP_UDP_PORT;
}

static int
guard_ip4(struct gw_switch *sw, struct gw_sw_port *from, const struct packet *k)
{
	uint32_t head = k->len == 0 ? 0 : (k->p[0] & 0x0fu) * 4;
	struct packet l4 = {k->p + head, k->len - head};
	struct sk_addr src;
	uint8_t proto;

	if (k->len < IP4_LEN || head < IP4_LEN || head > k->len || k->p[0] >> 4 != 4)
		return -GW_SHORT;
	src = sk_addr_v4(k->p + 12);
	proto = k->p[9];
	if (guard_is_own(sw, from, &src) || is_tunneled(from, &src, proto, &l4))
		return 0;
	if (from->cfg.kind == GW_NIC && memcmp(k->p + 12, "\0\0\0", 4) == 0 && proto == IP_UDP &&
		l4.len >= UDP_LEN && word(l4.p + 2) == DHCP_SERVE)
		return 0;
	return -GW_SPOOFED_IP;
}

/* ---- IPv6 ---- */

/* Skips the extension headers. Returns the protocol behind them with its bytes in *l4,
 * IP6_FRAGMENT for a later fragment, which has no protocol header, or -reason. */
static int
ip6_upper(const struct packet *k, struct packet *l4, bool *fragment)
{
	uint32_t at = IP6_LEN, next = k->p[6], n;

	*fragment = false;
	for (n = 0; n < IP6_CHAIN; n++) {
		*l4 = (struct packet){k->p + at, k->len - at};
		if (next != IP6_HOP_BY_HOP && next != IP6_ROUTING && next != IP6_FRAGMENT &&
			next != IP6_DESTINATION)
			return (int)next;
		if (l4->len < IP6_UNIT)
			return -GW_SHORT;
		if (next == IP6_FRAGMENT) {
			*fragment = true;
			if ((word(l4->p + 2) & 0xfff8) != 0)
				return IP6_FRAGMENT;
		}
		at += next == IP6_FRAGMENT ? IP6_UNIT : (l4->p[1] + 1u) * IP6_UNIT;
		if (at > k->len)
			return -GW_SHORT;
		next = l4->p[0];
	}
	return -GW_SHORT;
}

/* Checks that the link-layer addresses in a message's options are the machine's own. */
static bool
guard_nd_options(const struct gw_sw_port *from, const struct packet *l4, uint32_t at)
{
	while (at < l4->len) {
		const uint8_t *o = l4->p + at;

		if (l4->len - at < IP6_UNIT || o[1] == 0 || o[1] * IP6_UNIT > l4->len - at)
			return false;
		if ((o[0] == ND_OPT_SOURCE || o[0] == ND_OPT_TARGET) &&
			memcmp(o + 2, from->cfg.mac, sizeof(from->cfg.mac)) != 0)
			return false;
		at += o[1] * IP6_UNIT;
	}
	return true;
}

static int
guard_nd(struct gw_switch *sw, struct gw_sw_port *from, const struct packet *l4, bool whole)
{
	struct sk_addr target;
	uint32_t options = 8;
	uint8_t type;

	if (l4->len < 4)
		return -GW_SHORT;
	type = l4->p[0];
	if (type < ND_ROUTER_SOLICIT || type > ND_REDIRECT)
		return 0;
	/* RFC 6980: neighbour discovery never uses fragments. A message longer than HEAD_MAX would
	 * not be checked to its end. */
	if (!whole || type == ND_ROUTER_ADVERT || type == ND_REDIRECT)
		return -GW_SPOOFED_ND;
	if (type != ND_ROUTER_SOLICIT) {
		options = 24;
		if (l4->len < options)
			return -GW_SHORT;
		memcpy(target.b, l4->p + 8, sizeof(target.b));
		if (type == ND_ADVERT && !guard_is_own(sw, from, &target))
			return -GW_SPOOFED_ND;
	}
	return guard_nd_options(from, l4, options) ? 0 : -GW_SPOOFED_ND;
}

/* Returns whether an ICMPv6 message may have the unspecified source address. */
static bool
guard_may_be_unspecified(const struct packet *l4)
{
	switch (l4->len < 4 ? 0 : l4->p[0]) {
	case MLD_REPORT:
	case MLD_DONE:
	case ND_ROUTER_SOLICIT:
	case ND_SOLICIT:
	case MLD2_REPORT:
		return true;
	default:
		return false;
	}
}

static int
guard_ip6(struct gw_switch *sw, struct gw_sw_port *from, const struct packet *k)
{
	struct packet whole = *k, l4;
	bool fragment, longer;
	struct sk_addr src;
	int proto;

	if (k->len < IP6_LEN || k->p[0] >> 4 != 6)
		return -GW_SHORT;
	whole.len = IP6_LEN + (uint32_t)word(k->p + 4);
	longer = whole.len > k->len;
	whole.len = SK_MIN(k->len, whole.len);
	proto = ip6_upper(&whole, &l4, &fragment);
	if (proto < 0)
		return proto;
	memcpy(src.b, k->p + 8, sizeof(src.b));
	/* An IPv4-mapped address in an IPv6 header belongs to no host. */
	if (sk_addr_is_v4(&src))
		return -GW_SPOOFED_IP;
	if (!guard_is_own(sw, from, &src) && !is_tunneled(from, &src, (uint8_t)proto, &l4) &&
		!(sk_addr_is_any(&src) && proto == IP_ICMP6 && guard_may_be_unspecified(&l4)))
		return -GW_SPOOFED_IP;
	return proto == IP_ICMP6 ? guard_nd(sw, from, &l4, !fragment && !longer) : 0;
}

int
gw_sw_guard(struct gw_switch *sw, struct gw_sw_port *from, const struct rte_mbuf *m,
	const struct gw_sw_frame *f)
{
	uint8_t copy[HEAD_MAX];
	struct packet k = {.len = SK_MIN(m->pkt_len - f->l3, (uint32_t)HEAD_MAX)};

	k.p = rte_pktmbuf_read(m, f->l3, k.len, copy);
	switch (f->type) {
	case ETH_IPV4:
		return guard_ip4(sw, from, &k);
	case ETH_IPV6:
		return guard_ip6(sw, from, &k);
	case ETH_ARP:
		return guard_arp(sw, from, &k);
	default:
		return -GW_ETHERTYPE;
	}
}
