/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv4 and IPv6 headers. Fragments are refused: both transports send with DF, in packets that fit
 * the path MTU. */
#include "wire_priv.h"

#define IP4_DF       0x4000
#define IP4_FRAGMENT 0x3fff /* MF and the fragment offset */

/* RFC 791 section 3.1 */
struct ip4_hdr {
	uint8_t version_ihl;
	uint8_t tos; /* DSCP 6, ECN 2 */
	be16 total_len;
	be16 id;
	be16 fragment;
	uint8_t ttl;
	uint8_t proto;
	uint16_t checksum; /* as it lies in memory */
	uint8_t src[4], dst[4];
} __attribute__((packed));
_Static_assert(sizeof(struct ip4_hdr) == IP4_LEN, "IPv4 header");

/* RFC 8200 section 3 */
struct ip6_hdr {
	be32 version_class_flow; /* version 4, traffic class 8, flow label 20 */
	be16 payload_len;
	uint8_t next;
	uint8_t hop_limit;
	uint8_t src[16], dst[16];
} __attribute__((packed));
_Static_assert(sizeof(struct ip6_hdr) == IP6_LEN, "IPv6 header");

int
wire_ip4_parse_part(struct wire_ip *out, const uint8_t *p, size_t held, size_t len)
{
	const struct ip4_hdr *h = (const struct ip4_hdr *)p;
	unsigned hdr_len, total;

	if (held < IP4_LEN)
		return -WIRE_SHORT;
	if (h->version_ihl >> 4 != 4)
		return -WIRE_IP_VERSION;
	hdr_len = (h->version_ihl & 0xfu) * 4;
	total = be16_get(h->total_len);
	if (hdr_len < IP4_LEN || total < hdr_len || total > len)
		return -WIRE_IP_HEADER;
	if (hdr_len > held)
		return -WIRE_SHORT;
	if (wire_sum_fold(wire_sum(0, p, hdr_len)) != 0)
		return -WIRE_IP_CHECKSUM;
	if (be16_get(h->fragment) & IP4_FRAGMENT)
		return -WIRE_IP_FRAGMENT;
	out->src = sk_addr_v4(h->src);
	out->dst = sk_addr_v4(h->dst);
	out->proto = h->proto;
	out->ttl = h->ttl;
	out->dscp = h->tos >> 2;
	out->ecn = h->tos & 3;
	out->id = be16_get(h->id);
	out->flow = 0;
	out->payload_len = total - hdr_len;
	return (int)hdr_len;
}

int
wire_ip4_parse(struct wire_ip *out, const uint8_t *p, size_t len)
{
	return wire_ip4_parse_part(out, p, len, len);
}

int
wire_ip6_parse_part(struct wire_ip *out, const uint8_t *p, size_t held, size_t len)
{
	const struct ip6_hdr *h = (const struct ip6_hdr *)p;
	uint32_t vcf, payload;
	int skipped;

	if (held < IP6_LEN)
		return -WIRE_SHORT;
	vcf = be32_get(h->version_class_flow);
	if (vcf >> 28 != 6)
		return -WIRE_IP_VERSION;
	payload = be16_get(h->payload_len);
	if (payload > len - IP6_LEN)
		return -WIRE_IP_HEADER;
	memcpy(out->src.b, h->src, 16);
	memcpy(out->dst.b, h->dst, 16);
	/* An IPv4-mapped address is not valid on the wire; in a record it would pass for IPv4. */
	if (sk_addr_is_v4(&out->src) || sk_addr_is_v4(&out->dst))
		return -WIRE_IP_HEADER;
	out->proto = h->next;
	out->ttl = h->hop_limit;
	out->dscp = vcf >> 22 & 0x3f;
	out->ecn = vcf >> 20 & 3;
	out->id = 0;
	out->flow = vcf & 0xfffff;
	out->payload_len = payload;
	if (h->next == IP_TCP || h->next == IP_UDP || h->next == IP_ICMP6)
		return IP6_LEN;

	held -= IP6_LEN;
	skipped = wire_ip6_skip_extensions(
		&out->proto, p + IP6_LEN, held < payload ? held : payload, true);
	if (skipped < 0)
		return skipped;
	out->payload_len = payload - (uint32_t)skipped;
	return IP6_LEN + skipped;
}

int
wire_ip6_parse(struct wire_ip *out, const uint8_t *p, size_t len)
{
	return wire_ip6_parse_part(out, p, len, len);
}

static unsigned
ip4_emit(uint8_t *p, const struct wire_ip *in)
{
	struct ip4_hdr *h = (struct ip4_hdr *)p;

	h->version_ihl = 0x45;
	h->tos = (uint8_t)(in->dscp << 2 | (in->ecn & 3));
	h->total_len = be16_of((uint16_t)(IP4_LEN + in->payload_len));
	h->id = be16_of(in->id);
	h->fragment = be16_of(IP4_DF);
	h->ttl = in->ttl;
	h->proto = in->proto;
	h->checksum = 0;
	memcpy(h->src, in->src.b + 12, 4);
	memcpy(h->dst, in->dst.b + 12, 4);
	h->checksum = wire_sum_fold(wire_sum(0, p, IP4_LEN));
	return IP4_LEN;
}

static unsigned
ip6_emit(uint8_t *p, const struct wire_ip *in)
{
	struct ip6_hdr *h = (struct ip6_hdr *)p;
	uint32_t class = (in->dscp & 0x3fu) << 2 | (in->ecn & 3u);

	h->version_class_flow = be32_of(6u << 28 | class << 20 | (in->flow & 0xfffff));
	h->payload_len = be16_of((uint16_t)in->payload_len);
	h->next = in->proto;
	h->hop_limit = in->ttl;
	memcpy(h->src, in->src.b, 16);
	memcpy(h->dst, in->dst.b, 16);
	return IP6_LEN;
}

void
wire_ip6_flow_set(uint8_t *p, uint32_t flow)
{
	struct ip6_hdr *h = (struct ip6_hdr *)p;
	uint32_t vcf = be32_get(h->version_class_flow);

	h->version_class_flow = be32_of((vcf & ~0xfffffu) | (flow & 0xfffff));
}

unsigned
wire_ip_emit(uint8_t *p, const struct wire_ip *in)
{
	return sk_addr_is_v4(&in->dst) ? ip4_emit(p, in) : ip6_emit(p, in);
}
