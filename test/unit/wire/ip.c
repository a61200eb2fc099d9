/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv4, IPv6 and its extension headers, and the Internet checksum. */
#include "vector.h"

/* Sets the checksum of an IPv4 header by the definition of RFC 791, word by word. */
static void
seal(struct bytes *v)
{
	unsigned words = (v->b[0] & 0xfu) * 2;
	uint32_t sum = 0;

	v->b[10] = v->b[11] = 0;
	for (unsigned i = 0; i < words; i++)
		sum += (uint32_t)v->b[2 * i] << 8 | v->b[2 * i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	v->b[10] = (uint8_t)(~sum >> 8);
	v->b[11] = (uint8_t)~sum;
}

/* A header of 20 bytes with a well-known checksum, then an empty payload of 0x73 - 20 bytes. */
static struct bytes
ip4(void)
{
	struct bytes v = hex("4500 0073 0000 4000 40 11 b861 c0a80001 c0a800c7");

	v.len = 0x73;
	return v;
}

Test(ip4, header_rfc791_3_1)
{
	struct bytes v = ip4();
	struct wire_ip ip;

	cr_assert_eq(wire_ip4_parse(&ip, v.b, v.len), 20);
	cr_assert(addr_is(&ip.src, "192.168.0.1"));
	cr_assert(addr_is(&ip.dst, "192.168.0.199"));
	cr_assert_eq(ip.proto, IP_UDP);
	cr_assert_eq(ip.ttl, 64);
	cr_assert_eq(ip.id, 0);
	cr_assert_eq(ip.dscp, 0);
	cr_assert_eq(ip.ecn, IP_ECN_NOT);
	cr_assert_eq(ip.payload_len, 0x73 - 20);
	v.len = 20;
	ASSERT_EMITS(wire_ip_emit, ip, v);
}

Test(ip4, type_of_service_is_dscp_and_ecn_rfc3168_5)
{
	struct bytes v = ip4();
	struct wire_ip ip;

	v.b[1] = 0xbb;
	v.b[4] = 0x12;
	v.b[5] = 0x34;
	seal(&v);
	cr_assert_eq(wire_ip4_parse(&ip, v.b, v.len), 20);
	cr_assert_eq(ip.dscp, 46);
	cr_assert_eq(ip.ecn, IP_ECN_CE);
	cr_assert_eq(ip.id, 0x1234);
	v.len = 20;
	ASSERT_EMITS(wire_ip_emit, ip, v);
}

Test(ip4, padding_is_not_payload)
{
	struct bytes v = ip4();
	struct wire_ip ip;

	v.len += 40;
	cr_assert_eq(wire_ip4_parse(&ip, v.b, v.len), 20);
	cr_assert_eq(ip.payload_len, 0x73 - 20);
}

Test(ip4, short_headers_and_packets_are_refused)
{
	struct bytes v = ip4();
	struct wire_ip ip;

	for (size_t n = 0; n < v.len; n++) {
		uint8_t *p = exact(&v, n);
		int want = n < 20 ? -WIRE_SHORT : -WIRE_IP_HEADER;

		cr_assert_eq(wire_ip4_parse(&ip, p, n), want, "%zu bytes", n);
		free(p);
	}
}

Test(ip4, lengths_that_cannot_be_rfc791)
{
	struct bytes v = ip4();
	struct wire_ip ip;

	v.b[0] = 0x44; /* a header of 16 bytes */
	seal(&v);
	cr_assert_eq(wire_ip4_parse(&ip, v.b, v.len), -WIRE_IP_HEADER);
	v = ip4();
	v.b[3] = 19; /* a packet shorter than its header */
	seal(&v);
	cr_assert_eq(wire_ip4_parse(&ip, v.b, v.len), -WIRE_IP_HEADER);
	v.b[3] = 20;
	seal(&v);
	cr_assert_eq(wire_ip4_parse(&ip, v.b, v.len), 20);
	cr_assert_eq(ip.payload_len, 0);
	v.b[0] = 0x46; /* with options, longer than the packet */
	seal(&v);
	cr_assert_eq(wire_ip4_parse(&ip, v.b, v.len), -WIRE_IP_HEADER);
}

Test(ip4, options_are_passed_over)
{
	struct bytes v = ip4();
	struct wire_ip ip;

	v.b[0] = 0x4f;
	memset(v.b + 20, 1, 40);
	seal(&v);
	cr_assert_eq(wire_ip4_parse(&ip, v.b, v.len), 60);
	cr_assert_eq(ip.payload_len, 0x73 - 60);
}

Test(ip4, version_contradicting_the_ethertype_is_refused)
{
	struct bytes v = ip4();
	struct wire_ip ip;

	v.b[0] = 0x65;
	seal(&v);
	cr_assert_eq(wire_ip4_parse(&ip, v.b, v.len), -WIRE_IP_VERSION);
}

Test(ip4, each_flipped_bit_is_seen_by_the_checksum_rfc1122_3_2_1_2)
{
	struct wire_ip ip;

	/* Bytes 0 to 3 hold the version and lengths, which are checked before the checksum. */
	for (unsigned bit = 4 * 8; bit < 20 * 8; bit++) {
		struct bytes v = ip4();

		v.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(wire_ip4_parse(&ip, v.b, v.len), -WIRE_IP_CHECKSUM, "bit %u", bit);
	}
}

Test(ip4, fragments_are_refused)
{
	static const uint16_t fragment[] = {0x2000, 0x0001, 0x1000, 0x3fff, 0x6000};
	struct wire_ip ip;
	struct bytes v = ip4();

	for (unsigned i = 0; i < sizeof(fragment) / sizeof(fragment[0]); i++) {
		v.b[6] = (uint8_t)(fragment[i] >> 8);
		v.b[7] = (uint8_t)fragment[i];
		seal(&v);
		cr_assert_eq(
			wire_ip4_parse(&ip, v.b, v.len), -WIRE_IP_FRAGMENT, "%04x", fragment[i]);
	}
	v.b[6] = v.b[7] = 0; /* without DF, it is a whole packet as well */
	seal(&v);
	cr_assert_eq(wire_ip4_parse(&ip, v.b, v.len), 20);
}

#define IP6_ADDRS "20010db8000000000000000000000001 20010db8000000000000000000000002"

Test(ip6, header_rfc8200_3)
{
	struct bytes v = hex("6b9abcde 0004 06 40" IP6_ADDRS "00000000");
	struct wire_ip ip;

	cr_assert_eq(wire_ip6_parse(&ip, v.b, v.len), 40);
	cr_assert(addr_is(&ip.src, "2001:db8::1"));
	cr_assert(addr_is(&ip.dst, "2001:db8::2"));
	cr_assert_eq(ip.dscp, 46);
	cr_assert_eq(ip.ecn, IP_ECN_ECT1);
	cr_assert_eq(ip.flow, 0xabcde);
	cr_assert_eq(ip.id, 0, "there is none");
	cr_assert_eq(ip.proto, IP_TCP);
	cr_assert_eq(ip.ttl, 64);
	cr_assert_eq(ip.payload_len, 4);
	v.len = 40;
	ASSERT_EMITS(wire_ip_emit, ip, v);
}

Test(ip6, short_headers_and_packets_are_refused)
{
	struct bytes v = hex("60000000 0004 06 40" IP6_ADDRS "00000000");
	struct wire_ip ip;

	for (size_t n = 0; n < v.len; n++) {
		uint8_t *p = exact(&v, n);

		cr_assert_eq(wire_ip6_parse(&ip, p, n), n < 40 ? -WIRE_SHORT : -WIRE_IP_HEADER,
			"%zu bytes", n);
		free(p);
	}
	v.b[0] = 0x45;
	cr_assert_eq(wire_ip6_parse(&ip, v.b, v.len), -WIRE_IP_VERSION);
}

Test(ip6, padding_is_not_payload)
{
	struct bytes v = hex("60000000 0004 06 40" IP6_ADDRS "00000000 ffffffffffff");
	struct wire_ip ip;

	cr_assert_eq(wire_ip6_parse(&ip, v.b, v.len), 40);
	cr_assert_eq(ip.payload_len, 4);
}

Test(ip6, ipv4_mapped_addresses_do_not_pass_for_ipv4)
{
	struct bytes v = hex("60000000 0000 06 40" IP6_ADDRS);
	struct bytes mapped = hex("00000000000000000000ffffc0000201");
	struct wire_ip ip;

	for (unsigned at = 8; at <= 24; at += 16) {
		struct bytes bad = v;

		memcpy(bad.b + at, mapped.b, 16);
		cr_assert_eq(wire_ip6_parse(&ip, bad.b, bad.len), -WIRE_IP_HEADER, "at %u", at);
	}
}

/* An IPv6 packet with the chain `ext`, whose first header is `next`, and 4 bytes behind it. */
static int
parse_chain(struct wire_ip *ip, uint8_t next, const char *ext)
{
	struct bytes v = hex("60000000 0000 00 40" IP6_ADDRS);
	struct bytes e = hex(ext);
	uint8_t *p;
	int r;

	memcpy(v.b + 40, e.b, e.len);
	v.len += e.len + 4;
	v.b[5] = (uint8_t)(v.len - 40);
	v.b[6] = next;
	p = exact(&v, v.len);
	r = wire_ip6_parse(ip, p, v.len);
	free(p);
	return r;
}

Test(ip6, extension_headers_are_passed_over_rfc8200_4)
{
	struct wire_ip ip;

	/* Hop-by-hop options with a router alert, destination options of 16 bytes, a routing header
	 * without segments left. */
	cr_assert_eq(parse_chain(&ip, 0,
			     "3c00 050200000100"
			     "2b01 010c000000000000 000000000000"
			     "0600 fd0000000000"),
		40 + 8 + 16 + 8);
	cr_assert_eq(ip.proto, IP_TCP);
	cr_assert_eq(ip.payload_len, 4);
	cr_assert_eq(parse_chain(&ip, 60, "1100 000000000000"), 48);
	cr_assert_eq(ip.proto, IP_UDP);
}

/* Next header 59: nothing follows. */
Test(ip6, extension_header_may_end_the_packet_rfc8200_4_7)
{
	struct bytes v = hex("60000000 0008 3c 40" IP6_ADDRS "3b00 010400000000");
	struct wire_ip ip;

	cr_assert_eq(wire_ip6_parse(&ip, v.b, v.len), 48);
	cr_assert_eq(ip.proto, 59);
	cr_assert_eq(ip.payload_len, 0);
}

Test(ip6, extension_header_longer_than_the_packet_is_refused)
{
	struct wire_ip ip;

	cr_assert_eq(parse_chain(&ip, 60, "0602 010400000000"), -WIRE_SHORT);
	cr_assert_eq(parse_chain(&ip, 60, "06ff 010400000000"), -WIRE_SHORT);
	cr_assert_eq(parse_chain(&ip, 60, ""), -WIRE_SHORT);
}

Test(ip6, option_that_must_be_understood_is_refused_rfc8200_4_2)
{
	struct wire_ip ip;

	cr_assert_eq(parse_chain(&ip, 60, "0600 3e0400000000"), 48);
	cr_assert_eq(parse_chain(&ip, 60, "0600 7e0400000000"), -WIRE_IP6_EXTENSION);
	cr_assert_eq(parse_chain(&ip, 0, "0600 c20400010000"), -WIRE_IP6_EXTENSION);
	cr_assert_eq(parse_chain(&ip, 60, "0600 0100be020000"), -WIRE_IP6_EXTENSION);
}

Test(ip6, option_longer_than_its_header_is_refused)
{
	struct wire_ip ip;

	cr_assert_eq(parse_chain(&ip, 60, "0600 010500000000"), -WIRE_IP6_EXTENSION);
	cr_assert_eq(parse_chain(&ip, 60, "0600 000000000001"), -WIRE_IP6_EXTENSION);
}

Test(ip6, hop_by_hop_must_be_first_rfc8200_4_3)
{
	struct wire_ip ip;

	cr_assert_eq(
		parse_chain(&ip, 60, "0000 010400000000 0600 010400000000"), -WIRE_IP6_EXTENSION);
}

Test(ip6, routing_header_with_segments_left_is_refused_rfc8200_4_4)
{
	struct wire_ip ip;

	cr_assert_eq(parse_chain(&ip, 43, "0600 fd0100000000"), -WIRE_IP6_EXTENSION);
}

Test(ip6, fragment_header_is_refused)
{
	struct wire_ip ip;

	cr_assert_eq(parse_chain(&ip, 44, "0600 000100000001"), -WIRE_IP_FRAGMENT);
	cr_assert_eq(
		parse_chain(&ip, 60, "2c00 010400000000 0600 000100000001"), -WIRE_IP_FRAGMENT);
}

Test(ip6, number_of_extension_headers_is_bounded)
{
	char chain[8 * 17 + 1] = "";
	struct wire_ip ip;

	for (unsigned i = 0; i < 6; i++)
		strcat(chain, "3c00010400000000");
	strcat(chain, "0600010400000000");
	cr_assert_eq(parse_chain(&ip, 60, chain), 40 + 7 * 8);
	memcpy(chain + 6 * 16, "3c00010400000000", 16);
	strcat(chain, "0600010400000000");
	cr_assert_eq(parse_chain(&ip, 60, chain), -WIRE_IP6_EXTENSION);
}

Test(sum, example_of_rfc1071_3)
{
	struct bytes v = hex("0001 f203 f4f5 f6f7");
	uint16_t sum = wire_sum_fold(wire_sum(0, v.b, v.len));
	uint8_t stored[2];

	memcpy(stored, &sum, 2);
	cr_assert_eq(stored[0], 0x22);
	cr_assert_eq(stored[1], 0x0d);
}

static uint16_t
sum_by_definition(const uint8_t *p, size_t len)
{
	uint64_t sum = 0;
	uint16_t folded;

	for (size_t i = 0; i < len; i++)
		sum += (uint64_t)p[i] << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	folded = (uint16_t)~sum;
	return (uint16_t)(folded << 8 | folded >> 8);
}

Test(sum, every_length_and_alignment_agrees_with_the_definition_rfc1071_1)
{
	static uint8_t buf[400];
	uint32_t x = 1;

	for (unsigned i = 0; i < sizeof(buf); i++) {
		x = x * 1664525 + 1013904223;
		buf[i] = i % 3 ? 0xff : (uint8_t)(x >> 24);
	}
	for (unsigned at = 0; at < 16; at++)
		for (size_t len = 0; len <= 330; len++) {
			uint16_t got = wire_sum_fold(wire_sum(0, buf + at, len));

			cr_assert_eq(got, sum_by_definition(buf + at, len), "%zu at %u", len, at);
		}
}

Test(sum, pieces_add_up_and_64_kib_of_ones_do_not_overflow)
{
	static uint8_t buf[65536];
	uint32_t sum = 0xffffffff;

	memset(buf, 0xff, sizeof(buf));
	for (unsigned i = 0; i < 8; i++)
		sum = wire_sum(sum, buf, sizeof(buf));
	cr_assert_eq(wire_sum_fold(sum), 0);
	buf[0] = 0xfe;
	sum = wire_sum(wire_sum(0, buf, 100), buf + 100, sizeof(buf) - 101);
	cr_assert_eq(wire_sum_fold(sum), sum_by_definition(buf, sizeof(buf) - 1));
}

/* Pseudo headers written as bytes: RFC 9293 3.1, RFC 8200 8.1. */
Test(sum, pseudo_header_is_the_one_of_the_family)
{
	struct bytes v4 = hex("c0000201 c0000202 00 06 1234");
	struct bytes v6 = hex(IP6_ADDRS "00012345 000000 3a");
	struct sk_addr s4 = addr("192.0.2.1"), d4 = addr("192.0.2.2");
	struct sk_addr s6 = addr("2001:db8::1"), d6 = addr("2001:db8::2");

	cr_assert_eq(wire_sum_fold(wire_pseudo_sum(&s4, &d4, 6, 0x1234)),
		sum_by_definition(v4.b, v4.len));
	cr_assert_eq(wire_sum_fold(wire_pseudo_sum(&s6, &d6, 0x3a, 0x12345)),
		sum_by_definition(v6.b, v6.len));
}
