/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local errors of the victim (RFC 5040 7.1): an invalid work request ends the stream with a
 * Terminate that quotes nothing. Also the ends of a stream without an error: orderly and abortive,
 * by either side and by both.
 */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "negative_row.h"

TestSuite(negative_local, .init = neg_start, .fini = neg_stop);

static void
post(const struct saker_wr *wr)
{
	cr_assert_eq(saker_post_send(neg.qp, wr, 1), 1, "%lu", wr->wr_id);
}

/* Posts a Send of 8 bytes of LOCAL. */
static void
post_send8(uint64_t wr_id)
{
	struct rd_sge sge = {neg_base(LOCAL), 8, neg_stag(LOCAL)};
	struct saker_wr wr = {
		.wr_id = wr_id, .opcode = RD_SEND, .flags = RD_SIGNALED, .nsge = 1, .sge = &sge};

	post(&wr);
}

static void
expect_send8(const char *name, uint32_t msn)
{
	uint8_t got[2048];

	cr_assert_eq(neg_take(got), 18 + 8, "%s: Send %u", name, msn);
	cr_assert_eq(got[1], 0x43, "%s: Send %u", name, msn);
	cr_assert_eq(got[13], msn, "%s: Send %u", name, msn);
	cr_assert_eq(memcmp(got + 18, (void *)(uintptr_t)neg_base(LOCAL), 8), 0, "%s", name);
}

static void
expect_flushed_receives(const char *name)
{
	neg_expect_wc(name, neg.recv_cq, 100, RD_WR_FLUSH_ERR);
	neg_expect_wc(name, neg.recv_cq, 101, RD_WR_FLUSH_ERR);
}

/* ---- Invalid work requests ---- */

static const struct local_row {
	const char *name;
	enum neg_stag region;
	int64_t off;
	uint32_t len;
	uint8_t opcode, flags;
	uint8_t status;
} requests[] = {
	{"Send: no such lkey", NO_SLOT, 0, 8, RD_SEND, 0, RD_LOC_PROT_ERR},
	{"Send: another key", OTHER_KEY, 0, 8, RD_SEND, 0, RD_LOC_PROT_ERR},
	{"Send: invalidated", GONE, 0, 8, RD_SEND, 0, RD_LOC_PROT_ERR},
	{"Send: other protection domain", FOREIGN, 0, 8, RD_SEND, 0, RD_LOC_PROT_ERR},
	{"Send: below the base", LOCAL, -1, 8, RD_SEND, 0, RD_LOC_PROT_ERR},
	{"Send: behind the end", LOCAL, NEG_REGION - 7, 8, RD_SEND, 0, RD_LOC_PROT_ERR},
	{"Send: 4 GiB - 1", LOCAL, 0, ~0u, RD_SEND, 0, RD_LOC_PROT_ERR},
	{"Send, solicited: behind the end", LOCAL, NEG_REGION, 1, RD_SEND, RD_SOLICITED,
		RD_LOC_PROT_ERR},
	{"Send with Invalidate: invalidated", GONE, 0, 8, RD_SEND_INV, 0, RD_LOC_PROT_ERR},
	{"Write: behind the end", LOCAL, NEG_REGION - 7, 8, RD_WRITE, 0, RD_LOC_PROT_ERR},
	{"Write: other protection domain", FOREIGN, 0, 8, RD_WRITE, 0, RD_LOC_PROT_ERR},
	{"Write with Immediate: no such lkey", NO_SLOT, 0, 8, RD_WRITE_IMM, 0, RD_LOC_PROT_ERR},
	{"Read: no such lkey", NO_SLOT, 0, 8, RD_READ, 0, RD_LOC_PROT_ERR},
	{"Read: a sink that may not be written", READABLE, 0, 8, RD_READ, 0, RD_LOC_PROT_ERR},
	{"Read: behind the end", LOCAL, NEG_REGION - 7, 8, RD_READ, 0, RD_LOC_PROT_ERR},
	{"FetchAdd: a sink that may not be written", READABLE, 0, 8, RD_FETCH_ADD, 0,
		RD_LOC_PROT_ERR},
	{"FetchAdd: 4 bytes", LOCAL, 0, 4, RD_FETCH_ADD, 0, RD_LOC_LEN_ERR},
	{"CmpSwap: 16 bytes", LOCAL, 0, 16, RD_CMP_SWAP, 0, RD_LOC_LEN_ERR},
	{"Swap, not in the draft's dialect", LOCAL, 0, 8, RD_SWAP, 0, RD_LOC_QP_OP_ERR},
	{"Send with Immediate: iWARP has none", LOCAL, 0, 8, RD_SEND_IMM, 0, RD_LOC_QP_OP_ERR},
	{"Local Invalidate: other protection domain", FOREIGN, 0, 0, RD_LOCAL_INV, 0,
		RD_LOC_PROT_ERR},
	{"Local Invalidate: invalid already", GONE, 0, 0, RD_LOCAL_INV, 0, RD_LOC_PROT_ERR},
};

/* Checks that the victim sends the requests before the invalid one, and flushes those after it. */
static void
check_request(const struct local_row *r)
{
	uint64_t before = neg_counter("iw", "IW_RDMAP_LOCAL");
	struct neg_term term = {RDMAP, 0, 0x00, NOTHING};
	struct neg_mode mode = {.sq = SQ_EMPTY};
	struct rd_sge sge = {neg_base(r->region) + (uint64_t)r->off, r->len, neg_stag(r->region)};
	struct saker_wr wr = {.wr_id = 301,
		.opcode = r->opcode,
		.flags = RD_SIGNALED | r->flags,
		.nsge = r->opcode == RD_LOCAL_INV ? 0 : 1,
		.imm = neg_stag(r->region),
		.sge = &sge};

	neg_victim(&mode);
	post_send8(300);
	post(&wr);
	post_send8(302);
	expect_send8(r->name, 1);
	neg_expect_terminate(r->name, &term, NULL, 0);
	cr_assert_str_eq(neg_event(r->name, SAKER_EV_QP_FATAL).async.reason, "IW_RDMAP_LOCAL", "%s",
		r->name);
	cr_assert_eq(neg_counter("iw", "IW_RDMAP_LOCAL"), before + 1, "%s", r->name);
	neg_expect_wc(r->name, neg.send_cq, 300, RD_SUCCESS);
	neg_expect_wc(r->name, neg.send_cq, 301, r->status);
	neg_expect_wc(r->name, neg.send_cq, 302, RD_WR_FLUSH_ERR);
	expect_flushed_receives(r->name);
	neg_untouched(r->name);
	neg_end(r->name, true);
}

Test(negative_local, bad_requests_rfc5040_7_1)
{
	for (unsigned i = 0; i < SK_ARRAY_LEN(requests); i++)
		check_request(&requests[i]);
}

/* An invalid receive request is detected when a message arrives for it. */
Test(negative_local, a_bad_receive_rfc5041_7_1)
{
	static const struct neg_msg send8 = {RDMAP_SEND, .msn = 1, .len = 8, .empty_stag = true};
	uint64_t before = neg_counter("iw", "IW_DDP_LOCAL");
	struct neg_term term = {DDP, 0, 0x00, NOTHING};
	struct neg_mode mode = {.sq = SQ_READ, .bad_recv = true};
	struct neg_row row = {.name = "receive", .recv = RD_LOC_PROT_ERR};
	uint8_t ulpdu[64], fpdu[64];

	neg_victim(&mode);
	raw_send(&neg.conn, fpdu, neg_frame(fpdu, ulpdu, neg_build(ulpdu, &send8, false)), RAW_MSS);
	neg_expect_terminate("receive", &term, NULL, 0);
	cr_assert_str_eq(neg_event("receive", SAKER_EV_QP_FATAL).async.reason, "IW_DDP_LOCAL");
	cr_assert_eq(neg_counter("iw", "IW_DDP_LOCAL"), before + 1);
	neg_row_completions(&row);
	neg_untouched("receive");
	neg_end("receive", true);
}

/* The program invalidates the sink while the peer responds: the STag of the response is invalid. */
Test(negative_local, a_read_whose_sink_goes_rfc5041_7)
{
	static const struct neg_msg response = {
		RDMAP_READ_RESPONSE, true, .stag = LOCAL, .to = 8, .len = 64};
	struct neg_term term = {DDP, 1, 0x00, DDP_HEAD};
	struct neg_mode mode = {.sq = SQ_READ};
	struct neg_row row = {.name = "sink", .send = RD_LOC_PROT_ERR};
	uint8_t seg[128], fpdu[128];
	uint32_t n;

	neg_victim(&mode);
	n = neg_build(seg, &response, false);
	cr_assert_eq(saker_mr_destroy(neg.mr[LOCAL]), 0, "%s", saker_error());
	raw_send(&neg.conn, fpdu, neg_frame(fpdu, seg, n), RAW_MSS);
	neg_expect_terminate("sink", &term, seg, n);
	neg_event("sink", SAKER_EV_QP_FATAL);
	neg_row_completions(&row);
	neg_untouched("sink");
	neg_end("sink", true);
}

/* ---- Ends without an error ---- */

/* The victim sends all posted requests and then a FIN. It flushes the receive requests, and reports
 * no error. */
Test(negative_local, an_orderly_end_rfc5040_6_2)
{
	uint64_t out = neg_counter("iw", "IW_TERMINATE_OUT");
	struct neg_mode mode = {.sq = SQ_EMPTY};
	uint8_t got[2048];

	neg_victim(&mode);
	for (uint64_t i = 0; i < 3; i++)
		post_send8(300 + i);
	cr_assert_eq(saker_disconnect(neg.qp, false), 0);
	for (uint32_t i = 1; i <= 3; i++)
		expect_send8("orderly", i);
	cr_assert_eq(neg_take(got), -1);
	cr_assert(neg.conn.fin_in && !neg.conn.rst);
	for (uint64_t i = 0; i < 3; i++)
		neg_expect_wc("orderly", neg.send_cq, 300 + i, RD_SUCCESS);
	raw_fin(&neg.conn);
	cr_assert_eq(neg_event("orderly", SAKER_EV_DISCONNECTED).status, 0);
	expect_flushed_receives("orderly");
	cr_assert_eq(neg_counter("iw", "IW_TERMINATE_OUT"), out);
	neg_gone("orderly");
}

/* The victim accepts the peer's responses also after it has sent its FIN. */
Test(negative_local, an_orderly_end_waits_for_answers_rfc5040_6_2)
{
	static const struct neg_msg response = {
		RDMAP_READ_RESPONSE, true, .stag = LOCAL, .to = 8, .len = 64};
	struct neg_mode mode = {.sq = SQ_READ};
	uint8_t ulpdu[128], fpdu[128];

	neg_victim(&mode);
	cr_assert_eq(saker_disconnect(neg.qp, false), 0);
	NEG_UNTIL(neg.conn.fin_in, "no FIN");
	raw_send(&neg.conn, fpdu, neg_frame(fpdu, ulpdu, neg_build(ulpdu, &response, true)),
		RAW_MSS);
	neg_expect_wc("answer", neg.send_cq, 200, RD_SUCCESS);
	neg_expect_wc("answer", neg.send_cq, 201, RD_SUCCESS);
	raw_fin(&neg.conn);
	cr_assert_eq(neg_event("answer", SAKER_EV_DISCONNECTED).status, 0);
	expect_flushed_receives("answer");
	neg_gone("answer");
}

Test(negative_local, an_abortive_end_rfc5040_6_2_1)
{
	struct neg_row flushed = {.name = "abortive"};
	struct neg_mode mode = {.sq = SQ_READ};

	neg_victim(&mode);
	cr_assert_eq(saker_disconnect(neg.qp, true), 0);
	NEG_UNTIL(neg.conn.rst, "no RST");
	neg_row_completions(&flushed);
	neg_event("abortive", SAKER_EV_DISCONNECTED);
	neg_gone("abortive");
}

/* The program modifies its QP to ERR: the victim ends the stream. */
Test(negative_local, a_qp_that_is_moved_to_err)
{
	struct neg_row flushed = {.name = "modify"};
	struct neg_mode mode = {.sq = SQ_READ};

	neg_victim(&mode);
	cr_assert_eq(saker_qp_modify(neg.qp, RD_QP_ERR), 0);
	NEG_UNTIL(neg.conn.rst || neg.conn.fin_in, "the peer is not told");
	neg_row_completions(&flushed);
	post_send8(300);
	neg_expect_wc("modify", neg.send_cq, 300, RD_WR_FLUSH_ERR);
	if (!neg.conn.rst)
		raw_fin(&neg.conn);
	neg_event("modify", SAKER_EV_DISCONNECTED);
	neg_gone("modify");
}

/* The peer closes its side first; the victim then closes its own (RFC 5044 7.2). */
Test(negative_local, a_half_close_rfc5044_7_2)
{
	static const struct neg_msg send8 = {RDMAP_SEND, .msn = 1, .len = 8, .empty_stag = true};
	struct neg_mode mode = {.sq = SQ_EMPTY};
	uint8_t ulpdu[64], fpdu[64];

	neg_victim(&mode);
	raw_send(&neg.conn, fpdu, neg_frame(fpdu, ulpdu, neg_build(ulpdu, &send8, true)), RAW_MSS);
	raw_fin(&neg.conn);
	neg_expect_wc("half", neg.recv_cq, 100, RD_SUCCESS);
	neg_expect_wc("half", neg.recv_cq, 101, RD_WR_FLUSH_ERR);
	neg_expect_no_terminate("half");
	cr_assert(neg.conn.fin_in && !neg.conn.rst);
	cr_assert_eq(neg_event("half", SAKER_EV_DISCONNECTED).status, 0);
	post_send8(300); /* after the end */
	neg_expect_wc("half", neg.send_cq, 300, RD_WR_FLUSH_ERR);
	neg_gone("half");
}

/* The peer closes its side while a Read is outstanding, which cannot complete any more. */
Test(negative_local, a_half_close_flushes_reads_rfc5044_7_2)
{
	struct neg_row flushed = {.name = "half"};
	struct neg_mode mode = {.sq = SQ_READ};

	neg_victim(&mode);
	raw_fin(&neg.conn);
	neg_expect_no_terminate("half");
	neg_row_completions(&flushed);
	neg_event("half", SAKER_EV_DISCONNECTED);
	neg_gone("half");
}

Test(negative_local, both_end_at_once_rfc5044_7_2)
{
	struct neg_mode mode = {.sq = SQ_EMPTY};

	neg_victim(&mode);
	cr_assert_eq(saker_disconnect(neg.qp, false), 0);
	raw_fin(&neg.conn);
	neg_expect_no_terminate("both");
	cr_assert(neg.conn.fin_in && !neg.conn.rst);
	cr_assert_eq(neg_event("both", SAKER_EV_DISCONNECTED).status, 0);
	expect_flushed_receives("both");
	neg_gone("both");
}
