/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An attack in the thread of the victim. The attack runs as a coroutine: each time that it rests,
 * the victim continues, and once the rest is over, the victim's next beside_turn() lets the attack
 * continue. So the attacker wakes up as often as one with a processor of its own, and the scheduler
 * never takes the processor from the victim for it. The victim's clocks stand still meanwhile, so a
 * turn must be short: what saker works off during a turn delays nobody.
 */
#ifndef TEST_BESIDE_H
#define TEST_BESIDE_H

#include "hostile.h"

struct beside {
	struct hostile h;
	const char *name;
	bool serves;    /* the attack also runs while the victim has no order */
	bool lives;     /* between beside_start() and the end of the attack */
	bool ready;     /* it has called hostile_ready() */
	int status;     /* what the attack returned */
	char what[80];  /* what it is ready with */
	uint64_t count; /* as above */
};

extern struct beside beside;

/* Starts beside.name with beside.h, and returns when it is ready, or has ended, or after a minute.
 * Returns whether it is ready. */
bool beside_start(void);
/* Ends the attack. Returns whether it has ended within a minute. */
bool beside_end(void);
/* Lets the attack continue if its rest is over. */
void beside_turn(void);
/* Keeps the slot of a machine's program while the attack does not run. */
void beside_beat(void);

/* Returns the machine's clock without the time that the attack has taken, in ns. */
uint64_t beside_now(void);
/* Returns for how many ns this thread was without a processor since the last call, or since the
 * last turn of more than BESIDE_SLOW_NS: such a turn may have waited itself. */
uint64_t beside_lost(void);
#define BESIDE_SLOW_NS 5000u

#endif
