/* SPDX-License-Identifier: BSD-3-Clause */
/* MPA start-up frames, markers, and the fields around a ULPDU. */
#include "vector.h"

#include "../../../lib/base/crc32c.h"

#define REQ "4d50412049442052657120 4672616d65"
#define REP "4d50412049442052657020 4672616d65"

Test(mpa, request_frame_rfc5044_7_1_1)
{
	struct bytes v = hex(REQ "40 01 0004");
	struct wire_mpa_startup s;

	ASSERT_REFUSES_SHORT(wire_mpa_startup_parse, s, v, 20, WIRE_SHORT);
	cr_assert(!s.reply && !s.markers && s.crc && !s.reject && !s.enhanced);
	cr_assert_eq(s.revision, 1);
	cr_assert_eq(s.private_len, 4);
	ASSERT_EMITS(wire_mpa_startup_emit, s, v);
}

Test(mpa, reply_frame_rfc6581_6)
{
	struct bytes v = hex(REP "f0 02 0200");
	struct wire_mpa_startup s;

	ASSERT_REFUSES_SHORT(wire_mpa_startup_parse, s, v, 20, WIRE_SHORT);
	cr_assert(s.reply && s.markers && s.crc && s.reject && s.enhanced);
	cr_assert_eq(s.revision, 2);
	cr_assert_eq(s.private_len, 512);
	ASSERT_EMITS(wire_mpa_startup_emit, s, v);
}

Test(mpa, each_flag_has_its_bit_rfc5044_7_1_1)
{
	struct bytes v = hex(REQ "00 01 0000");
	struct wire_mpa_startup s;

	for (unsigned bit = 0; bit < 8; bit++) {
		v.b[16] = (uint8_t)(1 << bit);
		cr_assert_eq(wire_mpa_startup_parse(&s, v.b, v.len), 20);
		cr_assert_eq(s.markers, bit == 7);
		cr_assert_eq(s.crc, bit == 6);
		cr_assert_eq(s.reject, bit == 5);
		cr_assert_eq(s.enhanced, bit == 4);
		cr_assert_eq(s.reserved, v.b[16] & 0x0f);
	}
}

Test(mpa, reserved_bits_are_sent_as_zero_rfc5044_7_1_1)
{
	struct bytes v = hex(REQ "40 01 0000");
	struct wire_mpa_startup s = {.crc = true, .revision = 1, .reserved = 0xf};

	ASSERT_EMITS(wire_mpa_startup_emit, s, v);
}

Test(mpa, each_byte_of_the_key_counts_rfc5044_7_1_1)
{
	static const char *const key[] = {REQ, REP};
	struct wire_mpa_startup s;

	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < 16; i++) {
			struct bytes v = hex(key[k]);

			v.len = 20;
			v.b[i] ^= 0x20;
			cr_assert_eq(wire_mpa_startup_parse(&s, v.b, v.len), -WIRE_MPA_KEY,
				"key %u byte %u", k, i);
		}
}

Test(mpa, private_data_above_512_bytes_is_refused_rfc5044_7_1_1)
{
	struct bytes v = hex(REQ "00 01 0201");
	struct wire_mpa_startup s;

	cr_assert_eq(wire_mpa_startup_parse(&s, v.b, v.len), -WIRE_MPA_LENGTH);
	v.b[18] = 0xff;
	cr_assert_eq(wire_mpa_startup_parse(&s, v.b, v.len), -WIRE_MPA_LENGTH);
}

Test(mpa, ird_and_ord_rfc6581_9)
{
	struct bytes v = hex("8001 4002");
	struct wire_mpa_ird_ord w;

	ASSERT_REFUSES_SHORT(wire_mpa_ird_ord_parse, w, v, 4, WIRE_SHORT);
	cr_assert(w.a && !w.b && !w.c && w.d);
	cr_assert_eq(w.ird, 1);
	cr_assert_eq(w.ord, 2);
	ASSERT_EMITS(wire_mpa_ird_ord_emit, w, v);
	v = hex("7fff bffe");
	cr_assert_eq(wire_mpa_ird_ord_parse(&w, v.b, v.len), 4);
	cr_assert(!w.a && w.b && w.c && !w.d);
	cr_assert_eq(w.ird, 0x3fff);
	cr_assert_eq(w.ord, 0x3ffe);
	ASSERT_EMITS(wire_mpa_ird_ord_emit, w, v);
}

Test(mpa, depth_does_not_spill_into_the_flags_rfc6581_9)
{
	struct bytes v = hex("3fff 0000");
	struct wire_mpa_ird_ord w = {.ird = 0xffff, .ord = 0x4000};

	ASSERT_EMITS(wire_mpa_ird_ord_emit, w, v);
}

Test(mpa, marker_rfc5044_4_2)
{
	uint8_t p[4] = {0xff, 0xff, 0xff, 0xff};
	static const uint8_t want[4] = {0, 0, 0x01, 0xfc};

	wire_mpa_marker_emit(p, 0x01fc);
	cr_assert_arr_eq(p, want, 4);
	cr_assert_eq(wire_mpa_marker_parse(p), 0x01fc);
	/* The parser ignores the reserved half. */
	p[0] = 0xee;
	cr_assert_eq(wire_mpa_marker_parse(p), 0x01fc);
}

Test(mpa, ulpdu_length_rfc5044_4_1)
{
	uint8_t p[2];

	wire_mpa_len_emit(p, 0x1234);
	cr_assert_eq(p[0], 0x12);
	cr_assert_eq(p[1], 0x34);
	cr_assert_eq(wire_mpa_len_parse(p), 0x1234);
}

Test(mpa, crc_has_the_order_of_iscsi_rfc5044_4_4)
{
	static const uint8_t want[4] = {0x83, 0x92, 0x06, 0xe3};
	uint32_t crc = sk_crc32c_final(sk_crc32c(SK_CRC32C_INIT, "123456789", 9));
	uint8_t p[4];

	wire_mpa_crc_emit(p, crc);
	cr_assert_arr_eq(p, want, 4);
	cr_assert_eq(wire_mpa_crc_parse(want), 0xe3069283);
}
