/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A live QP of any transport and mode, and a peer whose packets are nearly valid, or any bytes; any
 * completions; a ring to Falcon that is full at times; a client that posts, deregisters a region,
 * and disconnects. With any input, bytes change only in the granted region and in receives and
 * sinks; each request and receive completes once; each delivery gets its verdict and each pull its
 * answer; and every buffer is freed.
 */
#include "fuzz.h"

#include "../unit/rof/script.h"

#define STEPS_MAX 180  /* fewer than the number of messages that the script records */
#define MSG_MAX   3000 /* bytes of a posted message, and so of an answer */

static struct script s;

static uint32_t
take(struct fuzz_input *in, unsigned bytes)
{
	return (uint32_t)fuzz_take_rest(in, bytes);
}

/* Returns a number near `base`, sometimes any number. */
static uint32_t
near(struct fuzz_input *in, uint32_t base)
{
	uint8_t b = (uint8_t)take(in, 1);

	return b == 0x80 ? take(in, 4) : b < 0x80 ? base + (b >> 3) : base - (256u - b);
}

static struct wire_rof
header(struct fuzz_input *in)
{
	uint8_t bits = (uint8_t)take(in, 1);
	struct wire_rof h = {.opcode = (uint8_t)take(in, 1)};

	if (wire_rof_len(h.opcode) == 0)
		h.opcode = ROF_SEND_ONLY | s.c->p.transport;
	if (bits & 1)
		h.opcode = (h.opcode & ROF_OPERATION) | s.c->p.transport;
	if (wire_rof_len(h.opcode) == 0)
		h.opcode = ROF_SEND_ONLY | s.c->p.transport;
	h.ce = bits & 2;
	h.se = bits & 4;
	h.sn = bits & 8 ? near(in, s.sn) : s.sn;
	h.dest_qp = bits & 16 ? take(in, 3) : SCRIPT_QPN;
	h.va = SCRIPT_BASE + near(in, SCRIPT_GRANTED);
	h.rkey = bits & 32 ? take(in, 4) : s.granted.stag;
	h.length = near(in, 64);
	h.rmsn = near(in, s.q->recv_base);
	h.offset = near(in, 0);
	h.sink_va = SCRIPT_BASE + SCRIPT_LOCAL + take(in, 1);
	h.sink_lkey = s.local.stag;
	h.inv_rkey = bits & 64 ? s.granted.stag : take(in, 4);
	h.xrc_srq = bits & 128 ? take(in, 3) : SCRIPT_SRQ;
	h.qkey = SCRIPT_QKEY;
	h.original = take(in, 4);
	return h;
}

/* Delivers an answer similar to that of the oldest request. */
static void
nearly_an_answer(struct fuzz_input *in)
{
	uint32_t rsn = near(in, s.c->txn_base), len = take(in, 2) % 1200;
	struct rof_txn *t = rof_chan_txn(s.c, rsn);
	struct wire_rof h = header(in);
	uint8_t bytes[ROF_MAX + MSG_MAX + 3]; /* 3: pad */
	unsigned head;

	if (t && (take(in, 1) & 3)) {
		h.opcode =
			(t->kind == ROF_TXN_ATOMIC ? ROF_ATOMIC_RESPONSE : ROF_READ_RESPONSE_ONLY) |
			s.c->p.transport;
		h.sn = t->sn;
		h.sink_va = t->sink;
		h.sink_lkey = t->sink_lkey;
		h.ce = false;
		len = t->kind == ROF_TXN_READ ? t->bytes : 0;
	}
	h.pad = wire_rof_pad(len);
	head = wire_rof_emit(bytes, &h);
	memset(bytes + head, 0x5a, len + h.pad);
	script_raw(&s, FA_PULL_DATA, rsn, bytes, head + len + h.pad);
}

static void
raw(struct fuzz_input *in)
{
	uint8_t type = (uint8_t)(take(in, 1) % 3);
	uint32_t n = take(in, 1) % 80;
	uint8_t bytes[80];

	for (uint32_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)take(in, 1);
	script_raw(&s, type, near(in, s.c->txn_base), bytes, n);
}

static void
post(struct fuzz_input *in)
{
	static const uint8_t ops[] = {RD_SEND, RD_SEND_INV, RD_SEND_IMM, RD_WRITE, RD_WRITE_IMM,
		RD_READ, RD_READ_INV, RD_CMP_SWAP, RD_FETCH_ADD, RD_LOCAL_INV, RD_BIND_MW, 99};
	uint8_t op = ops[take(in, 1) % sizeof(ops)];
	uint32_t off = take(in, 1) * 8, len = take(in, 2) % MSG_MAX;
	struct rd_wr *wr = script_post(
		&s, op, s.sq_tail, off, op == RD_CMP_SWAP || op == RD_FETCH_ADD ? 8 : len);

	wr->flags = take(in, 1) & (RD_FENCE | RD_SOLICITED);
	wr->imm = take(in, 1) & 1 ? s.local.stag : take(in, 4);
	wr->ah = take(in, 1) & 7 ? 1 : 0;
}

static void
request(struct fuzz_input *in)
{
	struct wire_rof h = header(in);
	uint32_t len = take(in, 2) % 1200;

	h.pad = wire_rof_pad(len);
	script_request(&s, take(in, 1) & 1 ? FA_PULL : FA_PUSH, &h, len);
}

static void
rare(struct fuzz_input *in)
{
	switch (take(in, 1) % 8) {
	case 0:
		rd_mr_invalidate(&s.local);
		break;
	case 1:
		rd_mr_invalidate(&s.granted);
		break;
	case 2:
		rof_disconnect(s.q);
		break;
	case 3:
		rof_closed(s.q, (int)take(in, 1));
		break;
	case 4:
		rof_flush(s.q, UINT32_MAX);
		break;
	default:
		s.no_buffers = take(in, 1) % 4;
	}
}

static void
step(struct fuzz_input *in)
{
	switch (take(in, 1) % 10) {
	case 0:
		post(in);
		break;
	case 1:
		script_recv(&s, s.rq_tail, take(in, 1) * 8, take(in, 2) % 2000);
		break;
	case 2:
		s.room = take(in, 1);
		rof_tx(s.q, 0, 1 + take(in, 1));
		break;
	case 3:
	case 4:
	case 5:
		request(in);
		break;
	case 6:
		script_completion(
			&s, near(in, s.c->txn_base), take(in, 1) % 17, (uint8_t)take(in, 1));
		break;
	case 7:
		nearly_an_answer(in);
		break;
	case 8:
		if (!script_again(&s))
			raw(in);
		break;
	default:
		rare(in);
	}
}

/* Only the two regions may change; in the local one, only receives and sinks. */
static void
check_memory(void)
{
	for (uint32_t i = 0; i < SCRIPT_LEN; i++) {
		if ((i >= SCRIPT_GRANTED && i < SCRIPT_GRANTED + SCRIPT_REGION) ||
			(i >= SCRIPT_LOCAL && i < SCRIPT_LOCAL + SCRIPT_REGION))
			continue;
		CLAIM(s.mem[i] == 0x77);
	}
}

static void
check_once(const struct rd_wc *wc, unsigned n, unsigned posted)
{
	bool seen[SCRIPT_MAX] = {false};

	CLAIM(n <= posted);
	for (unsigned i = 0; i < n; i++) {
		CLAIM(wc[i].wr_id < posted && !seen[wc[i].wr_id]);
		seen[wc[i].wr_id] = true;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t transports[] = {ROF_RC, ROF_XRC, ROF_UD};
	struct fuzz_input in = {.p = data, .len = size};
	uint8_t mode = (uint8_t)take(&in, 1), ordering = mode % 3;
	unsigned done;

	script_init(&s, transports[mode / 3 % 3], ordering,
		ordering == ROF_ORDER_NONE ? ROF_ERRORS_COMPLETE : mode / 9 % 2);
	s.c->sn_next = s.sn = take(&in, 1) & 1 ? 0xfffffff0 : 1;
	for (unsigned i = 0; i < STEPS_MAX && in.at < in.len; i++)
		step(&in);
	if (s.q->phase == ROF_PHASE_OPEN)
		rof_disconnect(s.q);
	/* One call flushes as many requests as a queue of the QP holds; the script posts more. */
	do {
		done = s.nsend + s.nrecv;
		rof_flush(s.q, UINT32_MAX);
	} while (s.nsend + s.nrecv > done);
	check_memory();
	check_once(s.send_wc, s.nsend, s.sq_tail);
	check_once(s.recv_wc, s.nrecv, s.rq_tail);
	CLAIM(s.nsend == s.sq_tail);
	CLAIM(s.q->transport != ROF_RC || s.nrecv == s.rq_tail);
	CLAIM(script_fini(&s));
	return 0;
}
