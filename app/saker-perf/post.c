/* SPDX-License-Identifier: BSD-3-Clause */
/* The verbs that the tests use: requests of the operation under test, receives, words to the other
 * end, and completions. */
#include <stddef.h>

#include "../../lib/base/mem.h"
#include "perf.h"

#define POST_BURST 32
#define REAP_MAX   256 /* completions of a CQ after which perf_reap() takes no more */
#define COMPLAINTS 10  /* mistakes that are printed; all are counted */

static struct rd_sge
element(const struct perf_end *e, const void *at, uint32_t len)
{
	return (struct rd_sge){(uintptr_t)at, len, saker_mr_stag(e->mr)};
}

/* Posts all of wr[0..n), and runs turns while the queue is full. */
static int
perf_post_all(struct perf_end *e, uint32_t qp, const struct saker_wr *wr, int n, bool recv)
{
	e->waited = 0;
	while (n > 0) {
		int rc = recv ? saker_post_recv(e->qp[qp], wr, n)
			      : saker_post_send(e->qp[qp], wr, n);

		if (rc < 0)
			return perf_fail("posting", rc);
		wr += rc;
		n -= rc;
		if (n > 0 && (perf_reap(e) || perf_turn(e)))
			return -1;
	}
	return 0;
}

/* Returns the n-th Immediate Data of a flow. All its bits vary: 64 with iWARP, 32 with Falcon. */
static uint64_t
immediate(const struct perf_end *e, uint64_t n)
{
	uint64_t imm = (n + 1) * 0x9e3779b97f4a7c15ull;

	return e->o->transport == SAKER_FALCON ? (uint32_t)imm : imm;
}

/* Sets the operands of a flow's next request. Both a FetchAdd and a CmpSwap increment the peer's
 * cell by one, so the n-th of them finds the value n. */
static void
perf_post_operands(const struct perf_end *e, struct perf_flow *f, struct saker_wr *wr)
{
	switch (e->op) {
	case PERF_ATOMIC_FA:
		wr->data = 1;
		f->atomics++;
		break;
	case PERF_ATOMIC_CS:
		wr->compare = f->atomics++;
		wr->data = f->atomics;
		wr->data_mask = wr->compare_mask = ~0ull;
		break;
	case PERF_WRITE_IMM:
		wr->imm = immediate(e, f->imms_out++);
		break;
	default:
		break;
	}
}

static const struct saker_wr *template(
	const struct perf_end *e, uint32_t qp, struct rd_sge *sge, struct saker_wr *wr)
{
	static const uint8_t opcodes[] = {[PERF_SEND] = RD_SEND,
		[PERF_WRITE] = RD_WRITE,
		[PERF_READ] = RD_READ,
		[PERF_ATOMIC_FA] = RD_FETCH_ADD,
		[PERF_ATOMIC_CS] = RD_CMP_SWAP,
		[PERF_WRITE_IMM] = RD_WRITE_IMM};

	*wr = (struct saker_wr){
		.wr_id = qp, .opcode = opcodes[e->op], .nsge = 1, .rkey = e->peer_stag, .sge = sge};
	if (e->o->size <= e->o->inline_max && !perf_op_fetches(e->op))
		wr->flags = RD_INLINE;
	if (perf_op_atomic(e->op)) {
		*sge = element(e, perf_cell(e, qp), sizeof(uint64_t));
		wr->remote_addr = e->peer_addr + perf_cell_off(e, qp);
	} else if (e->op == PERF_READ) {
		*sge = element(e, perf_in(e), e->o->size);
		wr->remote_addr = e->peer_addr;
	} else {
		*sge = element(e, perf_out(e), e->o->size);
		wr->remote_addr = e->peer_addr + e->part;
	}
	return wr;
}

int
perf_post(struct perf_end *e, uint32_t qp, uint32_t n, bool signaled)
{
	struct perf_flow *f = &e->flow[qp];
	struct saker_wr wr[POST_BURST], one;
	struct rd_sge sge;

	template(e, qp, &sge, &one);
	f->sent += n;
	f->taken += perf_op_receives(e->op) ? n : 0;
	f->signals += signaled;
	while (n > 0) {
		uint32_t burst = SK_MIN(n, (uint32_t)POST_BURST);

		for (uint32_t i = 0; i < burst; i++) {
			wr[i] = one;
			perf_post_operands(e, f, &wr[i]);
		}
		n -= burst;
		if (n == 0 && signaled)
			wr[burst - 1].flags |= RD_SIGNALED;
		if (perf_post_all(e, qp, wr, (int)burst, false))
			return -1;
	}
	return 0;
}

int
perf_post_atomic(struct perf_end *e, uint32_t qp, const struct perf_operands *op)
{
	struct saker_wr wr;
	struct rd_sge sge;

	template(e, qp, &sge, &wr);
	wr.flags = RD_SIGNALED;
	wr.data = op->data;
	wr.data_mask = op->data_mask;
	wr.compare = op->compare;
	wr.compare_mask = op->compare_mask;
	e->flow[qp].sent++;
	e->flow[qp].signals++;
	return perf_post_all(e, qp, &wr, 1, false);
}

/* Each receive has room for the largest message, because a run may leave some to the next one. */
int
perf_post_recv(struct perf_end *e, uint32_t qp, uint32_t n)
{
	struct rd_sge sge = element(e, perf_in(e), e->o->size_last);
	struct saker_wr wr = {.wr_id = qp, .nsge = 1, .sge = &sge};

	e->flow[qp].recv_posted += n;
	for (; n > 0; n--)
		if (perf_post_all(e, qp, &wr, 1, true))
			return -1;
	return 0;
}

int
perf_send_word(struct perf_end *e, uint32_t qp, enum perf_word w, uint64_t value)
{
	struct rd_sge sge = {(uintptr_t)&value, sizeof(value), 0};
	struct saker_wr wr = {
		.opcode = RD_WRITE,
		.flags = RD_INLINE,
		.nsge = 1,
		.rkey = e->peer_stag,
		.remote_addr = e->peer_addr + perf_words_off(e, qp) + 8 * w,
		.sge = &sge,
	};

	return perf_post_all(e, qp, &wr, 1, false);
}

void
perf_mistake(struct perf_end *e, const char *what, uint64_t n, uint64_t is, uint64_t want)
{
	if (e->errors++ < COMPLAINTS)
		fprintf(stderr, "saker-perf: %s %lu is 0x%016lx instead of 0x%016lx\n", what,
			(unsigned long)n, (unsigned long)is, (unsigned long)want);
}

static void
take_receive(struct perf_end *e, const struct rd_wc *wc)
{
	struct perf_flow *f = &e->flow[wc->wr_id];

	e->received++;
	f->received++;
	if (e->op != PERF_WRITE_IMM)
		return;
	if (wc->imm != immediate(e, f->imms_in) || !(wc->flags & RD_WC_IMM))
		perf_mistake(e, "Immediate Data", f->imms_in, wc->imm, immediate(e, f->imms_in));
	if (wc->opcode != RD_RECV_IMM || wc->byte_len != e->o->size)
		perf_mistake(
			e, "length before Immediate Data", f->imms_in, wc->byte_len, e->o->size);
	f->imms_in++;
}

void
perf_ready(struct perf_end *e, struct perf_flow *f)
{
	if (f->is_ready)
		return;
	f->is_ready = true;
	TAILQ_INSERT_TAIL(&e->ready, f, ready);
}

static int
take_completion(struct perf_end *e, const struct rd_wc *wc)
{
	struct perf_flow *f = &e->flow[wc->wr_id];

	if (wc->status != RD_SUCCESS) {
		fprintf(stderr, "saker-perf: a request has failed: %s (%s)\n",
			saker_status_str(wc->status),
			saker_reason_str(e->o->transport, wc->vendor_err));
		e->errors++;
		return -1;
	}
	if (wc->opcode >= RD_RECV) {
		take_receive(e, wc);
	} else {
		e->completed++;
		f->done++;
	}
	perf_ready(e, f);
	return 0;
}

static int
reap_cq(struct perf_end *e, struct saker_cq *cq)
{
	struct rd_wc wc[32];
	int n, all = 0;

	do {
		n = saker_cq_poll(cq, wc, (int)SK_ARRAY_LEN(wc));
		for (int i = 0; i < n; i++)
			if (take_completion(e, &wc[i]))
				return -1;
		all += n;
	} while (n == (int)SK_ARRAY_LEN(wc) && all < REAP_MAX);
	return n < 0 ? perf_fail("polling", n) : 0;
}

int
perf_reap(struct perf_end *e)
{
	for (uint32_t i = 0; i < e->ncq; i++)
		if (reap_cq(e, e->cq[i]))
			return -1;
	return 0;
}

static int
send_sync(struct perf_end *e)
{
	for (uint32_t q = 0; q < e->o->qps; q++)
		if (perf_send_word(e, q, PERF_SYNC, e->syncs))
			return -1;
	return 0;
}

static int
wait_sync(struct perf_end *e)
{
	e->for_word = true;
	for (uint32_t q = 0; q < e->o->qps; q++)
		while (perf_peer_word(e, q, PERF_SYNC) < e->syncs)
			if (perf_reap(e) || perf_turn(e))
				return -1;
	e->for_word = false;
	return 0;
}

int
perf_send_end(struct perf_end *e, uint32_t qp)
{
	uint64_t msgs = e->flow[qp].sent - e->flow[qp].first;

	e->flow[qp].ended = true;
	return perf_send_word(e, qp, PERF_END, (uint64_t)e->runs << 32 | msgs);
}

bool
perf_peer_end(const struct perf_end *e, uint32_t qp, uint32_t *msgs)
{
	uint64_t word = perf_peer_word(e, qp, PERF_END);

	*msgs = (uint32_t)word;
	return word >> 32 == e->runs;
}

int
perf_wait_end(struct perf_end *e, uint32_t qp, uint32_t *msgs)
{
	e->for_word = true;
	while (!perf_peer_end(e, qp, msgs))
		if (perf_reap(e) || perf_turn(e))
			return -1;
	e->for_word = false;
	return 0;
}

int
perf_sync_wait(struct perf_end *e)
{
	e->syncs++;
	return wait_sync(e);
}

int
perf_sync_answer(struct perf_end *e)
{
	if (e->errors != e->errors_sent && perf_send_word(e, 0, PERF_ERRORS, e->errors))
		return -1;
	e->errors_sent = e->errors;
	return send_sync(e);
}

uint64_t
perf_mistakes(const struct perf_end *e)
{
	return e->errors + perf_peer_word(e, 0, PERF_ERRORS);
}

int
perf_sync(struct perf_end *e)
{
	if (!e->active)
		return perf_sync_wait(e) || perf_sync_answer(e) ? -1 : 0;
	e->syncs++;
	return send_sync(e) || wait_sync(e) ? -1 : 0;
}
