/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and thread domains. A program that makes a parent domain with a thread domain
 * guarantees that one thread at a time uses the objects in it; those objects need no locks. */
#include <stdlib.h>

#include "ops_priv.h"
#include "verbs_priv.h"

static struct ibv_pd *
pd_new(struct ibv_context *context)
{
	struct vb_pd *pd = calloc(1, sizeof(*pd));

	if (pd == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	pd->pd.context = context;
	return &pd->pd;
}

VB_EXPORT struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = vb_alive(context) == 0 ? pd_new(context) : NULL;

	if (pd == NULL)
		return NULL;
	if (vb_rc(saker_pd_create(vb_context(context)->saker, &vb_pd(pd)->saker), "ibv_alloc_pd") !=
		0) {
		free(pd);
		return NULL;
	}
	return pd;
}

VB_EXPORT int
ibv_dealloc_pd(struct ibv_pd *p)
{
	struct vb_pd *pd = vb_pd(p);
	int rc = 0;

	if (vb_held(&pd->refs))
		return vb_fail(EBUSY, "%u parent domains use the protection domain",
			__atomic_load_n(&pd->refs, __ATOMIC_RELAXED));
	if (pd->parent != NULL)
		vb_release(&pd->parent->refs);
	else if (!vb_is_dead(p->context))
		rc = vb_rc(saker_pd_destroy(pd->saker), "ibv_dealloc_pd");
	if (rc == 0)
		free(pd);
	return rc;
}

struct ibv_td *
vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct ibv_td *td;

	if (attr->comp_mask != 0) {
		errno = EINVAL;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (td != NULL)
		td->context = context;
	return td;
}

int
vb_dealloc_td(struct ibv_td *td)
{
	free(td);
	return 0;
}

struct ibv_pd *
vb_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	struct vb_pd *parent = vb_pd(attr->pd);
	struct ibv_pd *pd;

	/* Queues lie in memory that is shared with the engine, so that an allocator of the program
	 * cannot be used. */
	if (parent == NULL ||
		(attr->comp_mask & ~(uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) != 0) {
		vb_fail(parent == NULL ? EINVAL : EOPNOTSUPP,
			parent == NULL ? "a parent domain needs a protection domain"
				       : "a parent domain has no allocators");
		return NULL;
	}
	pd = pd_new(context);
	if (pd == NULL)
		return NULL;
	vb_pd(pd)->parent = parent;
	vb_pd(pd)->saker = parent->saker;
	vb_pd(pd)->single = attr->td != NULL;
	vb_hold(&parent->refs);
	return pd;
}
