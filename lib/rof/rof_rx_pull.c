/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads and Atomics in. They are executed when they arrive, or on a weakly ordered channel when all
 * before them have arrived (rof_parked.c), and their answer is a snapshot of that moment. Without a
 * buffer for the answer nothing is executed, and Falcon delivers the request again.
 */
#include "rof_priv.h"

#include "../rdma/atomic.h"

/* Returns the header of an answer, with the request's sequence number and sink (8.2, 8.3.4). */
static struct wire_rof
answer_header(const struct rof_chan *c, const struct rof_in *in)
{
	bool read = (in->h.opcode & ROF_OPERATION) == ROF_READ_REQUEST;

	return (struct wire_rof){
		.opcode = (read ? ROF_READ_RESPONSE_ONLY : ROF_ATOMIC_RESPONSE) | c->p.transport,
		.dest_qp = c->rc != NULL ? c->rc->peer_qpn : 0,
		.sn = in->h.sn,
		.sink_va = in->h.sink_va,
		.sink_lkey = in->h.sink_lkey,
	};
}

bool
rof_pull_refuse(struct rof_chan *c, struct rof_in *in)
{
	struct wire_rof h = answer_header(c, in);

	h.ce = true;
	in->answer = rof_answer_buf(c->st, in, &h, 0);
	return in->answer != NULL;
}

static enum rof_reason
read_request(struct rof_qp *q, struct rof_in *in)
{
	struct wire_rof h = answer_header(q->c, in);
	uint64_t at = in->h.va;
	enum rd_fault fault;
	struct rd_mr *mr;

	if (in->h.length > q->mtu)
		return ROF_LENGTH;
	fault = rd_remote_check(
		q->st->ops.rd.mrs, q->rd, in->h.rkey, &at, in->h.length, RD_ACC_REMOTE_READ, &mr);
	if (fault != RD_OK)
		return rof_fault_reason(fault);
	if (!rof_ready(q, mr, at, in->h.length, in->h.length))
		return ROF_NO_PAGE;
	h.pad = wire_rof_pad(in->h.length);
	in->answer = rof_answer_buf(q->st, in, &h, in->h.length);
	if (in->answer == NULL)
		return ROF_NO_BUFFER;
	rof_sum_begin(q->c, in->answer, in->h.length);
	if (in->h.length > 0)
		rof_gather(q->st, in->answer, mr, at, in->h.length);
	rof_pad(q->st, in->answer, h.pad);
	q->info.bytes_out += in->h.length;
	return ROF_NONE;
}

static bool
rof_rx_pull_execute(const struct rof_in *in, uint64_t *word, uint64_t *original)
{
	if (word == NULL) /* in a simulator memory has no bytes */
		return true;
	if ((in->h.opcode & ROF_OPERATION) == ROF_FETCH_ADD)
		return rd_fetch_add(word, in->h.swap_add, 0, original);
	return rd_cmp_swap(word, in->h.swap_add, UINT64_MAX, in->h.compare, UINT64_MAX, original);
}

static enum rof_reason
atomic_request(struct rof_qp *q, struct rof_in *in)
{
	struct wire_rof h = answer_header(q->c, in);
	uint64_t *word, at = in->h.va;
	enum rd_fault fault;
	struct rd_mr *mr;

	fault = rd_remote_check(q->st->ops.rd.mrs, q->rd, in->h.rkey, &at, sizeof(*word),
		RD_ACC_REMOTE_ATOMIC, &mr);
	if (fault != RD_OK)
		return rof_fault_reason(fault);
	word = q->st->lengths_only ? NULL : rd_atomic_word(mr, at);
	if (word == NULL && !q->st->lengths_only)
		return ROF_ATOMIC_UNALIGNED;
	if (!rof_ready(q, mr, at, sizeof(*word), sizeof(*word)))
		return ROF_NO_PAGE;
	/* The buffer comes first: an Atomic cannot be undone. */
	in->answer = rof_answer_buf(q->st, in, &h, 0);
	if (in->answer == NULL)
		return ROF_NO_BUFFER;
	if (!rof_rx_pull_execute(in, word, &h.original)) {
		in->reserved = in->answer; /* for the refusal */
		in->answer = NULL;
		return ROF_ATOMIC_CONTENDED;
	}
	wire_rof_emit(in->answer->data, &h);
	return ROF_NONE;
}

enum rof_reason
rof_rx_pull(struct rof_qp *q, struct rof_in *in, uint8_t *nak)
{
	bool read = (in->h.opcode & ROF_OPERATION) == ROF_READ_REQUEST;
	enum rof_reason reason;

	*nak = ROF_NAK_ACCESS;
	if (in->len != 0)
		return ROF_LENGTH;
	if (q->rd->ird == 0)
		return ROF_NO_IRD;
	reason = read ? read_request(q, in) : atomic_request(q, in);
	if (reason == ROF_NONE)
		q->info.msgs_in++;
	return reason;
}
