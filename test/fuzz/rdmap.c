/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A live QP and a peer that sends anything: FPDUs whose headers are nearly right, and raw bytes,
 * while the client posts, receives, binds windows, disconnects and loses regions.
 *
 * Only granted bytes may change. These must keep their value: all bytes of a read-only region; the
 * bytes of a local region outside of posted receives and sinks of Reads and Atomics; words for
 * Atomics that no request named; bytes of a region behind windows that no bind named. Each request
 * must complete once. Each record and slice must be freed.
 */
#include "fuzz.h"

#include "../unit/iwarp/rdmap_pair.h"

#define LEN 4096
/* Receives lie in the local region below this offset, Read sinks from here on. */
#define RECEIVES 1024
#define GRANTED  2048 /* end of both areas */

static struct end e;
static struct rd_mr *writable, *readable, *local, *words, *behind;
static struct rd_mw *window[2];
static bool named[LEN / 8]; /* words that a request named */
static bool bound[LEN];     /* bytes of `behind` that some bind allowed the peer to change */
static unsigned posted, received;
static uint32_t sends_in, reads_in; /* number of whole messages that the peer has sent */
static uint32_t message_off;        /* offset in the Send that the peer is sending */
static uint32_t atomics_in;         /* number of Atomic Responses */

static uint32_t
any_stag(struct fuzz_input *in)
{
	switch (fuzz_take_rest(in, 1) % 8) {
	case 5:
		return window[0]->mr.stag;
	case 6:
		return window[1]->mr.stag;
	case 0:
		return readable->stag;
	case 1:
		return local->stag;
	case 2:
		return (uint32_t)fuzz_take_rest(in, 4);
	default:
		return writable->stag;
	}
}

static uint64_t
any_address(struct fuzz_input *in)
{
	static const uint64_t bases[] = {0x20000, 0x30000, 0x50000, 0x10000};
	uint64_t kind = fuzz_take_rest(in, 1) % 5;

	return kind == 4 ? fuzz_take_rest(in, 8) : bases[kind] + fuzz_take_rest(in, 2) - 16;
}

/* Updates the fields that the next correct untagged segment must have. */
static void
count_segment(const struct wire_ddp *d, uint32_t len)
{
	if (d->qn == DDP_QN_READ) {
		reads_in++;
		return;
	}
	message_off = d->last ? 0 : message_off + len;
	if (d->last)
		sends_in++;
}

static void
peer_fpdu(struct fuzz_input *in)
{
	uint8_t body[1600], bits = (uint8_t)fuzz_take_rest(in, 1);
	struct wire_ddp d = {.opcode = bits & 15, .last = bits & 16, .tagged = bits & 32};
	uint32_t len = (uint32_t)fuzz_take_rest(in, 2) % sizeof(body);
	struct wire_read_request rr;

	memset(body, 0xee, sizeof(body));
	if (d.tagged) {
		d.stag = any_stag(in);
		d.to = any_address(in);
	} else {
		d.qn = bits & 64 ? (uint32_t)fuzz_take_rest(in, 1) : d.opcode == RDMAP_READ_REQUEST;
		d.msn = (d.qn == DDP_QN_READ ? reads_in : sends_in) + (bits & 128 ? 2u : 1u);
		d.mo = fuzz_take_rest(in, 1) % 8 ? message_off : (uint32_t)fuzz_take_rest(in, 2);
		d.inv_stag = any_stag(in);
		count_segment(&d, len);
	}
	if (d.opcode == RDMAP_READ_REQUEST) {
		rr = (struct wire_read_request){any_stag(in), any_address(in),
			(uint32_t)fuzz_take_rest(in, 2), any_stag(in), any_address(in)};
		wire_read_request_emit(body, &rr);
		len = RDMAP_READ_REQUEST_LEN;
	}
	end_fpdu(&e, &d, body, len);
}

static void
peer_response(struct fuzz_input *in)
{
	struct wire_ddp d = {.tagged = true, .opcode = RDMAP_READ_RESPONSE, .stag = local->stag};
	uint8_t body[600];

	memset(body, 0xdd, sizeof(body));
	d.to = local->base + RECEIVES + fuzz_take_rest(in, 1);
	d.last = fuzz_take_rest(in, 1) & 1;
	end_fpdu(&e, &d, body, (uint32_t)fuzz_take_rest(in, 2) % sizeof(body));
}

static void
peer_atomic(struct fuzz_input *in)
{
	struct wire_ddp d = {
		.last = true, .opcode = RDMAP_ATOMIC_REQUEST, .qn = DDP_QN_READ, .msn = ++reads_in};
	uint64_t at = fuzz_take_rest(in, 1) & 1 ? fuzz_take_rest(in, 2) % LEN
						: 8 * (fuzz_take_rest(in, 1) % 64);
	struct wire_atomic_request ar = {.op = (uint8_t)fuzz_take_rest(in, 1) % 4,
		.stag = fuzz_take_rest(in, 1) % 8 ? words->stag : any_stag(in),
		.to = words->base + at,
		.data = fuzz_take_rest(in, 2),
		.data_mask = fuzz_take_rest(in, 1) << 56 | fuzz_take_rest(in, 1) << 7,
		.compare_mask = fuzz_take_rest(in, 1)};
	uint8_t body[RDMAP_ATOMIC_REQUEST_LEN];

	if (at % 8 == 0)
		named[at / 8] = true;
	end_fpdu(&e, &d, body, wire_atomic_request_emit(body, &ar));
}

static void
peer_extension(struct fuzz_input *in)
{
	struct wire_atomic_response r = {.original = fuzz_take_rest(in, 2)};
	struct wire_ddp d = {.last = true, .opcode = RDMAP_ATOMIC_RESPONSE, .qn = DDP_QN_ATOMIC};
	uint8_t body[16], kind = (uint8_t)fuzz_take_rest(in, 1);
	uint32_t len;

	if (kind & 1) {
		peer_atomic(in);
		return;
	}
	if (kind & 2) {
		r.request_id = d.msn = ++atomics_in;
		len = wire_atomic_response_emit(body, &r);
	} else {
		d.opcode = kind & 4 ? RDMAP_IMMEDIATE : RDMAP_IMMEDIATE_SE;
		d.qn = DDP_QN_SEND;
		d.msn = ++sends_in;
		len = wire_immediate_emit(body, r.original);
	}
	end_fpdu(&e, &d, body, len - (kind == 8));
}

/* Chooses mostly valid binds, so that some succeed. */
static void
client_binds(struct fuzz_input *in, struct rd_wr *wr)
{
	uint64_t off = fuzz_take_rest(in, 2) % (LEN + 64), len = fuzz_take_rest(in, 2) % LEN;

	wr->rkey = (window[fuzz_take_rest(in, 1) & 1]->mr.stag & ~0xffu) |
		   (uint32_t)fuzz_take_rest(in, 1);
	wr->imm = fuzz_take_rest(in, 1) % 8 ? behind->stag : any_stag(in);
	wr->remote_addr = fuzz_take_rest(in, 1) % 8 ? behind->base + off : any_address(in);
	wr->data = len;
	wr->compare = fuzz_take_rest(in, 1) & (fuzz_take_rest(in, 1) % 8 ? 0x2e : 0xff);
	if (!(wr->compare & (RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_ATOMIC)))
		return;
	off = wr->remote_addr - behind->base;
	for (uint64_t i = off; i < off + len && i < LEN; i++)
		bound[i] = true;
}

static void
client_posts(struct fuzz_input *in)
{
	static const uint8_t opcodes[] = {RD_SEND, RD_SEND_INV, RD_WRITE, RD_READ, RD_READ_INV,
		RD_LOCAL_INV, RD_CMP_SWAP, RD_FETCH_ADD, RD_SWAP, RD_IMM, RD_WRITE_IMM, RD_SEND_IMM,
		RD_BIND_MW, RD_BIND_MW};
	struct rd_wr *wr;

	if (e.sq_tail - e.sq_head >= 60)
		return;
	wr = end_post(&e, opcodes[fuzz_take_rest(in, 1) % sizeof(opcodes)], posted++);
	wr->rkey = (uint32_t)fuzz_take_rest(in, 1);
	wr->flags |= (uint8_t)fuzz_take_rest(in, 1) & (RD_SOLICITED | RD_FENCE);
	wr->imm = fuzz_take_rest(in, 1) % 4 ? window[1]->mr.stag : any_stag(in);
	if (wr->opcode == RD_BIND_MW) {
		client_binds(in, wr);
		return;
	}
	if (wr->opcode == RD_CMP_SWAP || wr->opcode == RD_FETCH_ADD || wr->opcode == RD_SWAP) {
		wr_sge(wr, local, RECEIVES + fuzz_take_rest(in, 1), 8);
		return;
	}
	for (unsigned n = (unsigned)fuzz_take_rest(in, 1) % 3; n > 0; n--)
		wr_sge(wr, local, RECEIVES + fuzz_take_rest(in, 1),
			(uint32_t)fuzz_take_rest(in, 2) % 768);
}

static void
step(struct fuzz_input *in)
{
	uint8_t raw[64];
	unsigned n = 0;

	switch (fuzz_take_rest(in, 1) % 16) {
	case 0:
		for (; n < sizeof(raw) && in->at < in->len && (n == 0 || fuzz_take_rest(in, 1));
			n++)
			raw[n] = (uint8_t)fuzz_take_rest(in, 1);
		end_feed(&e, raw, n, 0, NULL);
		break;
	case 1:
	case 2:
	case 3:
		client_posts(in);
		break;
	case 4:
	case 5:
		if (e.rq_tail - e.rq_head < 60)
			wr_sge(end_recv(&e, received++), local, fuzz_take_rest(in, 1),
				(uint32_t)fuzz_take_rest(in, 2) % 768);
		break;
	case 6:
		peer_response(in);
		break;
	case 7:
		e.refuse_rec = (unsigned)fuzz_take_rest(in, 1) % 4;
		e.refuse_send = (unsigned)fuzz_take_rest(in, 1) % 4;
		iw_space(e.q, (uint32_t)fuzz_take_rest(in, 2));
		break;
	case 8:
		switch (fuzz_take_rest(in, 1)) {
		case 0:
			iw_disconnect(e.q, 0, IW_CLOSE_ORDERLY);
			break;
		case 1:
			iw_disconnect(e.q, 0, IW_CLOSE_ABORT);
			break;
		case 2:
			iw_peer_fin(e.q, 0);
			break;
		case 3:
			iw_closed(e.q, 0, 0);
			break;
		}
		break;
	case 9:
	case 10:
		end_tx(&e);
		break;
	case 11:
	case 12:
		peer_extension(in);
		break;
	default:
		peer_fpdu(in);
		break;
	}
}

static void
unchanged(const struct rd_mr *mr, uint8_t seed, uint32_t from)
{
	uint8_t got[LEN];

	mr_get(mr, 0, got, LEN);
	for (uint32_t i = from; i < LEN; i++)
		CLAIM(got[i] == pattern(seed, i));
}

static void
unnamed_unchanged(void)
{
	uint8_t got[LEN];

	mr_get(words, 0, got, LEN);
	for (uint32_t i = 0; i < LEN; i++)
		CLAIM(named[i / 8] || got[i] == pattern(4, i));
}

static void
unbound_unchanged(void)
{
	uint8_t got[LEN];

	mr_get(behind, 0, got, LEN);
	for (uint32_t i = 0; i < LEN; i++)
		CLAIM(bound[i] || got[i] == pattern(5, i));
	CLAIM((behind->windows & ~RD_MR_CLOSED) ==
		(unsigned)window[0]->mr.valid + window[1]->mr.valid);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {.p = data, .len = size};
	struct iw_params params = end_params();

	params.send_space = 1 + 100 * (int64_t)fuzz_take_rest(&in, 1);
	params.ird = params.ord = 1 + fuzz_take_rest(&in, 1) % 4;
	params.draft_ext = params.ird & 1;
	end_init(&e, &params, fuzz_take_rest(&in, 1) & 1);
	writable = end_mr(&e, 0x10000, LEN, RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE, 2, 1);
	readable = end_mr(&e, 0x20000, LEN, RD_ACC_REMOTE_READ, 1, 2);
	local = end_mr(&e, 0x30000, LEN, RD_ACC_LOCAL_WRITE, 3, 3);
	words = end_mr(&e, 0x40000, LEN, RD_ACC_REMOTE_ATOMIC, 1, 4);
	behind = end_mr(&e, 0x50000, LEN, RD_ACC_LOCAL_WRITE | RD_ACC_MW_BIND, 2, 5);
	window[0] = end_mw(&e, RD_MW_TYPE_1);
	window[1] = end_mw(&e, RD_MW_TYPE_2);
	memset(named, 0, sizeof(named));
	memset(bound, 0, sizeof(bound));
	atomics_in = 0;
	posted = received = 0;
	sends_in = reads_in = message_off = 0;
	while (in.at < in.len)
		step(&in);
	e.refuse_rec = e.refuse_send = 0;
	end_tx(&e);
	iw_closed(e.q, 0, 0);
	iw_flush(e.q, UINT32_MAX); /* flushes what was posted after the end */
	unchanged(readable, 2, 0);
	unchanged(local, 3, GRANTED);
	unnamed_unchanged();
	unbound_unchanged();
	CLAIM(e.nsend == posted && e.nrecv == received);
	for (unsigned i = 0; i < posted && i < END_WCS; i++)
		CLAIM(e.send_wc[i].wr_id == i);
	for (unsigned i = 0; i < received && i < END_WCS; i++)
		CLAIM(e.recv_wc[i].wr_id == i);
	CLAIM(e.rd.state == RD_QP_ERR && e.closes <= 1 && e.errors == 1);
	CLAIM(end_fini(&e));
	return 0;
}
