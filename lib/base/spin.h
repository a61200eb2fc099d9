/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A spin lock for critical sections of few instructions, between threads of a program. The waiting
 * thread yields, since there may be fewer cores than threads. The value 0 means that the lock is
 * free.
 */
#ifndef SAKER_BASE_SPIN_H
#define SAKER_BASE_SPIN_H

#include <sched.h>
#include <stdint.h>

/* Takes the lock. */
static inline void
sk_spin(uint32_t *lock)
{
	for (unsigned n = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0; n++) {
		if (n % 64 == 63)
			sched_yield();
		else
			__builtin_ia32_pause();
	}
}

/* Releases the lock. */
static inline void
sk_unspin(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
