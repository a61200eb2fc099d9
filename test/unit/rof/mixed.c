/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every operation in every ordering mode and error mode over a wire that loses, duplicates and
 * reorders: each byte arrives at its place, each request completes once, and in the order that the
 * mode promises.
 */
#include "pair.h"

#include <criterion/criterion.h>
#include <string.h>

#define ROUNDS 400
#define SLOT   4096

static uint64_t word[ROUNDS];

struct script {
	struct pair p;
	uint8_t opcode[ROUNDS];
	uint32_t len[ROUNDS];
	unsigned posted, receives;
	unsigned sends[ROUNDS]; /* the request that fills the nth receive */
};
static struct script s;

static uint8_t
byte_of(unsigned round, uint32_t i)
{
	return (uint8_t)(round * 7 + i * 13 + (i >> 8));
}

static bool
takes_receive(uint8_t op)
{
	return op == RD_SEND || op == RD_SEND_IMM || op == RD_WRITE_IMM;
}

/* Each request has 4 KiB of its own, slot `r` modulo 128, at both ends; receives are in the next
 * 512 KiB of the target. */
static void
post(unsigned r, uint8_t op, uint32_t len)
{
	struct end *a = &s.p.e[0], *b = &s.p.e[1];
	uint64_t at = (uint64_t)(r % 128) * SLOT;
	struct rd_wr *wr;

	s.opcode[r] = op;
	s.len[r] = len;
	memset((op == RD_READ ? a : b)->mem + at, 0xee, SLOT);
	for (uint32_t i = 0; i < len; i++)
		(op == RD_READ ? b : a)->mem[at + i] = byte_of(r, i);
	if (takes_receive(op)) {
		struct rd_wr *rx = end_recv(b, s.receives);

		wr_sge(b, rx, END_MEM / 2 + (s.receives % 128) * SLOT, SLOT / 2);
		wr_sge(b, rx, END_MEM / 2 + (s.receives % 128) * SLOT + SLOT / 2, SLOT / 2);
		s.sends[s.receives++] = r;
	}
	wr = end_post(a, op, r);
	wr->rkey = b->mr.stag;
	wr->remote_addr = END_BASE + at;
	wr->imm = r;
	if (op == RD_FETCH_ADD || op == RD_CMP_SWAP) {
		memcpy(&word[r], b->mem + at, 8);
		wr->data = 0x1234567800000000ull + r;
		wr->compare = r % 2 ? word[r] : ~word[r];
		wr_sge(a, wr, at, 8);
		return;
	}
	wr_sge(a, wr, at, len / 3);
	wr_sge(a, wr, at + len / 3, len - len / 3);
}

static void
check_bytes(const uint8_t *at, unsigned r)
{
	for (uint32_t i = 0; i < s.len[r]; i++)
		cr_assert_eq(at[i], byte_of(r, i), "round %u byte %u", r, i);
}

static void
check_atomic(unsigned r, const uint8_t *target, const uint8_t *result)
{
	uint64_t now, was;

	memcpy(&now, target, 8);
	memcpy(&was, result, 8);
	cr_assert_eq(was, word[r]);
	if (s.opcode[r] == RD_FETCH_ADD)
		cr_assert_eq(now, word[r] + 0x1234567800000000ull + r);
	else
		cr_assert_eq(now, r % 2 ? 0x1234567800000000ull + r : word[r]);
}

static void
check(unsigned r)
{
	uint64_t at = (uint64_t)(r % 128) * SLOT;
	const uint8_t *a = s.p.e[0].mem + at, *b = s.p.e[1].mem + at;

	switch (s.opcode[r]) {
	case RD_WRITE:
	case RD_WRITE_IMM:
		check_bytes(b, r);
		cr_assert_eq(b[s.len[r]], 0xee);
		break;
	case RD_READ:
		check_bytes(a, r);
		cr_assert_eq(a[s.len[r]], 0xee);
		break;
	case RD_FETCH_ADD:
	case RD_CMP_SWAP:
		check_atomic(r, b, a);
		break;
	}
}

static bool
all_done(struct pair *p)
{
	return p->e[0].nsend == s.posted && p->e[1].nrecv == s.receives;
}

static const uint8_t ops[] = {
	RD_SEND, RD_SEND_IMM, RD_WRITE, RD_WRITE_IMM, RD_READ, RD_FETCH_ADD, RD_CMP_SWAP};

static unsigned
out_of_order(const struct rd_wc *wc, unsigned n)
{
	unsigned count = 0;

	for (unsigned i = 1; i < n; i++)
		count += wc[i].wr_id < wc[i - 1].wr_id;
	return count;
}

static void
run(uint8_t ordering, uint8_t errors, uint32_t noise)
{
	struct rof_chan_params cp = {.ordering = ordering, .errors = errors};
	bool seen[ROUNDS] = {false};

	memset(&s, 0, sizeof(s));
	pair_init(&s.p, &cp, 42 + ordering * 10 + errors + noise);
	s.p.loss = s.p.dup = noise;
	s.p.reorder = 4 * noise;
	for (unsigned r = 0; r < ROUNDS;) {
		unsigned burst = 1 + rng_below(&s.p.rng, 48);

		for (; burst > 0 && r < ROUNDS; burst--, r++) {
			uint8_t op = ops[rng_below(&s.p.rng, sizeof(ops))];
			uint32_t max =
				ordering == ROF_ORDER_NONE && takes_receive(op) ? 1024 : 4000;

			post(r, op, rng_below(&s.p.rng, max + 1));
			s.posted++;
		}
		s.p.e[0].no_buffers = s.p.e[1].no_buffers = rng_below(&s.p.rng, 3);
		pair_run(&s.p, 30000000000ull, all_done);
		cr_assert(all_done(&s.p), "%u of %u, %u of %u receives", s.p.e[0].nsend, s.posted,
			s.p.e[1].nrecv, s.receives);
		for (unsigned i = r > 48 ? r - 48 : 0; i < r; i++)
			if (s.p.e[0].send_wc[i].wr_id >= r - 48)
				check((unsigned)s.p.e[0].send_wc[i].wr_id);
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		const struct rd_wc *wc = &s.p.e[0].send_wc[i];

		cr_assert_eq(wc->status, RD_SUCCESS);
		cr_assert(!seen[wc->wr_id], "completed twice");
		seen[wc->wr_id] = true;
	}
	for (unsigned i = 0; i < s.receives; i++) {
		const struct rd_wc *wc = &s.p.e[1].recv_wc[i];
		unsigned r = s.sends[wc->wr_id];

		cr_assert_eq(wc->status, RD_SUCCESS);
		cr_assert_eq(wc->byte_len, s.len[r]);
		if (s.opcode[r] != RD_SEND)
			cr_assert_eq(wc->imm, r);
		if (s.opcode[r] != RD_WRITE_IMM && wc->wr_id + 128 >= s.receives)
			check_bytes(s.p.e[1].mem + END_MEM / 2 + (wc->wr_id % 128) * SLOT, r);
	}
	if (ordering != ROF_ORDER_NONE) {
		cr_assert_eq(out_of_order(s.p.e[0].send_wc, ROUNDS), 0);
		cr_assert_eq(out_of_order(s.p.e[1].recv_wc, s.receives), 0);
	} else if (noise > 0) {
		cr_assert_gt(out_of_order(s.p.e[0].send_wc, ROUNDS), 0);
		cr_assert_gt(out_of_order(s.p.e[1].recv_wc, s.receives), 0);
	}
	cr_assert(pair_fini(&s.p), "every buffer comes home");
}

Test(rof_mixed, strongly_ordered_verbs_rof_6_4)
{
	run(ROF_ORDER_STRONG, ROF_ERRORS_VERBS, 0);
	run(ROF_ORDER_STRONG, ROF_ERRORS_VERBS, 500);
}

Test(rof_mixed, strongly_ordered_complete_in_error_rof_6_4)
{
	run(ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE, 500);
}

Test(rof_mixed, weakly_ordered_verbs_rof_6_4)
{
	run(ROF_ORDER_WEAK, ROF_ERRORS_VERBS, 0);
	run(ROF_ORDER_WEAK, ROF_ERRORS_VERBS, 500);
}

Test(rof_mixed, weakly_ordered_complete_in_error_rof_6_4)
{
	run(ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE, 500);
}

Test(rof_mixed, unordered_complete_in_error_rof_6_4)
{
	run(ROF_ORDER_NONE, ROF_ERRORS_COMPLETE, 0);
	run(ROF_ORDER_NONE, ROF_ERRORS_COMPLETE, 500);
}
