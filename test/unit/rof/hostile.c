/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that violates the protocol, directly at rof_rx(): each request gets a verdict, no memory
 * outside of the granted region changes, and every buffer is freed.
 */
#include "script.h"

#include <criterion/criterion.h>
#include <string.h>

#include "../../support/absent.h"

static struct script s;

static struct wire_rof
write_only(uint32_t off, uint32_t len)
{
	return (struct wire_rof){.opcode = ROF_WRITE_ONLY,
		.va = SCRIPT_BASE + SCRIPT_GRANTED + off,
		.rkey = s.granted.stag,
		.length = len,
		.pad = wire_rof_pad(len)};
}

static struct wire_rof
send(uint8_t opcode, uint32_t rmsn, uint32_t offset, uint32_t len)
{
	return (struct wire_rof){
		.opcode = opcode, .rmsn = rmsn, .offset = offset, .pad = wire_rof_pad(len)};
}

static void
say_send(uint8_t opcode, uint32_t rmsn, uint32_t offset, uint32_t len)
{
	struct wire_rof h = send(opcode, rmsn, offset, len);

	script_request(&s, FA_PUSH, &h, len);
}

static struct wire_rof
read_request(uint32_t off, uint32_t len)
{
	return (struct wire_rof){.opcode = ROF_READ_REQUEST,
		.va = SCRIPT_BASE + SCRIPT_GRANTED + off,
		.rkey = s.granted.stag,
		.length = len,
		.rmsn = 1,
		.sink_va = 0x1122334455667788,
		.sink_lkey = 0x99aabbcc};
}

static bool
refused(uint8_t nak)
{
	const struct script_msg *t = script_last(&s);

	return t->kind == ROF_MSG_OUTCOME && t->verdict == FA_CIE && t->ulp_code == nak;
}

static bool
taken(void)
{
	const struct script_msg *t = script_last(&s);

	return t->kind == ROF_MSG_OUTCOME && t->verdict == FA_TAKEN;
}

static void
fini(void)
{
	cr_assert(script_fini(&s), "buffers %d, verdicts %u of %u, answers %u of %u", s.live,
		s.verdicts, s.deliveries, s.answers, s.pulls_taken);
}

Test(rof_hostile, sequence_numbers_of_the_strongly_ordered_mode_rof_8_2)
{
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_STRONG, ROF_ERRORS_VERBS);
	h = write_only(0, 8);
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert(taken(), "the first is 1");
	h.sn = 3;
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert_eq(script_last(&s)->verdict, FA_FATAL_ERROR);
	cr_assert_eq(s.st.counters[ROF_SEQUENCE], 1);
	cr_assert_eq(s.errors, 1);
	fini();
}

Test(rof_hostile, sequence_numbers_of_the_weakly_ordered_mode_rof_8_2)
{
	static const uint32_t bad[] = {1, 0, 2 + ROF_SN_WINDOW, 0x80000000, 0xffffffff};
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	h = write_only(0, 8);
	script_request(&s, FA_PUSH, &h, 8);
	h.sn = 1 + ROF_SN_WINDOW;
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert(taken(), "as far ahead as may be");
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert(refused(ROF_NAK_REQUEST), "twice");
	for (unsigned i = 0; i < SK_ARRAY_LEN(bad); i++) {
		h.sn = bad[i];
		s.sn = 0; /* 0 in h.sn stands for s.sn */
		script_request(&s, FA_PUSH, &h, 8);
		cr_assert(refused(ROF_NAK_REQUEST), "%u", bad[i]);
	}
	cr_assert_eq(s.st.counters[ROF_SEQUENCE], 1 + SK_ARRAY_LEN(bad));
	fini();
}

/* Sequence numbers that arrive in reverse order, across their wrap at 2^32. */
Test(rof_hostile, sequence_numbers_wrap_rof_8_2)
{
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	s.c->sn_next = s.sn = (uint32_t)-300;
	h = write_only(0, 8);
	for (uint32_t i = 600; i > 0; i--) { /* all of them, backwards */
		h.sn = (uint32_t)-300 + i - 1;
		if (h.sn == 0)
			s.sn = 0;
		script_request(&s, FA_PUSH, &h, 8);
		cr_assert(taken(), "%u", h.sn);
	}
	cr_assert_eq(s.c->sn_next, 300);
	fini();
}

Test(rof_hostile, a_packet_in_another_falcon_packet_than_its_own_rof_8_1_3)
{
	for (unsigned op = 0; op < 256; op++) {
		struct wire_rof h = {.opcode = (uint8_t)op};
		int type = wire_rof_falcon_type((uint8_t)op);

		if (type < 0)
			continue;
		script_init(&s, ROF_RC, ROF_ORDER_NONE, ROF_ERRORS_COMPLETE);
		if (type != FALCON_PUSH_DATA || (op & ROF_TRANSPORT) != ROF_RC) {
			script_request(&s, FA_PUSH, &h, 0);
			cr_assert(refused(ROF_NAK_REQUEST), "%x", op);
			cr_assert_eq(s.st.counters[ROF_BAD_OPCODE], 1);
		}
		if (type != FALCON_PULL_REQUEST || (op & ROF_TRANSPORT) != ROF_RC) {
			script_request(&s, FA_PULL, &h, 0);
			cr_assert_eq(script_last(&s)->kind, ROF_MSG_ANSWER, "%x", op);
			cr_assert_eq(script_last(&s)->len, 0, "no bytes: it failed");
		}
		cr_assert(script_untouched(&s, 0, 0));
		fini();
	}
}

Test(rof_hostile, headers_that_are_short_or_of_another_version_rof_8_2)
{
	uint8_t bytes[ROF_MAX] = {0x10, 0, 0, ROF_WRITE_ONLY};

	script_init(&s, ROF_RC, ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE);
	for (uint32_t len = 0; len < wire_rof_len(ROF_WRITE_ONLY); len++) {
		script_raw(&s, FA_PUSH, 0, bytes, len);
		cr_assert(refused(ROF_NAK_REQUEST));
		script_raw(&s, FA_PULL, 0, bytes, len);
		cr_assert_eq(script_last(&s)->kind, ROF_MSG_ANSWER);
		cr_assert_eq(script_last(&s)->len, 0);
	}
	bytes[0] = 0x20;
	script_raw(&s, FA_PUSH, 0, bytes, sizeof(bytes));
	cr_assert(refused(ROF_NAK_REQUEST), "version");
	bytes[0] = 0x10;
	bytes[2] = 3 << 2;
	script_raw(&s, FA_PUSH, 0, bytes, wire_rof_len(ROF_WRITE_ONLY) + 2);
	cr_assert(refused(ROF_NAK_REQUEST), "more padding than there are bytes");
	cr_assert_eq(s.st.counters[ROF_BAD_HEADER], 2 * wire_rof_len(ROF_WRITE_ONLY) + 2);
	fini();
}

Test(rof_hostile, writes_outside_of_what_was_granted_rof_8_3_1)
{
	static const struct {
		uint64_t va;
		uint32_t len;
	} wild[] = {
		{SCRIPT_BASE + SCRIPT_GRANTED - 1, 8},
		{SCRIPT_BASE + SCRIPT_GRANTED + SCRIPT_REGION - 7, 8},
		{SCRIPT_BASE + SCRIPT_GRANTED + SCRIPT_REGION, 1},
		{0, 8},
		{UINT64_MAX - 3, 8},
		{UINT64_MAX, 1},
		{SCRIPT_BASE + SCRIPT_LOCAL, 8},
	};
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	for (unsigned i = 0; i < SK_ARRAY_LEN(wild); i++) {
		for (uint8_t op = ROF_WRITE_FIRST; op <= ROF_WRITE_ONLY_IMM; op++) {
			h = write_only(0, wild[i].len);
			h.opcode = op;
			h.va = wild[i].va;
			h.rmsn = 1;
			script_request(&s, FA_PUSH, &h, wild[i].len);
			cr_assert(refused(
				(wire_rof_headers(op) & ROF_SETH) && s.st.counters[ROF_SEQUENCE]
					? ROF_NAK_REQUEST
					: ROF_NAK_ACCESS));
		}
	}
	cr_assert_eq(s.st.counters[ROF_SEQUENCE], 0);
	cr_assert(script_untouched(&s, 0, 0));
	fini();
}

Test(rof_hostile, a_write_longer_than_its_length_field_rof_8_3_1)
{
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	h = write_only(0, 7);
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert(refused(ROF_NAK_REQUEST));
	h = write_only(0, 1100);
	script_request(&s, FA_PUSH, &h, 1100);
	cr_assert(refused(ROF_NAK_REQUEST), "longer than the MTU");
	cr_assert_eq(s.st.counters[ROF_LENGTH], 2);
	/* Immediate Data of a message that, by its length, starts before the region. */
	script_recv(&s, 1, 0, 0);
	h = write_only(0, 8);
	h.opcode = ROF_WRITE_LAST_IMM;
	h.length = 0xffffffff;
	h.rmsn = 1;
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert(refused(ROF_NAK_ACCESS));
	cr_assert(script_untouched(&s, 0, 0));
	cr_assert_eq(s.nrecv, 0);
	fini();
}

Test(rof_hostile, receive_numbers_far_off_rof_8_3_2)
{
	static const uint32_t bad[] = {0, 0x80000000, 0xffffffff, 1 + ROF_SN_WINDOW};

	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_NONE; ordering++) {
		script_init(&s, ROF_RC, ordering, ROF_ERRORS_COMPLETE);
		script_recv(&s, 1, 0, 100);
		for (unsigned i = 0; i < SK_ARRAY_LEN(bad); i++) {
			say_send(ROF_SEND_ONLY, bad[i], 0, 8);
			cr_assert(refused(ROF_NAK_REQUEST), "%u", bad[i]);
		}
		if (ordering == ROF_ORDER_STRONG) {
			say_send(ROF_SEND_ONLY, 2, 0, 8);
			cr_assert(refused(ROF_NAK_REQUEST), "not the next one");
		}
		cr_assert_eq(s.rq_head, 0, "no receive was taken");
		say_send(ROF_SEND_ONLY, 1, 0, 8);
		cr_assert(taken());
		cr_assert_eq(s.nrecv, 1);
		say_send(ROF_SEND_ONLY, 1, 0, 8);
		cr_assert(refused(ROF_NAK_REQUEST), "twice");
		cr_assert(script_untouched(&s, SCRIPT_LOCAL, 8));
		fini();
	}
}

/* Where a packet is missing, messages may be far ahead of those that can complete: they wait. */
Test(rof_hostile, more_messages_than_there_is_room_for_come_again_rof_8_3_2)
{
	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	say_send(ROF_SEND_ONLY, 1 + ROF_RECVS, 0, 8);
	cr_assert_eq(script_last(&s)->verdict, FA_RNR);
	cr_assert_eq(script_last(&s)->rnr, ROF_RNR_SOON);
	cr_assert_eq(s.rq_head, 0);
	fini();
}

Test(rof_hostile, offsets_and_ends_that_cannot_be_rof_8_3_3)
{
	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_WEAK; ordering++) {
		script_init(&s, ROF_RC, ordering, ROF_ERRORS_COMPLETE);
		for (unsigned i = 0; i < 8; i++)
			script_recv(&s, i, 64 * i, 64);
		say_send(ROF_SEND_ONLY, 1, 8, 8);
		cr_assert(refused(ROF_NAK_REQUEST), "Only begins at 0");
		say_send(ROF_SEND_FIRST, 1, 8, 8);
		cr_assert(refused(ROF_NAK_REQUEST), "First too");
		say_send(ROF_SEND_FIRST, 1, 0, 0);
		cr_assert(refused(ROF_NAK_REQUEST), "a First without bytes");
		say_send(ROF_SEND_FIRST, 1, 0, 16);
		cr_assert(taken());
		say_send(ROF_SEND_MIDDLE, 1, 0xfffffff8, 16);
		cr_assert(refused(ROF_NAK_REQUEST), "beyond the receive");
		if (ordering == ROF_ORDER_STRONG) {
			cr_assert_eq(s.st.counters[ROF_TOO_LONG], 0, "not the next byte");
			say_send(ROF_SEND_LAST, 1, 16, 16);
			cr_assert(taken());
		} else {
			say_send(ROF_SEND_LAST, 1, 32, 16);
			say_send(ROF_SEND_LAST, 1, 48, 16);
		}
		cr_assert_eq(s.nrecv, 1);
		cr_assert_eq(s.recv_wc[0].status,
			ordering == ROF_ORDER_STRONG ? RD_SUCCESS : RD_LOC_LEN_ERR);
		cr_assert(script_untouched(&s, SCRIPT_LOCAL, 64));
		fini();
	}
}

Test(rof_hostile, a_message_ends_once_rof_8_3_3)
{
	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	script_recv(&s, 1, 0, 64);
	say_send(ROF_SEND_LAST, 1, 16, 16);
	cr_assert(taken());
	say_send(ROF_SEND_LAST, 1, 32, 16);
	cr_assert(refused(ROF_NAK_REQUEST), "a second end");
	say_send(ROF_SEND_LAST, 1, 0, 16);
	cr_assert(refused(ROF_NAK_REQUEST), "also before the first one");
	say_send(ROF_SEND_MIDDLE, 1, 32, 16);
	cr_assert(refused(ROF_NAK_REQUEST), "behind the end");
	cr_assert_eq(s.nrecv, 0);
	say_send(ROF_SEND_FIRST, 1, 0, 16);
	cr_assert_eq(s.nrecv, 1);
	cr_assert_eq(s.recv_wc[0].byte_len, 32);
	cr_assert(script_untouched(&s, SCRIPT_LOCAL, 32));
	fini();
}

Test(rof_hostile, reads_of_what_was_not_granted_rof_6_7)
{
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	memset(s.mem + SCRIPT_GRANTED, 0x33, SCRIPT_REGION);
	for (unsigned i = 0; i < 6; i++) {
		h = read_request(0, 8);
		h.va += i == 0 ? UINT64_MAX : 0;
		h.va += i == 1 ? SCRIPT_REGION - 7 : 0;
		h.rkey ^= i == 2;
		h.length = i == 3 ? 1025 : i == 4 ? UINT32_MAX : 8;
		script_request(&s, FA_PULL, &h, i == 5 ? 4 : 0); /* a Read with payload */
		cr_assert_eq(script_last(&s)->kind, ROF_MSG_ANSWER);
		cr_assert(script_last(&s)->h.ce, "%u", i);
		cr_assert_eq(script_last(&s)->len, wire_rof_len(ROF_READ_RESPONSE_ONLY));
		cr_assert_eq(script_last(&s)->h.sink_va, h.sink_va);
		cr_assert_eq(script_last(&s)->h.sn, s.sn - 1, "the request's (8.2)");
	}
	h = read_request(0, 1024);
	script_request(&s, FA_PULL, &h, 0);
	cr_assert_not(script_last(&s)->h.ce);
	cr_assert_eq(script_last(&s)->len, wire_rof_len(ROF_READ_RESPONSE_ONLY) + 1024);
	fini();
}

Test(rof_hostile, read_responses_are_padded_to_4_bytes_rof_8_2)
{
	struct wire_rof h;

	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_NONE; ordering++) {
		script_init(&s, ROF_RC, ordering, ROF_ERRORS_COMPLETE);
		for (uint32_t n = 1; n <= 9; n++) {
			h = read_request(0, n);
			h.rmsn = n;
			script_request(&s, FA_PULL, &h, 0);
			cr_assert_eq(script_last(&s)->h.pad, (4 - n % 4) % 4, "%u", n);
			cr_assert_eq(script_last(&s)->len,
				wire_rof_len(ROF_READ_RESPONSE_ONLY) + (n + 3) / 4 * 4);
		}
		fini();
	}
}

Test(rof_hostile, a_qp_that_agreed_to_no_reads_executes_none)
{
	struct wire_rof h;

	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_NONE; ordering++) {
		script_init(&s, ROF_RC, ordering, ROF_ERRORS_COMPLETE);
		s.rd.ird = 0;
		h = read_request(0, 8);
		script_request(&s, FA_PULL, &h, 0);
		cr_assert_eq(script_last(&s)->kind, ROF_MSG_ANSWER);
		cr_assert(script_last(&s)->h.ce);
		h = (struct wire_rof){.opcode = ROF_FETCH_ADD,
			.va = SCRIPT_BASE + SCRIPT_GRANTED,
			.rkey = s.granted.stag,
			.swap_add = 1,
			.rmsn = 2};
		script_request(&s, FA_PULL, &h, 0);
		cr_assert(script_last(&s)->h.ce);
		cr_assert(script_untouched(&s, 0, 0));
		cr_assert_eq(s.st.counters[ROF_NO_IRD], 2);
		fini();
	}
}

/* ---- Refusals for now ---- */

/* On an ordered connection the requests behind a refused one return unchanged, even valid ones. */
Test(rof_hostile, behind_a_refused_request_all_are_refused_falcon_8_5_3_4)
{
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE);
	say_send(ROF_SEND_ONLY, 1, 0, 8);
	cr_assert_eq(script_last(&s)->verdict, FA_RNR);
	h = write_only(0, 8);
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert_eq(script_last(&s)->verdict, FA_RNR);
	cr_assert(script_untouched(&s, 0, 0));
	script_recv(&s, 1, 0, 64);
	cr_assert(script_again(&s));
	cr_assert(taken());
	cr_assert(script_again(&s));
	cr_assert(taken());
	cr_assert_not(script_again(&s));
	cr_assert_eq(s.nrecv, 1);
	cr_assert_eq(s.mem[SCRIPT_GRANTED], 0x5a);
	fini();
}

/* The peer gave up the refused request: those behind it continue. */
Test(rof_hostile, a_refused_request_that_never_comes_again_holds_up_nothing_falcon_11)
{
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE);
	say_send(ROF_SEND_ONLY, 1, 0, 8);
	h = write_only(0, 8);
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert_eq(s.nrefused, 2);
	s.st.ops.buf_put(&s, s.refused[0].buf);
	s.refused[0] = s.refused[1];
	s.nrefused = 1;
	s.silent = true; /* the second delivery of a request shows it */
	cr_assert(script_again(&s));
	cr_assert(taken());
	fini();
	/* or Falcon's `restart` shows it */
	script_init(&s, ROF_RC, ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE);
	say_send(ROF_SEND_ONLY, 1, 0, 8);
	s.restart = true;
	h = write_only(0, 8);
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert(taken());
	fini();
}

/* 6.2: data in any order, completions in the order of all packets sent. */
Test(rof_hostile, a_receive_waits_for_the_packets_before_it_rof_6_2)
{
	struct wire_rof h = send(ROF_SEND_ONLY, 1, 0, 8);

	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	script_recv(&s, 1, 0, 64);
	h.sn = 2;
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert(taken());
	cr_assert_eq(s.mem[SCRIPT_LOCAL], 0x5a, "it is placed");
	cr_assert_eq(s.nrecv, 0);
	h = write_only(0, 8);
	h.sn = 1;
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert_eq(s.nrecv, 1);
	fini();
}

/* A message that was refused before it had a receive takes none from its neighbours. */
Test(rof_hostile, a_refused_message_takes_no_receive_rof_8_3_2)
{
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	script_recv(&s, 0, 0, 64);
	script_recv(&s, 1, 64, 64);
	h = write_only(0, 8);
	h.opcode = ROF_WRITE_ONLY_IMM;
	h.rkey ^= 1;
	h.rmsn = 2;
	h.sn = 2;
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert(refused(ROF_NAK_ACCESS));
	say_send(ROF_SEND_ONLY, 3, 0, 8);
	cr_assert(taken());
	h = send(ROF_SEND_ONLY, 1, 0, 16);
	h.sn = 1;
	script_request(&s, FA_PUSH, &h, 16);
	cr_assert_eq(s.nrecv, 2);
	cr_assert_eq(s.recv_wc[0].byte_len, 16);
	cr_assert_eq(s.recv_wc[1].byte_len, 8);
	fini();
}

/* A later message took the receive of one that is then refused: that receive completes in error, in
 * its turn. */
Test(rof_hostile, a_refused_message_completes_the_receive_that_it_had_rof_8_3_2)
{
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	script_recv(&s, 0, 0, 64);
	script_recv(&s, 1, 64, 64);
	h = send(ROF_SEND_ONLY, 2, 0, 8);
	h.sn = 2;
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert(taken());
	cr_assert_eq(s.nrecv, 0, "the one before it is missing");
	h = write_only(0, 8);
	h.opcode = ROF_WRITE_ONLY_IMM;
	h.rkey ^= 1;
	h.rmsn = 1;
	h.sn = 1;
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert(refused(ROF_NAK_ACCESS));
	cr_assert_eq(s.nrecv, 2);
	cr_assert_eq(s.recv_wc[0].wr_id, 0);
	cr_assert_eq(s.recv_wc[0].status, RD_LOC_ACCESS_ERR);
	cr_assert_eq(s.recv_wc[1].wr_id, 1);
	cr_assert_eq(s.recv_wc[1].status, RD_SUCCESS);
	cr_assert_eq(s.recv_wc[1].byte_len, 8);
	fini();
}

/* In the verbs mode a message whose receive completes in error ends the QP, with its reason. */
Test(rof_hostile, the_receive_in_error_has_the_reason_of_the_end_rof_6_3)
{
	static const struct {
		bool ce;
		uint8_t status, reason;
	} rows[] = {{false, RD_REM_INV_REQ_ERR, ROF_CANNOT_INVALIDATE},
		{true, RD_REM_ABORT_ERR, ROF_REMOTE_ERROR}};

	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		struct wire_rof h = send(ROF_SEND_ONLY_INV, 1, 0, 8);

		script_init(&s, ROF_RC, ROF_ORDER_STRONG, ROF_ERRORS_VERBS);
		script_recv(&s, 0, 0, 64);
		h.inv_rkey = 0x12345678;
		h.ce = rows[i].ce;
		script_request(&s, FA_PUSH, &h, 8);
		cr_assert_eq(s.nrecv, 1);
		cr_assert_eq(s.recv_wc[0].status, rows[i].status, "%u", s.recv_wc[0].status);
		cr_assert_eq(s.errors, 1);
		cr_assert_eq(s.error_code, rows[i].reason, "%d", s.error_code);
		fini();
	}
}

/* Falcon 8.5.3.5: a pull that was taken is answered, also when the request that it has overtaken
 * never arrives, because the QP ends: with a request in error, with a receive in error, with
 * headers that are none, or with the pull before it. */
Test(rof_hostile, a_pull_that_waits_is_refused_when_the_qp_ends_rof_6_3)
{
	for (unsigned row = 0; row < 4; row++) {
		struct wire_rof h = read_request(0, 8);

		script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_VERBS);
		script_recv(&s, 0, 0, 64);
		h.sn = 4;
		script_request(&s, FA_PULL, &h, 0);
		h.sn = 2;
		h.rkey ^= row == 3;
		script_request(&s, FA_PULL, &h, 0);
		cr_assert_eq(s.pulls_taken, 2);
		h = row == 1 ? send(ROF_SEND_ONLY_INV, 1, 0, 8) : write_only(0, 8);
		h.sn = row == 0 ? 3 : 1;
		h.inv_rkey = 0x12345678;
		h.rkey ^= row == 0;
		if (row == 2)
			script_raw(&s, FA_PUSH, 0, "none", 4);
		else
			script_request(&s, FA_PUSH, &h, 8);
		cr_assert_eq(s.errors, 1, "%u", row);
		cr_assert_eq(s.closed, false, "%u: the refusals must arrive", row);
		cr_assert_null(s.c->parked, "%u", row);
		cr_assert_eq(s.answers, 2, "%u: %u", row, s.answers);
		fini();
	}
}

static void
no_fetch(void *ctx, struct rd_qp *q, const uint8_t *at, uint64_t len)
{
}

/* A pull that waits for the requests before it, and then for pages. The connection ends meanwhile:
 * its index may be that of another one when the pages are present. */
Test(rof_hostile, a_parked_pull_is_not_answered_after_the_end_of_its_connection)
{
	struct wire_rof h;
	struct absent a;

	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	absent_init(&a, SCRIPT_REGION);
	s.extents[0].host = a.mem;
	s.st.ops.rd.fetch = no_fetch;
	script_recv(&s, 0, 0, 64);
	h = read_request(0, 8);
	h.sn = 2;
	script_request(&s, FA_PULL, &h, 0);
	h = send(ROF_SEND_ONLY, 1, 0, 8);
	h.sn = 1;
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert_eq(s.nrecv, 1);
	cr_assert_eq(s.st.counters[ROF_NO_PAGE], 1);
	cr_assert_not_null(s.c->parked);
	rof_chan_drop(s.c);
	rof_closed(s.q, 1);
	absent_provide(&a, SCRIPT_REGION);
	rof_pages(s.q);
	cr_assert_eq(s.answers, 0);
	cr_assert_eq(s.live, 0);
	cr_assert_not(script_fini(&s), "the pull has no answer");
	absent_fini(&a);
}

/* The sequence number of a request for another QP is this connection's (6.9). */
Test(rof_hostile, a_message_behind_a_misdirected_request_completes_rof_8_2)
{
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	script_recv(&s, 0, 0, 64);
	h = send(ROF_SEND_ONLY, 1, 0, 8);
	h.sn = 2;
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert_eq(s.nrecv, 0, "the one before it is missing");
	h = write_only(0, 8);
	h.sn = 1;
	h.dest_qp = SCRIPT_QPN + 1;
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert_eq(s.nrecv, 1);
	cr_assert_eq(s.recv_wc[0].status, RD_SUCCESS);
	fini();
}

/* A void message has the length of the intended one; its address need not fit. */
Test(rof_hostile, a_void_write_with_immediate_is_not_checked_as_a_whole_rof_8_2)
{
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	script_recv(&s, 0, 0, 64);
	h = write_only(100, 5000);
	h.opcode = ROF_WRITE_LAST_IMM;
	h.rmsn = 1;
	h.ce = true;
	h.pad = 0;
	script_request(&s, FA_PUSH, &h, 0);
	cr_assert(taken());
	cr_assert_eq(s.nrecv, 1);
	cr_assert_eq(s.recv_wc[0].status, RD_REM_ABORT_ERR);
	fini();
}

/* A peer that acknowledges no data keeps the buffers of its share: its requests must not take the
 * time of others. */
Test(rof_hostile, requests_without_a_buffer_come_again_later_each_time)
{
	struct wire_rof h = {.opcode = ROF_FETCH_ADD, .rmsn = 1, .swap_add = 5};

	script_init(&s, ROF_RC, ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE);
	h.va = SCRIPT_BASE + SCRIPT_GRANTED;
	h.rkey = s.granted.stag;
	for (unsigned round = 0; round < 2; round++) {
		s.no_buffers = 30;
		script_request(&s, FA_PULL, &h, 0);
		for (unsigned i = 0; i < 30; i++) {
			cr_assert_eq(script_last(&s)->verdict, FA_RNR);
			cr_assert_eq(script_last(&s)->rnr,
				SK_MIN(ROF_RNR_SOON + i, (unsigned)ROF_RNR_LATE), "%u", i);
			cr_assert(script_again(&s));
		}
		cr_assert_eq(script_last(&s)->verdict, FA_TAKEN);
	}
	fini();
}

Test(rof_hostile, without_a_buffer_for_the_answer_nothing_happens)
{
	struct wire_rof h = {.opcode = ROF_FETCH_ADD, .rmsn = 1, .swap_add = 5};
	uint64_t word;

	script_init(&s, ROF_RC, ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE);
	h.va = SCRIPT_BASE + SCRIPT_GRANTED;
	h.rkey = s.granted.stag;
	s.no_buffers = 1;
	script_request(&s, FA_PULL, &h, 0);
	cr_assert_eq(script_last(&s)->verdict, FA_RNR);
	cr_assert_eq(script_last(&s)->rnr, ROF_RNR_SOON);
	cr_assert(script_untouched(&s, 0, 0));
	cr_assert(script_again(&s));
	cr_assert_eq(script_last(&s)->h.original, 0x7777777777777777);
	memcpy(&word, s.mem + SCRIPT_GRANTED, 8);
	cr_assert_eq(word, 0x777777777777777c, "once");
	/* nor for an answer that refuses: the request is delivered again, in its turn */
	h.rkey ^= 1;
	s.no_buffers = 1;
	script_request(&s, FA_PULL, &h, 0);
	cr_assert_eq(script_last(&s)->verdict, FA_RNR);
	h.rkey ^= 1;
	script_request(&s, FA_PULL, &h, 0);
	cr_assert_eq(script_last(&s)->verdict, FA_RNR, "behind it");
	cr_assert(script_again(&s));
	cr_assert(script_last(&s)->h.ce);
	cr_assert(script_again(&s));
	cr_assert_not(script_last(&s)->h.ce);
	fini();
}

/* Xoff: Falcon accepts no requests. Without credits for them, this side still answers Reads and
 * Atomics, and takes Writes. */
Test(rof_hostile, responses_go_out_while_requests_have_no_credits_rof_6_5)
{
	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_NONE; ordering++) {
		struct wire_rof h;

		script_init(&s, ROF_RC, ordering, ROF_ERRORS_COMPLETE);
		s.c->credits = (struct fa_credits){0};
		script_post(&s, RD_WRITE, 1, 0, 100);
		cr_assert_eq(rof_tx(s.q, 0, 8), ROF_TX_BLOCKED);
		for (unsigned i = 0; i < 8; i++) {
			h = read_request(0, 16);
			h.rmsn = 1 + i;
			script_request(&s, FA_PULL, &h, 0);
			cr_assert_eq(script_last(&s)->kind, ROF_MSG_ANSWER);
			cr_assert_eq(
				script_last(&s)->len, wire_rof_len(ROF_READ_RESPONSE_ONLY) + 16);
			cr_assert_not(script_last(&s)->h.ce);
			h = write_only(0, 16);
			script_request(&s, FA_PUSH, &h, 16);
			cr_assert(taken());
		}
		cr_assert_eq(s.answers, 8);
		cr_assert_eq(s.requests, 0);
		cr_assert_eq(rof_tx(s.q, 0, 8), ROF_TX_BLOCKED);
		fini();
	}
}

/* The ring to Falcon is full for long: in the end all messages are sent, in order. */
Test(rof_hostile, messages_wait_for_a_full_ring_and_keep_their_order)
{
	struct wire_rof h;

	script_init(&s, ROF_RC, ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE);
	s.room = 1;
	for (unsigned i = 0; i < 50; i++) {
		h = i % 2 ? read_request(0, 16) : write_only(0, 16);
		script_request(&s, i % 2 ? FA_PULL : FA_PUSH, &h, i % 2 ? 0 : 16);
	}
	cr_assert_eq(s.nmsgs, 1);
	script_post(&s, RD_WRITE, 1, 0, 100);
	cr_assert_eq(rof_tx(s.q, 0, 8), ROF_TX_NOBUF);
	s.room = 1000;
	cr_assert_eq(rof_tx(s.q, 0, 8), ROF_TX_IDLE);
	cr_assert_eq(s.nmsgs, 50 + 1);
	cr_assert_eq(script_last(&s)->kind, ROF_MSG_PUSH);
	for (unsigned i = 1; i < 50; i++)
		cr_assert_geq(s.msgs[i].rsn, s.msgs[i - 1].rsn);
	fini();
}
