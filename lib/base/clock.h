/* SPDX-License-Identifier: BSD-3-Clause */
/* The clocks of the system, for threads that do I/O. Protocol code takes the time as an argument.
 */
#ifndef SAKER_BASE_CLOCK_H
#define SAKER_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns the time of a clock of clock_gettime(2), in ns. */
static inline uint64_t
sk_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#endif
