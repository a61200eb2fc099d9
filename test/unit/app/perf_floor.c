/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests the floor of saker-perf: its passes over bytes against CRC32C (RFC 3385) and the Internet
 * checksum (RFC 1071) computed bit by bit and byte by byte, and its cipher.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "../../../app/saker-perf/floor_pass.h"
#include "../../../app/saker-perf/floor_seal.h"

#define ROOM 12000u

static uint8_t *from, *to;

static uint32_t
crc_bit_by_bit(const uint8_t *p, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

/* Returns the checksum as it lies in memory. */
static uint16_t
sum_byte_by_byte(const uint8_t *p, size_t len)
{
	uint64_t sum = 0;
	uint16_t out;
	uint8_t field[2];

	for (size_t i = 0; i < len; i++)
		sum += (uint64_t)p[i] << (i % 2 == 0 ? 8 : 0);
	while (sum > UINT16_MAX)
		sum = (sum & UINT16_MAX) + (sum >> 16);
	field[0] = (uint8_t)(~sum >> 8);
	field[1] = (uint8_t)~sum;
	memcpy(&out, field, sizeof(out));
	return out;
}

static void
setup(void)
{
	perf_pass_init();
	from = aligned_alloc(64, 2 * 12032);
	to = from + 12032;
	srand(1);
	for (size_t i = 0; i < ROOM; i++)
		from[i] = (uint8_t)(rand() >> 7);
}

static void
teardown(void)
{
	free(from);
}

static void
check_copy(size_t len, size_t src_at, size_t dst_at, unsigned how)
{
	struct perf_sums s = PERF_SUMS;

	memset(to, 0xaa, ROOM);
	perf_pass_copy(&s, to + dst_at, from + src_at, len, how);
	perf_pass_fence();
	cr_assert_eq(memcmp(to + dst_at, from + src_at, len), 0, "%zu bytes", len);
	cr_assert(dst_at == 0 || to[dst_at - 1] == 0xaa);
	cr_assert_eq(to[dst_at + len], 0xaa, "the copy ends after %zu bytes", len);
	if (how & PERF_PASS_CRC)
		cr_assert_eq(~s.crc, crc_bit_by_bit(from + src_at, len), "%zu bytes", len);
	if (how & PERF_PASS_SUM)
		cr_assert_eq(
			perf_pass_fold(&s), sum_byte_by_byte(from + src_at, len), "%zu bytes", len);
}

Test(perf_floor, a_pass_copies_and_sums_each_length, .init = setup, .fini = teardown)
{
	static const size_t lengths[] = {0, 1, 2, 3, 7, 8, 9, 15, 64, 85, 255, 256, 257, 319, 320,
		511, 512, 513, 575, 1023, 1448, 2048, 2049, 4095, 4096, 4097, 8192, 8948};

	for (unsigned how = 0; how < 12; how++)
		for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
			for (size_t at = 0; at < 66; at += 13)
				check_copy(lengths[i], 66 - at, at, how);
}

Test(perf_floor, sums_continue_from_piece_to_piece, .init = setup, .fini = teardown)
{
	struct perf_sums s = PERF_SUMS;

	perf_pass_take(&s, from, 16, PERF_PASS_CRC | PERF_PASS_SUM);
	perf_pass_copy(&s, to, from + 16, 2000, PERF_PASS_CRC | PERF_PASS_SUM);
	perf_pass_take(&s, from + 2016, 7, PERF_PASS_CRC | PERF_PASS_SUM);
	cr_assert_eq(~s.crc, crc_bit_by_bit(from, 2023));
	cr_assert_eq(perf_pass_fold(&s), sum_byte_by_byte(from, 2023));
}

Test(perf_floor, a_sum_over_its_own_field_is_zero, .init = setup, .fini = teardown)
{
	for (size_t len = 64; len < 3000; len += 61) {
		struct perf_sums s = PERF_SUMS, again = PERF_SUMS;
		uint16_t sum;

		memset(from + 6, 0, 2);
		perf_pass_sum(&s, from, len);
		sum = perf_pass_fold(&s);
		memcpy(from + 6, &sum, sizeof(sum));
		perf_pass_sum(&again, from, len);
		cr_assert_eq(perf_pass_fold(&again), 0, "%zu bytes", len);
	}
}

Test(perf_floor, the_cipher_opens_what_it_seals_and_nothing_else, .init = setup, .fini = teardown)
{
	static const size_t lengths[] = {48, 100, 4148};

	for (unsigned psp = 1; psp <= 4; psp++) {
		struct perf_seal *s = perf_seal_create(psp);

		cr_assert_not_null(s);
		for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			size_t len = lengths[i];
			uint8_t *text = to + 6000;

			memset(to, 0, ROOM);
			perf_seal_packet(s, to, from, len);
			cr_assert(perf_seal_open(s, to, text, len));
			cr_assert_eq(memcmp(text, from, len), 0);
			if (psp <= 2)
				cr_assert_neq(memcmp(to + PERF_SEAL_CLEAR, from, len), 0);
			to[PERF_SEAL_CLEAR + len / 2] ^= 1;
			cr_assert_not(perf_seal_open(s, to, text, len), "a changed byte");
		}
		perf_seal_destroy(s);
	}
}
