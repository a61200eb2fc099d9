/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP, ICMPv6 and neighbour discovery, each in a whole frame. */
#include "frames.h"
#include "vector.h"

#define L4_V4 34
#define L4_V6 54

/* Returns the message in `frame`, and the IP header before it. */
static struct bytes
message(struct wire_ip *ip, const char *frame)
{
	struct bytes v = hex(frame);
	struct bytes m = {0};
	bool v6 = v.b[12] == 0x86;
	int r = v6 ? wire_ip6_parse(ip, v.b + 14, v.len - 14)
		   : wire_ip4_parse(ip, v.b + 14, v.len - 14);

	cr_assert_eq(r, v6 ? 40 : 20);
	m.len = ip->payload_len;
	memcpy(m.b, v.b + (v6 ? L4_V6 : L4_V4), m.len);
	return m;
}

/* Sets the right checksum, and parses. */
static int
parse_altered(struct wire_icmp *icmp, struct wire_ip *ip, const struct bytes *m)
{
	uint8_t *p = exact(m, m->len);
	int r;

	wire_icmp_checksum(p, m->len, &ip->src, &ip->dst);
	r = wire_icmp_parse(icmp, ip, p, m->len);
	free(p);
	return r;
}

Test(icmp, echo_request_rfc792)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_ECHO4);

	cr_assert_eq(wire_icmp_parse(&icmp, &ip, m.b, m.len), 8);
	cr_assert_eq(icmp.kind, ICMP_ECHO_REQUEST);
	cr_assert_eq(icmp.echo_id, 0x1234);
	cr_assert_eq(icmp.echo_seq, 7);
	cr_assert_eq(icmp.body, 8);
}

Test(icmp, echo_request_rfc4443_4_1)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_ECHO6);

	cr_assert_eq(wire_icmp_parse(&icmp, &ip, m.b, m.len), 8);
	cr_assert_eq(icmp.kind, ICMP_ECHO_REQUEST);
	cr_assert_eq(icmp.echo_id, 0xbeef);
	cr_assert_eq(icmp.echo_seq, 2);
}

Test(icmp, echo_reply_is_emitted_with_a_right_checksum)
{
	struct bytes want4 = hex("0000edf312340007 70696e6721");
	struct bytes want6 = hex("810078e9beef0002 736978");
	struct wire_icmp icmp = {.kind = ICMP_ECHO_REPLY, .echo_id = 0x1234, .echo_seq = 7};
	struct sk_addr a4 = addr("192.0.2.1"), a = addr("2001:db8::1"), b = addr("2001:db8::2");
	uint8_t p[16];

	cr_assert_eq(wire_icmp_emit(p, &icmp, false), ICMP_ECHO_LEN);
	memcpy(p + 8, "ping!", 5);
	wire_icmp_checksum(p, 13, &a4, &a4);
	cr_assert_arr_eq(p, want4.b, 13);
	icmp.echo_id = 0xbeef;
	icmp.echo_seq = 2;
	cr_assert_eq(wire_icmp_emit(p, &icmp, true), ICMP_ECHO_LEN);
	memcpy(p + 8, "six", 3);
	wire_icmp_checksum(p, 11, &a, &b);
	cr_assert_arr_eq(p, want6.b, 11);
}

Test(icmp, echo_types_by_family_rfc792_rfc4443)
{
	static const struct {
		enum wire_icmp_kind kind;
		bool v6;
		uint8_t type;
	} row[] = {
		{ICMP_ECHO_REQUEST, false, 8},
		{ICMP_ECHO_REPLY, false, 0},
		{ICMP_ECHO_REQUEST, true, 128},
		{ICMP_ECHO_REPLY, true, 129},
	};
	struct wire_icmp back;
	struct wire_ip ip4, ip6;
	struct bytes m;

	message(&ip4, F_ECHO4);
	message(&ip6, F_ECHO6);
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct wire_icmp icmp = {.kind = row[i].kind, .echo_id = 9, .echo_seq = 10};

		m.len = wire_icmp_emit(m.b, &icmp, row[i].v6);
		cr_assert_eq(m.b[0], row[i].type);
		cr_assert_eq(parse_altered(&back, row[i].v6 ? &ip6 : &ip4, &m), 8);
		cr_assert_eq(back.kind, row[i].kind);
		cr_assert_eq(back.echo_id, 9);
		cr_assert_eq(back.echo_seq, 10);
	}
}

Test(icmp, wrong_checksum_is_refused)
{
	static const char *const frame[] = {F_ECHO4, F_ECHO6, F_SOLICIT, F_TOO_BIG6};
	struct wire_icmp icmp;
	struct wire_ip ip;

	for (unsigned f = 0; f < sizeof(frame) / sizeof(frame[0]); f++) {
		struct bytes m = message(&ip, frame[f]);

		for (unsigned i = 0; i < m.len; i++) {
			m.b[i] ^= 0x10;
			cr_assert_eq(wire_icmp_parse(&icmp, &ip, m.b, m.len), -WIRE_ICMP_CHECKSUM,
				"frame %u byte %u", f, i);
			m.b[i] ^= 0x10;
		}
	}
}

Test(icmp, checksum_of_v6_covers_the_addresses_rfc4443_2_3)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_ECHO6);

	ip.dst.b[15] ^= 1;
	cr_assert_eq(wire_icmp_parse(&icmp, &ip, m.b, m.len), -WIRE_ICMP_CHECKSUM);
}

Test(icmp, short_messages_are_refused)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_ECHO4);

	for (size_t n = 0; n < 8; n++) {
		uint8_t *p = exact(&m, n);

		cr_assert_eq(wire_icmp_parse(&icmp, &ip, p, n), -WIRE_SHORT, "%zu bytes", n);
		free(p);
	}
}

Test(icmp, message_of_the_other_family_is_refused)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_ECHO4);

	ip.proto = IP_ICMP6;
	cr_assert_eq(wire_icmp_parse(&icmp, &ip, m.b, m.len), -WIRE_IP_PROTOCOL);
}

Test(icmp, fragmentation_needed_quotes_the_connection_rfc1191_4)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_FRAG_NEEDED4);

	cr_assert_eq(wire_icmp_parse(&icmp, &ip, m.b, m.len), 8);
	cr_assert_eq(icmp.kind, ICMP_TOO_BIG);
	cr_assert_eq(icmp.mtu, 1400);
	cr_assert(addr_is(&icmp.quote.src, "192.0.2.1"));
	cr_assert(addr_is(&icmp.quote.dst, "192.0.2.2"));
	cr_assert_eq(icmp.quote.proto, IP_TCP);
	cr_assert_eq(icmp.quote.sport, 0xc001);
	cr_assert_eq(icmp.quote.dport, 0x1234);
	cr_assert_eq(icmp.quote.seq, 0x01020304);
}

Test(icmp, port_unreachable_keeps_its_code_rfc792)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_FRAG_NEEDED4);

	m.b[1] = 3;
	cr_assert_eq(parse_altered(&icmp, &ip, &m), 8);
	cr_assert_eq(icmp.kind, ICMP_UNREACHABLE);
	cr_assert_eq(icmp.code, 3);
	cr_assert_eq(icmp.mtu, 0);
	cr_assert_eq(icmp.quote.sport, 0xc001);
}

Test(icmp, quotation_is_read_as_far_as_it_is_there)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_FRAG_NEEDED4);

	for (size_t n = 8; n <= 36; n++) {
		int want = n < 28 ? -WIRE_ICMP_HEADER : 8;

		m.len = n;
		cr_assert_eq(parse_altered(&icmp, &ip, &m), want, "%zu bytes", n);
		if (want == 8)
			cr_assert_eq(icmp.quote.sport, n < 36 ? 0 : 0xc001, "%zu bytes", n);
	}
	m.b[8] = 0x44; /* a quoted header of 16 bytes */
	cr_assert_eq(parse_altered(&icmp, &ip, &m), -WIRE_ICMP_HEADER);
	m.b[8] = 0x65;
	cr_assert_eq(parse_altered(&icmp, &ip, &m), -WIRE_ICMP_HEADER);
}

Test(icmp, quoted_later_fragment_has_no_ports)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_FRAG_NEEDED4);

	m.b[8 + 7] = 1;
	cr_assert_eq(parse_altered(&icmp, &ip, &m), 8);
	cr_assert_eq(icmp.quote.sport, 0);
	cr_assert_eq(icmp.quote.seq, 0);
}

Test(icmp, packet_too_big_quotes_the_connection_rfc4443_3_2)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_TOO_BIG6);

	cr_assert_eq(wire_icmp_parse(&icmp, &ip, m.b, m.len), 8);
	cr_assert_eq(icmp.kind, ICMP_TOO_BIG);
	cr_assert_eq(icmp.mtu, 1280);
	cr_assert(addr_is(&icmp.quote.src, "2001:db8::1"));
	cr_assert(addr_is(&icmp.quote.dst, "2001:db8::2"));
	cr_assert_eq(icmp.quote.proto, IP_TCP);
	cr_assert_eq(icmp.quote.dport, 0x1234);
	cr_assert_eq(icmp.quote.seq, 0x01020304);
	m.len = 8 + 39;
	cr_assert_eq(parse_altered(&icmp, &ip, &m), -WIRE_ICMP_HEADER);
	m.len = 8 + 47;
	cr_assert_eq(parse_altered(&icmp, &ip, &m), 8);
	cr_assert_eq(icmp.quote.dport, 0);
}

Test(icmp, ipv4_mapped_addresses_do_not_pass_for_ipv4)
{
	struct bytes mapped = hex("00000000000000000000ffffc0000201");
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m, bad;

	m = message(&ip, F_TOO_BIG6);
	for (unsigned at = 16; at <= 32; at += 16) {
		bad = m;
		memcpy(bad.b + at, mapped.b, 16);
		cr_assert_eq(parse_altered(&icmp, &ip, &bad), -WIRE_ICMP_HEADER, "at %u", at);
	}
	bad = message(&ip, F_SOLICIT);
	memcpy(bad.b + 8, mapped.b, 16);
	cr_assert_eq(parse_altered(&icmp, &ip, &bad), -WIRE_ICMP_HEADER);
}

Test(icmp, neighbor_solicitation_rfc4861_4_3)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_SOLICIT);
	struct bytes mac = hex("020000000001");
	uint8_t p[ICMP_ND_LEN];

	cr_assert_eq(wire_icmp_parse(&icmp, &ip, m.b, m.len), 24);
	cr_assert_eq(icmp.kind, ICMP_NEIGHBOR_SOLICIT);
	cr_assert(addr_is(&icmp.target, "2001:db8::2"));
	cr_assert(icmp.has_lladdr);
	cr_assert_arr_eq(icmp.lladdr, mac.b, 6);
	cr_assert_eq(wire_icmp_emit(p, &icmp, true), ICMP_ND_LEN);
	wire_icmp_checksum(p, sizeof(p), &ip.src, &ip.dst);
	cr_assert_arr_eq(p, m.b, m.len);
}

Test(icmp, neighbor_advertisement_rfc4861_4_4)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_ADVERT);
	uint8_t p[ICMP_ND_LEN];

	cr_assert_eq(wire_icmp_parse(&icmp, &ip, m.b, m.len), 24);
	cr_assert_eq(icmp.kind, ICMP_NEIGHBOR_ADVERT);
	cr_assert(icmp.solicited && icmp.override && !icmp.router);
	cr_assert(icmp.has_lladdr);
	cr_assert_eq(icmp.lladdr[5], 2);
	cr_assert_eq(wire_icmp_emit(p, &icmp, true), ICMP_ND_LEN);
	wire_icmp_checksum(p, sizeof(p), &ip.src, &ip.dst);
	cr_assert_arr_eq(p, m.b, m.len);
	m.b[4] = 0x80;
	cr_assert_eq(parse_altered(&icmp, &ip, &m), 24);
	cr_assert(!icmp.solicited && !icmp.override && icmp.router);
}

Test(icmp, neighbor_message_without_address_option)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_SOLICIT);
	uint8_t p[ICMP_ND_LEN];

	m.len = 24;
	cr_assert_eq(parse_altered(&icmp, &ip, &m), 24);
	cr_assert(!icmp.has_lladdr);
	cr_assert_eq(wire_icmp_emit(p, &icmp, true), 24);
}

/* Messages that RFC 4861 sections 7.1.1 and 7.1.2 make a receiver discard silently. */
Test(icmp, neighbor_message_validation_rfc4861_7_1)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_SOLICIT);
	struct bytes bad;

	ip.ttl = 254;
	cr_assert_eq(parse_altered(&icmp, &ip, &m), -WIRE_ICMP_HEADER, "hop limit");
	ip.ttl = 255;
	bad = m;
	bad.b[1] = 1;
	cr_assert_eq(parse_altered(&icmp, &ip, &bad), -WIRE_ICMP_HEADER, "code");
	for (bad = m, bad.len = 8; bad.len < 24; bad.len++)
		cr_assert_eq(parse_altered(&icmp, &ip, &bad), -WIRE_ICMP_HEADER, "length");
	bad = m;
	bad.b[8] = 0xff;
	cr_assert_eq(parse_altered(&icmp, &ip, &bad), -WIRE_ICMP_HEADER, "multicast target");
	bad = m;
	bad.b[25] = 0;
	cr_assert_eq(parse_altered(&icmp, &ip, &bad), -WIRE_ICMP_HEADER, "option of length 0");
	bad.b[25] = 2;
	cr_assert_eq(parse_altered(&icmp, &ip, &bad), -WIRE_ICMP_HEADER, "option cut off");
	ip.src = addr("::");
	cr_assert_eq(parse_altered(&icmp, &ip, &m), -WIRE_ICMP_HEADER, "address of nobody");
	m.len = 24;
	cr_assert_eq(parse_altered(&icmp, &ip, &m), 24, "duplicate address detection");
	m = message(&ip, F_ADVERT);
	ip.dst = addr("ff02::1");
	cr_assert_eq(parse_altered(&icmp, &ip, &m), -WIRE_ICMP_HEADER, "solicited by all");
}

Test(icmp, router_advertisement_rfc4861_6_1_2)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_ROUTER);

	cr_assert_eq(wire_icmp_parse(&icmp, &ip, m.b, m.len), 16);
	cr_assert_eq(icmp.kind, ICMP_ROUTER_ADVERT);
	cr_assert(icmp.router && icmp.has_lladdr);
	cr_assert_eq(icmp.lladdr[5], 3);
	m.len = 15;
	cr_assert_eq(parse_altered(&icmp, &ip, &m), -WIRE_ICMP_HEADER);
	m.len = 16;
	cr_assert_eq(parse_altered(&icmp, &ip, &m), 16);
	cr_assert(!icmp.has_lladdr);
	ip.ttl = 64;
	cr_assert_eq(parse_altered(&icmp, &ip, &m), -WIRE_ICMP_HEADER);
	ip.ttl = 255;
	ip.src = addr("2001:db8::1");
	cr_assert_eq(parse_altered(&icmp, &ip, &m), -WIRE_ICMP_HEADER, "not link-local");
}

Test(icmp, other_types_are_distinguished_and_not_refused)
{
	struct wire_icmp icmp;
	struct wire_ip ip;
	struct bytes m = message(&ip, F_ECHO4);

	m.b[0] = 13; /* timestamp */
	cr_assert_eq(parse_altered(&icmp, &ip, &m), 8);
	cr_assert_eq(icmp.kind, ICMP_OTHER);
	cr_assert_eq(icmp.type, 13);
	m = message(&ip, F_ECHO6);
	m.b[0] = 143; /* multicast listener report */
	cr_assert_eq(parse_altered(&icmp, &ip, &m), 8);
	cr_assert_eq(icmp.kind, ICMP_OTHER);
}
