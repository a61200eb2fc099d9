/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The malformed and forbidden messages of RFC 7306: Atomics and Immediate Data. The checks are
 * those of negative.c. The Terminates quote the DDP header and no RDMA header (8.1).
 */
#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "negative_row.h"

TestSuite(negative_ext, .init = neg_start, .fini = neg_stop);

static const struct neg_row requests[] = {
	{"off by 1", ATOMICS(0, ATOMIC, 1), "IW_ATOMIC_UNALIGNED", {RDMAP, 2, 0x07, DDP_HEAD}},
	{"off by 2", ATOMICS(2, ATOMIC, 2), "IW_ATOMIC_UNALIGNED", {RDMAP, 2, 0x07, DDP_HEAD}},
	{"off by 4", ATOMICS(0, ATOMIC, 12), "IW_ATOMIC_UNALIGNED", {RDMAP, 2, 0x07, DDP_HEAD}},
	{"off by 7", ATOMICS(2, ATOMIC, 7), "IW_ATOMIC_UNALIGNED", {RDMAP, 2, 0x07, DDP_HEAD}},
	{"no such slot", ATOMICS(0, NO_SLOT, 0), "IW_RDMAP_STAG", {RDMAP, 1, 0x00, DDP_HEAD}},
	{"another key", ATOMICS(2, OTHER_KEY, 0), "IW_RDMAP_STAG", {RDMAP, 1, 0x00, DDP_HEAD}},
	{"invalidated", ATOMICS(0, GONE, 0), "IW_RDMAP_STAG", {RDMAP, 1, 0x00, DDP_HEAD}},
	{"below the base", ATOMICS(0, ATOMIC, -8), "IW_RDMAP_BOUNDS", {RDMAP, 1, 0x01, DDP_HEAD}},
	{"half behind the end", ATOMICS(2, ATOMIC, NEG_REGION - 4), "IW_RDMAP_BOUNDS",
		{RDMAP, 1, 0x01, DDP_HEAD}},
	{"behind the end", ATOMICS(2, ATOMIC, NEG_REGION), "IW_RDMAP_BOUNDS",
		{RDMAP, 1, 0x01, DDP_HEAD}},
	{"no right: Writes only", ATOMICS(0, WRITABLE, 0), "IW_RDMAP_ACCESS",
		{RDMAP, 1, 0x02, DDP_HEAD}},
	{"no right: Reads only", ATOMICS(0, READABLE, 0), "IW_RDMAP_ACCESS",
		{RDMAP, 1, 0x02, DDP_HEAD}},
	{"no right: local", ATOMICS(2, LOCAL, 0), "IW_RDMAP_ACCESS", {RDMAP, 1, 0x02, DDP_HEAD}},
	{"the QP grants no Atomics", ATOMICS(0, ATOMIC, 0), "IW_RDMAP_ACCESS",
		{RDMAP, 1, 0x02, DDP_HEAD},
		.mode.access = RD_ACC_REMOTE_READ | RD_ACC_REMOTE_WRITE},
	{"other protection domain", ATOMICS(0, FOREIGN, 0), "IW_RDMAP_STREAM",
		{RDMAP, 1, 0x03, DDP_HEAD}},
	{"operation 1, the draft's Swap", ATOMICS(1, ATOMIC, 0), "IW_ATOMIC_OPERATION",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"operation 3", ATOMICS(3, ATOMIC, 0), "IW_ATOMIC_OPERATION", {RDMAP, 2, 0x06, DDP_HEAD}},
	{"operation 15", ATOMICS(15, ATOMIC, 0), "IW_ATOMIC_OPERATION", {RDMAP, 2, 0x06, DDP_HEAD}},
	{"51 bytes", {RDMAP_ATOMIC_REQUEST, .qn = 1, .msn = 1, .stag = ATOMIC, .len = 51},
		"IW_EXT_LENGTH", {RDMAP, 2, 0xff, DDP_HEAD}},
	{"no bytes", {RDMAP_ATOMIC_REQUEST, .qn = 1, .msn = 1, .stag = ATOMIC}, "IW_EXT_LENGTH",
		{RDMAP, 2, 0xff, DDP_HEAD}},
	{"53 bytes", {RDMAP_ATOMIC_REQUEST, .qn = 1, .msn = 1, .stag = ATOMIC, .len = 53},
		"IW_DDP_U_TOO_LONG", {DDP, 2, 0x05, DDP_HEAD}},
	{"not the last",
		{RDMAP_ATOMIC_REQUEST, .more = true, .qn = 1, .msn = 1, .stag = ATOMIC, .len = 52},
		"IW_DDP_U_TOO_LONG", {DDP, 2, 0x05, DDP_HEAD}},
	{"MSN 0", {RDMAP_ATOMIC_REQUEST, .qn = 1, .stag = ATOMIC, .len = 52}, "IW_DDP_U_MSN",
		{DDP, 2, 0x03, DDP_HEAD}},
	{"MSN 2 before 1", {RDMAP_ATOMIC_REQUEST, .qn = 1, .msn = 2, .stag = ATOMIC, .len = 52},
		"IW_DDP_U_MSN", {DDP, 2, 0x03, DDP_HEAD}},
	{"MO 8", {RDMAP_ATOMIC_REQUEST, .qn = 1, .msn = 1, .mo = 8, .stag = ATOMIC, .len = 52},
		"IW_DDP_U_MO", {DDP, 2, 0x04, DDP_HEAD}},
	{"queue 0", {RDMAP_ATOMIC_REQUEST, .msn = 1, .stag = ATOMIC, .len = 52}, "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}},
	{"queue 3", {RDMAP_ATOMIC_REQUEST, .qn = 3, .msn = 1, .stag = ATOMIC, .len = 52},
		"IW_RDMAP_OPCODE", {RDMAP, 2, 0x06, DDP_HEAD}},
	{"one more than IRD, behind Reads",
		{RDMAP_ATOMIC_REQUEST, .qn = 1, .msn = NEG_IRD + 1, .stag = ATOMIC, .len = 52},
		"IW_IRD_EXCEEDED", {DDP, 2, 0x02, DDP_HEAD}, .before = READ(1, READABLE, 0, 8),
		.nbefore = NEG_IRD},
};

Test(negative_ext, atomic_requests_7306_8_2)
{
	neg_rows(requests, SK_ARRAY_LEN(requests));
}

/* Two FetchAdds are outstanding, with the identifiers and message sequence numbers 1 and 2. */
static const struct neg_row responses[] = {
	{"MSN 2 before 1", ANSWER(3, 2, 0, 2, 12), "IW_DDP_U_MSN", {DDP, 2, 0x03, DDP_HEAD},
		.mode.sq = SQ_ATOMIC},
	{"MSN 0", ANSWER(3, 0, 0, 1, 12), "IW_DDP_U_MSN", {DDP, 2, 0x03, DDP_HEAD},
		.mode.sq = SQ_ATOMIC},
	{"MO 4", ANSWER(3, 1, 4, 1, 12), "IW_DDP_U_MO", {DDP, 2, 0x04, DDP_HEAD},
		.mode.sq = SQ_ATOMIC},
	{"13 bytes", ANSWER(3, 1, 0, 1, 13), "IW_DDP_U_TOO_LONG", {DDP, 2, 0x05, DDP_HEAD},
		.mode.sq = SQ_ATOMIC},
	{"32 bytes, as section 4 has it", ANSWER(3, 1, 0, 1, 32), "IW_DDP_U_TOO_LONG",
		{DDP, 2, 0x05, DDP_HEAD}, .mode.sq = SQ_ATOMIC},
	{"11 bytes", ANSWER(3, 1, 0, 1, 11), "IW_EXT_LENGTH", {RDMAP, 2, 0xff, DDP_HEAD},
		.mode.sq = SQ_ATOMIC},
	{"another identifier", ANSWER(3, 1, 0, 2, 12), "IW_ATOMIC_RESPONSE_BAD",
		{RDMAP, 2, 0x06, DDP_HEAD}, .mode.sq = SQ_ATOMIC, .send = RD_BAD_RESP_ERR},
	{"queue 1, as in the draft's figure", ANSWER(1, 1, 0, 1, 12), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD}, .mode.sq = SQ_ATOMIC},
	{"none was asked for", ANSWER(3, 1, 0, 1, 12), "IW_DDP_U_NO_BUFFER",
		{DDP, 2, 0x02, DDP_HEAD}, .mode.sq = SQ_EMPTY},
	{"a Read was asked for", ANSWER(3, 1, 0, 1, 12), "IW_DDP_U_NO_BUFFER",
		{DDP, 2, 0x02, DDP_HEAD}, .mode.sq = SQ_READ},
};

Test(negative_ext, atomic_responses_7306_5_2_2)
{
	neg_rows(responses, SK_ARRAY_LEN(responses));
}

static const struct neg_row immediates[] = {
	{"7 bytes", UNTAGGED(RDMAP_IMMEDIATE, 0, 1, 0, 7), "IW_EXT_LENGTH",
		{RDMAP, 2, 0xff, DDP_HEAD}},
	{"9 bytes", UNTAGGED(RDMAP_IMMEDIATE_SE, 0, 1, 0, 9), "IW_EXT_LENGTH",
		{RDMAP, 2, 0xff, DDP_HEAD}},
	{"no bytes", UNTAGGED(RDMAP_IMMEDIATE, 0, 1, 0, 0), "IW_EXT_LENGTH",
		{RDMAP, 2, 0xff, DDP_HEAD}},
	{"not the last", {RDMAP_IMMEDIATE, .more = true, .msn = 1, .len = 8}, "IW_EXT_LENGTH",
		{RDMAP, 2, 0xff, DDP_HEAD}},
	{"MSN 2 before 1", UNTAGGED(RDMAP_IMMEDIATE, 0, 2, 0, 8), "IW_DDP_U_MSN",
		{DDP, 2, 0x03, DDP_HEAD}},
	{"MO 8", UNTAGGED(RDMAP_IMMEDIATE_SE, 0, 1, 8, 8), "IW_DDP_U_MO", {DDP, 2, 0x04, DDP_HEAD}},
	{"queue 1, as in the draft's figure", UNTAGGED(RDMAP_IMMEDIATE_SE, 1, 1, 0, 8),
		"IW_RDMAP_OPCODE", {RDMAP, 2, 0x06, DDP_HEAD}},
	{"a third for two receives", UNTAGGED(RDMAP_IMMEDIATE, 0, 3, 0, 8), "IW_DDP_U_NO_BUFFER",
		{DDP, 2, 0x02, DDP_HEAD}, .before = {RDMAP_IMMEDIATE, .msn = 1, .len = 8},
		.nbefore = 2, .received = 2},
	{"in the midst of a Send", UNTAGGED(RDMAP_IMMEDIATE, 0, 1, 8, 8), "IW_RDMAP_OPCODE",
		{RDMAP, 2, 0x06, DDP_HEAD},
		.before = {RDMAP_SEND, .more = true, .msn = 1, .len = 8}, .nbefore = 1},
};

Test(negative_ext, immediate_data_7306_6_3)
{
	neg_rows(immediates, SK_ARRAY_LEN(immediates));
}
