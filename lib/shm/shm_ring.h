/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both ends of the rings that shm.h describes. Each struct here is private to one side: base
 * pointer, size and indices are never read from shared memory a second time.
 */
#ifndef SAKER_SHM_RING_H
#define SAKER_SHM_RING_H

#include <string.h>

#include "shm.h"

struct shm_prod {
	uint8_t *entries;
	const struct shm_cons *cons;
	uint32_t next;  /* number of entries produced */
	uint32_t taken; /* cached copy of the consumer's number */
	uint32_t count; /* power of two */
	uint16_t stride;
	uint8_t log2_count;
	bool fresh; /* the first lap through memory of an older queue */
};

struct shm_take {
	uint8_t *entries;
	struct shm_cons *cons;
	uint32_t next; /* number of entries consumed */
	uint32_t count;
	uint16_t stride;
	uint8_t log2_count;
};

static inline uint32_t
shm_turn(uint32_t index, uint8_t log2_count)
{
	/* The result is 1 to 2^(32 - log2_count): it is never 0, the contents of fresh memory, and
	 * it differs between consecutive laps, because count >= 2. */
	return (index >> log2_count) + 1;
}

/* Makes all entries of an SRQ invalid. The client calls it before it uses a new SRQ, whose memory
 * may have belonged to an older queue. */
static inline void
shm_ring_clear(void *home, const struct shm_ring_at *at)
{
	memset((uint8_t *)home + at->entries, 0, shm_ring_bytes(at));
}

/* Prepares for a ring whose entries are invalid, all of them. */
static inline void
shm_prod_init(struct shm_prod *p, void *home, const struct shm_ring_at *at)
{
	p->entries = (uint8_t *)home + at->entries;
	p->cons = (const struct shm_cons *)((uint8_t *)home + at->cons);
	p->next = p->taken = 0;
	p->log2_count = at->log2_count;
	p->count = 1u << at->log2_count;
	p->stride = at->stride;
	p->fresh = false;
}

/* Prepares for the ring of a new queue, whose memory may have belonged to an older one. Makes entry
 * 0 invalid. */
static inline void
shm_prod_start(struct shm_prod *p, void *home, const struct shm_ring_at *at)
{
	shm_prod_init(p, home, at);
	p->fresh = true;
	__atomic_store_n((uint32_t *)(void *)p->entries, 0, __ATOMIC_RELAXED);
}

/* Returns the number of the first entry that a producer writes to a ring of `count` entries which
 * replaces one that it filled up to entry `next`: the next lap begins there. */
static inline uint32_t
shm_ring_moved(uint32_t next, uint32_t count)
{
	return (next + count - 1) & ~(count - 1);
}

static inline void
shm_take_init(struct shm_take *t, void *home, const struct shm_ring_at *at)
{
	t->entries = (uint8_t *)home + at->entries;
	t->cons = (struct shm_cons *)((uint8_t *)home + at->cons);
	t->next = 0;
	t->log2_count = at->log2_count;
	t->count = 1u << at->log2_count;
	t->stride = at->stride;
}

/* Returns the number of entries that may be produced: at most `count`, even if the consumer
 * publishes a wrong number. */
static inline uint32_t
shm_prod_room(struct shm_prod *p)
{
	uint32_t used = p->next - p->taken;

	if (used >= p->count) {
		uint32_t taken = __atomic_load_n(&p->cons->taken, __ATOMIC_ACQUIRE);

		if (taken - p->taken <= used)
			p->taken = taken;
		used = p->next - p->taken;
	}
	return p->count - used;
}

/* Returns whether `n` entries may be produced. Reads the consumer's number only if the cached copy
 * leaves too little room. */
static inline bool
shm_prod_fits(struct shm_prod *p, uint32_t n)
{
	if (p->count - (p->next - p->taken) < n) {
		uint32_t taken = __atomic_load_n(&p->cons->taken, __ATOMIC_ACQUIRE);

		if (taken - p->taken <= p->next - p->taken)
			p->taken = taken;
	}
	return p->count - (p->next - p->taken) >= n;
}

/* Returns the next entry to fill. The caller has checked that there is room. */
static inline void *
shm_prod_entry(struct shm_prod *p)
{
	return p->entries + (size_t)(p->next & (p->count - 1)) * p->stride;
}

/* Returns the entry that follows `n` entries after the next one. */
static inline void *
shm_prod_ahead(const struct shm_prod *p, uint32_t n)
{
	return p->entries + (size_t)((p->next + n) & (p->count - 1)) * p->stride;
}

/* Makes the entry behind the next `n` entries invalid, in the first lap. Called before these are
 * published. An entry that moved here from another ring, and that the consumer has not taken, stays
 * valid. */
static inline void
shm_prod_clear(struct shm_prod *p, uint32_t n)
{
	if (__builtin_expect(!p->fresh, 1))
		return;
	if (((p->next + n) & (p->count - 1)) < n)
		p->fresh = false;
	else if (p->next + n - p->taken < p->count)
		__atomic_store_n((uint32_t *)shm_prod_ahead(p, n), 0, __ATOMIC_RELAXED);
}

/* Moves to a larger ring, whose memory may have belonged to an older queue. The entries that the
 * consumer has not taken keep their places in front of the next one: the consumer copies them. */
static inline void
shm_prod_move(struct shm_prod *p, void *home, const struct shm_ring_at *at)
{
	uint32_t used, next;

	shm_prod_fits(p, p->count); /* reads the consumer's number, unless there is no entry left */
	used = p->next - p->taken;
	next = shm_ring_moved(p->next, 1u << at->log2_count);
	shm_prod_start(p, home, at);
	p->next = next;
	p->taken = next - used;
	__atomic_store_n(
		(uint32_t *)(void *)((uint8_t *)home + at->cons), p->taken, __ATOMIC_RELAXED);
}

/* Publishes the entry that shm_prod_entry() returned. */
static inline void
shm_prod_push(struct shm_prod *p)
{
	uint32_t *turn = shm_prod_entry(p);

	shm_prod_clear(p, 1);
	__atomic_store_n(turn, shm_turn(p->next, p->log2_count), __ATOMIC_RELEASE);
	p->next++;
}

/* Publishes the send queue entry `e` that shm_prod_entry() returned, with the fields that share a
 * word with its turn. `n`: 1, or 2 if its tail continues in the entry behind it. */
static inline void
shm_sqe_push(struct shm_prod *p, struct shm_sqe *e, uint32_t n, uint8_t opcode, uint8_t flags,
	uint32_t len)
{
	shm_prod_clear(p, n);
	__atomic_store_n(&e->head,
		(uint64_t)(len << 16 | (uint32_t)flags << 8 | opcode) << 32 |
			shm_turn(p->next, p->log2_count),
		__ATOMIC_RELEASE);
	p->next += n;
}

/* Writes a tail of `len` bytes that is longer than its entry, into the next entry and the one
 * behind it, and publishes the latter. There is room for two. */
static inline void
shm_sqe_tail_long(struct shm_prod *p, const void *tail, uint32_t len)
{
	uint32_t room = p->stride - SHM_SQE_BASE;
	uint8_t *more = shm_prod_ahead(p, 1);

	memcpy((uint8_t *)shm_prod_entry(p) + SHM_SQE_BASE, tail, room);
	memcpy(more + SHM_SQE_MORE, (const uint8_t *)tail + room, len - room);
	__atomic_store_n(
		(uint32_t *)(void *)more, shm_turn(p->next + 1, p->log2_count), __ATOMIC_RELEASE);
}

/* Returns the place of entry number `index`, valid or not. */
static inline const void *
shm_take_at(const struct shm_take *t, uint32_t index)
{
	return t->entries + (size_t)(index & (t->count - 1)) * t->stride;
}

/* Returns the next entry, or NULL if none is valid. The entry is in shared memory: the caller
 * copies it once and then validates the copy. */
static inline const void *
shm_take_peek(const struct shm_take *t)
{
	const uint8_t *e = shm_take_at(t, t->next);

	if (__atomic_load_n((const uint32_t *)e, __ATOMIC_ACQUIRE) !=
		shm_turn(t->next, t->log2_count))
		return NULL;
	return e;
}

/* Consumes the entry that shm_take_peek() returned, which the caller has copied. */
static inline void
shm_take_pop(struct shm_take *t)
{
	t->next++;
}

/* Publishes the number of consumed entries to the producer. Called once per burst. */
static inline void
shm_take_publish(const struct shm_take *t)
{
	__atomic_store_n(&t->cons->taken, t->next, __ATOMIC_RELEASE);
}

/* ---- Flags that both sides access ---- */

/* Orders a store before a later load from another location; release and acquire semantics do
 * not. */
static inline void
shm_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	/* ThreadSanitizer does not support fences. */
	uint32_t own = 0;

	__atomic_exchange_n(&own, 1, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Called after pushing to a queue: returns whether the queue's doorbell must be rung. Reads the
 * flag before it exchanges it, so that the cache line stays shared while the engine serves the
 * queue. */
static inline bool
shm_pend(uint32_t *pending)
{
	shm_fence();
	if (__atomic_load_n(pending, __ATOMIC_RELAXED) != 0)
		return false;
	return __atomic_exchange_n(pending, 1, __ATOMIC_SEQ_CST) == 0;
}

/* Clears the flag. The engine calls it before it polls a queue whose doorbell was rung. */
static inline void
shm_pend_clear(uint32_t *pending)
{
	__atomic_exchange_n(pending, 0, __ATOMIC_SEQ_CST);
}

/* Called by the client to request an event. SHM_ARM_ANY replaces SHM_ARM_SOLICITED, but not vice
 * versa. The client polls the CQ once more afterwards. */
static inline void
shm_arm(uint32_t *arm, bool solicited_only)
{
	uint32_t none = SHM_ARM_NONE;

	if (solicited_only)
		__atomic_compare_exchange_n(
			arm, &none, SHM_ARM_SOLICITED, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	else
		__atomic_exchange_n(arm, SHM_ARM_ANY, __ATOMIC_SEQ_CST);
	shm_fence();
}

/* Called by the engine after pushing completions; `solicited` means that one of them was solicited
 * or failed. Returns whether an event must be sent, and disarms the CQ in that case. */
static inline bool
shm_arm_fire(uint32_t *arm, bool solicited)
{
	uint32_t was;

	shm_fence();
	was = __atomic_load_n(arm, __ATOMIC_RELAXED);
	if (was != SHM_ARM_ANY && (was != SHM_ARM_SOLICITED || !solicited))
		return false;
	return __atomic_compare_exchange_n(
		arm, &was, SHM_ARM_NONE, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

#endif
