/* SPDX-License-Identifier: BSD-3-Clause */
/* Each operation of RFC 5040 from end to end, every byte of the regions compared. */
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

/* Exactly [off, off + len) of `mr` holds the bytes of pattern `from` at `src`; all else its own
 * pattern. */
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

Test(rdmap_ops, write_places_exactly_its_bytes_rfc5040_3_1)
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
		cr_assert_eq(b->nrecv, 0);
		cr_assert_leq(a->longest_record, 1448);
		expect(mb, 2, 1001, sizes[i], 1, 5);
		expect(ma, 1, 0, 0, 0, 0);
		finish();
	}
}

Test(rdmap_ops, read_fetches_exactly_its_bytes_rfc5040_3_2)
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
		expect(ma, 1, 11, sizes[i], 2, 13);
		expect(mb, 2, 0, 0, 0, 0);
		finish();
	}
}

Test(rdmap_ops, send_fills_a_receive_rfc5040_3_3)
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
