/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timeouts, LATER, and the established connection: rotation of keys, its end (doc/falcon-cm.md,
 * sections 5 and 7).
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

TestSuite(exchange_live, .init = init, .fini = fini);

/* ---- Timeouts ---- */

Test(exchange_live, responder_does_not_wait_for_a_request_for_ever)
{
	xp_start(&p, &s1);
	xp_times_out(p.b, 30 * MS);
}

Test(exchange_live, half_a_request_does_not_extend_the_time)
{
	uint8_t buf[512];

	xp_start(&p, &s1);
	lone_output(p.a, buf, sizeof(buf));
	lone_input(p.b, 29 * MS, buf, 60);
	xp_times_out(p.b, 30 * MS);
}

Test(exchange_live, initiator_does_not_wait_for_an_answer_for_ever)
{
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_deadline(p.b), UINT64_MAX); /* the application decides */
	xp_times_out(p.a, 100 * MS);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p.b), ROFX_TIMEOUT);
	cr_assert_eq(lone_accept(p.b, 0, &s2, NULL, 0), -EINVAL);
}

Test(exchange_live, responder_does_not_wait_for_ready_for_ever)
{
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_accept(p.b, 5 * MS, &s2, NULL, 0), 0);
	xp_times_out(p.b, 205 * MS);
}

/* ---- Not ready yet ---- */

Test(exchange_live, initiator_asks_again_on_the_same_stream)
{
	xp_start(&p, &s1);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t now = i * 20 * MS;

		xp_run(&p);
		cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST, "turn %u", i);
		memset((void *)(uintptr_t)lone_request(p.b), 0, sizeof(struct rofx_request));
		cr_assert_eq(lone_later(p.b, now, 20), 0);
		cr_assert_eq(lone_deadline(p.b), now + 50 * MS);
		xp_run(&p);
		cr_assert_eq(lone_event(p.a), ROFX_EV_NONE);
		cr_assert_eq(lone_deadline(p.a), 20 * MS); /* the bytes arrived at time 0 */
		lone_timeout(p.a, 20 * MS);
	}
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_request(p.b)->peer.cid, s1.cid);
	cr_assert_str_eq((const char *)lone_request(p.b)->private_data, "hello");
	cr_assert_eq(lone_accept(p.b, 0, &s2, NULL, 0), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_AGREED);
}

Test(exchange_live, patience_has_an_end)
{
	uint8_t buf[64];
	size_t n;

	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	lone_later(p.b, 0, 20);
	n = lone_output(p.b, buf, sizeof(buf));
	cr_assert_eq(lone_input(p.a, 981 * MS, buf, n), -ROFX_NOT_READY);
	cr_assert_eq(lone_event(p.a), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p.a), ROFX_NOT_READY);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p.b), ROFX_NOT_READY);
}

Test(exchange_live, delays_are_bounded_on_both_ends)
{
	p.cfg_a.patience_ns = 3600000ull * MS;
	xp_start(&p, &s1);
	xp_run(&p);
	lone_later(p.b, 0, UINT32_MAX);
	cr_assert_eq(lone_deadline(p.b), 10030ull * MS);
	xp_run(&p);
	cr_assert_eq(lone_deadline(p.a), 10000ull * MS);
	lone_timeout(p.a, 10000ull * MS);
	xp_run(&p);
	lone_later(p.b, 0, 0);
	xp_run(&p);
	cr_assert_eq(lone_deadline(p.a), 1 * MS);
}

/* ---- Keys ---- */

Test(exchange_live, each_direction_gets_another_spi)
{
	struct rofx_sa sa = {.version = PSP_NO_CRYPTO, .spi = 0x77};

	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_rekey(p.b, 0, &sa), 0);
	cr_assert_eq(lone_rekey(p.b, 0, &sa), -EINVAL); /* the same SPI again */
	sa.spi = 0x78;
	cr_assert_eq(lone_rekey(p.b, 0, &sa), -EBUSY);
	cr_assert_eq(lone_rekeyed(p.a), -EINVAL); /* the REKEY has not arrived yet */
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REKEY);
	cr_assert_eq(lone_agreed(p.a)->tx.spi, 0x77);
	cr_assert_eq(lone_agreed(p.a)->rx.spi, s1.spi);
	cr_assert_eq(lone_event(p.b), ROFX_EV_NONE);
	cr_assert_eq(lone_rekeyed(p.a), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEYED);
	cr_assert_eq(lone_agreed(p.b)->rx.spi, 0x77);
	cr_assert_eq(lone_deadline(p.b), UINT64_MAX);
	cr_assert_eq(lone_rekey(p.b, 0, &sa), 0);
}

Test(exchange_live, both_may_change_keys_at_once)
{
	struct rofx_sa sa = {.version = PSP_NO_CRYPTO, .spi = 0x77};
	struct rofx_sa sb = {.version = PSP_NO_CRYPTO, .spi = 0x78};

	xp_establish(&p, &s1, &s2);
	lone_trim(p.a);
	lone_trim(p.b);
	cr_assert_null(lone_request(p.b));
	cr_assert_eq(lone_rekey(p.a, 0, &sa), 0);
	cr_assert_eq(lone_rekey(p.b, 0, &sb), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REKEY);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEY);
	cr_assert_eq(lone_rekeyed(p.a), 0);
	cr_assert_eq(lone_rekeyed(p.b), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REKEYED);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEYED);
	cr_assert_eq(lone_agreed(p.b)->tx.spi, 0x77);
	cr_assert_eq(lone_agreed(p.a)->tx.spi, 0x78);
}

Test(exchange_live, a_peer_that_does_not_take_the_new_key_is_given_up)
{
	struct rofx_sa sa = {.version = PSP_NO_CRYPTO, .spi = 0x77};

	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_rekey(p.b, 1000 * MS, &sa), 0);
	xp_times_out(p.b, 1200 * MS);
}

Test(exchange_live, keys_are_for_a_live_connection_of_that_version)
{
	struct rofx_sa sa = {.version = PSP_AES_GCM_128, .spi = 0x77};

	xp_start(&p, &s1);
	cr_assert_eq(lone_rekey(p.a, 0, &sa), -EINVAL);
	xp_end(&p);
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_rekey(p.a, 0, &sa), -EINVAL);
	sa.version = PSP_NO_CRYPTO;
	sa.spi = 0;
	cr_assert_eq(lone_rekey(p.a, 0, &sa), -EINVAL);
}

Test(exchange_live, a_confirmation_of_another_key_is_refused)
{
	static const uint8_t rekeyed[] = {2, 9, 0, 4, OF_B, OF_A, 0, 0, 0, 0x78};
	struct rofx_sa sa = {.version = PSP_NO_CRYPTO, .spi = 0x77};

	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_rekey(p.b, 0, &sa), 0);
	cr_assert_eq(lone_input(p.b, 0, rekeyed, sizeof(rekeyed)), -ROFX_UNEXPECTED);
}

struct live_frame {
	uint8_t bytes[120];
	size_t len;
	enum rofx_reason why;
};

Test(exchange_live, frames_that_have_no_place_in_a_live_connection)
{
	static const struct live_frame frames[] = {
		/* REKEYED without a REKEY */
		{{2, 9, 0, 4, OF_B, OF_A, 0, 0, 0, 1}, 16, ROFX_UNEXPECTED},
		{{2, 1, 0, 100, OF_B, OF_A}, 112, ROFX_UNEXPECTED},  /* CONNECT */
		{{2, 6, 0, 36, OF_B, OF_A}, 48, ROFX_UNEXPECTED},    /* LOOKUP */
		{{2, 5, 0, 4, OF_B, OF_A}, 16, ROFX_UNEXPECTED},     /* LATER */
		{{2, 4, 2, 5, OF_B, OF_A}, 12, ROFX_BAD_FRAME},      /* REJECT of 517 bytes */
		{{2, 4, 0, 4, OF_B, OF_A, 5}, 16, ROFX_NO_RESOURCE}, /* the peer gives up */
		{{2, 8, 0, 40, OF_B, OF_A, 0, 0, 0, 0, 15}, 52, ROFX_MALFORMED}, /* SPI 0 */
		/* another version */
		{{2, 8, 0, 40, OF_B, OF_A, 0, 0, 0, 1, 0}, 52, ROFX_CONTRADICTION},
		/* a key in the mode without crypto */
		{{2, 8, 0, 40, OF_B, OF_A, 0, 0, 0, 1, 15, 16}, 52, ROFX_CONTRADICTION},
	};

	for (unsigned i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		xp_establish(&p, &s1, &s2);
		lone_trim(p.b);
		cr_assert_eq(lone_input(p.b, 0, frames[i].bytes, frames[i].len),
			-(int)frames[i].why, "frame %u: %d", i, lone_why(p.b));
		cr_assert_eq(lone_event(p.b), ROFX_EV_FAILED);
		xp_end(&p);
	}
}

Test(exchange_live, a_second_key_before_the_first_is_used_is_refused)
{
	static const uint8_t two[104] = {2, 8, 0, 40, OF_B, OF_A, 0, 0, 0, 1, 15, [52] = 2, 8, 0,
		40, OF_B, OF_A, 0, 0, 0, 2, 15};

	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_input(p.b, 0, two, sizeof(two)), -ROFX_UNEXPECTED);
}

/* Each key is confirmed, but the peer reads no confirmation. */
Test(exchange_live, a_peer_that_does_not_read_is_given_up)
{
	uint8_t rekey[52] = {2, 8, 0, 40, OF_B, OF_A, 0, 0, 0, 0, 15};
	int err = 0;

	xp_establish(&p, &s1, &s2);
	lone_trim(p.b);
	for (unsigned i = 1; i < 100 && err == 0; i++) {
		rekey[15] = (uint8_t)i;
		cr_assert_eq(lone_input(p.b, 0, rekey, sizeof(rekey)), sizeof(rekey));
		err = lone_rekeyed(p.b);
	}
	cr_assert_eq(err, -ENOBUFS);
	cr_assert_eq(lone_why(p.b), ROFX_FLOOD);
}

/* ---- Ends ---- */

Test(exchange_live, a_side_that_gives_up_sends_its_reason)
{
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_give_up(p.a, ROFX_TIMEOUT), 0);
	cr_assert_eq(lone_event(p.a), ROFX_EV_NONE, "it gave up itself");
	cr_assert_eq(lone_give_up(p.a, ROFX_TIMEOUT), -EINVAL);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p.b), ROFX_TIMEOUT);
	cr_assert_eq(lone_give_up(p.b, ROFX_TIMEOUT), -EINVAL);
}

Test(exchange_live, both_sides_end_in_order)
{
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_finish(p.a, 0), 0);
	cr_assert_eq(lone_finish(p.a, 0), 0, "it has ended already");
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_ENDED);
	cr_assert_eq(lone_event(p.a), ROFX_EV_NONE);
	cr_assert_not(lone_finished(p.b));
	cr_assert_eq(lone_finish(p.b, 0), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_ENDED);
	cr_assert(lone_finished(p.a) && lone_finished(p.b));
	cr_assert_eq(lone_deadline(p.a), UINT64_MAX);
}

Test(exchange_live, an_end_that_is_not_answered_fails)
{
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_finish(p.a, 0), 0);
	xp_times_out(p.a, 100 * MS);
}

Test(exchange_live, an_end_behind_a_rekey_that_is_not_answered_fails)
{
	struct rofx_sa sa = {.version = PSP_NO_CRYPTO, .spi = 0x77};

	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_rekey(p.b, 0, &sa), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REKEY);
	cr_assert_eq(lone_finish(p.b, 10 * MS), 0);
	cr_assert_eq(lone_rekeyed(p.a), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEYED);
	xp_times_out(p.b, 210 * MS);
}

Test(exchange_live, a_rekey_behind_an_end_does_not_extend_its_time)
{
	struct rofx_sa sa = {.version = PSP_NO_CRYPTO, .spi = 0x77};

	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_finish(p.b, 10 * MS), 0);
	cr_assert_eq(lone_rekey(p.b, 150 * MS, &sa), 0);
	cr_assert_eq(lone_deadline(p.b), 210 * MS);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REKEY);
	cr_assert_eq(lone_rekeyed(p.a), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEYED);
	xp_times_out(p.b, 210 * MS);
}

Test(exchange_live, trimmed_and_still_alive_with_half_a_frame)
{
	static const uint8_t rekey[52] = {2, 8, 0, 40, OF_B, OF_A, 0, 0, 0, 1, 15};

	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_input(p.b, 0, rekey, 20), 20);
	lone_trim(p.b);
	cr_assert_eq(lone_input(p.b, 0, rekey + 20, 32), 32);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEY);
	cr_assert_eq(lone_agreed(p.b)->tx.spi, 1);
}

Test(exchange_live, lookup_without_a_result)
{
	struct rofx_question q = {.service = 7};
	struct rofx_config cfg = {0};
	int err;

	p.a = lone_lookup(&cfg, 0, &q, &err);
	p.b = lone_listen(&cfg, 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_LOOKUP);
	cr_assert_eq(lone_accept(p.b, 0, &s2, NULL, 0), -EINVAL);
	cr_assert_eq(lone_later(p.b, 0, 1), -EINVAL);
	cr_assert_eq(lone_reject(p.b, ROFX_NO_SERVICE, NULL, 0), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REJECTED);
	cr_assert_eq(lone_why(p.a), ROFX_NO_SERVICE);
	q.private_len = ROFX_PRIVATE_MAX + 1;
	cr_assert_null(lone_lookup(&cfg, 0, &q, &err));
	cr_assert_eq(err, -EMSGSIZE);
}
