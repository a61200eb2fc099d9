/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A timer lies at the level of the highest byte in which its tick differs from the wheel's tick, in
 * the slot with the number of this byte. So a slot of level 0 is one tick; all timers of a level
 * are due before all of the next level; and the next timer is in the first occupied slot of the
 * first level that has one. Time may jump there directly. When the wheel reaches a slot of a higher
 * level, the timers of the slot move down.
 *
 * Below the top level no occupied slot lies before the wheel's own position. The top level is a
 * ring of at most 255 slots ahead; a timer beyond it waits in the last slot and is placed again
 * there.
 */
#include "wheel.h"

#include <stddef.h>
#include <string.h>

#define SLOT_BITS 8
#define SLOT_MASK (SK_WHEEL_SLOTS - 1u)
#define TOP       (SK_WHEEL_LEVELS - 1)
/* The timers that one poll may move down, per timer that it may fire: this bounds the moves,
 * too. */
#define MOVES_PER_FIRE 4

void
sk_wheel_init(struct sk_wheel *w, uint64_t now)
{
	memset(w, 0, sizeof(*w));
	w->tick = now / SK_WHEEL_TICK_NS;
	w->due = SK_NEVER;
}

static unsigned
position(uint64_t tick, unsigned level)
{
	return (unsigned)(tick >> (level * SLOT_BITS)) & SLOT_MASK;
}

static void
link_timer(struct sk_timer **head, struct sk_timer *t)
{
	t->next = *head;
	t->pprev = head;
	if (t->next != NULL)
		t->next->pprev = &t->next;
	*head = t;
}

/* Places a timer by its deadline. Returns the tick at which it is due, or 0 for a timer that is due
 * already; that one goes into the current slot of level 0. */
static uint64_t
wheel_place(struct sk_wheel *w, struct sk_timer *t)
{
	/* Rounds up, so that the whole tick has passed when the timer fires. */
	uint64_t tick = t->deadline / SK_WHEEL_TICK_NS + (t->deadline % SK_WHEEL_TICK_NS != 0);
	uint64_t at = tick > w->tick ? tick : 0;
	unsigned level = 0;
	unsigned slot;

	if (at == 0) {
		tick = w->tick;
	} else {
		level = (63 - (unsigned)__builtin_clzll(tick ^ w->tick)) / SLOT_BITS;
		if (level >= TOP) {
			uint64_t top = w->tick >> (TOP * SLOT_BITS);

			level = TOP;
			if ((tick >> (TOP * SLOT_BITS)) - top > SLOT_MASK)
				tick = (top + SLOT_MASK) << (TOP * SLOT_BITS);
		}
	}
	slot = position(tick, level);
	w->occupied[level][slot / 64] |= 1ull << (slot % 64);
	link_timer(&w->slot[level][slot], t);
	return at;
}

static void
wheel_take(struct sk_wheel *w, struct sk_timer *t)
{
	uintptr_t offset = (uintptr_t)t->pprev - (uintptr_t)w->slot;

	*t->pprev = t->next;
	if (t->next != NULL)
		t->next->pprev = t->pprev;
	else if (offset < sizeof(w->slot)) {
		/* The timer was the only one of its slot. (Behind another timer, or on the list of
		 * a poll, pprev points outside of the array.) */
		unsigned index = (unsigned)(offset / sizeof(struct sk_timer *));

		w->occupied[index / SK_WHEEL_SLOTS][index % SK_WHEEL_SLOTS / 64] &=
			~(1ull << (index % 64));
	}
	t->next = NULL;
	t->pprev = NULL;
}

void
sk_timer_set(struct sk_wheel *w, struct sk_timer *t, uint64_t deadline)
{
	uint64_t due;

	sk_timer_stop(w, t);
	if (deadline == SK_NEVER)
		return;
	t->deadline = deadline;
	due = wheel_place(w, t) * SK_WHEEL_TICK_NS;
	if (due < w->due)
		w->due = due;
	w->armed++;
}

void
sk_timer_stop(struct sk_wheel *w, struct sk_timer *t)
{
	if (!sk_timer_is_set(t))
		return;
	wheel_take(w, t);
	w->armed--;
}

/* Returns the first occupied slot from `from` on, or SK_WHEEL_SLOTS. */
static unsigned
first_occupied(const uint64_t occupied[SK_WHEEL_SLOTS / 64], unsigned from)
{
	for (unsigned word = from / 64; word < SK_WHEEL_SLOTS / 64; word++) {
		uint64_t bits = occupied[word];

		if (word == from / 64)
			bits &= ~0ull << (from % 64);
		if (bits != 0)
			return word * 64 + (unsigned)__builtin_ctzll(bits);
	}
	return SK_WHEEL_SLOTS;
}

/* Returns the highest level whose current slot has timers: they have to move down, or, at level 0,
 * to fire. Returns SK_WHEEL_LEVELS when there is none. */
static unsigned
current_work(const struct sk_wheel *w)
{
	for (unsigned level = SK_WHEEL_LEVELS; level-- > 0;)
		if (w->slot[level][position(w->tick, level)] != NULL)
			return level;
	return SK_WHEEL_LEVELS;
}

/* Returns the tick of the next occupied slot behind the current ones, or SK_NEVER. */
static uint64_t
next_tick(const struct sk_wheel *w)
{
	uint64_t top = w->tick >> (TOP * SLOT_BITS);
	unsigned at = position(w->tick, TOP);
	unsigned slot;

	for (unsigned level = 0; level < TOP; level++) {
		unsigned shift = level * SLOT_BITS;

		slot = first_occupied(w->occupied[level], position(w->tick, level));
		if (slot < SK_WHEEL_SLOTS)
			return ((w->tick >> shift & ~(uint64_t)SLOT_MASK) | slot) << shift;
	}
	slot = first_occupied(w->occupied[TOP], at);
	if (slot == SK_WHEEL_SLOTS)
		slot = first_occupied(w->occupied[TOP], 0);
	if (slot == SK_WHEEL_SLOTS)
		return SK_NEVER;
	return (top + ((slot - at) & SLOT_MASK)) << (TOP * SLOT_BITS);
}

/* Moves due timers from the wheel to `list`, at most `budget`, the earliest first. */
static void
wheel_collect(struct sk_wheel *w, uint64_t target, unsigned budget, struct sk_timer **list)
{
	uint64_t moves = (uint64_t)budget * MOVES_PER_FIRE;

	while (budget > 0) {
		unsigned level = current_work(w);
		uint64_t next;
		struct sk_timer *t;

		if (level == SK_WHEEL_LEVELS) {
			if (target <= w->tick)
				return;
			next = next_tick(w);
			if (next > target) {
				w->tick = target;
				return;
			}
			w->tick = next;
			continue;
		}
		if (level > 0 && moves-- == 0)
			return;
		t = w->slot[level][position(w->tick, level)];
		wheel_take(w, t);
		if (level > 0) {
			wheel_place(w, t);
		} else {
			link_timer(list, t);
			list = &t->next;
			budget--;
		}
	}
}

/* Returns the time (ns) of the next tick at which a timer moves down or fires, 0 when that is the
 * current one, or SK_NEVER. */
static uint64_t
wheel_due(const struct sk_wheel *w)
{
	uint64_t tick;

	if (w->armed == 0)
		return SK_NEVER;
	if (current_work(w) < SK_WHEEL_LEVELS)
		return 0;
	tick = next_tick(w);
	return tick == SK_NEVER ? SK_NEVER : tick * SK_WHEEL_TICK_NS;
}

unsigned
sk_wheel_poll(struct sk_wheel *w, uint64_t now, unsigned budget,
	void (*fire)(void *ctx, struct sk_timer *t, uint64_t now), void *ctx)
{
	struct sk_timer *due = NULL;
	unsigned fired = 0;

	/* Most polls are too early for any timer. The wheel's tick then stays, which only moves new
	 * timers to a higher level. */
	if (now < w->due)
		return 0;
	/* Collects all due timers before the first one fires. So a timer that a callback sets in
	 * the past waits for the next poll, and a timer that it stops or moves leaves the list. */
	wheel_collect(w, now / SK_WHEEL_TICK_NS, budget, &due);
	while (due != NULL) {
		struct sk_timer *t = due;

		wheel_take(w, t);
		w->armed--;
		fired++;
		fire(ctx, t, now);
	}
	w->due = wheel_due(w);
	return fired;
}
