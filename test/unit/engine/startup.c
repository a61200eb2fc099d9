/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameters of a client for the start-up of its connections (RFC 6581), against a scripted
 * peer: the frames that the victim sends for them, the events for the frames that it receives, and
 * the second attempt with revision 1.
 */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "negative.h"

TestSuite(engine_startup, .init = neg_start, .fini = neg_stop);

#define OPEN_PORT 7500
#define ANY       SAKER_DEPTH_AUTO
#define LIMIT     128 /* the engine's default IRD and ORD */

static const struct neg_mode mode = {.sq = SQ_EMPTY};
static struct raw_conn second;

/* Returns the 16-bit half `nth` of the IRD/ORD word, which follows the first 20 bytes of `p`. */
static uint16_t
half(const uint8_t *p, unsigned nth)
{
	return (uint16_t)(p[20 + 2 * nth] << 8 | p[21 + 2 * nth]);
}

static uint32_t
frame(uint8_t *buf, bool reply, uint8_t flags, uint8_t revision, uint16_t first, uint16_t next)
{
	const uint8_t word[] = {
		(uint8_t)(first >> 8), (uint8_t)first, (uint8_t)(next >> 8), (uint8_t)next};

	memcpy(buf, reply ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);
	buf[16] = flags;
	buf[17] = revision;
	buf[18] = 0;
	buf[19] = revision == 2 ? 4 : 0;
	memcpy(buf + 20, word, 4);
	return 20u + buf[19];
}

/* The victim connects. Its request of `len` bytes is then in neg.conn.stream. */
static void
ask(const char *name, const struct saker_conn_param *p, uint32_t len)
{
	neg_make_qp(&mode);
	raw_accept(&neg.sw, &neg.conn, OPEN_PORT);
	cr_assert_eq(saker_connect(neg.qp, NULL, &neg.sw.addr, OPEN_PORT, p), 0, "%s: %s", name,
		saker_error());
	NEG_UNTIL(neg.conn.got >= len, "%s: no request", name);
	cr_assert_eq(neg.conn.got, len, "%s: %u bytes", name, neg.conn.got);
	cr_assert_eq(memcmp(neg.conn.stream, "MPA ID Req Frame", 16), 0, "%s", name);
}

/* The peer ends an established stream, and all of its objects are freed. */
static void
done(const char *name, struct raw_conn *c)
{
	raw_fin(c);
	neg_event(name, SAKER_EV_DISCONNECTED);
	cr_assert_eq(saker_qp_destroy(neg.qp), 0);
	raw_forget(c);
	while (saker_cq_poll(neg.recv_cq, &(struct rd_wc){0}, 1) == 1)
		;
}

/* ---- Frames that the victim sends ---- */

/* RFC 6581 5, 9.2: flag A (0x8000 above IRD), B (0x4000 there), C and D (above ORD). */
Test(engine_startup, a_client_chooses_its_ready_to_receive_messages_6581_5)
{
	static const struct {
		uint8_t rtr;
		uint16_t ird, ord; /* with their flags */
	} rows[] = {
		{SAKER_RTR_ANY, 0xc003, 0xc004},
		{SAKER_RTR_SEND, 0xc003, 0x0004},
		{SAKER_RTR_WRITE, 0x8003, 0x8004},
		{SAKER_RTR_READ, 0x8003, 0x4004},
		{SAKER_RTR_WRITE | SAKER_RTR_READ, 0x8003, 0xc004},
		{SAKER_RTR_NONE, 0x0003, 0x0004},
	};

	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		struct saker_conn_param p = {.ird = 3, .ord = 4, .revision = 2, .rtr = rows[i].rtr};

		ask("RTR", &p, 24);
		cr_assert_eq(neg.conn.stream[17], 2);
		cr_assert_eq(half(neg.conn.stream, 0), rows[i].ird, "row %u: %04x", i,
			half(neg.conn.stream, 0));
		cr_assert_eq(half(neg.conn.stream, 1), rows[i].ord, "row %u: %04x", i,
			half(neg.conn.stream, 1));
		raw_reset(&neg.conn);
		cr_assert_eq(neg_event("RTR", SAKER_EV_UNREACHABLE).status, -ECONNRESET);
		neg_gone("RTR");
	}
}

/* RFC 5044 7.1.1: flags M and C of the request. The configuration has CRC and no markers. */
Test(engine_startup, a_client_chooses_crc_and_markers_5044_7_1_1)
{
	static const struct {
		uint8_t crc, markers, flags;
	} rows[] = {{0, 0, 0x00}, {1, 0, 0x40}, {2, 2, 0x40}, {0, 1, 0x80}, {2, 1, 0xc0}};

	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		struct saker_conn_param p = {
			.revision = 1, .crc = rows[i].crc, .markers = rows[i].markers};

		ask("flags", &p, 20);
		cr_assert_eq(
			neg.conn.stream[16], rows[i].flags, "row %u: %02x", i, neg.conn.stream[16]);
		raw_reset(&neg.conn);
		neg_event("flags", SAKER_EV_UNREACHABLE);
		neg_gone("flags");
	}
}

Test(engine_startup, wishes_that_make_no_sense_are_refused)
{
	static const struct saker_conn_param rows[] = {
		{.rtr = SAKER_RTR_NONE | SAKER_RTR_SEND},
		{.rtr = 0x10},
		{.rtr = SAKER_RTR_WRITE, .revision = 1},
		{.enhanced = 3},
		{.enhanced = SAKER_ENHANCED_ONLY, .revision = 1},
		{.dialect = 3},
		{.revision = 3},
		{.crc = 3},
	};

	neg_make_qp(&mode);
	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		cr_assert_eq(saker_connect(neg.qp, NULL, &neg.sw.addr, OPEN_PORT, &rows[i]),
			-EINVAL, "row %u", i);
		cr_assert_gt(strlen(saker_error()), 10, "row %u", i);
	}
	cr_assert_eq(saker_qp_destroy(neg.qp), 0);
	neg_silence("refused");
}

/* ---- Events for the program ---- */

/* The peer sends a client-server request of revision 2. Returns the program's event. */
static struct saker_event
requested(const char *name, uint8_t flags, uint16_t ird, uint16_t ord)
{
	uint8_t buf[64];

	neg_make_qp(&mode);
	raw_connect(&neg.sw, &neg.conn, NEG_PORT);
	NEG_UNTIL(neg.conn.up, "%s: nobody listens", name);
	raw_send(&neg.conn, buf, frame(buf, false, flags, 2, ird, ord), RAW_MSS);
	return neg_event(name, SAKER_EV_CONNECT_REQUEST);
}

/* RFC 6581 9.1: the event has both values as the peer sent them, whatever the limits of the engine.
 * The reply to an initiator's 0x3FFF is 0x3FFF, and leaves the depth of this side unchanged. */
Test(engine_startup, a_responders_program_sees_the_peers_depths_6581_9_1)
{
	static const struct {
		uint16_t ird, ord;           /* in the peer's request */
		uint16_t hint_ird, hint_ord; /* with all that the device has */
		uint16_t our_ird, our_ord;   /* after the program requested 9 and 8 */
		uint16_t said_ird, said_ord;
	} rows[] = {
		{0, 0, 0, 0, 0, 0, 0, 0},
		{5, 7, 7, 5, 7, 5, 7, 5},
		{128, 16382, 128, 128, 9, 8, 9, 8},
		{16382, 1, 1, 128, 1, 8, 1, 8},
		{ANY, 7, 7, 128, 7, 8, 7, ANY},
		{5, ANY, 128, 5, 9, 5, ANY, 5},
		{ANY, ANY, 128, 128, 9, 8, ANY, ANY},
	};

	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		struct saker_conn_param p = {.ird = 9, .ord = 8, .crc = 1};
		struct saker_event ev = requested("depths", 0x50, rows[i].ird, rows[i].ord);

		cr_assert_eq(ev.cm.peer_ird, rows[i].ird, "row %u: %u", i, ev.cm.peer_ird);
		cr_assert_eq(ev.cm.peer_ord, rows[i].ord, "row %u: %u", i, ev.cm.peer_ord);
		cr_assert_eq(ev.cm.ird, rows[i].hint_ird, "row %u: %u", i, ev.cm.ird);
		cr_assert_eq(ev.cm.ord, rows[i].hint_ord, "row %u: %u", i, ev.cm.ord);
		cr_assert_eq(ev.cm.enhanced, 1);
		cr_assert_eq(saker_accept(neg.s, ev.request, neg.qp, &p), 0, "%s", saker_error());
		ev = neg_event("depths", SAKER_EV_ESTABLISHED);
		cr_assert_eq(ev.cm.ird, rows[i].our_ird, "row %u: %u", i, ev.cm.ird);
		cr_assert_eq(ev.cm.ord, rows[i].our_ord, "row %u: %u", i, ev.cm.ord);
		cr_assert_eq(ev.cm.peer_ird, rows[i].ird, "row %u", i);
		NEG_UNTIL(neg.conn.got >= 24, "row %u: no reply", i);
		cr_assert_eq(half(neg.conn.stream, 0), rows[i].said_ird, "row %u", i);
		cr_assert_eq(half(neg.conn.stream, 1), rows[i].said_ord, "row %u", i);
		done("depths", &neg.conn);
	}
}

/* The same at the initiator: the values of the responder limit those of this side, or do not. */
Test(engine_startup, an_initiators_program_sees_the_peers_depths_6581_9_1)
{
	static const struct {
		uint16_t ird, ord;           /* asked for */
		uint16_t peer_ird, peer_ord; /* the reply's */
		uint16_t our_ird, our_ord;
	} rows[] = {
		{5, 6, 6, 5, 5, 6},
		{5, 6, 2, 1, 1, 2},
		{5, 6, ANY, ANY, 5, 6},
		{5, 6, 16382, 0, 0, 6},
		{ANY, ANY, ANY, ANY, LIMIT, LIMIT},
		{ANY, ANY, 16382, 3, 3, LIMIT},
		{0, 0, 0, 0, 0, 0},
	};

	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		struct saker_conn_param p = {.ird = rows[i].ird,
			.ord = rows[i].ord,
			.revision = 2,
			.rtr = SAKER_RTR_NONE};
		struct saker_event ev;
		uint8_t buf[64];

		ask("depths", &p, 24);
		cr_assert_eq(half(neg.conn.stream, 0), rows[i].ird, "row %u", i);
		cr_assert_eq(half(neg.conn.stream, 1), rows[i].ord, "row %u", i);
		raw_send(&neg.conn, buf,
			frame(buf, true, 0x10, 2, rows[i].peer_ird, rows[i].peer_ord), RAW_MSS);
		ev = neg_event("depths", SAKER_EV_ESTABLISHED);
		cr_assert_eq(ev.cm.peer_ird, rows[i].peer_ird, "row %u: %u", i, ev.cm.peer_ird);
		cr_assert_eq(ev.cm.peer_ord, rows[i].peer_ord, "row %u: %u", i, ev.cm.peer_ord);
		cr_assert_eq(ev.cm.ird, rows[i].our_ird, "row %u: %u", i, ev.cm.ird);
		cr_assert_eq(ev.cm.ord, rows[i].our_ord, "row %u: %u", i, ev.cm.ord);
		cr_assert_eq(ev.cm.rtr, SAKER_RTR_NONE);
		done("depths", &neg.conn);
	}
}

/* The same of a rejection, which may request depths (RFC 6581 9.1). */
Test(engine_startup, a_rejection_reports_the_depths_that_were_required_6581_9_1)
{
	struct saker_conn_param p = {.ird = 5, .ord = 6, .revision = 2, .rtr = SAKER_RTR_NONE};
	struct saker_conn_param wanted = {.ird = 77, .ord = 99};
	struct saker_event ev;
	uint8_t buf[64];

	ask("rejected", &p, 24);
	raw_send(&neg.conn, buf, frame(buf, true, 0x30, 2, 16000, 200), RAW_MSS);
	ev = neg_event("rejected", SAKER_EV_REJECTED);
	cr_assert_eq(ev.cm.peer_ird, 16000);
	cr_assert_eq(ev.cm.peer_ord, 200);
	raw_fin(&neg.conn);
	neg_gone("rejected");
	ev = requested("rejecting", 0x50, 1, 1);
	cr_assert_eq(saker_reject_as(neg.s, ev.request, &wanted), 0, "%s", saker_error());
	NEG_UNTIL(neg.conn.got >= 24, "no reply");
	/* The FIN follows later, because siw does not read private data that arrives with a FIN. */
	cr_assert_not(neg.conn.fin_in);
	cr_assert_eq(neg.conn.stream[16] & 0x30, 0x30);
	cr_assert_eq(half(neg.conn.stream, 0), 77);
	cr_assert_eq(half(neg.conn.stream, 1), 99);
	NEG_UNTIL(neg.conn.fin_in, "a rejected connection stays open");
	raw_fin(&neg.conn);
	neg_gone("rejecting");
}

/* RFC 5044 7.1.1: the stream has CRCs if either side requests them. The configuration does; with
 * the program's 0, the peer decides. */
Test(engine_startup, an_acceptance_chooses_crc_and_markers_5044_7_1_1)
{
	static const struct {
		uint8_t asked, crc, markers, answered;
	} rows[] = {
		{0x10, 0, 0, 0x10},
		{0x10, 1, 0, 0x50},
		{0x10, 2, 2, 0x50},
		{0x50, 0, 0, 0x50},
		{0x10, 0, 1, 0x90},
	};

	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		struct saker_conn_param p = {.crc = rows[i].crc, .markers = rows[i].markers};
		struct saker_event ev = requested("CRC", rows[i].asked, 1, 1);

		cr_assert_eq(saker_accept(neg.s, ev.request, neg.qp, &p), 0, "%s", saker_error());
		ev = neg_event("CRC", SAKER_EV_ESTABLISHED);
		cr_assert_eq(ev.cm.crc, (rows[i].answered & 0x40) != 0, "row %u", i);
		cr_assert_eq(ev.cm.markers, (rows[i].answered & 0x80) != 0, "row %u", i);
		NEG_UNTIL(neg.conn.got >= 24, "row %u: no reply", i);
		cr_assert_eq(neg.conn.stream[16], rows[i].answered, "row %u: %02x", i,
			neg.conn.stream[16]);
		done("CRC", &neg.conn);
	}
}

/* RFC 6581 9.2: the responder chooses among its own messages, and has at least one; a Read requires
 * an IRD of 1. */
Test(engine_startup, an_acceptance_chooses_ready_to_receive_messages_6581_9_2)
{
	static const struct {
		uint8_t rtr;
		uint16_t said_ird, said_ord;
		uint8_t in_use;
	} rows[] = {
		{SAKER_RTR_ANY, 0xc001, 0xc000, SAKER_RTR_READ},
		{SAKER_RTR_READ, 0x8001, 0x4000, SAKER_RTR_READ},
		{SAKER_RTR_WRITE, 0x8000, 0x8000, SAKER_RTR_NONE},
		{SAKER_RTR_NONE, 0x8000, 0x8000, SAKER_RTR_NONE},
	};

	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		struct saker_conn_param p = {.rtr = rows[i].rtr};
		struct saker_event ev = requested("RTR", 0x50, 0x8000, 0x4000); /* a Read only */

		cr_assert_eq(saker_accept(neg.s, ev.request, neg.qp, &p), 0, "%s", saker_error());
		ev = neg_event("RTR", SAKER_EV_ESTABLISHED);
		cr_assert_eq(ev.cm.rtr, rows[i].in_use, "row %u: %u", i, ev.cm.rtr);
		NEG_UNTIL(neg.conn.got >= 24, "row %u: no reply", i);
		cr_assert_eq(half(neg.conn.stream, 0), rows[i].said_ird, "row %u: %04x", i,
			half(neg.conn.stream, 0));
		cr_assert_eq(half(neg.conn.stream, 1), rows[i].said_ord, "row %u: %04x", i,
			half(neg.conn.stream, 1));
		done("RTR", &neg.conn);
	}
}

/* ---- Peers of revision 1 (RFC 6581 10) ---- */

/* The second request is not enhanced: revision 1, no IRD/ORD word, the same private data. */
static void
second_request(const char *name)
{
	const uint8_t *p = second.stream;

	NEG_UNTIL(second.got >= 25, "%s: no second attempt", name);
	cr_assert_eq(second.got, 25, "%s", name);
	cr_assert_eq(memcmp(p, "MPA ID Req Frame\x40\x01\x00\x05hello", 25), 0, "%s", name);
}

static void
first_closes(const char *name, const struct saker_conn_param *p, bool reset)
{
	ask(name, p, 29);
	cr_assert_eq(neg.conn.stream[17], 2, "%s", name);
	raw_accept(&neg.sw, &second, OPEN_PORT);
	if (reset)
		raw_reset(&neg.conn);
	else
		raw_fin(&neg.conn);
}

static struct saker_conn_param
wish(uint8_t enhanced)
{
	return (struct saker_conn_param){.ird = 3,
		.ord = 4,
		.crc = 2,
		.markers = 2,
		.enhanced = enhanced,
		.private_data = "hello",
		.private_len = 5};
}

Test(engine_startup, the_second_attempt_is_unenhanced_6581_10)
{
	for (int reset = 0; reset < 2; reset++) {
		struct saker_conn_param p = wish(SAKER_ENHANCED_TRY);
		uint64_t before = neg_counter("eng", "ENG_FALL_BACK");
		struct saker_event ev;
		uint8_t buf[64];

		first_closes("try", &p, reset);
		second_request("try");
		raw_send(&second, buf, frame(buf, true, 0x40, 1, 0, 0), RAW_MSS);
		ev = neg_event("try", SAKER_EV_ESTABLISHED);
		cr_assert_eq(ev.cm.revision, 1);
		cr_assert_eq(ev.cm.enhanced, 0);
		cr_assert_eq(ev.cm.peer_ird, ANY);
		cr_assert_eq(ev.cm.peer_ord, ANY);
		cr_assert_eq(ev.cm.ird, 3);
		cr_assert_eq(ev.cm.ord, 4);
		cr_assert_eq(ev.cm.rtr, SAKER_RTR_NONE);
		cr_assert_eq(neg_counter("eng", "ENG_FALL_BACK"), before + 1);
		raw_forget(&neg.conn);
		done("try", &second);
	}
}

/* A peer that also closes on an unenhanced request rejects the connection: there is no third
 * attempt. */
Test(engine_startup, there_is_no_third_attempt_6581_10)
{
	struct saker_conn_param p = wish(SAKER_ENHANCED_TRY);

	first_closes("once", &p, false);
	second_request("once");
	raw_fin(&second);
	cr_assert_eq(neg_event("once", SAKER_EV_UNREACHABLE).status, -ECONNRESET);
	raw_forget(&second);
	neg_gone("once");
}

/* A second attempt requires the permission of the application, which is off by default. */
Test(engine_startup, no_second_attempt_without_the_applications_word_6581_10)
{
	static const uint8_t enhanced[] = {SAKER_ENHANCED_CONFIGURED, SAKER_ENHANCED_ONLY};

	for (unsigned i = 0; i < SK_ARRAY_LEN(enhanced); i++) {
		struct saker_conn_param p = wish(enhanced[i]);

		first_closes("only", &p, true);
		cr_assert_eq(neg_event("only", SAKER_EV_UNREACHABLE).status, -ECONNRESET);
		for (int k = 0; k < 1000; k++)
			neg_turn();
		cr_assert_not(second.up, "row %u", i);
		raw_forget(&second);
		neg_gone("only");
	}
}

/* A peer answers an enhanced request with an unenhanced reply. The victim accepts the reply if the
 * application allows it, and otherwise sends a Terminate with the reason (9.3). */
Test(engine_startup, an_unenhanced_reply_is_taken_where_the_application_allows_it_6581_10)
{
	const struct neg_term term = {2, 0, 5, NOTHING};

	for (uint8_t enhanced = SAKER_ENHANCED_ONLY; enhanced <= SAKER_ENHANCED_TRY; enhanced++) {
		struct saker_conn_param p = wish(enhanced);
		uint8_t buf[64];

		ask("reply", &p, 29);
		neg.conn.taken = 29;
		raw_send(&neg.conn, buf, frame(buf, true, 0x40, 1, 0, 0), RAW_MSS);
		if (enhanced == SAKER_ENHANCED_TRY) {
			cr_assert_eq(neg_event("reply", SAKER_EV_ESTABLISHED).cm.revision, 1);
			done("reply", &neg.conn);
			continue;
		}
		neg_expect_terminate("reply", &term, NULL, 0);
		neg_event("reply", SAKER_EV_UNREACHABLE);
		raw_fin(&neg.conn);
		neg_gone("reply");
	}
}

/* A peer that has begun to answer supports the enhanced request. */
Test(engine_startup, no_second_attempt_behind_half_a_reply_6581_10)
{
	struct saker_conn_param p = wish(SAKER_ENHANCED_TRY);
	uint8_t buf[64];

	ask("half", &p, 29);
	raw_accept(&neg.sw, &second, OPEN_PORT);
	raw_send(&neg.conn, buf, frame(buf, true, 0x50, 2, 1, 1) - 1, RAW_MSS);
	raw_fin(&neg.conn);
	cr_assert_eq(neg_event("half", SAKER_EV_UNREACHABLE).status, -ECONNRESET);
	for (int k = 0; k < 1000; k++)
		neg_turn();
	cr_assert_not(second.up);
	raw_forget(&second);
	neg_gone("half");
}

/* A listener of revision 1 closes on an enhanced request, and accepts an unenhanced one. */
Test(engine_startup, a_listener_of_revision_1_closes_on_enhanced_requests_6581_10)
{
	struct saker_conn_param old = {.revision = 1, .crc = 2, .markers = 2};
	struct saker_listener *l;
	struct saker_event ev;
	uint8_t buf[64];

	cr_assert_eq(saker_listen_as(neg.s, NULL, 7600, 4, &old, NULL, &l), 0, "%s", saker_error());
	raw_connect(&neg.sw, &neg.conn, 7600);
	NEG_UNTIL(neg.conn.up, "nobody listens");
	raw_send(&neg.conn, buf, frame(buf, false, 0x50, 2, 1, 1), RAW_MSS);
	NEG_UNTIL(neg.conn.rst || neg.conn.fin_in, "an enhanced request is not refused");
	cr_assert_eq(neg.conn.got, 0);
	raw_forget(&neg.conn);
	neg_make_qp(&mode);
	raw_connect(&neg.sw, &neg.conn, 7600);
	NEG_UNTIL(neg.conn.up, "nobody listens");
	raw_send(&neg.conn, buf, frame(buf, false, 0x40, 1, 0, 0), RAW_MSS);
	ev = neg_event("old", SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(ev.cm.peer_ird, ANY);
	cr_assert_eq(saker_accept(neg.s, ev.request, neg.qp, &old), 0, "%s", saker_error());
	ev = neg_event("old", SAKER_EV_ESTABLISHED);
	cr_assert_eq(ev.cm.revision, 1);
	done("old", &neg.conn);
	cr_assert_eq(saker_unlisten(l), 0);
}
