/* SPDX-License-Identifier: BSD-3-Clause */
/* Received frames: parsing, checks, and delivery to the net stack, to TCP or to a transport. */
#include <errno.h>
#include <string.h>

#include "handoff_priv.h"
#include "link.h"

bool
eng_rx_l4_intact(struct eng_transport *t, const struct rte_mbuf *m, uint32_t l4, uint32_t len,
	uint32_t pseudo, enum wire_reason wrong)
{
	switch (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) {
	case RTE_MBUF_F_RX_L4_CKSUM_GOOD:
	case RTE_MBUF_F_RX_L4_CKSUM_NONE: /* a virtual port: the frame has not left memory */
		sk_count(t->counters, ENG_RX_CKSUM);
		return true;
	case RTE_MBUF_F_RX_L4_CKSUM_BAD:
		sk_count(t->counters, ENG_RX_OFFLOAD_BAD);
		return false;
	}
	if (wire_sum_fold(eng_mbuf_sum(pseudo, m, l4, len)) == 0)
		return true;
	sk_count(t->wire_counters, wrong);
	return false;
}

/* Checks that a segment is addressed to this stage. A segment of an existing connection that was
 * sent to the port's MAC address needs no further check. */
static bool
accept_tcp(struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt,
	const struct tcp_conn *conn)
{
	if (conn != NULL && port != t->loop_port &&
		memcmp(pkt->eth.dst, t->e->ports[port].mac, sizeof(pkt->eth.dst)) == 0)
		return true;
	return net_accept(t->net, port, pkt) == 0;
}

/* Checks the TCP checksum. Frames on the loop port are not checked: they have not left memory. */
static bool
intact(struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt, const struct rte_mbuf *m,
	const struct tcp_tuple *key, const struct tcp_conn *conn)
{
	const struct eng_conn *c = conn == NULL ? NULL : tcp_user(conn);
	uint16_t addr_sum = c == NULL ? eng_addr_sum(key, IP_TCP) : c->addr_sum;

	if (port == t->loop_port ||
		eng_rx_l4_intact(t, m, pkt->l4, pkt->ip.payload_len,
			eng_pseudo_sum(addr_sum, pkt->ip.payload_len), WIRE_TCP_CHECKSUM))
		return true;
	sk_count(t->counters, ENG_RX_BAD);
	return false;
}

static void
rx_tcp(struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt, struct rte_mbuf *m)
{
	struct tcp_tuple key = {.laddr = pkt->ip.dst,
		.raddr = pkt->ip.src,
		.lport = pkt->tcp.dport,
		.rport = pkt->tcp.sport,
		.vlan = pkt->eth.vlan,
		.port = port};
	struct tcp_slice *slices;
	struct eng_listener *l;
	struct tcp_conn *conn;
	uint32_t mtu;

	conn = eng_conn_find(t, &key);
	if (!accept_tcp(t, port, pkt, conn))
		goto drop;
	if (conn == NULL && t->handoff != NULL && eng_handoff_tcp(t, port, &key, m))
		return;
	if (!intact(t, port, pkt, m, &key, conn))
		goto drop;
	slices = eng_slices(m, pkt->payload, pkt->payload_len);
	t->tcp_work = true;
	if (conn != NULL) {
		tcp_input(conn, t->now, &pkt->tcp, slices, pkt->ip.ecn);
		return;
	}
	l = eng_listener_find(t, &key.laddr, key.lport);
	if (l == NULL) {
		tcp_orphan_input(t->tcp, t->now, &key, &pkt->tcp, slices);
		return;
	}
	mtu = t->e->ports[port == t->loop_port ? 0 : port].mtu;
	tcp_listen_input(l->tcp, t->now, &key, mtu, &pkt->tcp, slices, pkt->ip.ecn);
	return;
drop:
	rte_pktmbuf_free(m);
}

/* Passes a datagram to the transport whose UDP port it is addressed to. Returns false when there is
 * none; the caller then keeps the frame. */
static bool
rx_udp(struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt, struct rte_mbuf *m)
{
	for (unsigned k = 0; k < t->npacket_links; k++) {
		if (t->packet_links[k]->udp_port != pkt->udp.dport)
			continue;
		t->packet_links[k]->rx(t, port, pkt, m);
		return true;
	}
	return false;
}

void
eng_rx_frame(struct eng_transport *t, uint16_t port, struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct wire_pkt pkt;
	int rc = wire_pkt_parse(&pkt, frame, m->data_len, m->pkt_len);

	if (rc < 0) {
		sk_count(t->wire_counters, (unsigned)-rc);
		sk_count(t->counters, ENG_RX_BAD);
	} else if (pkt.eth.type == ETH_ARP || pkt.ip.proto == IP_ICMP || pkt.ip.proto == IP_ICMP6) {
		rc = net_input(t->net, t->now, port, &pkt, frame, m->data_len);
		t->net_due = 0;
		if (t->handoff != NULL)
			eng_handoff_copy(t, port, &pkt, rc, m);
	} else if (pkt.ip.proto == IP_TCP) {
		rx_tcp(t, port, &pkt, m);
		return;
	} else if (pkt.ip.proto == IP_UDP && rx_udp(t, port, &pkt, m)) {
		return;
	} else if (net_accept(t->net, port, &pkt) == 0) {
		sk_count(t->wire_counters, WIRE_IP_PROTOCOL);
	}
	rte_pktmbuf_free(m);
}

void
eng_icmp_error(void *ctx, uint16_t port, uint16_t vlan, const struct wire_icmp *icmp)
{
	struct eng_transport *t = ctx;
	const struct wire_quote *q = &icmp->quote;
	struct tcp_tuple key = {.laddr = q->src,
		.raddr = q->dst,
		.lport = q->sport,
		.rport = q->dport,
		.vlan = vlan,
		.port = port};
	struct tcp_conn *conn;

	if (icmp->kind != ICMP_TOO_BIG || q->proto != IP_TCP)
		return;
	conn = eng_conn_find(t, &key);
	if (conn == NULL)
		return;
	tcp_icmp_mtu(conn, t->now, q->seq, icmp->mtu);
	t->tcp_work = true;
}
