/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path for a Send or Write that is one FPDU, with one element and without markers: a list
 * of guards, then straight code. A request that a guard rejects takes the general path
 * (iw_tx_msg.c), which also determines what is wrong with an invalid request.
 *
 * The header is composed in registers, and the payload is copied and its CRC computed in one pass:
 * CRC instructions that read back what narrower or misaligned stores have just written would stall
 * on those stores.
 */
#include "iw_priv.h"
#include "mpa_priv.h"

#include "../base/mem.h"

#include <string.h>

/* Writes an FPDU at `at`. Returns its Internet checksum, or 0 without CRCs. */
static uint64_t
fpdu_write(uint8_t *at, const struct wire_ddp *d, const uint8_t *src, uint32_t n, bool use_crc)
{
	uint32_t ulpdu_len = (d->tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN) + n;
	uint32_t head = MPA_LEN_FIELD + ulpdu_len - n, len = mpa_plain_len(ulpdu_len);
	struct sk_check c = SK_CHECK_INIT;
	uint64_t word[3];

	if (d->tagged)
		wire_fpdu_tagged_words(word, ulpdu_len, d);
	else
		wire_fpdu_untagged_words(word, ulpdu_len, d);
	memcpy(at, word, 16);
	c = sk_check_word(sk_check_word(c, word[0]), word[1]);
	if (!d->tagged) {
		memcpy(at + 16, &word[2], 4);
		c = sk_check_half_word(c, (uint32_t)word[2]);
	}
	if (use_crc)
		c = sk_check_copy(c, at + head, src, n);
	else
		memcpy(at + head, src, n);
	c.sum = iw_fpdu_end(at + head + n, len - MPA_CRC_LEN - head - n, c, use_crc);
	return use_crc ? c.sum : 0;
}

/* Returns the address of the payload if the element is valid, contiguous and present, else NULL. */
static const uint8_t *
source(struct iw_qp *q, const struct rd_wr *wr)
{
	const struct rd_sge *sge = &wr->sge[0];
	struct rd_mr *mr;
	uint64_t run;
	uint8_t *p;

	if (rd_mr_check(q->st->ops.rd.mrs, q->rd->pd, q->rd->qpn, sge->lkey, sge->addr, sge->len, 0,
		    &mr) != RD_OK)
		return NULL;
	p = rd_mr_at(mr, sge->addr, &run);
	return run < sge->len || sk_probe_range(p, sge->len) != NULL ? NULL : p;
}

bool
iw_tx_fast(struct iw_qp *q, struct iw_op *op)
{
	const struct rd_wr *wr = &op->wr;
	bool write = wr->opcode == RD_WRITE;
	uint32_t n = wr->sge[0].len, ulpdu_len, len;
	struct wire_ddp d;
	const uint8_t *src;

	if ((!write && wr->opcode != RD_SEND) || wr->nsge != 1 || n == 0 ||
		(wr->flags & ~(RD_SIGNALED | RD_SOLICITED)) || q->mtx.markers || q->st->general ||
		n > q->mulpdu - DDP_UNTAGGED_LEN)
		return false;
	src = source(q, wr);
	if (src == NULL)
		return false;
	ulpdu_len = (write ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN) + n;
	len = mpa_plain_len(ulpdu_len);
	if ((q->rec == NULL || q->rec->len + len > q->rec_cap) && !iw_rec_room(q, ulpdu_len))
		return false;
	d.tagged = write;
	d.last = true;
	if (write) {
		d.opcode = RDMAP_WRITE;
		d.stag = wr->rkey;
		d.to = wr->remote_addr;
	} else {
		d.opcode = wr->flags & RD_SOLICITED ? RDMAP_SEND_SE : RDMAP_SEND;
		d.inv_stag = 0;
		d.qn = DDP_QN_SEND;
		d.msn = q->send_msn++;
		d.mo = 0;
	}
	iw_rec_add(q, len, fpdu_write(q->rec->data + q->rec->len, &d, src, n, q->mtx.crc));
	q->mtx.pos += len;
	q->info.bytes_out += n;
	iw_message_done(q, op, n);
	return true;
}
