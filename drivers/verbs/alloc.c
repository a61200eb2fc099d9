/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of queue pairs, completion queues and shared receive queues. The allocators of a
 * parent domain provide it for the objects in that domain. Their rings lie in memory that is shared
 * with the engine, which no allocator of a program can provide.
 */
#include <stdlib.h>
#include <string.h>

#include "alloc_priv.h"

#define ALIGNMENT 64

static void *
alloc_default(size_t size)
{
	return aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

void *
vb_object_alloc(struct ibv_pd *pd, size_t size, enum vb_resource type, struct vb_pd **owner)
{
	struct vb_pd *d = pd != NULL ? vb_pd(pd) : NULL;
	void *p = IBV_ALLOCATOR_USE_DEFAULT;

	*owner = NULL;
	if (d != NULL && d->alloc != NULL)
		p = d->alloc(pd, d->user, size, ALIGNMENT, (uint64_t)type);
	if (p == IBV_ALLOCATOR_USE_DEFAULT) {
		p = alloc_default(size);
	} else if (p != NULL) {
		*owner = d;
		vb_hold(&d->refs);
	}
	if (p != NULL)
		memset(p, 0, size);
	return p;
}

void
vb_object_free(void *p, enum vb_resource type, struct vb_pd *owner)
{
	if (owner == NULL) {
		free(p);
		return;
	}
	owner->free(&owner->pd, owner->user, p, (uint64_t)type);
	vb_release(&owner->refs);
}
