/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RFC 7306 between two connected QPs, and the bytes on the wire: Atomics, Immediate Data, Write
 * with Immediate, the draft's Swap. rdmap_ext_terminate.c tests refusals, rdmap_ext_order.c the
 * order.
 */
#include "rdmap_pair.h"

#include <criterion/criterion.h>
#include <string.h>

#define SOURCE RD_ACC_LOCAL_WRITE
#define TARGET                                                                                     \
	(RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_ATOMIC)
#define LEN 4096

static struct pair p;
static struct end *const a = &p.e[0], *const b = &p.e[1];
static struct rd_mr *ma, *mb;

static void
start(const struct iw_params *params)
{
	pair_init(&p, params, 7306);
	ma = end_mr(a, 0x10000, LEN, SOURCE, 1, 1);
	mb = end_mr(b, 0x20000, LEN, TARGET, 1, 2);
}

static void
finish(void)
{
	cr_assert_eq(a->errors, 0);
	cr_assert_eq(b->errors, 0);
	cr_assert(pair_fini(&p));
}

static uint64_t
word_get(const struct rd_mr *mr, uint64_t off)
{
	uint64_t v;

	mr_get(mr, off, &v, sizeof(v));
	return v;
}

static void
word_put(struct rd_mr *mr, uint64_t off, uint64_t v)
{
	mr_put(mr, off, &v, sizeof(v));
}

/* Returns an Atomic of `a` on the word at `off`, whose original value is stored at `sink`. */
static struct rd_wr *
atomic(uint8_t opcode, uint64_t wr_id, uint64_t off, uint64_t sink)
{
	struct rd_wr *wr = end_post(a, opcode, wr_id);

	wr_sge(wr, ma, sink, 8);
	wr->rkey = mb->stag;
	wr->remote_addr = mb->base + off;
	return wr;
}

static void
fetch_add(uint64_t wr_id, uint64_t off, uint64_t sink, uint64_t add, uint64_t mask)
{
	struct rd_wr *wr = atomic(RD_FETCH_ADD, wr_id, off, sink);

	wr->data = add;
	wr->data_mask = mask;
}

static void
cmp_swap(uint64_t wr_id, uint64_t off, uint64_t sink, uint64_t swap, uint64_t swap_mask,
	uint64_t compare, uint64_t compare_mask)
{
	struct rd_wr *wr = atomic(RD_CMP_SWAP, wr_id, off, sink);

	wr->data = swap;
	wr->data_mask = swap_mask;
	wr->compare = compare;
	wr->compare_mask = compare_mask;
}

/* ---- On the wire ---- */

static struct iw_params
draft(void)
{
	struct iw_params params = end_params();

	params.draft_ext = true;
	return params;
}

/* Compares the ULPDU of the next FPDU that `e` has sent with `want`. */
static void
expect_ulpdu(struct end *e, const uint8_t *want, uint32_t len, const char *name)
{
	uint8_t buf[256], body[256];
	struct wire_ddp d;
	uint32_t n, hdr;

	cr_assert(end_sent(e, &d, body, &n), "%s", name);
	hdr = wire_ddp_emit(buf, &d);
	memcpy(buf + hdr, body, n);
	cr_assert_eq(hdr + n, len, "%s: %u bytes", name, hdr + n);
	cr_assert_arr_eq(buf, want, len, "%s", name);
}

#define STAG(s) (uint8_t)((s) >> 24), (uint8_t)((s) >> 16), (uint8_t)((s) >> 8), (uint8_t)(s)
#define ONES    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff

Test(rdmap_ext, requests_known_answers_7306_5_2_1)
{
	struct iw_params params = draft();

	start(&params);
	fetch_add(1, 8, 0, 0x0102030405060708, 0x8000000000000000);
	cmp_swap(2, 16, 8, 0x11, 0x22, 0x33, 0x44);
	atomic(RD_SWAP, 3, 24, 16)->data = 0x55;
	end_tx(a);
	/* L, DV 1; RV 1, Atomic Request; no STag to invalidate; QN 1, MSN, MO 0; AOpCode; request
	 * identifier; STag; TO; data; mask; compare; compare mask */
	const uint8_t add[] = {0x41, 0x4a, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, /* DDP */
		0, 0, 0, 0, 0, 0, 0, 1, STAG(mb->stag), 0, 0, 0, 0, 0, 2, 0, 8, /* op, id, target */
		1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0, 0, 0, 0, 0, 0, 0,              /* add, mask */
		0, 0, 0, 0, 0, 0, 0, 0, ONES};
	const uint8_t cas[] = {0x41, 0x4a, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
		2, 0, 0, 0, 2, STAG(mb->stag), 0, 0, 0, 0, 0, 2, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0x11,
		0, 0, 0, 0, 0, 0, 0, 0x22, 0, 0, 0, 0, 0, 0, 0, 0x33, 0, 0, 0, 0, 0, 0, 0, 0x44};
	const uint8_t swap[] = {0x41, 0x4a, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
		1, 0, 0, 0, 3, STAG(mb->stag), 0, 0, 0, 0, 0, 2, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0x55,
		ONES, 0, 0, 0, 0, 0, 0, 0, 0, ONES};
	expect_ulpdu(a, add, sizeof(add), "FetchAdd");
	expect_ulpdu(a, cas, sizeof(cas), "CmpSwap");
	expect_ulpdu(a, swap, sizeof(swap), "Swap");
	finish();
}

/* The value is big-endian on the wire, whatever the memory's byte order is; the identifier is
 * returned unchanged. */
Test(rdmap_ext, response_known_answer_7306_5_2_2)
{
	static const uint8_t want[] = {0x41, 0x4b, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0,
		0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4, 5, 6, 7, 8};
	struct wire_ddp d = {
		.last = true, .opcode = RDMAP_ATOMIC_REQUEST, .qn = DDP_QN_READ, .msn = 1};
	struct wire_atomic_request ar = {.request_id = 0xdeadbeef, .to = 0x20008, .data = 1};
	uint8_t body[RDMAP_ATOMIC_REQUEST_LEN];

	start(NULL);
	word_put(mb, 8, 0x0102030405060708);
	ar.stag = mb->stag;
	wire_atomic_request_emit(body, &ar);
	end_fpdu(b, &d, body, sizeof(body));
	end_tx(b);
	expect_ulpdu(b, want, sizeof(want), "response");
	cr_assert_eq(word_get(mb, 8), 0x0102030405060709);
	finish();
}

/* Reserved bits of the operation and the STag field of the header are ignored (4.1, 5.2.1). */
Test(rdmap_ext, what_is_reserved_is_ignored_7306_4_1)
{
	struct wire_ddp d = {.last = true,
		.opcode = RDMAP_ATOMIC_REQUEST,
		.qn = DDP_QN_READ,
		.msn = 1,
		.inv_stag = 0xffffffff};
	struct wire_atomic_request ar = {.to = 0x20000, .data = 5};
	uint8_t body[RDMAP_ATOMIC_REQUEST_LEN];

	start(NULL);
	word_put(mb, 0, 1);
	ar.stag = mb->stag;
	wire_atomic_request_emit(body, &ar);
	memset(body, 0xff, 3);
	body[3] |= 0xf0;
	end_fpdu(b, &d, body, sizeof(body));
	end_tx(b);
	cr_assert_eq(word_get(mb, 0), 6);
	finish();
}

Test(rdmap_ext, immediate_known_answers_7306_6_2)
{
	static const uint8_t plain[] = {
		0x41, 0x48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
	static const uint8_t se[] = {0x41, 0x49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0,
		0, 0, 0, 0xca, 0xfe, 0xba, 0xbe};
	struct rd_wr *wr;

	start(NULL);
	end_post(a, RD_IMM, 1)->imm = 0x0102030405060708;
	wr = end_post(a, RD_IMM, 2);
	wr->imm = 0xcafebabe;
	wr->flags |= RD_SOLICITED;
	end_tx(a);
	expect_ulpdu(a, plain, sizeof(plain), "Immediate Data");
	expect_ulpdu(a, se, sizeof(se), "Immediate Data with SE");
	finish();
}

/* ---- Atomics ---- */

/* One word, random operations, a model, and several requests outstanding at once. The tests of
 * lib/rdma check the bits of a masked add; the fields here are bytes. */
static uint64_t
add_bytes(uint64_t v, uint64_t add)
{
	uint64_t sum = 0;

	for (int i = 0; i < 64; i += 8)
		sum |= (((v >> i) + (add >> i)) & 0xff) << i;
	return sum;
}

Test(rdmap_ext, each_operation_returns_what_was_there_7306_5_1)
{
	uint64_t want[64], v = 0x0123456789abcdef, rng = 42;

	struct iw_info info;

	start(NULL);
	word_put(mb, 64, v);
	for (unsigned round = 0; round < 20; round++) {
		unsigned before = a->nsend;

		for (unsigned i = 0; i < 64; i++) {
			uint64_t x = rng_next(&rng), y = rng_next(&rng);

			want[i] = v;
			switch (rng_below(&rng, 4)) {
			case 0:
				fetch_add(i, 64, 8 * i, x, 0);
				v += x;
				break;
			case 1:
				fetch_add(i, 64, 8 * i, x, 0x8080808080808080);
				v = add_bytes(v, x);
				break;
			case 2:
				cmp_swap(i, 64, 8 * i, x, y, v, ~0ull);
				v = (v & ~y) | (x & y);
				break;
			default:
				cmp_swap(i, 64, 8 * i, x, y, ~v, 1);
				break;
			}
		}
		cr_assert(pair_run(&p));
		cr_assert_eq(a->nsend, before + 64);
		for (unsigned i = 0; i < 64; i++) {
			const struct rd_wc *wc = &a->send_wc[before + i];

			cr_assert(wc->wr_id == i && wc->status == RD_SUCCESS && wc->byte_len == 8);
			cr_assert_eq(word_get(ma, 8 * i), want[i], "operation %u", i);
		}
		cr_assert_eq(word_get(mb, 64), v);
	}
	iw_get_info(a->q, &info);
	cr_assert_eq(info.msgs_in, 20 * 64, "the responses");
	cr_assert_eq(info.bytes_in, 20 * 64 * 8);
	finish();
}

/* Only the word and the sink may change. */
Test(rdmap_ext, only_the_target_and_the_sink_change_7306_5)
{
	uint8_t got;

	start(NULL);
	word_put(mb, 256, 0);
	fetch_add(1, 256, 512, ~0ull, 0);
	cr_assert(pair_run(&p));
	cr_assert_eq(word_get(mb, 256), ~0ull);
	cr_assert_eq(word_get(ma, 512), 0);
	for (unsigned i = 0; i < LEN; i++) {
		mr_get(mb, i, &got, 1);
		cr_assert(i / 8 == 32 || got == pattern(2, i), "target %u", i);
		mr_get(ma, i, &got, 1);
		cr_assert(i / 8 == 64 || got == pattern(1, i), "sink %u", i);
	}
	finish();
}

/* The region's base is odd, and so are the tagged offsets, but the addresses behind them are
 * aligned (5.2.1). A region in several extents works as well. */
Test(rdmap_ext, the_tagged_offset_may_be_odd_7306_5_2_1)
{
	struct rd_mr *odd;

	start(NULL);
	odd = end_mr(b, 0x30001, 64, TARGET, 2, 3);
	word_put(odd, 40, 7);
	mb = odd;
	fetch_add(1, 40, 0, 1, 0);
	cr_assert(pair_run(&p));
	cr_assert_eq(word_get(odd, 40), 8);
	finish();
}

/* ORD limits the number of Reads and Atomics together (5.2). */
Test(rdmap_ext, atomics_and_reads_share_ord_7306_5_2)
{
	struct iw_params params = end_params();
	uint8_t body[128];
	struct wire_ddp d;
	struct rd_wr *wr;
	uint32_t n;

	params.ord = 2;
	start(&params);
	wr = end_post(a, RD_READ, 1);
	wr_sge(wr, ma, 0, 8);
	wr->rkey = mb->stag;
	wr->remote_addr = mb->base;
	fetch_add(2, 0, 8, 1, 0);
	fetch_add(3, 0, 16, 1, 0);
	end_tx(a);
	cr_assert(end_sent(a, &d, body, &n) && d.opcode == RDMAP_READ_REQUEST && d.msn == 1);
	cr_assert(end_sent(a, &d, body, &n) && d.opcode == RDMAP_ATOMIC_REQUEST && d.msn == 2);
	cr_assert_not(end_sent(a, &d, body, &n), "ORD is 2");
	finish();
}

/* A response is identified by its message sequence number, which counts Atomics only, while
 * requests share theirs with Reads (5). */
Test(rdmap_ext, responses_complete_by_msn_7306_5)
{
	struct wire_ddp d = {.last = true, .opcode = RDMAP_ATOMIC_RESPONSE, .qn = DDP_QN_ATOMIC};
	uint8_t body[RDMAP_ATOMIC_RESPONSE_LEN];
	struct wire_ddp out;
	uint8_t sent[128];
	uint32_t n;

	start(NULL);
	for (uint32_t i = 0; i < 3; i++)
		fetch_add(i, 0, 8 * i, 1, 0);
	end_tx(a);
	for (uint32_t i = 1; i <= 3; i++) {
		struct wire_atomic_request ar;
		struct wire_atomic_response r = {.original = 1000 + i};

		cr_assert(end_sent(a, &out, sent, &n));
		cr_assert(wire_atomic_request_parse(&ar, sent, n) > 0);
		r.request_id = ar.request_id;
		wire_atomic_response_emit(body, &r);
		d.msn = i;
		cr_assert_eq(a->nsend, i - 1, "not completed before the response has come (5.4)");
		end_fpdu(a, &d, body, sizeof(body));
		cr_assert_eq(a->nsend, i);
		cr_assert_eq(word_get(ma, 8 * (i - 1)), 1000 + i);
	}
	finish();
}

Test(rdmap_ext, a_fence_waits_for_atomics)
{
	uint8_t body[128];
	struct wire_ddp d;
	struct rd_wr *wr;
	uint32_t n;

	start(NULL);
	fetch_add(1, 0, 0, 1, 0);
	wr = end_post(a, RD_WRITE, 2);
	wr_sge(wr, ma, 0, 8);
	wr->flags |= RD_FENCE;
	wr->rkey = mb->stag;
	wr->remote_addr = mb->base;
	end_tx(a);
	cr_assert(end_sent(a, &d, body, &n) && d.opcode == RDMAP_ATOMIC_REQUEST);
	cr_assert_not(end_sent(a, &d, body, &n));
	finish();
}

/* An unsignaled Atomic completes without a completion and still frees its place in ORD. */
Test(rdmap_ext, an_unsignalled_atomic_leaves_no_completion)
{
	start(NULL);
	word_put(mb, 0, 0);
	for (unsigned i = 0; i < 50; i++)
		atomic(RD_FETCH_ADD, i, 0, 0)->flags = 0;
	for (unsigned i = 1; i <= 50; i++)
		a->sq[a->sq_tail - i].data = 2;
	cr_assert(pair_run(&p));
	cr_assert_eq(a->nsend, 0);
	cr_assert_eq(word_get(mb, 0), 100);
	finish();
}

/* A sink must have 8 bytes in one writable element; otherwise nothing is sent. */
Test(rdmap_ext, a_bad_sink_is_refused_before_anything_is_sent_7306_8_1)
{
	for (int row = 0; row < 4; row++) {
		struct rd_wr *wr;
		uint64_t before;

		start(NULL);
		before = word_get(mb, 0);
		wr = atomic(RD_FETCH_ADD, 1, 0, 0);
		wr->data = 1;
		if (row == 0)
			wr->sge[0].len = 7;
		if (row == 1)
			wr->sge[0].len = 16;
		if (row == 2)
			wr->nsge = 0;
		if (row == 3)
			ma->access = 0;
		cr_assert(pair_run(&p));
		cr_assert_eq(a->nsend, 1);
		cr_assert_eq(a->send_wc[0].status, row == 3 ? RD_LOC_PROT_ERR : RD_LOC_LEN_ERR,
			"row %d", row);
		cr_assert_eq(word_get(mb, 0), before);
		cr_assert(b->st.counters[IW_TERMINATE_IN] == 1);
		cr_assert(pair_fini(&p));
	}
}

/* ---- The draft ---- */

Test(rdmap_ext, swap_in_the_draft_s_dialect_draft_5_1_2)
{
	struct iw_params params = draft();

	start(&params);
	word_put(mb, 0, 11);
	atomic(RD_SWAP, 1, 0, 0)->data = 22;
	atomic(RD_SWAP, 2, 0, 8)->data = 33;
	cr_assert(pair_run(&p));
	cr_assert_eq(word_get(ma, 0), 11);
	cr_assert_eq(word_get(ma, 8), 22);
	cr_assert_eq(word_get(mb, 0), 33);
	cr_assert(a->nsend == 2 && a->send_wc[1].opcode == RD_SWAP);
	finish();
}

Test(rdmap_ext, swap_is_not_sent_by_default_7306_10_1)
{
	start(NULL);
	atomic(RD_SWAP, 1, 0, 0)->data = 22;
	cr_assert(pair_run(&p));
	cr_assert_eq(a->send_wc[0].status, RD_LOC_QP_OP_ERR);
	cr_assert_eq(word_get(mb, 0) == 22, false);
	cr_assert(pair_fini(&p));
}

/* ---- Immediate Data ---- */

Test(rdmap_ext, immediate_data_takes_a_receive_and_nothing_of_it_7306_6)
{
	struct rd_wr *wr;
	uint8_t got;

	start(NULL);
	for (unsigned i = 0; i < 3; i++)
		wr_sge(end_recv(b, i), mb, 0, 100);
	end_post(a, RD_IMM, 10)->imm = 0x0102030405060708;
	wr = end_post(a, RD_IMM, 11);
	wr->imm = 0xffffffff;
	wr->flags |= RD_SOLICITED;
	cr_assert(pair_run(&p));
	cr_assert_eq(b->nrecv, 2);
	for (unsigned i = 0; i < 2; i++) {
		const struct rd_wc *wc = &b->recv_wc[i];

		cr_assert(wc->wr_id == i && wc->status == RD_SUCCESS && wc->qpn == b->rd.qpn);
		cr_assert_eq(wc->opcode, RD_RECV_IMM);
		cr_assert_eq(wc->flags, i ? RD_WC_IMM | RD_WC_SOLICITED : RD_WC_IMM);
		cr_assert_eq(wc->byte_len, 0);
		cr_assert_eq(wc->imm, i ? 0xffffffff : 0x0102030405060708);
		cr_assert(a->send_wc[i].wr_id == 10 + i && a->send_wc[i].opcode == RD_IMM);
	}
	for (unsigned i = 0; i < LEN; i++) {
		mr_get(mb, i, &got, 1);
		cr_assert_eq(got, pattern(2, i));
	}
	finish();
}

/* One request has one completion at either end. The bytes are in memory before the receive
 * completes, and the completion contains their number (1, 6). */
Test(rdmap_ext, write_with_immediate_7306_1)
{
	static const uint32_t lengths[] = {0, 1, 64, 1400, 1500, 4000};

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		uint32_t len = lengths[i];
		struct rd_wr *wr;
		uint8_t got;

		start(NULL);
		end_recv(b, 5);
		wr = end_post(a, RD_WRITE_IMM, 6);
		if (len > 0)
			wr_sge(wr, ma, 10, len);
		wr->rkey = mb->stag;
		wr->remote_addr = mb->base + 20;
		wr->imm = 0x1234;
		wr->flags |= RD_SOLICITED;
		cr_assert(pair_run(&p));
		cr_assert_eq(a->nsend, 1, "%u bytes", len);
		cr_assert(a->send_wc[0].opcode == RD_WRITE_IMM && a->send_wc[0].byte_len == len);
		cr_assert_eq(b->nrecv, 1);
		cr_assert_eq(b->recv_wc[0].opcode, RD_RECV_IMM);
		cr_assert_eq(b->recv_wc[0].byte_len, len, "%u bytes", len);
		cr_assert_eq(b->recv_wc[0].imm, 0x1234);
		cr_assert_eq(b->recv_wc[0].flags, RD_WC_IMM | RD_WC_SOLICITED);
		for (unsigned k = 0; k < len; k++) {
			mr_get(mb, 20 + k, &got, 1);
			cr_assert_eq(got, pattern(1, 10 + k));
		}
		finish();
	}
}

/* Immediate Data within a Write does not end the Write, so its completion reports no bytes. */
Test(rdmap_ext, immediate_data_within_a_write_has_no_length)
{
	struct wire_ddp write = {.tagged = true, .opcode = RDMAP_WRITE};
	struct wire_ddp imm = {
		.last = true, .opcode = RDMAP_IMMEDIATE, .qn = DDP_QN_SEND, .msn = 1};
	static const uint8_t body[64];

	start(NULL);
	write.stag = mb->stag;
	write.to = mb->base;
	for (unsigned i = 0; i < 3; i++)
		end_recv(b, i);
	end_fpdu(b, &write, body, 64);
	end_fpdu(b, &imm, body, RDMAP_IMMEDIATE_LEN);
	write.last = true;
	write.to += 64;
	end_fpdu(b, &write, body, 32);
	imm.msn++;
	end_fpdu(b, &imm, body, RDMAP_IMMEDIATE_LEN);
	imm.msn++;
	end_fpdu(b, &imm, body, RDMAP_IMMEDIATE_LEN);
	cr_assert_eq(b->nrecv, 3);
	cr_assert_eq(b->recv_wc[0].byte_len, 0);
	cr_assert_eq(b->recv_wc[2].byte_len, 0);
	cr_assert(pair_fini(&p));
}

/* The Immediate Data follows the Write without a message between, though a Read of the peer
 * waits. */
Test(rdmap_ext, nothing_stands_between_a_write_and_its_immediate)
{
	struct iw_params params = end_params();
	uint8_t body[1500], opcodes[8];
	struct wire_ddp d;
	struct rd_wr *wr;
	unsigned n = 0;
	uint32_t len;

	start(&params);
	wr = end_post(b, RD_READ, 1);
	wr_sge(wr, mb, 0, 8);
	wr->rkey = ma->stag;
	wr->remote_addr = ma->base;
	ma->access |= RD_ACC_REMOTE_READ;
	wr = end_post(a, RD_WRITE_IMM, 2);
	wr_sge(wr, ma, 0, 3000);
	wr->rkey = mb->stag;
	wr->remote_addr = mb->base;
	cr_assert_eq(iw_tx(a->q, 0, 1), IW_TX_MORE);
	end_feed(b, a->wire, a->wire_len, 0, NULL);
	end_tx(b);
	end_feed(a, b->wire, b->wire_len, 0, NULL);
	for (int i = 0; i < 20; i++) /* a budget of one, so that each call makes one choice */
		iw_tx(a->q, 0, 1);
	while (n < 8 && end_sent(a, &d, body, &len))
		opcodes[n++] = d.opcode;
	cr_assert_eq(n, 5);
	cr_assert_arr_eq(opcodes,
		((uint8_t[]){RDMAP_WRITE, RDMAP_WRITE, RDMAP_WRITE, RDMAP_IMMEDIATE,
			RDMAP_READ_RESPONSE}),
		5);
	b->wire_len = 0;
	finish();
}

/* ---- A peer without the extensions (1.1) ---- */

static void
terminate_in(bool quote, uint32_t msn)
{
	struct wire_ddp d = {
		.last = true, .opcode = RDMAP_TERMINATE, .qn = DDP_QN_TERMINATE, .msn = 1};
	struct wire_ddp at = {
		.last = true, .opcode = RDMAP_ATOMIC_REQUEST, .qn = DDP_QN_READ, .msn = msn};
	struct wire_terminate t = {.etype = 2, .code = 6, .m = quote, .d = quote};
	uint8_t body[RDMAP_TERMINATE_MAX];

	t.ddp_seg_len = 70;
	t.ddp_len = (uint8_t)wire_ddp_emit(t.ddp_header, &at);
	end_fpdu(a, &d, body, wire_terminate_emit(body, &t));
}

/* The Atomic that the peer does not support completes with that status; all other requests are
 * flushed. */
Test(rdmap_ext, a_peer_that_lacks_atomics_is_distinguished_7306_1_1)
{
	for (int quote = 0; quote < 2; quote++) {
		struct rd_wr *wr;

		start(NULL);
		wr = end_post(a, RD_READ, 1);
		wr_sge(wr, ma, 0, 8);
		fetch_add(2, 0, 8, 0, 0);
		fetch_add(3, 0, 8, 0, 0);
		end_tx(a);
		terminate_in(quote, 2);
		cr_assert_eq(a->nsend, 3);
		cr_assert_eq(a->send_wc[0].status, RD_WR_FLUSH_ERR);
		cr_assert_eq(a->send_wc[1].status, RD_REM_INV_REQ_ERR, "quote %d", quote);
		cr_assert_eq(a->send_wc[2].status, RD_WR_FLUSH_ERR);
		cr_assert_eq(word_get(ma, 8) == 0, false);
		cr_assert(pair_fini(&p));
	}
}

/* A FetchAdd of 0 detects Atomics and changes nothing (1.1). */
Test(rdmap_ext, fetch_add_of_0_is_a_question_7306_1_1)
{
	uint64_t before;

	start(NULL);
	before = word_get(mb, 0);
	fetch_add(1, 0, 0, 0, 0);
	cr_assert(pair_run(&p));
	cr_assert_eq(a->send_wc[0].status, RD_SUCCESS);
	cr_assert_eq(word_get(ma, 0), before);
	cr_assert_eq(word_get(mb, 0), before);
	finish();
}
