/* SPDX-License-Identifier: BSD-3-Clause */
/* Incoming FPDUs: writer and reader against the model, for all lengths and cuts (RFC 5044 4). */
#include <criterion/criterion.h>

#include "mpa_util.h"

/* ---- The stream as the model builds it ---- */

#define FPDUS      10000
#define STREAM_MAX (24u << 20)

struct stream {
	struct model m;
	uint32_t start; /* position of its first byte */
	uint8_t *ulpdus;
	uint32_t at[FPDUS], len[FPDUS]; /* in ulpdus */
	uint32_t size[FPDUS];           /* stream bytes */
};

static uint32_t
any_len(uint64_t *seed)
{
	switch (rnd(seed, 16)) {
	case 0:
		return 14;
	case 1:
		return 480 + rnd(seed, 80); /* about the distance of two markers */
	case 2:
		return 1400 + rnd(seed, 100);
	case 3:
		return rnd(seed, 40) == 0 ? 65535 - rnd(seed, 40) : 8000 + rnd(seed, 1000);
	default:
		return 14 + rnd(seed, 200);
	}
}

static void
stream_make(struct stream *s, bool crc, bool markers, uint32_t start, uint64_t *seed)
{
	uint32_t used = 0;

	*s = (struct stream){.start = start};
	s->m = (struct model){.crc = crc, .markers = markers, .pos = start};
	s->m.out = malloc(STREAM_MAX);
	s->ulpdus = malloc(STREAM_MAX);
	for (int i = 0; i < FPDUS; i++) {
		s->at[i] = used;
		s->len[i] = any_len(seed);
		for (uint32_t b = 0; b < s->len[i]; b++)
			s->ulpdus[used++] = (uint8_t)rnd(seed, 256);
		s->size[i] = model_fpdu(&s->m, s->ulpdus + s->at[i], s->len[i]);
		cr_assert_lt(s->m.len + 70000, STREAM_MAX);
	}
}

static void
stream_drop(struct stream *s)
{
	free(s->m.out);
	free(s->ulpdus);
}

static void
writer_agrees(const struct stream *s, uint64_t *seed)
{
	uint8_t *got = malloc(70000), *want = s->m.out;
	struct mpa_tx t;

	mpa_tx_init(&t, s->m.crc, s->m.markers, 1448);
	t.pos = s->start;
	for (int i = 0; i < FPDUS; i++) {
		const uint8_t *from = s->ulpdus + s->at[i];
		struct mpa_writer w;

		memset(got, 0xee, s->size[i] + 4);
		cr_assert_eq(mpa_fpdu_len(&t, t.pos, s->len[i]), s->size[i], "FPDU %d", i);
		mpa_write_begin(&w, &t, got, s->len[i]);
		for (uint32_t left = s->len[i], n; left > 0; left -= n, from += n) {
			n = 1 + rnd(seed, left);
			mpa_write_put(&w, from, n);
		}
		cr_assert_eq(mpa_write_end(&w), s->size[i]);
		cr_assert_arr_eq(got, want, s->size[i], "FPDU %d", i);
		if (s->m.crc)
			cr_assert_eq(sk_sum_fold(w.check.sum),
				sk_sum_fold(sk_sum(0, got, s->size[i])), "FPDU %d", i);
		cr_assert_eq(got[s->size[i]], 0xee, "FPDU %d", i);
		want += s->size[i];
	}
	cr_assert_eq(t.pos, s->m.pos);
	free(got);
}

static void
check_fpdu(const struct stream *s, const struct mpa_fpdu *f, int i, uint8_t *buf, uint64_t *seed)
{
	const uint8_t *want = s->ulpdus + s->at[i];
	uint32_t off = rnd(seed, s->len[i]), n = rnd(seed, s->len[i] - off + 1);

	cr_assert_eq(f->ulpdu_len, s->len[i], "FPDU %d", i);
	cr_assert_eq(f->stream_len, s->size[i], "FPDU %d", i);
	mpa_fpdu_copy(f, 0, buf, f->ulpdu_len);
	cr_assert_arr_eq(buf, want, f->ulpdu_len, "FPDU %d", i);
	memset(buf, 0xee, n + 1);
	mpa_fpdu_copy(f, off, buf, n);
	cr_assert(memcmp(buf, want + off, n) == 0, "FPDU %d, [%u, +%u)", i, off, n);
	cr_assert_eq(buf[n], 0xee);
	if (f->flat != NULL)
		cr_assert_arr_eq(f->flat, want, f->ulpdu_len, "FPDU %d", i);
}

static uint32_t
any_cut(uint64_t *seed)
{
	switch (rnd(seed, 8)) {
	case 0:
		return 1;
	case 1:
		return 1 + rnd(seed, 8);
	case 2:
		return 1 + rnd(seed, 20000);
	default:
		return 1 + rnd(seed, 1448);
	}
}

static void
reader_agrees(const struct stream *s, uint64_t *seed)
{
	uint8_t *buf = malloc(70000);
	struct mpa_fpdu f, again;
	uint64_t consumed = 0;
	struct mpa_rx r;
	int i = 0, got;

	mpa_rx_init(&r, s->m.crc, s->m.markers, slices_free, NULL);
	r.pos = s->start;
	for (size_t at = 0; at < s->m.len;) {
		struct tcp_slice *chain = NULL, **link = &chain;

		for (uint32_t k = 1 + rnd(seed, 4); k > 0 && at < s->m.len; k--) {
			uint32_t n = any_cut(seed);

			n = n < s->m.len - at ? n : (uint32_t)(s->m.len - at);
			*link = slice_new(s->m.out + at, n);
			link = &(*link)->next;
			at += n;
		}
		mpa_rx_add(&r, chain);
		while ((got = mpa_rx_next(&r, &f)) == 1) {
			cr_assert_lt(i, FPDUS);
			check_fpdu(s, &f, i, buf, seed);
			cr_assert_eq(mpa_rx_next(&r, &again), 1);
			cr_assert(again.flat == f.flat && again.ulpdu_len == f.ulpdu_len);
			consumed += mpa_rx_done(&r, &f);
			i++;
		}
		cr_assert_eq(got, 0, "FPDU %d: %d", i, got);
	}
	cr_assert_eq(i, FPDUS);
	cr_assert_eq(consumed, s->m.len);
	cr_assert_eq(slices_live, 0);
	free(buf);
}

static void
both_agree(bool crc, bool markers, uint32_t start)
{
	struct stream *s = malloc(sizeof(*s));
	uint64_t seed = 0x5044 + 2 * crc + markers;

	stream_make(s, crc, markers, start, &seed);
	writer_agrees(s, &seed);
	reader_agrees(s, &seed);
	stream_drop(s);
	free(s);
}

Test(mpa_stream, plain_5044_4)
{
	both_agree(false, false, 0);
}

Test(mpa_stream, crc_5044_4_4)
{
	both_agree(true, false, 0);
}

Test(mpa_stream, markers_5044_4_3)
{
	both_agree(false, true, 0);
}

Test(mpa_stream, markers_and_crc_5044_4_3)
{
	both_agree(true, true, 0);
}

Test(mpa_stream, markers_when_the_position_wraps)
{
	both_agree(true, true, 0xffff0104u);
}

/* ---- A whole FPDU is returned as a pointer ---- */

Test(mpa_stream, an_fpdu_in_one_slice_is_flat)
{
	uint8_t out[4096], ulpdu[64] = {9};
	struct model m = {.crc = true, .out = out};
	struct tcp_slice *s;
	struct mpa_fpdu f;
	struct mpa_rx r;

	for (int i = 0; i < 5; i++)
		model_fpdu(&m, ulpdu, sizeof(ulpdu));
	s = slice_new(out, (uint32_t)m.len);
	mpa_rx_init(&r, true, false, slices_free, NULL);
	mpa_rx_add(&r, s);
	for (uint32_t i = 0; i < 5; i++) {
		cr_assert_eq(mpa_rx_next(&r, &f), 1);
		cr_assert(f.flat == s->data + i * 72 + 2);
		cr_assert_eq(slices_live, 1);
		cr_assert_eq(mpa_rx_done(&r, &f), 72);
	}
	cr_assert_eq(slices_live, 0);
	cr_assert_eq(mpa_rx_next(&r, &f), 0);
}

Test(mpa_stream, a_marker_in_front_leaves_the_ulpdu_flat_one_inside_does_not)
{
	uint8_t out[4096], ulpdu[600] = {9};
	struct model m = {.crc = true, .markers = true, .out = out};
	struct mpa_fpdu f;
	struct mpa_rx r;

	model_fpdu(&m, ulpdu, 64);
	model_fpdu(&m, ulpdu, 600);
	mpa_rx_init(&r, true, true, slices_free, NULL);
	mpa_rx_add(&r, slice_new(out, (uint32_t)m.len));
	cr_assert_eq(mpa_rx_next(&r, &f), 1);
	cr_assert(f.flat != NULL && f.flat[0] == 9);
	mpa_rx_done(&r, &f);
	cr_assert_eq(mpa_rx_next(&r, &f), 1);
	cr_assert(f.flat == NULL);
	mpa_rx_clear(&r);
	cr_assert_eq(slices_live, 0);
}

/* Returns the result of mpa_rx_next() for a slice of `n` bytes with the CRC `crc` of `crc_len`
 * bytes. */
static int
next_with_crc(const uint8_t *bytes, uint32_t n, uint32_t crc, uint32_t crc_len, bool markers)
{
	struct tcp_slice *s = slice_new(bytes, n);
	struct mpa_fpdu f;
	struct mpa_rx r;
	int rc;

	s->crc = crc;
	s->crc_len = crc_len;
	mpa_rx_init(&r, true, markers, slices_free, NULL);
	mpa_rx_add(&r, s);
	rc = mpa_rx_next(&r, &f);
	mpa_rx_clear(&r);
	return rc;
}

Test(mpa_rx, the_crc_of_a_slice_counts_only_for_a_slice_of_one_fpdu_5044_4_4)
{
	static uint8_t ulpdu[1000];
	uint8_t out[2200];
	struct model m = {.crc = true, .out = out};
	uint32_t n = model_fpdu(&m, ulpdu, sizeof(ulpdu)), crc;

	model_fpdu(&m, ulpdu, sizeof(ulpdu));
	crc = sk_crc32c(SK_CRC32C_INIT, out, n - 4);
	cr_assert_eq(next_with_crc(out, n, crc, n - 4, false), 1);
	cr_assert_eq(next_with_crc(out, n, crc ^ 1, n - 4, false), -MPA_CRC);
	/* The CRC is not that of the FPDU: it is computed. */
	cr_assert_eq(next_with_crc(out, n, crc ^ 1, 0, false), 1);
	cr_assert_eq(next_with_crc(out, n, crc ^ 1, n, false), 1);
	cr_assert_eq(next_with_crc(out, 2 * n, crc ^ 1, n - 4, false), 1);
	cr_assert_eq(next_with_crc(out, 2 * n, crc ^ 1, 2 * n - 4, false), 1);
	out[n / 2] ^= 1;
	cr_assert_eq(next_with_crc(out, 2 * n, crc, n - 4, false), -MPA_CRC);
	m = (struct model){.crc = true, .markers = true, .out = out};
	n = model_fpdu(&m, ulpdu, sizeof(ulpdu));
	cr_assert_eq(next_with_crc(out, n, crc ^ 1, n - 4, true), 1);
	cr_assert_eq(slices_live, 0);
}
