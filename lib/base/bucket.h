/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Token buckets, each kept as one time: that at which the bucket is full again. A bucket of zeros
 * is full.
 */
#ifndef SAKER_BASE_BUCKET_H
#define SAKER_BASE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/* Takes a token from the bucket *full: one is added every `interval` ns, and the bucket has room
 * for `burst`. Returns false when it is empty. `now` is in ns. */
static inline bool
sk_bucket_take(uint64_t *full, uint64_t now, uint64_t interval, uint64_t burst)
{
	if (*full < now)
		*full = now;
	if (*full + interval > now + interval * burst)
		return false;
	*full += interval;
	return true;
}

#endif
