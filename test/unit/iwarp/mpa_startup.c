/* SPDX-License-Identifier: BSD-3-Clause */
/* The start-up frames: known answers, delivery in pieces, and refused frames (RFC 5044 7.1, RFC
 * 6581 6). */
#include <criterion/criterion.h>
#include <errno.h>

#include "mpa_util.h"

static const struct mpa_offer rev1 = {.revision = 1, .crc = true};
static const struct mpa_offer rev2 = {.revision = 2, .crc = true, .ird = 16, .ord = 8};

#define REQUEST_KEY 'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'q', ' ', 'F', 'r', 'a', 'm', 'e'
#define REPLY_KEY   'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'p', ' ', 'F', 'r', 'a', 'm', 'e'

static const uint8_t request1[] = {REQUEST_KEY, 0x40, 1, 0, 3, 'a', 'b', 'c'};
/* C and S; 4 + 2 bytes; A clear; IRD 16; ORD 8. */
static const uint8_t request2[] = {REQUEST_KEY, 0x50, 2, 0, 6, 0, 16, 0, 8, 'h', 'i'};
static const uint8_t reply1[] = {REPLY_KEY, 0x40, 1, 0, 1, 'z'};
static const uint8_t reply2[] = {REPLY_KEY, 0x50, 2, 0, 5, 0, 8, 0, 16, 'z'};

static void
responder(struct mpa_startup *s, const struct mpa_offer *o)
{
	mpa_startup_init(s, false, o);
}

/* Makes an initiator that has sent its request. */
static void
initiator(struct mpa_startup *s, const struct mpa_offer *o)
{
	uint8_t buf[MPA_STARTUP_MAX];

	mpa_startup_init(s, true, o);
	cr_assert_gt(mpa_request_emit(s, buf, NULL, 0), 0);
	cr_assert_eq(s->state, MPA_WAIT_REPLY);
}

Test(mpa_startup, request_known_answer_5044_7_1_1)
{
	struct mpa_startup s;
	uint8_t buf[MPA_STARTUP_MAX];

	mpa_startup_init(&s, true, &rev1);
	cr_assert_eq(mpa_request_emit(&s, buf, "abc", 3), (int)sizeof(request1));
	cr_assert_arr_eq(buf, request1, sizeof(request1));
}

Test(mpa_startup, enhanced_request_known_answer_6581_6)
{
	struct mpa_startup s;
	uint8_t buf[MPA_STARTUP_MAX];

	mpa_startup_init(&s, true, &rev2);
	cr_assert_eq(mpa_request_emit(&s, buf, "hi", 2), (int)sizeof(request2));
	cr_assert_arr_eq(buf, request2, sizeof(request2));
}

Test(mpa_startup, peer_to_peer_request_known_answer_6581_9)
{
	struct mpa_offer o = {.revision = 2,
		.markers = true,
		.ird = 0x1234,
		.ord = MPA_IRD_AUTO,
		.rtr_send = true,
		.rtr_read = true};
	static const uint8_t want[] = {
		REQUEST_KEY, 0x90, 2, 0, 4, 0xc0 | 0x12, 0x34, 0x40 | 0x3f, 0xff};
	struct mpa_startup s;
	uint8_t buf[MPA_STARTUP_MAX];

	mpa_startup_init(&s, true, &o);
	cr_assert_eq(mpa_request_emit(&s, buf, NULL, 0), (int)sizeof(want));
	cr_assert_arr_eq(buf, want, sizeof(want));
}

Test(mpa_startup, reply_known_answers)
{
	struct mpa_startup s;
	uint8_t buf[MPA_STARTUP_MAX];

	responder(&s, &rev1);
	cr_assert_eq(mpa_startup_input(&s, request1, sizeof(request1)), (int)sizeof(request1));
	cr_assert_eq(s.state, MPA_REQUESTED);
	cr_assert_eq(s.peer_private.len, 3);
	cr_assert_arr_eq(s.peer_private.data, "abc", 3);
	cr_assert_eq(mpa_reply_emit(&s, buf, true, 9, 9, "z", 1), (int)sizeof(reply1));
	cr_assert_arr_eq(buf, reply1, sizeof(reply1));
	cr_assert_eq(s.state, MPA_ACCEPTED);

	responder(&s, &rev2);
	cr_assert_eq(mpa_startup_input(&s, request2, sizeof(request2)), (int)sizeof(request2));
	cr_assert_eq(s.result.peer_ird, 16);
	cr_assert_eq(s.result.peer_ord, 8);
	cr_assert_eq(s.peer_private.len, 2);
	cr_assert_arr_eq(s.peer_private.data, "hi", 2);
	cr_assert_eq(mpa_reply_emit(&s, buf, true, 99, 99, "z", 1), (int)sizeof(reply2));
	cr_assert_arr_eq(buf, reply2, sizeof(reply2));
}

Test(mpa_startup, reject_known_answer_5044_7_1_1)
{
	static const uint8_t want[] = {REPLY_KEY, 0x60, 1, 0, 2, 'n', 'o'};
	struct mpa_startup s;
	uint8_t buf[MPA_STARTUP_MAX];

	responder(&s, &rev1);
	mpa_startup_input(&s, request1, sizeof(request1));
	cr_assert_eq(mpa_reply_emit(&s, buf, false, 0, 0, "no", 2), (int)sizeof(want));
	cr_assert_arr_eq(buf, want, sizeof(want));
	cr_assert_eq(s.state, MPA_REFUSED);

	initiator(&s, &rev1);
	cr_assert_eq(mpa_startup_input(&s, want, sizeof(want)), (int)sizeof(want));
	cr_assert_eq(s.state, MPA_REFUSED);
	cr_assert_arr_eq(s.peer_private.data, "no", 2);
}

/* A rejecting responder may state the depths that it would need (RFC 6581 9.1): they are not
 * reduced. */
Test(mpa_startup, reject_states_the_depths_that_were_required_6581_9_1)
{
	struct mpa_startup s;
	uint8_t buf[MPA_STARTUP_MAX];
	int len;

	responder(&s, &rev2);
	mpa_startup_input(&s, request2, sizeof(request2));
	len = mpa_reply_emit(&s, buf, false, 100, 200, NULL, 0);
	cr_assert_eq(len, MPA_STARTUP_LEN + 4);
	initiator(&s, &rev2);
	cr_assert_eq(mpa_startup_input(&s, buf, (size_t)len), len);
	cr_assert_eq(s.state, MPA_REFUSED);
	cr_assert_eq(s.result.peer_ird, 100);
	cr_assert_eq(s.result.peer_ord, 200);
	cr_assert_eq(s.peer_private.len, 0);
}

/* ---- Pieces ---- */

static void
in_pieces(struct mpa_startup *s, const uint8_t *frame, size_t len, size_t piece)
{
	enum mpa_state before = s->state;

	for (size_t at = 0; at < len;) {
		size_t n = len - at < piece ? len - at : piece;

		cr_assert_eq(s->state, before);
		cr_assert_eq(mpa_startup_input(s, frame + at, n), (int)n);
		at += n;
	}
}

Test(mpa_startup, frames_come_in_any_pieces)
{
	for (size_t piece = 1; piece <= sizeof(request2); piece++) {
		struct mpa_startup s;

		responder(&s, &rev2);
		in_pieces(&s, request2, sizeof(request2), piece);
		cr_assert_eq(s.state, MPA_REQUESTED);
		cr_assert_eq(s.result.peer_ird, 16);
		cr_assert_arr_eq(s.peer_private.data, "hi", 2);

		initiator(&s, &rev2);
		in_pieces(&s, reply2, sizeof(reply2), piece);
		cr_assert_eq(s.state, MPA_ACCEPTED);
		cr_assert_eq(s.peer_private.data[0], 'z');
	}
}

/* The bytes behind the reply are the first FPDU. */
Test(mpa_startup, no_byte_behind_a_frame_is_taken)
{
	uint8_t more[sizeof(reply2) + 40];
	struct mpa_startup s;

	memset(more, 0x55, sizeof(more));
	memcpy(more, reply2, sizeof(reply2));
	for (size_t cut = 0; cut < sizeof(reply2); cut++) {
		initiator(&s, &rev2);
		cr_assert_eq(mpa_startup_input(&s, more, cut), (int)cut);
		cr_assert_eq(mpa_startup_input(&s, more + cut, sizeof(more) - cut),
			(int)(sizeof(reply2) - cut));
		cr_assert_eq(s.state, MPA_ACCEPTED);
		cr_assert_eq(mpa_startup_input(&s, more, 40), 0);
		cr_assert_eq(s.state, MPA_ACCEPTED);
	}
}

Test(mpa_startup, no_data_behind_a_request_before_the_reply_5044_7_1_2)
{
	uint8_t more[sizeof(request1) + 1];
	struct mpa_startup s;

	memcpy(more, request1, sizeof(request1));
	responder(&s, &rev1);
	cr_assert_eq(mpa_startup_input(&s, more, sizeof(more)), (int)sizeof(request1));
	cr_assert_eq(mpa_startup_input(&s, more, 0), 0);
	cr_assert_eq(s.state, MPA_REQUESTED);
	cr_assert_eq(mpa_startup_input(&s, more, 1), -MPA_EARLY_DATA);
	cr_assert_eq(s.state, MPA_FAILED);
}

/* ---- Refused frames ---- */

static void
refused(const struct mpa_offer *o, const uint8_t *frame, size_t len, int reason)
{
	struct mpa_startup s;

	responder(&s, o);
	cr_assert_eq(mpa_startup_input(&s, frame, len), -reason);
	cr_assert_eq(s.state, MPA_FAILED);
	cr_assert_lt(mpa_startup_input(&s, frame, len), 0);
}

Test(mpa_startup, every_byte_of_the_key_counts_5044_7_1_1)
{
	for (int i = 0; i < 16; i++) {
		uint8_t bad[sizeof(request1)];

		memcpy(bad, request1, sizeof(bad));
		bad[i] ^= 0x20;
		refused(&rev1, bad, sizeof(bad), MPA_BAD_STARTUP);
	}
}

Test(mpa_startup, a_frame_of_the_other_kind_is_refused)
{
	struct mpa_startup s;

	refused(&rev1, reply1, sizeof(reply1), MPA_BAD_STARTUP);
	initiator(&s, &rev1);
	cr_assert_eq(mpa_startup_input(&s, request1, sizeof(request1)), -MPA_BAD_STARTUP);
	cr_assert_eq(s.state, MPA_FAILED);
}

Test(mpa_startup, an_initiator_accepts_no_bytes_before_its_request)
{
	struct mpa_startup s;

	mpa_startup_init(&s, true, &rev1);
	cr_assert_eq(mpa_startup_input(&s, reply1, sizeof(reply1)), -MPA_BAD_STARTUP);
}

Test(mpa_startup, revisions_that_are_refused)
{
	uint8_t bad[sizeof(request2)];

	memcpy(bad, request2, sizeof(bad));
	bad[17] = 0;
	refused(&rev2, bad, sizeof(bad), MPA_BAD_REVISION);
	bad[17] = 3;
	refused(&rev2, bad, sizeof(bad), MPA_BAD_REVISION);
	bad[17] = 255;
	refused(&rev2, bad, sizeof(bad), MPA_BAD_REVISION);
	/* RFC 6581 10: a responder that implements only revision 1 closes the connection. */
	refused(&rev1, request2, sizeof(request2), MPA_BAD_REVISION);
}

Test(mpa_startup, private_data_has_a_limit_5044_7_1_1)
{
	uint8_t bad[MPA_STARTUP_LEN] = {REQUEST_KEY, 0, 1, 2, 0};
	struct mpa_startup s;

	responder(&s, &rev1);
	cr_assert_eq(mpa_startup_input(&s, bad, sizeof(bad)), (int)sizeof(bad));
	cr_assert_eq(s.state, MPA_WAIT_REQUEST);
	bad[19] = 1;
	refused(&rev1, bad, sizeof(bad), MPA_PRIVATE_TOO_LONG);
	bad[18] = bad[19] = 255;
	refused(&rev1, bad, sizeof(bad), MPA_PRIVATE_TOO_LONG);
}

Test(mpa_startup, an_enhanced_frame_has_its_word_6581_6)
{
	uint8_t bad[sizeof(request2)];

	memcpy(bad, request2, sizeof(bad));
	for (uint8_t len = 0; len < 4; len++) {
		bad[19] = len;
		refused(&rev2, bad, MPA_STARTUP_LEN + len, MPA_ENHANCED_SHORT);
	}
}

/* ---- Ignored bits ---- */

Test(mpa_startup, reserved_bits_are_not_looked_at_5044_7_1_1)
{
	uint8_t odd[sizeof(request1)];
	struct mpa_startup s;

	memcpy(odd, request1, sizeof(odd));
	/* R, which has no meaning in a request; S, which has none at revision 1; the reserved
	 * bits. */
	odd[16] |= 0x3f;
	responder(&s, &rev2);
	cr_assert_eq(mpa_startup_input(&s, odd, sizeof(odd)), (int)sizeof(odd));
	cr_assert_eq(s.state, MPA_REQUESTED);
	cr_assert_not(s.result.enhanced);
	cr_assert_eq(s.peer_private.len, 3);
	cr_assert_eq(s.result.peer_ird, MPA_IRD_AUTO);
	cr_assert_eq(s.result.peer_ord, MPA_IRD_AUTO);
}

/* RFC 6581 10: the reply to a request without S has no S either and the request's revision, and all
 * private data belongs to the application. */
Test(mpa_startup, an_unenhanced_request_gets_an_unenhanced_reply_6581_10)
{
	static const uint8_t request[] = {REQUEST_KEY, 0, 2, 0, 0};
	static const uint8_t private_data[MPA_PRIVATE_MAX + 1] = {7};
	uint8_t buf[MPA_STARTUP_MAX];
	struct mpa_startup s;

	responder(&s, &rev2);
	mpa_startup_input(&s, request, sizeof(request));
	cr_assert_eq(
		mpa_reply_emit(&s, buf, true, 3, 4, private_data, MPA_PRIVATE_MAX + 1), -EMSGSIZE);
	cr_assert_eq(mpa_reply_emit(&s, buf, true, 3, 4, private_data, MPA_PRIVATE_MAX),
		MPA_STARTUP_MAX);
	cr_assert_arr_eq(buf + 16, ((uint8_t[]){0x40, 2, 2, 0, 7}), 5);
	cr_assert_eq(s.result.ird, 3);
	cr_assert_eq(s.result.ord, 4);
}

/* ---- Misuse ---- */

Test(mpa_startup, frames_leave_only_in_their_state)
{
	uint8_t buf[MPA_STARTUP_MAX];
	struct mpa_startup s;

	initiator(&s, &rev1);
	cr_assert_eq(mpa_request_emit(&s, buf, NULL, 0), -EINVAL);
	cr_assert_eq(mpa_reply_emit(&s, buf, true, 0, 0, NULL, 0), -EINVAL);
	responder(&s, &rev1);
	cr_assert_eq(mpa_request_emit(&s, buf, NULL, 0), -EINVAL);
	cr_assert_eq(mpa_reply_emit(&s, buf, true, 0, 0, NULL, 0), -EINVAL);
	mpa_startup_input(&s, request1, sizeof(request1));
	cr_assert_eq(mpa_reply_emit(&s, buf, true, 0x4000, 0, NULL, 0), -EINVAL);
	cr_assert_eq(mpa_reply_emit(&s, buf, true, 0, 0x4000, NULL, 0), -EINVAL);
	cr_assert_gt(mpa_reply_emit(&s, buf, true, 0, 0, NULL, 0), 0);
	cr_assert_eq(mpa_reply_emit(&s, buf, true, 0, 0, NULL, 0), -EINVAL);
}

Test(mpa_startup, an_offer_that_cannot_be_is_refused)
{
	struct mpa_offer bad[] = {{.revision = 0}, {.revision = 3}, {.revision = 2, .ird = 0x4000},
		{.revision = 2, .ord = 0x4000}};
	uint8_t buf[MPA_STARTUP_MAX];
	struct mpa_startup s;

	for (int i = 0; i < 4; i++) {
		mpa_startup_init(&s, true, &bad[i]);
		cr_assert_eq(mpa_request_emit(&s, buf, NULL, 0), -EINVAL, "offer %d", i);
	}
}

Test(mpa_startup, the_word_takes_4_bytes_of_the_private_data_6581_9)
{
	static const uint8_t private_data[MPA_PRIVATE_MAX + 1];
	uint8_t buf[MPA_STARTUP_MAX];
	struct mpa_startup s;

	cr_assert_eq(mpa_private_max(1), 512);
	cr_assert_eq(mpa_private_max(2), 508);
	mpa_startup_init(&s, true, &rev1);
	cr_assert_eq(mpa_request_emit(&s, buf, private_data, 513), -EMSGSIZE);
	cr_assert_eq(mpa_request_emit(&s, buf, private_data, 512), MPA_STARTUP_MAX);
	mpa_startup_init(&s, true, &rev2);
	cr_assert_eq(mpa_request_emit(&s, buf, private_data, 509), -EMSGSIZE);
	cr_assert_eq(mpa_request_emit(&s, buf, private_data, 508), MPA_STARTUP_MAX);
	responder(&s, &rev2);
	mpa_startup_input(&s, request2, sizeof(request2));
	cr_assert_eq(mpa_reply_emit(&s, buf, true, 1, 1, private_data, 509), -EMSGSIZE);
	cr_assert_eq(mpa_reply_emit(&s, buf, true, 1, 1, private_data, 508), MPA_STARTUP_MAX);
}
