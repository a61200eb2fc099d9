/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of objects, from the allocators of a parent domain or from the heap. */
#ifndef SAKER_VERBS_ALLOC_PRIV_H
#define SAKER_VERBS_ALLOC_PRIV_H

#include "verbs_priv.h"

/* The resource types that a program's allocators see. */
enum vb_resource { VB_RESOURCE_QP = 1, VB_RESOURCE_CQ, VB_RESOURCE_SRQ };

/* Returns `size` bytes of zeros for an object in the domain `pd` (may be NULL), or NULL. Sets
 * *owner to the domain whose allocator provided them, or to NULL. The domain stays until the object
 * is freed. */
void *vb_object_alloc(struct ibv_pd *pd, size_t size, enum vb_resource type, struct vb_pd **owner);
/* Frees an object; `owner` is what vb_object_alloc() set. */
void vb_object_free(void *p, enum vb_resource type, struct vb_pd *owner);

#endif
