/* SPDX-License-Identifier: BSD-3-Clause */
/* The attributes of shared receive queues. */
#include <criterion/criterion.h>

#include "../../../drivers/verbs/events_priv.h"
#include "../../../drivers/verbs/ops_priv.h"
#include "../../../drivers/verbs/verbs_priv.h"
#include "../../../lib/client/path.h"

#define DEPTH 16
#define MOST  64

__thread uint32_t vb_path_depth __attribute__((tls_model("initial-exec")));
static struct vb_context context = {.info.max_rq_depth = MOST};
static struct vb_pd pd = {.pd.context = &context.vctx.context};

/* ---- What the tested file needs of others ---- */

void
vb_retire_begin(struct vb_retire *r)
{
}

void
vb_retire_end(struct vb_retire *r, bool destroyed)
{
}

/* ---- The engine's queue ---- */

static uint32_t depth, limit; /* as the engine has them */

int
saker_srq_create_as(struct saker_pd *p, struct saker_srq_attr *attr, struct saker_srq **out)
{
	depth = attr->depth;
	limit = attr->limit;
	return 0;
}

int
saker_srq_destroy(struct saker_srq *srq)
{
	return 0;
}

int
saker_srq_resize(struct saker_srq *srq, uint32_t to)
{
	depth = to > depth ? to : depth;
	return (int)depth;
}

int
saker_srq_set_limit(struct saker_srq *srq, uint32_t to)
{
	if (to > depth)
		return -EINVAL;
	limit = to;
	return 0;
}

uint32_t
saker_srq_num(const struct saker_srq *srq)
{
	return 0;
}

uint32_t
cl_srq_count(struct saker_srq *srq)
{
	return 0;
}

/* ---- Tests ---- */

static struct ibv_srq *
create(void)
{
	struct ibv_srq_init_attr attr = {
		.attr = {.max_wr = DEPTH, .max_sge = 1, .srq_limit = DEPTH / 2}};
	struct ibv_srq *srq = ibv_create_srq(&pd.pd, &attr);

	cr_assert_not_null(srq);
	return srq;
}

static int
modify(struct ibv_srq *srq, uint32_t max_wr, uint32_t srq_limit, int mask)
{
	struct ibv_srq_attr attr = {.max_wr = max_wr, .srq_limit = srq_limit};

	return ibv_modify_srq(srq, &attr, mask);
}

Test(verbs_srq, a_new_queue_has_no_limit_ibv_create_srq_3)
{
	struct ibv_srq *srq = create();
	struct ibv_srq_attr attr;

	cr_assert_eq(limit, 0);
	cr_assert_eq(ibv_query_srq(srq, &attr), 0);
	cr_assert_eq(attr.srq_limit, 0);
	cr_assert_eq(ibv_destroy_srq(srq), 0);
}

Test(verbs_srq, an_invalid_attribute_modifies_none_ibv_modify_srq_3)
{
	const int both = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;
	struct ibv_srq *srq = create();
	struct ibv_srq_attr attr;

	cr_assert_eq(modify(srq, 2 * DEPTH, 2 * DEPTH + 1, both), EINVAL);
	cr_assert_eq(modify(srq, 2 * MOST, 1, both), EINVAL);
	cr_assert_eq(modify(srq, 0, DEPTH + 1, IBV_SRQ_LIMIT), EINVAL);
	cr_assert_eq(depth, DEPTH);
	cr_assert_eq(limit, 0);
	cr_assert_eq(modify(srq, 2 * DEPTH, 2 * DEPTH, both), 0);
	cr_assert_eq(depth, 2 * DEPTH);
	cr_assert_eq(limit, 2 * DEPTH);
	cr_assert_eq(ibv_query_srq(srq, &attr), 0);
	cr_assert_eq(attr.max_wr, 2 * DEPTH);
	cr_assert_eq(attr.srq_limit, 2 * DEPTH);
	cr_assert_eq(ibv_destroy_srq(srq), 0);
}
