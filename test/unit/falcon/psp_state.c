/* SPDX-License-Identifier: BSD-3-Clause */
/* PSP's state: IVs that never repeat, SPIs and their rotation, acceptance checks. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/falcon/psp.h"

#define SECOND 1000000000ull

/* ---- IVs ---- */

/* Returns the next IV, which must be greater than the last one. */
static uint64_t
next(struct psp_iv *g, uint64_t now)
{
	uint64_t before = g->last, iv;
	bool first = !g->used;

	cr_assert(psp_iv_next(g, now, &iv));
	cr_assert(first || (int64_t)(iv - before) > 0, "%lx after %lx", iv, before);
	return iv;
}

Test(psp_iv, carries_the_time_in_ticks_before_a_counter_falcon_10_1)
{
	struct psp_iv g = {0};

	cr_assert_eq(next(&g, 131072 * 1000), 1000000ull << 16);
	cr_assert_eq(next(&g, 131072 * 1000), 1000000ull << 16 | 1);
	cr_assert_eq(next(&g, 131072 * 1000 + 100), 1000000ull << 16 | 2);
	cr_assert_eq(next(&g, 131072 * 1000 + 132), 1000001ull << 16);
	cr_assert_eq(wire_psp_iv_ticks(g.last), 1000001);
}

Test(psp_iv, is_unique_while_time_stands_still)
{
	struct psp_iv g = {0};

	for (unsigned i = 0; i < 3 * 65536 + 5; i++)
		next(&g, SECOND);
	/* the counter has carried into the time, which is three ticks ahead */
	cr_assert_eq(wire_psp_iv_ticks(g.last), wire_falcon_ticks(SECOND) + 3);
	/* and the clock catches up */
	cr_assert_eq(next(&g, SECOND + 600), wire_falcon_ticks(SECOND + 600) << 16);
}

Test(psp_iv, is_unique_when_time_steps_back)
{
	struct psp_iv g = {0};
	uint64_t iv = next(&g, 10 * SECOND);

	cr_assert_eq(next(&g, 9 * SECOND), iv + 1);
	cr_assert_eq(next(&g, 0), iv + 2);
	cr_assert_eq(next(&g, 10 * SECOND), iv + 3);
	cr_assert_eq(next(&g, 11 * SECOND), wire_falcon_ticks(11 * SECOND) << 16);
}

Test(psp_iv, is_unique_whatever_the_clock_does)
{
	struct psp_iv g = {0};
	uint64_t now = 0;
	unsigned seed = 7;

	for (unsigned i = 0; i < 200000; i++) {
		int jump = rand_r(&seed) % 2000000 - 900000;

		now += (uint64_t)(int64_t)jump;
		if (i == 0)
			now = 5 * SECOND;
		next(&g, now);
	}
}

Test(psp_iv, does_not_go_round)
{
	struct psp_iv g = {.used = true, .first = 500, .last = 500};
	uint64_t iv;

	g.last = 500 + (1ull << 63) - 2;
	cr_assert(psp_iv_next(&g, 0, &iv));
	cr_assert_eq(iv, 500 + (1ull << 63) - 1);
	cr_assert_not(psp_iv_next(&g, 0, &iv), "half of all IVs are used");
	cr_assert_not(psp_iv_next(&g, 0, &iv));
	cr_assert_not(psp_iv_next(&g, UINT64_MAX, &iv));
}

Test(psp_iv, goes_on_where_the_time_wraps)
{
	struct psp_iv g = {0};
	uint64_t turn = (uint64_t)(((__uint128_t)1 << 48) * 131072 / 1000); /* 48 bits of ticks */
	uint64_t before = next(&g, turn - 1000), after = next(&g, turn + 1000);

	cr_assert_gt(before, after);
	cr_assert_lt(after - before, 20ull << 16);
}

/* ---- SPIs ---- */

Test(psp_device, spis_are_of_the_generation_and_new)
{
	struct psp_device d;
	uint32_t a, b, c;

	psp_device_init(&d);
	a = psp_device_spi(&d);
	b = psp_device_spi(&d);
	cr_assert_neq(a, b);
	cr_assert(a != 0 && b != 0);
	cr_assert_eq((a | b) & PSP_SPI_PHASE, 0);
	psp_device_rotate(&d);
	c = psp_device_spi(&d);
	cr_assert(c & PSP_SPI_PHASE);
	psp_device_rotate(&d);
	cr_assert_eq(psp_device_spi(&d) & PSP_SPI_PHASE, 0);
}

Test(psp_device, runs_out_of_spis_instead_of_repeating_one)
{
	struct psp_device d;

	psp_device_init(&d);
	d.handed_out = PSP_SPI_PHASE - 2;
	cr_assert_eq(psp_device_spi(&d), PSP_SPI_PHASE - 1);
	cr_assert_eq(psp_device_spi(&d), 0);
	cr_assert_eq(psp_device_spi(&d), 0);
	psp_device_rotate(&d);
	cr_assert_eq(psp_device_spi(&d), PSP_SPI_PHASE | 1);
}

Test(psp_device, rotation_changes_the_key_of_the_new_phase_only_falcon_9_2_2_3)
{
	struct psp_device d, before;

	psp_device_init(&d);
	cr_assert(memcmp(d.key[0], d.key[1], PSP_DEVICE_KEY_LEN) != 0);
	cr_assert_not(d.allow_previous);
	before = d;
	psp_device_rotate(&d);
	cr_assert_eq(d.generation, 1);
	cr_assert(d.allow_previous);
	cr_assert_arr_eq(d.key[0], before.key[0], PSP_DEVICE_KEY_LEN);
	cr_assert(memcmp(d.key[1], before.key[1], PSP_DEVICE_KEY_LEN) != 0);
	cr_assert_eq(psp_device_key(&d, 1), d.key[0]);
	cr_assert_eq(psp_device_key(&d, PSP_SPI_PHASE | 1), d.key[1]);
	psp_device_settle(&d);
	cr_assert_not(d.allow_previous);
}

/* ---- Acceptance ---- */

#define MARGIN_NS 1000000ull

static struct psp_device device;
static struct psp_rx rx;

static void
setup(void)
{
	psp_device_init(&device);
	psp_rx_init(&rx, &device, psp_device_spi(&device), psp_rx_margin(MARGIN_NS));
}

TestSuite(psp_rx, .init = setup);

static int
accept_at(uint64_t ns, uint32_t spi)
{
	struct wire_psp h = {.spi = spi, .iv = wire_falcon_ticks(ns) << 16};

	return psp_rx_accept(&rx, &device, &h, 0);
}

Test(psp_rx, replay_margin_falcon_9_2_2_2)
{
	cr_assert_eq(accept_at(SECOND, rx.spi), 0, "the first one sets the time");
	cr_assert_eq(accept_at(SECOND, rx.spi), 0, "PSNs find duplicates, not this check");
	cr_assert_eq(accept_at(SECOND - MARGIN_NS + 132, rx.spi), 0);
	cr_assert_eq(accept_at(SECOND - MARGIN_NS - 132, rx.spi), -PSP_REPLAYED);
	cr_assert_eq(accept_at(SECOND + 5 * MARGIN_NS, rx.spi), 0, "newer: the time moves");
	cr_assert_eq(accept_at(SECOND + 4 * MARGIN_NS + 132, rx.spi), 0);
	cr_assert_eq(accept_at(SECOND, rx.spi), -PSP_REPLAYED);
}

Test(psp_rx, an_older_packet_does_not_move_the_time_back_falcon_9_2_2_2)
{
	cr_assert_eq(accept_at(SECOND, rx.spi), 0);
	cr_assert_eq(accept_at(SECOND - MARGIN_NS / 2, rx.spi), 0);
	cr_assert_eq(accept_at(SECOND - MARGIN_NS - 132, rx.spi), -PSP_REPLAYED);
}

/* Checks a packet with this IV. The state stays the same. */
static int
check_iv(uint64_t iv)
{
	struct wire_psp h = {.spi = rx.spi, .iv = iv};
	struct psp_rx copy = rx;

	return psp_rx_accept(&copy, &device, &h, 0);
}

Test(psp_rx, exactly_the_margin_is_too_old_and_time_is_modular_falcon_9_2_2_2)
{
	rx.remote.known = true;
	rx.remote.time = rx.margin / 2; /* the edge lies below zero */
	cr_assert_eq(check_iv(rx.remote.time - rx.margin), -PSP_REPLAYED);
	cr_assert_eq(check_iv(rx.remote.time - rx.margin + 1), 0);
	cr_assert_eq(check_iv(0), 0);
	cr_assert_eq(check_iv(rx.remote.time + (1ull << 62)), 0);
	cr_assert_eq(check_iv(rx.remote.time + (1ull << 63)), -PSP_REPLAYED);
}

Test(psp_rx, what_is_refused_changes_nothing_falcon_9_2_2)
{
	struct psp_rx before;

	cr_assert_eq(accept_at(SECOND, rx.spi), 0);
	before = rx;
	cr_assert_eq(accept_at(100 * SECOND, rx.spi + 1), -PSP_WRONG_SPI);
	cr_assert_eq(accept_at(0, rx.spi), -PSP_REPLAYED);
	device.match_cookie = true;
	rx.cookie = before.cookie = 5;
	cr_assert_eq(accept_at(100 * SECOND, rx.spi), -PSP_WRONG_COOKIE);
	cr_assert_eq(memcmp(&rx, &before, sizeof(rx)), 0);
}

Test(psp_rx, replay_is_judged_before_the_spi_falcon_9_2_2)
{
	cr_assert_eq(accept_at(SECOND, rx.spi), 0);
	cr_assert_eq(accept_at(0, rx.spi + 1), -PSP_REPLAYED);
}

Test(psp_rx, spi_0_is_not_configured_falcon_9_2_2_3)
{
	rx.spi = rx.prev_spi = 0;
	cr_assert_not(psp_rx_spi_ok(&rx, &device, 0));
	rx.prev_spi = 7;
	cr_assert_not(psp_rx_spi_ok(&rx, &device, 7));
	rx.spi = 7;
	rx.prev_spi = 0;
	cr_assert(psp_rx_spi_ok(&rx, &device, 7));
	cr_assert_not(psp_rx_spi_ok(&rx, &device, 0));
}

/* The pseudocode of the specification with its names, compared over all cases that differ. */
static bool
by_the_book(uint32_t cur, uint32_t prev, uint32_t cur_gen, uint32_t global_gen, bool allow,
	uint32_t spi)
{
	uint32_t prev_gen = global_gen - 1;
	bool cur_gen_matches =
		allow ? cur_gen == global_gen || cur_gen == prev_gen : cur_gen == global_gen;
	bool cur_matches = cur == spi && cur_gen_matches;
	bool prev_same = cur >> 31 == prev >> 31 && prev == spi && prev != 0 && cur_gen_matches;
	bool prev_prev = cur >> 31 != prev >> 31 && allow && prev == spi && prev != 0 &&
			 cur_gen - 1 == prev_gen;

	return cur != 0 && (cur_matches || prev_same || prev_prev);
}

Test(psp_rx, spi_check_is_that_of_the_pseudocode_falcon_9_2_2_3)
{
	static const uint32_t spis[] = {0, 1, 2, PSP_SPI_PHASE | 1, PSP_SPI_PHASE | 2};
	unsigned accepted = 0;

	device.generation = 10;
	for (unsigned i = 0; i < 5 * 5 * 5 * 4 * 2; i++) {
		unsigned generation = 8 + i / 125 % 4;
		bool allow = i / 500, want;
		uint32_t spi = spis[i % 5];

		rx.spi = spis[i / 5 % 5];
		rx.prev_spi = spis[i / 25 % 5];
		rx.generation = generation;
		device.allow_previous = allow;
		want = by_the_book(rx.spi, rx.prev_spi, generation, 10, allow, spi);
		cr_assert_eq(psp_rx_spi_ok(&rx, &device, spi), want,
			"spi %x prev %x generation %u allow %d: %x", rx.spi, rx.prev_spi,
			generation, allow, spi);
		accepted += want;
	}
	cr_assert_gt(accepted, 50);
}

Test(psp_rx, a_rotation_from_begin_to_end_falcon_9_2_2_3)
{
	uint32_t old = rx.spi, new;

	psp_device_rotate(&device);
	cr_assert(
		psp_rx_spi_ok(&rx, &device, old), "not yet moved, the last generation is allowed");
	new = psp_device_spi(&device);
	psp_rx_rotate(&rx, &device, new);
	cr_assert(psp_rx_spi_ok(&rx, &device, old), "the peer still seals with the old one");
	cr_assert(psp_rx_spi_ok(&rx, &device, new));
	psp_rx_settle(&rx);
	cr_assert_not(psp_rx_spi_ok(&rx, &device, old));
	cr_assert(psp_rx_spi_ok(&rx, &device, new));
	psp_device_settle(&device);
	cr_assert(psp_rx_spi_ok(&rx, &device, new));
	psp_device_rotate(&device);
	psp_device_settle(&device);
	cr_assert_not(psp_rx_spi_ok(&rx, &device, new), "it missed the next rotation");
}

/* "Remote Time is initialized ... every time the PSP keys are rotated" (9.2.1). */
Test(psp_rx, a_new_key_has_a_replay_window_of_its_own_falcon_9_2_1)
{
	uint32_t old = rx.spi, new;

	cr_assert_eq(accept_at(100 * SECOND, old), 0);
	new = psp_device_spi(&device);
	psp_rx_rotate(&rx, &device, new);
	cr_assert_eq(accept_at(SECOND, new), 0, "nothing under this key can be a replay yet");
	cr_assert_eq(accept_at(SECOND - 2 * MARGIN_NS, new), -PSP_REPLAYED);
	cr_assert_eq(accept_at(SECOND, old), -PSP_REPLAYED, "under the old one it is");
	cr_assert_eq(accept_at(100 * SECOND, old), 0);
	cr_assert_eq(accept_at(SECOND, new), 0, "which does not move the new one's time");
	psp_rx_settle(&rx);
	cr_assert_eq(accept_at(100 * SECOND, old), -PSP_WRONG_SPI);
}

static int
came_at(uint64_t now, uint64_t sent)
{
	struct wire_psp h = {.spi = rx.spi, .iv = wire_falcon_ticks(sent) << 16};

	return psp_rx_accept(&rx, &device, &h, now);
}

Test(psp_rx, without_a_check_of_an_iv_time_goes_no_faster_than_ours)
{
	rx.bounded = true;
	cr_assert_eq(came_at(SECOND, 50 * SECOND), 0, "the clocks need not agree");
	cr_assert_eq(came_at(SECOND, 9000 * SECOND), 0, "the windows judge it");
	cr_assert_eq(came_at(2 * SECOND, 51 * SECOND), 0, "it has not moved the time");
	cr_assert_eq(came_at(2 * SECOND, 50 * SECOND), -PSP_REPLAYED, "as this one has");
	/* Up to the drift of clocks, and up to reordering. */
	cr_assert_eq(came_at(1002 * SECOND, 1051 * SECOND + SECOND / 2), 0);
	cr_assert_eq(came_at(1002 * SECOND, 1051 * SECOND), -PSP_REPLAYED);
	rx.bounded = false;
	cr_assert_eq(came_at(1002 * SECOND, 9000 * SECOND), 0);
	cr_assert_eq(came_at(1003 * SECOND, 1053 * SECOND), -PSP_REPLAYED);
}

/* The fast check accepts what psp_rx_accept() would, also after a pause. */
Test(psp_rx, after_a_pause_the_next_packet_is_ahead_by_the_pause_falcon_9_2_2_2)
{
	const uint64_t second = wire_falcon_ticks(SECOND) << PSP_IV_COUNTER_BITS;
	struct wire_psp h = {.spi = rx.spi, .iv = second};

	rx.bounded = true;
	cr_assert_eq(psp_rx_accept(&rx, &device, &h, SECOND), 0);
	cr_assert(psp_rx_is_next(&rx, &device, rx.spi, second + 1, SECOND));
	cr_assert_not(psp_rx_is_next(&rx, &device, rx.spi, second, SECOND), "the same packet");
	cr_assert_not(psp_rx_is_next(&rx, &device, rx.spi, 2 * second, SECOND), "a forged IV");
	cr_assert(psp_rx_is_next(&rx, &device, rx.spi, 2 * second, 2 * SECOND));
	cr_assert_not(psp_rx_is_next(&rx, &device, rx.spi, second - 1, 900 * SECOND), "a replay");
	cr_assert(psp_rx_accept_next(&rx, &device, rx.spi, 2 * second, 2 * SECOND));
	cr_assert_eq(rx.remote.time, 2 * second);
}

Test(psp_rx, cookie_is_matched_when_the_device_requires_it_falcon_9_2_2_3)
{
	struct wire_psp h = {.spi = rx.spi, .iv = 1ull << 40, .has_vc = true, .vc = 77};

	rx.cookie = 78;
	cr_assert_eq(psp_rx_accept(&rx, &device, &h, 0), 0);
	device.match_cookie = true;
	cr_assert_eq(psp_rx_accept(&rx, &device, &h, 0), -PSP_WRONG_COOKIE);
	rx.cookie = 77;
	cr_assert_eq(psp_rx_accept(&rx, &device, &h, 0), 0);
}
