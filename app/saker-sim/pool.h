/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the simulator. All allocations exit the program when there is no memory. Pools keep
 * freed objects for reuse. */
#ifndef SAKER_SIM_POOL_H
#define SAKER_SIM_POOL_H

#include <stddef.h>

void *sim_realloc(void *p, size_t len);
void *sim_calloc(size_t n, size_t len);

/* A pool of objects of one size. An empty pool is all zeros except for `size`, which is at least
 * that of a pointer. */
struct sim_pool {
	size_t size;
	void *free; /* list of free objects; the first bytes of each point to the next */
	void *slabs;
	size_t fresh; /* objects of the newest slab that were never used */
	size_t alive; /* objects in use */
};

/* Returns an object, not zeroed. */
void *sim_pool_get(struct sim_pool *p);
void sim_pool_put(struct sim_pool *p, void *obj);
/* Frees all objects, including those in use. */
void sim_pool_free(struct sim_pool *p);

#endif
