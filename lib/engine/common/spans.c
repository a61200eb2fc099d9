/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two copies of a sorted array. A search uses the copy that the version's last bit names, and
 * repeats if the version has changed meanwhile. A change is made in the other copy first, then the
 * version changes, then the change is made in the first copy: one of the copies is always complete.
 */
#include "spans.h"

#include <stdbool.h>

struct span {
	uintptr_t base; /* atomic, as are the others */
	size_t len;     /* bytes */
	uint32_t number;
};

static struct spans {
	uint32_t n; /* atomic */
	struct span span[ENG_SPANS];
} copies[2];

static uint32_t version; /* atomic */

static struct span
span_get(const struct span *s)
{
	return (struct span){.base = __atomic_load_n(&s->base, __ATOMIC_RELAXED),
		.len = __atomic_load_n(&s->len, __ATOMIC_RELAXED),
		.number = __atomic_load_n(&s->number, __ATOMIC_RELAXED)};
}

static void
span_set(struct span *s, struct span v)
{
	__atomic_store_n(&s->base, v.base, __ATOMIC_RELAXED);
	__atomic_store_n(&s->len, v.len, __ATOMIC_RELAXED);
	__atomic_store_n(&s->number, v.number, __ATOMIC_RELAXED);
}

/* Returns the number of mappings that begin at `addr` or below. */
static uint32_t
spans_below(const struct spans *c, uintptr_t addr)
{
	uint32_t low = 0, high = __atomic_load_n(&c->n, __ATOMIC_RELAXED);

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (__atomic_load_n(&c->span[middle].base, __ATOMIC_RELAXED) <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void
spans_insert(struct spans *c, struct span v)
{
	uint32_t at = spans_below(c, v.base), n = c->n;

	for (uint32_t i = n; i > at; i--)
		span_set(&c->span[i], span_get(&c->span[i - 1]));
	span_set(&c->span[at], v);
	__atomic_store_n(&c->n, n + 1, __ATOMIC_RELAXED);
}

static void
spans_delete(struct spans *c, uintptr_t base)
{
	uint32_t n = c->n - 1;

	for (uint32_t i = spans_below(c, base) - 1; i < n; i++)
		span_set(&c->span[i], span_get(&c->span[i + 1]));
	__atomic_store_n(&c->n, n, __ATOMIC_RELAXED);
}

/* Adds a mapping to both copies, or removes the one at v.base. */
static void
spans_change(struct span v, bool add)
{
	uint32_t next = version + 1;

	for (unsigned i = 0; i < 2; i++, next--) {
		if (add)
			spans_insert(&copies[next & 1], v);
		else
			spans_delete(&copies[next & 1], v.base);
		if (i == 0) {
			__atomic_store_n(&version, next, __ATOMIC_RELEASE);
			/* The next stores must not be visible before that of the version. */
			__atomic_thread_fence(__ATOMIC_RELEASE);
		}
	}
}

void
eng_span_add(uintptr_t base, size_t len, uint32_t number)
{
	spans_change((struct span){.base = base, .len = len, .number = number}, true);
}

void
eng_span_remove(uintptr_t base)
{
	spans_change((struct span){.base = base}, false);
}

int
eng_span_find(uintptr_t addr)
{
	for (;;) {
		uint32_t v = __atomic_load_n(&version, __ATOMIC_ACQUIRE);
		const struct spans *c = &copies[v & 1];
		uint32_t n = spans_below(c, addr);
		struct span s = {0};

		if (n > 0)
			s = span_get(&c->span[n - 1]);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&version, __ATOMIC_RELAXED) == v)
			return addr - s.base < s.len ? (int)s.number : -1;
	}
}
