/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the headers of a frame, and its bytes in a chain of mbufs. This code does not use lib/wire,
 * so that code that fills in and breaks checksums here does not share its faults with the code that
 * checks them there.
 */
#include "impair_priv.h"

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#define HEADERS_MAX (RTE_ETHER_HDR_LEN + 4 + 60 + 60)

static bool
find_ip(struct frame *f, const uint8_t *p, uint32_t len, uint16_t type)
{
	const struct rte_ipv4_hdr *ip4 = (const void *)(p + f->l2_len);
	const struct rte_ipv6_hdr *ip6 = (const void *)(p + f->l2_len);

	if (type == RTE_ETHER_TYPE_IPV4 && len >= f->l2_len + sizeof(*ip4)) {
		f->l3_len = (ip4->version_ihl & 0xf) * 4;
		f->proto = ip4->next_proto_id;
		f->end = f->l2_len + rte_be_to_cpu_16(ip4->total_length);
		/* A fragment does not contain a whole segment. */
		return ip4->version_ihl >> 4 == 4 && f->l3_len >= sizeof(*ip4) &&
		       (rte_be_to_cpu_16(ip4->fragment_offset) & 0x3fff) == 0;
	}
	if (type != RTE_ETHER_TYPE_IPV6 || len < f->l2_len + sizeof(*ip6))
		return false;
	f->v6 = true;
	f->l3_len = sizeof(*ip6);
	f->proto = ip6->proto;
	f->end = f->l2_len + f->l3_len + rte_be_to_cpu_16(ip6->payload_len);
	return p[f->l2_len] >> 4 == 6;
}

static bool
find_l4(struct frame *f, const uint8_t *p, uint32_t len)
{
	uint32_t l4 = f->l2_len + f->l3_len;

	if (f->proto == IPPROTO_UDP) {
		const struct rte_udp_hdr *udp = (const void *)(p + l4);

		f->l4_len = sizeof(*udp);
		return len >= l4 + sizeof(*udp) && f->end >= l4 + sizeof(*udp) &&
		       rte_be_to_cpu_16(udp->dgram_len) == f->end - l4;
	}
	if (f->proto != IPPROTO_TCP || len < l4 + sizeof(struct rte_tcp_hdr))
		return false;
	f->l4_len = (((const struct rte_tcp_hdr *)(p + l4))->data_off >> 4) * 4;
	return f->l4_len >= sizeof(struct rte_tcp_hdr) && f->end >= l4 + f->l4_len;
}

bool
impair_frame_find(const struct rte_mbuf *m, struct frame *f)
{
	uint32_t len = RTE_MIN(m->pkt_len, (uint32_t)HEADERS_MAX);
	uint8_t buf[HEADERS_MAX];
	const uint8_t *p;
	uint16_t type;

	memset(f, 0, sizeof(*f));
	p = rte_pktmbuf_read(m, 0, len, buf);
	if (p == NULL || len < RTE_ETHER_HDR_LEN + 4)
		return false;
	type = (uint16_t)(p[12] << 8 | p[13]);
	f->l2_len = RTE_ETHER_HDR_LEN;
	if (type == RTE_ETHER_TYPE_VLAN) {
		type = (uint16_t)(p[16] << 8 | p[17]);
		f->l2_len += 4;
	}
	return find_ip(f, p, len, type) && f->end <= m->pkt_len && find_l4(f, p, len);
}

uint8_t *
impair_frame_byte(struct rte_mbuf *m, uint32_t offset)
{
	while (offset >= m->data_len) {
		offset -= m->data_len;
		m = m->next;
	}
	return rte_pktmbuf_mtod_offset(m, uint8_t *, offset);
}

uint16_t
impair_frame_l4_sum(const struct rte_mbuf *m, const struct frame *f)
{
	uint32_t l4 = f->l2_len + f->l3_len;
	uint8_t buf[sizeof(struct rte_ipv6_hdr)];
	uint16_t raw = 0, pseudo;
	const void *ip;
	uint32_t sum;

	ip = rte_pktmbuf_read(m, f->l2_len, RTE_MIN(f->l3_len, (uint16_t)sizeof(buf)), buf);
	pseudo = f->v6 ? rte_ipv6_phdr_cksum(ip, 0) : rte_ipv4_phdr_cksum(ip, 0);
	rte_raw_cksum_mbuf(m, l4, f->end - l4, &raw);
	sum = (uint32_t)raw + pseudo;
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}
