/* SPDX-License-Identifier: BSD-3-Clause */
/* The outcome of the negotiation (RFC 5044 7.1, RFC 6581 9) for every combination of offers, and
 * replies that contradict the request. */
#include <criterion/criterion.h>

#include "mpa_util.h"

struct pair {
	struct mpa_startup i, r; /* initiator, responder */
};

static uint8_t private_data[MPA_PRIVATE_MAX];

/* Passes the request to the responder and returns the responder's result. */
static int
request(struct pair *p, const struct mpa_offer *oi, const struct mpa_offer * or, size_t len)
{
	uint8_t buf[MPA_STARTUP_MAX];
	int n, got;

	mpa_startup_init(&p->i, true, oi);
	mpa_startup_init(&p->r, false, or);
	n = mpa_request_emit(&p->i, buf, private_data, len);
	cr_assert_gt(n, 0);
	got = mpa_startup_input(&p->r, buf, (size_t)n);
	cr_assert(got == n || got < 0);
	return got < 0 ? got : 0;
}

/* Passes the reply to the initiator and returns the initiator's result. */
static int
reply(struct pair *p, bool accept, uint16_t ird, uint16_t ord, size_t len)
{
	uint8_t buf[MPA_STARTUP_MAX];
	int n, got;

	n = mpa_reply_emit(&p->r, buf, accept, ird, ord, private_data, len);
	cr_assert_gt(n, 0);
	got = mpa_startup_input(&p->i, buf, (size_t)n);
	cr_assert(got == n || got < 0);
	return got < 0 ? got : 0;
}

static void
check_agreement(
	const struct pair *p, const struct mpa_offer *oi, const struct mpa_offer * or, size_t len)
{
	const struct mpa_result *i = &p->i.result, *r = &p->r.result;

	cr_assert_eq(r->revision, oi->revision);
	cr_assert_eq(i->revision, oi->revision);
	cr_assert_eq(i->enhanced, oi->revision == 2);
	cr_assert_eq(r->enhanced, oi->revision == 2);
	/* RFC 5044 7.1.1: C is set if either side requires it; M concerns the direction towards the
	 * side that set it. */
	cr_assert_eq(i->crc, oi->crc || or->crc);
	cr_assert_eq(r->crc, oi->crc || or->crc);
	cr_assert_eq(i->rx_markers, oi->markers);
	cr_assert_eq(r->tx_markers, oi->markers);
	cr_assert_eq(r->rx_markers, or->markers);
	cr_assert_eq(i->tx_markers, or->markers);
	cr_assert_eq(p->i.peer_private.len, len);
	cr_assert_eq(p->r.peer_private.len, len);
	cr_assert(memcmp(p->i.peer_private.data, private_data, len) == 0);
	cr_assert(memcmp(p->r.peer_private.data, private_data, len) == 0);
}

static void
one_combination(unsigned bits, size_t len)
{
	struct mpa_offer oi = {.revision = bits & 1 ? 2 : 1, .crc = bits & 2, .markers = bits & 4};
	struct mpa_offer or
		= {.revision = bits & 8 ? 2 : 1, .crc = bits & 16, .markers = bits & 32};
	bool accept = bits & 64;
	struct pair p;

	if (len > mpa_private_max(oi.revision))
		return;
	if (oi.revision > or.revision) {
		cr_assert_eq(request(&p, &oi, & or, len), -MPA_BAD_REVISION);
		cr_assert_eq(p.r.state, MPA_FAILED);
		return;
	}
	cr_assert_eq(request(&p, &oi, & or, len), 0);
	cr_assert_eq(p.r.state, MPA_REQUESTED);
	cr_assert_eq(reply(&p, accept, 0, 0, len), 0);
	cr_assert_eq(p.i.state, accept ? MPA_ACCEPTED : MPA_REFUSED);
	cr_assert_eq(p.r.state, accept ? MPA_ACCEPTED : MPA_REFUSED);
	if (accept)
		check_agreement(&p, &oi, & or, len);
}

Test(mpa_negotiation, every_combination_of_offers_5044_7_1)
{
	for (unsigned i = 0; i < sizeof(private_data); i++)
		private_data[i] = (uint8_t)(i * 13 + 1);
	for (size_t len = 0; len <= MPA_PRIVATE_MAX; len++)
		for (unsigned bits = 0; bits < 128; bits++)
			one_combination(bits, len);
}

/* ---- IRD and ORD ---- */

static void
one_depth(uint16_t ii, uint16_t io, uint16_t ri, uint16_t ro)
{
	struct mpa_offer oi = {.revision = 2, .ird = ii, .ord = io};
	struct mpa_offer or = {.revision = 2};
	const uint16_t any = MPA_IRD_AUTO;
	struct mpa_result *i, *r;
	struct pair p;

	cr_assert_eq(request(&p, &oi, & or, 0), 0);
	i = &p.i.result;
	r = &p.r.result;
	cr_assert(r->peer_ird == ii && r->peer_ord == io);
	cr_assert_eq(reply(&p, true, ri, ro, 0), 0, "%u %u %u %u", ii, io, ri, ro);
	/* RFC 6581 9.1: an initiator's 0x3fff leaves the responder's depth unchanged and is
	 * answered by 0x3fff. */
	cr_assert_eq(r->ird, io == any ? ri : (io < ri ? io : ri));
	cr_assert_eq(r->ord, ii == any ? ro : (ii < ro ? ii : ro));
	cr_assert_eq(i->peer_ird, io == any ? any : r->ird);
	cr_assert_eq(i->peer_ord, ii == any ? any : r->ord);
	/* A responder's 0x3fff leaves the initiator's depths unchanged. Otherwise the initiator's
	 * ORD is at most the responder's IRD, and its IRD at least the responder's ORD. */
	cr_assert_eq(i->ord, i->peer_ird == any ? io : (io < i->peer_ird ? io : i->peer_ird));
	cr_assert(i->peer_ord == any ? i->ird == ii : i->ird >= r->ord && i->ird <= ii);
	cr_assert(io == any || i->ord <= r->ird);
	cr_assert(ii == any || r->ord <= i->ird);
}

Test(mpa_negotiation, ird_and_ord_6581_9_1)
{
	static const uint16_t some[] = {0, 1, 2, 16, 128, 16382, MPA_IRD_AUTO};

	for (int a = 0; a < 7; a++)
		for (int b = 0; b < 7; b++)
			for (int c = 0; c < 7; c++)
				for (int d = 0; d < 7; d++)
					one_depth(some[a], some[b], some[c], some[d]);
}

Test(mpa_negotiation, without_the_word_the_depths_are_our_own_5044)
{
	struct mpa_offer oi = {.revision = 1, .ird = 5, .ord = 6}, or = {.revision = 2};
	struct pair p;

	cr_assert_eq(request(&p, &oi, & or, 0), 0);
	cr_assert_eq(reply(&p, true, 7, 8, 0), 0);
	cr_assert(p.i.result.ird == 5 && p.i.result.ord == 6);
	cr_assert(p.r.result.ird == 7 && p.r.result.ord == 8);
	cr_assert(p.i.result.peer_ird == MPA_IRD_AUTO && p.r.result.peer_ord == MPA_IRD_AUTO);
}

/* ---- Replies that contradict ---- */

static const struct mpa_offer wish = {.revision = 2, .crc = true, .ird = 4, .ord = 4};

Test(mpa_negotiation, a_reply_at_revision_1_is_a_fall_back_6581_10)
{
	struct mpa_startup s;

	cr_assert_eq(replied(&s, &wish, 0x40, 1, 0, 0), 20);
	cr_assert_eq(s.state, MPA_ACCEPTED);
	cr_assert_eq(s.result.revision, 1);
	cr_assert_not(s.result.enhanced);
	cr_assert(s.result.ird == 4 && s.result.ord == 4);
	cr_assert_eq(s.result.peer_ird, MPA_IRD_AUTO);
}

Test(mpa_negotiation, a_reply_above_the_request_is_refused)
{
	struct mpa_offer old = {.revision = 1};
	struct mpa_startup s;

	cr_assert_eq(replied(&s, &old, 0, 2, 0, 0), -MPA_BAD_REVISION);
	cr_assert_eq(replied(&s, &wish, 0x50, 3, 0, 0), -MPA_BAD_REVISION);
}

Test(mpa_negotiation, crc_that_was_asked_for_cannot_be_declined_5044_7_1_1)
{
	struct mpa_startup s;

	cr_assert_eq(replied(&s, &wish, 0x50, 2, 4, 4), 24);
	cr_assert_eq(replied(&s, &wish, 0x10, 2, 4, 4), -MPA_PARAMETERS);
	cr_assert_eq(s.state, MPA_FAILED);
}

Test(mpa_negotiation, an_enhanced_request_needs_an_enhanced_reply_6581_10)
{
	struct mpa_startup s;

	cr_assert_eq(replied(&s, &wish, 0x40, 2, 0, 0), -MPA_PARAMETERS);
}

Test(mpa_negotiation, a_responder_cannot_read_deeper_than_we_offered_6581_9_1)
{
	struct mpa_startup s;

	cr_assert_eq(replied(&s, &wish, 0x50, 2, 4, 4), 24);
	cr_assert_eq(replied(&s, &wish, 0x50, 2, 4, 5), -MPA_NO_IRD);
	/* A responder's IRD above the initiator's ORD does no harm. */
	cr_assert_eq(replied(&s, &wish, 0x50, 2, 16382, 0), 24);
	cr_assert(s.result.ord == 4 && s.result.ird == 0);
}

Test(mpa_negotiation, control_flag_a_must_match_the_request_6581_9_2)
{
	struct mpa_offer p2p = wish;
	struct mpa_startup s;

	cr_assert_eq(replied(&s, &wish, 0x50, 2, 0x8004, 0x8004), -MPA_PARAMETERS);
	/* Without flag A, flags B to D are ignored. */
	cr_assert_eq(replied(&s, &wish, 0x50, 2, 0x4004, 0xc004), 24);
	cr_assert_eq((int)s.result.rtr, MPA_RTR_NONE);
	p2p.rtr_write = true;
	cr_assert_eq(replied(&s, &p2p, 0x50, 2, 4, 4), -MPA_PARAMETERS);
	cr_assert_eq(replied(&s, &p2p, 0x50, 2, 0x8004, 0x8004), 24);
	cr_assert_eq((int)s.result.rtr, MPA_RTR_WRITE);
}

/* ---- The application's choice when it accepts ---- */

/* Bits: 1 CRC, 2 markers, 4 Send, 8 Write, 16 Read. */
static struct mpa_offer
bits_offer(unsigned bits, uint8_t revision, uint16_t depth)
{
	return (struct mpa_offer){.revision = revision,
		.crc = bits & 1,
		.markers = bits & 2,
		.rtr_send = revision == 2 && bits & 4,
		.rtr_write = revision == 2 && bits & 8,
		.rtr_read = revision == 2 && bits & 16,
		.ird = depth,
		.ord = depth};
}

/* A caller that starts the QP before the reply is built computes the same outcome as the reply. */
static void
one_choice(unsigned asked, unsigned wished, uint8_t revision, uint16_t depth)
{
	struct mpa_offer oi = bits_offer(asked, revision, depth);
	struct mpa_offer listening = bits_offer(~wished, 2, 3), chosen = bits_offer(wished, 1, 5);
	struct mpa_result *r, before;
	struct pair p;
	int rc;

	chosen.rtr_send = wished & 4;
	chosen.rtr_write = wished & 8;
	chosen.rtr_read = wished & 16;
	cr_assert_eq(request(&p, &oi, &listening, 0), 0);
	r = &p.r.result;
	before = *r;
	mpa_result_accept(&before, &chosen);
	mpa_startup_choose(&p.r, &chosen);
	cr_assert_eq(p.r.offer.revision, 2, "the request has come at the listener's revision");
	rc = reply(&p, true, chosen.ird, chosen.ord, 0);
	cr_assert_eq(before.crc, r->crc);
	cr_assert_eq(before.rx_markers, r->rx_markers);
	cr_assert_eq(before.rtr, r->rtr, "asked %x wished %x", asked, wished);
	cr_assert(
		before.ird == r->ird && before.ord == r->ord, "asked %x wished %x", asked, wished);
	cr_assert_eq(r->crc, oi.crc || chosen.crc);
	cr_assert_eq(r->rx_markers, chosen.markers);
	cr_assert(rc == 0 || (rc == -MPA_NO_RTR && r->rtr == MPA_RTR_NONE));
	if (rc < 0)
		return;
	cr_assert_eq(p.i.result.crc, r->crc);
	cr_assert_eq(p.i.result.tx_markers, chosen.markers);
	cr_assert_eq(p.i.result.rtr == MPA_RTR_NONE, r->rtr == MPA_RTR_NONE);
	cr_assert(p.i.result.rtr != MPA_RTR_READ || (r->ird > 0 && p.i.result.ord > 0));
}

Test(mpa_negotiation, an_acceptance_is_known_before_its_reply_6581_9)
{
	static const uint16_t depths[] = {0, 4, 9, MPA_IRD_AUTO};

	for (unsigned asked = 0; asked < 32; asked++)
		for (unsigned wished = 0; wished < 32; wished++)
			for (unsigned d = 0; d < 4; d++) {
				one_choice(asked, wished, 2, depths[d]);
				one_choice(asked, wished, 1, depths[d]);
			}
}
