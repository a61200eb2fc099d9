/* SPDX-License-Identifier: BSD-3-Clause */
/* Each operation of RFC 5040 from end to end, with a comparison of all bytes of the regions. */
#include "rdmap_pair.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define REMOTE (RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_WRITE)
#define LEN    200000

static struct pair p;
static struct end *const a = &p.e[0], *const b = &p.e[1];
static struct rd_mr *ma, *mb; /* a region on each end, filled with patterns 1 and 2 */

static void
start(const struct iw_params *params, unsigned extents)
{
	pair_init(&p, params, 42);
	ma = end_mr(a, 0x7f0000001003, LEN, REMOTE, extents, 1);
	mb = end_mr(b, 0, LEN, REMOTE, extents, 2);
}

static void
finish(void)
{
	cr_assert(pair_run(&p));
	cr_assert_eq(a->errors, 0);
	cr_assert_eq(b->errors, 0);
	cr_assert(pair_fini(&p));
}

/* Checks that exactly [off, off + len) of `mr` contains the bytes of pattern `from` at `src`, and
 * that all other bytes contain the region's own pattern. */
static void
expect(const struct rd_mr *mr, uint8_t own, uint64_t off, uint32_t len, uint8_t from, uint64_t src)
{
	uint8_t *got = malloc(mr->len);

	mr_get(mr, 0, got, mr->len);
	for (uint64_t i = 0; i < mr->len; i++) {
		uint8_t want =
			i >= off && i - off < len ? pattern(from, src + i - off) : pattern(own, i);

		cr_assert_eq(got[i], want, "byte %lu: %u, not %u", i, got[i], want);
	}
	free(got);
}

static const uint32_t sizes[] = {
	1, 3, 4, 7, 8, 63, 64, 1000, 1428, 1429, 1430, 1433, 8192, 65536, 150001};

Test(rdmap_ops, write_places_exactly_its_bytes_rfc5040_5_1)
{
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct rd_wr *wr;

		start(NULL, 1 + i % 3);
		wr = end_post(a, RD_WRITE, 77);
		wr_sge(wr, ma, 5, sizes[i]);
		wr->rkey = mb->stag;
		wr->remote_addr = mb->base + 1001;
		cr_assert(pair_run(&p));
		cr_assert_eq(a->nsend, 1);
		cr_assert_eq(a->send_wc[0].status, RD_SUCCESS);
		cr_assert_eq(a->send_wc[0].wr_id, 77);
		cr_assert_eq(a->send_wc[0].opcode, RD_WRITE);
		cr_assert_eq(a->send_wc[0].byte_len, sizes[i]);
		cr_assert_eq(a->send_wc[0].vendor_err, 0);
		cr_assert_eq(b->nrecv, 0);
		cr_assert_leq(a->longest_record, 1448);
		expect(mb, 2, 1001, sizes[i], 1, 5);
		expect(ma, 1, 0, 0, 0, 0);
		finish();
	}
}

Test(rdmap_ops, read_fetches_exactly_its_bytes_rfc5040_5_2)
{
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct rd_wr *wr;

		start(NULL, 1 + i % 3);
		wr = end_post(a, RD_READ, 78);
		wr_sge(wr, ma, 11, sizes[i]);
		wr->rkey = mb->stag;
		wr->remote_addr = mb->base + 13;
		cr_assert(pair_run(&p));
		cr_assert_eq(a->nsend, 1);
		cr_assert_eq(a->send_wc[0].status, RD_SUCCESS);
		cr_assert_eq(a->send_wc[0].opcode, RD_READ);
		cr_assert_eq(a->send_wc[0].byte_len, sizes[i]);
		cr_assert_eq(a->send_wc[0].vendor_err, 0);
		expect(ma, 1, 11, sizes[i], 2, 13);
		expect(mb, 2, 0, 0, 0, 0);
		finish();
	}
}

Test(rdmap_ops, send_fills_a_receive_rfc5040_5_3)
{
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct rd_wr *wr;

		start(NULL, 1 + i % 3);
		wr_sge(end_recv(b, 5), mb, 100, sizes[i] + 10);
		wr = end_post(a, RD_SEND, 79);
		wr_sge(wr, ma, 17, sizes[i]);
		cr_assert(pair_run(&p));
		cr_assert_eq(a->nsend, 1);
		cr_assert_eq(a->send_wc[0].status, RD_SUCCESS);
		cr_assert_eq(b->nrecv, 1);
		cr_assert_eq(b->recv_wc[0].status, RD_SUCCESS);
		cr_assert_eq(b->recv_wc[0].opcode, RD_RECV);
		cr_assert_eq(b->recv_wc[0].wr_id, 5);
		cr_assert_eq(b->recv_wc[0].byte_len, sizes[i]);
		cr_assert_eq(b->recv_wc[0].flags, 0);
		expect(mb, 2, 100, sizes[i], 1, 17);
		finish();
	}
}

Test(rdmap_ops, solicited_and_invalidating_sends_rfc5040_5_3)
{
	static const struct {
		uint8_t opcode, flags, wc_flags;
	} rows[] = {
		{RD_SEND, 0, 0},
		{RD_SEND, RD_SOLICITED, RD_WC_SOLICITED},
		{RD_SEND_INV, 0, RD_WC_INV},
		{RD_SEND_INV, RD_SOLICITED, RD_WC_INV | RD_WC_SOLICITED},
	};

	for (unsigned i = 0; i < 4; i++) {
		struct rd_mr *victim;
		struct rd_wr *wr;
		bool inv = rows[i].wc_flags & RD_WC_INV;

		start(NULL, 1);
		victim = end_mr(b, 0x5000, 64, RD_ACC_REMOTE_READ, 1, 3);
		wr_sge(end_recv(b, 5), mb, 0, 3000);
		wr = end_post(a, rows[i].opcode, 1);
		wr->flags |= rows[i].flags;
		wr->imm = victim->stag;
		wr_sge(wr, ma, 0, 3000);
		cr_assert(pair_run(&p));
		cr_assert_eq(b->nrecv, 1);
		cr_assert_eq(b->recv_wc[0].flags, rows[i].wc_flags, "row %u", i);
		cr_assert_eq(b->recv_wc[0].inv_stag, inv ? victim->stag : 0, "row %u", i);
		cr_assert_eq(victim->valid, !inv, "row %u", i);
		cr_assert_eq(a->send_wc[0].opcode, rows[i].opcode);
		expect(mb, 2, 0, 3000, 1, 0);
		finish();
	}
}

Test(rdmap_ops, zero_length_messages_need_no_stag_rfc5040_5)
{
	struct rd_wr *wr;

	start(NULL, 1);
	end_recv(b, 5);
	wr = end_post(a, RD_SEND, 1);
	wr = end_post(a, RD_WRITE, 2);
	wr->rkey = 0xdeadbeef;
	wr->remote_addr = ~0ull;
	wr = end_post(a, RD_READ, 3);
	wr->rkey = 0xdeadbeef;
	wr = end_post(a, RD_READ, 4);
	wr_sge(wr, ma, 5, 0);
	cr_assert(pair_run(&p));
	cr_assert_eq(a->nsend, 4);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(a->send_wc[i].wr_id, i + 1);
		cr_assert_eq(a->send_wc[i].status, RD_SUCCESS);
		cr_assert_eq(a->send_wc[i].byte_len, 0);
	}
	cr_assert_eq(b->nrecv, 1);
	cr_assert_eq(b->recv_wc[0].byte_len, 0);
	expect(mb, 2, 0, 0, 0, 0);
	expect(ma, 1, 0, 0, 0, 0);
	finish();
}

/* Elements of all lengths, some of them empty, are gathered on one side and scattered on the
 * other. */
Test(rdmap_ops, gather_and_scatter)
{
	static const uint32_t out[] = {7, 0, 1400, 64, 3001, 0}, in[] = {0, 100, 4000, 1, 0, 400};
	struct rd_wr *wr, *rr;
	uint64_t at = 0, from = 0;
	uint8_t want[4472], got[4472];

	start(NULL, 3);
	wr = end_post(a, RD_SEND, 1);
	rr = end_recv(b, 2);
	for (unsigned i = 0; i < 6; i++) {
		wr_sge(wr, ma, from + 10, out[i]);
		for (uint32_t k = 0; k < out[i]; k++)
			want[at++] = pattern(1, from + 10 + k);
		from += 5000;
	}
	cr_assert_eq(at, sizeof(want));
	for (unsigned i = 0; i < 6; i++)
		wr_sge(rr, mb, 10000 * i, in[i]);
	cr_assert(pair_run(&p));
	cr_assert_eq(b->nrecv, 1);
	cr_assert_eq(b->recv_wc[0].byte_len, sizeof(want));
	mr_get(mb, 10000, got, 100);
	mr_get(mb, 20000, got + 100, 4000);
	mr_get(mb, 30000, got + 4100, 1);
	mr_get(mb, 50000, got + 4101, 371);
	cr_assert_arr_eq(got, want, sizeof(want));
	mr_get(mb, 50371, got, 1);
	cr_assert_eq(got[0], pattern(2, 50371));
	finish();
}

/* An RFC 5040 Read Request has one sink: more elements cause more Read Requests, and one
 * completion. */
Test(rdmap_ops, a_read_into_several_elements_completes_once)
{
	static const uint32_t len[] = {100, 0, 5000, 1, 0};
	uint64_t off = 0;
	struct rd_wr *wr;

	start(NULL, 1);
	wr = end_post(a, RD_READ, 1);
	for (unsigned i = 0; i < 5; i++)
		wr_sge(wr, ma, 10000 * i, len[i]);
	wr->rkey = mb->stag;
	wr->remote_addr = 33;
	end_post(a, RD_READ, 2)->flags = RD_SIGNALED;
	cr_assert(pair_run(&p));
	cr_assert_eq(a->nsend, 2);
	cr_assert_eq(a->send_wc[0].wr_id, 1);
	cr_assert_eq(a->send_wc[0].byte_len, 5101);
	cr_assert_eq(a->send_wc[1].wr_id, 2);
	for (unsigned i = 0; i < 5; i++) {
		for (uint32_t k = 0; k < len[i]; k++) {
			uint8_t got;

			mr_get(ma, 10000 * i + k, &got, 1);
			cr_assert_eq(got, pattern(2, 33 + off + k), "element %u byte %u", i, k);
		}
		off += len[i];
	}
	finish();
}

Test(rdmap_ops, inline_data_is_the_request_s_own)
{
	struct rd_wr *wr;
	uint8_t got[RD_MAX_INLINE];

	start(NULL, 1);
	wr = end_post(a, RD_WRITE, 1);
	wr->flags |= RD_INLINE;
	wr->inline_len = RD_MAX_INLINE;
	for (unsigned i = 0; i < RD_MAX_INLINE; i++)
		wr->inl[i] = pattern(9, i);
	wr->rkey = mb->stag;
	wr->remote_addr = 50;
	wr_sge(end_recv(b, 5), mb, 1000, 100);
	wr = end_post(a, RD_SEND, 2);
	wr->flags |= RD_INLINE;
	wr->inline_len = 5;
	memcpy(wr->inl, "inl-s", 5);
	cr_assert(pair_run(&p));
	cr_assert_eq(a->nsend, 2);
	mr_get(mb, 50, got, RD_MAX_INLINE);
	for (unsigned i = 0; i < RD_MAX_INLINE; i++)
		cr_assert_eq(got[i], pattern(9, i), "byte %u", i);
	cr_assert_eq(b->nrecv, 1);
	cr_assert_eq(b->recv_wc[0].byte_len, 5);
	mr_get(mb, 1000, got, 5);
	cr_assert_arr_eq(got, "inl-s", 5);
	finish();
}

/* A request with one element takes the fast path, one with an empty second element the general
 * path: the bytes on the wire are the same. */
Test(rdmap_ops, the_fast_way_sends_the_same_bytes_as_the_general_one)
{
	static const uint8_t opcodes[] = {RD_WRITE, RD_SEND};

	for (unsigned k = 0; k < 16; k++) {
		for (uint32_t n = 1; n < 1428; n += n < 80 ? 1 : 131) {
			struct iw_params params = end_params();
			struct end fast, slow;
			struct end *both[] = {&fast, &slow};

			params.crc = k & 2;
			for (int i = 0; i < 2; i++) {
				struct rd_mr *mr;
				struct rd_wr *wr;

				end_init(both[i], &params, true);
				mr = end_mr(both[i], 77, 2000, 0, 1, 1);
				for (int twice = 0; twice < 2; twice++) {
					wr = end_post(both[i], opcodes[k & 1], 1);
					wr->flags = (k & 4 ? RD_SOLICITED : 0) |
						    (k & 8 ? RD_SIGNALED : 0);
					wr->rkey = 0x89abcdef;
					wr->remote_addr = 0x0123456789abcdefull;
					wr_sge(wr, mr, 3, n);
					if (i)
						wr_sge(wr, mr, 0, 0);
				}
				end_tx(both[i]);
			}
			cr_assert_eq(fast.wire_len, slow.wire_len, "%u: %u bytes", k, n);
			cr_assert_arr_eq(fast.wire, slow.wire, fast.wire_len, "%u: %u bytes", k, n);
			cr_assert_eq(fast.nsend, k & 8 ? 2 : 0);
			cr_assert_eq(fast.nsend, slow.nsend);
			cr_assert(end_fini(&fast));
			cr_assert(end_fini(&slow));
		}
	}
}
