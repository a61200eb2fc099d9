/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Invalid requests between valid ones, in each mode. In the complete-in-error mode (6.3) the
 * invalid one alone fails, with its status, and those behind it continue, receives included; in the
 * verbs mode it is the last one that was executed. No other byte of memory changes.
 */
#include "pair.h"

#include "../../../lib/base/mem.h"

#include <criterion/criterion.h>
#include <string.h>

#define LEN  100
#define BAD  0x4000 /* offset that the invalid request addresses */
#define BIG  3000   /* three packets */
#define EDGE 0x8000 /* the read-only region and its neighbours, 0x1000 bytes each */

static struct pair p;
static struct rd_mr read_only, foreign, gone;
static struct rd_extent extents[3];
static struct rd_pd other_pd;

enum fault {
	RKEY,
	BOUNDS,
	NO_RIGHT,
	OTHER_PD,
	INVALIDATED,
	READ_RKEY,
	READ_BOUNDS,
	READ_NO_RIGHT,
	ATOMIC_UNALIGNED,
	ATOMIC_NO_RIGHT,
	IMM_RKEY,
	IMM_BELOW,
	TOO_LONG,
	TOO_LONG_BY_PACKETS,
	RECEIVE_LKEY,
	CANNOT_INVALIDATE,
	LOCAL_LKEY,
	LOCAL_SINK,
	OPCODE,
	NO_OPCODE,
	MASKED_SWAP,
	MASKED_ADD,
	ATOMIC_LENGTH,
	INLINE_READ,
	FAULTS
};

static const struct row {
	const char *name;
	enum rd_status status;
	enum rof_reason reason; /* at the target; ROF_NONE: no packet arrives there */
	enum rd_status receive; /* status of the receive that it takes; RD_SUCCESS: none */
} rows[FAULTS] = {
	[RKEY] = {"rkey", RD_REM_ACCESS_ERR, ROF_STAG},
	[BOUNDS] = {"bounds", RD_REM_ACCESS_ERR, ROF_BOUNDS},
	[NO_RIGHT] = {"right to write", RD_REM_ACCESS_ERR, ROF_ACCESS},
	[OTHER_PD] = {"PD", RD_REM_ACCESS_ERR, ROF_STAG_PD},
	[INVALIDATED] = {"invalidated", RD_REM_ACCESS_ERR, ROF_STAG},
	[READ_RKEY] = {"Read's rkey", RD_REM_ACCESS_ERR, ROF_STAG},
	[READ_BOUNDS] = {"Read's bounds", RD_REM_ACCESS_ERR, ROF_BOUNDS},
	[READ_NO_RIGHT] = {"right to read", RD_REM_ACCESS_ERR, ROF_ACCESS},
	[ATOMIC_UNALIGNED] = {"unaligned Atomic", RD_REM_ACCESS_ERR, ROF_ATOMIC_UNALIGNED},
	[ATOMIC_NO_RIGHT] = {"right to Atomics", RD_REM_ACCESS_ERR, ROF_ACCESS},
	[IMM_RKEY] = {"rkey of a Write with Immediate", RD_REM_ACCESS_ERR, ROF_STAG},
	[IMM_BELOW] = {"Write with Immediate whose first packet is refused", RD_REM_ACCESS_ERR,
		ROF_BOUNDS},
	[TOO_LONG] = {"too long", RD_REM_INV_REQ_ERR, ROF_TOO_LONG, RD_LOC_LEN_ERR},
	[TOO_LONG_BY_PACKETS] = {"too long by packets", RD_REM_INV_REQ_ERR, ROF_TOO_LONG,
		RD_LOC_LEN_ERR},
	[RECEIVE_LKEY] = {"receive's lkey", RD_REM_OP_ERR, ROF_RECEIVE_FAULT, RD_LOC_PROT_ERR},
	[CANNOT_INVALIDATE] = {"invalidate", RD_REM_INV_REQ_ERR, ROF_CANNOT_INVALIDATE,
		RD_REM_INV_REQ_ERR},
	[LOCAL_LKEY] = {"lkey", RD_LOC_PROT_ERR},
	[LOCAL_SINK] = {"sink that may not be written to", RD_LOC_PROT_ERR},
	[OPCODE] = {"iWARP's opcode", RD_LOC_QP_OP_ERR},
	[NO_OPCODE] = {"opcode", RD_LOC_QP_OP_ERR},
	[MASKED_SWAP] = {"masked CmpSwap", RD_LOC_QP_OP_ERR},
	[MASKED_ADD] = {"masked FetchAdd", RD_LOC_QP_OP_ERR},
	[ATOMIC_LENGTH] = {"Atomic of 7 bytes", RD_LOC_LEN_ERR},
	[INLINE_READ] = {"inline Read", RD_LOC_QP_OP_ERR},
};

static void
regions(void)
{
	struct end *b = &p.e[1];

	end_region(
		b, &read_only, &extents[0], EDGE, 0x1000, RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_READ);
	end_region(b, &foreign, &extents[1], EDGE + 0x1000, 0x1000, 31);
	foreign.pd = &other_pd;
	end_region(b, &gone, &extents[2], EDGE + 0x2000, 0x1000, 31);
	cr_assert(rd_mr_invalidate(&gone));
}

/* Posts an invalid request to `mr`, from its byte `off` on. */
static void
wrong_to(uint8_t opcode, const struct rd_mr *mr, int64_t off, uint32_t len)
{
	struct rd_wr *wr = end_msg(&p.e[0], opcode, 1, BAD, len);

	wr->rkey = mr->stag;
	wr->remote_addr = mr->base + (uint64_t)off;
}

static void
wrong_local(enum fault f)
{
	struct end *a = &p.e[0];
	struct rd_wr *wr;

	switch (f) {
	case LOCAL_LKEY:
		end_msg(a, RD_WRITE, 1, BAD, LEN)->sge[0].lkey ^= 1;
		return;
	case LOCAL_SINK:
		a->mr.access &= ~RD_ACC_LOCAL_WRITE;
		end_msg(a, RD_READ, 1, BAD, LEN);
		return;
	case OPCODE:
		end_msg(a, RD_IMM, 1, BAD, LEN);
		return;
	case NO_OPCODE:
		end_msg(a, 0xff, 1, BAD, LEN);
		return;
	case MASKED_SWAP:
		end_msg(a, RD_CMP_SWAP, 1, BAD, 8)->compare_mask = 0xff;
		return;
	case MASKED_ADD:
		end_msg(a, RD_FETCH_ADD, 1, BAD, 8)->data_mask = 0x80;
		return;
	case ATOMIC_LENGTH:
		end_msg(a, RD_FETCH_ADD, 1, BAD, 7);
		return;
	default:
		wr = end_msg(a, RD_READ, 1, BAD, 0);
		wr->flags = RD_INLINE;
		wr->inline_len = 8;
	}
}

static void
wrong_send(enum fault f)
{
	struct end *a = &p.e[0], *b = &p.e[1];

	switch (f) {
	case TOO_LONG:
		end_recv_at(b, 1, BAD, LEN - 1);
		end_msg(a, RD_SEND, 1, BAD, LEN);
		return;
	case TOO_LONG_BY_PACKETS:
		end_recv_at(b, 1, BAD, 1500);
		end_msg(a, RD_SEND_IMM, 1, BAD, BIG);
		return;
	case RECEIVE_LKEY:
		end_recv_at(b, 1, BAD, LEN)->sge[0].lkey ^= 1;
		end_msg(a, RD_SEND, 1, BAD, LEN);
		return;
	case CANNOT_INVALIDATE:
		end_recv_at(b, 1, BAD, LEN);
		end_msg(a, RD_SEND_INV, 1, BAD, LEN)->imm = foreign.stag;
		return;
	default:
		wrong_local(f);
	}
}

static void
wrong(enum fault f)
{
	struct end *a = &p.e[0], *b = &p.e[1];

	switch (f) {
	case RKEY:
		end_msg(a, RD_WRITE, 1, BAD, LEN)->rkey ^= 1;
		return;
	case BOUNDS:
		read_only.access = 31;
		wrong_to(RD_WRITE, &read_only, 0x1000 - LEN + 1, LEN);
		return;
	case NO_RIGHT:
		wrong_to(RD_WRITE, &read_only, 0, BIG);
		return;
	case OTHER_PD:
		wrong_to(RD_WRITE, &foreign, 0, LEN);
		return;
	case INVALIDATED:
		wrong_to(RD_WRITE, &gone, 0, LEN);
		return;
	case READ_RKEY:
		end_msg(a, RD_READ, 1, BAD, BIG)->rkey ^= 1;
		return;
	case READ_BOUNDS:
		wrong_to(RD_READ, &read_only, -1, LEN);
		return;
	case READ_NO_RIGHT:
		read_only.access = RD_ACC_LOCAL_WRITE;
		wrong_to(RD_READ, &read_only, 0, LEN);
		return;
	case ATOMIC_UNALIGNED:
		wrong_to(RD_FETCH_ADD, &b->mr, 4, 8);
		return;
	case ATOMIC_NO_RIGHT:
		wrong_to(RD_CMP_SWAP, &read_only, 0, 8);
		return;
	case IMM_RKEY:
		end_msg(a, RD_WRITE_IMM, 1, BAD, LEN)->rkey ^= 1;
		return;
	case IMM_BELOW: /* only the last packet would be in bounds */
		read_only.access = 31;
		wrong_to(RD_WRITE_IMM, &read_only, -1024, 1500);
		return;
	default:
		wrong_send(f);
	}
}

static bool
all_sent(struct pair *pair)
{
	return pair->e[0].nsend == 5;
}

/* A test changes the target's memory only in [0x1000, 0x3000 + LEN) and at BAD. */
static void
check_memory(enum fault f)
{
	const uint8_t *m = p.e[1].mem;
	bool filled = rows[f].receive != RD_SUCCESS; /* possibly in part */

	for (uint32_t i = 0; i < END_MEM; i++) {
		if ((i >= 0x1000 && i < 0x3000 + LEN) || (filled && i >= BAD && i < BAD + BIG))
			continue;
		cr_assert_eq(m[i], 0x77, "%s: byte %x", rows[f].name, i);
	}
	for (uint32_t i = 0; i < LEN; i++)
		cr_assert_eq(m[0x1000 + i], 0x11);
	if (!filled)
		return;
	cr_assert_eq(m[BAD + BIG - 1], 0x77, "behind the receive");
}

static void
check_going_on(enum fault f)
{
	const struct end *a = &p.e[0], *b = &p.e[1];
	const struct rd_wc *wc;

	for (unsigned id = 2; id < 5; id++)
		cr_assert_eq(wc_find(a->send_wc, a->nsend, id)->status, RD_SUCCESS, "%s, %u",
			rows[f].name, id);
	cr_assert_eq(b->mem[0x3000 + LEN - 1], 0x11);
	for (unsigned id = 2; id < 4; id++) {
		wc = wc_find(b->recv_wc, b->nrecv, id);
		cr_assert_not_null(wc, "%s: receive %u", rows[f].name, id);
		cr_assert_eq(wc->status, RD_SUCCESS);
		cr_assert_eq(wc->byte_len, LEN);
	}
	cr_assert_eq(b->mem[0x2000], 0x11);
	cr_assert_eq(a->errors + b->errors, 0);
	cr_assert_eq(b->nrecv, rows[f].receive != RD_SUCCESS ? 3 : 2);
}

static void
check_ended(enum fault f)
{
	const struct end *a = &p.e[0], *b = &p.e[1];

	for (unsigned id = 2; id < 5; id++)
		cr_assert_eq(wc_find(a->send_wc, a->nsend, id)->status, RD_WR_FLUSH_ERR, "%s, %u",
			rows[f].name, id);
	cr_assert_eq(a->errors, 1);
	cr_assert(a->closed);
	cr_assert_eq(a->rd.state, RD_QP_ERR);
	cr_assert_eq(b->mem[0x2000], 0x77, "nothing behind it was executed");
	cr_assert_eq(b->mem[0x3000], 0x77);
	cr_assert_eq(b->errors, rows[f].reason != ROF_NONE);
	cr_assert_not(b->closed, "the peer must get the NACK");
	if (rows[f].reason == ROF_NONE)
		return;
	cr_assert_eq(b->error_code, (int)rows[f].reason, "%s", rows[f].name);
	cr_assert_eq(b->nrecv, rows[f].receive != RD_SUCCESS ? 3 : 2);
	for (unsigned i = 0; i < b->nrecv; i++)
		cr_assert_eq(b->recv_wc[i].status,
			b->recv_wc[i].wr_id == 1 ? rows[f].receive : RD_WR_FLUSH_ERR);
}

/* vendor_err has the reason of a refusal, as far as it reached the initiator. */
static void
check_vendor(const struct rd_wc *wc, enum fault f, uint8_t errors)
{
	static const uint8_t naks[] = {[RD_REM_INV_REQ_ERR] = ROF_NAK_REQUEST,
		[RD_REM_ACCESS_ERR] = ROF_NAK_ACCESS,
		[RD_REM_OP_ERR] = ROF_NAK_OPERATION};
	bool pull =
		wc->opcode == RD_READ || wc->opcode == RD_FETCH_ADD || wc->opcode == RD_CMP_SWAP;
	uint32_t v = wc->vendor_err;

	if (errors == ROF_ERRORS_COMPLETE)
		cr_assert_eq(ROF_VENDOR_REASON(v), 0, "%s: the QP goes on", rows[f].name);
	if (rows[f].reason == ROF_NONE) /* the request was never sent */
		return;
	if (pull) {
		cr_assert_eq(v & ~0xffu, ROF_VENDOR_PULL, "%s: %x", rows[f].name, v);
		return;
	}
	cr_assert_eq(ROF_VENDOR_NAK(v), naks[wc->status], "%s: %x", rows[f].name, v);
	cr_assert(ROF_VENDOR_COMPLETION(v) == FA_TARGET_CIE ||
			  ROF_VENDOR_COMPLETION(v) == FA_TARGET_FATAL,
		"%s: %x", rows[f].name, v);
}

static void
run(enum fault f, uint8_t ordering, uint8_t errors)
{
	struct rof_chan_params cp = {.ordering = ordering, .errors = errors};
	struct end *a = &p.e[0], *b = &p.e[1];

	if (ordering == ROF_ORDER_NONE && f == TOO_LONG_BY_PACKETS)
		return;
	pair_init(&p, &cp, 3);
	if (ordering == ROF_ORDER_NONE && f == IMM_BELOW)
		f = IMM_RKEY; /* at most one packet in this mode (6.4) */
	regions();
	memset(a->mem, 0x11, END_MEM);
	memset(b->mem, 0x77, END_MEM);
	end_msg(a, RD_WRITE, 0, 0x1000, LEN);
	pair_run(&p, 1000000, pair_sent);
	wrong(f);
	end_recv_at(b, 2, 0x2000, LEN);
	end_recv_at(b, 3, 0x2800, LEN);
	end_msg(a, RD_SEND, 2, 0x2000, LEN);
	end_msg(a, RD_SEND, 3, 0x2800, LEN);
	end_msg(a, RD_WRITE, 4, 0x3000, LEN);
	pair_run(&p, 1000000000, all_sent);
	pair_run(&p, 100000, NULL);
	cr_assert_eq(a->nsend, 5, "%s, ordering %u: %u", rows[f].name, ordering, a->nsend);
	cr_assert_eq(a->send_wc[0].status, RD_SUCCESS);
	cr_assert_eq(wc_find(a->send_wc, 5, 1)->status, rows[f].status, "%s, ordering %u: %u",
		rows[f].name, ordering, wc_find(a->send_wc, 5, 1)->status);
	check_vendor(wc_find(a->send_wc, 5, 1), f, errors);
	if (rows[f].reason != ROF_NONE)
		cr_assert_gt(b->st.counters[rows[f].reason], 0, "%s", rows[f].name);
	if (rows[f].receive != RD_SUCCESS)
		cr_assert_eq(wc_find(b->recv_wc, b->nrecv, 1)->status, rows[f].receive, "%s",
			rows[f].name);
	check_memory(f);
	if (errors == ROF_ERRORS_COMPLETE)
		check_going_on(f);
	else
		check_ended(f);
	rd_mr_del(b->mrs, &read_only);
	rd_mr_del(b->mrs, &foreign);
	rd_mr_del(b->mrs, &gone);
	cr_assert(pair_fini(&p), "%s: every buffer comes home", rows[f].name);
}

Test(rof_errors, verbs_mode_ends_the_qp_rof_6_3)
{
	for (unsigned f = 0; f < FAULTS; f++)
		run((enum fault)f, ROF_ORDER_STRONG, ROF_ERRORS_VERBS);
}

Test(rof_errors, complete_in_error_mode_goes_on_rof_6_3)
{
	for (unsigned f = 0; f < FAULTS; f++)
		run((enum fault)f, ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE);
}

Test(rof_errors, complete_in_error_mode_weakly_ordered_rof_6_3)
{
	for (unsigned f = 0; f < FAULTS; f++)
		run((enum fault)f, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
}

Test(rof_errors, complete_in_error_mode_unordered_rof_6_3)
{
	for (unsigned f = 0; f < FAULTS; f++)
		run((enum fault)f, ROF_ORDER_NONE, ROF_ERRORS_COMPLETE);
}

/* The size limits of the unordered mode (6.4). */
Test(rof_errors, unordered_sends_and_immediates_have_one_mtu_at_most_rof_6_4)
{
	static const uint8_t ops[] = {RD_SEND, RD_SEND_IMM, RD_SEND_INV, RD_WRITE_IMM};
	struct rof_chan_params cp = {.ordering = ROF_ORDER_NONE, .errors = ROF_ERRORS_COMPLETE};

	pair_init(&p, &cp, 3);
	for (unsigned i = 0; i < SK_ARRAY_LEN(ops); i++) {
		end_msg(&p.e[0], ops[i], i, 0, 1025);
		end_recv_at(&p.e[1], i, 0, 2000);
	}
	end_msg(&p.e[0], RD_WRITE, 8, 0, 5000);
	end_msg(&p.e[0], RD_READ, 9, 0, 5000);
	end_msg(&p.e[0], RD_SEND, 10, 0, 1024);
	pair_run(&p, 10000000, pair_sent);
	for (unsigned i = 0; i < SK_ARRAY_LEN(ops); i++)
		cr_assert_eq(wc_find(p.e[0].send_wc, 7, i)->status, RD_LOC_LEN_ERR);
	for (unsigned i = 8; i < 11; i++)
		cr_assert_eq(wc_find(p.e[0].send_wc, 7, i)->status, RD_SUCCESS);
	cr_assert_eq(p.e[1].nrecv, 1);
	cr_assert_eq(p.e[1].recv_wc[0].wr_id, 0, "what was refused here took no receive there");
	cr_assert(pair_fini(&p));
}

/* ---- A receiver that is not ready (Falcon 8.5.3.4) ---- */

static void
rnr(uint8_t retry, uint8_t ordering, uint8_t errors, uint32_t len)
{
	struct rof_chan_params cp = {
		.ordering = ordering, .errors = errors, .rnr_retry = (uint8_t)(retry + 1)};
	struct end *a = &p.e[0], *b = &p.e[1];
	bool verbs = errors == ROF_ERRORS_VERBS;

	pair_init(&p, &cp, 4);
	memset(a->mem, 0x11, END_MEM);
	end_msg(a, RD_SEND, 0, 0, len);
	pair_run(&p, 1000000000, pair_sent);
	cr_assert_eq(a->nsend, 1);
	cr_assert_eq(a->send_wc[0].status, RD_RNR_RETRY_EXC_ERR, "%u", a->send_wc[0].status);
	cr_assert_eq(b->st.counters[ROF_RNR_EXHAUSTED], 1);
	cr_assert_geq(b->st.counters[ROF_NO_RECEIVE], retry);
	if (len < 1024)
		cr_assert_eq(b->st.counters[ROF_NO_RECEIVE], retry);
	cr_assert_eq(a->errors, verbs);
	end_recv_at(b, 7, 0, 4000);
	end_msg(a, RD_SEND, 1, 0, 200);
	pair_run(&p, 1000000000, pair_sent);
	pair_run(&p, 100000, NULL);
	if (verbs) {
		cr_assert_eq(a->nsend, 1, "a QP in error takes nothing");
		rof_flush(a->q, UINT32_MAX);
		rof_flush(b->q, UINT32_MAX);
	}
	cr_assert_eq(a->send_wc[1].status, verbs ? RD_WR_FLUSH_ERR : RD_SUCCESS);
	cr_assert_eq(b->nrecv, 1);
	cr_assert_eq(b->recv_wc[0].wr_id, 7);
	cr_assert_eq(b->recv_wc[0].status, verbs ? RD_WR_FLUSH_ERR : RD_SUCCESS);
	cr_assert(pair_fini(&p));
}

Test(rof_errors, no_receive_in_rnr_retry_attempts_rof_6_4)
{
	for (uint8_t retry = 0; retry < ROF_RNR_FOREVER; retry++) {
		rnr(retry, ROF_ORDER_STRONG, ROF_ERRORS_VERBS, 100);
		rnr(retry, ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE, 100);
		rnr(retry, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE, 100);
		rnr(retry, ROF_ORDER_NONE, ROF_ERRORS_COMPLETE, 100);
	}
	rnr(2, ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE, 3000);
}

Test(rof_errors, rnr_retry_7_waits_for_ever_rof_6_4)
{
	struct rof_chan_params cp = {.rnr_retry = ROF_RNR_FOREVER + 1};

	pair_init(&p, &cp, 4);
	end_msg(&p.e[0], RD_SEND, 0, 0, 3000);
	end_msg(&p.e[0], RD_WRITE, 1, 0x2000, 100);
	pair_run(&p, 300000000, pair_sent);
	cr_assert_eq(p.e[0].nsend, 0);
	cr_assert_gt(p.e[1].st.counters[ROF_NO_RECEIVE], 100);
	end_recv_at(&p.e[1], 0, 0, 3000);
	pair_run(&p, 300000000, pair_sent);
	cr_assert_eq(p.e[0].nsend, 2);
	cr_assert_eq(p.e[0].send_wc[0].status, RD_SUCCESS);
	cr_assert_eq(p.e[0].send_wc[0].wr_id, 0);
	cr_assert_eq(p.e[1].nrecv, 1);
	cr_assert(pair_fini(&p));
}
