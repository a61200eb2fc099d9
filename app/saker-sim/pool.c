/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocates objects of equal size in slabs, and memory; exits the program when there is none. */
#include "pool.h"

#include <stdio.h>
#include <stdlib.h>

#define SLAB_OBJECTS 512

static void *
must(void *p)
{
	if (p == NULL) {
		fprintf(stderr, "saker-sim: out of memory\n");
		exit(1);
	}
	return p;
}

void *
sim_realloc(void *p, size_t len)
{
	return must(realloc(p, len));
}

void *
sim_calloc(size_t n, size_t len)
{
	return must(calloc(n ? n : 1, len));
}

void *
sim_pool_get(struct sim_pool *p)
{
	void **obj = p->free;

	p->alive++;
	if (obj != NULL) {
		p->free = *obj;
		return obj;
	}
	if (p->fresh == 0) {
		/* The first object's room holds the pointer to the previous slab. */
		void **slab = must(malloc((SLAB_OBJECTS + 1) * p->size));

		*slab = p->slabs;
		p->slabs = slab;
		p->fresh = SLAB_OBJECTS;
	}
	return (char *)p->slabs + p->fresh-- * p->size;
}

void
sim_pool_put(struct sim_pool *p, void *obj)
{
	*(void **)obj = p->free;
	p->free = obj;
	p->alive--;
}

void
sim_pool_free(struct sim_pool *p)
{
	void *slab, *next;

	for (slab = p->slabs; slab != NULL; slab = next) {
		next = *(void **)slab;
		free(slab);
	}
	*p = (struct sim_pool){.size = p->size};
}
