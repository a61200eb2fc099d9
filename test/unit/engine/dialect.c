/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dialect of draft-ietf-storm-rdmap-ext-00, which a program can choose for a connection: the
 * victim sends Swap, and executes it. Without the dialect, the operation code is reserved (RFC 7306
 * 10.1). The peer is scripted.
 */
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "negative.h"

TestSuite(engine_dialect, .init = neg_start, .fini = neg_stop);

#define OPEN_PORT 7500

static const struct neg_mode mode = {.sq = SQ_EMPTY};
static const struct wire_mpa_startup plain = {.crc = true, .revision = 1};
static const uint8_t *
behind_header(const uint8_t *ulpdu)
{
	return ulpdu + 18;
}

static uint64_t
get64(const uint8_t *p)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

static struct saker_conn_param
wish(uint8_t dialect)
{
	return (struct saker_conn_param){
		.ird = 4, .ord = 4, .revision = 1, .crc = 1, .dialect = dialect};
}

static void
victim_connects(uint8_t dialect, uint8_t told)
{
	struct saker_conn_param p = wish(dialect);
	struct wire_mpa_startup su = plain;
	uint8_t buf[64];

	neg_make_qp(&mode);
	raw_accept(&neg.sw, &neg.conn, OPEN_PORT);
	cr_assert_eq(
		saker_connect(neg.qp, NULL, &neg.sw.addr, OPEN_PORT, &p), 0, "%s", saker_error());
	NEG_UNTIL(neg.conn.got >= 20, "no request");
	neg.conn.taken = 20;
	su.reply = true;
	raw_send(&neg.conn, buf, neg_startup(buf, &su, NULL), RAW_MSS);
	cr_assert_eq(neg_event("connect", SAKER_EV_ESTABLISHED).cm.dialect, told);
}

static void
victim_accepts(uint8_t dialect, uint8_t told)
{
	struct saker_conn_param p = wish(dialect);
	struct saker_event ev;
	uint8_t buf[64];

	neg_make_qp(&mode);
	raw_connect(&neg.sw, &neg.conn, NEG_PORT);
	NEG_UNTIL(neg.conn.up, "nobody listens");
	raw_send(&neg.conn, buf, neg_startup(buf, &plain, NULL), RAW_MSS);
	ev = neg_event("accept", SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(saker_accept(neg.s, ev.request, neg.qp, &p), 0, "%s", saker_error());
	cr_assert_eq(neg_event("accept", SAKER_EV_ESTABLISHED).cm.dialect, told);
	NEG_UNTIL(neg.conn.got >= 20, "no reply");
	neg.conn.taken = 20;
}

static void
swap_post(void)
{
	struct rd_sge sge = {neg_base(LOCAL), 8, neg_stag(LOCAL)};
	struct saker_wr wr = {.wr_id = 12,
		.opcode = RD_SWAP,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.rkey = 0xabcdef01,
		.remote_addr = 64,
		.data = 0x1122334455667788,
		.sge = &sge};

	cr_assert_eq(saker_post_send(neg.qp, &wr, 1), 1);
}

static void
over(const char *name)
{
	raw_fin(&neg.conn);
	neg_end(name, false);
}

/* Draft 5.1.2, 5.2.1: operation code 1, mask all ones, compare data 0, compare mask all ones. */
Test(engine_dialect, swap_goes_out_draft_5_1_2)
{
	const struct neg_msg answer = {
		RDMAP_ATOMIC_RESPONSE, .qn = 3, .msn = 1, .id = 1, .len = 12, .empty_stag = true};
	uint8_t ulpdu[256], fpdu[256];
	const uint8_t *p = behind_header(ulpdu);
	uint64_t original;

	victim_connects(SAKER_DIALECT_DRAFT, SAKER_DIALECT_DRAFT);
	swap_post();
	cr_assert_eq(neg_take(ulpdu), 18 + 52);
	cr_assert_eq(ulpdu[1], 0x4a, "opcode %02x", ulpdu[1]);
	cr_assert_eq(p[3] & 15, 1, "operation %u", p[3] & 15);
	cr_assert_eq(get64(p + 20), 0x1122334455667788);
	cr_assert_eq(get64(p + 28), ~0ull);
	cr_assert_eq(get64(p + 36), 0);
	cr_assert_eq(get64(p + 44), ~0ull);
	raw_send(
		&neg.conn, fpdu, neg_frame(fpdu, ulpdu, neg_build(ulpdu, &answer, false)), RAW_MSS);
	neg_expect_wc("swap", neg.send_cq, 12, RD_SUCCESS);
	memcpy(&original, (void *)(uintptr_t)neg_base(LOCAL), sizeof(original));
	cr_assert_eq(original, 0x0102030405060708);
	over("swap");
}

Test(engine_dialect, swap_is_executed_draft_5_1_2)
{
	const struct neg_msg swap = {RDMAP_ATOMIC_REQUEST, .qn = 1, .msn = 1, .len = 52,
		.atomic_op = 1, .stag = ATOMIC, .id = 7, .empty_stag = true};
	uint8_t ulpdu[256], fpdu[256];
	uint64_t before, after;

	victim_accepts(SAKER_DIALECT_DRAFT, SAKER_DIALECT_DRAFT);
	memcpy(&before, (void *)(uintptr_t)neg_base(ATOMIC), sizeof(before));
	raw_send(&neg.conn, fpdu, neg_frame(fpdu, ulpdu, neg_build(ulpdu, &swap, false)), RAW_MSS);
	cr_assert_eq(neg_take(ulpdu), 18 + 12);
	cr_assert_eq(ulpdu[1], 0x4b, "opcode %02x", ulpdu[1]);
	cr_assert_eq(get64(behind_header(ulpdu) + 4), before);
	memcpy(&after, (void *)(uintptr_t)neg_base(ATOMIC), sizeof(after));
	cr_assert_eq(after, ~0ull);
	over("swap");
}

/* The dialect is off by default, and when the program chooses RFC 7306: the victim sends no Swap,
 * and the stream ends as after any invalid request (8.1). */
Test(engine_dialect, swap_is_refused_without_it_7306_10_1)
{
	static const uint8_t dialects[] = {SAKER_DIALECT_CONFIGURED, SAKER_DIALECT_RFC7306};
	const struct neg_term term = {0, 0, 0, NOTHING};

	for (unsigned i = 0; i < SK_ARRAY_LEN(dialects); i++) {
		victim_connects(dialects[i], SAKER_DIALECT_RFC7306);
		swap_post();
		neg_expect_terminate("refused", &term, NULL, 0);
		neg_expect_wc("refused", neg.send_cq, 12, RD_LOC_QP_OP_ERR);
		neg_event("refused", SAKER_EV_QP_FATAL);
		over("refused");
		neg_untouched("refused");
	}
}
