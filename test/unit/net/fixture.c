/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"

struct recorder rec;
struct net_stack *net;
const uint8_t my_mac[6] = {0x02, 0, 0, 0, 0, 0x01};
const uint8_t peer_mac[6] = {0x02, 0, 0, 0, 0, 0x02};
const uint8_t other_mac[6] = {0x02, 0, 0, 0, 0, 0x03};
const uint8_t broadcast_mac[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static void
rec_send(void *ctx, uint16_t port, const uint8_t *frame, size_t len)
{
	struct sent *s = &rec.sent[rec.nsent++ % 64];

	s->port = port;
	s->len = len;
	cr_assert_leq(len, sizeof(s->frame));
	memcpy(s->frame, frame, len);
	cr_assert_eq(wire_pkt_parse(&s->pkt, frame, len, len), 0);
}

static void
rec_release(void *ctx, uint16_t port, void *frame, const uint8_t *dst_mac)
{
	struct released *r = &rec.released[rec.nreleased++ % 64];

	r->port = port;
	r->frame = frame;
	r->dropped = dst_mac == NULL;
	if (dst_mac != NULL)
		memcpy(r->mac, dst_mac, 6);
}

static void
rec_error(void *ctx, uint16_t port, uint16_t vlan, const struct wire_icmp *icmp)
{
	rec.nerrors++;
	rec.error = *icmp;
	rec.error_vlan = vlan;
}

void
net_fixture(void)
{
	static const struct net_ops ops = {rec_send, rec_release, rec_error};
	struct sk_addr v4 = addr("192.0.2.1"), v6 = addr("2001:db8::1");

	net = net_create(&ops, NULL, 0);
	cr_assert_not_null(net);
	cr_assert_eq(net_if_add(net, 3, ETH_NO_VLAN, my_mac, 1500), 0);
	cr_assert_eq(net_addr_add(net, 0, &v4, 24, 0), 0);
	cr_assert_eq(net_addr_add(net, 0, &v6, 64, 0), 0);
	memset(&rec, 0, sizeof(rec));
}

void
net_fixture_end(void)
{
	net_destroy(net);
}

uint64_t
counted(unsigned reason)
{
	return net_counters(net)[reason];
}

const struct sent *
last_sent(void)
{
	cr_assert_gt(rec.nsent, 0);
	return &rec.sent[(rec.nsent - 1) % 64];
}

int
in_arp(uint64_t now, uint16_t op, const uint8_t mac[6], const char *spa, const char *tpa,
	const uint8_t *eth_dst)
{
	struct wire_pkt pkt = {.eth = {.type = ETH_ARP, .vlan = ETH_NO_VLAN}};

	memcpy(pkt.eth.src, mac, 6);
	memcpy(pkt.eth.dst, eth_dst, 6);
	pkt.arp.op = op;
	pkt.arp.spa = addr(spa);
	pkt.arp.tpa = addr(tpa);
	memcpy(pkt.arp.sha, mac, 6);
	if (op == ARP_REPLY)
		memcpy(pkt.arp.tha, my_mac, 6);
	return in_pkt(now, &pkt);
}

struct wire_pkt
nd_pkt(enum wire_icmp_kind kind, const uint8_t mac[6], const char *src, const char *dst,
	const char *target)
{
	struct wire_pkt pkt = {.eth = {.type = ETH_IPV6, .vlan = ETH_NO_VLAN}};

	pkt.ip.src = addr(src);
	pkt.ip.dst = addr(dst);
	pkt.ip.proto = IP_ICMP6;
	pkt.ip.ttl = 255;
	pkt.ip.payload_len = ICMP_ND_LEN;
	pkt.icmp.kind = kind;
	pkt.icmp.target = addr(target);
	pkt.icmp.has_lladdr = true;
	memcpy(pkt.icmp.lladdr, mac, 6);
	memcpy(pkt.eth.src, mac, 6);
	if (sk_addr_is_multicast(&pkt.ip.dst)) {
		pkt.eth.dst[0] = pkt.eth.dst[1] = 0x33;
		memcpy(pkt.eth.dst + 2, pkt.ip.dst.b + 12, 4);
	} else {
		memcpy(pkt.eth.dst, my_mac, 6);
	}
	return pkt;
}

int
in_pkt(uint64_t now, const struct wire_pkt *pkt)
{
	static const uint8_t none[1];

	return net_input(net, now, 3, pkt, none, 0);
}

void
path_to(struct net_path *p, const char *dst)
{
	struct sk_addr src = {{0}}, to = addr(dst);

	cr_assert_eq(net_path_init(net, p, &src, &to, IP_TCP, 0), 0, "%s", dst);
}

void
path_resolved(struct net_path *p, const char *dst, uint64_t now)
{
	struct wire_pkt na;

	path_to(p, dst);
	cr_assert_eq(net_path_check(net, p, now), 1);
	if (strchr(dst, ':') != NULL) {
		na = nd_pkt(ICMP_NEIGHBOR_ADVERT, peer_mac, dst, "2001:db8::1", dst);
		na.icmp.solicited = na.icmp.override = true;
		cr_assert_eq(in_pkt(now, &na), 0);
	} else {
		cr_assert_eq(in_arp(now, ARP_REPLY, peer_mac, dst, "192.0.2.1", my_mac), 0);
	}
	cr_assert_eq(net_path_check(net, p, now), 0);
}

const char *
state_of(const char *text, uint8_t mac[6])
{
	static struct net_neighbor_view all[NET_MAX_NEIGHBORS];
	unsigned n = net_neighbors(net, all, NET_MAX_NEIGHBORS);
	struct sk_addr wanted = addr(text);

	for (unsigned i = 0; i < n; i++) {
		if (!sk_addr_eq(&all[i].addr, &wanted))
			continue;
		if (mac != NULL)
			memcpy(mac, all[i].mac, 6);
		return all[i].state;
	}
	return "absent";
}
