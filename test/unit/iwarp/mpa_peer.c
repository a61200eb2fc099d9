/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Enhanced connections (RFC 6581): ready-to-receive messages, depths that are not negotiated, the
 * values that the application receives, and peers without the enhancements. Flags are those of the
 * IRD/ORD word: A and B in the IRD half, C and D in the ORD half.
 */
#include <criterion/criterion.h>

#include "mpa_util.h"

#define ANY MPA_IRD_AUTO

struct pair {
	struct mpa_startup i, r;       /* initiator, responder */
	struct wire_mpa_startup frame; /* the last frame that was sent */
	struct wire_mpa_ird_ord word;
};

static void
look(struct pair *p, const uint8_t *buf, int n)
{
	cr_assert_gt(n, 0);
	cr_assert_gt(wire_mpa_startup_parse(&p->frame, buf, (size_t)n), 0);
	p->word = (struct wire_mpa_ird_ord){0};
	if (p->frame.enhanced)
		wire_mpa_ird_ord_parse(&p->word, buf + MPA_STARTUP_LEN, MPA_IRD_ORD_LEN);
}

static void
request(struct pair *p, const struct mpa_offer *oi, const struct mpa_offer *orr)
{
	uint8_t buf[MPA_STARTUP_MAX];
	int n;

	mpa_startup_init(&p->i, true, oi);
	mpa_startup_init(&p->r, false, orr);
	n = mpa_request_emit(&p->i, buf, NULL, 0);
	look(p, buf, n);
	cr_assert_eq(mpa_startup_input(&p->r, buf, (size_t)n), n);
	cr_assert_eq(p->r.state, MPA_REQUESTED);
}

/* Returns the initiator's result of the reply: 0 or -reason. */
static int
reply(struct pair *p, bool accept, uint16_t ird, uint16_t ord)
{
	uint8_t buf[MPA_STARTUP_MAX];
	int n = mpa_reply_emit(&p->r, buf, accept, ird, ord, NULL, 0), got;

	look(p, buf, n);
	got = mpa_startup_input(&p->i, buf, (size_t)n);
	cr_assert(got == n || got < 0);
	return got < 0 ? got : 0;
}

/* Gives an initiator a constructed enhanced reply that accepts. */
static int
answer(struct mpa_startup *s, const struct mpa_offer *o, const struct wire_mpa_ird_ord *word)
{
	struct wire_mpa_startup h = {
		.reply = true, .enhanced = true, .crc = o->crc, .revision = 2, .private_len = 4};
	uint8_t buf[MPA_STARTUP_MAX], out[MPA_STARTUP_MAX];

	mpa_startup_init(s, true, o);
	cr_assert_gt(mpa_request_emit(s, out, NULL, 0), 0);
	wire_mpa_startup_emit(buf, &h);
	wire_mpa_ird_ord_emit(buf + MPA_STARTUP_LEN, word);
	return mpa_startup_input(s, buf, MPA_STARTUP_LEN + MPA_IRD_ORD_LEN);
}

/* Bits: 1 Send, 2 Write, 4 Read. */
static struct mpa_offer
rtr_offer(unsigned bits, uint16_t ird, uint16_t ord)
{
	return (struct mpa_offer){.revision = 2,
		.rtr_send = bits & 1,
		.rtr_write = bits & 2,
		.rtr_read = bits & 4,
		.ird = ird,
		.ord = ord};
}

static unsigned
flags(const struct wire_mpa_ird_ord *w)
{
	return (w->b ? 1 : 0) | (w->c ? 2 : 0) | (w->d ? 4 : 0);
}

/* ---- Ready to receive (9.2) ---- */

Test(mpa_peer, the_initiator_states_its_model_and_all_its_options_9_2)
{
	for (unsigned a = 0; a < 8; a++) {
		struct mpa_offer oi = rtr_offer(a, 4, 4), orr = rtr_offer(7, 0, 0);
		struct pair p;

		request(&p, &oi, &orr);
		cr_assert_eq(p.word.a, a != 0);
		cr_assert_eq(flags(&p.word), a, "B, C, D are 0 without A");
		cr_assert_eq(p.r.result.peer_to_peer, a != 0);
	}
}

Test(mpa_peer, the_responder_repeats_flag_a_9_2)
{
	for (unsigned b = 0; b < 8; b++) {
		struct mpa_offer client = rtr_offer(0, 4, 4), peer = rtr_offer(7, 4, 4);
		struct mpa_offer orr = rtr_offer(b, 0, 0);
		struct pair p;

		request(&p, &client, &orr);
		cr_assert_eq(reply(&p, true, 4, 4), 0);
		cr_assert_not(p.word.a);
		cr_assert_eq(flags(&p.word), 0, "B, C, D are 0 without A");
		request(&p, &peer, &orr);
		cr_assert_eq(reply(&p, true, 4, 4), 0);
		cr_assert(p.word.a);
		cr_assert_neq(flags(&p.word), 0, "one option at least");
	}
}

/* Returns the messages that a responder accepts. Without a preference it accepts a Write, since one
 * option must be supported (9.2). */
static unsigned
responder_takes(unsigned b)
{
	return b ? b : 2;
}

Test(mpa_peer, the_responder_states_what_it_supports_even_if_unasked_9_2)
{
	for (unsigned a = 1; a < 8; a++) {
		for (unsigned b = 0; b < 8; b++) {
			struct mpa_offer oi = rtr_offer(a, 4, 4), orr = rtr_offer(b, 0, 0);
			struct pair p;

			request(&p, &oi, &orr);
			reply(&p, true, 4, 4);
			cr_assert_eq(flags(&p.word), responder_takes(b), "%u %u", a, b);
		}
	}
}

Test(mpa_peer, the_initiator_uses_an_option_of_both_9_2)
{
	for (unsigned a = 1; a < 8; a++) {
		for (unsigned b = 0; b < 8; b++) {
			struct mpa_offer oi = rtr_offer(a, 4, 4), orr = rtr_offer(b, 0, 0);
			unsigned both = a & responder_takes(b);
			struct pair p;
			int err;

			request(&p, &oi, &orr);
			err = reply(&p, true, 4, 4);
			if (both == 0) {
				cr_assert_eq(err, -MPA_NO_RTR, "%u %u", a, b);
				cr_assert_eq(p.i.state, MPA_FAILED);
				cr_assert_eq((int)p.r.result.rtr, MPA_RTR_NONE);
				continue;
			}
			cr_assert_eq(err, 0);
			cr_assert_eq((int)p.i.result.rtr, both & 2   ? MPA_RTR_WRITE
							  : both & 1 ? MPA_RTR_SEND
								     : MPA_RTR_READ);
			/* The responder prepares for the most demanding message that may arrive. */
			cr_assert_eq((int)p.r.result.rtr, both & 1   ? MPA_RTR_SEND
							  : both & 2 ? MPA_RTR_WRITE
								     : MPA_RTR_READ);
		}
	}
}

/* The initiator has an ORD of 0 and supports only that message, so the responder makes room for one
 * Read (9.1). */
Test(mpa_peer, a_read_alone_raises_a_depth_of_0_9_1)
{
	struct mpa_offer oi = rtr_offer(4, 0, 0), orr = rtr_offer(7, 0, 0);
	struct pair p;

	request(&p, &oi, &orr);
	cr_assert_eq((int)p.r.result.rtr, MPA_RTR_READ);
	cr_assert_eq(reply(&p, true, 0, 0), 0);
	cr_assert_eq(p.word.ird, 1);
	cr_assert_eq(p.r.result.ird, 1);
	cr_assert_eq(p.i.result.ord, 1);
	cr_assert_eq((int)p.i.result.rtr, MPA_RTR_READ);
}

/* If another message is possible, a responder with an IRD of 0 does not offer a Read. */
Test(mpa_peer, no_read_is_offered_at_a_depth_of_0_9_1)
{
	struct mpa_offer oi = rtr_offer(7, 0, 0), orr = rtr_offer(7, 0, 0);
	struct pair p;

	request(&p, &oi, &orr);
	cr_assert_eq(reply(&p, true, 0, 0), 0);
	cr_assert_eq(p.word.ird, 0);
	cr_assert_eq(flags(&p.word), 3);
	oi.ord = 2;
	request(&p, &oi, &orr);
	cr_assert_eq(reply(&p, true, 1, 0), 0);
	cr_assert_eq(p.word.ird, 1);
	cr_assert_eq(flags(&p.word), 7);
}

Test(mpa_peer, a_read_cannot_announce_where_no_read_is_taken_9_1)
{
	struct mpa_offer o = rtr_offer(4, 4, 4);
	struct mpa_startup s;

	cr_assert_eq(answer(&s, &o, &(struct wire_mpa_ird_ord){.a = true, .d = true}), -MPA_NO_RTR);
	cr_assert_eq(
		answer(&s, &o, &(struct wire_mpa_ird_ord){.a = true, .d = true, .ird = 1}), 24);
	cr_assert_eq((int)s.result.rtr, MPA_RTR_READ);
	cr_assert_eq(
		answer(&s, &o, &(struct wire_mpa_ird_ord){.a = true, .d = true, .ird = ANY}), 24);
	cr_assert_eq((int)s.result.rtr, MPA_RTR_READ);
}

Test(mpa_peer, flags_without_a_are_not_looked_at_9_2)
{
	const struct wire_mpa_ird_ord bcd = {.b = true, .c = true, .d = true, .ird = 4, .ord = 4};
	struct mpa_offer client = rtr_offer(0, 4, 4), orr = rtr_offer(7, 0, 0);
	struct wire_mpa_startup h = {.enhanced = true, .revision = 2, .private_len = 4};
	uint8_t buf[MPA_STARTUP_MAX];
	struct mpa_startup s;

	cr_assert_eq(answer(&s, &client, &bcd), 24);
	cr_assert_eq((int)s.result.rtr, MPA_RTR_NONE);
	wire_mpa_startup_emit(buf, &h);
	wire_mpa_ird_ord_emit(buf + MPA_STARTUP_LEN, &bcd);
	mpa_startup_init(&s, false, &orr);
	cr_assert_eq(mpa_startup_input(&s, buf, 24), 24);
	cr_assert_not(s.result.peer_to_peer);
	cr_assert_eq((int)s.result.rtr, MPA_RTR_NONE);
}

/* ---- Depths that are not negotiated (9.1) ---- */

Test(mpa_peer, initiator_ord_all_ones_leaves_the_responders_ird_9_1)
{
	struct mpa_offer oi = rtr_offer(0, 4, ANY), orr = rtr_offer(0, 0, 0);
	struct pair p;

	request(&p, &oi, &orr);
	cr_assert_eq(reply(&p, true, 100, 2), 0);
	cr_assert_eq(p.word.ird, ANY);
	cr_assert_eq(p.word.ord, 2);
	cr_assert_eq(p.r.result.ird, 100);
	cr_assert_eq(p.i.result.ord, ANY);
}

Test(mpa_peer, initiator_ird_all_ones_leaves_the_responders_ord_9_1)
{
	struct mpa_offer oi = rtr_offer(0, ANY, 4), orr = rtr_offer(0, 0, 0);
	struct pair p;

	request(&p, &oi, &orr);
	cr_assert_eq(reply(&p, true, 2, 100), 0);
	cr_assert_eq(p.word.ird, 2);
	cr_assert_eq(p.word.ord, ANY);
	cr_assert_eq(p.r.result.ord, 100);
	cr_assert_eq(p.i.result.ird, ANY);
}

Test(mpa_peer, responder_ird_all_ones_leaves_the_initiators_ord_9_1)
{
	struct mpa_offer o = rtr_offer(0, 4, 5);
	struct mpa_startup s;

	cr_assert_eq(answer(&s, &o, &(struct wire_mpa_ird_ord){.ird = ANY, .ord = 3}), 24);
	cr_assert_eq(s.result.ord, 5);
	cr_assert_eq(s.result.ird, 3);
	cr_assert_eq(s.result.peer_ird, ANY);
}

Test(mpa_peer, responder_ord_all_ones_leaves_the_initiators_ird_9_1)
{
	struct mpa_offer o = rtr_offer(0, 4, 5);
	struct mpa_startup s;

	cr_assert_eq(answer(&s, &o, &(struct wire_mpa_ird_ord){.ird = 3, .ord = ANY}), 24);
	cr_assert_eq(s.result.ird, 4);
	cr_assert_eq(s.result.ord, 3);
	cr_assert_eq(s.result.peer_ord, ANY);
}

/* ---- The values that the application receives (9.1) ---- */

Test(mpa_peer, the_peers_values_are_passed_up_9_1)
{
	struct mpa_offer oi = rtr_offer(0, 20, 30), orr = rtr_offer(0, 0, 0);
	struct pair p;

	request(&p, &oi, &orr);
	cr_assert(p.r.result.peer_ird == 20 && p.r.result.peer_ord == 30);
	cr_assert_eq(reply(&p, true, 7, 8), 0);
	cr_assert(p.r.result.peer_ird == 20 && p.r.result.peer_ord == 30);
	cr_assert(p.i.result.peer_ird == 7 && p.i.result.peer_ord == 8);
	/* A rejection states the depths that would be needed, above the offered ones. */
	request(&p, &oi, &orr);
	cr_assert_eq(reply(&p, false, 40, 50), 0);
	cr_assert_eq(p.i.state, MPA_REFUSED);
	cr_assert(p.i.result.peer_ird == 40 && p.i.result.peer_ord == 50);
}

/* A rejection may state which ready-to-receive messages would be accepted (7). */
Test(mpa_peer, a_rejection_reports_the_options_7)
{
	struct mpa_offer oi = rtr_offer(4, 1, 1), orr = rtr_offer(3, 0, 0);
	struct pair p;

	request(&p, &oi, &orr);
	cr_assert_eq((int)p.r.result.rtr, MPA_RTR_NONE);
	cr_assert_eq(reply(&p, false, 0, 0), 0);
	cr_assert(p.frame.reject && p.frame.enhanced && p.word.a);
	cr_assert_eq(flags(&p.word), 3);
}

/* ---- Peers without the enhancements (10) ---- */

Test(mpa_peer, both_enhanced_10)
{
	struct mpa_offer oi = rtr_offer(7, 4, 4), orr = rtr_offer(7, 0, 0);
	struct pair p;

	request(&p, &oi, &orr);
	cr_assert(p.frame.enhanced && p.frame.revision == 2);
	cr_assert_eq(reply(&p, true, 4, 4), 0);
	cr_assert(p.frame.enhanced && p.frame.revision == 2);
	cr_assert(p.i.result.enhanced && p.r.result.enhanced);
}

/* An unenhanced request gets an unenhanced reply, at its own revision. */
Test(mpa_peer, only_the_responder_is_enhanced_10)
{
	struct mpa_offer oi = {.revision = 1}, orr = rtr_offer(7, 0, 0);
	struct pair p;

	request(&p, &oi, &orr);
	cr_assert_not(p.frame.enhanced);
	cr_assert_eq(reply(&p, true, 4, 4), 0);
	cr_assert(!p.frame.enhanced && p.frame.revision == 1 && p.frame.private_len == 0);
	cr_assert_eq((int)p.r.result.rtr, MPA_RTR_NONE);
	request(&p, &oi, &orr);
	cr_assert_eq(reply(&p, false, 4, 4), 0);
	cr_assert(!p.frame.enhanced && p.frame.private_len == 0);
}

Test(mpa_peer, revision_2_without_s_gets_a_reply_without_s_10)
{
	struct wire_mpa_startup h = {.revision = 2, .crc = true};
	struct mpa_offer orr = rtr_offer(7, 0, 0);
	uint8_t buf[MPA_STARTUP_MAX];
	struct mpa_startup s;

	wire_mpa_startup_emit(buf, &h);
	mpa_startup_init(&s, false, &orr);
	cr_assert_eq(mpa_startup_input(&s, buf, MPA_STARTUP_LEN), MPA_STARTUP_LEN);
	cr_assert_eq(mpa_reply_emit(&s, buf, true, 4, 4, NULL, 0), MPA_STARTUP_LEN);
	cr_assert_gt(wire_mpa_startup_parse(&h, buf, MPA_STARTUP_LEN), 0);
	cr_assert(!h.enhanced && h.revision == 2);
	cr_assert(s.result.ird == 4 && s.result.ord == 4);
}

/* A responder without the enhancements treats an enhanced request as a bad frame and closes. */
Test(mpa_peer, an_unenhanced_responder_refuses_the_frame_10)
{
	struct mpa_offer oi = rtr_offer(7, 4, 4), old = {.revision = 1};
	uint8_t buf[MPA_STARTUP_MAX];
	struct mpa_startup i, r;
	int n;

	mpa_startup_init(&i, true, &oi);
	mpa_startup_init(&r, false, &old);
	n = mpa_request_emit(&i, buf, NULL, 0);
	cr_assert_eq(mpa_startup_input(&r, buf, (size_t)n), -MPA_BAD_REVISION);
	cr_assert_eq(r.state, MPA_FAILED);
	cr_assert_eq((int)r.why, MPA_BAD_REVISION);
}

/* The initiator may try again without the enhancements, and succeeds. */
Test(mpa_peer, only_the_initiator_is_enhanced_10)
{
	struct mpa_offer oi = rtr_offer(7, 4, 5), old = {.revision = 1}, again;
	uint8_t buf[MPA_STARTUP_MAX];
	struct mpa_startup i;
	struct pair p;

	mpa_startup_init(&i, true, &oi);
	cr_assert_not(mpa_fall_back(&i, &again), "nothing was tried yet");
	cr_assert_gt(mpa_request_emit(&i, buf, NULL, 0), 0);
	cr_assert(mpa_fall_back(&i, &again));
	cr_assert_eq(again.revision, 1);
	request(&p, &again, &old);
	cr_assert_not(p.frame.enhanced);
	cr_assert_eq(reply(&p, true, 6, 7), 0);
	cr_assert_eq(p.i.state, MPA_ACCEPTED);
	cr_assert_eq((int)p.i.result.rtr, MPA_RTR_NONE);
	cr_assert(p.i.result.ird == 4 && p.i.result.ord == 5, "the application deals with them");
	cr_assert_not(mpa_fall_back(&p.i, &again), "it has been accepted");
}

Test(mpa_peer, no_fall_back_where_it_cannot_help_10)
{
	struct mpa_offer o = rtr_offer(7, 4, 4), again;
	uint8_t buf[MPA_STARTUP_MAX];
	struct mpa_startup s;

	/* A reply has begun, so the peer accepts the frame. */
	mpa_startup_init(&s, true, &o);
	mpa_request_emit(&s, buf, NULL, 0);
	cr_assert_eq(mpa_startup_input(&s, (const uint8_t *)"MPA", 3), 3);
	cr_assert_not(mpa_fall_back(&s, &again));
	/* The first attempt was already without the enhancements. */
	mpa_startup_init(&s, true, &(struct mpa_offer){.revision = 1});
	mpa_request_emit(&s, buf, NULL, 0);
	cr_assert_not(mpa_fall_back(&s, &again));
	/* The application requires the enhancements. */
	o.enhanced_only = true;
	mpa_startup_init(&s, true, &o);
	mpa_request_emit(&s, buf, NULL, 0);
	cr_assert_not(mpa_fall_back(&s, &again));
	/* A responder. */
	mpa_startup_init(&s, false, &o);
	cr_assert_not(mpa_fall_back(&s, &again));
}

/* A reply at revision 1 is a fall-back, too: it is accepted only if the application allows one. */
Test(mpa_peer, an_unenhanced_reply_does_not_do_where_enhanced_is_needed_10)
{
	static const uint8_t reply1[20] = "MPA ID Rep Frame\0\1\0";
	struct mpa_offer o = rtr_offer(7, 4, 4);
	uint8_t buf[MPA_STARTUP_MAX];
	struct mpa_startup s;

	mpa_startup_init(&s, true, &o);
	mpa_request_emit(&s, buf, NULL, 0);
	cr_assert_eq(mpa_startup_input(&s, reply1, 20), 20);
	cr_assert_eq(s.state, MPA_ACCEPTED);
	cr_assert_eq((int)s.result.rtr, MPA_RTR_NONE);
	o.enhanced_only = true;
	mpa_startup_init(&s, true, &o);
	mpa_request_emit(&s, buf, NULL, 0);
	cr_assert_eq(mpa_startup_input(&s, reply1, 20), -MPA_PARAMETERS);
}
