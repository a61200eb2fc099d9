/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RFC 7306 8: a scripted peer sends malformed or forbidden messages. The QP must send the right
 * Terminate, with the DDP header of the message and no RDMAP header (8.1), memory must not change,
 * the receive and the outstanding requests must be flushed, and the stream must close.
 */
#include "rdmap_pair.h"

#include <criterion/criterion.h>
#include <string.h>

#define LEN 256

static struct end e;
static struct rd_mr *target, *writable, *foreign, *gone, *high, *sink;
static const struct rd_pd other_pd;

/* Starts with a posted receive and two outstanding Atomics (MSN 1 and 2 of either queue). */
static void
start(const struct iw_params *params)
{
	uint8_t body[128];
	struct wire_ddp d;
	uint32_t n;

	end_init(&e, params, true);
	target = end_mr(&e, 0x10000, LEN, RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_ATOMIC, 1, 1);
	writable = end_mr(&e, 0x20000, LEN,
		RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, 1, 2);
	foreign = end_mr(&e, 0x30000, LEN, RD_ACC_REMOTE_ATOMIC, 1, 3);
	foreign->pd = &other_pd;
	gone = end_mr(&e, 0x40000, LEN, RD_ACC_REMOTE_ATOMIC, 1, 4);
	gone->valid = false;
	high = end_mr(&e, (uint64_t)0 - LEN, LEN, RD_ACC_REMOTE_ATOMIC, 1, 5);
	sink = end_mr(&e, 0x50000, LEN, RD_ACC_LOCAL_WRITE, 1, 6);
	wr_sge(end_recv(&e, 100), sink, 0, 100);
	for (uint64_t i = 0; i < 2; i++)
		wr_sge(end_post(&e, RD_FETCH_ADD, 200 + i), sink, 8 * i, 8);
	end_tx(&e);
	for (int i = 0; i < 2; i++)
		cr_assert(end_sent(&e, &d, body, &n) && d.opcode == RDMAP_ATOMIC_REQUEST);
}

/* Checks that the Terminate quotes segment length and DDP header, and nothing else. */
static void
expect_terminate(
	const char *name, uint8_t layer, uint8_t code, const struct wire_ddp *sent, uint32_t len)
{
	uint8_t body[256], head[DDP_MAX];
	struct wire_terminate t;
	struct wire_ddp d;
	uint32_t n;

	end_tx(&e);
	cr_assert(end_sent(&e, &d, body, &n), "%s: nothing was sent", name);
	cr_assert(
		d.opcode == RDMAP_TERMINATE && d.qn == DDP_QN_TERMINATE && d.msn == 1, "%s", name);
	cr_assert(wire_terminate_parse(&t, body, n) > 0, "%s", name);
	cr_assert(t.layer == layer && t.code == code, "%s: layer %u type %u code %u", name, t.layer,
		t.etype, t.code);
	cr_assert(t.m && t.d && !t.r, "%s: M %d, D %d, R %d", name, t.m, t.d, t.r);
	cr_assert_eq(t.ddp_seg_len, DDP_UNTAGGED_LEN + len, "%s", name);
	cr_assert_eq(wire_ddp_emit(head, sent), DDP_UNTAGGED_LEN);
	cr_assert_arr_eq(t.ddp_header, head, DDP_UNTAGGED_LEN, "%s", name);
	cr_assert_not(end_sent(&e, &d, body, &n), "%s: something follows the Terminate", name);
}

static void
expect_end(const char *name, enum rd_status first)
{
	cr_assert(e.rd.state == RD_QP_ERR && e.errors == 1 && e.closes == 1, "%s", name);
	cr_assert_eq(e.close_how, IW_CLOSE_ORDERLY, "%s", name);
	cr_assert_eq(e.nrecv, 1, "%s", name);
	cr_assert_eq(e.recv_wc[0].status, RD_WR_FLUSH_ERR, "%s", name);
	cr_assert_eq(e.nsend, 2, "%s", name);
	cr_assert_eq(e.send_wc[0].status, first, "%s: %u", name, e.send_wc[0].status);
	cr_assert_eq(e.send_wc[1].status, RD_WR_FLUSH_ERR, "%s", name);
	cr_assert(end_fini(&e), "%s: a record or slice is missing", name);
}

/* ---- Atomic Requests ---- */

enum stag { TARGET, WRITABLE, FOREIGN, GONE, HIGH, UNKNOWN };

static uint32_t
stag_of(enum stag s)
{
	const struct rd_mr *mr[] = {target, writable, foreign, gone, high};

	return s == UNKNOWN ? target->stag ^ 0x40 : mr[s]->stag;
}

enum { RDMAP = 0, DDP = 1 };

static const struct request_row {
	const char *name;
	enum stag stag;
	uint64_t to;
	uint8_t op;
	uint32_t qn, msn, mo, len;
	int reason;
	uint8_t layer, code;
} request_rows[] = {
	{"off by 1", TARGET, 0x10001, 0, 1, 1, 0, 52, IW_ATOMIC_UNALIGNED, RDMAP, 7},
	{"off by 2", TARGET, 0x10002, 2, 1, 1, 0, 52, IW_ATOMIC_UNALIGNED, RDMAP, 7},
	{"off by 4", TARGET, 0x1000c, 0, 1, 1, 0, 52, IW_ATOMIC_UNALIGNED, RDMAP, 7},
	{"off by 7", TARGET, 0x10007, 2, 1, 1, 0, 52, IW_ATOMIC_UNALIGNED, RDMAP, 7},
	{"unknown STag", UNKNOWN, 0x10000, 0, 1, 1, 0, 52, IW_RDMAP_STAG, RDMAP, 0},
	{"invalidated STag", GONE, 0x40000, 0, 1, 1, 0, 52, IW_RDMAP_STAG, RDMAP, 0},
	{"below the base", TARGET, 0xfff8, 0, 1, 1, 0, 52, IW_RDMAP_BOUNDS, RDMAP, 1},
	{"half behind the end", TARGET, 0x10000 + LEN - 4, 2, 1, 1, 0, 52, IW_RDMAP_BOUNDS, RDMAP,
		1},
	{"behind the end", TARGET, 0x10000 + LEN, 2, 1, 1, 0, 52, IW_RDMAP_BOUNDS, RDMAP, 1},
	{"no right", WRITABLE, 0x20000, 0, 1, 1, 0, 52, IW_RDMAP_ACCESS, RDMAP, 2},
	{"other protection domain", FOREIGN, 0x30000, 0, 1, 1, 0, 52, IW_RDMAP_STREAM, RDMAP, 3},
	{"TO wraps", HIGH, ~0ull - 3, 0, 1, 1, 0, 52, IW_RDMAP_WRAP, RDMAP, 4},
	{"the draft's Swap", TARGET, 0x10000, 1, 1, 1, 0, 52, IW_ATOMIC_OPERATION, RDMAP, 6},
	{"operation 3", TARGET, 0x10000, 3, 1, 1, 0, 52, IW_ATOMIC_OPERATION, RDMAP, 6},
	{"operation 15", TARGET, 0x10000, 15, 1, 1, 0, 52, IW_ATOMIC_OPERATION, RDMAP, 6},
	{"too short", TARGET, 0x10000, 0, 1, 1, 0, 51, IW_EXT_LENGTH, RDMAP, 0xff},
	{"empty", TARGET, 0x10000, 0, 1, 1, 0, 0, IW_EXT_LENGTH, RDMAP, 0xff},
	{"too long", TARGET, 0x10000, 0, 1, 1, 0, 53, IW_DDP_U_TOO_LONG, DDP, 5},
	{"MSN 0", TARGET, 0x10000, 0, 1, 0, 0, 52, IW_DDP_U_MSN, DDP, 3},
	{"MSN 2 before 1", TARGET, 0x10000, 0, 1, 2, 0, 52, IW_DDP_U_MSN, DDP, 3},
	{"MO", TARGET, 0x10000, 0, 1, 1, 8, 52, IW_DDP_U_MO, DDP, 4},
	{"queue 0", TARGET, 0x10000, 0, 0, 1, 0, 52, IW_RDMAP_OPCODE, RDMAP, 6},
	{"queue 3", TARGET, 0x10000, 0, 3, 1, 0, 52, IW_RDMAP_OPCODE, RDMAP, 6},
};

static void
request_in(const struct request_row *r, struct wire_ddp *d)
{
	struct wire_atomic_request ar = {.op = r->op,
		.stag = stag_of(r->stag),
		.to = r->to,
		.data = ~0ull,
		.data_mask = r->op == 2 ? ~0ull : 0};
	uint8_t body[64] = {0};

	*d = (struct wire_ddp){.last = true,
		.opcode = RDMAP_ATOMIC_REQUEST,
		.qn = r->qn,
		.msn = r->msn,
		.mo = r->mo};
	wire_atomic_request_emit(body, &ar);
	end_fpdu(&e, d, body, r->len);
}

Test(rdmap_ext_terminate, requests_that_are_refused_7306_8_2)
{
	for (unsigned i = 0; i < sizeof(request_rows) / sizeof(*request_rows); i++) {
		const struct request_row *r = &request_rows[i];
		struct wire_ddp d;

		start(NULL);
		request_in(r, &d);
		cr_assert_eq(e.st.counters[r->reason], 1, "%s", r->name);
		cr_assert_eq(e.error_code, r->reason, "%s", r->name);
		expect_terminate(r->name, r->layer, r->code, &d, r->len);
		cr_assert(end_untouched(&e), "%s", r->name);
		expect_end(r->name, RD_WR_FLUSH_ERR);
	}
}

/* The request is valid but for the one field that a row changes. */
Test(rdmap_ext_terminate, the_same_request_unspoilt_is_executed)
{
	static const struct request_row good = {"good", TARGET, 0x10008, 2, 1, 1, 0, 52, 0, 0, 0};
	struct wire_ddp d;
	uint8_t got[8];

	start(NULL);
	request_in(&good, &d);
	end_tx(&e);
	mr_get(target, 8, got, 8);
	cr_assert_arr_eq(got, ((uint8_t[8]){255, 255, 255, 255, 255, 255, 255, 255}), 8);
	cr_assert_eq(e.errors, 0);
	cr_assert(end_fini(&e));
}

Test(rdmap_ext_terminate, a_qp_that_grants_no_atomics_7306_8_2)
{
	static const struct request_row good = {
		"no right", TARGET, 0x10000, 0, 1, 1, 0, 52, 0, 0, 0};
	struct wire_ddp d;

	start(NULL);
	e.rd.access &= ~(uint32_t)RD_ACC_REMOTE_ATOMIC;
	request_in(&good, &d);
	expect_terminate("no right", RDMAP, 2, &d, 52);
	cr_assert(end_untouched(&e), "no right");
	expect_end("no right", RD_WR_FLUSH_ERR);
}

Test(rdmap_ext_terminate, a_request_in_two_segments_7306_5_2_1)
{
	struct wire_ddp d = {.opcode = RDMAP_ATOMIC_REQUEST, .qn = DDP_QN_READ, .msn = 1};
	uint8_t body[52] = {0};

	start(NULL);
	end_fpdu(&e, &d, body, 52);
	expect_terminate("not the last", DDP, 5, &d, 52);
	cr_assert(end_untouched(&e), "not the last");
	expect_end("not the last", RD_WR_FLUSH_ERR);
}

/* The IRD limits the number of Reads and Atomics together (5.2): with an IRD of 2, a third request
 * has no buffer. */
Test(rdmap_ext_terminate, ird_is_shared_with_reads_7306_5_2)
{
	struct request_row r = {"third", TARGET, 0x10000, 0, 1, 1, 0, 52, 0, 0, 0};
	struct wire_ddp d = {
		.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ, .msn = 2};
	struct wire_read_request rr = {0x1234, 0, 8, 0, 0x20000};
	struct iw_params params = end_params();
	uint8_t body[RDMAP_READ_REQUEST_LEN];

	params.ird = 2;
	start(&params);
	request_in(&r, &d);
	cr_assert_eq(e.errors, 0);
	d = (struct wire_ddp){
		.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ, .msn = 2};
	rr.src_stag = writable->stag;
	wire_read_request_emit(body, &rr);
	end_fpdu(&e, &d, body, sizeof(body));
	cr_assert_eq(e.errors, 0);
	r.msn = 3;
	request_in(&r, &d);
	cr_assert_eq(e.st.counters[IW_IRD_EXCEEDED], 1);
	expect_terminate("third", DDP, 2, &d, 52);
	cr_assert(end_untouched(&e),
		"third"); /* not even by the first, which has not been executed yet */
	expect_end("third", RD_WR_FLUSH_ERR);
}

/* The region is destroyed between request and answer. */
Test(rdmap_ext_terminate, a_target_that_vanishes_7306_8_2)
{
	static const struct request_row good = {"gone", TARGET, 0x10000, 0, 1, 1, 0, 52, 0, 0, 0};
	struct wire_ddp d;

	start(NULL);
	request_in(&good, &d);
	target->valid = false;
	expect_terminate("gone", RDMAP, 0, &d, 52);
	cr_assert(end_untouched(&e), "gone");
	expect_end("gone", RD_WR_FLUSH_ERR);
}

/* ---- Atomic Responses ---- */

static const struct response_row {
	const char *name;
	uint32_t qn, msn, mo, id, len;
	int reason;
	uint8_t layer, code;
	enum rd_status first;
} response_rows[] = {
	{"MSN 2 before 1", 3, 2, 0, 2, 12, IW_DDP_U_MSN, DDP, 3, RD_WR_FLUSH_ERR},
	{"MSN 0", 3, 0, 0, 1, 12, IW_DDP_U_MSN, DDP, 3, RD_WR_FLUSH_ERR},
	{"MO", 3, 1, 4, 1, 12, IW_DDP_U_MO, DDP, 4, RD_WR_FLUSH_ERR},
	{"too long", 3, 1, 0, 1, 13, IW_DDP_U_TOO_LONG, DDP, 5, RD_WR_FLUSH_ERR},
	{"too short", 3, 1, 0, 1, 11, IW_EXT_LENGTH, RDMAP, 0xff, RD_WR_FLUSH_ERR},
	{"other identifier", 3, 1, 0, 2, 12, IW_ATOMIC_RESPONSE_BAD, RDMAP, 6, RD_BAD_RESP_ERR},
	{"queue 1, as in the draft's figure", 1, 1, 0, 1, 12, IW_RDMAP_OPCODE, RDMAP, 6,
		RD_WR_FLUSH_ERR},
};

static void
response_in(uint32_t qn, uint32_t msn, uint32_t mo, uint32_t id, uint32_t len, struct wire_ddp *d)
{
	struct wire_atomic_response r = {.request_id = id, .original = 1};
	uint8_t body[16] = {0};

	*d = (struct wire_ddp){
		.last = true, .opcode = RDMAP_ATOMIC_RESPONSE, .qn = qn, .msn = msn, .mo = mo};
	wire_atomic_response_emit(body, &r);
	end_fpdu(&e, d, body, len);
}

Test(rdmap_ext_terminate, responses_that_are_refused_7306_5_2_2)
{
	for (unsigned i = 0; i < sizeof(response_rows) / sizeof(*response_rows); i++) {
		const struct response_row *r = &response_rows[i];
		struct wire_ddp d;

		start(NULL);
		response_in(r->qn, r->msn, r->mo, r->id, r->len, &d);
		cr_assert_eq(e.st.counters[r->reason], 1, "%s", r->name);
		expect_terminate(r->name, r->layer, r->code, &d, r->len);
		cr_assert(end_untouched(&e), "%s", r->name);
		expect_end(r->name, r->first);
	}
}

/* Two are outstanding; queue 3 has no buffer for a third response. */
Test(rdmap_ext_terminate, a_response_without_a_request_7306_5_2_2)
{
	struct wire_ddp d;

	start(NULL);
	response_in(3, 1, 0, 1, 12, &d);
	response_in(3, 2, 0, 2, 12, &d);
	cr_assert(e.nsend == 2 && e.errors == 0);
	response_in(3, 3, 0, 3, 12, &d);
	expect_terminate("third", DDP, 2, &d, 12);
	cr_assert_eq(e.st.counters[IW_DDP_U_NO_BUFFER], 1);
	cr_assert(end_fini(&e));
}

/* An Atomic is due first; a Read Response does not answer it. */
Test(rdmap_ext_terminate, a_read_response_for_an_atomic_7306_5)
{
	struct wire_ddp d = {.tagged = true, .last = true, .opcode = RDMAP_READ_RESPONSE};

	start(NULL);
	d.stag = sink->stag;
	d.to = sink->base;
	end_fpdu(&e, &d, "abcdefgh", 8);
	cr_assert_eq(e.st.counters[IW_READ_RESPONSE_BAD], 1);
	cr_assert(end_untouched(&e), "Read Response");
	end_tx(&e);
	expect_end("Read Response", RD_WR_FLUSH_ERR);
}

/* The sink has lost its right since the request was posted. */
Test(rdmap_ext_terminate, a_sink_that_vanishes_7306_8_1)
{
	struct wire_ddp d;

	start(NULL);
	sink->valid = false;
	response_in(3, 1, 0, 1, 12, &d);
	cr_assert(end_untouched(&e), "sink");
	end_tx(&e);
	expect_end("sink", RD_LOC_PROT_ERR);
}

/* ---- Immediate Data ---- */

static const struct immediate_row {
	const char *name;
	uint8_t opcode;
	bool more;
	uint32_t qn, msn, mo, len;
	int reason;
	uint8_t layer, code;
} immediate_rows[] = {
	{"7 bytes", RDMAP_IMMEDIATE, false, 0, 1, 0, 7, IW_EXT_LENGTH, RDMAP, 0xff},
	{"9 bytes", RDMAP_IMMEDIATE, false, 0, 1, 0, 9, IW_EXT_LENGTH, RDMAP, 0xff},
	{"none, SE", RDMAP_IMMEDIATE_SE, false, 0, 1, 0, 0, IW_EXT_LENGTH, RDMAP, 0xff},
	{"not the last", RDMAP_IMMEDIATE, true, 0, 1, 0, 8, IW_EXT_LENGTH, RDMAP, 0xff},
	{"MSN 2", RDMAP_IMMEDIATE, false, 0, 2, 0, 8, IW_DDP_U_MSN, DDP, 3},
	{"MO 8", RDMAP_IMMEDIATE_SE, false, 0, 1, 8, 8, IW_DDP_U_MO, DDP, 4},
	{"queue 1, as in the draft's figure", RDMAP_IMMEDIATE_SE, false, 1, 1, 0, 8,
		IW_RDMAP_OPCODE, RDMAP, 6},
};

Test(rdmap_ext_terminate, immediate_data_that_is_refused_7306_6_3)
{
	for (unsigned i = 0; i < sizeof(immediate_rows) / sizeof(*immediate_rows); i++) {
		const struct immediate_row *r = &immediate_rows[i];
		struct wire_ddp d = {.last = !r->more,
			.opcode = r->opcode,
			.qn = r->qn,
			.msn = r->msn,
			.mo = r->mo};
		uint8_t body[16] = {0};

		start(NULL);
		end_fpdu(&e, &d, body, r->len);
		cr_assert_eq(e.st.counters[r->reason], 1, "%s", r->name);
		expect_terminate(r->name, r->layer, r->code, &d, r->len);
		cr_assert(end_untouched(&e), "%s", r->name);
		expect_end(r->name, RD_WR_FLUSH_ERR);
	}
}

/* Immediate Data requires a receive, like a Send (6.3). */
Test(rdmap_ext_terminate, immediate_data_without_a_receive_7306_6_3)
{
	struct wire_ddp d = {.last = true, .opcode = RDMAP_IMMEDIATE, .msn = 1};

	start(NULL);
	end_fpdu(&e, &d, "12345678", 8);
	cr_assert_eq(e.nrecv, 1);
	d.msn = 2;
	end_fpdu(&e, &d, "12345678", 8);
	expect_terminate("second", DDP, 2, &d, 8);
	cr_assert_eq(e.st.counters[IW_DDP_U_NO_BUFFER], 1);
	cr_assert(end_fini(&e));
}

/* Within a Send, no other message may arrive on its queue. */
Test(rdmap_ext_terminate, immediate_data_in_the_midst_of_a_send)
{
	struct wire_ddp d = {.opcode = RDMAP_SEND, .msn = 1};

	start(NULL);
	end_fpdu(&e, &d, "", 0);
	d.opcode = RDMAP_IMMEDIATE;
	d.last = true;
	end_fpdu(&e, &d, "12345678", 8);
	expect_terminate("midst", RDMAP, 6, &d, 8);
	cr_assert(end_untouched(&e), "midst");
	expect_end("midst", RD_WR_FLUSH_ERR);
}
