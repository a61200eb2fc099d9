/* SPDX-License-Identifier: BSD-3-Clause */
/* The outcome of Reads and Atomics that are impossible: with an ORD of 0, in a dialect that the
 * connection does not use, and with a peer that lacks Atomics and sends Linux's Terminate. */
#include "rdmap_pair.h"

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"

static struct pair p;
static struct end *const a = &p.e[0];
static struct rd_mr *ma, *mb;

static void
start(uint16_t ord, bool draft_ext)
{
	struct iw_params params = end_params();

	params.ord = ord;
	params.draft_ext = draft_ext;
	pair_init(&p, &params, 6581);
	ma = end_mr(a, 0x10000, 4096, RD_ACC_LOCAL_WRITE, 1, 1);
	mb = end_mr(&p.e[1], 0x20000, 4096,
		RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_ATOMIC, 1, 2);
}

static void
post(uint8_t opcode, uint64_t wr_id)
{
	struct rd_wr *wr = end_post(a, opcode, wr_id);

	wr_sge(wr, ma, 0, 8);
	wr->rkey = mb->stag;
	wr->remote_addr = mb->base;
	wr->data = 1;
}

static const uint8_t requests[] = {RD_READ, RD_READ_INV, RD_FETCH_ADD, RD_CMP_SWAP, RD_SWAP};

/* No request may be outstanding, so it would wait for ever (RFC 6581 9.1: an ORD of 0 means that
 * Reads will not be used). */
Test(rdmap_depth, nothing_is_asked_for_at_an_ord_of_0_6581_9_1)
{
	for (unsigned i = 0; i < SK_ARRAY_LEN(requests); i++) {
		start(0, true);
		post(requests[i], 1);
		post(RD_WRITE, 2);
		end_tx(a);
		cr_assert_eq(a->nsend, 2, "opcode %u", requests[i]);
		cr_assert_eq(a->send_wc[0].status, RD_LOC_QP_OP_ERR, "opcode %u", requests[i]);
		cr_assert_eq(a->send_wc[1].status, RD_WR_FLUSH_ERR, "opcode %u", requests[i]);
		cr_assert(pair_run(&p));
		cr_assert(pair_fini(&p));
	}
}

Test(rdmap_depth, an_ord_of_1_is_enough_6581_9_1)
{
	for (unsigned i = 0; i < SK_ARRAY_LEN(requests); i++) {
		start(1, true);
		post(requests[i], 1);
		post(requests[i], 2);
		cr_assert(pair_run(&p));
		cr_assert_eq(a->nsend, 2, "opcode %u", requests[i]);
		cr_assert_eq(a->send_wc[0].status, RD_SUCCESS, "opcode %u", requests[i]);
		/* An invalidated sink fails later requests. */
		cr_assert_eq(a->send_wc[1].status == RD_SUCCESS, requests[i] != RD_READ_INV);
		cr_assert(pair_fini(&p));
	}
}

/* Feeds a Terminate body as it stands on the wire. */
static void
terminate_in(uint8_t first, uint8_t code)
{
	const struct wire_ddp d = {
		.last = true, .opcode = RDMAP_TERMINATE, .qn = DDP_QN_TERMINATE, .msn = 1};
	const uint8_t body[RDMAP_TERMINATE_LEN] = {first, code};

	end_fpdu(a, &d, body, sizeof(body));
}

/* 0x02 is RDMAP, remote operation error; siw writes 0x20, which is LLP, MPA. */
Test(rdmap_depth, an_unexpected_opcode_in_either_order_of_nibbles_7306_1_1)
{
	static const uint8_t first[] = {0x02, 0x20};

	for (unsigned i = 0; i < SK_ARRAY_LEN(first); i++) {
		struct iw_info info;

		start(8, false);
		post(RD_READ, 1);
		post(RD_FETCH_ADD, 2);
		end_tx(a);
		terminate_in(first[i], 6);
		cr_assert_eq(a->nsend, 2);
		cr_assert_eq(a->send_wc[0].status, RD_WR_FLUSH_ERR);
		cr_assert_eq(a->send_wc[1].status, RD_REM_INV_REQ_ERR, "0x%02x", first[i]);
		iw_get_info(a->q, &info);
		cr_assert_eq(info.term_layer, 0);
		cr_assert_eq(info.term_etype, 2);
		cr_assert(pair_fini(&p));
	}
}

/* The Terminates of a failed start-up concern no request (RFC 6581 8). */
Test(rdmap_depth, other_terminates_of_a_start_up_blame_no_request_6581_8)
{
	static const uint8_t codes[] = {5, 7};

	for (unsigned i = 0; i < SK_ARRAY_LEN(codes); i++) {
		struct iw_info info;

		start(8, false);
		post(RD_FETCH_ADD, 1);
		end_tx(a);
		terminate_in(0x20, codes[i]);
		cr_assert_eq(a->send_wc[0].status, RD_WR_FLUSH_ERR, "code %u", codes[i]);
		iw_get_info(a->q, &info);
		cr_assert_eq(info.term_layer, 2);
		cr_assert(pair_fini(&p));
	}
}

/* With no request outstanding, "insufficient IRD" has its literal meaning. */
Test(rdmap_depth, insufficient_ird_has_its_literal_meaning_before_any_request_6581_9_1)
{
	struct iw_info info;

	start(8, false);
	terminate_in(0x20, 6);
	iw_get_info(a->q, &info);
	cr_assert_eq(info.term_layer, 2);
	cr_assert_eq(info.term_etype, 0);
	cr_assert_eq(info.term_code, 6);
	cr_assert(pair_fini(&p));
}
