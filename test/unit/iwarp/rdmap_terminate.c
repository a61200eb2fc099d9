/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scripted peer sends one malformed message; the right Terminate must come back (RFC 5040 4.8, 7;
 * RFC 5041 7), nothing may be placed, and the stream closes. Parameters are rows of one table; a
 * row's name is in each assertion.
 */
#include "rdmap_pair.h"

#include <criterion/criterion.h>
#include <string.h>

#define LEN 4096

static struct end e;
static struct rd_mr *writable, *readable, *foreign, *gone, *local, *high;
static const struct rd_pd other_pd;

/* A live QP with a posted receive of 100 bytes and one outstanding Read of 64 (MSN 1). */
static void
start(void)
{
	struct rd_wr *wr;
	uint8_t body[2048];
	struct wire_ddp d;
	uint32_t n;

	end_init(&e, NULL, true);
	writable = end_mr(&e, 0x10000, LEN, RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE, 2, 1);
	readable = end_mr(&e, 0x20000, LEN, RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_READ, 1, 2);
	foreign = end_mr(&e, 0x30000, LEN, RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, 1, 3);
	foreign->pd = &other_pd;
	gone = end_mr(&e, 0x40000, LEN, RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, 1, 4);
	gone->valid = false;
	local = end_mr(&e, 0x50000, LEN, RD_ACC_LOCAL_WRITE, 1, 5);
	/* Ends with the address space: 2^64 - 1 is its last byte. */
	high = end_mr(&e, (uint64_t)0 - LEN, LEN, RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, 1, 6);
	wr_sge(end_recv(&e, 100), writable, 0, 100);
	wr_sge(end_recv(&e, 101), writable, 0, 100);
	wr = end_post(&e, RD_READ, 200);
	wr_sge(wr, local, 8, 64);
	wr->rkey = 0xabcdef01;
	wr = end_post(&e, RD_WRITE, 201);
	wr_sge(wr, local, 0, 16);
	end_tx(&e);
	cr_assert(end_sent(&e, &d, body, &n) && d.opcode == RDMAP_READ_REQUEST && d.msn == 1);
	cr_assert(end_sent(&e, &d, body, &n) && d.opcode == RDMAP_WRITE);
	cr_assert_eq(e.nsend, 0, "the Write waits for the Read before it");
}

static void
untouched(const char *name)
{
	for (unsigned i = 0; i < e.nmr; i++) {
		for (uint64_t k = 0; k < LEN; k++) {
			uint8_t got;

			mr_get(e.mr[i], k, &got, 1);
			cr_assert_eq(got, pattern((uint8_t)(i + 1), k), "%s: region %u byte %lu",
				name, i, k);
		}
	}
}

enum { NONE = 0, M_D = 1, M_D_R = 2 };

/* The Terminate that the end has sent says what is expected, and quotes what was sent. */
static void
expect_terminate(const char *name, uint8_t layer, uint8_t etype, uint8_t code, int quote,
	const uint8_t *seg, uint32_t seg_len)
{
	uint8_t body[256];
	struct wire_terminate t;
	struct wire_ddp d;
	uint32_t n, want = RDMAP_TERMINATE_LEN;
	uint32_t hdr = seg && (seg[0] & 0x80) ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;

	end_tx(&e);
	cr_assert(end_sent(&e, &d, body, &n), "%s: nothing was sent", name);
	cr_assert(!d.tagged && d.last && d.opcode == RDMAP_TERMINATE, "%s", name);
	cr_assert(d.qn == DDP_QN_TERMINATE && d.msn == 1 && d.mo == 0, "%s", name);
	cr_assert(wire_terminate_parse(&t, body, n) > 0, "%s", name);
	cr_assert(t.layer == layer && t.etype == etype && t.code == code,
		"%s: layer %u type %u code %u", name, t.layer, t.etype, t.code);
	cr_assert_eq(t.m, quote != NONE, "%s", name);
	cr_assert_eq(t.d, quote != NONE, "%s", name);
	cr_assert_eq(t.r, quote == M_D_R, "%s", name);
	if (quote != NONE) {
		cr_assert_eq(t.ddp_seg_len, seg_len, "%s", name);
		cr_assert_eq(t.ddp_len, hdr, "%s", name);
		cr_assert_arr_eq(t.ddp_header, seg, hdr, "%s", name);
		want += 2 + hdr;
	}
	if (quote == M_D_R) {
		cr_assert_arr_eq(t.rdmap_header, seg + hdr, RDMAP_READ_REQUEST_LEN, "%s", name);
		want += RDMAP_READ_REQUEST_LEN;
	}
	cr_assert_eq(n, want, "%s: %u bytes of Terminate", name, n);
	cr_assert_not(end_sent(&e, &d, body, &n), "%s: something follows the Terminate", name);
}

/* ERR, closed once in order, and everything flushed in posting order; `first_recv` and `first_read`
 * are the statuses of the oldest. */
static void
expect_end(const char *name, enum rd_status first_recv, enum rd_status first_read)
{
	cr_assert_eq(e.rd.state, RD_QP_ERR, "%s", name);
	cr_assert_eq(e.errors, 1, "%s", name);
	cr_assert_eq(e.closes, 1, "%s", name);
	cr_assert_eq(e.close_how, IW_CLOSE_ORDERLY, "%s", name);
	cr_assert_eq(e.nrecv, 2, "%s: %u receives", name, e.nrecv);
	cr_assert(e.recv_wc[0].wr_id == 100 && e.recv_wc[1].wr_id == 101, "%s", name);
	cr_assert_eq(e.recv_wc[0].status, first_recv, "%s: %u", name, e.recv_wc[0].status);
	cr_assert_eq(e.recv_wc[1].status, RD_WR_FLUSH_ERR, "%s", name);
	cr_assert_eq(e.nsend, 2, "%s: %u sends", name, e.nsend);
	cr_assert(e.send_wc[0].wr_id == 200 && e.send_wc[1].wr_id == 201, "%s", name);
	cr_assert_eq(e.send_wc[0].status, first_read, "%s: %u", name, e.send_wc[0].status);
	cr_assert_eq(e.send_wc[1].status, RD_WR_FLUSH_ERR, "%s", name);
	cr_assert(end_fini(&e), "%s: a record or slice is missing", name);
}

/* ---- Tagged ---- */

enum stag { WRITABLE, READABLE, FOREIGN, GONE, LOCAL, HIGH, UNKNOWN };

static uint32_t
stag_of(enum stag s)
{
	const struct rd_mr *mr[] = {writable, readable, foreign, gone, local, high};

	return s == UNKNOWN ? writable->stag ^ 0x40 : mr[s]->stag;
}

static const struct tagged_row {
	const char *name;
	enum stag stag;
	uint64_t to;
	uint32_t len;
	uint8_t opcode, dv, rv;
	int reason;
	uint8_t layer, etype, code;
	int quote;
	enum rd_status read;
} tagged_rows[] = {
	{"unknown STag", UNKNOWN, 0x10000, 8, RDMAP_WRITE, 0, 0, IW_DDP_T_STAG, 1, 1, 0, M_D},
	{"invalidated STag", GONE, 0x40000, 8, RDMAP_WRITE, 0, 0, IW_DDP_T_STAG, 1, 1, 0, M_D},
	{"below the base", WRITABLE, 0xffff, 8, RDMAP_WRITE, 0, 0, IW_DDP_T_BOUNDS, 1, 1, 1, M_D},
	{"one byte behind the end", WRITABLE, 0x10000 + LEN - 7, 8, RDMAP_WRITE, 0, 0,
		IW_DDP_T_BOUNDS, 1, 1, 1, M_D},
	{"far behind the end", WRITABLE, 1ull << 62, 8, RDMAP_WRITE, 0, 0, IW_DDP_T_BOUNDS, 1, 1, 1,
		M_D},
	{"other protection domain", FOREIGN, 0x30000, 8, RDMAP_WRITE, 0, 0, IW_DDP_T_STREAM, 1, 1,
		2, M_D},
	{"TO wraps", HIGH, ~0ull - 3, 8, RDMAP_WRITE, 0, 0, IW_DDP_T_WRAP, 1, 1, 3, M_D},
	{"DDP version", WRITABLE, 0x10000, 8, RDMAP_WRITE, 2, 0, IW_DDP_T_VERSION, 1, 1, 4, NONE},
	{"no right to write", READABLE, 0x20000, 8, RDMAP_WRITE, 0, 0, IW_RDMAP_ACCESS, 0, 1, 2,
		M_D},
	{"only local write", LOCAL, 0x50000, 8, RDMAP_WRITE, 0, 0, IW_RDMAP_ACCESS, 0, 1, 2, M_D},
	{"RDMAP version", WRITABLE, 0x10000, 8, RDMAP_WRITE, 0, 3, IW_RDMAP_VERSION, 0, 2, 5, NONE},
	{"tagged Send", WRITABLE, 0x10000, 8, RDMAP_SEND, 0, 0, IW_RDMAP_OPCODE, 0, 2, 6, M_D},
	{"tagged Read Request", WRITABLE, 0x10000, 28, RDMAP_READ_REQUEST, 0, 0, IW_RDMAP_OPCODE, 0,
		2, 6, M_D},
	{"opcode 15", WRITABLE, 0x10000, 8, 15, 0, 0, IW_RDMAP_OPCODE, 0, 2, 6, M_D},
	{"response: wrong sink", WRITABLE, 0x50008, 64, RDMAP_READ_RESPONSE, 0, 0, IW_DDP_T_STAG, 1,
		1, 0, M_D, RD_BAD_RESP_ERR},
	{"response: wrong TO", LOCAL, 0x50009, 64, RDMAP_READ_RESPONSE, 0, 0, IW_DDP_T_BOUNDS, 1, 1,
		1, M_D, RD_BAD_RESP_ERR},
	{"response: too long", LOCAL, 0x50008, 65, RDMAP_READ_RESPONSE, 0, 0, IW_DDP_T_BOUNDS, 1, 1,
		1, M_D, RD_BAD_RESP_ERR},
	{"response: too short", LOCAL, 0x50008, 63, RDMAP_READ_RESPONSE, 0, 0, IW_DDP_T_BOUNDS, 1,
		1, 1, M_D, RD_BAD_RESP_ERR},
};

Test(rdmap_terminate, tagged_errors_rfc5041_7_1_rfc5040_7_2)
{
	for (unsigned i = 0; i < sizeof(tagged_rows) / sizeof(*tagged_rows); i++) {
		const struct tagged_row *r = &tagged_rows[i];
		uint8_t body[128], seg[DDP_MAX];
		struct wire_ddp d = {.tagged = true, .last = true};

		start();
		memset(body, 0xee, sizeof(body));
		d.opcode = r->opcode;
		d.stag = stag_of(r->stag);
		d.to = r->to;
		wire_ddp_emit(seg, &d);
		d.dv = r->dv;
		d.rv = r->rv;
		end_fpdu(&e, &d, body, r->len);
		untouched(r->name);
		cr_assert_eq(e.st.counters[r->reason], 1, "%s", r->name);
		cr_assert_eq(e.error_code, r->reason, "%s", r->name);
		expect_terminate(r->name, r->layer, r->etype, r->code, r->quote, seg,
			DDP_TAGGED_LEN + r->len);
		expect_end(r->name, RD_WR_FLUSH_ERR, r->read ? r->read : RD_WR_FLUSH_ERR);
	}
}

/* ---- Untagged ---- */

static const struct untagged_row {
	const char *name;
	uint8_t opcode, dv, rv;
	uint32_t qn, msn, mo;
	uint32_t len;
	int reason;
	uint8_t layer, etype, code;
	int quote;
	enum rd_status recv;
} untagged_rows[] = {
	{"queue 3", RDMAP_SEND, 0, 0, 3, 1, 0, 8, IW_DDP_U_QN, 1, 2, 1, M_D},
	{"queue 2^32 - 1", RDMAP_SEND, 0, 0, ~0u, 1, 0, 8, IW_DDP_U_QN, 1, 2, 1, M_D},
	{"MSN 0", RDMAP_SEND, 0, 0, 0, 0, 0, 8, IW_DDP_U_MSN, 1, 2, 3, M_D},
	{"MSN 2 before 1", RDMAP_SEND, 0, 0, 0, 2, 0, 8, IW_DDP_U_MSN, 1, 2, 3, M_D},
	{"MO 4 at the start", RDMAP_SEND, 0, 0, 0, 1, 4, 8, IW_DDP_U_MO, 1, 2, 4, M_D},
	{"one byte too long", RDMAP_SEND, 0, 0, 0, 1, 0, 101, IW_DDP_U_TOO_LONG, 1, 2, 5, M_D,
		RD_LOC_LEN_ERR},
	{"DDP version", RDMAP_SEND, 3, 0, 0, 1, 0, 8, IW_DDP_U_VERSION, 1, 2, 6, NONE},
	{"RDMAP version", RDMAP_SEND, 0, 2, 0, 1, 0, 8, IW_RDMAP_VERSION, 0, 2, 5, NONE},
	{"Write untagged", RDMAP_WRITE, 0, 0, 0, 1, 0, 8, IW_RDMAP_OPCODE, 0, 2, 6, M_D},
	{"Send on queue 1", RDMAP_SEND, 0, 0, 1, 1, 0, 8, IW_RDMAP_OPCODE, 0, 2, 6, M_D},
	{"Read Request on queue 0", RDMAP_READ_REQUEST, 0, 0, 0, 1, 0, 28, IW_RDMAP_OPCODE, 0, 2, 6,
		M_D},
	{"Immediate", 8, 0, 0, 0, 1, 0, 8, IW_RDMAP_OPCODE, 0, 2, 6, M_D},
	{"Immediate with SE", 9, 0, 0, 0, 1, 0, 8, IW_RDMAP_OPCODE, 0, 2, 6, M_D},
	{"Atomic Request", 10, 0, 0, 1, 1, 0, 52, IW_RDMAP_OPCODE, 0, 2, 6, M_D},
	{"Read Request too long", RDMAP_READ_REQUEST, 0, 0, 1, 1, 0, 29, IW_DDP_U_TOO_LONG, 1, 2, 5,
		M_D},
	{"Read Request too short", RDMAP_READ_REQUEST, 0, 0, 1, 1, 0, 27, IW_RDMAP_UNSPECIFIED, 0,
		2, 0xff, NONE},
	{"Read Request MSN", RDMAP_READ_REQUEST, 0, 0, 1, 2, 0, 28, IW_DDP_U_MSN, 1, 2, 3, M_D},
	{"Read Request MO", RDMAP_READ_REQUEST, 0, 0, 1, 1, 1, 28, IW_DDP_U_MO, 1, 2, 4, M_D},
	{"Terminate MSN", RDMAP_TERMINATE, 0, 0, 2, 2, 0, 4, IW_DDP_U_MSN, 1, 2, 3, M_D},
	{"Terminate MO", RDMAP_TERMINATE, 0, 0, 2, 1, 4, 4, IW_DDP_U_MO, 1, 2, 4, M_D},
};

Test(rdmap_terminate, untagged_errors_rfc5041_7_1_rfc5040_7_2)
{
	for (unsigned i = 0; i < sizeof(untagged_rows) / sizeof(*untagged_rows); i++) {
		const struct untagged_row *r = &untagged_rows[i];
		uint8_t body[128], seg[DDP_MAX];
		struct wire_ddp d = {.last = true};

		start();
		memset(body, 0, sizeof(body));
		d.opcode = r->opcode;
		d.qn = r->qn;
		d.msn = r->msn;
		d.mo = r->mo;
		wire_ddp_emit(seg, &d);
		d.dv = r->dv;
		d.rv = r->rv;
		end_fpdu(&e, &d, body, r->len);
		untouched(r->name);
		cr_assert_eq(e.st.counters[r->reason], 1, "%s", r->name);
		expect_terminate(r->name, r->layer, r->etype, r->code, r->quote, seg,
			DDP_UNTAGGED_LEN + r->len);
		expect_end(r->name, r->recv ? r->recv : RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
	}
}

/* ---- Read Requests ---- */

static const struct read_row {
	const char *name;
	enum stag stag;
	uint64_t src_to, sink_to;
	uint32_t len;
	int reason;
	uint8_t code;
} read_rows[] = {
	{"unknown source", UNKNOWN, 0x20000, 0, 8, IW_RDMAP_STAG, 0},
	{"invalidated source", GONE, 0x40000, 0, 8, IW_RDMAP_STAG, 0},
	{"before the source", READABLE, 0x1ffff, 0, 8, IW_RDMAP_BOUNDS, 1},
	{"behind the source", READABLE, 0x20001, 0, LEN, IW_RDMAP_BOUNDS, 1},
	{"4 GiB - 1 of it", READABLE, 0x20000, 0, 0xffffffff, IW_RDMAP_BOUNDS, 1},
	{"no right to read", WRITABLE, 0x10000, 0, 8, IW_RDMAP_ACCESS, 2},
	{"other protection domain", FOREIGN, 0x30000, 0, 8, IW_RDMAP_STREAM, 3},
	{"source TO wraps", HIGH, ~0ull - 3, 0, 8, IW_RDMAP_WRAP, 4},
	{"sink TO wraps", READABLE, 0x20000, ~0ull - 3, 8, IW_RDMAP_WRAP, 4},
};

static void
read_request_seg(uint8_t seg[46], uint32_t msn, const struct wire_read_request *rr)
{
	struct wire_ddp d = {
		.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ, .msn = msn};

	wire_ddp_emit(seg, &d);
	wire_read_request_emit(seg + DDP_UNTAGGED_LEN, rr);
	end_fpdu(&e, &d, seg + DDP_UNTAGGED_LEN, RDMAP_READ_REQUEST_LEN);
}

Test(rdmap_terminate, read_request_protection_errors_quote_both_headers_rfc5040_7_2)
{
	for (unsigned i = 0; i < sizeof(read_rows) / sizeof(*read_rows); i++) {
		const struct read_row *r = &read_rows[i];
		struct wire_read_request rr;
		uint8_t seg[46];

		start();
		rr = (struct wire_read_request){
			0x1234, r->sink_to, r->len, stag_of(r->stag), r->src_to};
		read_request_seg(seg, 1, &rr);
		cr_assert_eq(e.st.counters[r->reason], 1, "%s", r->name);
		expect_terminate(r->name, 0, 1, r->code, M_D_R, seg, 46);
		expect_end(r->name, RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
	}
}

Test(rdmap_terminate, a_region_that_reaches_the_last_address_is_usable)
{
	struct wire_ddp d = {.tagged = true, .last = true, .opcode = RDMAP_WRITE};
	uint8_t got[4];

	start();
	d.stag = high->stag;
	d.to = ~0ull - 3;
	end_fpdu(&e, &d, "wxyz", 4);
	mr_get(high, LEN - 4, got, 4);
	cr_assert_arr_eq(got, "wxyz", 4);
	cr_assert_eq(e.errors, 0);
	cr_assert(end_fini(&e));
}

/* IRD is 8: the ninth request that is not answered yet has no buffer. */
Test(rdmap_terminate, more_read_requests_than_ird_rfc5040_7_2)
{
	struct wire_read_request rr = {0x1234, 0, 8, 0, 0x20000};
	struct iw_info info;
	uint8_t seg[46];

	start();
	rr.src_stag = readable->stag;
	for (uint32_t msn = 1; msn <= 8; msn++) {
		read_request_seg(seg, msn, &rr);
		cr_assert_eq(e.errors, 0, "request %u", msn);
	}
	iw_get_info(e.q, &info);
	cr_assert_eq(info.ird_used, 8);
	read_request_seg(seg, 9, &rr);
	iw_get_info(e.q, &info);
	cr_assert_eq(info.ird_used, 0);
	cr_assert_eq(e.st.counters[IW_IRD_EXCEEDED], 1);
	expect_terminate("ird", 1, 2, 2, M_D, seg, 46);
	expect_end("ird", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

/* The source goes away between the request and its response. */
Test(rdmap_terminate, source_invalidated_before_the_response_quotes_the_request)
{
	struct wire_read_request rr = {0x1234, 0x99, 8, 0, 0x20000};
	uint8_t seg[46];

	start();
	rr.src_stag = readable->stag;
	read_request_seg(seg, 1, &rr);
	readable->valid = false;
	expect_terminate("late", 0, 1, 0, M_D_R, seg, 46);
	expect_end("late", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

/* ---- Send ---- */

static void
send_seg(uint32_t msn, uint32_t mo, bool last, uint8_t opcode, uint32_t inv, uint32_t len)
{
	struct wire_ddp d = {.last = last, .opcode = opcode, .msn = msn, .mo = mo, .inv_stag = inv};
	uint8_t body[256];

	for (unsigned i = 0; i < sizeof(body); i++)
		body[i] = pattern(1, mo + i); /* as the receive's region already holds */
	end_fpdu(&e, &d, body, len);
}

static void
expect_send_terminate(const char *name, uint8_t layer, uint8_t etype, uint8_t code, uint32_t msn,
	uint32_t mo, bool last, uint8_t opcode, uint32_t inv, uint32_t len, int quote)
{
	struct wire_ddp d = {.last = last, .opcode = opcode, .msn = msn, .mo = mo, .inv_stag = inv};
	uint8_t seg[DDP_MAX];

	wire_ddp_emit(seg, &d);
	expect_terminate(name, layer, etype, code, quote, seg, DDP_UNTAGGED_LEN + len);
}

Test(rdmap_terminate, send_without_a_receive_rfc5041_7_1)
{
	start();
	send_seg(1, 0, true, RDMAP_SEND, 0, 8);
	send_seg(2, 0, true, RDMAP_SEND, 0, 8);
	cr_assert_eq(e.nrecv, 2);
	send_seg(3, 0, true, RDMAP_SEND, 0, 8);
	cr_assert_eq(e.st.counters[IW_DDP_U_NO_BUFFER], 1);
	expect_send_terminate("no buffer", 1, 2, 2, 3, 0, true, RDMAP_SEND, 0, 8, M_D);
	cr_assert_eq(e.nrecv, 2);
	cr_assert_eq(e.nsend, 2);
	cr_assert(end_fini(&e));
}

Test(rdmap_terminate, second_segment_with_another_offset_or_opcode_rfc5041_5_1)
{
	start();
	send_seg(1, 0, false, RDMAP_SEND, 0, 8);
	send_seg(1, 12, true, RDMAP_SEND, 0, 8);
	expect_send_terminate("gap", 1, 2, 4, 1, 12, true, RDMAP_SEND, 0, 8, M_D);
	expect_end("gap", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);

	start();
	send_seg(1, 0, false, RDMAP_SEND, 0, 8);
	send_seg(1, 8, true, RDMAP_SEND_SE, 0, 8);
	expect_send_terminate("opcode", 0, 2, 6, 1, 8, true, RDMAP_SEND_SE, 0, 8, M_D);
	expect_end("opcode", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);

	start();
	send_seg(1, 0, false, RDMAP_SEND, 0, 8);
	send_seg(2, 0, true, RDMAP_SEND, 0, 8);
	expect_send_terminate("next message", 1, 2, 3, 2, 0, true, RDMAP_SEND, 0, 8, M_D);
	expect_end("next message", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

Test(rdmap_terminate, invalidation_that_is_refused_rfc5040_7_2)
{
	static const struct {
		const char *name;
		enum stag stag;
		uint8_t code;
	} rows[] = {
		{"unknown", UNKNOWN, 0},
		{"already invalid", GONE, 0},
		{"other protection domain", FOREIGN, 3},
		{"never granted", LOCAL, 9},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint32_t inv;

		start();
		inv = stag_of(rows[i].stag);
		send_seg(1, 0, true, RDMAP_SEND_INV, inv, 8);
		untouched(rows[i].name);
		cr_assert_eq(e.invalidations, 0, "%s", rows[i].name);
		expect_send_terminate(
			rows[i].name, 0, 1, rows[i].code, 1, 0, true, RDMAP_SEND_INV, inv, 8, M_D);
		expect_end(rows[i].name, RD_REM_INV_REQ_ERR, RD_WR_FLUSH_ERR);
	}
}

Test(rdmap_terminate, a_receive_into_memory_that_is_gone_is_a_local_error_rfc5041_7_1)
{
	start();
	writable->valid = false;
	send_seg(1, 0, true, RDMAP_SEND, 0, 8);
	cr_assert_eq(e.st.counters[IW_DDP_LOCAL], 1);
	expect_send_terminate("local", 1, 0, 0, 1, 0, true, RDMAP_SEND, 0, 8, NONE);
	expect_end("local", RD_LOC_PROT_ERR, RD_WR_FLUSH_ERR);
}

/* ---- The stream ---- */

Test(rdmap_terminate, wrong_crc_rfc5044_8)
{
	struct wire_ddp d = {.last = true, .opcode = RDMAP_SEND, .msn = 1};
	uint8_t buf[64];
	struct mpa_writer w;
	struct mpa_tx t;
	uint32_t n;

	start();
	mpa_tx_init(&t, true, false, 1448);
	mpa_write_begin(&w, &t, buf, DDP_UNTAGGED_LEN + 4);
	wire_ddp_emit(buf + MPA_LEN_FIELD, &d);
	w.at += DDP_UNTAGGED_LEN;
	w.left -= DDP_UNTAGGED_LEN;
	mpa_write_put(&w, "abcd", 4);
	n = mpa_write_end(&w);
	buf[MPA_LEN_FIELD + DDP_UNTAGGED_LEN] ^= 1;
	end_feed(&e, buf, n, 0, NULL);
	untouched("crc");
	cr_assert_eq(e.st.counters[IW_LLP_CRC], 1);
	cr_assert_eq(e.st.mpa_counters[MPA_CRC], 1);
	expect_terminate("crc", 2, 0, 2, NONE, NULL, 0);
	expect_end("crc", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

/* An FPDU without the DDP header that every ULPDU has. */
Test(rdmap_terminate, a_ulpdu_shorter_than_its_header)
{
	struct wire_ddp d = {.last = true, .opcode = RDMAP_SEND, .msn = 1};

	for (uint32_t n = 0; n < DDP_UNTAGGED_LEN; n++) {
		uint8_t hdr[DDP_MAX], buf[64];
		struct mpa_writer w;
		struct mpa_tx t;

		start();
		wire_ddp_emit(hdr, &d);
		mpa_tx_init(&t, true, false, 1448);
		mpa_write_begin(&w, &t, buf, n);
		mpa_write_put(&w, hdr, n);
		end_feed(&e, buf, mpa_write_end(&w), 0, NULL);
		cr_assert_eq(e.st.mpa_counters[MPA_SHORT_ULPDU], n < DDP_TAGGED_LEN, "%u", n);
		cr_assert_eq(e.st.counters[IW_RDMAP_UNSPECIFIED], 1, "%u", n);
		expect_terminate("short", 0, 2, 0xff, NONE, NULL, 0);
		expect_end("short", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
	}
}

/* Markers are on in the direction to us; the first one of an FPDU points elsewhere. */
Test(rdmap_terminate, wrong_marker_rfc5044_8)
{
	struct wire_ddp d = {.last = true, .opcode = RDMAP_SEND, .msn = 1};
	struct iw_params params = end_params();
	uint8_t buf[64], body[64];
	struct mpa_writer w;
	struct mpa_tx t;
	uint32_t n;

	params.rx_markers = true;
	params.crc = false;
	end_init(&e, &params, true);
	wire_ddp_emit(body, &d);
	mpa_tx_init(&t, false, true, 1448);
	mpa_write_begin(&w, &t, buf, DDP_UNTAGGED_LEN);
	mpa_write_put(&w, body, DDP_UNTAGGED_LEN);
	n = mpa_write_end(&w);
	wire_mpa_marker_emit(buf, 8);
	end_feed(&e, buf, n, 0, NULL);
	cr_assert_eq(e.st.counters[IW_LLP_MARKER], 1);
	end_tx(&e);
	cr_assert_eq(e.closes, 1);
	cr_assert_eq(wire_mpa_len_parse(e.wire), DDP_UNTAGGED_LEN + RDMAP_TERMINATE_LEN);
	cr_assert_eq(e.wire[MPA_LEN_FIELD + DDP_UNTAGGED_LEN], 0x20, "layer LLP, type MPA");
	cr_assert_eq(e.wire[MPA_LEN_FIELD + DDP_UNTAGGED_LEN + 1], 3);
	cr_assert(end_fini(&e));
}

/* No Read is outstanding, or its request has not left yet. */
Test(rdmap_terminate, a_read_response_that_nobody_asked_for_rfc5040_7_2)
{
	struct wire_ddp d = {.tagged = true, .last = true, .opcode = RDMAP_READ_RESPONSE};
	uint8_t seg[DDP_MAX], body[64] = {0};

	for (int held = 0; held < 2; held++) {
		struct rd_wr *wr;

		end_init(&e, NULL, true);
		local = end_mr(&e, 0x50000, LEN, RD_ACC_LOCAL_WRITE, 1, 1);
		d.stag = local->stag;
		d.to = 0x50000;
		if (held) {
			wr = end_post(&e, RD_READ, 1);
			wr_sge(wr, local, 0, 64);
			e.refuse_send = 1;
			cr_assert_eq(iw_tx(e.q, 0, 9), IW_TX_NOBUF);
			e.refuse_send = 1;
		}
		wire_ddp_emit(seg, &d);
		end_fpdu(&e, &d, body, 64);
		untouched("unasked");
		cr_assert_eq(e.st.counters[IW_READ_RESPONSE_BAD], 1);
		if (held) { /* the request that was refused before goes ahead of the Terminate */
			struct wire_ddp first;
			uint32_t n;

			end_tx(&e);
			cr_assert(end_sent(&e, &first, body, &n));
			cr_assert_eq(first.opcode, RDMAP_READ_REQUEST);
			cr_assert_eq(e.nsend, 1);
			cr_assert_eq(e.send_wc[0].status, RD_WR_FLUSH_ERR);
		}
		expect_terminate("unasked", 0, 2, 6, M_D, seg, DDP_TAGGED_LEN + 64);
		cr_assert(end_fini(&e));
	}
}

/* Already the first segment of a Read Response is too long, though another is to follow. */
Test(rdmap_terminate, a_read_response_that_overruns_before_its_end)
{
	struct wire_ddp d = {.tagged = true, .opcode = RDMAP_READ_RESPONSE, .to = 0x50008};
	uint8_t seg[DDP_MAX], body[65] = {0};

	start();
	d.stag = local->stag;
	wire_ddp_emit(seg, &d);
	end_fpdu(&e, &d, body, 65);
	untouched("overrun");
	expect_terminate("overrun", 1, 1, 1, M_D, seg, DDP_TAGGED_LEN + 65);
	expect_end("overrun", RD_WR_FLUSH_ERR, RD_BAD_RESP_ERR);
}

/* The second segment is refused: what the first placed stays, not a byte more comes. */
Test(rdmap_terminate, a_write_that_leaves_its_region_in_the_second_segment)
{
	struct wire_ddp d = {.tagged = true, .opcode = RDMAP_WRITE, .to = 0x10000 + LEN - 12};
	uint8_t seg[DDP_MAX], got[12];

	start();
	d.stag = writable->stag;
	end_fpdu(&e, &d, "12345678", 8);
	d.to += 8;
	d.last = true;
	wire_ddp_emit(seg, &d);
	end_fpdu(&e, &d, "abcde", 5);
	mr_get(writable, LEN - 12, got, 12);
	cr_assert_arr_eq(got, "12345678", 8);
	for (int i = 8; i < 12; i++)
		cr_assert_eq(got[i], pattern(1, LEN - 12 + (uint64_t)i));
	expect_terminate("second", 1, 1, 1, M_D, seg, DDP_TAGGED_LEN + 5);
	expect_end("second", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

/* The QP itself grants nothing, whatever its regions do. */
Test(rdmap_terminate, a_qp_without_remote_rights_refuses_rfc5040_5_3)
{
	struct wire_ddp d = {.tagged = true, .last = true, .opcode = RDMAP_WRITE, .to = 0x10000};
	struct wire_read_request rr = {0x1234, 0, 8, 0, 0x20000};
	uint8_t seg[46];

	start();
	e.rd.access = RD_ACC_REMOTE_READ;
	d.stag = writable->stag;
	wire_ddp_emit(seg, &d);
	end_fpdu(&e, &d, "abcd", 4);
	untouched("write");
	expect_terminate("write", 0, 1, 2, M_D, seg, DDP_TAGGED_LEN + 4);
	expect_end("write", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);

	start();
	e.rd.access = RD_ACC_REMOTE_WRITE;
	rr.src_stag = readable->stag;
	read_request_seg(seg, 1, &rr);
	expect_terminate("read", 0, 1, 2, M_D_R, seg, 46);
	expect_end("read", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

/* A region bound to another stream (RFC 5040 5.3: "STag not associated with the stream"). */
Test(rdmap_terminate, a_region_of_another_stream)
{
	struct wire_ddp d = {.tagged = true, .last = true, .opcode = RDMAP_WRITE, .to = 0x10000};
	uint8_t seg[DDP_MAX];

	start();
	writable->bound_qpn = e.rd.qpn + 1;
	d.stag = writable->stag;
	wire_ddp_emit(seg, &d);
	end_fpdu(&e, &d, "abcd", 4);
	untouched("stream");
	expect_terminate("stream", 1, 1, 2, M_D, seg, DDP_TAGGED_LEN + 4);
	expect_end("stream", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

Test(rdmap_terminate, the_first_error_wins_and_placement_stops_rfc5040_7)
{
	struct wire_ddp bad = {.last = true, .opcode = RDMAP_SEND, .msn = 7};
	struct wire_ddp write = {
		.tagged = true, .last = true, .opcode = RDMAP_WRITE, .to = 0x10000};
	uint8_t seg[DDP_MAX];
	uint64_t before;

	start();
	before = e.consumed;
	write.stag = writable->stag;
	wire_ddp_emit(seg, &bad);
	end_fpdu(&e, &bad, "a", 1);
	end_fpdu(&e, &write, "bbbb", 4);
	bad.qn = 9;
	end_fpdu(&e, &bad, "a", 1);
	untouched("after");
	cr_assert_eq(e.st.counters[IW_AFTER_TERMINATE], 2);
	cr_assert_eq(e.consumed - before, 28 + 24 + 28, "the window must stay open");
	expect_terminate("first", 1, 2, 3, M_D, seg, DDP_UNTAGGED_LEN + 1);
	cr_assert_eq(e.st.counters[IW_TERMINATE_OUT], 1);
	expect_end("first", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

Test(rdmap_terminate, a_terminate_waits_for_a_buffer_and_for_the_ring)
{
	struct wire_ddp bad = {.last = true, .opcode = RDMAP_SEND, .msn = 7};
	uint8_t seg[DDP_MAX];

	start();
	wire_ddp_emit(seg, &bad);
	end_fpdu(&e, &bad, "a", 1);
	e.refuse_rec = 1;
	e.refuse_send = 1;
	cr_assert_eq(iw_tx(e.q, 0, 1), IW_TX_NOBUF);
	cr_assert_eq(iw_tx(e.q, 0, 1), IW_TX_NOBUF);
	cr_assert_eq(e.closes, 0);
	expect_terminate("late", 1, 2, 3, M_D, seg, DDP_UNTAGGED_LEN + 1);
	expect_end("late", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

/* ---- Terminates that come ---- */

static void
terminate_in(uint8_t layer, uint8_t etype, uint8_t code, const uint8_t *head, uint32_t head_len)
{
	struct wire_ddp d = {.last = true, .opcode = RDMAP_TERMINATE, .qn = 2, .msn = 1};
	struct wire_terminate t = {.layer = layer, .etype = etype, .code = code};
	uint8_t body[RDMAP_TERMINATE_MAX];

	if (head_len) {
		t.m = t.d = true;
		t.ddp_seg_len = 46;
		t.ddp_len = DDP_UNTAGGED_LEN;
		memcpy(t.ddp_header, head, DDP_UNTAGGED_LEN);
	}
	if (head_len > DDP_UNTAGGED_LEN) {
		t.r = true;
		memcpy(t.rdmap_header, head + DDP_UNTAGGED_LEN, RDMAP_READ_REQUEST_LEN);
	}
	end_fpdu(&e, &d, body, wire_terminate_emit(body, &t));
}

Test(rdmap_terminate, a_terminate_about_a_read_fails_that_read_rfc5040_7_1)
{
	struct wire_ddp d = {.last = true, .opcode = RDMAP_READ_REQUEST, .qn = 1, .msn = 1};
	uint8_t head[46] = {0}, body[64];
	uint32_t n;

	start();
	wire_ddp_emit(head, &d);
	terminate_in(0, 1, 2, head, sizeof(head));
	end_tx(&e);
	cr_assert_not(end_sent(&e, &d, body, &n), "a Terminate is not answered by another");
	cr_assert_eq(e.st.counters[IW_TERMINATE_IN], 1);
	expect_end("access", RD_WR_FLUSH_ERR, RD_REM_ACCESS_ERR);

	start();
	terminate_in(1, 2, 2, head, DDP_UNTAGGED_LEN);
	end_tx(&e);
	expect_end("operation", RD_WR_FLUSH_ERR, RD_REM_OP_ERR);

	start();
	d.msn = 2; /* no such Read */
	wire_ddp_emit(head, &d);
	terminate_in(0, 1, 2, head, sizeof(head));
	end_tx(&e);
	expect_end("other", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);

	start();
	terminate_in(0, 2, 7, NULL, 0);
	end_tx(&e);
	expect_end("bare", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}
