/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Real-time priority (chrt, or CPUSchedulingPolicy= in a unit) is for the lcores only, and only
 * while they run loops. A new thread inherits the policy of its creator, and a control thread with
 * the lcores' priority and core would never run beside a loop that polls. EAL's start, too, waits
 * for its threads in ways that never end on one core with that priority.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include <rte_lcore.h>

#include "../../lib/base/log.h"
#include "saker.h"

static struct {
	int policy; /* of the lcores in their loops; SCHED_OTHER: none */
	struct sched_param param;
	cpu_set_t cpus; /* of the process, before EAL bound its threads */
} state;

void
priority_begin(void)
{
	const struct sched_param ordinary = {0};
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	if (sched_getaffinity(0, sizeof(state.cpus), &state.cpus) < 0)
		CPU_ZERO(&state.cpus);
	if ((policy != SCHED_FIFO && policy != SCHED_RR) || CPU_COUNT(&state.cpus) == 0 ||
		sched_getparam(0, &state.param) < 0 ||
		sched_setscheduler(0, SCHED_OTHER, &ordinary) < 0)
		return;
	state.policy = policy;
}

/* Sets *left to the cores of the process that have no lcore. Returns their number. */
static int
cores_left(cpu_set_t *left)
{
	unsigned lcore;

	*left = state.cpus;
	RTE_LCORE_FOREACH(lcore)
	{
		const rte_cpuset_t set = rte_lcore_cpuset(lcore);

		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &set))
				CPU_CLR(cpu, left);
	}
	return CPU_COUNT(left);
}

void
priority_aside(bool aside)
{
	cpu_set_t left, own = rte_lcore_cpuset(rte_lcore_id());

	if (cores_left(&left) > 0)
		sched_setaffinity(0, sizeof(left), aside ? &left : &own);
}

void
priority_settle(struct settings *s)
{
	cpu_set_t left;

	if (state.policy == SCHED_OTHER || s->eng.idle == ENG_IDLE_SLEEP || cores_left(&left) > 0)
		return;
	/* The naps of `yield` have no timer slack with this priority, and would be too short. */
	s->eng.idle = ENG_IDLE_SLEEP;
	sk_log(SK_LOG_WARNING, "the lcores have real-time priority and leave no core to saker's "
			       "other threads: idle = sleep applies");
}

void
priority_enter(void)
{
	if (state.policy != SCHED_OTHER && sched_setscheduler(0, state.policy, &state.param) < 0)
		sk_log(SK_LOG_WARNING,
			"lcore %u cannot get real-time priority back (CAP_SYS_NICE or "
			"RLIMIT_RTPRIO permits it): %s",
			rte_lcore_id(), strerror(errno));
}

void
priority_leave(void)
{
	const struct sched_param ordinary = {0};

	if (state.policy != SCHED_OTHER)
		sched_setscheduler(0, SCHED_OTHER, &ordinary);
}
