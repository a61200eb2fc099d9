/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Invalid start-up frames (RFC 5044 7.1, RFC 6581 9): requests that the victim must reject, and
 * replies to its own requests, some of which it must answer with a Terminate.
 */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "negative_row.h"

TestSuite(negative_startup, .init = neg_start, .fini = neg_stop);

#define A 0x80 /* in the first byte of the IRD/ORD word: peer-to-peer, and */
#define B 0x40 /* a Send may be the ready-to-receive message */
#define C 0x80 /* in its third byte: a Write may be, or */
#define D 0x40 /* a Read */

/* ---- Requests ---- */

static const struct request_row {
	const char *name, *reason;
	const char *key;
	uint8_t flags, revision;
	uint16_t private_len; /* the length field of the frame */
	uint16_t sent;        /* bytes that the peer sends, of the frame and after it */
	bool fin;             /* the peer then sends a FIN */
} requests[] = {
	{"no key", "MPA_BAD_STARTUP", "GET / HTTP/1.1\r\n", 0x40, 1, 0, 20},
	{"the reply's key", "MPA_BAD_STARTUP", "MPA ID Rep Frame", 0x40, 1, 0, 20},
	{"the key's last byte", "MPA_BAD_STARTUP", "MPA ID Req Fram\xe5", 0x40, 1, 0, 20},
	{"revision 0", "MPA_BAD_REVISION", "MPA ID Req Frame", 0x40, 0, 0, 20},
	{"revision 3", "MPA_BAD_REVISION", "MPA ID Req Frame", 0x40, 3, 0, 20},
	{"513 bytes of private data", "MPA_PRIVATE_TOO_LONG", "MPA ID Req Frame", 0x40, 1, 513, 20},
	{"65535 bytes of private data", "MPA_PRIVATE_TOO_LONG", "MPA ID Req Frame", 0x40, 1, 65535,
		20},
	{"enhanced, without its word", "MPA_ENHANCED_SHORT", "MPA ID Req Frame", 0x50, 2, 3, 23},
	{"an FPDU before the reply", "MPA_EARLY_DATA", "MPA ID Req Frame", 0x40, 1, 0, 48},
	{"FIN within the key", NULL, "MPA ID Req Frame", 0x40, 1, 0, 9, true},
	{"FIN within the private data", NULL, "MPA ID Req Frame", 0x40, 1, 64, 50, true},
};

static uint32_t
frame(uint8_t *buf, const char *key, uint8_t flags, uint8_t revision, uint16_t private_len)
{
	memcpy(buf, key, 16);
	buf[16] = flags;
	buf[17] = revision;
	buf[18] = (uint8_t)(private_len >> 8);
	buf[19] = (uint8_t)private_len;
	return 20;
}

/* Checks that the victim ended the connection with a reset or a FIN and sent nothing else, and that
 * its program received no event, except the request if that was valid. */
static void
check_request(const struct request_row *r)
{
	uint64_t before = r->reason != NULL ? neg_counter("mpa", r->reason) : 0;
	bool asked = r->sent > 20 + r->private_len;
	struct saker_event ev;
	uint8_t buf[1024] = {0};

	frame(buf, r->key, r->flags, r->revision, r->private_len);
	raw_connect(&neg.sw, &neg.conn, NEG_PORT);
	NEG_UNTIL(neg.conn.up, "%s", r->name);
	raw_send(&neg.conn, buf, r->sent, RAW_MSS);
	if (r->fin)
		raw_fin(&neg.conn);
	NEG_UNTIL(neg.conn.rst || neg.conn.fin_in, "%s: the connection stays", r->name);
	cr_assert_eq(neg.conn.got, 0, "%s: %u bytes are answered", r->name, neg.conn.got);
	if (r->reason != NULL)
		cr_assert_eq(neg_counter("mpa", r->reason), before + 1, "%s", r->name);
	for (int i = 0; i < 100; i++)
		neg_turn();
	while (saker_event(neg.s, &ev) == 1)
		cr_assert(asked && ev.type == SAKER_EV_CONNECT_REQUEST, "%s: event %d", r->name,
			ev.type);
	neg_silence(r->name);
	if (!neg.conn.rst && !neg.conn.fin_out)
		raw_fin(&neg.conn);
	raw_forget(&neg.conn);
	neg_neighbours(r->name);
}

/* The listener still accepts connections after all rows. */
Test(negative_startup, requests_rfc5044_7_1_1)
{
	struct neg_mode mode = {.sq = SQ_EMPTY};

	for (unsigned i = 0; i < SK_ARRAY_LEN(requests); i++)
		check_request(&requests[i]);
	neg_victim(&mode);
	raw_fin(&neg.conn);
	neg_end("a right one", false);
}

/* ---- Replies ---- */

/* The victim's request has CRC, IRD 4 and ORD 4, and at revision 2 the peer-to-peer model with
 * `rtr`. */
static const struct reply_row {
	const char *name, *reason;
	uint8_t asked; /* revision of the request */
	uint8_t rtr;   /* enum saker_rtr */
	uint8_t flags; /* this and the following fields: of the reply */
	uint8_t revision;
	uint16_t private_len;
	uint8_t word[4];
	uint8_t code; /* of the Terminate (LLP, MPA); 0: none, the connection is reset */
	int status;
	bool other_key;
} replies[] = {
	{"the request's key", "MPA_BAD_STARTUP", 1, 0, 0x40, 1, 0, {0}, 0, -EPROTO, true},
	{"revision 0", "MPA_BAD_REVISION", 1, 0, 0x40, 0, 0, {0}, 0, -EPROTO},
	{"revision 2 to a request of 1", "MPA_BAD_REVISION", 1, 0, 0x50, 2, 4, {0, 4, 0, 4}, 0,
		-EPROTO},
	{"revision 3", "MPA_BAD_REVISION", 2, 0, 0x50, 3, 4, {0, 4, 0, 4}, 0, -EPROTO},
	{"513 bytes of private data", "MPA_PRIVATE_TOO_LONG", 1, 0, 0x40, 1, 513, {0}, 0, -EPROTO},
	{"enhanced, without its word", "MPA_ENHANCED_SHORT", 2, 0, 0x50, 2, 3, {0}, 0, -EPROTO},
	{"no CRC, though we asked", "MPA_PARAMETERS", 1, 0, 0x00, 1, 0, {0}, 5, -EPROTO},
	{"no CRC, enhanced", "MPA_PARAMETERS", 2, SAKER_RTR_NONE, 0x10, 2, 4, {0, 4, 0, 4}, 5,
		-EPROTO},
	{"revision 2 that is not enhanced", "MPA_PARAMETERS", 2, SAKER_RTR_NONE, 0x40, 2, 0, {0}, 5,
		-EPROTO},
	{"its ORD is more than our IRD", "MPA_NO_IRD", 2, SAKER_RTR_NONE, 0x50, 2, 4, {0, 4, 0, 5},
		6, -ENOBUFS},
	{"its ORD is 0x3ffe", "MPA_NO_IRD", 2, SAKER_RTR_NONE, 0x50, 2, 4, {0, 4, 0x3f, 0xfe}, 6,
		-ENOBUFS},
	{"no RTR is ours: Read for Write", "MPA_NO_RTR", 2, SAKER_RTR_WRITE, 0x50, 2, 4,
		{A, 4, D, 4}, 7, -EOPNOTSUPP},
	{"no RTR is ours: Send for Read", "MPA_NO_RTR", 2, SAKER_RTR_READ, 0x50, 2, 4,
		{A | B, 4, 0, 4}, 7, -EOPNOTSUPP},
	{"no RTR is ours: Send and Write for Read", "MPA_NO_RTR", 2, SAKER_RTR_READ, 0x50, 2, 4,
		{A | B, 4, C, 4}, 7, -EOPNOTSUPP},
	{"peer-to-peer without any RTR", "MPA_NO_RTR", 2, SAKER_RTR_WRITE, 0x50, 2, 4, {A, 4, 0, 4},
		7, -EOPNOTSUPP},
};

static void
check_reply(const struct reply_row *r)
{
	struct saker_conn_param p = {.ird = 4,
		.ord = 4,
		.crc = 1,
		.markers = 0,
		.revision = r->asked,
		.rtr = r->rtr,
		.enhanced = r->asked == 2 ? SAKER_ENHANCED_ONLY : 0};
	uint64_t before = neg_counter("mpa", r->reason);
	struct neg_term term = {LLP, 0, r->code, NOTHING};
	struct neg_mode mode = {0};
	struct neg_row flushed = {.name = r->name, .mode.sq = SQ_EMPTY};
	uint8_t buf[1024] = {0};
	uint32_t n;

	neg_make_qp(&mode);
	raw_accept(&neg.sw, &neg.conn, 7500);
	cr_assert_eq(saker_connect(neg.qp, NULL, &neg.sw.addr, 7500, &p), 0, "%s", saker_error());
	NEG_UNTIL(neg.conn.got >= (r->asked == 2 ? 24 : 20), "%s: no request", r->name);
	cr_assert_eq(memcmp(neg.conn.stream, "MPA ID Req Frame", 16), 0);
	cr_assert_eq(neg.conn.stream[17], r->asked);
	neg.conn.taken = neg.conn.got;
	n = frame(buf, r->other_key ? "MPA ID Req Frame" : "MPA ID Rep Frame", r->flags,
		r->revision, r->private_len);
	memcpy(buf + n, r->word, 4);
	raw_send(&neg.conn, buf, n + SK_MIN(r->private_len, 512), RAW_MSS);
	if (r->code)
		neg_expect_terminate(r->name, &term, NULL, 0);
	else
		NEG_UNTIL(neg.conn.rst, "%s: no reset", r->name);
	cr_assert_eq(neg.conn.got, neg.conn.taken, "%s", r->name);
	cr_assert_eq(neg_event(r->name, SAKER_EV_UNREACHABLE).status, r->status, "%s", r->name);
	cr_assert_eq(neg_counter("mpa", r->reason), before + 1, "%s", r->name);
	if (!neg.conn.rst)
		raw_fin(&neg.conn);
	/* The QP was never connected: it is in its initial state until it is modified. */
	cr_assert_eq(saker_qp_modify(neg.qp, RD_QP_ERR), 0);
	neg_row_completions(&flushed);
	neg_gone(r->name);
}

Test(negative_startup, replies_rfc5044_7_1_1_rfc6581_9)
{
	for (unsigned i = 0; i < SK_ARRAY_LEN(replies); i++)
		check_reply(&replies[i]);
}

/* The peer accepts, and then ends the stream within its reply or resets it after the reply. */
Test(negative_startup, a_reply_that_breaks_off_rfc5044_7_1)
{
	struct saker_conn_param p = {.ird = 4, .ord = 4, .crc = 1, .revision = 1};
	struct neg_mode mode = {0};
	uint8_t buf[64];

	for (uint32_t cut = 0; cut < 20; cut += 19) {
		neg_make_qp(&mode);
		raw_accept(&neg.sw, &neg.conn, 7500);
		cr_assert_eq(saker_connect(neg.qp, NULL, &neg.sw.addr, 7500, &p), 0);
		NEG_UNTIL(neg.conn.got >= 20, "no request");
		frame(buf, "MPA ID Rep Frame", 0x40, 1, 0);
		raw_send(&neg.conn, buf, cut, RAW_MSS);
		raw_fin(&neg.conn);
		cr_assert_eq(neg_event("cut", SAKER_EV_UNREACHABLE).status, -ECONNRESET);
		cr_assert_eq(saker_qp_destroy(neg.qp), 0);
		raw_forget(&neg.conn);
		neg_neighbours("cut");
	}
}

/* The peer sends an FPDU before the program has answered the request. */
Test(negative_startup, an_fpdu_before_the_reply_rfc5044_7_1_2)
{
	static const struct neg_msg write8 = {RDMAP_WRITE, true, .stag = WRITABLE, .len = 8};
	uint64_t before = neg_counter("mpa", "MPA_EARLY_DATA");
	struct saker_conn_param p = {.ird = 4, .ord = 4, .crc = 1};
	struct neg_mode mode = {0};
	uint8_t buf[64], ulpdu[64];
	struct saker_event ev;

	neg_make_qp(&mode);
	raw_connect(&neg.sw, &neg.conn, NEG_PORT);
	NEG_UNTIL(neg.conn.up, "not up");
	raw_send(&neg.conn, buf, frame(buf, "MPA ID Req Frame", 0x40, 1, 0), RAW_MSS);
	ev = neg_event("early", SAKER_EV_CONNECT_REQUEST);
	raw_send(&neg.conn, buf, neg_frame(buf, ulpdu, neg_build(ulpdu, &write8, false)), RAW_MSS);
	NEG_UNTIL(neg.conn.rst, "the connection stays");
	cr_assert_eq(neg_counter("mpa", "MPA_EARLY_DATA"), before + 1);
	cr_assert_lt(saker_accept(neg.s, ev.request, neg.qp, &p), 0);
	neg_untouched("early");
	neg_gone("early");
}
