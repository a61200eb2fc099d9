/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets on the virtual wire: a heap by arrival time; ties keep the order of sending. */
#include <stdlib.h>

#include "vwire_heap.h"

static bool
earlier(const struct vw_packet *a, const struct vw_packet *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void
vw_heap_push(struct vwire *w, struct vw_packet *p)
{
	unsigned i = w->nheap++;

	if (w->nheap > w->heap_size) {
		w->heap_size = w->heap_size ? 2 * w->heap_size : 256;
		w->heap = realloc(w->heap, w->heap_size * sizeof(*w->heap));
	}
	p->order = w->order++;
	for (; i && earlier(p, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = p;
}

struct vw_packet *
vw_heap_pop(struct vwire *w)
{
	struct vw_packet *top = w->heap[0], *last = w->heap[--w->nheap];
	unsigned i = 0, k;

	while ((k = 2 * i + 1) < w->nheap) {
		if (k + 1 < w->nheap && earlier(w->heap[k + 1], w->heap[k]))
			k++;
		if (!earlier(w->heap[k], last))
			break;
		w->heap[i] = w->heap[k];
		i = k;
	}
	if (w->nheap)
		w->heap[i] = last;
	return top;
}
