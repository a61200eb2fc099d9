/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of RFC 7306 7, one row at a time, and 5.4: a scripted peer sends two operations to one
 * QP, whose answers are held up to determine what may happen before them. The first eight bytes of
 * the region belong to the first operation, the next eight to the second.
 */
#include "rdmap_pair.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum op { IMM, SEND, WRITE, READ, ATOMIC };
static const char *const names[] = {"Immediate", "Send", "Write", "Read", "Atomic"};

static struct end e;
static struct rd_mr *mr;
static uint32_t send_msn, read_msn, request_id;

static void
start(void)
{
	const uint8_t zero[64] = {0};

	end_init(&e, NULL, true);
	mr = end_mr(&e, 0x10000, 64,
		RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ |
			RD_ACC_REMOTE_ATOMIC,
		1, 1);
	mr_put(mr, 0, zero, sizeof(zero));
	for (unsigned i = 0; i < 2; i++)
		wr_sge(end_recv(&e, i), mr, 32 + 8 * i, 8);
	send_msn = read_msn = 1;
	request_id = 100;
}

/* Feeds the nth operation (from 0): it sends or adds the value n + 1, or reads its own word. */
static void
feed(enum op op, unsigned nth)
{
	struct wire_ddp d = {.last = true};
	struct wire_read_request rr = {0x5555, 0, 8, mr->stag, mr->base + 8 * nth};
	struct wire_atomic_request ar = {.request_id = request_id + nth,
		.stag = mr->stag,
		.to = mr->base + 8 * nth,
		.data = nth + 1};
	uint8_t body[64] = {0};
	uint32_t len = 8;

	body[0] = (uint8_t)(nth + 1); /* little-endian, for Send and Write */
	switch (op) {
	case IMM:
		d.opcode = RDMAP_IMMEDIATE;
		d.msn = send_msn++;
		len = wire_immediate_emit(body, nth + 1);
		break;
	case SEND:
		d.opcode = RDMAP_SEND;
		d.msn = send_msn++;
		break;
	case WRITE:
		d = (struct wire_ddp){.tagged = true,
			.last = true,
			.opcode = RDMAP_WRITE,
			.stag = mr->stag,
			.to = mr->base + 8 * nth};
		break;
	case READ:
		d.opcode = RDMAP_READ_REQUEST;
		d.qn = DDP_QN_READ;
		d.msn = read_msn++;
		len = wire_read_request_emit(body, &rr);
		break;
	case ATOMIC:
		d.opcode = RDMAP_ATOMIC_REQUEST;
		d.qn = DDP_QN_READ;
		d.msn = read_msn++;
		len = wire_atomic_request_emit(body, &ar);
		break;
	}
	end_fpdu(&e, &d, body, len);
}

static uint64_t
word(unsigned nth)
{
	uint64_t v;

	mr_get(mr, 8 * nth, &v, sizeof(v));
	return v;
}

/* Returns whether the effect of the nth operation is visible, as far as it has an effect without an
 * answer. */
static bool
taken(enum op op, unsigned nth)
{
	if (op == WRITE)
		return word(nth) == nth + 1;
	for (unsigned i = 0; i < e.nrecv; i++)
		if (op == IMM ? e.recv_wc[i].opcode == RD_RECV_IMM && e.recv_wc[i].imm == nth + 1
			      : e.recv_wc[i].opcode == RD_RECV && word(4 + i) == nth + 1)
			return true;
	return false;
}

/* Checks that the next message sent is the answer to this operation. */
static void
expect_answer(enum op op, unsigned nth, const char *row)
{
	struct wire_atomic_response r;
	struct wire_ddp d;
	uint8_t body[64];
	uint32_t n;

	cr_assert(end_sent(&e, &d, body, &n), "%s: no answer to %u", row, nth);
	if (op == READ) {
		cr_assert_eq(d.opcode, RDMAP_READ_RESPONSE, "%s", row);
		return;
	}
	cr_assert_eq(d.opcode, RDMAP_ATOMIC_RESPONSE, "%s", row);
	cr_assert(wire_atomic_response_parse(&r, body, n) > 0);
	cr_assert_eq(r.request_id, request_id + nth, "%s", row);
}

static bool
answered(enum op op)
{
	return op == READ || op == ATOMIC;
}

/* The requirement on the second operation in the table's last column. */
enum rule {
	FREE,     /* not applicable: it may be executed while the answer to the first is pending */
	IN_ORDER, /* completed in order */
	/* It is completed, or its answer is generated, only after the first was completed, placed,
	 * or its answer generated. */
	AFTER,
};

static const struct row {
	enum op first, second;
	enum rule rule;
} rows[] = {
	{IMM, SEND, IN_ORDER},
	{IMM, WRITE, FREE},
	{IMM, READ, AFTER},
	{IMM, ATOMIC, AFTER},
	{IMM, IMM, IN_ORDER},
	{SEND, IMM, IN_ORDER},
	{WRITE, IMM, AFTER},
	{READ, IMM, FREE},
	{ATOMIC, IMM, FREE},
	{ATOMIC, SEND, FREE},
	{ATOMIC, WRITE, FREE},
	{ATOMIC, READ, AFTER},
	{ATOMIC, ATOMIC, AFTER},
	{SEND, ATOMIC, AFTER},
	{WRITE, ATOMIC, AFTER},
	{READ, ATOMIC, AFTER},
};

static void
check_row(const struct row *r)
{
	char name[32];

	snprintf(name, sizeof(name), "%s, %s", names[r->first], names[r->second]);
	start();
	feed(r->first, 0);
	if (!answered(r->first))
		cr_assert(taken(r->first, 0), "%s: the first is taken when it is delivered", name);
	feed(r->second, 1);
	if (!answered(r->second))
		cr_assert(taken(r->second, 1), "%s: it does not wait for an answer", name);
	if (r->rule == IN_ORDER)
		cr_assert(e.nrecv == 2 && e.recv_wc[0].wr_id == 0 && e.recv_wc[1].wr_id == 1, "%s",
			name);
	if (r->first == ATOMIC)
		cr_assert_eq(word(0), 0, "%s: not before its answer is generated", name);
	if (answered(r->first)) {
		iw_tx(e.q, 0, 1); /* one step: one answer */
		expect_answer(r->first, 0, name);
		if (r->first == ATOMIC)
			cr_assert_eq(word(0), 1, "%s", name);
		if (r->second == ATOMIC)
			cr_assert_eq(word(1), 0, "%s: the second waits for the first answer", name);
	}
	end_tx(&e);
	if (answered(r->second))
		expect_answer(r->second, 1, name);
	if (r->second == ATOMIC)
		cr_assert_eq(word(1), 2, "%s", name);
	cr_assert_eq(e.wire_len, 0, "%s", name);
	cr_assert_eq(e.errors, 0, "%s", name);
	cr_assert(end_fini(&e), "%s", name);
}

Test(rdmap_ext_order, the_table_row_by_row_7306_7)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		check_row(&rows[i]);
}

/* Requests of either kind are answered in the order in which they came (5.2.1, 5.2.2, 5.4). */
Test(rdmap_ext_order, answers_come_in_the_order_of_the_requests_7306_5_4)
{
	static const enum op ops[] = {ATOMIC, READ, ATOMIC, ATOMIC, READ, READ, ATOMIC};
	const unsigned n = sizeof(ops) / sizeof(*ops);
	uint32_t msn = 1;

	start();
	for (unsigned i = 0; i < n; i++)
		feed(ops[i], i);
	end_tx(&e);
	for (unsigned i = 0; i < n; i++) {
		struct wire_ddp d;
		uint8_t body[64];
		uint32_t len;

		cr_assert(end_sent(&e, &d, body, &len));
		cr_assert_eq(d.opcode, ops[i] == READ ? RDMAP_READ_RESPONSE : RDMAP_ATOMIC_RESPONSE,
			"%u", i);
		if (ops[i] == ATOMIC) {
			cr_assert_eq(d.qn, DDP_QN_ATOMIC);
			cr_assert_eq(d.msn, msn++);
		}
	}
	cr_assert(end_fini(&e));
}

/* An Atomic Request is not passed to the application and consumes no receive (5.2.1). */
Test(rdmap_ext_order, an_atomic_takes_no_receive_7306_5_2_1)
{
	start();
	feed(ATOMIC, 0);
	end_tx(&e);
	cr_assert_eq(e.nrecv, 0);
	cr_assert_eq(e.rq_head, 0);
	cr_assert_eq(e.nsend, 0);
	cr_assert(end_fini(&e));
}

/* Without room for the answer nothing is executed. An executed Atomic is answered, once. */
Test(rdmap_ext_order, an_atomic_is_executed_once_however_often_its_answer_is_held_up)
{
	start();
	feed(ATOMIC, 0);
	e.refuse_rec = 3;
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(iw_tx(e.q, 0, 16), IW_TX_NOBUF);
		cr_assert_eq(word(0), 0);
	}
	e.refuse_send = 3;
	for (int i = 0; i < 4; i++)
		iw_tx(e.q, 0, 16);
	cr_assert_eq(word(0), 1);
	expect_answer(ATOMIC, 0, "held up");
	cr_assert_eq(e.wire_len, 0);
	cr_assert(end_fini(&e));
}
