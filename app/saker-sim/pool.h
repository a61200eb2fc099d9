/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the simulator: it either has it or ends; what comes and goes by the million is kept. */
#ifndef SAKER_SIM_POOL_H
#define SAKER_SIM_POOL_H

#include <stddef.h>

void *sim_realloc(void *p, size_t len);
void *sim_calloc(size_t n, size_t len);

/* Objects of one size; those that were given back are handed out again. All zero but for `size`
 * (at least that of a pointer) is an empty pool. */
struct sim_pool {
	size_t size;
	void *free; /* the first bytes of a free one point to the next */
	void *slabs;
	size_t fresh; /* objects of the newest slab that were never handed out */
	size_t alive;
};

/* Not zeroed. */
void *sim_pool_get(struct sim_pool *p);
void sim_pool_put(struct sim_pool *p, void *obj);
/* All objects, alive or not. */
void sim_pool_free(struct sim_pool *p);

#endif
