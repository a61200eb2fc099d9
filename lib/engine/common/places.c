/* SPDX-License-Identifier: BSD-3-Clause */
#include "places.h"

#include <stdlib.h>

#include "../../shm/shm.h"

struct eng_places *
eng_places_create(uint32_t slots, uint32_t srqs)
{
	uint32_t n = 1u << shm_log2(slots);
	struct eng_places *p = calloc(1, sizeof(*p) + n * sizeof(p->place[0]));

	if (p == NULL)
		return NULL;
	p->mask = n - 1;
	p->srq_mask = (1u << shm_log2(srqs)) - 1;
	return p;
}

int
eng_place_find(const struct eng_places *p, uint32_t qpn)
{
	uint32_t place = __atomic_load_n(&p->place[eng_place_slot(p, qpn)], __ATOMIC_RELAXED);

	return (place & 0xffffff) == qpn ? (int)(place >> 24) - 1 : -1;
}
