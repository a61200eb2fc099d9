/* SPDX-License-Identifier: BSD-3-Clause */
/* Received frames: parsing, checks, and delivery to the net stack, to TCP or to a transport. */
#include <errno.h>
#include <string.h>

#include "../../base/check.h"
#include "handoff_priv.h"
#include "link.h"

#define CRC_FIELD 4u   /* bytes at the end of a payload that its CRC does not include (RFC 5044) */
#define CRC_FROM  256u /* bytes of a payload from which one pass instead of two saves time */

/* Returns whether the checksum of the `len` bytes from `l4` on is correct, with the sum of the
 * pseudo-header, which is not 0. */
static inline bool
sum_good(const struct rte_mbuf *m, uint32_t l4, uint32_t len, uint32_t pseudo)
{
	if (m->nb_segs > 1 || l4 + len > m->data_len)
		return wire_sum_fold(eng_mbuf_sum(pseudo, m, l4, len)) == 0;
	return sk_sum_fold(sk_sum(pseudo, rte_pktmbuf_mtod_offset(m, const void *, l4), len)) ==
	       0xffff;
}

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
	if (sum_good(m, l4, len, pseudo))
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

/* Where the TCP segment lies in a frame: the offset of its header, and the payload. */
struct tcp_at {
	uint32_t l4, payload, payload_len;
};

/* Returns the payload if the engine stage uses its CRC, if it lies in one piece, and if this stage
 * has to compute the checksum of the same bytes. Otherwise returns NULL. */
static const uint8_t *
crc_payload(const struct eng_conn *c, const struct tcp_at *at, const struct rte_mbuf *m)
{
	uint32_t off = at->payload, len = at->payload_len;

	if (c == NULL || !c->whole || len < CRC_FROM || len % 4 != 0 ||
		(m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) != RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN)
		return NULL;
	while (m != NULL && off >= m->data_len) {
		off -= m->data_len;
		m = m->next;
	}
	if (m == NULL || len > m->data_len - off)
		return NULL;
	return rte_pktmbuf_mtod_offset(m, const uint8_t *, off);
}

/* Checks the TCP checksum and computes, in the same pass, the CRC of the payload at `p` without its
 * last 4 bytes. */
static bool
intact_with_crc(struct eng_transport *t, const struct rte_mbuf *m, const struct tcp_at *at,
	uint32_t pseudo, const uint8_t *p, uint32_t *crc)
{
	const uint8_t *tcp = rte_pktmbuf_mtod_offset(m, const uint8_t *, at->l4);
	uint32_t len = at->payload_len - CRC_FIELD;
	struct sk_check c = SK_CHECK_INIT;

	c = sk_check(c, p, len);
	*crc = (uint32_t)c.crc;
	c.sum = sk_sum(sk_sum(c.sum, p + len, CRC_FIELD), tcp, at->payload - at->l4);
	if (sk_sum_fold(sk_sum_add(c.sum, pseudo)) == 0xffff)
		return true;
	sk_count(t->wire_counters, WIRE_TCP_CHECKSUM);
	return false;
}

/* Checks the TCP checksum, with the result of eng_addr_sum(), and returns the payload in *slices.
 * The slice of a payload that crc_payload() accepts has a CRC. `c` is the connection or NULL. Takes
 * the frame if it is intact; otherwise counts it and returns false. */
static bool
intact_slices(struct eng_transport *t, const struct eng_conn *c, uint16_t addr_sum,
	struct rte_mbuf *m, const struct tcp_at *at, struct tcp_slice **slices)
{
	uint32_t len = at->payload - at->l4 + at->payload_len, crc;
	uint32_t pseudo = eng_pseudo_sum(addr_sum, len);
	const uint8_t *p = crc_payload(c, at, m);

	if (p == NULL ? !eng_rx_l4_intact(t, m, at->l4, len, pseudo, WIRE_TCP_CHECKSUM)
		      : !intact_with_crc(t, m, at, pseudo, p, &crc)) {
		sk_count(t->counters, ENG_RX_BAD);
		return false;
	}
	*slices = eng_slices(m, at->payload, at->payload_len);
	if (p != NULL) {
		(*slices)->crc = crc;
		(*slices)->crc_len = at->payload_len - CRC_FIELD;
	}
	return true;
}

/* Does the same for a frame on any port. Frames on the loop port are not checked: they have not
 * left memory. */
static bool
intact(struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt, struct rte_mbuf *m,
	const struct tcp_tuple *key, const struct tcp_conn *conn, struct tcp_slice **slices)
{
	const struct tcp_at at = {pkt->l4, pkt->payload, pkt->payload_len};
	const struct eng_conn *c = conn == NULL ? NULL : tcp_user(conn);
	uint16_t addr_sum = c == NULL ? eng_addr_sum(key, IP_TCP) : c->addr_sum;

	if (port != t->loop_port)
		return intact_slices(t, c, addr_sum, m, &at, slices);
	*slices = eng_slices(m, pkt->payload, pkt->payload_len);
	return true;
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
	struct eng_listener *l = NULL;
	struct tcp_slice *slices;
	struct tcp_conn *conn;
	uint32_t mtu;

	conn = eng_conn_find(t, &key);
	if (!accept_tcp(t, port, pkt, conn))
		goto drop;
	if (conn == NULL && t->handoff != NULL && eng_handoff_tcp(t, port, &key, m))
		return;
	if (!intact(t, port, pkt, m, &key, conn, &slices))
		goto drop;
	if (conn == NULL || pkt->tcp.flags & TCP_SYN)
		l = eng_listener_find(t, &key.laddr, key.lport);
	if (conn != NULL && (l == NULL || !tcp_reopen(conn, t->now, &pkt->tcp))) {
		tcp_input(conn, t->now, &pkt->tcp, slices, pkt->ip.ecn);
		return;
	}
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

/*
 * Handles a plain segment of a connection that was looked up recently, with the checks of the
 * general path and nothing else: this path parses no header of which it does not use a field. Takes
 * the frame. Returns false, and changes nothing, when the general path must handle it.
 */
static inline bool
rx_plain(struct eng_transport *t, uint16_t port, struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct eng_conn *c;
	struct tcp_slice *slices;
	struct tcp_conn *conn;
	struct wire_plain p;
	struct tcp_at at;

	if (!wire_plain_match(&p, frame, m->data_len))
		return false;
	conn = eng_conn_known(t, port, &p);
	if (conn == NULL ||
		memcmp(frame, t->e->ports[port].mac, sizeof(t->e->ports[port].mac)) != 0 ||
		(c = tcp_user(conn)) == NULL || t->e->cfg.general_tcp ||
		!wire_plain_parse(&p, frame, m->pkt_len))
		return false;
	at = (struct tcp_at){PLAIN_L4, PLAIN_LEN, p.payload_len};
	if (intact_slices(t, c, c->addr_sum, m, &at, &slices))
		tcp_input(conn, t->now, &p.tcp, slices, p.ecn);
	else
		rte_pktmbuf_free(m);
	return true;
}

/* Handles any frame. Takes it. */
static void
rx_general(struct eng_transport *t, uint16_t port, struct rte_mbuf *m)
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
eng_rx_frame(struct eng_transport *t, uint16_t port, struct rte_mbuf *m)
{
	if (!rx_plain(t, port, m))
		rx_general(t, port, m);
}

/* Returns whether the protocol or the port of a destination is unreachable: RFC 1122 3.2.2.1 codes
 * 2 and 3, RFC 4443 3.1 code 4. */
static bool
is_hard_error(const struct wire_icmp *icmp)
{
	if (sk_addr_is_v4(&icmp->quote.dst))
		return icmp->code == 2 || icmp->code == 3;
	return icmp->code == 4;
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

	conn = q->proto == IP_TCP ? eng_conn_find(t, &key) : NULL;
	if (conn == NULL)
		return;
	if (icmp->kind == ICMP_TOO_BIG)
		tcp_icmp_mtu(conn, t->now, q->seq, icmp->mtu);
	else
		tcp_icmp_unreachable(conn, t->now, q->seq, is_hard_error(icmp));
}
