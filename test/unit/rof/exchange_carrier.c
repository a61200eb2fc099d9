/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A carrier that ends before its connection: the frames that the other carrier repeats, of a live
 * connection and of its start-up (doc/falcon-cm.md, sections 5 and 7).
 */
#include "exchange_pair.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

/* The names of the initiator's and of the responder's exchange. */
#define OF_A 0x01, 0xc1, 0xd0, 0x01
#define OF_B 0x02, 0xc1, 0xd0, 0x02

static struct rofx_side s1, s2;
static struct xpair p;

static void
init(void)
{
	s1 = xp_side(1);
	s2 = xp_side(2);
	p = (struct xpair){.cfg_a = {.reply_ns = 100 * MS, .patience_ns = 1000 * MS},
		.cfg_b = {.request_ns = 30 * MS, .reply_ns = 200 * MS}};
}

static void
fini(void)
{
	xp_end(&p);
}

TestSuite(exchange_carrier, .init = init, .fini = fini);

/* ---- Carriers that end ---- */

/* Continues both sides on a new carrier, which `b` opens if `back`. */
static void
renew(bool back)
{
	lone_renew(p.a, &p.cfg_a, 0, !back);
	lone_renew(p.b, &p.cfg_b, 0, back);
	xp_run(&p);
}

Test(exchange_carrier, the_end_of_a_carrier_is_not_that_of_the_connection)
{
	struct rofx_sa sa = {.version = PSP_NO_CRYPTO, .spi = 0x77};

	xp_establish(&p, &s1, &s2);
	lone_trim(p.a);
	lone_trim(p.b);
	for (unsigned i = 0; i < 3; i++) {
		renew(i % 2);
		cr_assert_eq(lone_event(p.a), ROFX_EV_NONE, "%d", lone_why(p.a));
		cr_assert_eq(lone_event(p.b), ROFX_EV_NONE, "%d", lone_why(p.b));
	}
	cr_assert_eq(lone_rekey(p.a, 0, &sa), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEY);
	cr_assert_eq(lone_strays(p.a) + lone_strays(p.b), 0);
}

Test(exchange_carrier, a_peer_without_the_connection_reports_that_it_is_gone)
{
	xp_establish(&p, &s1, &s2);
	lone_destroy(p.b);
	p.b = lone_listen(&p.cfg_b, 0); /* it has been restarted */
	lone_renew(p.a, &p.cfg_a, 0, true);
	xp_run(&p);
	cr_assert_eq(lone_strays(p.b), 1);
	cr_assert_eq(lone_event(p.a), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p.a), ROFX_GONE);
}

/* REKEY or REKEYED may have been lost with the carrier: the peer confirms the key again, but takes
 * it once. */
static void
rekey_over_two_carriers(bool arrives)
{
	struct rofx_sa sa = {.version = PSP_NO_CRYPTO, .spi = 0x77};
	uint8_t lost[256];

	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_rekey(p.a, 0, &sa), 0);
	if (arrives) {
		xp_move(p.a, p.b, 0);
		cr_assert_eq(lone_event(p.b), ROFX_EV_REKEY);
		cr_assert_eq(lone_rekeyed(p.b), 0);
	}
	lone_output(arrives ? p.b : p.a, lost, sizeof(lost));
	renew(false);
	cr_assert_eq(lone_event(p.b), arrives ? ROFX_EV_NONE : ROFX_EV_REKEY);
	if (!arrives)
		cr_assert_eq(lone_rekeyed(p.b), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REKEYED);
	cr_assert_eq(lone_event(p.a), ROFX_EV_NONE);
	cr_assert_eq(lone_agreed(p.b)->tx.spi, 0x77);
}

Test(exchange_carrier, a_lost_rekey_is_repeated)
{
	rekey_over_two_carriers(false);
}

Test(exchange_carrier, a_lost_rekeyed_is_repeated)
{
	rekey_over_two_carriers(true);
}

/* A peer that answers each copy of a REKEY: the last answer may arrive after the next REKEY. */
Test(exchange_carrier, a_repeated_rekeyed_does_not_answer_the_next_rekey)
{
	struct rofx_sa sa = {.version = PSP_NO_CRYPTO, .spi = 0x77};
	uint8_t first[256];
	size_t n;

	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_rekey(p.a, 0, &sa), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEY);
	cr_assert_eq(lone_rekeyed(p.b), 0);
	n = lone_output(p.b, first, sizeof(first));
	cr_assert_eq(lone_input(p.a, 0, first, n), n);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REKEYED);
	cr_assert_eq(lone_input(p.a, 0, first, n), n);
	sa.spi = 0x78;
	cr_assert_eq(lone_rekey(p.a, 0, &sa), 0);
	cr_assert_eq(lone_input(p.a, 0, first, n), n, "%d", lone_why(p.a));
	cr_assert_eq(lone_event(p.a), ROFX_EV_NONE);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEY);
	cr_assert_eq(lone_rekeyed(p.b), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REKEYED);
	cr_assert_eq(lone_agreed(p.b)->tx.spi, 0x78);
}

Test(exchange_carrier, a_lost_end_is_repeated)
{
	uint8_t lost[256];

	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_finish(p.a, 0), 0);
	lone_output(p.a, lost, sizeof(lost));
	renew(false);
	cr_assert_eq(lone_event(p.b), ROFX_EV_ENDED);
	/* The answer is lost, too, and the peer forgets the connection. */
	lone_destroy(p.b);
	p.b = lone_listen(&p.cfg_b, 0);
	lone_renew(p.a, &p.cfg_a, 0, true);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_ENDED);
	cr_assert(lone_finished(p.a));
}

/* Ends the carrier of `x`, and begins another one that has no room yet: what `x` has to send
 * waits. */
static void
renew_full(struct lone *x)
{
	lone_renew(x, x == p.a ? &p.cfg_a : &p.cfg_b, 0, false);
}

/* Passes what `from` has to send to `to`, whose own frames wait. */
static void
one_way(struct lone *from, struct lone *to)
{
	uint8_t buf[1024];
	size_t n = lone_output(from, buf, sizeof(buf));

	cr_assert_eq(lone_input(to, 0, buf, n), n, "%d", lone_why(to));
}

/* Both sides change keys while they have no carrier, and that of `a` is the slower one. */
Test(exchange_carrier, a_rekey_that_waits_leaves_room_for_rekeyed)
{
	struct rofx_sa sa = {.version = PSP_NO_CRYPTO, .spi = 0x77};
	struct rofx_sa sb = {.version = PSP_NO_CRYPTO, .spi = 0x78};

	xp_establish(&p, &s1, &s2);
	lone_trim(p.a);
	lone_trim(p.b);
	cr_assert_eq(lone_rekey(p.a, 0, &sa), 0);
	cr_assert_eq(lone_rekey(p.b, 0, &sb), 0);
	renew_full(p.a);
	lone_renew(p.b, &p.cfg_b, 0, true);
	one_way(p.b, p.a);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REKEY);
	cr_assert_eq(lone_rekeyed(p.a), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEY);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEYED);
	cr_assert_eq(lone_event(p.a), ROFX_EV_NONE, "%d", lone_why(p.a));
}

/* One frame of each type waits, however many carriers end. */
Test(exchange_carrier, frames_that_wait_are_not_queued_again)
{
	struct rofx_sa sa = {.version = PSP_NO_CRYPTO, .spi = 0x77};
	uint8_t buf[1024];

	xp_establish(&p, &s1, &s2);
	lone_trim(p.a);
	lone_trim(p.b);
	cr_assert_eq(lone_rekey(p.b, 0, &sa), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REKEY);
	cr_assert_eq(lone_rekeyed(p.a), 0);
	sa.spi = 0x78;
	cr_assert_eq(lone_rekey(p.a, 0, &sa), 0);
	for (unsigned i = 0; i < 20; i++) {
		if (i == 10)
			cr_assert_eq(lone_finish(p.a, 0), 0);
		renew_full(p.a);
		lone_renew(p.b, &p.cfg_b, 0, true);
		one_way(p.b, p.a); /* REKEY, repeated */
	}
	cr_assert_eq(lone_event(p.a), ROFX_EV_NONE, "%d", lone_why(p.a));
	/* The opening, REKEYED, REKEY, CHECK and END. */
	cr_assert_eq(lone_output(p.a, buf, sizeof(buf)), 20 + 16 + 52 + 12 + 12);
}

/* REKEYED arrives while the REKEY waits to be repeated: the next change of keys has room, and its
 * confirmation is the one that the peer sends. */
Test(exchange_carrier, a_rekey_that_is_confirmed_is_not_repeated)
{
	struct rofx_sa sa = {.version = PSP_NO_CRYPTO, .spi = 0x77};

	xp_establish(&p, &s1, &s2);
	lone_trim(p.a);
	lone_trim(p.b);
	cr_assert_eq(lone_rekey(p.a, 0, &sa), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEY);
	renew_full(p.a);
	lone_renew(p.b, &p.cfg_b, 0, true);
	cr_assert_eq(lone_rekeyed(p.b), 0);
	one_way(p.b, p.a);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REKEYED);
	sa.spi = 0x78;
	cr_assert_eq(lone_rekey(p.a, 0, &sa), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_NONE, "%d", lone_why(p.a));
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEY);
	cr_assert_eq(lone_agreed(p.b)->tx.spi, 0x78);
	cr_assert_eq(lone_rekeyed(p.b), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REKEYED);
}

/* The initiator repeats READY over carriers on which the confirmations do not leave. */
Test(exchange_carrier, a_repeated_ready_is_confirmed_once)
{
	uint8_t buf[1024];

	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_accept(p.b, 0, &s2, NULL, 0), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_AGREED);
	cr_assert_eq(lone_ready(p.a), 0);
	one_way(p.a, p.b);
	cr_assert_eq(lone_event(p.b), ROFX_EV_ESTABLISHED);
	for (unsigned i = 0; i < 20; i++) {
		renew_full(p.b);
		lone_renew(p.a, &p.cfg_a, 0, true);
		one_way(p.a, p.b);
	}
	cr_assert_eq(lone_event(p.b), ROFX_EV_NONE, "%d", lone_why(p.b));
	cr_assert_eq(lone_output(p.b, buf, sizeof(buf)), 20 + 12, "the opening and CHECK");
}

Test(exchange_carrier, a_withdrawn_request_ends_at_the_responder)
{
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_give_up(p.a, ROFX_REFUSED), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p.b), ROFX_REFUSED);
}

Test(exchange_carrier, a_frame_with_another_name_has_no_effect)
{
	static const uint8_t others[][16] = {
		{2, 4, 0, 4, 2, 0xc1, 0xd0, 3, OF_A, 5}, /* to another exchange */
		{2, 4, 0, 4, OF_B, 1, 0xc1, 0xd0, 2, 5}, /* from another exchange */
	};

	xp_establish(&p, &s1, &s2);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(lone_input(p.b, 0, others[i], 16), 16);
		cr_assert_eq(lone_strays(p.b), i + 1);
		cr_assert_eq(lone_event(p.b), ROFX_EV_NONE);
	}
}

Test(exchange_carrier, a_stream_that_ends_early_fails)
{
	xp_start(&p, &s1);
	lone_lost(p.a);
	cr_assert_eq(lone_event(p.a), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p.a), ROFX_CLOSED);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	lone_lost(p.b);
	cr_assert_eq(lone_event(p.b), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p.b), ROFX_CLOSED);
}

/* ---- Carriers that end during the start-up ---- */

enum which { REQUEST, ANSWER, CONFIRMATION };

/* Takes the frame that is lost with the carrier. */
static void
lose(struct lone *x)
{
	uint8_t lost[2048];

	cr_assert_gt(lone_output(x, lost, sizeof(lost)), 0);
}

/* Accepts the request of the peer, which arrives once. */
static void
accept_once(void)
{
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_event(p.b), ROFX_EV_NONE);
	cr_assert_eq(lone_accept(p.b, 0, &s2, "welcome", 8), 0);
}

/* Makes a connection whose carrier ends before frame `which` of it has arrived; the next one is
 * opened by the responder if `back`. */
static void
start_over_two_carriers(enum which which, bool back)
{
	xp_start(&p, &s1);
	if (which == REQUEST) {
		lose(p.a);
		renew(back);
	}
	xp_run(&p);
	accept_once();
	if (which == ANSWER) {
		lose(p.b);
		renew(back);
	}
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_AGREED);
	cr_assert_str_eq((const char *)lone_agreed(p.a)->private_data, "welcome");
	cr_assert_eq(lone_ready(p.a), 0);
	lone_trim(p.a);
	if (which == CONFIRMATION) {
		lose(p.a);
		renew(back);
	}
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_ESTABLISHED);
	cr_assert_eq(lone_event(p.a), ROFX_EV_NONE);
	cr_assert_eq(lone_event(p.b), ROFX_EV_NONE);
	cr_assert_eq(lone_agreed(p.b)->tx.spi, s1.spi);
	cr_assert_eq(lone_agreed(p.a)->tx.spi, s2.spi);
	cr_assert_eq(lone_deadline(p.a), UINT64_MAX);
	cr_assert_eq(lone_strays(p.a) + lone_strays(p.b), 0);
	xp_end(&p);
}

Test(exchange_carrier, a_lost_request_is_repeated)
{
	start_over_two_carriers(REQUEST, false);
	start_over_two_carriers(REQUEST, true);
}

Test(exchange_carrier, a_lost_answer_is_repeated)
{
	start_over_two_carriers(ANSWER, false);
	start_over_two_carriers(ANSWER, true);
}

Test(exchange_carrier, a_lost_ready_is_repeated)
{
	start_over_two_carriers(CONFIRMATION, false);
	start_over_two_carriers(CONFIRMATION, true);
}

/* The request arrives twice, before the application decides. */
Test(exchange_carrier, a_repeated_request_is_answered_once)
{
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	renew(false);
	cr_assert_eq(lone_event(p.b), ROFX_EV_NONE);
	cr_assert_eq(lone_deadline(p.b), UINT64_MAX, "the application decides");
	cr_assert_eq(lone_accept(p.b, 0, &s2, NULL, 0), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_AGREED);
	/* Once more, behind the answer: the initiator ignores the second one. */
	cr_assert_eq(lone_ready(p.a), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_NONE);
	cr_assert_eq(lone_event(p.b), ROFX_EV_ESTABLISHED);
}

Test(exchange_carrier, a_repeated_request_with_other_contents_is_refused)
{
	uint8_t frame[1024], other[] = {2, 1, 0, 106, 0, 0, 0, 0, OF_A};
	size_t n;

	xp_start(&p, &s1);
	n = lone_output(p.a, frame, sizeof(frame));
	cr_assert_eq(lone_input(p.b, 0, frame, n), n);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_arr_eq(frame + 20, other, sizeof(other));
	frame[20 + 12 + 11]++; /* the QPN */
	cr_assert_eq(lone_input(p.b, 0, frame + 20, n - 20), -ROFX_CONTRADICTION);
	cr_assert_eq(lone_event(p.b), ROFX_EV_FAILED);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REJECTED);
	cr_assert_eq(lone_why(p.a), ROFX_CONTRADICTION);
}

/* A peer that ends each carrier is no reason to ask for ever. */
Test(exchange_carrier, a_request_is_repeated_forty_times)
{
	enum rofx_event ev = ROFX_EV_NONE;
	unsigned n = 0;

	xp_start(&p, &s1);
	while (ev == ROFX_EV_NONE && n < 100) {
		lose(p.a);
		lone_renew(p.a, &p.cfg_a, 0, true);
		ev = lone_event(p.a);
		n++;
	}
	cr_assert_eq(ev, ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p.a), ROFX_CLOSED);
	cr_assert_eq(n, 41);
}

/* Repeating does not extend the time that the initiator waits. */
Test(exchange_carrier, a_repeated_request_has_the_time_of_the_first)
{
	xp_start(&p, &s1);
	lose(p.a);
	lone_renew(p.a, &p.cfg_a, 90 * MS, true);
	lone_timeout(p.a, 100 * MS);
	cr_assert_eq(lone_event(p.a), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p.a), ROFX_TIMEOUT);
}

/* The initiator has gone with the carrier. */
Test(exchange_carrier, a_request_that_is_not_repeated_ends)
{
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	lone_renew(p.b, &p.cfg_b, 50 * MS, true);
	cr_assert_eq(lone_deadline(p.b), 80 * MS);
	lone_timeout(p.b, 80 * MS);
	cr_assert_eq(lone_event(p.b), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p.b), ROFX_TIMEOUT);
}

/* The responder was restarted after LATER: it has forgotten the exchange, and the request begins
 * anew. */
Test(exchange_carrier, a_forgotten_request_begins_anew)
{
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_later(p.b, 0, 20), 0);
	xp_run(&p);
	lone_destroy(p.b);
	p.b = lone_listen(&p.cfg_b, 0);
	lone_renew(p.a, &p.cfg_a, 0, true);
	lone_timeout(p.a, 20 * MS);
	xp_run(&p);
	accept_once();
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_AGREED);
}

/* LATER was lost, and the request that is repeated gets it again. */
Test(exchange_carrier, a_lost_later_is_sent_again)
{
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_later(p.b, 0, 20), 0);
	lose(p.b);
	renew(false);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_later(p.b, 0, 20), 0);
	xp_run(&p);
	cr_assert_eq(lone_deadline(p.a), 20 * MS);
	lone_timeout(p.a, 20 * MS);
	xp_run(&p);
	accept_once();
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_AGREED);
}

/* An end that waits behind a READY that was lost: the responder expects READY first. */
Test(exchange_carrier, a_repeated_ready_comes_before_the_end)
{
	xp_start(&p, &s1);
	xp_run(&p);
	accept_once();
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_AGREED);
	cr_assert_eq(lone_ready(p.a), 0);
	lose(p.a);
	cr_assert_eq(lone_finish(p.a, 0), 0);
	renew(false);
	cr_assert_eq(lone_event(p.b), ROFX_EV_ESTABLISHED);
	cr_assert_eq(lone_event(p.b), ROFX_EV_ENDED);
	cr_assert_eq(lone_finish(p.b, 0), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_ENDED);
	cr_assert(lone_finished(p.a) && lone_finished(p.b));
}

Test(exchange_carrier, a_ready_that_is_not_confirmed_fails)
{
	xp_start(&p, &s1);
	xp_run(&p);
	accept_once();
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_AGREED);
	cr_assert_eq(lone_ready(p.a), 0);
	lone_trim(p.a);
	xp_times_out(p.a, 100 * MS);
}

/* A withdrawal also ends a request that waits to be repeated. */
Test(exchange_carrier, a_repeated_request_may_be_withdrawn)
{
	uint8_t buf[256];

	xp_start(&p, &s1);
	lose(p.a);
	lone_renew(p.a, &p.cfg_a, 0, true);
	cr_assert_eq(lone_give_up(p.a, ROFX_REFUSED), 0);
	cr_assert_eq(lone_output(p.a, buf, sizeof(buf)), 20 + 16, "the opening and REJECT");
	cr_assert_eq(buf[20 + 1], 4);
}
