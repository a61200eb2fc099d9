/* SPDX-License-Identifier: BSD-3-Clause */
/* Outgoing FPDUs: known answers, MULPDU, pieces (RFC 5044 4 and 5). */
#include <criterion/criterion.h>

#include "mpa_util.h"

static uint32_t
write_fpdu(struct mpa_tx *t, uint8_t *dst, const uint8_t *ulpdu, uint32_t len, uint32_t piece)
{
	struct mpa_writer w;
	uint32_t n;

	mpa_write_begin(&w, t, dst, len);
	for (uint32_t at = 0; at < len; at += piece)
		mpa_write_put(&w, ulpdu + at, len - at < piece ? len - at : piece);
	n = mpa_write_end(&w);
	if (t->crc)
		cr_assert_eq(sk_sum_fold(w.check.sum), sk_sum_fold(sk_sum(0, dst, n)));
	return n;
}

Test(mpa_tx, fpdu_known_answer_5044_4_1)
{
	/* A 15-byte ULPDU: length, ULPDU, 3 bytes of pad, CRC32C with its low-order byte first. */
	static const uint8_t ulpdu[15] = "MPA known answe";
	static const uint8_t want[24] = {0x00, 0x0f, 'M', 'P', 'A', ' ', 'k', 'n', 'o', 'w', 'n',
		' ', 'a', 'n', 's', 'w', 'e', 0, 0, 0, 0x5b, 0xee, 0x0a, 0xfd};
	struct mpa_tx t;
	uint8_t got[24];

	memset(got, 0xee, sizeof(got));
	mpa_tx_init(&t, true, false, 1448);
	cr_assert_eq(mpa_fpdu_len(&t, 0, 15), 24);
	cr_assert_eq(write_fpdu(&t, got, ulpdu, 15, 15), 24);
	cr_assert_arr_eq(got, want, 24);
	cr_assert_eq(t.pos, 24);
}

Test(mpa_tx, crc_field_is_there_and_zero_when_crc_is_off_5044_4_4)
{
	static const uint8_t ulpdu[14];
	struct mpa_tx t;
	uint8_t got[20];

	memset(got, 0xee, sizeof(got));
	mpa_tx_init(&t, false, false, 1448);
	cr_assert_eq(write_fpdu(&t, got, ulpdu, 14, 14), 20);
	cr_assert_eq(got[1], 14);
	for (int i = 2; i < 20; i++)
		cr_assert_eq(got[i], 0, "byte %d", i);
}

Test(mpa_tx, first_marker_leads_the_first_fpdu_5044_4_3)
{
	static const uint8_t ulpdu[600] = {1};
	struct mpa_tx t;
	uint8_t got[700];

	mpa_tx_init(&t, true, true, 1448);
	/* Marker, length, 506 bytes of ULPDU; at 512 a marker that points back to position 4. */
	cr_assert_eq(write_fpdu(&t, got, ulpdu, 600, 600), 4 + 2 + 600 + 4 + 2 + 4);
	cr_assert_arr_eq(got, ((uint8_t[]){0, 0, 0, 0, 600 >> 8, 600 & 0xff, 1}), 7);
	cr_assert_arr_eq(got + 512, ((uint8_t[]){0, 0, 508 >> 8, 508 & 0xff}), 4);
}

Test(mpa_tx, marker_between_fpdus_belongs_to_the_later_5044_4_3)
{
	static const uint8_t ulpdu[502];
	struct mpa_tx t;
	uint8_t got[1024];

	mpa_tx_init(&t, true, true, 1448);
	/* Marker 4, length 2, ULPDU 502, CRC 4: ends at 512, so no second marker yet. */
	cr_assert_eq(mpa_fpdu_len(&t, 0, 502), 512);
	cr_assert_eq(write_fpdu(&t, got, ulpdu, 502, 502), 512);
	cr_assert_eq(write_fpdu(&t, got + 512, ulpdu, 14, 14), 24);
	cr_assert_arr_eq(got + 512, ((uint8_t[]){0, 0, 0, 0, 0, 14}), 6);
}

Test(mpa_tx, mulpdu_formulas_5044_4_5)
{
	for (uint32_t emss = 150; emss < 9100; emss++) {
		struct mpa_tx t;
		uint32_t m;

		mpa_tx_init(&t, true, false, emss);
		cr_assert_eq(mpa_mulpdu(&t), emss - 6 - emss % 4, "EMSS %u", emss);
		cr_assert_leq(mpa_fpdu_len(&t, 0, mpa_mulpdu(&t)), emss);
		cr_assert_gt(mpa_fpdu_len(&t, 0, mpa_mulpdu(&t) + 1), emss);
		mpa_tx_init(&t, true, true, emss);
		m = mpa_mulpdu(&t);
		cr_assert_eq(m, emss - (6 + 4 * ((emss + 511) / 512) + emss % 4), "EMSS %u", emss);
		for (uint32_t pos = 0; pos < 512; pos += 4)
			cr_assert_leq(mpa_fpdu_len(&t, pos, m), emss, "EMSS %u, %u", emss, pos);
	}
}

Test(mpa_tx, mulpdu_stays_in_its_bounds)
{
	for (int markers = 0; markers < 2; markers++) {
		struct mpa_tx t;

		for (uint32_t emss = 0; emss < 128; emss++) {
			mpa_tx_init(&t, true, markers, emss);
			cr_assert_eq(mpa_mulpdu(&t), 128, "EMSS %u", emss);
		}
		for (uint32_t emss = 65000; emss < 70000; emss++) {
			mpa_tx_init(&t, true, markers, emss);
			cr_assert_leq(mpa_mulpdu(&t), 65535 - 18);
			/* An FPDU pointer has 16 bits. */
			cr_assert(!markers || mpa_fpdu_len(&t, 0, mpa_mulpdu(&t)) <= 65536);
		}
	}
}

Test(mpa_tx, pieces_and_length_do_not_change_the_bytes)
{
	static uint8_t ulpdu[9000], want[9100], got[9100];
	uint64_t seed = 7;

	for (unsigned i = 0; i < sizeof(ulpdu); i++)
		ulpdu[i] = (uint8_t)rnd(&seed, 256);
	for (uint32_t len = 14; len < 8960; len += len % 5 == 0 ? 1 : len / 3) {
		for (uint32_t piece = 1; piece < 9000; piece = piece * 7 + 1) {
			struct model m = {.crc = true, .out = want};
			struct mpa_tx t;
			uint32_t n = model_fpdu(&m, ulpdu, len);

			mpa_tx_init(&t, true, false, 9000);
			memset(got, 0xee, sizeof(got));
			cr_assert_eq(mpa_fpdu_len(&t, 0, len), n);
			cr_assert_eq(write_fpdu(&t, got, ulpdu, len, piece), n);
			cr_assert_arr_eq(got, want, n, "length %u, pieces of %u", len, piece);
			cr_assert_eq(got[n], 0xee);
		}
	}
}
