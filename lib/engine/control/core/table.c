/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles: the numbers by which clients and stages name objects of the control stage. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define TABLE_REST 64 /* freed numbers that are not used again while unused numbers are left */

int
ctl_table_init(struct ctl_table *t, uint32_t cap)
{
	memset(t, 0, sizeof(*t));
	t->slot = calloc(cap, sizeof(*t->slot));
	t->queue = calloc(cap, sizeof(*t->queue));
	if (t->slot == NULL || t->queue == NULL) {
		ctl_table_fini(t);
		return -ENOMEM;
	}
	t->cap = cap;
	return 0;
}

void
ctl_table_fini(struct ctl_table *t)
{
	free(t->slot);
	free(t->queue);
	memset(t, 0, sizeof(*t));
}

int64_t
ctl_table_add(struct ctl_table *t, void *object)
{
	uint32_t n;

	if (t->used == t->cap)
		return -ENOSPC;
	if (t->fresh < t->cap && t->nfreed <= TABLE_REST) {
		n = t->fresh++;
	} else {
		n = t->queue[t->head];
		t->head = (t->head + 1) % t->cap;
		t->nfreed--;
	}
	t->slot[n] = object;
	t->used++;
	return n;
}

void
ctl_table_del(struct ctl_table *t, uint32_t number)
{
	t->slot[number] = NULL;
	t->queue[(t->head + t->nfreed) % t->cap] = number;
	t->nfreed++;
	t->used--;
}
