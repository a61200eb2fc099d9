/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects of up to SMALL bytes are rounded up to units and come from chunks, which hold objects of
 * one size; a freed object is on the list of its size. Larger ones are mappings of their own. Under
 * AddressSanitizer each object is an allocation of its own, so that the sanitizer sees its bounds
 * and its life.
 */
#include "secret.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "spin.h"

#define PAGE  4096ul
#define SMALL PAGE
#define CHUNK (16 * PAGE)
#define SIZES (SMALL / SK_SECRET_ALIGN + 1)

#ifdef __SANITIZE_ADDRESS__
#define SEPARATE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEPARATE 1
#endif
#endif
#ifndef SEPARATE
#define SEPARATE 0
#endif

struct idle {
	struct idle *next;
};

/* The objects of one size. */
struct size {
	struct idle *idle;
	uint8_t *fresh; /* the part of the newest chunk that was never used */
	size_t left;    /* bytes of it */
};

static struct size secret_sizes[SIZES]; /* [units of an object] */
static uint32_t secret_lock;            /* of secret_sizes */

static size_t
secret_round(size_t len, size_t unit)
{
	return (len + unit - 1) & ~(unit - 1);
}

static void *
secret_map(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (madvise(p, len, MADV_DONTDUMP) != 0) {
		munmap(p, len);
		return NULL;
	}
	return p;
}

static void *
secret_take(size_t len)
{
	struct size *s = &secret_sizes[len / SK_SECRET_ALIGN];
	void *p = s->idle;

	if (p != NULL) {
		s->idle = s->idle->next;
		return p;
	}
	if (s->left < len) {
		uint8_t *chunk = secret_map(CHUNK);

		if (chunk == NULL)
			return NULL;
		s->fresh = chunk;
		s->left = CHUNK;
	}
	p = s->fresh;
	s->fresh += len;
	s->left -= len;
	return p;
}

void *
sk_secret_alloc(size_t len)
{
	void *p;

	if (len == 0 || len > SIZE_MAX / 2)
		return NULL;
	if (SEPARATE) {
		len = secret_round(len, SK_SECRET_ALIGN);
		p = aligned_alloc(SK_SECRET_ALIGN, len);
		return p != NULL ? memset(p, 0, len) : NULL;
	}
	if (len > SMALL)
		return secret_map(secret_round(len, PAGE));
	len = secret_round(len, SK_SECRET_ALIGN);
	sk_spin(&secret_lock);
	p = secret_take(len);
	sk_unspin(&secret_lock);
	if (p != NULL)
		memset(p, 0, sizeof(struct idle)); /* the rest was wiped, or is fresh */
	return p;
}

void
sk_secret_free(void *p, size_t len)
{
	struct idle *object = p;

	if (p == NULL)
		return;
	explicit_bzero(p, len);
	if (SEPARATE) {
		free(p);
		return;
	}
	if (len > SMALL) {
		munmap(p, secret_round(len, PAGE));
		return;
	}
	len = secret_round(len, SK_SECRET_ALIGN);
	sk_spin(&secret_lock);
	object->next = secret_sizes[len / SK_SECRET_ALIGN].idle;
	secret_sizes[len / SK_SECRET_ALIGN].idle = object;
	sk_unspin(&secret_lock);
}
