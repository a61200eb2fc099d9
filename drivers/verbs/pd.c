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
	vb_pd_enter(pd);
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
		vb_pd_leave(vb_pd(pd));
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
		return vb_fail(EBUSY, "%u parent domains or objects use the protection domain",
			__atomic_load_n(&pd->refs, __ATOMIC_RELAXED));
	if (pd->parent != NULL)
		vb_release(&pd->parent->refs);
	else if (vb_owned_live(p->context, &pd->owned))
		rc = vb_rc(saker_pd_destroy(pd->saker), "ibv_dealloc_pd");
	if (rc != 0)
		return rc;
	vb_pd_leave(pd);
	free(pd);
	return 0;
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
	const uint32_t allocators = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	const uint32_t known = allocators | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct vb_pd *parent = vb_pd(attr->pd);
	struct ibv_pd *pd;

	if (parent == NULL) {
		vb_fail(EINVAL, "a parent domain needs a protection domain");
		return NULL;
	}
	if ((attr->comp_mask & ~known) != 0) {
		vb_fail(EOPNOTSUPP, "a parent domain has no attributes of mask %#x",
			attr->comp_mask & ~known);
		return NULL;
	}
	if ((attr->comp_mask & allocators) != 0 && (attr->alloc == NULL || attr->free == NULL)) {
		vb_fail(EINVAL, "a parent domain needs both allocators, alloc and free");
		return NULL;
	}
	pd = pd_new(context);
	if (pd == NULL)
		return NULL;
	vb_pd(pd)->parent = parent;
	vb_pd(pd)->saker = parent->saker;
	vb_pd(pd)->single = attr->td != NULL;
	if ((attr->comp_mask & allocators) != 0) {
		vb_pd(pd)->alloc = attr->alloc;
		vb_pd(pd)->free = attr->free;
	}
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) != 0)
		vb_pd(pd)->user = attr->pd_context;
	vb_hold(&parent->refs);
	return pd;
}
