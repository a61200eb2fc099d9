/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scripted peer sends one malformed segment. The QP must send the right Terminate (RFC 5040 4.8,
 * 7; RFC 5041 7), place nothing, and close the stream. Three tables; each assertion contains the
 * row's name.
 */
#include "rdmap_victim.h"

#include <criterion/criterion.h>
#include <string.h>

/* ---- Tagged ---- */

static const struct tagged_row {
	const char *name;
	enum stag stag;
	uint64_t to;
	uint32_t len;
	uint8_t opcode, dv, rv;
	int reason;
	uint8_t layer, etype, code;
	enum quote quote;
	enum rd_status read;
} tagged_rows[] = {
	{"unknown STag", UNKNOWN, 0x10000, 8, RDMAP_WRITE, 0, 0, IW_DDP_T_STAG, 1, 1, 0, M_D},
	{"invalidated STag", GONE, 0x40000, 8, RDMAP_WRITE, 0, 0, IW_DDP_T_STAG, 1, 1, 0, M_D},
	{"below the base", WRITABLE, 0xffff, 8, RDMAP_WRITE, 0, 0, IW_DDP_T_BOUNDS, 1, 1, 1, M_D},
	{"one byte behind the end", WRITABLE, 0x10000 + VICTIM_LEN - 7, 8, RDMAP_WRITE, 0, 0,
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

		victim_start();
		memset(body, 0xee, sizeof(body));
		d.opcode = r->opcode;
		d.stag = stag_of(r->stag);
		d.to = r->to;
		wire_ddp_emit(seg, &d);
		d.dv = r->dv;
		d.rv = r->rv;
		end_fpdu(&e, &d, body, r->len);
		cr_assert(end_untouched(&e), "%s", r->name);
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
	enum quote quote;
	enum rd_status recv;
} untagged_rows[] = {
	{"queue 4", RDMAP_SEND, 0, 0, 4, 1, 0, 8, IW_DDP_U_QN, 1, 2, 1, M_D},
	{"Send on queue 3", RDMAP_SEND, 0, 0, 3, 1, 0, 8, IW_RDMAP_OPCODE, 0, 2, 6, M_D},
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
	{"Immediate on queue 1", 8, 0, 0, 1, 1, 0, 8, IW_RDMAP_OPCODE, 0, 2, 6, M_D},
	{"Immediate with SE on queue 1", 9, 0, 0, 1, 1, 0, 8, IW_RDMAP_OPCODE, 0, 2, 6, M_D},
	{"Atomic Request on queue 0", 10, 0, 0, 0, 1, 0, 52, IW_RDMAP_OPCODE, 0, 2, 6, M_D},
	{"Atomic Response on queue 1", 11, 0, 0, 1, 1, 0, 12, IW_RDMAP_OPCODE, 0, 2, 6, M_D},
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

		victim_start();
		memset(body, 0, sizeof(body));
		d.opcode = r->opcode;
		d.qn = r->qn;
		d.msn = r->msn;
		d.mo = r->mo;
		wire_ddp_emit(seg, &d);
		d.dv = r->dv;
		d.rv = r->rv;
		end_fpdu(&e, &d, body, r->len);
		cr_assert(end_untouched(&e), "%s", r->name);
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
	{"behind the source", READABLE, 0x20001, 0, VICTIM_LEN, IW_RDMAP_BOUNDS, 1},
	{"4 GiB - 1 of it", READABLE, 0x20000, 0, 0xffffffff, IW_RDMAP_BOUNDS, 1},
	{"no right to read", WRITABLE, 0x10000, 0, 8, IW_RDMAP_ACCESS, 2},
	{"other protection domain", FOREIGN, 0x30000, 0, 8, IW_RDMAP_STREAM, 3},
	{"source TO wraps", HIGH, ~0ull - 3, 0, 8, IW_RDMAP_WRAP, 4},
	{"sink TO wraps", READABLE, 0x20000, ~0ull - 3, 8, IW_RDMAP_WRAP, 4},
};

Test(rdmap_terminate, read_request_protection_errors_quote_both_headers_rfc5040_7_2)
{
	for (unsigned i = 0; i < sizeof(read_rows) / sizeof(*read_rows); i++) {
		const struct read_row *r = &read_rows[i];
		struct wire_read_request rr;
		uint8_t seg[46];

		victim_start();
		rr = (struct wire_read_request){
			0x1234, r->sink_to, r->len, stag_of(r->stag), r->src_to};
		read_request_seg(seg, 1, &rr);
		cr_assert_eq(e.st.counters[r->reason], 1, "%s", r->name);
		expect_terminate(r->name, 0, 1, r->code, M_D_R, seg, 46);
		expect_end(r->name, RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
	}
}
