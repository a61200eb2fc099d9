/* SPDX-License-Identifier: BSD-3-Clause */
/* Incoming FPDUs of a hostile peer or a damaged wire: bit errors, wrong markers and lengths,
 * endless slices. */
#include <criterion/criterion.h>

#include "mpa_util.h"

/* Allocations of mpa_gather.c, which a test can make fail (the linker wraps malloc()). */
void *__real_malloc(size_t len);
void *__wrap_malloc(size_t len);

static bool malloc_fails;

void *
__wrap_malloc(size_t len)
{
	return malloc_fails ? NULL : __real_malloc(len);
}

/* Returns the result of mpa_rx_next() for the first FPDU in these bytes. */
static int
first_of(const uint8_t *bytes, size_t len, bool crc, bool markers, uint32_t cut)
{
	struct mpa_fpdu f;
	struct mpa_rx r;
	int got;

	mpa_rx_init(&r, crc, markers, slices_free, NULL);
	for (size_t at = 0; at < len; at += cut)
		mpa_rx_add(&r, slice_new(bytes + at, len - at < cut ? (uint32_t)(len - at) : cut));
	got = mpa_rx_next(&r, &f);
	mpa_rx_clear(&r);
	cr_assert_eq(slices_live, 0);
	return got;
}

/* Flips each bit of an FPDU in turn, length field, pad, marker and CRC included. Enough good bytes
 * for any length follow. */
static void
every_bit_is_noticed(bool markers, uint32_t cut)
{
	static uint8_t out[80000], ulpdu[1401];
	struct model m = {.crc = true, .markers = markers, .out = out};
	uint32_t first;

	for (unsigned i = 0; i < sizeof(ulpdu); i++)
		ulpdu[i] = (uint8_t)(i * 31);
	first = model_fpdu(&m, ulpdu, 601);
	while (m.len < 68000)
		model_fpdu(&m, ulpdu, sizeof(ulpdu));
	cr_assert_eq(first_of(out, m.len, true, markers, cut), 1);
	for (uint32_t bit = 0; bit < first * 8; bit++) {
		bool in_len = bit / 8 / 2 == (markers ? 2 : 0);
		size_t len = in_len ? m.len : first + 500;
		int got;

		out[bit / 8] ^= (uint8_t)(1 << bit % 8);
		got = first_of(out, len, true, markers, cut);
		out[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(got, -MPA_CRC, "bit %u: %d", bit, got);
	}
}

Test(mpa_hostile, crc_notices_every_bit_5044_4_4)
{
	every_bit_is_noticed(false, 100000);
}

Test(mpa_hostile, crc_notices_every_bit_in_pieces)
{
	every_bit_is_noticed(false, 97);
}

Test(mpa_hostile, crc_notices_every_bit_among_markers)
{
	every_bit_is_noticed(true, 333);
}

Test(mpa_hostile, crc_field_is_not_looked_at_when_crc_is_off_5044_4_4)
{
	uint8_t out[64], ulpdu[14] = {0};
	struct model m = {.out = out};

	model_fpdu(&m, ulpdu, 14);
	memset(out + 16, 0xa5, 4);
	cr_assert_eq(first_of(out, m.len, false, false, 64), 1);
	cr_assert_eq(first_of(out, m.len, false, false, 3), 1);
}

/* Each FPDU is checked, not only the first. */
Test(mpa_hostile, damage_behind_good_fpdus_is_noticed)
{
	for (int how = 0; how < 4; how++) {
		uint8_t out[512], ulpdu[20] = {0};
		struct model m = {.crc = true, .markers = how & 1, .out = out};
		struct mpa_fpdu f;
		struct mpa_rx r;
		size_t third;

		model_fpdu(&m, ulpdu, sizeof(ulpdu));
		model_fpdu(&m, ulpdu, sizeof(ulpdu));
		third = m.len;
		model_fpdu(&m, ulpdu, sizeof(ulpdu));
		out[third + 9] ^= 4;
		mpa_rx_init(&r, true, m.markers, slices_free, NULL);
		if (how & 2) {
			mpa_rx_add(&r, slice_new(out, 41));
			mpa_rx_add(&r, slice_new(out + 41, (uint32_t)m.len - 41));
		} else {
			mpa_rx_add(&r, slice_new(out, (uint32_t)m.len));
		}
		for (int i = 0; i < 2; i++) {
			cr_assert_eq(mpa_rx_next(&r, &f), 1);
			mpa_rx_done(&r, &f);
		}
		cr_assert_eq(mpa_rx_next(&r, &f), -MPA_CRC);
		mpa_rx_clear(&r);
		cr_assert_eq(slices_live, 0);
	}
}

/* RFC 5044 4.3: all bits of the FPDU pointer count but the two low ones; the marker's reserved half
 * does not. */
Test(mpa_hostile, a_marker_must_point_to_its_fpdu_5044_4_3)
{
	static uint8_t out[4096], ulpdu[1200];
	struct model m = {.markers = true, .out = out};

	model_fpdu(&m, ulpdu, sizeof(ulpdu));
	for (uint32_t at = 0; at <= 1024; at += 512) {
		for (unsigned bit = 0; bit < 32; bit++) {
			bool counts = bit >= 16 && bit != 24 && bit != 25;
			int got;

			out[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
			got = first_of(out, m.len, false, true, 700);
			out[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
			cr_assert_eq(got, counts ? -MPA_MARKER : 1, "marker at %u, bit %u: %d", at,
				bit, got);
		}
	}
}

Test(mpa_hostile, an_fpdu_must_hold_a_ddp_header)
{
	static const uint8_t ulpdu[14];

	for (int how = 0; how < 4; how++) {
		for (uint32_t len = 0; len <= 14; len++) {
			uint8_t out[64];
			struct model m = {.crc = how & 1, .markers = how & 2, .out = out};
			int want = len < 14 ? -MPA_SHORT_ULPDU : 1;

			model_fpdu(&m, ulpdu, len);
			for (uint32_t cut = 1; cut < 64; cut += 9)
				cr_assert_eq(first_of(out, m.len, m.crc, m.markers, cut), want,
					"%u bytes, cut %u", len, cut);
		}
	}
}

Test(mpa_hostile, nothing_comes_before_the_last_byte)
{
	static uint8_t out[4096], ulpdu[700];

	for (int how = 0; how < 4; how++) {
		struct model m = {.crc = how & 1, .markers = how & 2, .out = out};

		model_fpdu(&m, ulpdu, sizeof(ulpdu));
		for (size_t len = 0; len < m.len; len++)
			cr_assert_eq(first_of(out, len, m.crc, m.markers, 300), 0, "%zu", len);
		cr_assert_eq(first_of(out, m.len, m.crc, m.markers, 300), 1);
	}
}

/* ---- Tiny slices ---- */

/* Returns one chain with a slice for each of `n` bytes. */
static struct tcp_slice *
crumbs(const uint8_t *bytes, uint32_t n)
{
	struct tcp_slice *chain = NULL, **link = &chain;

	for (uint32_t i = 0; i < n; i++) {
		*link = slice_new(bytes + i, 1);
		link = &(*link)->next;
	}
	return chain;
}

Test(mpa_hostile, an_fpdu_in_crumbs_pins_few_slices)
{
	static uint8_t out[140000], ulpdu[65535], got[65535];

	for (unsigned i = 0; i < sizeof(ulpdu); i++)
		ulpdu[i] = (uint8_t)(i * 7 + (i >> 8));
	for (int how = 0; how < 4; how++) {
		struct model m = {.crc = how & 1, .markers = how & 2, .out = out};
		struct mpa_fpdu f;
		struct mpa_rx r;
		int whole = 0;

		model_fpdu(&m, ulpdu, sizeof(ulpdu));
		model_fpdu(&m, ulpdu, sizeof(ulpdu));
		mpa_rx_init(&r, m.crc, m.markers, slices_free, NULL);
		for (size_t at = 0; at < m.len; at++) {
			mpa_rx_add(&r, slice_new(out + at, 1));
			cr_assert_leq(slices_live, MPA_SLICES_MAX + 1);
			if (mpa_rx_next(&r, &f) == 0)
				continue;
			cr_assert_eq(f.ulpdu_len, sizeof(ulpdu));
			memset(got, 0, sizeof(got));
			mpa_fpdu_copy(&f, 0, got, f.ulpdu_len);
			cr_assert_arr_eq(got, ulpdu, sizeof(ulpdu));
			mpa_rx_done(&r, &f);
			whole++;
		}
		cr_assert_eq(whole, 2);
		cr_assert_eq(slices_live, 0);
		mpa_rx_clear(&r);
	}
}

/* The engine may leave whole FPDUs unread while its ring is full; the same bound must hold then. */
Test(mpa_hostile, unread_crumbs_pin_few_slices)
{
	static uint8_t out[200000], ulpdu[14];
	struct model m = {.crc = true, .out = out};
	struct mpa_fpdu f;
	struct mpa_rx r;
	int whole = 0;

	while (m.len < 100000)
		model_fpdu(&m, ulpdu, sizeof(ulpdu));
	mpa_rx_init(&r, true, false, slices_free, NULL);
	for (size_t at = 0; at + 10 <= m.len; at += 10) {
		mpa_rx_add(&r, crumbs(out + at, 10));
		cr_assert_leq(slices_live, MPA_SLICES_MAX + 10);
	}
	for (; mpa_rx_next(&r, &f) == 1; whole++)
		mpa_rx_done(&r, &f);
	cr_assert_eq(whole, (int)(m.len / 20));
	mpa_rx_clear(&r);
	cr_assert_eq(slices_live, 0);
}

/* Large slices among tiny ones: few are held for each byte, and those of an ordinary large FPDU are
 * never copied. */
Test(mpa_hostile, slices_held_are_bounded_by_the_bytes_held)
{
	static uint8_t out[80000], ulpdu[65000];
	struct model m = {.crc = true, .out = out};
	uint64_t seed = 11;
	struct mpa_fpdu f;
	struct mpa_rx r;
	size_t at = 0;

	model_fpdu(&m, ulpdu, sizeof(ulpdu));
	mpa_rx_init(&r, true, false, slices_free, NULL);
	while (at < m.len) {
		uint32_t n = rnd(&seed, 30) == 0 ? 1448 : 1 + rnd(&seed, 5);

		n = n < m.len - at ? n : (uint32_t)(m.len - at);
		mpa_rx_add(&r, slice_new(out + at, n));
		at += n;
		cr_assert_leq(slices_live, 1 + MPA_SLICES_MAX + (long)(at / MPA_TINY));
	}
	cr_assert_eq(mpa_rx_next(&r, &f), 1);
	mpa_rx_done(&r, &f);
	cr_assert_eq(slices_live, 0);

	for (at = 0; at + 1000 < m.len; at += 1000)
		mpa_rx_add(&r, slice_new(out + at, 1000));
	cr_assert_eq(slices_live, (long)(at / 1000));
	mpa_rx_clear(&r);
	cr_assert_eq(slices_live, 0);
}

/* Tiny slices behind a slice of which an FPDU has been read: bytes that have been read do not count
 * as held. */
Test(mpa_hostile, crumbs_behind_a_slice_that_is_half_read)
{
	static uint8_t out[4096], ulpdu[1000], got[1000];
	struct model m = {.crc = true, .out = out};
	struct mpa_fpdu f;
	struct mpa_rx r;

	for (unsigned i = 0; i < sizeof(ulpdu); i++)
		ulpdu[i] = (uint8_t)(i * 5 + 1);
	model_fpdu(&m, ulpdu, 100);
	model_fpdu(&m, ulpdu, sizeof(ulpdu));
	mpa_rx_init(&r, true, false, slices_free, NULL);
	mpa_rx_add(&r, slice_new(out, 300));
	cr_assert_eq(mpa_rx_next(&r, &f), 1);
	mpa_rx_done(&r, &f);
	for (uint32_t at = 300; at < m.len; at++) {
		cr_assert_eq(mpa_rx_next(&r, &f), 0);
		mpa_rx_add(&r, slice_new(out + at, 1));
		cr_assert_leq(slices_live, MPA_SLICES_MAX + 1);
	}
	cr_assert_eq(mpa_rx_next(&r, &f), 1);
	mpa_fpdu_copy(&f, 0, got, f.ulpdu_len);
	cr_assert_arr_eq(got, ulpdu, sizeof(ulpdu));
	mpa_rx_done(&r, &f);
	cr_assert_eq(slices_live, 0);
}

/* After `n` ordinary slices, each read immediately: two small slices are kept, tiny ones are
 * gathered as before. */
static void
after_ordinary_slices(const struct model *m, unsigned n)
{
	uint32_t len = (uint32_t)m->len;
	struct tcp_slice *s;
	struct mpa_fpdu f;
	struct mpa_rx r;

	mpa_rx_init(&r, true, false, slices_free, NULL);
	for (unsigned i = 0; i < n; i++) {
		mpa_rx_add(&r, slice_new(m->out, len));
		cr_assert_eq(mpa_rx_next(&r, &f), 1);
		mpa_rx_done(&r, &f);
	}
	s = slice_new(m->out, len);
	mpa_rx_add(&r, s);
	mpa_rx_add(&r, slice_new(m->out, 1));
	cr_assert_eq(slices_live, 2, "after %u", n);
	cr_assert_eq(mpa_rx_next(&r, &f), 1);
	cr_assert(f.flat == s->data + 2);
	mpa_rx_done(&r, &f);
	for (uint32_t i = 1; i < 200; i++) {
		mpa_rx_add(&r, slice_new(m->out + i, 1));
		cr_assert_leq(slices_live, MPA_SLICES_MAX + 1, "after %u", n);
	}
	mpa_rx_clear(&r);
	cr_assert_eq(slices_live, 0);
}

Test(mpa_hostile, what_was_read_does_not_count_as_held)
{
	static uint8_t out[1024], ulpdu[1000];
	struct model m = {.crc = true, .out = out};

	model_fpdu(&m, ulpdu, sizeof(ulpdu));
	for (unsigned n = 0; n < 100; n++)
		after_ordinary_slices(&m, n);
}

Test(mpa_hostile, no_memory_to_gather_ends_the_stream)
{
	static uint8_t out[4096], ulpdu[1000];
	struct model m = {.crc = true, .out = out};
	struct tcp_slice *first, *second;
	struct mpa_fpdu f;
	struct mpa_rx r;

	model_fpdu(&m, ulpdu, sizeof(ulpdu));
	first = crumbs(out, 100);
	second = crumbs(out + 100, 100);
	mpa_rx_init(&r, true, false, slices_free, NULL);
	mpa_rx_add(&r, first);
	cr_assert_eq(mpa_rx_next(&r, &f), 0);
	malloc_fails = true;
	mpa_rx_add(&r, second);
	malloc_fails = false;
	cr_assert_eq(mpa_rx_next(&r, &f), -MPA_NO_MEMORY);
	mpa_rx_clear(&r);
	cr_assert_eq(slices_live, 0);
}
