/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The offloading NIC. It trusts no mbuf: the requirements of rte_mbuf_core.h on a sender (header
 * lengths, pseudo-header checksum, zeroed IPv4 checksum) are checked against the frame itself,
 * because real NICs send garbage instead of reporting an error.
 */
#include "impair_priv.h"

#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_net.h>
#include <rte_tcp.h>
#include <rte_thash.h>
#include <rte_udp.h>

#define ASKED                                                                                      \
	(RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_TCP_SEG |                  \
		RTE_MBUF_F_TX_UDP_SEG)
#define HEAD_MAX    (RTE_ETHER_HDR_LEN + 4 + 60 + 60)
#define TCP_FIN_PSH (RTE_TCP_FIN_FLAG | RTE_TCP_PSH_FLAG)

/* The default RSS key of most NICs, from Microsoft's verification suite for RSS. */
const uint8_t impair_nic_rss_key[IMPAIR_RSS_KEY_LEN] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e,
	0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b,
	0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe,
	0xac, 0x01, 0xfa};

static uint16_t
checksum_offset(const struct frame *f)
{
	return (uint16_t)(f->l2_len + f->l3_len +
			  (f->proto == IPPROTO_TCP ? offsetof(struct rte_tcp_hdr, cksum)
						   : offsetof(struct rte_udp_hdr, dgram_cksum)));
}

static bool
l3_fields_fit(const struct rte_mbuf *m, const struct frame *f, const uint8_t *head)
{
	uint64_t family = m->ol_flags & (RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6);
	const struct rte_ipv4_hdr *ip4 = (const void *)(head + f->l2_len);

	if (m->l2_len != f->l2_len || m->l3_len != f->l3_len)
		return false;
	if (family != (f->v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4))
		return false;
	if ((m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM) == 0)
		return true;
	return !f->v6 && ip4->hdr_checksum == 0;
}

static bool
l4_fields_fit(const struct rte_mbuf *m, const struct frame *f, const uint8_t *head)
{
	uint64_t l4 = m->ol_flags & RTE_MBUF_F_TX_L4_MASK;
	uint16_t pseudo, stored;

	if (l4 == 0)
		return true;
	if (l4 != (f->proto == IPPROTO_TCP ? RTE_MBUF_F_TX_TCP_CKSUM : RTE_MBUF_F_TX_UDP_CKSUM))
		return false;
	pseudo = f->v6 ? rte_ipv6_phdr_cksum((const void *)(head + f->l2_len), m->ol_flags)
		       : rte_ipv4_phdr_cksum((const void *)(head + f->l2_len), m->ol_flags);
	memcpy(&stored, head + checksum_offset(f), 2);
	return stored == pseudo;
}

static bool
tso_fields_fit(const struct rte_mbuf *m, const struct frame *f, uint16_t mtu)
{
	if (f->proto != IPPROTO_TCP || m->l4_len != f->l4_len || m->tso_segsz == 0)
		return false;
	if ((m->ol_flags & RTE_MBUF_F_TX_TCP_CKSUM) != RTE_MBUF_F_TX_TCP_CKSUM)
		return false;
	if (!f->v6 && (m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM) == 0)
		return false;
	return f->l3_len + f->l4_len + m->tso_segsz <= mtu;
}

unsigned
impair_nic_tx_check(const struct rte_mbuf *m, uint16_t mtu)
{
	uint32_t head_len, payload;
	uint8_t buf[HEAD_MAX];
	const uint8_t *head;
	const char *why;
	struct frame f;

	if (rte_mbuf_check(m, 1, &why) != 0)
		return 0;
	if ((m->ol_flags & ASKED) == 0)
		return 1;
	if ((m->ol_flags & RTE_MBUF_F_TX_UDP_SEG) != 0 || !impair_frame_find(m, &f))
		return 0;
	head_len = (uint32_t)f.l2_len + f.l3_len + f.l4_len;
	head = rte_pktmbuf_read(m, 0, head_len, buf);
	if (!l3_fields_fit(m, &f, head) || !l4_fields_fit(m, &f, head))
		return 0;
	if ((m->ol_flags & RTE_MBUF_F_TX_TCP_SEG) == 0)
		return 1;
	if (!tso_fields_fit(m, &f, mtu))
		return 0;
	payload = f.end - head_len;
	return RTE_MAX(1u, (payload + m->tso_segsz - 1) / m->tso_segsz);
}

/* Fills in the IPv4 checksum. The headers of `m` lie in its first mbuf. */
static void
fill_ip(struct rte_mbuf *m, const struct frame *f)
{
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, f->l2_len);

	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

static void
fill_l4(struct rte_mbuf *m, const struct frame *f)
{
	uint16_t *field = rte_pktmbuf_mtod_offset(m, uint16_t *, checksum_offset(f));

	*field = 0;
	*field = (uint16_t)~impair_frame_l4_sum(m, f);
	if (*field == 0 && f->proto == IPPROTO_UDP)
		*field = 0xffff;
}

/* Returns a frame that consists of the first `head_len` bytes of `m` and the bytes [offset, offset
 * + len), in one mbuf if they fit. */
static struct rte_mbuf *
carve(const struct rte_mbuf *m, struct rte_mempool *pool, uint32_t head_len, uint32_t offset,
	uint32_t len)
{
	struct rte_mbuf *seg = rte_pktmbuf_alloc(pool), *rest;
	uint32_t first = head_len;
	const void *from;
	void *to;

	if (seg == NULL)
		return NULL;
	if (head_len + len <= rte_pktmbuf_tailroom(seg))
		first += len;
	to = rte_pktmbuf_append(seg, (uint16_t)first);
	from = to != NULL ? rte_pktmbuf_read(m, 0, head_len, to) : NULL;
	if (from == NULL)
		goto fail;
	if (from != to)
		memcpy(to, from, head_len);
	if (len == 0)
		return seg;
	if (first > head_len) {
		to = (uint8_t *)to + head_len;
		from = rte_pktmbuf_read(m, offset, len, to);
		if (from != to)
			memcpy(to, from, len);
		return seg;
	}
	rest = rte_pktmbuf_copy(m, pool, offset, len);
	if (rest != NULL && rte_pktmbuf_chain(seg, rest) == 0)
		return seg;
	rte_pktmbuf_free(rest);
fail:
	rte_pktmbuf_free(seg);
	return NULL;
}

/* Corrects the headers of segment `i` of `n`, whose payload begins `done` bytes into the payload of
 * the whole frame. */
static void
fix_segment(struct rte_mbuf *seg, const struct frame *whole, uint32_t len, unsigned i, unsigned n,
	uint32_t done)
{
	uint8_t *p = rte_pktmbuf_mtod(seg, uint8_t *);
	struct rte_tcp_hdr *tcp = (void *)(p + whole->l2_len + whole->l3_len);
	struct rte_ipv4_hdr *ip4 = (void *)(p + whole->l2_len);
	struct rte_ipv6_hdr *ip6 = (void *)(p + whole->l2_len);
	struct frame f = *whole;

	f.end = (uint32_t)f.l2_len + f.l3_len + f.l4_len + len;
	if (f.v6) {
		ip6->payload_len = rte_cpu_to_be_16((uint16_t)(f.l4_len + len));
	} else {
		ip4->total_length = rte_cpu_to_be_16((uint16_t)(f.l3_len + f.l4_len + len));
		ip4->packet_id = rte_cpu_to_be_16((uint16_t)(rte_be_to_cpu_16(ip4->packet_id) + i));
		fill_ip(seg, &f);
	}
	tcp->sent_seq = rte_cpu_to_be_32(rte_be_to_cpu_32(tcp->sent_seq) + done);
	if (i != 0)
		/* Only the first segment carries CWR (RFC 3168 6.1.2). */
		tcp->tcp_flags &= (uint8_t)~RTE_TCP_CWR_FLAG;
	if (i + 1 != n)
		tcp->tcp_flags &= (uint8_t)~TCP_FIN_PSH;
	fill_l4(seg, &f);
}

static void
nic_segment(struct lane *l, struct rte_mbuf *m, const struct frame *f, unsigned n, uint64_t now)
{
	uint32_t head_len = (uint32_t)f->l2_len + f->l3_len + f->l4_len;
	uint32_t payload = f->end - head_len;

	sk_count(l->counters, IMPAIR_TSO);
	for (unsigned i = 0; i < n; i++) {
		uint32_t done = i * m->tso_segsz;
		uint32_t len = RTE_MIN(payload - done, (uint32_t)m->tso_segsz);
		struct rte_mbuf *seg =
			carve(m, impair_lane_pool(l, m), head_len, head_len + done, len);

		if (seg == NULL) {
			sk_count(l->counters, IMPAIR_NO_MBUF);
			continue;
		}
		fix_segment(seg, f, len, i, n, done);
		sk_count(l->counters, IMPAIR_SEGMENTS);
		impair_lane_put(l, seg, now);
	}
}

static void
fill_in(struct lane *l, struct rte_mbuf *m, const struct frame *f, uint64_t now)
{
	uint32_t head_len = (uint32_t)f->l2_len + f->l3_len + f->l4_len;
	struct rte_mbuf *copy =
		carve(m, impair_lane_pool(l, m), head_len, head_len, m->pkt_len - head_len);

	if (copy == NULL) {
		sk_count(l->counters, IMPAIR_NO_MBUF);
		return;
	}
	if ((m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM) != 0)
		fill_ip(copy, f);
	if ((m->ol_flags & RTE_MBUF_F_TX_L4_MASK) != 0)
		fill_l4(copy, f);
	sk_count(l->counters, IMPAIR_CKSUM_FILLED);
	impair_lane_put(l, copy, now);
}

void
impair_nic_tx(struct lane *l, struct rte_mbuf *m, unsigned frames, uint64_t now)
{
	struct frame f;

	if ((m->ol_flags & ASKED) == 0) {
		impair_lane_put(l, m, now);
		return;
	}
	impair_frame_find(m, &f);
	if ((m->ol_flags & RTE_MBUF_F_TX_TCP_SEG) != 0)
		nic_segment(l, m, &f, frames, now);
	else
		fill_in(l, m, &f, now);
	rte_pktmbuf_free(m);
}

uint16_t
impair_nic_tx_prepare(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		int rc = rte_net_intel_cksum_prepare(pkts[i]);

		if (rc != 0) {
			rte_errno = -rc;
			return i;
		}
	}
	return n;
}

static void
set_hash(struct rte_mbuf *m, const struct frame *f, const uint8_t *key)
{
	uint8_t buf[HEAD_MAX];
	const uint8_t *head = rte_pktmbuf_read(m, 0, f->l2_len + f->l3_len + 4u, buf);
	unsigned addrs = f->v6 ? 32 : 8, words = addrs / 4 + 1;
	uint32_t tuple[9];

	/* The hash input: source, destination and ports in the order of the headers, as words in
	 * host order. */
	memcpy(tuple, head + f->l2_len + (f->v6 ? 8 : 12), addrs);
	memcpy(tuple + addrs / 4, head + f->l2_len + f->l3_len, 4);
	for (unsigned i = 0; i < words; i++)
		tuple[i] = rte_be_to_cpu_32(tuple[i]);
	m->hash.rss = rte_softrss(tuple, words, key);
	m->ol_flags |= RTE_MBUF_F_RX_RSS_HASH;
}

static bool
ip4_is_good(const struct rte_mbuf *m, const struct frame *f)
{
	uint8_t buf[60];

	return rte_raw_cksum(rte_pktmbuf_read(m, f->l2_len, f->l3_len, buf), f->l3_len) == 0xffff;
}

static bool
l4_is_unprotected(const struct rte_mbuf *m, const struct frame *f)
{
	uint16_t stored;

	if (f->proto != IPPROTO_UDP || f->v6)
		return false;
	return *(const uint16_t *)rte_pktmbuf_read(m, checksum_offset(f), 2, &stored) == 0;
}

void
impair_nic_rx(struct lane *l, struct rte_mbuf *m, const uint8_t *rss_key)
{
	bool l3_good, l4_good;
	struct frame f;

	m->ol_flags &= ~(RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK);
	if (!impair_frame_find(m, &f))
		return;
	l3_good = f.v6 || ip4_is_good(m, &f);
	l4_good = l4_is_unprotected(m, &f) || impair_frame_l4_sum(m, &f) == 0xffff;
	if (!f.v6)
		m->ol_flags |= l3_good ? RTE_MBUF_F_RX_IP_CKSUM_GOOD : RTE_MBUF_F_RX_IP_CKSUM_BAD;
	m->ol_flags |= l4_good ? RTE_MBUF_F_RX_L4_CKSUM_GOOD : RTE_MBUF_F_RX_L4_CKSUM_BAD;
	if (!l3_good || !l4_good)
		sk_count(l->counters, IMPAIR_CKSUM_BAD);
	if (rss_key != NULL)
		set_hash(m, &f, rss_key);
}
