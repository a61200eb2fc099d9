/* SPDX-License-Identifier: BSD-3-Clause */
/* Wake-ups of a thread that waits for a descriptor. */
#ifndef SAKER_BASE_WAKE_H
#define SAKER_BASE_WAKE_H

#include <stdint.h>
#include <unistd.h>

/* Writes the number 1 (8 bytes) to an eventfd(2), or to a socket whose reader discards what it
 * reads. The descriptor does not block, or its counter cannot become full. */
static inline void
sk_wake(int fd)
{
	static const uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));

	(void)n; /* EAGAIN: the descriptor is full, so its reader is being woken already */
}

#endif
