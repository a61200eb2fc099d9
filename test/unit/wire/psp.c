/* SPDX-License-Identifier: BSD-3-Clause */
/* The PSP header, compared with bytes from its definition. */
#include "vector.h"

#include "../../../lib/wire/falcon.h"

/* next 252, no cookie, crypt offset 1, version 0; then four clear bytes and an ICV. */
#define PLAIN "fc 01 01 01 9a345678 0123456789abcdef"

static void
refuses(struct bytes v, unsigned at, uint8_t value, int reason)
{
	struct wire_psp h;

	v.b[at] = value;
	cr_assert_eq(wire_psp_parse(&h, v.b, v.len), -reason, "byte %u as %02x", at, value);
}

Test(psp, header_without_cookie)
{
	struct bytes v = hex(PLAIN), whole = v;
	struct wire_psp h;

	whole.len += 4 + PSP_ICV_LEN;
	for (size_t n = 0; n <= whole.len; n++) {
		uint8_t *p = exact(&whole, n);

		cr_assert_eq(wire_psp_parse(&h, p, n), n < whole.len ? -WIRE_SHORT : PSP_LEN,
			"%zu bytes", n);
		free(p);
	}
	cr_assert_eq(h.next, PSP_NEXT_FALCON);
	cr_assert_eq(h.crypt_offset, 1);
	cr_assert_eq(h.version, PSP_AES_GCM_128);
	cr_assert(!h.sample && !h.drop && !h.has_vc);
	cr_assert_eq(h.spi, 0x9a345678);
	cr_assert_eq(h.iv, 0x0123456789abcdef);
	cr_assert_eq(h.vc, 0);
	ASSERT_EMITS(wire_psp_emit, h, v);
}

Test(psp, header_with_cookie)
{
	struct bytes v = hex("29 02 3f c7 12345678 0123456789abcdef 1122334455667788"), whole = v;
	struct wire_psp h;

	/* The cookie counts for the offset. The parser reads nothing behind the header. */
	whole.len = 16 + 63 * 4 + PSP_ICV_LEN;
	cr_assert_eq(wire_psp_parse(&h, v.b, whole.len - 1), -WIRE_SHORT);
	cr_assert_eq(wire_psp_parse(&h, v.b, whole.len), PSP_MAX);
	cr_assert_eq(h.next, PSP_NEXT_IP6);
	cr_assert_eq(h.crypt_offset, PSP_CRYPT_MAX);
	cr_assert_eq(h.version, PSP_AES_GCM_256);
	cr_assert(h.sample && h.drop && h.has_vc);
	cr_assert_eq(h.spi, 0x12345678);
	cr_assert_eq(h.vc, 0x1122334455667788);
	ASSERT_EMITS(wire_psp_emit, h, v);
}

Test(psp, sample_and_drop_are_bits_of_their_own)
{
	struct bytes v = hex("fc 01 00 81 00000001 0000000000000000");
	struct wire_psp h;

	cr_assert_eq(wire_psp_parse(&h, v.b, 16 + 16), PSP_LEN);
	cr_assert(h.sample && !h.drop);
	ASSERT_EMITS(wire_psp_emit, h, v);
	v.b[3] = 0x41;
	cr_assert_eq(wire_psp_parse(&h, v.b, 16 + 16), PSP_LEN);
	cr_assert(!h.sample && h.drop);
	ASSERT_EMITS(wire_psp_emit, h, v);
}

Test(psp, versions_that_are_not_defined_are_refused)
{
	struct bytes v = hex(PLAIN "10abcdef 00000000000000000000000000000000");
	struct wire_psp h;

	for (unsigned version = 0; version < 16; version++) {
		v.b[3] = (uint8_t)(version << 2 | 1);
		cr_assert_eq(wire_psp_parse(&h, v.b, v.len),
			version <= 3 || version == 15 ? PSP_LEN : -WIRE_PSP_VERSION, "version %u",
			version);
	}
}

Test(psp, lengths_and_the_fixed_bit_that_cannot_be_are_refused)
{
	struct bytes v = hex(PLAIN "10abcdef 00000000000000000000000000000000");

	refuses(v, 1, 0, WIRE_PSP_HEADER);
	refuses(v, 1, 2, WIRE_PSP_HEADER); /* the length includes a cookie, V does not */
	refuses(v, 1, 3, WIRE_PSP_HEADER);
	refuses(v, 3, 0x03, WIRE_PSP_HEADER); /* V includes a cookie, the length does not */
	refuses(v, 3, 0x00, WIRE_PSP_HEADER);
	refuses(v, 2, 2, WIRE_SHORT); /* more clear bytes than the datagram has */
}

Test(psp, a_cookie_that_is_encrypted_is_refused)
{
	struct bytes v = hex("fc 02 01 03 9a345678 0123456789abcdef 1122334455667788");
	struct wire_psp h;

	v.len += 100;
	cr_assert_eq(wire_psp_parse(&h, v.b, v.len), -WIRE_PSP_HEADER);
	v.b[2] = 2;
	cr_assert_eq(wire_psp_parse(&h, v.b, v.len), PSP_MAX);
}

Test(psp, crypt_offset_leaves_the_first_4_bytes_of_falcon_clear_falcon_7_1)
{
	cr_assert_eq(wire_psp_crypt_offset(false, 0), 1);
	cr_assert_eq(wire_psp_crypt_offset(true, 0), 3);
	cr_assert_eq(wire_psp_crypt_offset(false, IP4_LEN), 6);
	cr_assert_eq(wire_psp_crypt_offset(false, IP6_LEN), 11);
	cr_assert_eq(wire_psp_crypt_offset(true, IP6_LEN), 13);
}

Test(psp, without_crypto_there_is_no_icv)
{
	struct bytes v = hex("fc 01 01 3d 00000007 0000000000050000");
	struct wire_psp h;

	cr_assert_eq(wire_psp_parse(&h, v.b, 16 + 3), -WIRE_SHORT);
	cr_assert_eq(wire_psp_parse(&h, v.b, 16 + 4), PSP_LEN);
	cr_assert_eq(h.version, PSP_NO_CRYPTO);
	cr_assert_eq(wire_psp_icv_len(h.version), 0);
	cr_assert_eq(wire_psp_icv_len(PSP_GMAC_256), 16);
	cr_assert_eq(wire_psp_iv_ticks(h.iv), 5);
	ASSERT_EMITS(wire_psp_emit, h, v);
}

Test(psp, of_the_time_in_the_iv_the_low_32_bits_are_echoed_falcon_7_7_1)
{
	cr_assert_eq(wire_psp_iv_ticks(0xaaaa123456785555), 0x12345678);
}

Test(psp, udp_length_is_that_of_what_was_received_falcon_9_2_2_1)
{
	struct wire_ip ip = {.payload_len = 108};
	struct wire_udp udp = {.payload_len = 100};

	cr_assert_eq(wire_psp_udp_check(&ip, &udp), 0);
	ip.payload_len = 109;
	cr_assert_eq(wire_psp_udp_check(&ip, &udp), -WIRE_UDP_HEADER);
	ip.payload_len = 107;
	cr_assert_eq(wire_psp_udp_check(&ip, &udp), -WIRE_UDP_HEADER);
}
