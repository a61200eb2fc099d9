/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows and local invalidates: they are executed in the order of the send queue, and apply
 * to the peer's next request.
 */
#include "pair.h"

#include <criterion/criterion.h>
#include <string.h>

static struct pair p;
static struct rd_mw mw;

static void
start(uint8_t ordering, enum rd_mw_type type)
{
	struct rof_chan_params cp = {.ordering = ordering, .errors = ROF_ERRORS_COMPLETE};

	pair_init(&p, &cp, 6);
	memset(p.e[0].mem, 0x11, END_MEM);
	rd_mw_init(&mw, &p.e[1].pd, type);
	cr_assert_eq(rd_mr_add(p.e[1].mrs, &mw.mr, 3), 0);
}

static void
stop(void)
{
	rd_mw_fini(&mw);
	rd_mr_del(p.e[1].mrs, &mw.mr);
	cr_assert(pair_fini(&p));
}

static void
bind(uint64_t id, uint8_t key, uint64_t off, uint64_t len)
{
	struct rd_wr *wr = end_post(&p.e[1], RD_BIND_MW, id);

	wr->rkey = (mw.mr.stag & ~0xffu) | key;
	wr->imm = p.e[1].mr.stag;
	wr->remote_addr = END_BASE + off;
	wr->data = len;
	wr->compare = RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ;
}

static enum rd_status
write_to(uint64_t id, uint32_t rkey, uint64_t off)
{
	end_msg(&p.e[0], RD_WRITE, id, off, 100)->rkey = rkey;
	pair_run(&p, 100000000, pair_sent);
	return wc_find(p.e[0].send_wc, p.e[0].nsend, id)->status;
}

Test(rof_windows, a_window_grants_its_range_from_the_bind_on_to_its_invalidation)
{
	for (unsigned type = RD_MW_TYPE_1; type <= RD_MW_TYPE_2; type++) {
		uint32_t rkey;

		start(ROF_ORDER_STRONG, (enum rd_mw_type)type);
		rkey = (mw.mr.stag & ~0xffu) | 9;
		cr_assert_eq(write_to(0, rkey, 0x1000), RD_REM_ACCESS_ERR, "not yet");
		bind(0, 9, 0x1000, 0x1000);
		pair_run(&p, 100000000, pair_sent);
		cr_assert_eq(p.e[1].send_wc[0].status, RD_SUCCESS);
		cr_assert_eq(write_to(1, rkey, 0x1000), RD_SUCCESS);
		cr_assert_eq(write_to(2, rkey, 0x1f9d), RD_REM_ACCESS_ERR, "beyond it");
		cr_assert_eq(write_to(3, rkey ^ 1, 0x1000), RD_REM_ACCESS_ERR, "the old key");
		cr_assert_eq(p.e[1].mem[0x1000], 0x11);
		cr_assert_eq(p.e[1].mem[0x2000], 0);
		if (type == RD_MW_TYPE_2) {
			end_post(&p.e[1], RD_LOCAL_INV, 1)->imm = rkey;
			pair_run(&p, 100000000, pair_sent);
			cr_assert_eq(p.e[1].send_wc[1].status, RD_SUCCESS);
			cr_assert_eq(write_to(4, rkey, 0x1000), RD_REM_ACCESS_ERR);
		}
		stop();
	}
}

Test(rof_windows, a_send_with_invalidate_takes_the_window_away)
{
	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_NONE; ordering++) {
		uint32_t rkey;

		start(ordering, RD_MW_TYPE_2);
		rkey = (mw.mr.stag & ~0xffu) | 9;
		bind(0, 9, 0x1000, 0x1000);
		end_recv_at(&p.e[1], 0, 0x80000, 100);
		pair_run(&p, 100000000, pair_sent);
		cr_assert_eq(write_to(0, rkey, 0x1000), RD_SUCCESS);
		end_msg(&p.e[0], RD_SEND_INV, 1, 0, 10)->imm = rkey;
		pair_run(&p, 100000000, pair_sent);
		cr_assert_eq(p.e[1].recv_wc[0].flags, RD_WC_INV);
		cr_assert_eq(p.e[1].recv_wc[0].inv_stag, rkey);
		cr_assert_eq(write_to(2, rkey, 0x1000), RD_REM_ACCESS_ERR);
		stop();
	}
}

Test(rof_windows, what_cannot_be_bound_is_that_requests_error)
{
	start(ROF_ORDER_WEAK, RD_MW_TYPE_2);
	bind(0, 9, END_MEM - 10, 11);
	bind(1, 9, 0, 16);
	bind(2, 10, 0, 16);
	end_post(&p.e[1], RD_LOCAL_INV, 3)->imm = 0x123456;
	pair_run(&p, 100000000, pair_sent);
	cr_assert_eq(p.e[1].nsend, 4);
	cr_assert_eq(p.e[1].send_wc[0].status, RD_MW_BIND_ERR, "beyond the region");
	cr_assert_eq(p.e[1].send_wc[1].status, RD_SUCCESS);
	cr_assert_eq(p.e[1].send_wc[2].status, RD_MW_BIND_ERR, "bound already");
	cr_assert_eq(p.e[1].send_wc[3].status, RD_LOC_PROT_ERR);
	stop();
}

/* A region that an earlier Read still fills stays valid. */
Test(rof_windows, a_local_invalidate_waits_for_the_reads_before_it)
{
	struct rd_extent x;
	struct rd_mr mr;

	start(ROF_ORDER_STRONG, RD_MW_TYPE_2);
	memset(p.e[1].mem, 0x22, END_MEM);
	end_region(&p.e[0], &mr, &x, 0x10000, 0x10000, 31);
	end_msg(&p.e[0], RD_READ, 0, 0x10000, 0x8000)->sge[0].lkey = mr.stag;
	end_post(&p.e[0], RD_LOCAL_INV, 1)->imm = mr.stag;
	end_msg(&p.e[0], RD_WRITE, 2, 0x10000, 100)->sge[0].lkey = mr.stag;
	pair_run(&p, 8000, NULL);
	cr_assert(mr.valid, "the Read is under way");
	pair_run(&p, 100000000, pair_sent);
	cr_assert_eq(p.e[0].nsend, 3);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(p.e[0].send_wc[i].wr_id, i);
	cr_assert_eq(p.e[0].send_wc[0].status, RD_SUCCESS);
	cr_assert_eq(p.e[0].send_wc[1].status, RD_SUCCESS);
	cr_assert_eq(p.e[0].send_wc[2].status, RD_LOC_PROT_ERR, "it is invalid in its turn");
	cr_assert_eq(p.e[0].mem[0x17fff], 0x22);
	cr_assert_not(mr.valid);
	rd_mr_del(p.e[0].mrs, &mr);
	stop();
}

/* Posts a Read with Invalidate of 6000 bytes into two elements, each in the region of its lkey. */
static void
read_inv(const struct rd_mr *first, const struct rd_mr *second, uint8_t flags)
{
	struct rd_wr *wr = end_msg(&p.e[0], RD_READ_INV, 0, 0x10000, 3000);

	wr_sge(&p.e[0], wr, 0x12000, 3000);
	wr->sge[0].lkey = first->stag;
	wr->sge[1].lkey = second->stag;
	wr->flags |= flags;
	pair_run(&p, 100000000, pair_sent);
	cr_assert_eq(p.e[0].nsend, 1);
}

static void
two_elements(uint16_t ord, uint8_t flags)
{
	struct rd_extent x;
	struct rd_mr mr;

	start(ROF_ORDER_STRONG, RD_MW_TYPE_2);
	p.e[0].rd.ord = ord;
	memset(p.e[1].mem, 0x22, END_MEM);
	end_region(&p.e[0], &mr, &x, 0x10000, 0x10000, 31);
	read_inv(&mr, &mr, flags);
	cr_assert_eq(p.e[0].send_wc[0].status, RD_SUCCESS);
	cr_assert_not(mr.valid);
	cr_assert_eq(p.e[0].mem[0x10000 + 2999], 0x22);
	cr_assert_eq(p.e[0].mem[0x12000 + 2999], 0x22);
	rd_mr_del(p.e[0].mrs, &mr);
	stop();
}

Test(rof_windows, a_read_with_invalidate_into_two_elements_of_a_region)
{
	two_elements(16, 0);
	two_elements(1, 0);
	two_elements(16, RD_FENCE);
}

Test(rof_windows, a_read_with_invalidate_into_two_regions_is_refused)
{
	struct rd_extent x[2];
	struct rd_mr mr[2];

	start(ROF_ORDER_STRONG, RD_MW_TYPE_2);
	memset(p.e[1].mem, 0x22, END_MEM);
	for (unsigned i = 0; i < 2; i++)
		end_region(&p.e[0], &mr[i], &x[i], 0x10000 + i * 0x2000, 0x2000, 31);
	read_inv(&mr[0], &mr[1], 0);
	cr_assert_eq(p.e[0].send_wc[0].status, RD_LOC_QP_OP_ERR);
	cr_assert(mr[0].valid && mr[1].valid);
	cr_assert_eq(p.e[0].mem[0x10000], 0x11, "nothing was read");
	for (unsigned i = 0; i < 2; i++)
		rd_mr_del(p.e[0].mrs, &mr[i]);
	stop();
}
