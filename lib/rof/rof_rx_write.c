/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes in: each packet is checked on its own, completely, before a byte of it is placed. In a
 * Write with Immediate Data, the packet that completes the receive is checked for the whole
 * message, of which it is the last part: a message that was refused in part must not complete a
 * receive.
 */
#include "rof_priv.h"

static enum rof_reason
rof_rx_write_target_check(
	struct rof_qp *q, const struct rof_in *in, uint64_t *at, struct rd_mr **mr)
{
	enum rd_fault fault;

	if (in->len > in->h.length || in->len > q->mtu)
		return ROF_LENGTH;
	if ((wire_rof_headers(in->h.opcode) & ROF_IMMDT) && !in->h.ce) {
		uint64_t first = *at + in->len - in->h.length;

		fault = rd_remote_check(q->st->ops.rd.mrs, q->rd, in->h.rkey, &first, in->h.length,
			RD_ACC_REMOTE_WRITE, mr);
		if (fault != RD_OK)
			return rof_fault_reason(fault);
	}
	fault = rd_remote_check(
		q->st->ops.rd.mrs, q->rd, in->h.rkey, at, in->len, RD_ACC_REMOTE_WRITE, mr);
	return fault == RD_OK ? ROF_NONE : rof_fault_reason(fault);
}

enum rof_reason
rof_rx_write(struct rof_qp *q, struct rof_in *in, uint8_t *nak)
{
	enum rof_reason reason;
	uint64_t at = in->h.va;
	struct rd_mr *mr;

	reason = rof_rx_write_target_check(q, in, &at, &mr);
	if (reason != ROF_NONE) {
		*nak = reason == ROF_LENGTH ? ROF_NAK_REQUEST : ROF_NAK_ACCESS;
		return reason;
	}
	/* The receive is taken first: without one, the packet must have no effect. */
	if (wire_rof_headers(in->h.opcode) & ROF_IMMDT) {
		struct rof_recv *r;

		reason = rof_recv_get(q, in, &r);
		if (reason != ROF_NONE)
			return reason;
	}
	/* The first packet names the bytes of the whole message. */
	if (!rof_ready(q, mr, at, in->len, rof_begins(in->h.opcode) ? in->h.length : in->len))
		return ROF_NO_PAGE;
	if (in->len > 0)
		rof_place(in, 0, mr, at, in->len);
	q->info.bytes_in += in->len;
	if (wire_rof_headers(in->h.opcode) & ROF_IMMDT)
		return rof_rx_write_imm(q, in);
	return ROF_NONE;
}

/* Returns where the engine finds the `len` bytes that a Write names, or NULL when a check fails or
 * they are not on one page that is present. */
static inline uint8_t *
write_target(const struct rof_qp *q, struct rd_span *target, const struct wire_rof_write *h,
	uint32_t len)
{
	const struct rd_mr_table *mrs = q->st->ops.rd.mrs;
	uint64_t at = h->va;
	struct rd_mr *mr;
	uint8_t *p;

	if ((target->host != NULL && target->stag == h->rkey) ||
		rd_span_find(mrs, q->rd, h->rkey, RD_ACC_REMOTE_WRITE, true, target)) {
		p = rd_span_at(target, at, len);
		return p != NULL && (uintptr_t)p % SK_PROBE_PAGE + len <= SK_PROBE_PAGE &&
				       sk_probe(p)
			       ? p
			       : NULL;
	}
	/* A window, or a region with several extents. */
	if (rd_remote_check(mrs, q->rd, h->rkey, &at, len, RD_ACC_REMOTE_WRITE, &mr) != RD_OK)
		return NULL;
	return rd_mr_page(mr, at, len);
}

bool
rof_rx_write_next(struct rof_chan *c, const struct fa_buf *b, struct rd_span *target)
{
	struct rof_qp *q = c->rc;
	struct wire_rof_write h;
	uint8_t *host;
	uint32_t len;

	if (!c->plain || q == NULL || q->phase != ROF_PHASE_OPEN || c->refused ||
		b->data_len != b->len || !wire_rof_write_parse(&h, b->data, b->len))
		return false;
	len = b->len - ROF_WRITE_LEN - h.pad;
	if (h.sn != c->sn_next || h.dest_qp != q->rd->qpn || len == 0 || len > h.length ||
		len > q->mtu)
		return false;
	host = write_target(q, target, &h, len);
	if (host == NULL)
		return false;
	rd_place(host, b->data + ROF_WRITE_LEN, len);
	q->info.bytes_in += len;
	c->sn_next = h.sn + 1;
	return true;
}
