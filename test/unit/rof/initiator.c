/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator alone: answers that match no request, each of Falcon's completion codes, and the
 * requests that it starts or does not start meanwhile.
 */
#include "script.h"

#include <criterion/criterion.h>
#include <string.h>

static struct script s;

static void
fini(void)
{
	cr_assert(script_fini(&s), "buffers %d, verdicts %u of %u, answers %u of %u", s.live,
		s.verdicts, s.deliveries, s.answers, s.pulls_taken);
}

/* ---- Answers to requests of this side ---- */

static struct wire_rof
response(uint32_t len)
{
	return (struct wire_rof){.opcode = ROF_READ_RESPONSE_ONLY,
		.sn = 1,
		.sink_va = SCRIPT_BASE + SCRIPT_LOCAL,
		.sink_lkey = s.local.stag,
		.pad = wire_rof_pad(len)};
}

static void
say_response(const struct wire_rof *h, uint32_t rsn, uint32_t len)
{
	uint8_t bytes[ROF_MAX + 2048];
	unsigned head;
	struct wire_rof full = *h;

	if (full.dest_qp == 0)
		full.dest_qp = SCRIPT_QPN;
	head = wire_rof_emit(bytes, &full);
	memset(bytes + head, 0x5a, len + full.pad);
	script_raw(&s, FA_PULL_DATA, rsn, bytes, head + len + full.pad);
}

Test(rof_initiator, responses_that_are_not_the_one_awaited_rof_8_3_4)
{
	for (unsigned k = 0; k < 20; k++) {
		struct wire_rof h;
		uint32_t len = 100;
		unsigned i = k % 10;

		/* The strong order has a fast path. */
		script_init(&s, ROF_RC, k < 10 ? ROF_ORDER_WEAK : ROF_ORDER_STRONG,
			ROF_ERRORS_COMPLETE);
		script_post(&s, RD_READ, 1, 0, 100);
		rof_tx(s.q, 0, 8);
		cr_assert_eq(s.requests, 1);
		h = response(100);
		h.sn += i == 1;
		h.sink_va += i == 2 ? 0x800 : 0;
		h.sink_lkey ^= i == 3;
		h.opcode = i == 4 ? ROF_ATOMIC_RESPONSE : i == 5 ? ROF_WRITE_ONLY : h.opcode;
		h.opcode |= i == 6 ? ROF_XRC : 0;
		h.dest_qp = i == 7 ? SCRIPT_PEER : 0;
		len -= i == 8;
		h.ce = i == 9;
		h.pad = wire_rof_pad(len);
		say_response(&h, SCRIPT_RSN, len);
		cr_assert_eq(s.nsend, 1);
		cr_assert_eq(s.send_wc[0].status, i == 0 ? RD_SUCCESS : RD_BAD_RESP_ERR, "%u", i);
		cr_assert(script_untouched(&s, SCRIPT_LOCAL, i == 0 ? 100 : 0), "%u", i);
		fini();
	}
}

Test(rof_initiator, answers_to_an_atomic_that_are_not_the_one_awaited_rof_8_3_7)
{
	for (unsigned k = 0; k < 16; k++) {
		struct wire_rof h = response(0);
		unsigned i = k % 8;
		struct rd_wr *wr;

		script_init(
			&s, ROF_RC, k < 8 ? ROF_ORDER_WEAK : ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE);
		wr = script_post(&s, RD_FETCH_ADD, 1, 0, 8);
		wr->remote_addr = SCRIPT_BASE + SCRIPT_GRANTED;
		rof_tx(s.q, 0, 8);
		cr_assert_eq(s.requests, 1, "%u", i);
		h.opcode = i == 1 ? ROF_READ_RESPONSE_ONLY : ROF_ATOMIC_RESPONSE;
		h.sn += i == 2;
		h.sink_va += i == 3 ? 0x800 : 0;
		h.sink_lkey = s.local.stag ^ (i == 4);
		h.dest_qp = i == 5 ? SCRIPT_PEER : 0;
		h.ce = i == 6;
		h.original = 0x1234;
		say_response(&h, SCRIPT_RSN, i == 1 ? 8 : i == 7 ? 4 : 0);
		cr_assert_eq(s.nsend, 1, "%u", k);
		cr_assert_eq(s.send_wc[0].status,
			i == 0   ? RD_SUCCESS
			: i == 6 ? RD_REM_ACCESS_ERR
				 : RD_BAD_RESP_ERR,
			"%u", k); /* CE: the target refused */
		cr_assert(script_untouched(&s, SCRIPT_LOCAL, i == 0 ? 8 : 0), "%u", k);
		fini();
	}
}

Test(rof_initiator, responses_to_nothing_and_twice)
{
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_STRONG, ROF_ERRORS_VERBS);
	h = response(100);
	say_response(&h, SCRIPT_RSN, 100);
	say_response(&h, SCRIPT_RSN - 1, 100);
	script_completion(&s, SCRIPT_RSN, FA_DONE, 0);
	script_completion(&s, 0, FA_TARGET_CIE, 255);
	cr_assert_eq(s.st.counters[ROF_BAD_RESPONSE], 4);
	script_post(&s, RD_WRITE, 1, 0, 100);
	rof_tx(s.q, 0, 8);
	say_response(&h, SCRIPT_RSN, 100);
	cr_assert_eq(s.nsend, 0, "pull data for a push");
	script_completion(&s, SCRIPT_RSN, FA_DONE, 0);
	script_completion(&s, SCRIPT_RSN, FA_DONE, 0);
	cr_assert_eq(s.nsend, 1, "at most once (6.8)");
	cr_assert_eq(s.errors, 0);
	cr_assert(script_untouched(&s, 0, 0));
	fini();
}

Test(rof_initiator, a_response_without_bytes_means_that_the_target_failed)
{
	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	script_post(&s, RD_READ, 1, 0, 100);
	script_post(&s, RD_READ, 2, 0, 100);
	rof_tx(s.q, 0, 8);
	script_raw(&s, FA_PULL_DATA, SCRIPT_RSN, NULL, 0);
	cr_assert_eq(s.send_wc[0].status, RD_REM_OP_ERR);
	script_completion(&s, SCRIPT_RSN + 1, FA_DONE, 0);
	cr_assert_eq(s.send_wc[1].status, RD_BAD_RESP_ERR, "nothing came");
	fini();
}

Test(rof_initiator, each_completion_code_has_its_status_falcon_8_4_3)
{
	static const struct {
		uint8_t code, nak;
		enum rd_status status;
	} codes[] = {{FA_DONE, 0, RD_SUCCESS}, {FA_TARGET_CIE, ROF_NAK_REQUEST, RD_REM_INV_REQ_ERR},
		{FA_TARGET_CIE, ROF_NAK_ACCESS, RD_REM_ACCESS_ERR},
		{FA_TARGET_CIE, ROF_NAK_OPERATION, RD_REM_OP_ERR},
		{FA_TARGET_CIE, ROF_NAK_RNR, RD_RNR_RETRY_EXC_ERR},
		{FA_TARGET_FATAL, ROF_NAK_QP, RD_RETRY_EXC_ERR},
		{FA_TARGET_CIE, 255, RD_REM_INV_REQ_ERR}, {FA_TARGET_CID, 0, RD_REM_INV_REQ_ERR},
		{FA_LOCAL_TIMEOUT, 0, RD_RETRY_EXC_ERR}, {FA_OPERATION_ERROR, 0, RD_BAD_RESP_ERR},
		{FA_DEAD_CONNECTION, 0, RD_RETRY_EXC_ERR}, {FA_LOCAL_RESOURCE, 0, RD_LOC_QP_OP_ERR},
		{FA_CREDIT_ERROR, 0, RD_LOC_QP_OP_ERR}, {FA_REMOTE_ERROR, 0, RD_REM_ABORT_ERR},
		{FA_LOCAL_XLR, 0, RD_REM_ABORT_ERR}, {2, 0, RD_GENERAL_ERR}};

	for (unsigned i = 0; i < SK_ARRAY_LEN(codes); i++) {
		script_init(&s, ROF_RC, ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE);
		script_post(&s, RD_WRITE, 1, 0, 100);
		rof_tx(s.q, 0, 8);
		script_completion(&s, SCRIPT_RSN, codes[i].code, codes[i].nak);
		cr_assert_eq(s.nsend, 1);
		cr_assert_eq(s.send_wc[0].status, codes[i].status, "code %u", codes[i].code);
		fini();
	}
}

/* ---- The send queue ---- */

Test(rof_initiator, behind_the_first_error_nothing_is_started_in_the_verbs_mode_rof_6_3)
{
	script_init(&s, ROF_RC, ROF_ORDER_STRONG, ROF_ERRORS_VERBS);
	script_post(&s, RD_WRITE, 0, 0, 8);
	script_post(&s, RD_WRITE, 1, 0, 8);
	rof_tx(s.q, 0, 8);
	script_post(&s, RD_WRITE, 2, 0, 8);
	s.no_buffers = 1;
	cr_assert_eq(rof_tx(s.q, 0, 8), ROF_TX_NOBUF);
	script_completion(&s, SCRIPT_RSN + 1, FA_TARGET_CIE, ROF_NAK_ACCESS);
	script_post(&s, RD_WRITE, 3, 0, 8);
	cr_assert_eq(rof_tx(s.q, 0, 8), ROF_TX_IDLE);
	cr_assert_eq(s.requests, 2);
	cr_assert_eq(s.nsend, 0);
	script_completion(&s, SCRIPT_RSN, FA_DONE, 0);
	cr_assert_eq(s.nsend, 4);
	cr_assert_eq(s.send_wc[0].status, RD_SUCCESS);
	cr_assert_eq(s.send_wc[1].status, RD_REM_ACCESS_ERR);
	cr_assert_eq(s.send_wc[2].status, RD_WR_FLUSH_ERR);
	cr_assert_eq(s.send_wc[3].status, RD_WR_FLUSH_ERR);
	fini();
	/* with a queue from which no request was taken meanwhile */
	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_VERBS);
	for (unsigned i = 0; i < 2; i++)
		script_post(&s, RD_WRITE, i, 0, 8);
	rof_tx(s.q, 0, 8);
	script_completion(&s, SCRIPT_RSN + 1, FA_TARGET_CIE, ROF_NAK_ACCESS);
	script_post(&s, RD_WRITE, 2, 0, 8);
	rof_tx(s.q, 0, 8);
	cr_assert_eq(s.requests, 2);
	script_completion(&s, SCRIPT_RSN, FA_TARGET_CIE, ROF_NAK_REQUEST);
	cr_assert_eq(s.send_wc[0].status, RD_REM_INV_REQ_ERR);
	cr_assert_eq(s.send_wc[1].status, RD_WR_FLUSH_ERR, "one error for a queue");
	fini();
}

Test(rof_initiator, a_fence_waits_for_the_reads_before_it)
{
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	script_post(&s, RD_READ, 0, 0, 100);
	script_post(&s, RD_WRITE, 1, 0, 8)->flags = RD_FENCE;
	cr_assert_eq(rof_tx(s.q, 0, 8), ROF_TX_BLOCKED);
	cr_assert_eq(s.requests, 1);
	h = response(100);
	say_response(&h, SCRIPT_RSN, 100);
	cr_assert_eq(rof_tx(s.q, 0, 8), ROF_TX_IDLE);
	cr_assert_eq(s.requests, 2);
	fini();
}

/* On a strongly ordered channel by the fast path, on the others by the general one. */
Test(rof_initiator, reads_and_atomics_count_their_rmsn_apart_from_sends_rof_8_3_2)
{
	static const uint8_t ops[] = {
		RD_READ, RD_SEND, RD_FETCH_ADD, RD_READ, RD_CMP_SWAP, RD_SEND};
	static const uint32_t rmsn[] = {1, 1, 2, 3, 4, 2};

	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_NONE; ordering++) {
		script_init(&s, ROF_RC, ordering, ROF_ERRORS_COMPLETE);
		for (unsigned i = 0; i < SK_ARRAY_LEN(ops); i++) {
			script_post(&s, ops[i], i, 0, 8);
			rof_tx(s.q, 0, 8);
			cr_assert_eq(s.requests, i + 1);
			cr_assert_eq(script_last(&s)->h.rmsn, rmsn[i], "%u %u", ordering, i);
		}
		fini();
	}
}

Test(rof_initiator, what_found_no_buffer_gives_its_credits_back_rof_6_5)
{
	static const uint8_t ops[] = {RD_READ, RD_WRITE};

	for (unsigned i = 0; i < 2; i++) {
		script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
		script_post(&s, ops[i], 0, 0, 100);
		for (unsigned n = 0; n < 100; n++) {
			s.no_buffers = 1;
			cr_assert_eq(rof_tx(s.q, 0, 8), ROF_TX_NOBUF);
		}
		cr_assert_eq(rof_tx(s.q, 0, 8), ROF_TX_IDLE);
		cr_assert_eq(s.requests, 1);
		fini();
	}
}
