/* SPDX-License-Identifier: BSD-3-Clause */
/* See negative_row.h. */
#include <criterion/criterion.h>

#include "negative_row.h"

void
neg_row_completions(const struct neg_row *r)
{
	const enum rd_status recv[] = {r->recv ? r->recv : RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR};

	for (unsigned i = 0; i < 2; i++)
		neg_expect_wc(r->name, neg.recv_cq, 100 + i,
			i < r->received ? RD_SUCCESS : recv[i - r->received]);
	for (unsigned i = 0; i < 2 && r->mode.sq != SQ_EMPTY; i++)
		neg_expect_wc(r->name, neg.send_cq, 200 + i,
			i == 0 && r->send ? r->send : RD_WR_FLUSH_ERR);
}

/* Sends all messages of a row in one burst, so that the victim answers none of them before the last
 * one has arrived. A segment ends at byte `cut`. */
static uint32_t
send_row(const struct neg_row *r, uint8_t *seg, uint32_t cut)
{
	uint8_t stream[4096], ulpdu[1024];
	struct neg_msg before = r->before;
	uint32_t n = 0, len;

	for (unsigned i = 0; i < r->nbefore; i++, before.msn++, before.id++)
		n += neg_frame(stream + n, ulpdu, neg_build(ulpdu, &before, true));
	len = neg_build(seg, &r->m, false);
	n += neg_frame(stream + n, seg, len);
	cut = 1 + cut % (n - 1);
	raw_send(&neg.conn, stream, cut, RAW_MSS);
	raw_send(&neg.conn, stream + cut, n - cut, RAW_MSS);
	return len;
}

static void
check_row(const struct neg_row *r, uint32_t cut)
{
	uint64_t reason = neg_counter("iw", r->reason);
	uint64_t out = neg_counter("iw", "IW_TERMINATE_OUT");
	struct saker_event ev;
	uint8_t seg[1024], answer[2048];
	uint32_t len;

	neg_victim(&r->mode);
	len = send_row(r, seg, cut);
	if (r->nbefore > 0 && r->before.op == RDMAP_TERMINATE)
		cr_assert_gt(neg_take(answer), 0);
	neg_expect_terminate(r->name, &r->term, seg, len);
	ev = neg_event(r->name, SAKER_EV_QP_FATAL);
	cr_assert_eq(ev.qp, neg.qp, "%s", r->name);
	cr_assert_str_eq(ev.async.reason, r->reason, "%s: %s", r->name, ev.async.reason);
	cr_assert_eq(neg_counter("iw", r->reason), reason + 1, "%s", r->name);
	cr_assert_eq(neg_counter("iw", "IW_TERMINATE_OUT"), out + 1, "%s", r->name);
	neg_row_completions(r);
	neg_untouched(r->name);
	neg_end(r->name, true);
	neg_untouched(r->name);
}

void
neg_rows(const struct neg_row *rows, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		check_row(&rows[i], RAW_MSS);
		check_row(&rows[i], 17 * i + 5);
	}
}
