/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of the local side of a work request, and the names of the QP states. */
#include "../../../lib/rdma/rdma.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct sk_key key = {{1, 2}};
static const struct rd_pd pd;
static struct rd_mr mr = {.pd = &pd, .base = 0x1000, .len = 1ull << 34, .valid = true};
static struct rd_ops ops;
static struct rd_qp qp = {.qpn = 5, .pd = &pd};

static enum rd_status
check(struct rd_wr *wr, uint32_t need, uint64_t *total)
{
	struct rd_mr *mrs[RD_MAX_SGE];
	struct rd_mr_table *t = rd_mr_table_create(16, &key);
	enum rd_status s;

	cr_assert_eq(rd_mr_add(t, &mr, 3), 0);
	for (int i = 0; i < wr->nsge && i < RD_MAX_SGE; i++)
		wr->sge[i].lkey ^= mr.stag;
	ops.mrs = t;
	s = rd_sges_check(&ops, &qp, wr, need, total, mrs);
	for (int i = 0; s == RD_SUCCESS && !(wr->flags & RD_INLINE) && i < wr->nsge; i++)
		cr_assert_eq(mrs[i], wr->sge[i].len ? &mr : NULL);
	rd_mr_table_destroy(t);
	return s;
}

Test(rdma_sge, lengths_add_up)
{
	struct rd_wr wr = {.nsge = 3, .sge = {{0x1000, 5, 0}, {0, 0, 77}, {0x1005, 10, 0}}};
	uint64_t total;

	cr_assert_eq(check(&wr, 0, &total), RD_SUCCESS);
	cr_assert_eq(total, 15);
	wr = (struct rd_wr){.nsge = 0};
	cr_assert_eq(check(&wr, 0, &total), RD_SUCCESS);
	cr_assert_eq(total, 0);
}

Test(rdma_sge, a_wrong_key_right_or_bound_is_a_local_protection_error)
{
	struct rd_wr wr = {.nsge = 2, .sge = {{0x1000, 5, 0}, {0x1000, 5, 1}}};
	uint64_t total;

	cr_assert_eq(check(&wr, 0, &total), RD_LOC_PROT_ERR);
	wr = (struct rd_wr){.nsge = 1, .sge = {{0xfff, 5, 0}}};
	cr_assert_eq(check(&wr, 0, &total), RD_LOC_PROT_ERR);
	wr = (struct rd_wr){.nsge = 1, .sge = {{0x1000, 5, 0}}};
	cr_assert_eq(check(&wr, RD_ACC_LOCAL_WRITE, &total), RD_LOC_PROT_ERR);
}

Test(rdma_sge, a_message_has_at_most_4_gib_less_one)
{
	struct rd_wr wr = {.nsge = 2, .sge = {{0x1000, 0xfffffffe, 0}, {0x1000, 1, 0}}};
	uint64_t total;

	cr_assert_eq(check(&wr, 0, &total), RD_SUCCESS);
	cr_assert_eq(total, RD_MAX_MSG);
	wr = (struct rd_wr){.nsge = 2, .sge = {{0x1000, 0xfffffffe, 0}, {0x1000, 2, 0}}};
	cr_assert_eq(check(&wr, 0, &total), RD_LOC_LEN_ERR);
	wr = (struct rd_wr){.nsge = RD_MAX_SGE};
	for (int i = 0; i < RD_MAX_SGE; i++)
		wr.sge[i] = (struct rd_sge){0x1000, 0xffffffff, 0};
	cr_assert_eq(check(&wr, 0, &total), RD_LOC_LEN_ERR);
	cr_assert_eq(total, RD_MAX_SGE * 0xffffffffull);
}

Test(rdma_sge, a_request_beyond_the_limits_is_refused_before_it_is_read)
{
	struct rd_wr wr = {.nsge = RD_MAX_SGE + 1};
	uint64_t total;

	cr_assert_eq(check(&wr, 0, &total), RD_LOC_QP_OP_ERR);
	wr = (struct rd_wr){.flags = RD_INLINE, .inline_len = RD_MAX_INLINE + 1};
	cr_assert_eq(check(&wr, 0, &total), RD_LOC_QP_OP_ERR);
	wr.inline_len = RD_MAX_INLINE;
	cr_assert_eq(check(&wr, 0, &total), RD_SUCCESS);
	cr_assert_eq(total, RD_MAX_INLINE);
}

Test(rdma_sge, a_read_with_invalidate_has_its_elements_in_one_region)
{
	struct rd_wr wr = {.nsge = 2, .sge = {{0x1000, 5, 0}, {0x1000, 5, 1}}};
	uint64_t total;

	wr.opcode = RD_READ_INV;
	cr_assert_eq(check(&wr, 0, &total), RD_LOC_QP_OP_ERR);
	cr_assert_eq(total, 0);
	wr = (struct rd_wr){.nsge = 4, .sge = {{0, 0, 7}, {0x1000, 5, 0}, {0, 0, 8}, {0x1005, 1}}};
	wr.opcode = RD_READ_INV;
	cr_assert_eq(check(&wr, 0, &total), RD_SUCCESS, "elements without bytes have no region");
	cr_assert_eq(total, 6);
	wr = (struct rd_wr){.nsge = 2, .sge = {{0, 0, 7}, {0, 0, 8}}};
	wr.opcode = RD_READ_INV;
	cr_assert_eq(check(&wr, 0, &total), RD_SUCCESS);
	cr_assert_eq(total, 0);
}

Test(rdma_sge, states_have_names)
{
	cr_assert_str_eq(rd_qp_state_name(RD_QP_RESET), "reset");
	cr_assert_str_eq(rd_qp_state_name(RD_QP_ERR), "err");
	cr_assert_str_eq(rd_qp_state_name((enum rd_qp_state)99), "unknown");
}
