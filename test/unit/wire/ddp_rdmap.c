/* SPDX-License-Identifier: BSD-3-Clause */
/* DDP and RDMAP headers, compared with bytes from the figures of RFC 5040, 5041 and 7306. */
#include "vector.h"

Test(ddp, tagged_header_rfc5041_4_2)
{
	struct bytes v = hex("c1 40 11223344 0102030405060708");
	struct wire_ddp h;

	ASSERT_REFUSES_SHORT(wire_ddp_parse, h, v, 14, WIRE_SHORT);
	cr_assert(h.tagged && h.last);
	cr_assert_eq(h.dv, 1);
	cr_assert_eq(h.rv, 1);
	cr_assert_eq(h.opcode, RDMAP_WRITE);
	cr_assert_eq(h.stag, 0x11223344);
	cr_assert_eq(h.to, 0x0102030405060708);
	ASSERT_EMITS(wire_ddp_emit, h, v);
	v.b[0] = 0x81;
	v.b[1] = 0x42;
	cr_assert_eq(wire_ddp_parse(&h, v.b, v.len), 14);
	cr_assert(!h.last);
	cr_assert_eq(h.opcode, RDMAP_READ_RESPONSE);
	ASSERT_EMITS(wire_ddp_emit, h, v);
}

Test(ddp, untagged_header_rfc5041_4_3)
{
	struct bytes v = hex("41 46 aabbccdd 00000000 00000007 00010000");
	struct wire_ddp h;

	ASSERT_REFUSES_SHORT(wire_ddp_parse, h, v, 18, WIRE_SHORT);
	cr_assert(!h.tagged && h.last);
	cr_assert_eq(h.opcode, RDMAP_SEND_SE_INV);
	cr_assert_eq(h.inv_stag, 0xaabbccdd);
	cr_assert_eq(h.qn, DDP_QN_SEND);
	cr_assert_eq(h.msn, 7);
	cr_assert_eq(h.mo, 0x10000);
	ASSERT_EMITS(wire_ddp_emit, h, v);
	v = hex("01 41 00000000 00000001 ffffffff 0000ffff");
	cr_assert_eq(wire_ddp_parse(&h, v.b, v.len), 18);
	cr_assert(!h.last);
	cr_assert_eq(h.opcode, RDMAP_READ_REQUEST);
	cr_assert_eq(h.qn, DDP_QN_READ);
	cr_assert_eq(h.msn, 0xffffffff);
	cr_assert_eq(h.mo, 0xffff);
	ASSERT_EMITS(wire_ddp_emit, h, v);
}

Test(ddp, versions_and_opcodes_are_read_and_not_judged)
{
	struct bytes v = hex("41 40 00000000 00000000 00000001 00000000");
	struct wire_ddp h;

	for (unsigned control = 0; control < 256; control++) {
		v.b[0] = (uint8_t)(control & 0x7f);
		v.b[1] = (uint8_t)control;
		cr_assert_eq(wire_ddp_parse(&h, v.b, v.len), 18);
		cr_assert_eq(h.dv, control & 3);
		cr_assert_eq(h.rv, control >> 6);
		cr_assert_eq(h.opcode, control & 15);
	}
}

Test(ddp, emit_writes_version_1_and_no_reserved_bits_rfc5041_4_1_rfc5040_4_1)
{
	struct bytes v = hex("81 4b 00000000 0000000000000000");
	struct wire_ddp h = {.tagged = true, .opcode = 0xfb, .dv = 3, .rv = 3};

	ASSERT_EMITS(wire_ddp_emit, h, v);
}

Test(ddp, opcodes_rfc5040_4_1_rfc7306_4)
{
	cr_assert_eq(RDMAP_SEND, 3);
	cr_assert_eq(RDMAP_SEND_INV, 4);
	cr_assert_eq(RDMAP_SEND_SE, 5);
	cr_assert_eq(RDMAP_TERMINATE, 7);
	cr_assert_eq(RDMAP_IMMEDIATE, 8);
	cr_assert_eq(RDMAP_IMMEDIATE_SE, 9);
	cr_assert_eq(RDMAP_ATOMIC_REQUEST, 10);
	cr_assert_eq(RDMAP_ATOMIC_RESPONSE, 11);
}

Test(rdmap, read_request_rfc5040_4_4)
{
	struct bytes v = hex("11111112 2222222333333334 44444445 55555556 6666666777777778");
	struct wire_read_request r;

	ASSERT_REFUSES_SHORT(wire_read_request_parse, r, v, 28, WIRE_SHORT);
	cr_assert_eq(r.sink_stag, 0x11111112);
	cr_assert_eq(r.sink_to, 0x2222222333333334);
	cr_assert_eq(r.len, 0x44444445);
	cr_assert_eq(r.src_stag, 0x55555556);
	cr_assert_eq(r.src_to, 0x6666666777777778);
	ASSERT_EMITS(wire_read_request_emit, r, v);
}

Test(terminate, control_field_alone_rfc5040_4_8)
{
	struct bytes v = hex("12 07 00 00");
	struct wire_terminate t;

	ASSERT_REFUSES_SHORT(wire_terminate_parse, t, v, 4, WIRE_SHORT);
	cr_assert_eq(t.layer, 1);
	cr_assert_eq(t.etype, 2);
	cr_assert_eq(t.code, 7);
	cr_assert(!t.m && !t.d && !t.r);
	ASSERT_EMITS(wire_terminate_emit, t, v);
}

Test(terminate, tagged_segment_rfc5040_4_8)
{
	struct bytes v = hex("11 02 c0 00 0240 c1 40 11223344 0102030405060708");
	struct wire_terminate t;

	ASSERT_REFUSES_SHORT(wire_terminate_parse, t, v, 20, WIRE_SHORT);
	cr_assert(t.m && t.d && !t.r);
	cr_assert_eq(t.ddp_seg_len, 0x240);
	cr_assert_eq(t.ddp_len, 14);
	cr_assert_arr_eq(t.ddp_header, v.b + 6, 14);
	ASSERT_EMITS(wire_terminate_emit, t, v);
}

Test(terminate, read_request_rfc5040_4_8)
{
	struct bytes v = hex("01 01 e0 00 002e 41 41 00000000 00000001 00000002 00000000"
			     "11111112 2222222333333334 44444445 55555556 6666666777777778");
	struct wire_terminate t;

	cr_assert_eq(v.len, RDMAP_TERMINATE_MAX);
	ASSERT_REFUSES_SHORT(wire_terminate_parse, t, v, 52, WIRE_SHORT);
	cr_assert_eq(t.layer, 0);
	cr_assert_eq(t.etype, 1);
	cr_assert(t.m && t.d && t.r);
	cr_assert_eq(t.ddp_seg_len, 46);
	cr_assert_eq(t.ddp_len, 18);
	cr_assert_arr_eq(t.ddp_header, v.b + 6, 18);
	cr_assert_arr_eq(t.rdmap_header, v.b + 24, 28);
	ASSERT_EMITS(wire_terminate_emit, t, v);
}

Test(terminate, each_presence_bit_rfc5040_4_8)
{
	struct wire_terminate t;
	struct bytes m = hex("20 03 80 00 0102");
	struct bytes d = hex("20 03 40 00 41 43 00000000 00000000 00000001 00000000");

	ASSERT_REFUSES_SHORT(wire_terminate_parse, t, m, 6, WIRE_SHORT);
	cr_assert(t.m && !t.d && !t.r);
	cr_assert_eq(t.layer, 2);
	cr_assert_eq(t.ddp_seg_len, 0x102);
	ASSERT_EMITS(wire_terminate_emit, t, m);
	ASSERT_REFUSES_SHORT(wire_terminate_parse, t, d, 22, WIRE_SHORT);
	cr_assert(!t.m && t.d && !t.r);
	cr_assert_eq(t.ddp_len, 18);
	ASSERT_EMITS(wire_terminate_emit, t, d);
}

Test(terminate, reserved_bits_are_ignored_and_sent_as_zero_rfc5040_4_8)
{
	struct bytes v = hex("12 07 1f ff"), clean = hex("12 07 00 00");
	struct wire_terminate t;

	cr_assert_eq(wire_terminate_parse(&t, v.b, v.len), 4);
	cr_assert(!t.m && !t.d && !t.r);
	ASSERT_EMITS(wire_terminate_emit, t, clean);
}

Test(atomic, request_rfc7306_5_2_1_figure_4)
{
	struct bytes v = hex("00000002 a0a0a0a1 b0b0b0b1 0102030405060708 1112131415161718"
			     "2122232425262728 3132333435363738 4142434445464748");
	struct wire_atomic_request a;

	ASSERT_REFUSES_SHORT(wire_atomic_request_parse, a, v, 52, WIRE_SHORT);
	cr_assert_eq(a.op, RDMAP_CMP_SWAP);
	cr_assert_eq(a.request_id, 0xa0a0a0a1);
	cr_assert_eq(a.stag, 0xb0b0b0b1);
	cr_assert_eq(a.to, 0x0102030405060708);
	cr_assert_eq(a.data, 0x1112131415161718);
	cr_assert_eq(a.data_mask, 0x2122232425262728);
	cr_assert_eq(a.compare, 0x3132333435363738);
	cr_assert_eq(a.compare_mask, 0x4142434445464748);
	ASSERT_EMITS(wire_atomic_request_emit, a, v);
}

Test(atomic, reserved_bits_of_the_operation_are_ignored_rfc7306_5_2_1)
{
	struct bytes v = hex("fffffff0 00000000 00000000");
	struct wire_atomic_request a;

	v.len = 52;
	cr_assert_eq(wire_atomic_request_parse(&a, v.b, v.len), 52);
	cr_assert_eq(a.op, RDMAP_FETCH_ADD);
}

Test(atomic, response_is_12_bytes_rfc7306_5_2_2_figure_6)
{
	struct bytes v = hex("a0a0a0a1 1112131415161718");
	struct wire_atomic_response a;

	ASSERT_REFUSES_SHORT(wire_atomic_response_parse, a, v, 12, WIRE_SHORT);
	cr_assert_eq(a.request_id, 0xa0a0a0a1);
	cr_assert_eq(a.original, 0x1112131415161718);
	ASSERT_EMITS(wire_atomic_response_emit, a, v);
}
