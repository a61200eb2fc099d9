/* SPDX-License-Identifier: BSD-3-Clause */
/* DDP Stream Session Control over SCTP (RFC 5043, RFC 6581 7): messages, sequences, negotiation. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../../lib/iwarp/sctp_session.h"

#define ANY MPA_IRD_AUTO

static const struct mpa_offer plain = {.revision = 1, .ird = 4, .ord = 4};
static const struct mpa_offer enhanced = {.revision = 2, .ird = 16, .ord = 8};
static const struct mpa_offer peer = {
	.revision = 2, .ird = 4, .ord = 4, .rtr_send = true, .rtr_read = true};

struct pair {
	struct sctp_session i, r;
	uint8_t buf[SCTP_SESSION_MAX];
	int len; /* of the last message */
};

static void
initiate(struct pair *p, const struct mpa_offer *oi, const struct mpa_offer *orr)
{
	sctp_session_init(&p->i, true, oi);
	sctp_session_init(&p->r, false, orr);
	p->len = sctp_session_initiate(&p->i, p->buf, "hi", 2);
	cr_assert_gt(p->len, 0);
	cr_assert_eq(p->i.state, SCTP_SESSION_WAIT_REPLY);
	cr_assert_eq(sctp_session_input(&p->r, p->buf, (size_t)p->len), 0);
	cr_assert_eq(p->r.state, SCTP_SESSION_REQUESTED);
}

static int
reply(struct pair *p, enum sctp_verdict verdict, uint16_t ird, uint16_t ord)
{
	p->len = sctp_session_reply(&p->r, p->buf, verdict, ird, ord, "z", 1);
	cr_assert_gt(p->len, 0);
	return sctp_session_input(&p->i, p->buf, (size_t)p->len);
}

/* ---- Messages ---- */

Test(sctp_session, initiate_known_answers_6581_7)
{
	static const uint8_t want1[] = {0, 0, 0, 1, 'h', 'i'};
	static const uint8_t want5[] = {0, 0, 0, 5, 0, 16, 0, 8, 'h', 'i'};
	static const uint8_t want5p[] = {0, 0, 0, 5, 0xc0, 4, 0x40, 4, 'h', 'i'};
	struct pair p;

	initiate(&p, &plain, &enhanced);
	cr_assert_eq(p.len, (int)sizeof(want1));
	cr_assert_arr_eq(p.buf, want1, sizeof(want1));
	initiate(&p, &enhanced, &enhanced);
	cr_assert_eq(p.len, (int)sizeof(want5));
	cr_assert_arr_eq(p.buf, want5, sizeof(want5));
	initiate(&p, &peer, &enhanced);
	cr_assert_arr_eq(p.buf, want5p, sizeof(want5p));
}

Test(sctp_session, reply_known_answers_6581_7)
{
	static const uint8_t want2[] = {0, 0, 0, 2, 'z'}, want3[] = {0, 0, 0, 3, 'z'};
	static const uint8_t want6[] = {0, 0, 0, 6, 0, 8, 0, 16, 'z'}, want7[] = {0, 0, 0, 7, 'z'};
	struct pair p;

	initiate(&p, &plain, &enhanced);
	cr_assert_eq(reply(&p, SCTP_VERDICT_ACCEPT, 9, 9), 0);
	cr_assert(p.len == 5 && memcmp(p.buf, want2, 5) == 0);
	initiate(&p, &plain, &enhanced);
	cr_assert_eq(reply(&p, SCTP_VERDICT_REJECT, 9, 9), 0);
	cr_assert(p.len == 5 && memcmp(p.buf, want3, 5) == 0);
	initiate(&p, &enhanced, &enhanced);
	cr_assert_eq(reply(&p, SCTP_VERDICT_ACCEPT, 99, 99), 0);
	cr_assert(p.len == 9 && memcmp(p.buf, want6, 9) == 0);
	initiate(&p, &enhanced, &enhanced);
	cr_assert_eq(reply(&p, SCTP_VERDICT_REJECT_ENHANCED, 9, 9), 0);
	cr_assert(p.len == 5 && memcmp(p.buf, want7, 5) == 0);
}

Test(sctp_session, private_data_comes_through_6581_7)
{
	struct pair p;

	initiate(&p, &enhanced, &enhanced);
	cr_assert_eq(p.r.peer_private.len, 2);
	cr_assert_arr_eq(p.r.peer_private.data, "hi", 2);
	cr_assert_eq(reply(&p, SCTP_VERDICT_REJECT_ENHANCED, 0, 0), 0);
	cr_assert_eq(p.i.peer_private.len, 1);
	cr_assert_eq(p.i.peer_private.data[0], 'z');
}

Test(sctp_session, private_data_is_512_bytes_with_the_word_6581_7)
{
	uint8_t buf[SCTP_SESSION_MAX + 1] = {0}, data[513] = {0};
	struct sctp_session_msg m;
	struct sctp_session s;

	sctp_session_init(&s, true, &plain);
	cr_assert_eq(sctp_session_initiate(&s, buf, data, 513), -EMSGSIZE);
	cr_assert_eq(s.state, SCTP_SESSION_IDLE);
	cr_assert_eq(sctp_session_initiate(&s, buf, data, 512), SCTP_SESSION_MAX);
	sctp_session_init(&s, true, &enhanced);
	cr_assert_eq(sctp_session_initiate(&s, buf, data, 509), -EMSGSIZE);
	cr_assert_eq(sctp_session_initiate(&s, buf, data, 508), SCTP_SESSION_MAX);
	for (uint8_t f = SCTP_INITIATE; f <= SCTP_REJECT_ENHANCED; f++) {
		buf[3] = f;
		cr_assert_eq(sctp_session_parse(&m, buf, SCTP_SESSION_MAX + 1),
			-MPA_PRIVATE_TOO_LONG, "function %u", f);
		cr_assert_eq(sctp_session_parse(&m, buf, SCTP_SESSION_MAX),
			f == SCTP_TERMINATE ? -MPA_PRIVATE_TOO_LONG : 0, "function %u", f);
	}
}

Test(sctp_session, a_terminate_has_no_private_data_6581_7)
{
	static const uint8_t want[] = {0, 1, 0, 4}, more[] = {0, 1, 0, 4, 0};
	struct sctp_session_msg m = {
		.function = SCTP_TERMINATE, .private_data = more, .private_len = 1};
	uint8_t buf[SCTP_SESSION_MAX];
	struct pair p;

	initiate(&p, &enhanced, &enhanced);
	cr_assert_eq(sctp_session_terminate(&p.i, buf), 4);
	cr_assert_arr_eq(buf, want, 4);
	cr_assert_eq(sctp_session_emit(buf, &m), -EMSGSIZE);
	cr_assert_eq(sctp_session_input(&p.r, more, 5), -MPA_PRIVATE_TOO_LONG);
	cr_assert_eq(p.r.state, SCTP_SESSION_FAILED);
}

Test(sctp_session, what_is_no_message_is_refused)
{
	static const uint8_t bad[][7] = {{0, 0, 0, 0}, {0, 0, 0, 8}, {0, 0, 1, 1}};
	static const uint8_t word_cut[] = {0, 0, 0, 5, 0, 1, 0};
	struct sctp_session_msg m;

	for (size_t len = 0; len < 4; len++)
		cr_assert_eq(sctp_session_parse(&m, word_cut, len), -MPA_BAD_STARTUP);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(sctp_session_parse(&m, bad[i], 4), -MPA_BAD_STARTUP, "%d", i);
	for (size_t len = 4; len < 8; len++)
		cr_assert_eq(sctp_session_parse(&m, word_cut, len), -MPA_ENHANCED_SHORT);
}

/* ---- Sequences (RFC 5043 6.2 to 6.4, with the enhanced functions) ---- */

Test(sctp_session, accepted_and_terminated_by_either_side_5043_6_2)
{
	for (int side = 0; side < 2; side++) {
		for (int rev = 1; rev <= 2; rev++) {
			struct sctp_session *from, *to;
			struct pair p;
			int n;

			initiate(&p, rev == 1 ? &plain : &enhanced, &enhanced);
			cr_assert_eq(reply(&p, SCTP_VERDICT_ACCEPT, 4, 4), 0);
			cr_assert_eq(p.i.state, SCTP_SESSION_ACCEPTED);
			cr_assert_eq(p.r.state, SCTP_SESSION_ACCEPTED);
			from = side ? &p.r : &p.i;
			to = side ? &p.i : &p.r;
			n = sctp_session_terminate(from, p.buf);
			cr_assert_eq(n, 4);
			cr_assert_eq(p.buf[3], SCTP_TERMINATE);
			cr_assert_eq(sctp_session_input(to, p.buf, 4), 0);
			cr_assert_eq(from->state, SCTP_SESSION_TERMINATED);
			cr_assert_eq(to->state, SCTP_SESSION_TERMINATED);
			cr_assert_eq(sctp_session_terminate(to, p.buf), -EINVAL);
		}
	}
}

Test(sctp_session, rejected_5043_6_3)
{
	struct pair p;

	initiate(&p, &enhanced, &enhanced);
	cr_assert_eq(reply(&p, SCTP_VERDICT_REJECT, 0, 0), 0);
	cr_assert_eq(p.i.state, SCTP_SESSION_REFUSED);
	cr_assert_eq(p.r.state, SCTP_SESSION_REFUSED);
	cr_assert_not(p.i.unenhanced_would);
}

/* Enhanced Reject means that a request without the enhancements would have been accepted. */
Test(sctp_session, enhanced_reject_has_the_reason_6581_7)
{
	struct pair p;

	initiate(&p, &enhanced, &enhanced);
	cr_assert_eq(reply(&p, SCTP_VERDICT_REJECT_ENHANCED, 0, 0), 0);
	cr_assert_eq(p.i.state, SCTP_SESSION_REFUSED);
	cr_assert(p.i.unenhanced_would);
	initiate(&p, &plain, &enhanced);
	cr_assert_eq(sctp_session_reply(&p.r, p.buf, SCTP_VERDICT_REJECT_ENHANCED, 0, 0, NULL, 0),
		-EINVAL);
}

Test(sctp_session, refused_before_the_application_was_asked_5043_6_4)
{
	struct pair p;

	initiate(&p, &enhanced, &enhanced);
	cr_assert_eq(sctp_session_terminate(&p.r, p.buf), 4);
	cr_assert_eq(sctp_session_input(&p.i, p.buf, 4), 0);
	cr_assert_eq(p.i.state, SCTP_SESSION_NO_ULP);
}

/* Every function in every state: all but the legal sequences are errors, and an error does not
 * change a session that is over. */
Test(sctp_session, whatever_is_out_of_sequence_is_refused)
{
	static const struct {
		enum sctp_session_state state;
		unsigned legal; /* bit per function, for an enhanced session */
	} rows[] = {
		{SCTP_SESSION_IDLE, 0},
		{SCTP_SESSION_WAIT_REPLY, 1 << SCTP_ACCEPT_ENHANCED | 1 << SCTP_REJECT |
						  1 << SCTP_REJECT_ENHANCED | 1 << SCTP_TERMINATE},
		{SCTP_SESSION_WAIT_INITIATE, 1 << SCTP_INITIATE | 1 << SCTP_INITIATE_ENHANCED},
		{SCTP_SESSION_REQUESTED, 1 << SCTP_TERMINATE},
		{SCTP_SESSION_ACCEPTED, 1 << SCTP_TERMINATE},
		{SCTP_SESSION_REFUSED, 0},
		{SCTP_SESSION_NO_ULP, 0},
		{SCTP_SESSION_TERMINATED, 0},
		{SCTP_SESSION_FAILED, 0},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (uint8_t f = 1; f <= 7; f++) {
			uint8_t m[8] = {0, 0, 0, f, 0, 1, 0, 1};
			enum sctp_session_state st = rows[i].state;
			struct sctp_session s;
			int r;

			sctp_session_init(&s, st == SCTP_SESSION_WAIT_REPLY, &enhanced);
			s.state = st;
			r = sctp_session_input(&s, m, f == SCTP_TERMINATE ? 4 : 8);
			if (rows[i].legal & 1u << f) {
				cr_assert_eq(r, 0, "state %d, function %u", st, f);
				cr_assert_neq(s.state, st);
				continue;
			}
			cr_assert_lt(r, 0, "state %d, function %u", st, f);
			cr_assert_eq(
				s.state, st >= SCTP_SESSION_REFUSED ? st : SCTP_SESSION_FAILED);
		}
	}
}

/* ---- Negotiation: the same rules of RFC 6581 9 as for MPA ---- */

Test(sctp_session, depths_6581_9_1)
{
	static const uint16_t some[] = {0, 1, 16, 16382, ANY};

	for (int k = 0; k < 625; k++) {
		uint16_t ii = some[k % 5], io = some[k / 5 % 5], ri = some[k / 25 % 5],
			 ro = some[k / 125];
		struct mpa_offer o = {.revision = 2, .ird = ii, .ord = io};
		struct pair p;

		initiate(&p, &o, &enhanced);
		cr_assert(p.r.result.peer_ird == ii && p.r.result.peer_ord == io);
		cr_assert_eq(reply(&p, SCTP_VERDICT_ACCEPT, ri, ro), 0, "%d", k);
		cr_assert(io == ANY ? p.i.result.peer_ird == ANY && p.r.result.ird == ri
				    : p.i.result.ord <= p.r.result.ird || p.r.result.ird == ANY);
		cr_assert(ii == ANY ? p.i.result.peer_ord == ANY && p.r.result.ord == ro
				    : p.r.result.ord <= p.i.result.ird);
		cr_assert(p.i.result.ord <= io && p.i.result.ird <= ii);
	}
}

Test(sctp_session, rtr_options_6581_9_2)
{
	struct mpa_offer other = {.revision = 2, .ird = 4, .ord = 4, .rtr_write = true};
	struct pair p;

	initiate(&p, &peer, &peer);
	cr_assert_eq(reply(&p, SCTP_VERDICT_ACCEPT, 4, 4), 0);
	cr_assert_eq((int)p.i.result.rtr, MPA_RTR_SEND);
	cr_assert_eq((int)p.r.result.rtr, MPA_RTR_SEND);
	initiate(&p, &peer, &other);
	cr_assert_eq(reply(&p, SCTP_VERDICT_ACCEPT, 4, 4), -MPA_NO_RTR);
}

/* L, DV 1; RV 1, Terminate; QN 2, MSN 1; LLP, MPA, code. Then the session's own Terminate. */
static void
check_fault(struct sctp_session *s, uint8_t code)
{
	const uint8_t want[] = {
		0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x20, code, 0, 0};
	uint8_t buf[SCTP_SESSION_MAX];

	cr_assert_eq(sctp_session_fault(s, buf), sizeof(want));
	cr_assert_arr_eq(buf, want, sizeof(want));
	cr_assert_eq(sctp_session_terminate(s, buf), 4);
	cr_assert_eq(sctp_session_fault(s, buf), 0);
}

Test(sctp_session, errors_6_7_and_5_are_sent_in_a_segment_6581_8)
{
	static const uint8_t deep[] = {0, 0, 0, 6, 0, 8, 0, 17},
			     no_rtr[] = {0, 0, 0, 6, 0x80, 4, 0x80, 4}, unenhanced[] = {0, 0, 0, 2};
	struct pair p;

	initiate(&p, &enhanced, &enhanced);
	cr_assert_eq(sctp_session_input(&p.i, deep, 8), -MPA_NO_IRD);
	check_fault(&p.i, 6);
	initiate(&p, &peer, &enhanced);
	cr_assert_eq(sctp_session_input(&p.i, no_rtr, 8), -MPA_NO_RTR);
	check_fault(&p.i, 7);
	initiate(&p, &enhanced, &enhanced);
	cr_assert_eq(sctp_session_input(&p.i, unenhanced, 4), -MPA_PARAMETERS);
	check_fault(&p.i, 5);
}

Test(sctp_session, a_responder_without_the_enhancements_refuses_them_6581_10)
{
	uint8_t buf[SCTP_SESSION_MAX];
	struct sctp_session i, r;
	int n;

	sctp_session_init(&i, true, &enhanced);
	sctp_session_init(&r, false, &plain);
	n = sctp_session_initiate(&i, buf, NULL, 0);
	cr_assert_eq(sctp_session_input(&r, buf, (size_t)n), -MPA_BAD_REVISION);
	cr_assert_eq(sctp_session_fault(&r, buf), 0, "no segment to one who was not accepted");
	cr_assert_eq(sctp_session_terminate(&r, buf), 4);
	cr_assert_eq(sctp_session_input(&i, buf, 4), 0);
	cr_assert_eq(i.state, SCTP_SESSION_NO_ULP);
}

Test(sctp_session, calls_at_the_wrong_time_are_refused)
{
	struct mpa_offer bad[] = {{.revision = 0}, {.revision = 3}, {.revision = 2, .ird = 0x4000},
		{.revision = 2, .ord = 0x4000}};
	uint8_t buf[SCTP_SESSION_MAX];
	struct sctp_session s;
	struct pair p;

	for (int i = 0; i < 4; i++) {
		sctp_session_init(&s, true, &bad[i]);
		cr_assert_eq(sctp_session_initiate(&s, buf, NULL, 0), -EINVAL);
	}
	sctp_session_init(&s, false, &enhanced);
	cr_assert_eq(sctp_session_initiate(&s, buf, NULL, 0), -EINVAL);
	cr_assert_eq(sctp_session_reply(&s, buf, SCTP_VERDICT_ACCEPT, 1, 1, NULL, 0), -EINVAL);
	cr_assert_eq(sctp_session_terminate(&s, buf), -EINVAL);
	initiate(&p, &enhanced, &enhanced);
	cr_assert_eq(sctp_session_initiate(&p.i, buf, NULL, 0), -EINVAL);
	cr_assert_eq(
		sctp_session_reply(&p.r, buf, SCTP_VERDICT_ACCEPT, 0x4000, 1, NULL, 0), -EINVAL);
	cr_assert_eq(
		sctp_session_reply(&p.r, buf, SCTP_VERDICT_ACCEPT, 1, 0x4000, NULL, 0), -EINVAL);
	cr_assert_eq(p.r.state, SCTP_SESSION_REQUESTED);
}
