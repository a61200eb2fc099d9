/* SPDX-License-Identifier: BSD-3-Clause */
/* Falcon packets, compared with bytes from the figures of the Falcon Transport Protocol 0.9,
 * section 7. */
#include "vector.h"

#include "../../../lib/wire/falcon.h"

/* Checks the fields that all vectors have in common. */
static void
check_base(const struct wire_falcon *f, uint8_t type, bool ar)
{
	cr_assert_eq(f->type, type);
	cr_assert_eq(f->cid, 0xabcdef);
	cr_assert_eq(f->function, 0x123456);
	cr_assert_eq(f->proto, FALCON_RDMA);
	cr_assert_eq(f->ar, ar);
	cr_assert_eq(f->dbpsn, 0x01020304);
	cr_assert_eq(f->rbpsn, 0x11121314);
	cr_assert_eq(f->psn, 0x21222324);
	cr_assert_eq(f->rsn, 0x31323334);
}

/* Checks that each truncation is refused; a truncated header is WIRE_SHORT. */
static void
check_short(const struct bytes *v, size_t hdr)
{
	struct wire_falcon f;

	for (size_t n = 0; n < hdr; n++) {
		uint8_t *p = exact(v, n);

		cr_assert_eq(wire_falcon_parse(&f, p, n), -WIRE_SHORT, "%zu bytes", n);
		free(p);
	}
}

Test(falcon, pull_request_falcon_7_3)
{
	struct bytes v =
		hex("10abcdef 12345640 01020304 11121314 21222324 31323334 0000100c 00000000");
	struct wire_falcon f;

	check_short(&v, 32);
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len), FALCON_PULL_REQUEST_LEN);
	check_base(&f, FALCON_PULL_REQUEST, false);
	cr_assert_eq(f.request_len, 4108);
	ASSERT_EMITS(wire_falcon_emit, f, v);
	/* the ULP's header follows: any number of bytes */
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len + 60), FALCON_PULL_REQUEST_LEN);
}

Test(falcon, pull_data_falcon_7_4)
{
	struct bytes v = hex("10abcdef 12345646 01020304 11121314 21222324 31323334");
	struct wire_falcon f;

	ASSERT_REFUSES_SHORT(wire_falcon_parse, f, v, 24, WIRE_SHORT);
	check_base(&f, FALCON_PULL_DATA, false);
	ASSERT_EMITS(wire_falcon_emit, f, v);
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len + 100), FALCON_PULL_DATA_LEN);
}

Test(falcon, push_data_falcon_7_5)
{
	struct bytes v = hex("10abcdef 1234564b 01020304 11121314 21222324 31323334 0000101c");
	struct wire_falcon f;

	check_short(&v, 28);
	/* the parser does not read the payload */
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len + 4124), FALCON_PUSH_DATA_LEN);
	check_base(&f, FALCON_PUSH_DATA, true);
	cr_assert_eq(f.request_len, 4124);
	ASSERT_EMITS(wire_falcon_emit, f, v);
}

Test(falcon, push_data_payload_equals_its_request_length_falcon_7_5)
{
	struct bytes v = hex("10abcdef 1234564b 01020304 11121314 21222324 31323334 0000101c");
	struct wire_falcon f;

	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len + 4123), -WIRE_FALCON_LENGTH);
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len + 4125), -WIRE_FALCON_LENGTH);
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len), -WIRE_FALCON_LENGTH);
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len + 4124 + 65536), -WIRE_FALCON_LENGTH);
}

Test(falcon, resync_falcon_7_6)
{
	struct bytes v =
		hex("10abcdef 1234564d 01020304 11121314 21222324 31323334 01500000 00000000");
	struct wire_falcon f;

	ASSERT_REFUSES_SHORT(wire_falcon_parse, f, v, 32, WIRE_SHORT);
	check_base(&f, FALCON_RESYNC, true);
	cr_assert_eq(f.resync_code, FALCON_RESYNC_CIE);
	cr_assert_eq(f.resync_type, FALCON_PUSH_DATA);
	cr_assert_eq(f.vendor, 0);
	ASSERT_EMITS(wire_falcon_emit, f, v);
	v.b[31] = 0x7e; /* the vendor's byte */
	v.b[24] = 0xff;
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len), FALCON_RESYNC_LEN);
	cr_assert_eq(f.resync_code, 0xff);
	cr_assert_eq(f.vendor, 0x7e);
	ASSERT_EMITS(wire_falcon_emit, f, v);
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len + 1), -WIRE_FALCON_LENGTH);
}

Test(falcon, resync_replaces_a_pull_or_a_push_falcon_7_6)
{
	struct bytes v =
		hex("10abcdef 1234564d 01020304 11121314 21222324 31323334 01500000 00000000");
	struct wire_falcon f;

	for (unsigned type = 0; type < 16; type++) {
		bool fine = type == FALCON_PULL_REQUEST || type == FALCON_PULL_DATA ||
			    type == FALCON_PUSH_DATA;

		v.b[25] = (uint8_t)(type << 4);
		cr_assert_eq(wire_falcon_parse(&f, v.b, v.len),
			fine ? FALCON_RESYNC_LEN : -WIRE_FALCON_RESYNC, "type %u", type);
	}
}

Test(falcon, back_falcon_7_7_1)
{
	struct bytes v =
		hex("10abcdef 00000012 0000012c 00000064 a0a0a0a0 b0b0b0b0 37a46800 00048d14");
	struct wire_falcon f;

	ASSERT_REFUSES_SHORT(wire_falcon_parse, f, v, 32, WIRE_SHORT);
	cr_assert_eq(f.type, FALCON_BACK);
	cr_assert_eq(f.cid, 0xabcdef);
	cr_assert_eq(f.dbpsn, 300);
	cr_assert_eq(f.rbpsn, 100);
	cr_assert_eq(f.t1, 0xa0a0a0a0);
	cr_assert_eq(f.t2, 0xb0b0b0b0);
	cr_assert_eq(f.hops, 3);
	cr_assert_eq(f.rx_level, 15);
	cr_assert_eq(f.ecn, 0x1234);
	cr_assert_eq(f.rue, 0x12345);
	cr_assert(!f.own_request && !f.own_data);
	ASSERT_EMITS(wire_falcon_emit, f, v);
	v.b[31] |= 1;
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len), FALCON_BACK_LEN);
	cr_assert(f.own_request && !f.own_data, "bit 0 is the request window's");
	ASSERT_EMITS(wire_falcon_emit, f, v);
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len + 1), -WIRE_FALCON_LENGTH);
}

Test(falcon, eack_falcon_7_7_2)
{
	struct bytes v =
		hex("10abcdef 00000014 0000012c 00000064 a0a0a0a0 b0b0b0b0 37a46800 00048d16"
		    "00000000 00000000 00000000 00000000 00000000 00000000 00000000 0000000e"
		    "00000000 00000002");
	struct wire_falcon f;

	ASSERT_REFUSES_SHORT(wire_falcon_parse, f, v, 72, WIRE_SHORT);
	cr_assert_eq(f.type, FALCON_EACK);
	cr_assert(f.own_data && !f.own_request);
	cr_assert_eq(f.data_ack[0] | f.data_ack[1] | f.data_rx[1], 0);
	cr_assert_eq(f.data_rx[0], 0xe);
	cr_assert_eq(f.req_map, 2);
	ASSERT_EMITS(wire_falcon_emit, f, v);
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len + 1), -WIRE_FALCON_LENGTH);
}

Test(falcon, eack_bitmaps_have_their_most_significant_word_first_falcon_7_7_2)
{
	struct bytes v =
		hex("10000001 00000014 00000000 00000000 00000000 00000000 00000000 00000000"
		    "80000000 00000001 00000002 00000004 40000000 00000010 00000020 00000040"
		    "00000100 00000200");
	struct wire_falcon f;

	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len), FALCON_EACK_LEN);
	cr_assert_eq(f.data_ack[1], 0x8000000000000001, "PSN base + 127 and base + 64");
	cr_assert_eq(f.data_ack[0], 0x0000000200000004);
	cr_assert_eq(f.data_rx[1], 0x4000000000000010);
	cr_assert_eq(f.data_rx[0], 0x0000002000000040);
	cr_assert_eq(f.req_map, 0x0000010000000200);
	ASSERT_EMITS(wire_falcon_emit, f, v);
}

Test(falcon, nack_rnr_falcon_7_8)
{
	struct bytes v =
		hex("10abcdef 00000010 0000012c 00000064 a0a0a0a0 b0b0b0b0 37a46800 00012345"
		    "0000012d 02070000");
	struct wire_falcon f;

	ASSERT_REFUSES_SHORT(wire_falcon_parse, f, v, 40, WIRE_SHORT);
	cr_assert_eq(f.type, FALCON_NACK);
	cr_assert_eq(f.dbpsn, 300);
	cr_assert_eq(f.rbpsn, 100);
	cr_assert_eq(f.rue, 0x12345);
	cr_assert_eq(f.psn, 301);
	cr_assert_eq(f.nack_code, FALCON_NACK_RNR);
	cr_assert_eq(f.rnr_timeout, 7);
	cr_assert(!f.nack_request);
	cr_assert_eq(f.ulp_code, 0);
	ASSERT_EMITS(wire_falcon_emit, f, v);
	v.b[38] = 0x80;
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len), FALCON_NACK_LEN);
	cr_assert(f.nack_request);
	ASSERT_EMITS(wire_falcon_emit, f, v);
	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len + 1), -WIRE_FALCON_LENGTH);
}

Test(falcon, nack_complete_in_error_falcon_7_8)
{
	struct bytes v =
		hex("10abcdef 00000010 0000012c 00000064 a0a0a0a0 b0b0b0b0 37a46800 00012345"
		    "0000012d 0600005a");
	struct wire_falcon f;

	cr_assert_eq(wire_falcon_parse(&f, v.b, v.len), FALCON_NACK_LEN);
	cr_assert_eq(f.nack_code, FALCON_NACK_CIE);
	cr_assert_eq(f.ulp_code, 0x5a);
	ASSERT_EMITS(wire_falcon_emit, f, v);
}

Test(falcon, reserved_packet_types_are_refused_falcon_7_2)
{
	struct bytes v =
		hex("10abcdef 12345640 01020304 11121314 21222324 31323334 0000100c 00000000"
		    "00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000"
		    "00000000 00000000");
	static const uint8_t known[] = {0, 3, 5, 6, 8, 9, 10};
	struct wire_falcon f;

	for (unsigned type = 0; type < 16; type++) {
		bool reserved = memchr(known, (int)type, sizeof(known)) == NULL;

		v.b[7] = (uint8_t)(0x40 | type << 1);
		cr_assert_eq(wire_falcon_parse(&f, v.b, v.len) == -WIRE_FALCON_TYPE, reserved,
			"type %u", type);
		cr_assert_eq(wire_falcon_len((uint8_t)type) == 0, reserved);
	}
	cr_assert_eq(wire_falcon_len(16), 0);
	cr_assert_eq(wire_falcon_len(255), 0);
}

Test(falcon, reserved_protocol_types_are_refused_falcon_7_2)
{
	struct bytes v = hex("10abcdef 12345646 01020304 11121314 21222324 31323334");
	struct wire_falcon f;

	for (unsigned proto = 0; proto < 8; proto++) {
		v.b[7] = (uint8_t)(proto << 5 | FALCON_PULL_DATA << 1);
		cr_assert_eq(wire_falcon_parse(&f, v.b, v.len),
			proto == 2 || proto == 3 ? FALCON_PULL_DATA_LEN : -WIRE_FALCON_PROTOCOL,
			"protocol %u", proto);
	}
}

Test(falcon, version_is_1_in_the_upper_nibble_falcon_7_2)
{
	struct bytes v = hex("10abcdef 12345646 01020304 11121314 21222324 31323334");
	struct wire_falcon f;

	for (unsigned byte = 0; byte < 256; byte++) {
		v.b[0] = (uint8_t)byte;
		cr_assert_eq(wire_falcon_parse(&f, v.b, v.len),
			byte >> 4 == 1 ? FALCON_PULL_DATA_LEN : -WIRE_FALCON_VERSION);
		cr_assert_eq(wire_falcon_cid(v.b, v.len),
			byte >> 4 == 1 ? 0xabcdef : -WIRE_FALCON_VERSION);
	}
	v.b[0] = 0x10;
	for (size_t n = 0; n <= 4; n++) {
		uint8_t *p = exact(&v, n);

		cr_assert_eq(wire_falcon_cid(p, n), n < 4 ? -WIRE_SHORT : 0xabcdef);
		free(p);
	}
}

Test(falcon, emit_confines_each_field_to_its_bits)
{
	struct bytes base = hex("1f000000 ff000040 00000000 00000000 00000000 00000000");
	struct bytes nack =
		hex("10000000 00000010 00000000 00000000 00000000 00000000 fffffe00 001fffff"
		    "00000000 001f0000");
	struct wire_falcon f = {.cid = 0xff000000, .proto = FALCON_RDMA, .function = 0xff000000};
	uint8_t out[FALCON_MAX];

	cr_assert_eq(wire_falcon_emit(out, &f), FALCON_PULL_REQUEST_LEN);
	base.b[0] = 0x10; /* neither the CID nor the function extends beyond its 24 bits */
	base.b[4] = 0;
	cr_assert_arr_eq(out, base.b, base.len);
	f = (struct wire_falcon){.type = FALCON_NACK,
		.hops = 0xff,
		.rx_level = 0xff,
		.ecn = 0xffff,
		.rue = UINT32_MAX,
		.rnr_timeout = 0xff};
	ASSERT_EMITS(wire_falcon_emit, f, nack);
}

Test(falcon, rnr_timeout_table_falcon_7_8)
{
	static const double ms[FALCON_RNR_CODES] = {655.36, .01, .02, .03, .04, .06, .08, .12, .16,
		.24, .32, .48, .64, .96, 1.28, 1.92, 2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48,
		30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};

	for (uint8_t code = 0; code < FALCON_RNR_CODES; code++) {
		uint64_t ns = (uint64_t)(ms[code] * 1e6 + .5);

		cr_assert_eq(wire_rnr_ns(code), ns, "code %u", code);
		cr_assert_eq(wire_rnr_code(ns), code, "code %u", code);
		cr_assert_eq(wire_rnr_code(ns - 1), code, "rounded up to code %u", code);
	}
	cr_assert_eq(wire_rnr_ns(32 + 5), wire_rnr_ns(5));
	cr_assert_eq(wire_rnr_code(0), 1);
	cr_assert_eq(wire_rnr_code(UINT64_MAX), 0, "the longest there is");
}

Test(falcon, time_unit_is_131_072_ns_falcon_10_1)
{
	cr_assert_eq(wire_falcon_ticks(0), 0);
	cr_assert_eq(wire_falcon_ticks(131), 0);
	cr_assert_eq(wire_falcon_ticks(132), 1);
	cr_assert_eq(wire_falcon_ticks(131072), 1000);
	cr_assert_eq(wire_falcon_ticks(131071), 999);
	for (uint64_t ns = 1; ns < UINT64_MAX / 3; ns = ns * 3 + 1)
		cr_assert_eq(wire_falcon_ticks(ns), (uint64_t)((__uint128_t)ns * 1000 >> 17));
	cr_assert_eq(
		wire_falcon_ticks(UINT64_MAX), (uint64_t)((__uint128_t)UINT64_MAX * 1000 >> 17));
}

Test(falcon, words_of_a_packet_are_the_bytes_that_emit_writes)
{
	static const uint8_t types[] = {FALCON_PUSH_DATA, FALCON_PULL_REQUEST, FALCON_PULL_DATA};
	uint64_t rng = 1, word[4], psp[2], udp;
	uint8_t bytes[FALCON_MAX];

	for (unsigned i = 0; i < 1000; i++) {
		struct wire_falcon f = {.type = types[i % 3], .ar = i & 1};
		struct wire_psp p = {.version = i & 15, .sample = i & 16, .drop = i & 32};
		struct wire_udp u = {.dport = PSP_UDP_PORT};

		rng = rng * 6364136223846793005ull + 1442695040888963407ull;
		f.proto = i & 2 ? FALCON_RDMA : FALCON_NVME;
		f.cid = rng & FALCON_CID_MAX;
		f.function = rng >> 24 & 0xffffff;
		f.dbpsn = (uint32_t)(rng >> 7);
		f.rbpsn = (uint32_t)(rng >> 13);
		f.psn = (uint32_t)(rng >> 17);
		f.rsn = (uint32_t)(rng >> 23);
		f.request_len = (uint16_t)(rng >> 31);
		wire_falcon_words(word, &f);
		cr_assert_eq(wire_falcon_emit(bytes, &f), wire_falcon_len(f.type));
		cr_assert_arr_eq((uint8_t *)word, bytes, wire_falcon_len(f.type));
		cr_assert_eq((uint32_t)be64toh(word[3]), 0);
		p.next = (uint8_t)(rng >> 40);
		p.crypt_offset = rng >> 33 & PSP_CRYPT_MAX;
		p.spi = (uint32_t)rng;
		p.iv = rng ^ rng << 20;
		wire_psp_words(psp, &p);
		cr_assert_eq(wire_psp_emit(bytes, &p), PSP_LEN);
		cr_assert_arr_eq((uint8_t *)psp, bytes, PSP_LEN);
		u.sport = (uint16_t)(rng >> 48);
		u.payload_len = (uint16_t)(rng >> 8);
		udp = wire_udp_word(u.sport, u.dport, u.payload_len);
		wire_udp_emit(bytes, &u);
		cr_assert_arr_eq((uint8_t *)&udp, bytes, UDP_LEN);
	}
}

Test(falcon, sum_of_words_is_the_internet_checksum_rfc_1071)
{
	uint64_t rng = 1, word[8] = {0}, sum;

	for (unsigned i = 0; i < 1000; i++) {
		sum = i;
		for (unsigned k = 0; k < 8; k++) {
			rng = rng * 6364136223846793005ull + 1442695040888963407ull;
			word[k] = i % 3 == 0 ? UINT64_MAX - (rng >> 62) : rng;
			sum = wire_sum_word(sum, word[k]);
		}
		cr_assert_eq(
			wire_sum_word_fold(sum), wire_sum_fold(wire_sum(i, word, sizeof(word))));
	}
}
