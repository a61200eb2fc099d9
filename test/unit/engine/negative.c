/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each malformed or forbidden message, sent in TCP segments to a running engine. A row of a table
 * is a message. After each message, the tests check: the Terminate that the specifications require,
 * byte by byte; the victim's completions and its event; that the reason was counted once; that no
 * byte of the victim's memory has changed; and that the neighbours' streams on the same stage and
 * port continue.
 */
#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "negative_row.h"

TestSuite(negative, .init = neg_start, .fini = neg_stop);

/* ---- Tagged messages ---- */

static const struct neg_row tagged[] = {
	{"STag: no such slot", WRITE(NO_SLOT, 0, 8), "IW_DDP_T_STAG", {DDP, 1, 0x00, DDP_HEAD}},
	{"STag: another key", WRITE(OTHER_KEY, 0, 8), "IW_DDP_T_STAG", {DDP, 1, 0x00, DDP_HEAD}},
	{"STag: invalidated", WRITE(GONE, 0, 8), "IW_DDP_T_STAG", {DDP, 1, 0x00, DDP_HEAD}},
	{"below the base", WRITE(WRITABLE, -1, 8), "IW_DDP_T_BOUNDS", {DDP, 1, 0x01, DDP_HEAD}},
	{"a byte behind the end", WRITE(WRITABLE, NEG_REGION - 7, 8), "IW_DDP_T_BOUNDS",
		{DDP, 1, 0x01, DDP_HEAD}},
	{"a region further", WRITE(WRITABLE, 2 * NEG_REGION, 8), "IW_DDP_T_BOUNDS",
		{DDP, 1, 0x01, DDP_HEAD}},
	{"other protection domain", WRITE(FOREIGN, 0, 8), "IW_DDP_T_STREAM",
		{DDP, 1, 0x02, DDP_HEAD}},
	{"no right to write", WRITE(READABLE, 0, 8), "IW_RDMAP_ACCESS", {RDMAP, 1, 0x02, DDP_HEAD}},
	{"only Atomics", WRITE(ATOMIC, 0, 8), "IW_RDMAP_ACCESS", {RDMAP, 1, 0x02, DDP_HEAD}},
	{"only local writing", WRITE(LOCAL, 0, 8), "IW_RDMAP_ACCESS", {RDMAP, 1, 0x02, DDP_HEAD}},
	{"the QP grants no Writes", WRITE(WRITABLE, 0, 8), "IW_RDMAP_ACCESS",
		{RDMAP, 1, 0x02, DDP_HEAD}, .mode.access = RD_ACC_REMOTE_READ},
	{"the second segment leaves the region", WRITE(WRITABLE, NEG_REGION - 4, 5),
		"IW_DDP_T_BOUNDS", {DDP, 1, 0x01, DDP_HEAD}, .nbefore = 1,
		.before = {RDMAP_WRITE, true, .more = true, .to = NEG_REGION - 12, .len = 8}},
	{"Send, tagged", TAGGED(RDMAP_SEND, WRITABLE, 0, 8), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"Read Request, tagged", TAGGED(RDMAP_READ_REQUEST, READABLE, 0, 28), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"Terminate, tagged", TAGGED(RDMAP_TERMINATE, WRITABLE, 0, 4), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"Immediate Data, tagged", TAGGED(RDMAP_IMMEDIATE, WRITABLE, 0, 8), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"Atomic Request, tagged", TAGGED(RDMAP_ATOMIC_REQUEST, ATOMIC, 0, 52), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"Atomic Response, tagged", TAGGED(RDMAP_ATOMIC_RESPONSE, LOCAL, 0, 12), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"opcode 12", TAGGED(12, WRITABLE, 0, 8), "IW_RDMAP_OPCODE", {RDMAP, 2, 0x06, DDP_HEAD}},
	{"opcode 15", TAGGED(15, WRITABLE, 0, 8), "IW_RDMAP_OPCODE", {RDMAP, 2, 0x06, DDP_HEAD}},
};

Test(negative, tagged_rfc5041_7_rfc5040_7)
{
	neg_rows(tagged, SK_ARRAY_LEN(tagged));
}

/* The tagged offset is an address; the sum of offset and length exceeds 2^64. */
Test(negative, tagged_offset_wraps_rfc5041_7_rfc5040_7)
{
	struct neg_row rows[] = {
		{"TO wraps", WRITE(WRITABLE, 0, 8), "IW_DDP_T_WRAP", {DDP, 1, 0x03, DDP_HEAD}},
		{"the source wraps", READ(1, READABLE, 0, 8), "IW_RDMAP_WRAP",
			{RDMAP, 1, 0x04, BOTH_HEADS}},
		{"the sink wraps", READ(1, READABLE, 0, 8), "IW_RDMAP_WRAP",
			{RDMAP, 1, 0x04, BOTH_HEADS}},
		{"an Atomic wraps", ATOMICS(0, ATOMIC, 0), "IW_RDMAP_WRAP",
			{RDMAP, 1, 0x04, DDP_HEAD}},
	};

	rows[0].m.to = (int64_t)(-8 + 1 - neg_base(WRITABLE));
	rows[1].m.to = (int64_t)(-8 + 1 - neg_base(READABLE));
	rows[2].m.sink_to = ~0ull - 6;
	rows[3].m.to = (int64_t)(-8 + 1 - neg_base(ATOMIC));
	neg_rows(rows, SK_ARRAY_LEN(rows));
}

/* The layout of an unknown version is undefined, so the Terminate quotes nothing of the segment. */
static const struct neg_row versions[] = {
	{"DDP 0, tagged", {RDMAP_WRITE, true, .dv = 4, .len = 8}, "IW_DDP_T_VERSION",
		{DDP, 1, 0x04, NOTHING}},
	{"DDP 2, tagged", {RDMAP_WRITE, true, .dv = 2, .len = 8}, "IW_DDP_T_VERSION",
		{DDP, 1, 0x04, NOTHING}},
	{"DDP 3, tagged", {RDMAP_WRITE, true, .dv = 3, .len = 8}, "IW_DDP_T_VERSION",
		{DDP, 1, 0x04, NOTHING}},
	{"DDP 0, untagged", {RDMAP_SEND, .dv = 4, .msn = 1, .len = 8}, "IW_DDP_U_VERSION",
		{DDP, 2, 0x06, NOTHING}},
	{"DDP 3, untagged", {RDMAP_SEND, .dv = 3, .msn = 1, .len = 8}, "IW_DDP_U_VERSION",
		{DDP, 2, 0x06, NOTHING}},
	{"RDMAP 0, tagged", {RDMAP_WRITE, true, .rv = 4, .len = 8}, "IW_RDMAP_VERSION",
		{RDMAP, 2, 0x05, NOTHING}},
	{"RDMAP 2, untagged", {RDMAP_SEND, .rv = 2, .msn = 1, .len = 8}, "IW_RDMAP_VERSION",
		{RDMAP, 2, 0x05, NOTHING}},
	{"RDMAP 3, Immediate Data", {RDMAP_IMMEDIATE, .rv = 3, .msn = 1, .len = 8},
		"IW_RDMAP_VERSION", {RDMAP, 2, 0x05, NOTHING}},
};

Test(negative, versions_rfc5041_7_rfc5040_7)
{
	neg_rows(versions, SK_ARRAY_LEN(versions));
}

/* Memory windows: a window of type 1 grants access to a part of a region that has no remote rights;
 * a window of type 2 is valid only on the QP that bound it. */
static const struct neg_row windows[] = {
	{"Write below it", WRITE(WINDOW, -1, 8), "IW_DDP_T_BOUNDS", {DDP, 1, 0x01, DDP_HEAD}},
	{"Write a byte behind it", WRITE(WINDOW, 121, 8), "IW_DDP_T_BOUNDS",
		{DDP, 1, 0x01, DDP_HEAD}},
	{"Write to the region under it", WRITE(UNDER, 64, 8), "IW_RDMAP_ACCESS",
		{RDMAP, 1, 0x02, DDP_HEAD}},
	{"Write to another QP's", WRITE(BOUND, 0, 8), "IW_DDP_T_STREAM", {DDP, 1, 0x02, DDP_HEAD}},
	{"Write to one that is not bound", WRITE(UNBOUND, 0, 8), "IW_DDP_T_STAG",
		{DDP, 1, 0x00, DDP_HEAD}},
	{"Read, which it does not grant", READ(1, WINDOW, 0, 8), "IW_RDMAP_ACCESS",
		{RDMAP, 1, 0x02, BOTH_HEADS}},
	{"Read from another QP's", READ(1, BOUND, 0, 8), "IW_RDMAP_STREAM",
		{RDMAP, 1, 0x03, BOTH_HEADS}},
	{"Read from one that is not bound", READ(1, UNBOUND, 0, 8), "IW_RDMAP_STAG",
		{RDMAP, 1, 0x00, BOTH_HEADS}},
	{"Atomic, which it does not grant", ATOMICS(0, WINDOW, 0), "IW_RDMAP_ACCESS",
		{RDMAP, 1, 0x02, DDP_HEAD}},
	{"Atomic in another QP's", ATOMICS(2, BOUND, 0), "IW_RDMAP_STREAM",
		{RDMAP, 1, 0x03, DDP_HEAD}},
	{"invalidation of type 1", SEND_INV(RDMAP_SEND_INV, WINDOW), "IW_RDMAP_CANNOT_INV",
		{RDMAP, 1, 0x09, DDP_HEAD}, .recv = RD_REM_INV_REQ_ERR},
	{"invalidation of another QP's", SEND_INV(RDMAP_SEND_SE_INV, BOUND), "IW_RDMAP_STREAM",
		{RDMAP, 1, 0x03, DDP_HEAD}, .recv = RD_REM_INV_REQ_ERR},
	{"invalidation of one not bound", SEND_INV(RDMAP_SEND_INV, UNBOUND), "IW_RDMAP_STAG",
		{RDMAP, 1, 0x00, DDP_HEAD}, .recv = RD_REM_INV_REQ_ERR},
};

Test(negative, windows_rfc5040_7_2_rfc5041_7_1)
{
	neg_rows(windows, SK_ARRAY_LEN(windows));
}

/* ---- Untagged messages ---- */

static const struct neg_row untagged[] = {
	{"queue 4", UNTAGGED(RDMAP_SEND, 4, 1, 0, 8), "IW_DDP_U_QN", {DDP, 2, 0x01, DDP_HEAD}},
	{"queue 2^32 - 1", UNTAGGED(RDMAP_SEND, ~0u, 1, 0, 8), "IW_DDP_U_QN",
		{DDP, 2, 0x01, DDP_HEAD}},
	{"a third Send for two receives", UNTAGGED(RDMAP_SEND, 0, 3, 0, 8), "IW_DDP_U_NO_BUFFER",
		{DDP, 2, 0x02, DDP_HEAD}, .before = {RDMAP_SEND, .msn = 1, .len = 8}, .nbefore = 2,
		.received = 2},
	{"MSN 0", UNTAGGED(RDMAP_SEND, 0, 0, 0, 8), "IW_DDP_U_MSN", {DDP, 2, 0x03, DDP_HEAD}},
	{"MSN 2 before 1", UNTAGGED(RDMAP_SEND, 0, 2, 0, 8), "IW_DDP_U_MSN",
		{DDP, 2, 0x03, DDP_HEAD}},
	{"MSN 1 again", UNTAGGED(RDMAP_SEND, 0, 1, 0, 8), "IW_DDP_U_MSN", {DDP, 2, 0x03, DDP_HEAD},
		.before = {RDMAP_SEND, .msn = 1, .len = 8}, .nbefore = 1, .received = 1},
	{"the next MSN in the midst of a message", UNTAGGED(RDMAP_SEND, 0, 2, 0, 8), "IW_DDP_U_MSN",
		{DDP, 2, 0x03, DDP_HEAD}, .before = {RDMAP_SEND, .more = true, .msn = 1, .len = 8},
		.nbefore = 1},
	{"MO 4 at first", UNTAGGED(RDMAP_SEND, 0, 1, 4, 8), "IW_DDP_U_MO",
		{DDP, 2, 0x04, DDP_HEAD}},
	{"MO leaves a gap", UNTAGGED(RDMAP_SEND, 0, 1, 12, 8), "IW_DDP_U_MO",
		{DDP, 2, 0x04, DDP_HEAD}, .before = {RDMAP_SEND, .more = true, .msn = 1, .len = 8},
		.nbefore = 1},
	{"MO goes back", UNTAGGED(RDMAP_SEND, 0, 1, 4, 8), "IW_DDP_U_MO", {DDP, 2, 0x04, DDP_HEAD},
		.before = {RDMAP_SEND, .more = true, .msn = 1, .len = 8}, .nbefore = 1},
	{"MO 2^32 - 4", UNTAGGED(RDMAP_SEND, 0, 1, ~3u, 8), "IW_DDP_U_MO",
		{DDP, 2, 0x04, DDP_HEAD}},
	{"a byte too long", UNTAGGED(RDMAP_SEND, 0, 1, 0, NEG_RECV + 1), "IW_DDP_U_TOO_LONG",
		{DDP, 2, 0x05, DDP_HEAD}, .recv = RD_LOC_LEN_ERR},
	{"too long in its second segment", UNTAGGED(RDMAP_SEND, 0, 1, 96, 5), "IW_DDP_U_TOO_LONG",
		{DDP, 2, 0x05, DDP_HEAD}, .before = {RDMAP_SEND, .more = true, .msn = 1, .len = 96},
		.nbefore = 1, .recv = RD_LOC_LEN_ERR},
	{"another opcode in the midst", UNTAGGED(RDMAP_SEND_SE, 0, 1, 8, 8), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD},
		.before = {RDMAP_SEND, .more = true, .msn = 1, .len = 8}, .nbefore = 1},
	{"Send on queue 1", UNTAGGED(RDMAP_SEND, 1, 1, 0, 8), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"Send on queue 2", UNTAGGED(RDMAP_SEND, 2, 1, 0, 8), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"Send on queue 3", UNTAGGED(RDMAP_SEND, 3, 1, 0, 8), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"Write, untagged", UNTAGGED(RDMAP_WRITE, 0, 1, 0, 8), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"Read Response, untagged", UNTAGGED(RDMAP_READ_RESPONSE, 0, 1, 0, 8), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"Terminate on queue 0", UNTAGGED(RDMAP_TERMINATE, 0, 1, 0, 4), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"opcode 12", UNTAGGED(12, 0, 1, 0, 8), "IW_RDMAP_OPCODE", {RDMAP, 2, 0x06, DDP_HEAD}},
	{"opcode 15", UNTAGGED(15, 0, 1, 0, 8), "IW_RDMAP_OPCODE", {RDMAP, 2, 0x06, DDP_HEAD}},
	{"Terminate with MSN 2", UNTAGGED(RDMAP_TERMINATE, 2, 2, 0, 4), "IW_DDP_U_MSN",
		{DDP, 2, 0x03, DDP_HEAD}},
	{"Terminate with MO 4", UNTAGGED(RDMAP_TERMINATE, 2, 1, 4, 4), "IW_DDP_U_MO",
		{DDP, 2, 0x04, DDP_HEAD}},
};

Test(negative, untagged_rfc5041_7_rfc5040_7)
{
	neg_rows(untagged, SK_ARRAY_LEN(untagged));
}

static const struct neg_row invalidations[] = {
	{"no such slot", SEND_INV(RDMAP_SEND_INV, NO_SLOT), "IW_RDMAP_STAG",
		{RDMAP, 1, 0x00, DDP_HEAD}, .recv = RD_REM_INV_REQ_ERR},
	{"another key", SEND_INV(RDMAP_SEND_SE_INV, OTHER_KEY), "IW_RDMAP_STAG",
		{RDMAP, 1, 0x00, DDP_HEAD}, .recv = RD_REM_INV_REQ_ERR},
	{"invalid already", SEND_INV(RDMAP_SEND_INV, GONE), "IW_RDMAP_STAG",
		{RDMAP, 1, 0x00, DDP_HEAD}, .recv = RD_REM_INV_REQ_ERR},
	{"other protection domain", SEND_INV(RDMAP_SEND_SE_INV, FOREIGN), "IW_RDMAP_STREAM",
		{RDMAP, 1, 0x03, DDP_HEAD}, .recv = RD_REM_INV_REQ_ERR},
	{"never granted", SEND_INV(RDMAP_SEND_INV, LOCAL), "IW_RDMAP_CANNOT_INV",
		{RDMAP, 1, 0x09, DDP_HEAD}, .recv = RD_REM_INV_REQ_ERR},
};

Test(negative, invalidation_rfc5040_7)
{
	neg_rows(invalidations, SK_ARRAY_LEN(invalidations));
}

/* ---- Reads ---- */

static const struct neg_row read_requests[] = {
	{"source: no such slot", READ(1, NO_SLOT, 0, 8), "IW_RDMAP_STAG",
		{RDMAP, 1, 0x00, BOTH_HEADS}},
	{"source: another key", READ(1, OTHER_KEY, 0, 8), "IW_RDMAP_STAG",
		{RDMAP, 1, 0x00, BOTH_HEADS}},
	{"source: invalidated", READ(1, GONE, 0, 8), "IW_RDMAP_STAG", {RDMAP, 1, 0x00, BOTH_HEADS}},
	{"below the source", READ(1, READABLE, -1, 8), "IW_RDMAP_BOUNDS",
		{RDMAP, 1, 0x01, BOTH_HEADS}},
	{"behind the source", READ(1, READABLE, 1, NEG_REGION), "IW_RDMAP_BOUNDS",
		{RDMAP, 1, 0x01, BOTH_HEADS}},
	{"4 GiB - 1 of it", READ(1, READABLE, 0, ~0u), "IW_RDMAP_BOUNDS",
		{RDMAP, 1, 0x01, BOTH_HEADS}},
	{"no right to read", READ(1, WRITABLE, 0, 8), "IW_RDMAP_ACCESS",
		{RDMAP, 1, 0x02, BOTH_HEADS}},
	{"only local", READ(1, LOCAL, 0, 8), "IW_RDMAP_ACCESS", {RDMAP, 1, 0x02, BOTH_HEADS}},
	{"the QP grants no Reads", READ(1, READABLE, 0, 8), "IW_RDMAP_ACCESS",
		{RDMAP, 1, 0x02, BOTH_HEADS}, .mode.access = RD_ACC_REMOTE_WRITE},
	{"other protection domain", READ(1, FOREIGN, 0, 8), "IW_RDMAP_STREAM",
		{RDMAP, 1, 0x03, BOTH_HEADS}},
	{"MSN 2 before 1", READ(2, READABLE, 0, 8), "IW_DDP_U_MSN", {DDP, 2, 0x03, DDP_HEAD}},
	{"MSN 0", READ(0, READABLE, 0, 8), "IW_DDP_U_MSN", {DDP, 2, 0x03, DDP_HEAD}},
	{"MO 1", {RDMAP_READ_REQUEST, .qn = 1, .msn = 1, .mo = 1, .len = 28}, "IW_DDP_U_MO",
		{DDP, 2, 0x04, DDP_HEAD}},
	{"29 bytes", {RDMAP_READ_REQUEST, .qn = 1, .msn = 1, .len = 29}, "IW_DDP_U_TOO_LONG",
		{DDP, 2, 0x05, DDP_HEAD}},
	{"not the last", {RDMAP_READ_REQUEST, .qn = 1, .msn = 1, .len = 28, .more = true},
		"IW_DDP_U_TOO_LONG", {DDP, 2, 0x05, DDP_HEAD}},
	{"27 bytes", {RDMAP_READ_REQUEST, .qn = 1, .msn = 1, .len = 27}, "IW_RDMAP_UNSPECIFIED",
		{RDMAP, 2, 0xff, NOTHING}},
	{"no bytes", {RDMAP_READ_REQUEST, .qn = 1, .msn = 1}, "IW_RDMAP_UNSPECIFIED",
		{RDMAP, 2, 0xff, NOTHING}},
	{"on queue 0", {RDMAP_READ_REQUEST, .msn = 1, .len = 28}, "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"one more than IRD", READ(NEG_IRD + 1, READABLE, 0, 8), "IW_IRD_EXCEEDED",
		{DDP, 2, 0x02, DDP_HEAD}, .before = READ(1, READABLE, 0, 8), .nbefore = NEG_IRD},
};

Test(negative, read_requests_rfc5040_7)
{
	neg_rows(read_requests, SK_ARRAY_LEN(read_requests));
}

/* The victim's outstanding Read has 64 bytes, and LOCAL + 8 as its sink. */
#define RESPONSE(s, t, l) TAGGED(RDMAP_READ_RESPONSE, s, t, l)
static const struct neg_row read_responses[] = {
	{"another sink", RESPONSE(WRITABLE, 8, 64), "IW_DDP_T_STAG", {DDP, 1, 0x00, DDP_HEAD},
		.send = RD_BAD_RESP_ERR},
	{"a byte further", RESPONSE(LOCAL, 9, 64), "IW_DDP_T_BOUNDS", {DDP, 1, 0x01, DDP_HEAD},
		.send = RD_BAD_RESP_ERR},
	{"a byte before", RESPONSE(LOCAL, 7, 64), "IW_DDP_T_BOUNDS", {DDP, 1, 0x01, DDP_HEAD},
		.send = RD_BAD_RESP_ERR},
	{"a byte too long", RESPONSE(LOCAL, 8, 65), "IW_DDP_T_BOUNDS", {DDP, 1, 0x01, DDP_HEAD},
		.send = RD_BAD_RESP_ERR},
	{"a byte too short", RESPONSE(LOCAL, 8, 63), "IW_DDP_T_BOUNDS", {DDP, 1, 0x01, DDP_HEAD},
		.send = RD_BAD_RESP_ERR},
	{"too long in its second segment", RESPONSE(LOCAL, 40, 33), "IW_DDP_T_BOUNDS",
		{DDP, 1, 0x01, DDP_HEAD}, .send = RD_BAD_RESP_ERR, .nbefore = 1,
		.before = {RDMAP_READ_RESPONSE, true, .more = true, .stag = LOCAL, .to = 8,
			.len = 32}},
	{"the same bytes twice", RESPONSE(LOCAL, 8, 32), "IW_DDP_T_BOUNDS",
		{DDP, 1, 0x01, DDP_HEAD}, .send = RD_BAD_RESP_ERR, .nbefore = 1,
		.before = {RDMAP_READ_RESPONSE, true, .more = true, .stag = LOCAL, .to = 8,
			.len = 32}},
	{"none was asked for", RESPONSE(LOCAL, 8, 64), "IW_READ_RESPONSE_BAD",
		{RDMAP, 2, 0x06, DDP_HEAD}, .mode.sq = SQ_EMPTY},
	{"an Atomic was asked for", RESPONSE(LOCAL, 0, 8), "IW_READ_RESPONSE_BAD",
		{RDMAP, 2, 0x06, DDP_HEAD}, .mode.sq = SQ_ATOMIC},
};

Test(negative, read_responses_rfc5040_7)
{
	neg_rows(read_responses, SK_ARRAY_LEN(read_responses));
}
