/* SPDX-License-Identifier: BSD-3-Clause */
#include "beside.h"
#include "../support/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

#define STACK      (1u << 20)
#define PATIENCE   60000000000ull /* for an attack that becomes ready, or ends */
#define WAITING_US 20             /* between two looks of a victim that waits for it */

struct beside beside;
static ucontext_t victim, attacker; /* attacker: where the attack begins */
static jmp_buf victim_at, attacker_at;
static bool begun;    /* attacker_at is valid */
static bool attacks;  /* which of the two runs */
static uint64_t wake; /* when the attack's rest is over */
static uint64_t taken, lost_known;

uint64_t
beside_now(void)
{
	return now_ns() - taken;
}

uint64_t
beside_lost(void)
{
	struct timespec t;
	uint64_t lost, fresh;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	/* The two clocks run at the same speed. Their origins differ. */
	lost = now_ns() - (uint64_t)t.tv_sec * 1000000000 - (uint64_t)t.tv_nsec;
	fresh = lost - lost_known;
	lost_known = lost;
	return (int64_t)fresh > 0 ? fresh : 0;
}

/* Changes the stack, without a system call (swapcontext() makes one, which would slow the victim
 * down), except at the attack's beginning. */
static void
attacker_go(void)
{
	attacks = true;
	if (_setjmp(victim_at) == 0) {
		if (begun)
			_longjmp(attacker_at, 1);
		begun = true;
		swapcontext(&victim, &attacker);
	}
	attacks = false;
}

void
beside_turn(void)
{
	uint64_t now = now_ns(), spent;

	if (!beside.lives || attacks || now < wake)
		return;
	attacker_go();
	spent = now_ns() - now;
	if (spent > BESIDE_SLOW_NS) {
		beside_lost();
		spent = now_ns() - now;
	}
	taken += spent;
}

static void
nap(unsigned us)
{
	const struct timespec t = {us / 1000000, us % 1000000 * 1000l};

	if (attacks) {
		wake = now_ns() + (uint64_t)us * 1000;
		if (_setjmp(attacker_at) == 0)
			_longjmp(victim_at, 1);
	} else {
		beside_turn();
		nanosleep(&t, NULL);
	}
}

static void
note_ready(const char *what, uint64_t n)
{
	snprintf(beside.what, sizeof(beside.what), "%s", what);
	beside.count = n;
	beside.ready = true;
	raw_nap(0);
}

static void
run(void)
{
	beside.status = hostile_run(&beside.h, beside.name);
	beside.lives = false;
	_longjmp(victim_at, 1);
}

/* Lets the attack run until *flag has the value. */
static bool
run_until(const bool *flag, bool value)
{
	uint64_t end = now_ns() + PATIENCE;

	while (*flag != value && beside.lives && now_ns() < end)
		raw_nap(WAITING_US);
	return *flag == value;
}

bool
beside_start(void)
{
	static uint8_t *stack;

	if (stack == NULL)
		stack = malloc(STACK);
	if (beside.lives || stack == NULL || getcontext(&attacker) < 0)
		return false;
	raw_napper = nap;
	hostile_on_ready = note_ready;
	hostile_stop = false;
	attacker.uc_stack.ss_sp = stack;
	attacker.uc_stack.ss_size = STACK;
	makecontext(&attacker, run, 0);
	wake = 0;
	begun = false;
	beside.ready = false;
	beside.lives = true;
	return run_until(&beside.ready, true);
}

bool
beside_end(void)
{
	hostile_stop = true;
	wake = 0;
	return run_until(&beside.lives, false);
}

void
beside_beat(void)
{
	if (beside.lives && beside.h.attached)
		raw_beat(&beside.h.c);
}
