/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spin locks for critical sections of few instructions, between threads of a program. The waiting
 * thread yields, since there may be fewer cores than threads. The value 0 means that the lock is
 * free.
 *
 * The second kind of lock holds its owner. A signal handler that interrupted its thread within the
 * critical section can detect that, and does not wait for itself.
 */
#ifndef SAKER_BASE_SPIN_H
#define SAKER_BASE_SPIN_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/single_threaded.h>

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

/* Returns a number of the calling thread, never 0: the address of its thread control block, which
 * the x86-64 ABI of thread-local storage stores at its own address. */
static inline uintptr_t
sk_self(void)
{
	uintptr_t self;

	__asm__("mov %%fs:0, %0" : "=r"(self));
	return self;
}

/* Takes a lock with an owner, if it becomes free within `tries` attempts; 0: no limit. Returns
 * false when it does not, and at once when the calling thread holds the lock. */
static inline bool
sk_own(uintptr_t *lock, unsigned tries)
{
	const uintptr_t self = sk_self();

	/* In a process with one thread only a signal handler can intervene, and it has released the
	 * lock when the thread continues. */
	if (__libc_single_threaded && __atomic_load_n(lock, __ATOMIC_RELAXED) == 0) {
		__atomic_store_n(lock, self, __ATOMIC_RELAXED);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		return true;
	}
	for (unsigned n = 1;; n++) {
		uintptr_t owner = 0;

		if (__atomic_compare_exchange_n(
			    lock, &owner, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
		if (owner == self || n == tries)
			return false;
		if (n % 64 == 0)
			sched_yield();
		else
			__builtin_ia32_pause();
	}
}

/* Releases a lock with an owner. */
static inline void
sk_disown(uintptr_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
