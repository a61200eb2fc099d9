/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP and ICMPv6 with neighbour discovery. A host needs these messages to be found, to answer an
 * echo, and to detect a smaller path MTU or an unreachable peer.
 */
#include "wire_priv.h"

#define T4_ECHO_REPLY       0 /* RFC 792 */
#define T4_UNREACHABLE      3
#define T4_ECHO_REQUEST     8
#define C4_FRAG_NEEDED      4
#define T6_UNREACHABLE      1 /* RFC 4443 */
#define T6_TOO_BIG          2
#define T6_ECHO_REQUEST     128
#define T6_ECHO_REPLY       129
#define T6_ROUTER_ADVERT    134 /* RFC 4861 section 4 */
#define T6_NEIGHBOR_SOLICIT 135
#define T6_NEIGHBOR_ADVERT  136
#define OPT_SOURCE_LLADDR   1
#define OPT_TARGET_LLADDR   2
#define NA_ROUTER           0x80
#define NA_SOLICITED        0x40
#define NA_OVERRIDE         0x20
#define ND_HOP_LIMIT        255

/* The four bytes behind the checksum differ by type. */
struct icmp_hdr {
	uint8_t type, code;
	uint16_t checksum;
	union {
		struct {
			be16 id, seq;
		} echo; /* RFC 792 "Echo", RFC 4443 section 4 */
		struct {
			be16 unused, mtu;
		} too_big4;       /* RFC 1191 section 4 */
		be32 mtu6;        /* RFC 4443 section 3.2 */
		uint8_t nd_flags; /* RFC 4861 section 4.4 */
	};
} __attribute__((packed));
_Static_assert(sizeof(struct icmp_hdr) == ICMP_ECHO_LEN, "ICMP header");

/* ICMP header and target (RFC 4861 sections 4.3 and 4.4). */
struct nd_hdr {
	struct icmp_hdr icmp;
	uint8_t target[16];
} __attribute__((packed));
_Static_assert(sizeof(struct nd_hdr) == 24, "neighbour discovery header");

/* RFC 4861 section 4.6.1 */
struct lladdr_opt {
	uint8_t type;
	uint8_t len; /* in units of 8 bytes */
	uint8_t addr[6];
} __attribute__((packed));
_Static_assert(sizeof(struct nd_hdr) + sizeof(struct lladdr_opt) == ICMP_ND_LEN, "with option");

#define ROUTER_ADVERT_LEN 16 /* RFC 4861 section 4.2 */

/* Reads the ports, and TCP's sequence number, from the 8 bytes that an error quotes at least. */
static void
quote_l4(struct wire_quote *q, const uint8_t *p, size_t len)
{
	const struct {
		be16 sport, dport;
		be32 seq;
	} *h = (const void *)p;

	if (len < sizeof(*h))
		return;
	q->sport = be16_get(h->sport);
	q->dport = be16_get(h->dport);
	if (q->proto == IP_TCP)
		q->seq = be32_get(h->seq);
}

/* Reads the needed fields of a quoted packet, which a router may have changed and cut off. */
static int
quote4(struct wire_quote *q, const uint8_t *p, size_t len)
{
	unsigned hdr_len;

	if (len < IP4_LEN || p[0] >> 4 != 4)
		return -WIRE_ICMP_HEADER;
	hdr_len = (p[0] & 0xfu) * 4;
	if (hdr_len < IP4_LEN || hdr_len > len)
		return -WIRE_ICMP_HEADER;
	q->src = sk_addr_v4(p + 12);
	q->dst = sk_addr_v4(p + 16);
	q->proto = p[9];
	/* A later fragment has no transport header. */
	if ((be16_get(*(const be16 *)(p + 6)) & 0x1fff) == 0)
		quote_l4(q, p + hdr_len, len - hdr_len);
	return 0;
}

static int
quote6(struct wire_quote *q, const uint8_t *p, size_t len)
{
	int skipped;

	if (len < IP6_LEN || p[0] >> 4 != 6)
		return -WIRE_ICMP_HEADER;
	memcpy(q->src.b, p + 8, 16);
	memcpy(q->dst.b, p + 24, 16);
	/* No host sends such addresses, and the record would pass for a quotation of an IPv4
	 * packet. */
	if (sk_addr_is_v4(&q->src) || sk_addr_is_v4(&q->dst))
		return -WIRE_ICMP_HEADER;
	q->proto = p[6];
	skipped = wire_ip6_skip_extensions(&q->proto, p + IP6_LEN, len - IP6_LEN, false);
	if (skipped >= 0)
		quote_l4(q, p + IP6_LEN + skipped, len - IP6_LEN - (size_t)skipped);
	return 0;
}

/* Reads the address of the option `type` (RFC 4861 section 4.6). Returns false when an option has
 * an invalid length. */
static bool
icmp_nd_options(struct wire_icmp *out, uint8_t type, const uint8_t *p, size_t len)
{
	while (len > 0) {
		const struct lladdr_opt *o = (const struct lladdr_opt *)p;
		size_t opt_len;

		if (len < 8)
			return false;
		opt_len = o->len * 8u;
		if (opt_len == 0 || opt_len > len)
			return false;
		if (o->type == type && opt_len == sizeof(*o)) {
			out->has_lladdr = true;
			memcpy(out->lladdr, o->addr, 6);
		}
		p += opt_len;
		len -= opt_len;
	}
	return true;
}

/* Performs the checks of RFC 4861 section 7.1, which precede any use of the message. */
static int
parse_neighbor(struct wire_icmp *out, const struct wire_ip *ip, const uint8_t *p, size_t len)
{
	const struct nd_hdr *h = (const struct nd_hdr *)p;
	bool solicit = out->type == T6_NEIGHBOR_SOLICIT;
	bool options_ok;

	if (ip->ttl != ND_HOP_LIMIT || out->code != 0 || len < sizeof(*h))
		return -WIRE_ICMP_HEADER;
	out->kind = solicit ? ICMP_NEIGHBOR_SOLICIT : ICMP_NEIGHBOR_ADVERT;
	memcpy(out->target.b, h->target, 16);
	if (sk_addr_is_multicast(&out->target) || sk_addr_is_v4(&out->target))
		return -WIRE_ICMP_HEADER;
	options_ok = icmp_nd_options(out, solicit ? OPT_SOURCE_LLADDR : OPT_TARGET_LLADDR,
		p + sizeof(*h), len - sizeof(*h));
	if (!options_ok)
		return -WIRE_ICMP_HEADER;
	if (solicit) {
		/* A host without an address cannot request an answer to its link-layer address. */
		if (sk_addr_is_any(&ip->src) && out->has_lladdr)
			return -WIRE_ICMP_HEADER;
	} else {
		out->router = h->icmp.nd_flags & NA_ROUTER;
		out->solicited = h->icmp.nd_flags & NA_SOLICITED;
		out->override = h->icmp.nd_flags & NA_OVERRIDE;
		if (out->solicited && sk_addr_is_multicast(&ip->dst))
			return -WIRE_ICMP_HEADER;
	}
	return sizeof(*h);
}

/* RFC 4861 section 6.1.2 */
static int
parse_router(struct wire_icmp *out, const struct wire_ip *ip, const uint8_t *p, size_t len)
{
	bool link_local = sk_is_link_local(&ip->src);

	if (ip->ttl != ND_HOP_LIMIT || out->code != 0 || len < ROUTER_ADVERT_LEN || !link_local)
		return -WIRE_ICMP_HEADER;
	out->kind = ICMP_ROUTER_ADVERT;
	out->router = true;
	if (!icmp_nd_options(
		    out, OPT_SOURCE_LLADDR, p + ROUTER_ADVERT_LEN, len - ROUTER_ADVERT_LEN))
		return -WIRE_ICMP_HEADER;
	return ROUTER_ADVERT_LEN;
}

static int
parse_echo(struct wire_icmp *out, enum wire_icmp_kind kind, const struct icmp_hdr *h)
{
	if (out->code != 0)
		return -WIRE_ICMP_HEADER;
	out->kind = kind;
	out->echo_id = be16_get(h->echo.id);
	out->echo_seq = be16_get(h->echo.seq);
	out->body = ICMP_ECHO_LEN;
	return ICMP_ECHO_LEN;
}

static int
parse_v4(struct wire_icmp *out, const uint8_t *p, size_t len)
{
	const struct icmp_hdr *h = (const struct icmp_hdr *)p;
	int r;

	switch (out->type) {
	case T4_ECHO_REQUEST:
		return parse_echo(out, ICMP_ECHO_REQUEST, h);
	case T4_ECHO_REPLY:
		return parse_echo(out, ICMP_ECHO_REPLY, h);
	case T4_UNREACHABLE:
		out->kind = ICMP_UNREACHABLE;
		if (out->code == C4_FRAG_NEEDED) {
			out->kind = ICMP_TOO_BIG;
			out->mtu = be16_get(h->too_big4.mtu);
		}
		r = quote4(&out->quote, p + sizeof(*h), len - sizeof(*h));
		return r < 0 ? r : (int)sizeof(*h);
	default:
		return sizeof(*h);
	}
}

static int
parse_v6(struct wire_icmp *out, const struct wire_ip *ip, const uint8_t *p, size_t len)
{
	const struct icmp_hdr *h = (const struct icmp_hdr *)p;
	int r;

	switch (out->type) {
	case T6_ECHO_REQUEST:
		return parse_echo(out, ICMP_ECHO_REQUEST, h);
	case T6_ECHO_REPLY:
		return parse_echo(out, ICMP_ECHO_REPLY, h);
	case T6_UNREACHABLE:
	case T6_TOO_BIG:
		out->kind = ICMP_UNREACHABLE;
		if (out->type == T6_TOO_BIG) {
			out->kind = ICMP_TOO_BIG;
			out->mtu = be32_get(h->mtu6);
		}
		r = quote6(&out->quote, p + sizeof(*h), len - sizeof(*h));
		return r < 0 ? r : (int)sizeof(*h);
	case T6_NEIGHBOR_SOLICIT:
	case T6_NEIGHBOR_ADVERT:
		return parse_neighbor(out, ip, p, len);
	case T6_ROUTER_ADVERT:
		return parse_router(out, ip, p, len);
	default:
		return sizeof(*h);
	}
}

int
wire_icmp_parse(struct wire_icmp *out, const struct wire_ip *ip, const uint8_t *p, size_t len)
{
	bool v6 = !sk_addr_is_v4(&ip->dst);
	uint32_t sum;

	/* ICMP belongs to IPv4 (RFC 792), ICMPv6 to IPv6 (RFC 4443). */
	if (ip->proto != (v6 ? IP_ICMP6 : IP_ICMP))
		return -WIRE_IP_PROTOCOL;
	if (len < ICMP_ECHO_LEN)
		return -WIRE_SHORT;
	sum = v6 ? wire_pseudo_sum(&ip->src, &ip->dst, IP_ICMP6, (uint32_t)len) : 0;
	if (wire_sum_fold(wire_sum(sum, p, len)) != 0)
		return -WIRE_ICMP_CHECKSUM;
	memset(out, 0, sizeof(*out));
	out->type = p[0];
	out->code = p[1];
	return v6 ? parse_v6(out, ip, p, len) : parse_v4(out, p, len);
}

static unsigned
emit_neighbor(uint8_t *p, const struct wire_icmp *in)
{
	struct nd_hdr *h = (struct nd_hdr *)p;
	struct lladdr_opt *o = (struct lladdr_opt *)(p + sizeof(*h));
	bool solicit = in->kind == ICMP_NEIGHBOR_SOLICIT;

	memset(p, 0, sizeof(*h));
	h->icmp.type = solicit ? T6_NEIGHBOR_SOLICIT : T6_NEIGHBOR_ADVERT;
	if (!solicit)
		h->icmp.nd_flags = (uint8_t)((in->router ? NA_ROUTER : 0) |
					     (in->solicited ? NA_SOLICITED : 0) |
					     (in->override ? NA_OVERRIDE : 0));
	memcpy(h->target, in->target.b, 16);
	if (!in->has_lladdr)
		return sizeof(*h);
	o->type = solicit ? OPT_SOURCE_LLADDR : OPT_TARGET_LLADDR;
	o->len = 1;
	memcpy(o->addr, in->lladdr, 6);
	return ICMP_ND_LEN;
}

unsigned
wire_icmp_emit(uint8_t *p, const struct wire_icmp *in, bool v6)
{
	struct icmp_hdr *h = (struct icmp_hdr *)p;
	bool request = in->kind == ICMP_ECHO_REQUEST;

	if (in->kind == ICMP_NEIGHBOR_SOLICIT || in->kind == ICMP_NEIGHBOR_ADVERT)
		return emit_neighbor(p, in);
	if (v6)
		h->type = request ? T6_ECHO_REQUEST : T6_ECHO_REPLY;
	else
		h->type = request ? T4_ECHO_REQUEST : T4_ECHO_REPLY;
	h->code = 0;
	h->checksum = 0;
	h->echo.id = be16_of(in->echo_id);
	h->echo.seq = be16_of(in->echo_seq);
	return ICMP_ECHO_LEN;
}

void
wire_icmp_checksum(uint8_t *p, size_t len, const struct sk_addr *src, const struct sk_addr *dst)
{
	struct icmp_hdr *h = (struct icmp_hdr *)p;
	uint32_t sum = 0;

	h->checksum = 0;
	if (!sk_addr_is_v4(dst))
		sum = wire_pseudo_sum(src, dst, IP_ICMP6, (uint32_t)len);
	h->checksum = wire_sum_fold(wire_sum(sum, p, len));
}
