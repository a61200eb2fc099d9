/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C against the examples of RFC 3720 and against its definition, bit by bit. */
#include <criterion/criterion.h>
#include <string.h>

#include "../../../lib/base/crc32c.h"

static uint32_t
crc(const void *p, size_t len)
{
	return sk_crc32c_final(sk_crc32c(SK_CRC32C_INIT, p, len));
}

static uint32_t
by_definition(uint32_t c, const uint8_t *p, size_t len)
{
	while (len-- > 0) {
		c ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			c = c >> 1 ^ (c & 1 ? 0x82f63b78 : 0);
	}
	return c;
}

static void
fill(uint8_t *p, size_t len)
{
	uint32_t x = 12345;

	for (size_t i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		p[i] = (uint8_t)(x >> 24);
	}
}

Test(crc32c, examples_of_rfc3720_b_4)
{
	static const uint8_t pdu[48] = {0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14,
		0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0,
		0x02, 0, 0, 0, 0, 0, 0, 0};
	uint8_t b[32];

	cr_assert_eq(crc("123456789", 9), 0xe3069283);
	memset(b, 0, sizeof(b));
	cr_assert_eq(crc(b, 32), 0x8a9136aa);
	memset(b, 0xff, sizeof(b));
	cr_assert_eq(crc(b, 32), 0x62a8ab43);
	for (unsigned i = 0; i < 32; i++)
		b[i] = (uint8_t)i;
	cr_assert_eq(crc(b, 32), 0x46dd794e);
	for (unsigned i = 0; i < 32; i++)
		b[i] = (uint8_t)(31 - i);
	cr_assert_eq(crc(b, 32), 0x113fdb5c);
	cr_assert_eq(crc(pdu, sizeof(pdu)), 0xd9963a56);
}

Test(crc32c, every_length_around_the_change_of_methods_agrees_with_the_definition)
{
	static uint8_t b[1100];
	uint32_t c = SK_CRC32C_INIT;

	fill(b, sizeof(b));
	for (size_t len = 0; len < sizeof(b) - 3; len++) {
		cr_assert_eq(sk_crc32c(SK_CRC32C_INIT, b + 3, len), c, "%zu bytes", len);
		c = by_definition(c, b + 3 + len, 1);
	}
}

Test(crc32c, pieces_give_the_same_as_the_whole)
{
	static uint8_t b[9000];
	uint32_t whole, c = SK_CRC32C_INIT;
	size_t at = 0;

	fill(b, sizeof(b));
	whole = by_definition(SK_CRC32C_INIT, b, sizeof(b));
	for (size_t n = 1; at < sizeof(b); n = n * 3 / 2 + 1) {
		size_t len = n < sizeof(b) - at ? n : sizeof(b) - at;

		c = sk_crc32c(c, b + at, len);
		at += len;
	}
	cr_assert_eq(c, whole);
}
