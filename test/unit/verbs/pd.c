/* SPDX-License-Identifier: BSD-3-Clause */
/* Parent domains: their allocators, and what they outlive. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../../drivers/verbs/alloc_priv.h"
#include "../../../drivers/verbs/ops_priv.h"

void
vb_pd_enter(struct vb_pd *pd)
{
}

void
vb_pd_leave(struct vb_pd *pd)
{
}

static struct vb_context context;
static struct ibv_pd *base;
static int live;

/* ---- The functions of other files that pd.c calls ---- */

int
saker_pd_create(struct saker *s, struct saker_pd **out)
{
	*out = NULL;
	live++;
	return 0;
}

int
saker_pd_destroy(struct saker_pd *pd)
{
	live--;
	return 0;
}

/* ---- The program's allocators ---- */

#define DEFAULT 0
#define OWN     1
#define NONE    2

static struct {
	int answer, allocs, frees;
	uint64_t type;
	uint8_t room[512];
} prog;

static void *
prog_alloc(struct ibv_pd *pd, void *user, size_t size, size_t alignment, uint64_t type)
{
	cr_assert_eq(user, &prog);
	cr_assert_leq(size + alignment, sizeof(prog.room));
	prog.allocs++;
	prog.type = type;
	memset(prog.room, 0xa5, sizeof(prog.room));
	return prog.answer == OWN    ? prog.room
	       : prog.answer == NONE ? NULL
				     : IBV_ALLOCATOR_USE_DEFAULT;
}

static void
prog_free(struct ibv_pd *pd, void *user, void *p, uint64_t type)
{
	cr_assert_eq(p, prog.room);
	cr_assert_eq(type, prog.type);
	prog.frees++;
}

static struct ibv_pd *
parent(uint32_t mask)
{
	struct ibv_parent_domain_init_attr attr = {.pd = base,
		.comp_mask = mask,
		.alloc = prog_alloc,
		.free = prog_free,
		.pd_context = &prog};

	return vb_alloc_parent_domain(&context.vctx.context, &attr);
}

static void
start(void)
{
	base = ibv_alloc_pd(&context.vctx.context);
	cr_assert_not_null(base);
}

static void
end(void)
{
	cr_assert_eq(ibv_dealloc_pd(base), 0);
	cr_assert_eq(live, 0);
}

TestSuite(verbs_pd, .init = start, .fini = end);

#define ALL (IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

Test(verbs_pd, an_object_lies_in_memory_of_the_domains_allocator)
{
	struct ibv_pd *pd = parent(ALL);
	struct vb_pd *owner;
	uint8_t *p;

	cr_assert_not_null(pd);
	prog.answer = OWN;
	p = vb_object_alloc(pd, 300, VB_RESOURCE_SRQ, &owner);
	cr_assert_eq(p, prog.room);
	cr_assert_eq(prog.type, VB_RESOURCE_SRQ);
	cr_assert(p[0] == 0 && p[299] == 0, "the object begins with zeros");
	cr_assert_eq(p[300], 0xa5);
	cr_assert_eq(ibv_dealloc_pd(pd), EBUSY, "the domain outlives its objects");
	vb_object_free(p, VB_RESOURCE_SRQ, owner);
	cr_assert_eq(prog.frees, 1);
	cr_assert_eq(ibv_dealloc_pd(base), EBUSY);
	cr_assert_eq(ibv_dealloc_pd(pd), 0);
}

Test(verbs_pd, an_allocator_may_leave_an_object_to_the_library_or_refuse_it)
{
	struct ibv_pd *pd = parent(ALL);
	struct vb_pd *owner;
	void *p;

	prog.answer = DEFAULT;
	p = vb_object_alloc(pd, 300, VB_RESOURCE_QP, &owner);
	cr_assert(p != NULL && p != prog.room);
	vb_object_free(p, VB_RESOURCE_QP, owner);
	cr_assert_eq(prog.frees, 0);
	prog.answer = NONE;
	cr_assert_null(vb_object_alloc(pd, 300, VB_RESOURCE_QP, &owner));
	cr_assert_eq(prog.allocs, 2);
	cr_assert_eq(ibv_dealloc_pd(pd), 0);
}

Test(verbs_pd, a_domain_without_allocators_calls_none)
{
	struct ibv_pd *pd = parent(IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT);
	struct vb_pd *owner;
	void *p = vb_object_alloc(pd, 300, VB_RESOURCE_CQ, &owner);

	cr_assert(p != NULL && owner == NULL && prog.allocs == 0);
	vb_object_free(p, VB_RESOURCE_CQ, owner);
	p = vb_object_alloc(NULL, 300, VB_RESOURCE_CQ, &owner);
	cr_assert(p != NULL && owner == NULL);
	vb_object_free(p, VB_RESOURCE_CQ, owner);
	cr_assert_eq(ibv_dealloc_pd(pd), 0);
}

Test(verbs_pd, a_parent_domain_needs_a_domain_and_both_allocators)
{
	struct ibv_parent_domain_init_attr attr = {.comp_mask = ALL, .alloc = prog_alloc};

	attr.free = prog_free;
	cr_assert_null(vb_alloc_parent_domain(&context.vctx.context, &attr));
	cr_assert_eq(errno, EINVAL);
	attr.pd = base;
	attr.free = NULL;
	cr_assert_null(vb_alloc_parent_domain(&context.vctx.context, &attr));
	cr_assert_eq(errno, EINVAL);
	attr.comp_mask = 1u << 20;
	cr_assert_null(vb_alloc_parent_domain(&context.vctx.context, &attr));
	cr_assert_eq(errno, EOPNOTSUPP);
}
