/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: merged sub-rings, arming, events. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/client/path.h"
#include "fake.h"

#define DEPTH 8

static struct fake f;
static struct saker *s;
static struct saker_cq *cq;

static void
setup(void)
{
	s = fake_flat(&f, 1 << 20, 0);
	cr_assert_eq(saker_cq_create(s, DEPTH, &f, &cq), 0);
}

static void
teardown(void)
{
	saker_close(s);
	free(f.home);
}

TestSuite(client_cq, .init = setup, .fini = teardown);

Test(client_cq, a_completion_has_the_fields_that_the_engine_wrote)
{
	struct rd_wc wc[2];

	cr_assert_eq(saker_cq_user(cq), &f);
	cr_assert_eq(saker_cq_poll(cq, wc, 2), 0);
	cr_assert(fake_complete(&f, 0, 1, 41, RD_WC_IMM));
	memset(wc, 0xff, sizeof(wc));
	cr_assert_eq(saker_cq_poll(cq, wc, 2), 1);
	cr_assert_eq(wc[0].wr_id, 41);
	cr_assert_eq(wc[0].qpn, 0xabc000);
	cr_assert_eq(wc[0].opcode, RD_WRITE);
	cr_assert_eq(wc[0].status, RD_SUCCESS);
	cr_assert_eq(wc[0].flags, RD_WC_IMM);
	cr_assert_eq(wc[0].byte_len, 64);
	cr_assert_eq(wc[0].imm, 42);
	cr_assert_eq(wc[0].inv_stag, 0);
	cr_assert_eq(wc[0].vendor_err, 0);
	cr_assert_eq(saker_cq_poll(cq, wc, 2), 0);
}

/* One member of an entry has the immediate data, the STag, the sender or the reason. */
Test(client_cq, the_detail_of_a_completion_is_that_of_its_kind)
{
	static const struct {
		uint8_t status, flags;
		struct rd_wc is;
	} row[] = {
		{RD_SUCCESS, RD_WC_IMM, {.imm = 0x1122334455667788}},
		{RD_SUCCESS, RD_WC_INV, {.inv_stag = 0x55667788}},
		{RD_SUCCESS, RD_WC_GRH | RD_WC_IMM, {.imm = 0x11223344, .src_qp = 0x55667788}},
		{RD_REM_ACCESS_ERR, 0, {.vendor_err = 0x55667788}},
		{RD_REM_ACCESS_ERR, RD_WC_INV | RD_WC_GRH, {.vendor_err = 0x55667788}},
	};
	struct rd_wc wc;

	for (size_t i = 0; i < SK_ARRAY_LEN(row); i++) {
		struct shm_cqe *e = shm_prod_entry(&f.cq[0].sub[0]);

		*e = (struct shm_cqe){
			.turn = e->turn, .status = row[i].status, .flags = row[i].flags};
		e->detail = 0x1122334455667788;
		shm_prod_push(&f.cq[0].sub[0]);
		cr_assert_eq(saker_cq_poll(cq, &wc, 1), 1);
		cr_assert_eq(wc.status, row[i].status);
		cr_assert_eq(wc.imm, row[i].is.imm);
		cr_assert_eq(wc.inv_stag, row[i].is.inv_stag);
		cr_assert_eq(wc.src_qp, row[i].is.src_qp);
		cr_assert_eq(wc.vendor_err, row[i].is.vendor_err);
	}
}

/* The fake engine places the queue in memory that looks like a queue of valid entries. */
Test(client_cq, a_new_queue_is_empty_whatever_its_memory_held)
{
	struct rd_wc wc[DEPTH];

	cr_assert_eq(saker_cq_poll(cq, wc, DEPTH), 0);
}

/* The engine makes sub-rings when queues need them. */
Test(client_cq, sub_rings_that_are_made_later_are_polled)
{
	struct rd_wc wc[DEPTH];
	struct saker_cq *late;

	f.no_subs = true;
	cr_assert_eq(saker_cq_create(s, DEPTH, NULL, &late), 0);
	cr_assert_eq(saker_cq_poll(late, wc, DEPTH), 0);
	cr_assert_not(cl_cq_any(cl_cq_of(late)));
	for (uint32_t i = 0; i < FAKE_STAGES; i++) {
		fake_sub(&f, 1, i);
		cr_assert(cl_cq_any(cl_cq_of(late)), "the poll takes the sub-ring over");
		cr_assert_eq(saker_cq_poll(late, wc, DEPTH), 0);
		cr_assert_not(cl_cq_any(cl_cq_of(late)));
		for (uint32_t k = 0; k <= i; k++)
			for (uint32_t n = 0; n < 2 * DEPTH + 1; n++) {
				cr_assert(fake_complete(&f, 1, k, n, 0));
				cr_assert(cl_cq_any(cl_cq_of(late)));
				cr_assert_eq(saker_cq_poll(late, wc, DEPTH), 1);
				cr_assert_eq(wc[0].wr_id, n);
			}
	}
}

Test(client_cq, a_sub_ring_outside_of_the_region_is_not_polled)
{
	struct rd_wc wc[DEPTH];
	struct saker_cq *late;
	static const uint64_t wrong[] = {
		1 << 20, (1 << 20) - 64, ~(uint64_t)63, 8, UINT64_MAX, (1 << 20) - 128};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		f.no_subs = true;
		cr_assert_eq(saker_cq_create(s, DEPTH, NULL, &late), 0);
		fake_sub(&f, 1 + i, 0);
		f.cq[1 + i].shared->sub[1] = wrong[i];
		f.cq[1 + i].shared->nsubs = UINT32_MAX;
		cr_assert_eq(saker_cq_poll(late, wc, DEPTH), 0);
		cr_assert(fake_complete(&f, 1 + i, 0, 5, 0));
		cr_assert_eq(saker_cq_poll(late, wc, DEPTH), 1, "the valid one");
		cr_assert_eq(saker_cq_poll(late, wc, DEPTH), 0);
	}
}

Test(client_cq, no_more_than_was_asked_for_is_taken)
{
	struct rd_wc wc[4];

	for (uint64_t i = 0; i < 3; i++)
		cr_assert(fake_complete(&f, 0, 0, i, 0));
	cr_assert_eq(saker_cq_poll(cq, wc, 0), 0);
	cr_assert_eq(saker_cq_poll(cq, wc, -1), 0);
	cr_assert_eq(saker_cq_poll(cq, wc, 2), 2);
	cr_assert_eq(wc[1].wr_id, 1);
	cr_assert_eq(saker_cq_poll(cq, wc, 2), 1);
	cr_assert_eq(wc[0].wr_id, 2);
}

Test(client_cq, a_busy_stage_does_not_starve_the_others)
{
	uint64_t sent[FAKE_STAGES] = {0}, got[FAKE_STAGES] = {0};
	struct rd_wc wc[DEPTH];

	for (int round = 0; round < 300; round++) {
		for (uint32_t sub = 0; sub < FAKE_STAGES; sub++)
			while (fake_complete(&f, 0, sub, (uint64_t)sub << 32 | sent[sub], 0))
				sent[sub]++;
		for (int n = saker_cq_poll(cq, wc, 1 + round % DEPTH); n > 0; n--) {
			uint64_t id = wc[n - 1].wr_id;

			cr_assert_lt((uint32_t)id, sent[id >> 32]);
			got[id >> 32]++;
		}
	}
	for (uint32_t sub = 0; sub < FAKE_STAGES; sub++)
		cr_assert_gt(got[sub] * 4, got[0] + got[1] + got[2], "stage %u: %lu", sub,
			(unsigned long)got[sub]);
}

Test(client_cq, order_within_a_stage_is_kept_over_many_laps)
{
	uint64_t sent[FAKE_STAGES] = {0}, next[FAKE_STAGES] = {0};
	struct rd_wc wc[3];

	for (int round = 0; round < 2000; round++) {
		uint32_t sub = (uint32_t)round % FAKE_STAGES;

		for (int i = 0; i <= round % 5; i++)
			if (fake_complete(&f, 0, sub, (uint64_t)sub << 32 | sent[sub], 0))
				sent[sub]++;
		for (int i = 0, n = saker_cq_poll(cq, wc, 3); i < n; i++) {
			uint64_t id = wc[i].wr_id;

			cr_assert_eq((uint32_t)id, next[id >> 32]++);
		}
	}
	cr_assert_gt(next[0] + next[1] + next[2], 3000);
}

Test(client_cq, what_was_polled_makes_room)
{
	struct rd_wc wc[DEPTH];

	for (uint64_t i = 0; i < DEPTH; i++)
		cr_assert(fake_complete(&f, 0, 2, i, 0));
	cr_assert_not(fake_complete(&f, 0, 2, 99, 0));
	cr_assert_eq(saker_cq_poll(cq, wc, 3), 3);
	for (uint64_t i = 0; i < 3; i++)
		cr_assert(fake_complete(&f, 0, 2, i, 0));
	cr_assert_not(fake_complete(&f, 0, 2, 99, 0));
}

Test(client_cq, an_arm_gives_one_event_for_the_whole_queue)
{
	struct saker_cq *which = NULL;

	cr_assert(fake_complete(&f, 0, 0, 1, 0));
	cr_assert_eq(saker_cq_event(s, &which), 0, "not armed");
	saker_cq_arm(cq, false);
	cr_assert_eq(saker_cq_event(s, &which), 0, "what was there before is polled, not told");
	cr_assert(fake_complete(&f, 0, 2, 2, 0));
	cr_assert(fake_complete(&f, 0, 1, 3, 0));
	cr_assert_eq(saker_cq_event(s, &which), 1);
	cr_assert_eq(which, cq);
	cr_assert_eq(saker_cq_event(s, &which), 0);
}

Test(client_cq, a_solicited_arm_lets_plain_completions_pass)
{
	struct saker_cq *which;

	saker_cq_arm(cq, true);
	cr_assert(fake_complete(&f, 0, 0, 1, 0));
	cr_assert_eq(saker_cq_event(s, &which), 0);
	cr_assert(fake_complete(&f, 0, 0, 1, RD_WC_SOLICITED));
	cr_assert_eq(saker_cq_event(s, &which), 1);
}

Test(client_cq, the_event_of_a_queue_that_is_gone_is_skipped)
{
	struct saker_cq *other, *which;

	cr_assert_eq(saker_cq_create(s, DEPTH, NULL, &other), 0);
	fake_cq_event(&f, 0, 100);
	fake_cq_event(&f, 1, 100);
	fake_cq_event(&f, 2, 101);
	cr_assert_eq(saker_cq_destroy(cq), 0);
	cr_assert_eq(saker_cq_event(s, &which), 1);
	cr_assert_eq(which, other);
	cr_assert_eq(saker_cq_event(s, &which), 0);
}

/* ---- Growth ---- */

/* Polls all completions of the queue. Those of each sub-ring must follow one another: wr_id is
 * NUMBERS times the sub-ring, and a number that counts up. */
#define NUMBERS 1000000u

static unsigned
drain(uint64_t next[FAKE_STAGES])
{
	struct rd_wc wc[3];
	unsigned n = 0;
	int got;

	while ((got = saker_cq_poll(cq, wc, 3)) > 0)
		for (int i = 0; i < got; i++, n++) {
			uint64_t sub = wc[i].wr_id / NUMBERS;

			cr_assert_lt(sub, FAKE_STAGES);
			cr_assert_eq(wc[i].wr_id % NUMBERS, next[sub]++);
		}
	cr_assert_not(cl_cq_any(cl_cq_of(cq)));
	return n;
}

static void
fill(uint32_t sub, uint64_t *number, unsigned n)
{
	while (n-- > 0)
		cr_assert(fake_complete(&f, 0, sub, NUMBERS * sub + (*number)++, 0));
}

Test(client_cq, a_queue_grows_without_losing_completions)
{
	uint64_t in[FAKE_STAGES] = {0}, out[FAKE_STAGES] = {0};
	uint32_t depth = DEPTH;

	for (unsigned round = 0; round < 6; round++) {
		/* Different places in the lap, and different numbers of completions. */
		fill(0, &in[0], depth);
		fill(1, &in[1], round % 3);
		cr_assert_eq(drain(out), depth + round % 3);
		fill(0, &in[0], depth);
		fill(1, &in[1], 3);
		cr_assert_eq(cl_cq_count(cq), depth + 3);
		cr_assert_eq(saker_cq_resize(cq, depth + 1), 0, "%s", saker_error());
		depth *= 2;
		cr_assert_eq(f.last.body.cq.depth, depth / 2 + 1);
		cr_assert_eq(cl_cq_count(cq), depth / 2 + 3);
		fill(0, &in[0], depth / 2);
		fill(2, &in[2], depth);
		cr_assert_not(fake_complete(&f, 0, 0, 1, 0), "it has %u entries", depth);
		cr_assert_eq(drain(out), 2 * depth + 3);
	}
	cr_assert_eq(f.seen[SHM_CQ_RESIZE], 6);
}

Test(client_cq, a_queue_that_holds_more_stays_as_it_is)
{
	uint64_t in = 0, out[FAKE_STAGES] = {0};

	fill(0, &in, DEPTH);
	cr_assert_eq(saker_cq_resize(cq, 2), 0);
	cr_assert_eq(cl_cq_count(cq), DEPTH);
	cr_assert_not(fake_complete(&f, 0, 0, 1, 0));
	cr_assert_eq(drain(out), DEPTH);
}

Test(client_cq, a_resize_that_is_refused_changes_nothing)
{
	uint64_t in = 0, out[FAKE_STAGES] = {0};

	fill(0, &in, 3);
	f.refuse_op = SHM_CQ_RESIZE;
	f.refuse_status = -ENOMEM;
	f.refuse_text = "no room";
	cr_assert_eq(saker_cq_resize(cq, 2 * DEPTH), -ENOMEM);
	cr_assert_str_eq(saker_error(), "no room");
	fill(0, &in, DEPTH - 3);
	cr_assert_eq(drain(out), DEPTH);
}

/* A reply without rings, one with a smaller depth, and one outside of the region. */
Test(client_cq, invalid_places_of_a_larger_queue_are_refused)
{
	uint64_t in = 0, out[FAKE_STAGES] = {0};

	fill(0, &in, 3);
	cr_assert_eq(drain(out), 3);
	f.depth_only = true;
	cr_assert_eq(saker_cq_resize(cq, 2 * DEPTH), -EPROTO);
	cr_assert_eq(saker_cq_resize(cq, DEPTH / 2), -EPROTO);
	f.depth_only = false;
	fill(0, &in, 2);
	f.nonsense = true;
	cr_assert_eq(saker_cq_resize(cq, 2 * DEPTH), -EPROTO);
	cr_assert_not_null(strstr(saker_error(), "larger completion queue"));
	cr_assert_eq(drain(out), 2);
}

Test(client_cq, sub_rings_that_no_poll_has_found_grow_as_well)
{
	uint64_t in[FAKE_STAGES] = {0}, out[FAKE_STAGES] = {0};

	f.no_subs = true;
	cr_assert_eq(saker_cq_destroy(cq), 0);
	f.ncq = 0;
	cr_assert_eq(saker_cq_create(s, DEPTH, NULL, &cq), 0);
	cr_assert_eq(saker_cq_resize(cq, DEPTH + 1), 0, "a queue without sub-rings");
	fake_sub(&f, 0, 0);
	fill(0, &in[0], 2 * DEPTH);
	fake_sub(&f, 0, 1);
	fill(1, &in[1], 5);
	cr_assert_eq(saker_cq_resize(cq, 4 * DEPTH), 0);
	fake_sub(&f, 0, 2);
	fill(2, &in[2], 4 * DEPTH);
	fill(0, &in[0], 2 * DEPTH);
	cr_assert_eq(drain(out), 8 * DEPTH + 5);
}

/* A completion that comes while the queue grows has its event and is not reported again. */
Test(client_cq, events_count_on_when_a_queue_has_grown)
{
	uint64_t in = 0, out[FAKE_STAGES] = {0};
	struct saker_cq *which;

	fill(0, &in, 3);
	saker_cq_arm(cq, false);
	cr_assert(cl_cq_fire(cq, false, false), "three are not reported");
	f.during = 3;
	saker_cq_arm(cq, false);
	cr_assert_eq(saker_cq_resize(cq, 2 * DEPTH), 0);
	cr_assert_eq(saker_cq_event(s, &which), 1);
	saker_cq_arm(cq, false);
	cr_assert(cl_cq_fire(cq, false, false), "the event of the fake engine reports none");
	saker_cq_arm(cq, false);
	cr_assert_not(cl_cq_fire(cq, false, false), "all four are reported");
	in = 4;
	fill(0, &in, 1);
	cr_assert_eq(saker_cq_event(s, &which), 1);
	cr_assert_eq(drain(out), 5);
}

/* Completions of two stages, of which an event has reported some. */
Test(client_cq, a_poll_finds_what_no_event_has_reported)
{
	uint64_t in[2] = {0, 0};
	struct rd_wc wc[8];
	bool news[8];

	fill(0, &in[0], 2);
	fill(1, &in[1], 1);
	saker_cq_arm(cq, false);
	cr_assert(cl_cq_fire(cq, false, false));
	fill(0, &in[0], 1);
	fill(1, &in[1], 1);
	cr_assert_eq(cl_cq_poll_news(cq, wc, news, 1), 1);
	cr_assert_not(news[0]);
	cr_assert_eq(cl_cq_poll_news(cq, wc, news, 8), 4);
	cr_assert(!news[0] && news[1] && !news[2] && news[3]);
	cr_assert_eq(cl_cq_poll_news(cq, wc, news, 8), 0);
	saker_cq_arm(cq, true);
	cr_assert_not(cl_cq_fire(cq, false, false), "the driver has them");
	cr_assert_not(cl_cq_fire(cq, true, false), "none is solicited");
	cr_assert(cl_cq_fire(cq, true, true));
}
