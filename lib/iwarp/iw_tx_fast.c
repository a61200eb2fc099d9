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

#include "../base/crc32c.h"
#include "../base/mem.h"

#include <string.h>

/* Returns the bytes of an FPDU without markers. */
static uint32_t
plain_len(uint32_t ulpdu_len)
{
	return ((MPA_LEN_FIELD + ulpdu_len + 3) & ~3u) + MPA_CRC_LEN;
}

/* Writes pad and CRC behind the bytes that end at `at`. */
static void
fpdu_end(uint8_t *at, uint32_t pad, uint32_t crc, bool use_crc)
{
	static const uint8_t zero[4];

	if (pad > 0) {
		memcpy(at, zero, 4);
		crc = sk_crc32c(crc, zero, pad);
	}
	wire_mpa_crc_emit(at + pad, use_crc ? sk_crc32c_final(crc) : 0);
}

static uint32_t
fpdu_write(uint8_t *at, const struct wire_ddp *d, const uint8_t *src, uint32_t n, bool use_crc)
{
	uint32_t ulpdu_len = (d->tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN) + n;
	uint32_t head = MPA_LEN_FIELD + ulpdu_len - n, len = plain_len(ulpdu_len);
	uint32_t crc = SK_CRC32C_INIT;
	uint64_t word[3];

	if (d->tagged)
		wire_fpdu_tagged_words(word, ulpdu_len, d);
	else
		wire_fpdu_untagged_words(word, ulpdu_len, d);
	memcpy(at, word, 16);
	crc = sk_crc32c_word(crc, word[0]);
	crc = sk_crc32c_word(crc, word[1]);
	if (!d->tagged) {
		memcpy(at + 16, &word[2], 4);
		crc = sk_crc32c(crc, &word[2], 4);
	}
	if (use_crc)
		crc = sk_crc32c_copy(crc, at + head, src, n);
	else
		memcpy(at + head, src, n);
	fpdu_end(at + head + n, len - MPA_CRC_LEN - head - n, crc, use_crc);
	return len;
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
		(wr->flags & ~(RD_SIGNALED | RD_SOLICITED)) || q->mtx.markers ||
		n > q->mulpdu - DDP_UNTAGGED_LEN)
		return false;
	src = source(q, wr);
	if (src == NULL)
		return false;
	ulpdu_len = (write ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN) + n;
	len = plain_len(ulpdu_len);
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
	fpdu_write(q->rec->data + q->rec->len, &d, src, n, q->mtx.crc);
	q->rec->len += len;
	q->mtx.pos += len;
	q->space -= len;
	q->info.fpdus_out++;
	q->info.bytes_out += n;
	iw_message_done(q, op, n);
	return true;
}
