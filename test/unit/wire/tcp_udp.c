/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP with its options, and UDP. */
#include "../../../lib/wire/wire_priv.h"
#include "vector.h"

#define BARE "c001 1234 01020304 a1b2c3d4 5010 7210 0000 0000"

Test(tcp, header_without_options_rfc9293_3_1)
{
	struct bytes v = hex(BARE);
	struct wire_tcp tcp;

	ASSERT_REFUSES_SHORT(wire_tcp_parse, tcp, v, 20, WIRE_SHORT);
	cr_assert_eq(tcp.sport, 0xc001);
	cr_assert_eq(tcp.dport, 0x1234);
	cr_assert_eq(tcp.seq, 0x01020304);
	cr_assert_eq(tcp.ack, 0xa1b2c3d4);
	cr_assert_eq(tcp.flags, TCP_ACK);
	cr_assert_eq(tcp.hdr_len, 20);
	cr_assert_eq(tcp.window, 0x7210);
	cr_assert_eq(tcp.mss, 0);
	cr_assert_eq(tcp.wscale, TCP_NO_WSCALE);
	cr_assert(!tcp.sack_ok && !tcp.ts);
	cr_assert_eq(tcp.nsack, 0);
	ASSERT_EMITS(wire_tcp_emit, tcp, v);
}

Test(tcp, each_flag_has_its_bit_rfc9293_3_1)
{
	static const uint8_t flags[] = {
		TCP_FIN, TCP_SYN, TCP_RST, TCP_PSH, TCP_ACK, TCP_URG, TCP_ECE, TCP_CWR};
	struct bytes v = hex(BARE);
	struct wire_tcp tcp;

	for (unsigned i = 0; i < sizeof(flags); i++) {
		v.b[13] = (uint8_t)(1 << i);
		cr_assert_eq(wire_tcp_parse(&tcp, v.b, v.len), 20);
		cr_assert_eq(tcp.flags, flags[i]);
		ASSERT_EMITS(wire_tcp_emit, tcp, v);
	}
}

Test(tcp, data_offset_that_cannot_be_is_refused)
{
	struct bytes v = hex(BARE "01010101");
	struct wire_tcp tcp;

	for (unsigned offset = 0; offset < 16; offset++) {
		int want = offset == 5 ? 20 : offset == 6 ? 24 : -WIRE_TCP_HEADER;

		v.b[12] = (uint8_t)(offset << 4);
		cr_assert_eq(wire_tcp_parse(&tcp, v.b, v.len), want, "offset %u", offset);
	}
}

/* Returns a header with the options `text`, a multiple of 4 bytes. */
static struct bytes
with_options(const char *text)
{
	struct bytes v = hex(BARE), o = hex(text);

	memcpy(v.b + v.len, o.b, o.len);
	v.len += o.len;
	v.b[12] = (uint8_t)(v.len / 4 << 4);
	return v;
}

static int
parse_with(struct wire_tcp *tcp, const char *text)
{
	struct bytes v = with_options(text);
	uint8_t *p = exact(&v, v.len);
	int r = wire_tcp_parse(tcp, p, v.len);

	free(p);
	return r;
}

Test(tcp, syn_options_rfc9293_3_7_1_rfc7323_rfc2018)
{
	struct bytes v = with_options("020405b4 0402080a0000000100000002 01030307");
	struct wire_tcp tcp;

	cr_assert_eq(wire_tcp_parse(&tcp, v.b, v.len), 40);
	cr_assert_eq(tcp.mss, 1460);
	cr_assert(tcp.sack_ok);
	cr_assert(tcp.ts);
	cr_assert_eq(tcp.ts_val, 1);
	cr_assert_eq(tcp.ts_ecr, 2);
	cr_assert_eq(tcp.wscale, 7);
	ASSERT_EMITS(wire_tcp_emit, tcp, v);
}

Test(tcp, options_stand_in_any_order_and_unknown_ones_are_passed_over)
{
	struct wire_tcp tcp;

	/* TCP Fast Open cookie (34), window scale, an MD5 option (19), MSS, end of options, and
	 * bytes behind it. */
	cr_assert_eq(
		parse_with(&tcp, "2206aabbccdd 030305 1304ffff 02042328 00 ffffff 010101"), 44);
	cr_assert_eq(tcp.mss, 9000);
	cr_assert_eq(tcp.wscale, 5);
	cr_assert(!tcp.ts && !tcp.sack_ok);
}

Test(tcp, timestamps_with_and_without_alignment_rfc7323_3_2)
{
	struct wire_tcp tcp;

	cr_assert_eq(parse_with(&tcp, "0101080a1122334455667788"), 32);
	cr_assert(tcp.ts);
	cr_assert_eq(tcp.ts_val, 0x11223344);
	cr_assert_eq(tcp.ts_ecr, 0x55667788);
	cr_assert_eq(parse_with(&tcp, "080a11223344556677880000"), 32);
	cr_assert(tcp.ts);
	cr_assert_eq(tcp.ts_val, 0x11223344);
	cr_assert_eq(tcp.ts_ecr, 0x55667788);
}

Test(tcp, only_timestamps_are_emitted_aligned_rfc7323_appendix_a)
{
	struct bytes v = with_options("0101080a1122334455667788");
	struct wire_tcp tcp;

	cr_assert_eq(wire_tcp_parse(&tcp, v.b, v.len), 32);
	ASSERT_EMITS(wire_tcp_emit, tcp, v);
}

Test(tcp, sack_permitted_alone_rfc2018_2)
{
	struct bytes v = with_options("04020101");
	struct wire_tcp tcp;

	cr_assert_eq(wire_tcp_parse(&tcp, v.b, v.len), 24);
	cr_assert(tcp.sack_ok);
	ASSERT_EMITS(wire_tcp_emit, tcp, v);
}

Test(tcp, sack_blocks_rfc2018_3)
{
	struct bytes v = with_options("01010522 0000000a00000014 0000001e00000028 fffffff000000005"
				      "8000000080000001");
	struct wire_tcp tcp;

	cr_assert_eq(wire_tcp_parse(&tcp, v.b, v.len), 56);
	cr_assert_eq(tcp.nsack, 4);
	cr_assert_eq(tcp.sack[0].left, 10);
	cr_assert_eq(tcp.sack[0].right, 20);
	cr_assert_eq(tcp.sack[2].left, 0xfffffff0);
	cr_assert_eq(tcp.sack[2].right, 5);
	cr_assert_eq(tcp.sack[3].right, 0x80000001);
	ASSERT_EMITS(wire_tcp_emit, tcp, v);
}

Test(tcp, with_timestamps_three_sack_blocks_fit_rfc2018_3)
{
	struct bytes v = with_options("0101080a1122334455667788 0101051a 0000000a00000014"
				      "0000001e00000028 fffffff000000005");
	struct wire_tcp tcp;

	cr_assert_eq(wire_tcp_parse(&tcp, v.b, v.len), 60);
	cr_assert_eq(tcp.nsack, 3);
	tcp.nsack = 4;
	tcp.sack[3] = (struct wire_sack){1, 2};
	ASSERT_EMITS(wire_tcp_emit, tcp, v);
}

Test(tcp, behind_the_options_of_a_syn_two_sack_blocks_fit)
{
	struct bytes want = with_options("020405b4 0402080a0000000100000002 01030307"
					 "01010512 0000000a00000014 0000001e00000028");
	struct wire_tcp tcp;

	cr_assert_eq(wire_tcp_parse(&tcp, want.b, want.len), 60);
	tcp.nsack = 3;
	tcp.sack[2] = (struct wire_sack){1, 2};
	ASSERT_EMITS(wire_tcp_emit, tcp, want);
}

Test(tcp, window_scale_above_14_counts_as_14_rfc7323_2_3)
{
	struct wire_tcp tcp;

	cr_assert_eq(parse_with(&tcp, "0103030e"), 24);
	cr_assert_eq(tcp.wscale, 14);
	cr_assert_eq(parse_with(&tcp, "0103030f"), 24);
	cr_assert_eq(tcp.wscale, 14);
	cr_assert_eq(parse_with(&tcp, "010303ff"), 24);
	cr_assert_eq(tcp.wscale, 14);
}

Test(tcp, option_lengths_that_cannot_be_are_refused_rfc9293_must_7)
{
	static const char *const bad[] = {
		"ff000000",                     /* length 0 */
		"ff010000",                     /* length 1 */
		"ff050000",                     /* beyond the header */
		"01010102",                     /* no length byte */
		"02030000",                     /* MSS */
		"0205000001010101", "03020000", /* window scale */
		"03040000", "04030000",         /* SACK permitted */
		"05020000",                     /* no SACK block */
		"0509000000000000 01010101", "050b000000000000 0000000001010101",
		"0809000000000000 00010101", /* timestamps */
	};
	struct wire_tcp tcp;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(parse_with(&tcp, bad[i]), -WIRE_TCP_OPTION, "%s", bad[i]);
}

Test(tcp, option_cut_off_at_each_byte_is_refused)
{
	struct bytes o = hex("020405b4 0402080a0000000100000002 01030307");
	struct wire_tcp tcp;

	/* The kind is the last byte, or 2 or 3 bytes before the end, of a header of 24 bytes. */
	for (unsigned left = 1; left < 4; left++) {
		struct bytes v = with_options("01010101");
		uint8_t *p;

		memcpy(v.b + 24 - left, o.b, left);
		p = exact(&v, v.len);
		cr_assert_eq(wire_tcp_parse(&tcp, p, v.len), -WIRE_TCP_OPTION, "%u", left);
		free(p);
	}
}

Test(udp, header_rfc768)
{
	struct bytes v = hex("1000 2000 000b 8771 616263");
	uint8_t stored[2];
	struct wire_udp udp;

	for (size_t n = 0; n <= v.len; n++) {
		uint8_t *p = exact(&v, n);
		int want = n < 8 ? -WIRE_SHORT : n < 11 ? -WIRE_UDP_HEADER : 8;

		cr_assert_eq(wire_udp_parse_part(&udp, p, n, n), want, "%zu bytes", n);
		free(p);
	}
	cr_assert_eq(udp.sport, 0x1000);
	cr_assert_eq(udp.dport, 0x2000);
	cr_assert_eq(udp.payload_len, 3);
	memcpy(stored, &udp.checksum, 2);
	cr_assert_eq(stored[0], 0x87);
	cr_assert_eq(stored[1], 0x71);
	v.len = 8;
	ASSERT_EMITS(wire_udp_emit, udp, v);
}

Test(udp, length_below_the_header_is_refused_rfc768)
{
	struct bytes v = hex("1000 2000 0007 0000 616263");
	struct wire_udp udp;

	cr_assert_eq(wire_udp_parse_part(&udp, v.b, v.len, v.len), -WIRE_UDP_HEADER);
	v.b[5] = 0;
	cr_assert_eq(wire_udp_parse_part(&udp, v.b, v.len, v.len), -WIRE_UDP_HEADER);
	v.b[5] = 8;
	cr_assert_eq(wire_udp_parse_part(&udp, v.b, v.len, v.len), 8);
	cr_assert_eq(udp.payload_len, 0);
}

/* Returns the checksum that the field of the datagram must have, if it is 0, or 0 if it is correct.
 */
static uint16_t
udp_sum(const struct bytes *v, const struct sk_addr *src, const struct sk_addr *dst)
{
	uint32_t len = (uint32_t)v->len;

	return wire_sum_fold(wire_sum(wire_pseudo_sum(src, dst, IP_UDP, len), v->b, len));
}

/* 2001:db8::1 to 2001:db8::2, and 192.0.2.1 to 192.0.2.2; the sums were computed by hand. */
static void
check_sums(const char *src, const char *dst, const char *packet)
{
	struct bytes v = hex(packet), bare = v;
	struct sk_addr s = addr(src), d = addr(dst);
	uint16_t sum;

	cr_assert_eq(udp_sum(&v, &s, &d), 0);
	memset(bare.b + UDP_CKSUM_OFFSET, 0, sizeof(sum));
	sum = udp_sum(&bare, &s, &d);
	cr_assert_arr_eq(v.b + UDP_CKSUM_OFFSET, &sum, sizeof(sum));
	for (size_t bit = 0; bit < v.len * 8; bit++) {
		v.b[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		cr_assert_neq(udp_sum(&v, &s, &d), 0, "bit %zu", bit);
		v.b[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
	}
}

Test(udp, checksum_over_pseudo_header_header_and_payload_rfc768_rfc8200_8_1)
{
	/* c000+0201 + c000+0202 + 0011+000b + 1234+03e8+000b + 0102+0300 is 9e49 with its carry */
	check_sums("192.0.2.1", "192.0.2.2", "1234 03e8 000b 61b6 010203");
	check_sums("2001:db8::1", "2001:db8::2", "1234 03e8 000b 8a45 010203");
}
