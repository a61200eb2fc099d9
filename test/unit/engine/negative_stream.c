/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors of a stream instead of a message: CRC, markers and lengths of MPA, streams that end within
 * an FPDU (RFC 5044 8), received Terminates, valid and invalid, and two errors at once, of which
 * the first counts (RFC 5040 7).
 */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "negative_row.h"

TestSuite(negative_stream, .init = neg_start, .fini = neg_stop);

static const struct neg_msg write8 = {RDMAP_WRITE, true, .stag = WRITABLE, .to = 16, .len = 8};
static const struct neg_msg send8 = {RDMAP_SEND, .msn = 1, .len = 8, .empty_stag = true};

/* Checks the state of the victim after an error: the reason is counted once, the program has one
 * event, the work requests are flushed, the memory is unchanged, and the neighbours continue. */
static void
expect_fatal(const char *name, const char *reason, uint64_t before)
{
	struct neg_row flushed = {.name = name};

	cr_assert_str_eq(neg_event(name, SAKER_EV_QP_FATAL).async.reason, reason, "%s", name);
	cr_assert_eq(neg_counter("iw", reason), before + 1, "%s: %s", name, reason);
	neg_row_completions(&flushed);
	neg_untouched(name);
	neg_end(name, true);
}

/* ---- Valid messages are accepted: the errors in the other tests are not caused by the fixture
 * ---- */

Test(negative_stream, the_same_messages_unspoilt_are_taken)
{
	static const struct neg_msg good[] = {
		{RDMAP_WRITE, true, .stag = WRITABLE, .to = NEG_REGION - 8, .len = 8},
		{RDMAP_SEND, .msn = 1, .len = NEG_RECV, .empty_stag = true},
		{RDMAP_IMMEDIATE, .msn = 2, .len = 8},
		READ(1, READABLE, NEG_REGION - 64, 64),
		{RDMAP_ATOMIC_REQUEST, .qn = 1, .msn = 2, .stag = ATOMIC, .to = 8, .id = 9,
			.len = 52},
		{RDMAP_READ_RESPONSE, true, .stag = LOCAL, .to = 8, .len = 64},
	};
	struct neg_mode mode = {.sq = SQ_READ};
	uint8_t ulpdu[2048], fpdu[2048];

	neg_victim(&mode);
	for (unsigned i = 0; i < SK_ARRAY_LEN(good); i++)
		raw_send(&neg.conn, fpdu, neg_frame(fpdu, ulpdu, neg_build(ulpdu, &good[i], false)),
			RAW_MSS);
	neg_expect_wc("Send", neg.recv_cq, 100, RD_SUCCESS);
	neg_expect_wc("Immediate Data", neg.recv_cq, 101, RD_SUCCESS);
	neg_expect_wc("Read", neg.send_cq, 200, RD_SUCCESS);
	neg_expect_wc("Write", neg.send_cq, 201, RD_SUCCESS);
	cr_assert_eq(neg_take(ulpdu), 14 + 64);
	cr_assert_eq(
		memcmp(ulpdu + 14, (void *)(uintptr_t)(neg_base(READABLE) + NEG_REGION - 64), 64),
		0, "the Read Response's bytes");
	cr_assert_eq(neg_take(ulpdu), 18 + 12);
	cr_assert_eq(ulpdu[1], 0x4b, "an Atomic Response");
	for (unsigned i = 0; i < 8; i++) {
		const uint8_t *end = (void *)(uintptr_t)(neg_base(WRITABLE) + NEG_REGION - 8);
		const uint8_t *sink = (void *)(uintptr_t)(neg_base(LOCAL) + 8);

		cr_assert_eq(end[i], (uint8_t)~neg_pattern((uint64_t)(end + i - neg.mem)));
		cr_assert_eq(sink[i], (uint8_t)~neg_pattern((uint64_t)(sink + i - neg.mem)));
	}
	raw_fin(&neg.conn);
	neg_end("unspoilt", false);
}

/* The victim ignores reserved fields: the reserved bits of DDP and RDMAP (RFC 5041 4.1, RFC 5040
 * 4.1), the STag of a Send without invalidation, and the bytes of a pad (RFC 5044 4.1). */
Test(negative_stream, what_is_reserved_is_ignored_rfc5044_4_1_rfc5041_4_1_rfc5040_4_1)
{
	struct neg_msg m = {RDMAP_SEND, .msn = 1, .len = 5, .stag = FOREIGN};
	struct neg_mode mode = {.sq = SQ_EMPTY};
	uint8_t ulpdu[64], fpdu[64];
	uint32_t n, crc;

	neg_victim(&mode);
	n = neg_frame(fpdu, ulpdu, neg_build(ulpdu, &m, true));
	fpdu[2] |= 0x3c;
	fpdu[3] |= 0x30;
	memset(fpdu + n - 7, 0xff, 3);
	crc = neg_crc32c(fpdu, n - 4);
	for (unsigned i = 0; i < 4; i++)
		fpdu[n - 4 + i] = (uint8_t)(crc >> 8 * i);
	raw_send(&neg.conn, fpdu, n, RAW_MSS);
	neg_expect_wc("reserved", neg.recv_cq, 100, RD_SUCCESS);
	raw_fin(&neg.conn);
	neg_end("reserved", false);
	neg_untouched("reserved");
}

/* ---- MPA ---- */

/* One bit of each part of an FPDU is wrong: payload, headers, pad, and the CRC itself. (A larger
 * length would make the victim wait for more bytes; the tests below reduce it.) */
Test(negative_stream, crc_rfc5044_8)
{
	static const struct {
		const char *name;
		int at; /* byte of the FPDU; negative: from its end */
	} rows[] = {
		{"DDP control", 2},
		{"opcode", 3},
		{"STag", 7},
		{"tagged offset", 15},
		{"payload", 20},
		{"pad", -6},
		{"CRC", -1},
		{"first byte of the CRC", -4},
	};
	struct neg_msg m = write8;

	m.len = 6; /* two bytes of pad */
	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		uint64_t crc = neg_counter("iw", "IW_LLP_CRC");
		uint64_t mpa = neg_counter("mpa", "MPA_CRC");
		struct neg_term term = {LLP, 0, 0x02, NOTHING};
		struct neg_mode mode = {.sq = SQ_READ};
		uint8_t ulpdu[64], fpdu[64];
		uint32_t n;

		neg_victim(&mode);
		n = neg_frame(fpdu, ulpdu, neg_build(ulpdu, &m, false));
		fpdu[rows[i].at < 0 ? (int)n + rows[i].at : rows[i].at] ^= 0x10;
		raw_send(&neg.conn, fpdu, n, RAW_MSS);
		neg_expect_terminate(rows[i].name, &term, NULL, 0);
		cr_assert_eq(neg_counter("mpa", "MPA_CRC"), mpa + 1, "%s", rows[i].name);
		expect_fatal(rows[i].name, "IW_LLP_CRC", crc);
	}
}

/* Writes an FPDU with markers for a ULPDU of `len` bytes, which begins at byte `pos` of the stream.
 * `off` is added to each marker. */
static uint32_t
frame_marked(uint8_t *fpdu, const uint8_t *ulpdu, uint32_t len, uint32_t pos, uint16_t off)
{
	uint8_t plain[4096];
	uint32_t n = neg_frame(plain, ulpdu, len) - 4, out = 0, crc;

	for (uint32_t i = 0; i <= n; i += 4) { /* markers stand at multiples of 4 from its start */
		if ((pos + out) % 512 == 0) {
			uint32_t ptr = out + off;

			memcpy(fpdu + out, (uint8_t[]){0, 0, (uint8_t)(ptr >> 8), (uint8_t)ptr}, 4);
			out += 4;
		}
		if (i < n)
			memcpy(fpdu + out, plain + i, 4);
		out += i < n ? 4 : 0;
	}
	crc = neg_crc32c(fpdu, out);
	for (unsigned i = 0; i < 4; i++)
		fpdu[out++] = (uint8_t)(crc >> 8 * i);
	return out;
}

/* The stream's first 24 bytes are the fixture's first FPDU and its marker. */
Test(negative_stream, markers_rfc5044_8)
{
	static const uint16_t wrong[] = {4, 0x100, 0xfffc, 0x8000, 0};
	struct neg_msg m = {RDMAP_WRITE, true, .stag = WRITABLE, .to = 0, .len = 1000};
	struct neg_term term = {LLP, 0, 0x03, NOTHING};
	struct neg_mode mode = {.sq = SQ_READ, .markers = true};
	struct neg_row flushed = {"right markers"};
	uint8_t ulpdu[2048], fpdu[2048];

	for (unsigned i = 0; i < SK_ARRAY_LEN(wrong); i++) {
		uint64_t before = neg_counter("iw", "IW_LLP_MARKER");
		uint32_t n;

		neg_victim(&mode);
		n = neg_build(ulpdu, &m, false);
		raw_send(&neg.conn, fpdu, frame_marked(fpdu, ulpdu, n, 24, wrong[i]), RAW_MSS);
		if (wrong[i] != 0) {
			neg_expect_terminate("marker", &term, NULL, 0);
			expect_fatal("marker", "IW_LLP_MARKER", before);
		}
	}
	raw_fin(&neg.conn); /* the last markers were valid */
	neg_expect_no_terminate("right markers");
	neg_row_completions(&flushed);
	cr_assert_eq(memcmp(neg.mem + NEG_REGION, ulpdu + 14, 1000), 0, "they do no harm");
	neg_end("right markers", false);
}

/* ULPDUs that are shorter than the header that their T bit requires. */
Test(negative_stream, short_ulpdus_rfc5041_4)
{
	struct neg_term term = {RDMAP, 2, 0xff, NOTHING};
	struct neg_mode mode = {.sq = SQ_READ};
	uint8_t ulpdu[64], fpdu[64];

	for (unsigned tagged = 0; tagged < 2; tagged++) {
		for (uint32_t len = 0; len < (tagged ? 14 : 18); len++) {
			uint64_t before = neg_counter("iw", "IW_RDMAP_UNSPECIFIED");

			neg_victim(&mode);
			neg_build(ulpdu, tagged ? &write8 : &send8, false);
			raw_send(&neg.conn, fpdu, neg_frame(fpdu, ulpdu, len), RAW_MSS);
			neg_expect_terminate("short", &term, NULL, 0);
			expect_fatal("short", "IW_RDMAP_UNSPECIFIED", before);
		}
	}
}

/* A peer need not fit its FPDUs to segments: the victim accepts an FPDU of three segments, which is
 * longer than its own MULPDU. */
Test(negative_stream, an_fpdu_longer_than_a_segment_is_taken_rfc5044_5_2)
{
	static const struct neg_msg m = {RDMAP_WRITE, true, .stag = WRITABLE, .len = NEG_REGION};
	static const struct neg_msg send8_behind = {
		RDMAP_SEND, .msn = 1, .len = 8, .empty_stag = true};
	static uint8_t ulpdu[2 * NEG_REGION], stream[2 * NEG_REGION];
	uint8_t behind[64];
	struct neg_mode mode = {.sq = SQ_EMPTY};
	uint32_t len, n;

	neg_victim(&mode);
	len = neg_build(ulpdu, &m, false);
	n = neg_frame(stream, ulpdu, len);
	n += neg_frame(stream + n, behind, neg_build(behind, &send8_behind, false));
	raw_send(&neg.conn, stream, n, RAW_MSS);
	neg_expect_wc("behind", neg.recv_cq, 100, RD_SUCCESS);
	cr_assert_eq(memcmp(neg.mem + NEG_REGION + 8, ulpdu + 14 + 8, NEG_REGION - 8), 0);
	raw_fin(&neg.conn);
	neg_end("longer", false);
}

/* ---- Streams that end early ---- */

/* FIN or RST within an FPDU, and RST between two: the victim cannot send a Terminate, or the peer
 * would not receive it (only the victim's program receives code 1). The work requests are
 * flushed. */
Test(negative_stream, lost_rfc5044_8)
{
	static const struct {
		const char *name;
		uint32_t bytes; /* of an FPDU of 28 */
		bool reset;
		int status;
	} rows[] = {
		{"FIN behind a byte", 1, false, -ECONNRESET},
		{"FIN behind the length", 2, false, -ECONNRESET},
		{"FIN in the header", 9, false, -ECONNRESET},
		{"FIN in the payload", 20, false, -ECONNRESET},
		{"FIN in the CRC", 27, false, -ECONNRESET},
		{"RST in the payload", 20, true, -ECONNRESET},
		{"RST between FPDUs", 0, true, -ECONNRESET},
	};
	struct neg_row flushed = {"lost"};

	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		uint64_t before = neg_counter("iw", "IW_LLP_CLOSED");
		struct neg_mode mode = {.sq = SQ_READ};
		uint8_t ulpdu[64], fpdu[64];

		neg_victim(&mode);
		neg_frame(fpdu, ulpdu, neg_build(ulpdu, &write8, false));
		raw_send(&neg.conn, fpdu, rows[i].bytes, RAW_MSS);
		if (rows[i].reset)
			raw_reset(&neg.conn);
		else
			raw_fin(&neg.conn);
		if (!rows[i].reset)
			neg_expect_no_terminate(rows[i].name);
		neg_row_completions(&flushed);
		cr_assert_eq(neg_counter("iw", "IW_LLP_CLOSED"), before + 1, "%s", rows[i].name);
		neg_untouched(rows[i].name);
		neg_end(rows[i].name, false);
	}
}

/* An FPDU has the largest length, and the stream ends before: the victim uses no byte of it. */
Test(negative_stream, a_length_that_is_never_reached_rfc5044_8)
{
	struct neg_mode mode = {.sq = SQ_READ};
	struct neg_row flushed = {"length"};
	uint8_t bytes[1024];

	neg_victim(&mode);
	memset(bytes, 0xff, sizeof(bytes));
	for (unsigned i = 0; i < 40; i++)
		raw_send(&neg.conn, bytes, sizeof(bytes), RAW_MSS);
	neg_neighbours("length");
	raw_fin(&neg.conn);
	neg_expect_no_terminate("length");
	neg_row_completions(&flushed);
	neg_untouched("length");
	neg_end("length", false);
}

/* ---- Received Terminates ---- */

#define HEAD_UNTAGGED 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0

static const struct terminate_row {
	const char *name;
	uint8_t len;
	uint8_t body[64];
	uint8_t send; /* status of the Read (MSN 1) that is outstanding; 0: flushed */
} terminates[] = {
	{"bare", 4, {0x02, 0x07}},
	{"from the LLP", 4, {0x20, 0x02}},
	{"a layer and a type that do not exist", 4, {0xff, 0xff}},
	{"no bytes", 0},
	{"3 bytes", 3, {0x01, 0x02, 0xe0}},
	{"M, and no length behind it", 4, {0x01, 0x02, 0x80}},
	{"M and D, and half a header", 15, {0x01, 0x02, 0xc0, 0, 0, 46, 0x41, 0x41}},
	{"D without M", 22, {0x01, 0x02, 0x40, 0, HEAD_UNTAGGED}, RD_REM_ACCESS_ERR},
	{"R without D", 32, {0x01, 0x02, 0x20}},
	{"all three, and no Read Request", 24, {0x01, 0x02, 0xe0, 0, 0, 46, HEAD_UNTAGGED}},
	{"about our Read: rights", 52, {0x01, 0x02, 0xe0, 0, 0, 46, HEAD_UNTAGGED},
		RD_REM_ACCESS_ERR},
	{"about our Read: no buffer", 24, {0x12, 0x02, 0xc0, 0, 0, 46, HEAD_UNTAGGED},
		RD_REM_OP_ERR},
	{"about our Read: opcode unknown", 24, {0x02, 0x06, 0xc0, 0, 0, 46, HEAD_UNTAGGED},
		RD_REM_INV_REQ_ERR},
	{"about a Read that is not ours", 24,
		{0x01, 0x02, 0xc0, 0, 0, 46, 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9}},
	{"about our Write", 20, {0x11, 0x00, 0xc0, 0, 0, 78, 0xc1, 0x40, 0xab, 0xcd, 0xef, 0x01}},
	{"bytes behind all that there can be", 60, {0x01, 0x02, 0xe0, 0, 0, 46, HEAD_UNTAGGED},
		RD_REM_ACCESS_ERR},
};

static uint32_t
terminate_in(uint8_t *fpdu, const uint8_t *body, uint32_t len)
{
	static const struct neg_term t = {RDMAP, 2, 0xff, NOTHING};
	uint8_t ulpdu[2048];

	neg_terminate(ulpdu, &t, NULL, 0);
	memcpy(ulpdu + 18, body, len);
	return neg_frame(fpdu, ulpdu, 18 + len);
}

/* The victim answers no Terminate with a Terminate. */
Test(negative_stream, terminates_in_rfc5040_4_8_rfc5040_7_1)
{
	for (unsigned i = 0; i < SK_ARRAY_LEN(terminates); i++) {
		const struct terminate_row *t = &terminates[i];
		struct neg_row row = {.name = t->name, .send = t->send};
		uint64_t in = neg_counter("iw", "IW_TERMINATE_IN");
		uint64_t out = neg_counter("iw", "IW_TERMINATE_OUT");
		struct neg_mode mode = {.sq = SQ_READ};
		uint8_t fpdu[128];

		neg_victim(&mode);
		raw_send(&neg.conn, fpdu, terminate_in(fpdu, t->body, t->len), RAW_MSS);
		neg_expect_no_terminate(t->name);
		cr_assert_str_eq(neg_event(t->name, SAKER_EV_QP_FATAL).async.reason,
			"IW_TERMINATE_IN", "%s", t->name);
		cr_assert_eq(neg_counter("iw", "IW_TERMINATE_IN"), in + 1, "%s", t->name);
		cr_assert_eq(neg_counter("iw", "IW_TERMINATE_OUT"), out, "%s", t->name);
		neg_row_completions(&row);
		neg_untouched(t->name);
		neg_end(t->name, true);
	}
}

/* A Terminate fills a whole segment: the victim reads only the bytes that a Terminate can have. */
Test(negative_stream, a_terminate_of_1300_bytes)
{
	static const uint8_t body[1300] = {0x01, 0x02, 0xe0};
	uint64_t before = neg_counter("iw", "IW_TERMINATE_IN");
	struct neg_mode mode = {.sq = SQ_READ};
	uint8_t fpdu[2048];

	neg_victim(&mode);
	raw_send(&neg.conn, fpdu, terminate_in(fpdu, body, sizeof(body)), RAW_MSS);
	neg_expect_no_terminate("1300 bytes");
	expect_fatal("1300 bytes", "IW_TERMINATE_IN", before);
}

/* ---- The first error counts ---- */

static const struct neg_msg first_bad = {
	RDMAP_WRITE, true, .stag = READABLE, .to = 0, .len = 8}; /* no right to write */

/* Sends in one segment an invalid message, then the message `more`, then a valid Write. */
static void
two_errors(const char *name, const struct neg_msg *more, bool terminate)
{
	static const uint8_t bare[4] = {0x02, 0x07};
	struct neg_term term = {RDMAP, 1, 0x02, DDP_HEAD};
	uint64_t before = neg_counter("iw", "IW_RDMAP_ACCESS");
	uint64_t out = neg_counter("iw", "IW_TERMINATE_OUT");
	uint64_t in = neg_counter("iw", "IW_TERMINATE_IN");
	struct neg_mode mode = {.sq = SQ_READ};
	uint8_t seg[64], ulpdu[256], stream[1024];
	uint32_t len, n;

	neg_victim(&mode);
	len = neg_build(seg, &first_bad, false);
	n = neg_frame(stream, seg, len);
	if (more != NULL)
		n += neg_frame(stream + n, ulpdu, neg_build(ulpdu, more, false));
	if (terminate)
		n += terminate_in(stream + n, bare, 4);
	n += neg_frame(stream + n, ulpdu, neg_build(ulpdu, &write8, false));
	raw_send(&neg.conn, stream, n, RAW_MSS);
	/* The peer sends them again, before it receives the victim's Terminate. */
	raw_send(&neg.conn, stream, n, RAW_MSS);
	neg_expect_terminate(name, &term, seg, len);
	cr_assert_eq(neg_counter("iw", "IW_TERMINATE_OUT"), out + 1, "%s", name);
	cr_assert_eq(neg_counter("iw", "IW_TERMINATE_IN"), in, "%s", name);
	expect_fatal(name, "IW_RDMAP_ACCESS", before);
}

Test(negative_stream, the_first_error_wins_rfc5040_7)
{
	static const struct neg_msg bad_queue = {RDMAP_SEND, .qn = 9, .msn = 1, .len = 8};
	static const struct neg_msg bad_version = {RDMAP_SEND, .dv = 3, .msn = 1, .len = 8};

	two_errors("another error", &bad_queue, false);
	two_errors("a version", &bad_version, false);
	two_errors("a Terminate crosses ours", NULL, true);
	two_errors("an error and a Terminate", &bad_queue, true);
}

/* The peer sends a Terminate before an error of its own, which the victim does not answer. */
Test(negative_stream, an_error_behind_a_terminate_is_ignored_rfc5040_7)
{
	static const uint8_t bare[4] = {0x02, 0x07};
	uint64_t before = neg_counter("iw", "IW_TERMINATE_IN");
	uint64_t other = neg_counter("iw", "IW_RDMAP_ACCESS");
	struct neg_mode mode = {.sq = SQ_READ};
	uint8_t ulpdu[64], stream[256];
	uint32_t n;

	neg_victim(&mode);
	n = terminate_in(stream, bare, 4);
	n += neg_frame(stream + n, ulpdu, neg_build(ulpdu, &first_bad, false));
	raw_send(&neg.conn, stream, n, RAW_MSS);
	neg_expect_no_terminate("behind");
	cr_assert_eq(neg_counter("iw", "IW_RDMAP_ACCESS"), other);
	expect_fatal("behind", "IW_TERMINATE_IN", before);
}
