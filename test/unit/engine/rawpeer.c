/* SPDX-License-Identifier: BSD-3-Clause */
/* See rawpeer.h. */
#include "rawpeer.h"

#include <string.h>

#include <criterion/criterion.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/wire/wire.h"

#define FRAMES 4096
#define ISN    0xfffff000u /* so that the sequence numbers wrap */
#define WINDOW 65535

static struct rte_ring *
ring(const char *name)
{
	struct rte_ring *r =
		rte_ring_create(name, FRAMES, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);

	cr_assert_not_null(r);
	return r;
}

void
raw_switch_init(struct raw_switch *sw)
{
	static const uint8_t mac[6] = {0x02, 0, 0, 0, 0, 0x66};
	static const char *const names[2][3] = {
		{"victim", "victim_out", "victim_in"}, {"neighbour", "neighb_out", "neighb_in"}};

	memset(sw, 0, sizeof(*sw));
	for (int i = 0; i < 2; i++) {
		int port;

		sw->out[i] = ring(names[i][1]);
		sw->in[i] = ring(names[i][2]);
		port = rte_eth_from_rings(names[i][0], &sw->in[i], 1, &sw->out[i], 1, 0);
		cr_assert_geq(port, 0);
		sw->port[i] = (uint16_t)port;
	}
	sw->pool = rte_pktmbuf_pool_create(
		"raw_peer", 2047, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	cr_assert_not_null(sw->pool);
	memcpy(sw->mac, mac, sizeof(mac));
	sw->next_port = 20000;
}

/* ---- Sending frames ---- */

static uint8_t *
frame(struct raw_switch *sw, struct rte_mbuf **m, uint16_t type)
{
	struct wire_eth eth = {.type = type, .vlan = ETH_NO_VLAN};
	uint8_t *p;

	*m = rte_pktmbuf_alloc(sw->pool);
	cr_assert_not_null(*m);
	p = rte_pktmbuf_mtod(*m, uint8_t *);
	memcpy(eth.dst, sw->victim_mac, 6);
	memcpy(eth.src, sw->mac, 6);
	return p + wire_eth_emit(p, &eth);
}

static void
to_victim(struct raw_switch *sw, struct rte_mbuf *m, const uint8_t *end)
{
	m->pkt_len = m->data_len = (uint16_t)(end - rte_pktmbuf_mtod(m, uint8_t *));
	cr_assert_eq(rte_ring_enqueue(sw->in[0], m), 0);
}

static void
segment(struct raw_conn *c, uint8_t flags, const uint8_t *data, uint32_t len)
{
	struct raw_switch *sw = c->sw;
	struct wire_tcp tcp = {.sport = c->lport,
		.dport = c->rport,
		.seq = c->snd_nxt,
		.ack = c->rcv_nxt,
		.flags = flags,
		.window = WINDOW,
		.wscale = TCP_NO_WSCALE,
		.mss = flags & TCP_SYN ? RAW_MSS : 0};
	struct wire_ip ip = {.src = sw->addr, .dst = sw->victim, .proto = IP_TCP, .ttl = 64};
	struct rte_mbuf *m;
	uint8_t *l4 = frame(sw, &m, ETH_IPV4) + IP4_LEN;
	uint32_t hdr = wire_tcp_emit(l4, &tcp);
	uint16_t sum;

	ip.payload_len = hdr + len;
	wire_ip_emit(l4 - IP4_LEN, &ip);
	if (len > 0)
		memcpy(l4 + hdr, data, len);
	sum = wire_sum_fold(
		wire_sum(wire_pseudo_sum(&ip.src, &ip.dst, IP_TCP, hdr + len), l4, hdr + len));
	memcpy(l4 + TCP_CKSUM_OFFSET, &sum, sizeof(sum));
	to_victim(sw, m, l4 + hdr + len);
	c->snd_nxt += len + ((flags & (TCP_SYN | TCP_FIN)) != 0);
}

static void
arp(struct raw_switch *sw, uint16_t op, const uint8_t *tha)
{
	struct wire_arp a = {.op = op, .spa = sw->addr, .tpa = sw->victim};
	struct rte_mbuf *m;
	uint8_t *p;

	memcpy(a.sha, sw->mac, 6);
	memcpy(a.tha, tha, 6);
	p = frame(sw, &m, ETH_ARP);
	to_victim(sw, m, p + wire_arp_emit(p, &a));
}

/* ---- Receiving frames ---- */

static void
tcp_in(struct raw_conn *c, const struct wire_pkt *pkt, const uint8_t *data)
{
	const struct wire_tcp *t = &pkt->tcp;
	uint32_t old = c->rcv_nxt - t->seq, len = pkt->payload_len;

	if (t->flags & TCP_RST) {
		c->rst = true;
		return;
	}
	if (t->flags & TCP_SYN) {
		if (!c->up)
			c->rcv_nxt = t->seq + 1;
		if (!(t->flags & TCP_ACK))
			segment(c, TCP_SYN | TCP_ACK, NULL, 0);
		else
			segment(c, TCP_ACK, NULL, 0);
		c->up = c->up || (t->flags & TCP_ACK);
		return;
	}
	c->up = true;
	if (len == 0 && !(t->flags & TCP_FIN))
		return;
	if ((int32_t)old < 0) /* after a gap: the victim sends it again */
		return;
	if (old < len && !c->fin_in) {
		cr_assert_leq(c->got + len - old, RAW_STREAM);
		memcpy(c->stream + c->got, data + old, len - old);
		c->got += len - old;
		c->rcv_nxt += len - old;
	}
	if ((t->flags & TCP_FIN) && !c->fin_in) {
		c->fin_in = true;
		c->rcv_nxt++;
	}
	segment(c, TCP_ACK, NULL, 0);
}

static void
peer_in(struct raw_switch *sw, struct rte_mbuf *m)
{
	uint8_t buf[2048];
	const uint8_t *p = rte_pktmbuf_read(m, 0, m->pkt_len, buf);
	struct wire_pkt pkt;

	cr_assert(p && wire_pkt_parse(&pkt, p, m->pkt_len, m->pkt_len) == 0);
	if (pkt.eth.type == ETH_ARP) {
		memcpy(sw->victim_mac, pkt.arp.sha, 6);
		if (pkt.arp.op == ARP_REQUEST && sk_addr_eq(&pkt.arp.tpa, &sw->addr))
			arp(sw, ARP_REPLY, pkt.arp.sha);
		return;
	}
	if (pkt.eth.type != ETH_IPV4 || pkt.ip.proto != IP_TCP)
		return;
	if ((pkt.tcp.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN && sw->accepting != NULL &&
		pkt.tcp.dport == sw->listen_port) {
		sw->accepting->lport = pkt.tcp.dport;
		sw->accepting->rport = pkt.tcp.sport;
		sw->accepting = NULL;
	}
	for (struct raw_conn *c = sw->conns; c != NULL; c = c->next)
		if (c->lport == pkt.tcp.dport && c->rport == pkt.tcp.sport)
			tcp_in(c, &pkt, p + pkt.payload);
}

/* Forwards a frame by its destination to the peer, to the other engine, or to both (broadcast). */
static void
forward(struct raw_switch *sw, int from, struct rte_mbuf *m)
{
	const uint8_t *dst = rte_pktmbuf_mtod(m, const uint8_t *);
	bool all = dst[0] & 1;

	if (from == 0 && (all || memcmp(dst, sw->mac, 6) == 0))
		peer_in(sw, m);
	if (!all && memcmp(dst, sw->mac, 6) == 0)
		rte_pktmbuf_free(m);
	else if (rte_ring_enqueue(sw->in[!from], m) != 0)
		rte_pktmbuf_free(m);
}

void
raw_switch_turn(struct raw_switch *sw)
{
	void *m;

	for (int i = 0; i < 2; i++)
		while (rte_ring_dequeue(sw->out[i], &m) == 0)
			forward(sw, i, m);
}

void
raw_switch_greet(struct raw_switch *sw)
{
	static const uint8_t nobody[6];
	struct rte_ether_addr mac;

	cr_assert_eq(rte_eth_macaddr_get(sw->port[0], &mac), 0);
	memcpy(sw->victim_mac, mac.addr_bytes, 6);
	arp(sw, ARP_REQUEST, nobody);
}

void
raw_switch_fini(struct raw_switch *sw)
{
	void *m;

	raw_switch_turn(sw);
	for (int i = 0; i < 2; i++)
		while (rte_ring_dequeue(sw->in[i], &m) == 0)
			rte_pktmbuf_free(m);
	cr_assert_eq(rte_mempool_in_use_count(sw->pool), 0, "the peer's mbufs are still out");
}

/* ---- Functions for tests ---- */

static void
conn_init(struct raw_switch *sw, struct raw_conn *c)
{
	memset(c, 0, offsetof(struct raw_conn, stream));
	c->sw = sw;
	c->snd_nxt = ISN;
	c->next = sw->conns;
	sw->conns = c;
}

void
raw_connect(struct raw_switch *sw, struct raw_conn *c, uint16_t port)
{
	conn_init(sw, c);
	c->lport = sw->next_port++;
	c->rport = port;
	segment(c, TCP_SYN, NULL, 0);
}

void
raw_accept(struct raw_switch *sw, struct raw_conn *c, uint16_t port)
{
	conn_init(sw, c);
	sw->listen_port = port;
	sw->accepting = c;
}

void
raw_send(struct raw_conn *c, const void *data, size_t len, size_t seg)
{
	const uint8_t *p = data;

	cr_assert(c->up && !c->fin_out);
	seg = SK_MIN(seg, (size_t)RAW_MSS);
	for (; len > 0; p += seg, len -= seg) {
		seg = SK_MIN(seg, len);
		segment(c, TCP_ACK | TCP_PSH, p, (uint32_t)seg);
	}
}

void
raw_fin(struct raw_conn *c)
{
	c->fin_out = true;
	segment(c, TCP_ACK | TCP_FIN, NULL, 0);
}

void
raw_reset(struct raw_conn *c)
{
	segment(c, TCP_ACK | TCP_RST, NULL, 0);
}

void
raw_forget(struct raw_conn *c)
{
	struct raw_conn **at = &c->sw->conns;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
}
