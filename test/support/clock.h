/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock of programs that measure or wait in real time. */
#ifndef TEST_CLOCK_H
#define TEST_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns the monotonic time in nanoseconds. */
static inline uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#endif
