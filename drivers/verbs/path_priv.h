/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The locks of the data path: one for each CQ, send queue and receive queue. A signal handler may
 * call ibv_poll_cq(), the posting functions and ibv_req_notify_cq(). Where it interrupted its
 * thread within one of these functions, it does not wait for any lock: the holder may be its own
 * thread, or a thread whose signal handler waits for a lock of this one.
 */
#ifndef SAKER_VERBS_PATH_PRIV_H
#define SAKER_VERBS_PATH_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "../../lib/base/spin.h"

/* The number of functions of the data path that the thread runs now: more than one in a signal
 * handler. In post.c. */
extern __thread uint32_t vb_path_depth __attribute__((tls_model("initial-exec")));

/* Enters a function of the data path and takes a lock. Returns false, and does neither, when the
 * calling thread holds the lock, or when another thread does and the caller must not wait. */
static inline bool
vb_path_enter(uintptr_t *lock)
{
	bool nested = vb_path_depth++ != 0;

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (sk_own(lock, nested ? 1 : 0))
		return true;
	vb_path_depth--;
	return false;
}

/* Leaves a function of the data path, which keeps its lock: ibv_start_poll(), ibv_wr_start(). */
static inline void
vb_path_keep(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	vb_path_depth--;
}

/* Enters a function of the data path whose lock the thread has kept. */
static inline void
vb_path_again(void)
{
	vb_path_depth++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Releases the lock and leaves the function. */
static inline void
vb_path_leave(uintptr_t *lock)
{
	sk_disown(lock);
	vb_path_keep();
}

#endif
