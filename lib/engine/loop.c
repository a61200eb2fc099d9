/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops: a turn of the stages that are mapped onto an lcore, and the idle policy for turns
 * without work. The stages receive the time as an argument. A loop reads the clock once before it
 * receives, and once more before it sends if there was work in between.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_rcu_qsbr.h>

#include "../base/mem.h"
#include "../base/wheel.h"
#include "control/control.h"
#include "stage/stage.h"
#include "transport/transport.h"

#define CONTROL_EVERY 16     /* turns; the data path is more urgent than commands */
#define YIELD_AFTER   64     /* turns without work */
#define YIELD_NS      10000  /* Linux adds the timer slack of the thread, usually 50 us */
#define NAP_MIN_NS    50000u /* shortest and longest sleep that a frame or a doorbell may not end */
#define NAP_MAX_NS    1000000u
/* Longest sleep that each frame ends. The bound limits the harm of an interrupt that a driver loses
 * (a virtqueue that its peer sets up anew without a report, for example). */
#define SLEEP_MAX_NS 100000000u
#define WAKE_EVENTS  8 /* of the epoll set that a wake-up takes */

static inline uint64_t
scale(uint64_t tsc)
{
	/* Nanoseconds per tick, in units of 2^-32; equal for the whole process. */
	static uint64_t mult;

	if (__builtin_expect(mult == 0, 0))
		mult = (uint64_t)(((unsigned __int128)1000000000 << 32) / rte_get_tsc_hz());
	return (uint64_t)((unsigned __int128)tsc * mult >> 32);
}

uint64_t
eng_clock(void)
{
	return scale(rte_rdtsc());
}

bool
eng_poll(struct eng *e, unsigned k, uint64_t now)
{
	struct eng_loop *l = &e->loops[k];
	bool work = k == 0 && e->cfg.hook != NULL && e->cfg.hook(e->cfg.hook_arg, now);

	for (unsigned i = 0; i < l->ntransports; i++)
		work |= eng_transport_rx(l->transports[i], now);
	for (unsigned i = 0; i < l->nstages; i++)
		work |= eng_stage_poll(l->stages[i], now, l->unsent);
	if (l->control && (l->stats.turns % CONTROL_EVERY == 0 || l->look))
		work |= eng_control_poll(e->control, now);
	if (work)
		now = e->clock();
	l->unsent = false;
	for (unsigned i = 0; i < l->ntransports; i++) {
		work |= eng_transport_tx(l->transports[i], now);
		l->unsent |= eng_transport_unsent(l->transports[i]);
	}
	rte_rcu_qsbr_quiescent(e->qsbr, k);
	l->stats.turns++;
	if (work) {
		l->stats.busy_turns++;
		if (e->cfg.nloops > 1 && e->cfg.idle == ENG_IDLE_SLEEP)
			eng_wake(e, ~(1u << k)); /* the turn may have passed messages to them */
	}
	return work;
}

static uint64_t
loop_deadline(const struct eng *e, const struct eng_loop *l)
{
	uint64_t due = SK_NEVER;

	for (unsigned i = 0; i < l->ntransports; i++)
		due = SK_MIN(due, eng_transport_deadline(l->transports[i]));
	for (unsigned i = 0; i < l->nstages; i++)
		due = SK_MIN(due, eng_stage_deadline(l->stages[i]));
	if (l->control)
		due = SK_MIN(due, eng_control_deadline(e->control));
	return due;
}

static void
show_sleep(struct eng_loop *l, bool sleeps)
{
	for (unsigned i = 0; i < l->nstages; i++)
		eng_stage_show_sleep(l->stages[i], l->index, sleeps);
}

static bool
loop_rung(const struct eng_loop *l)
{
	for (unsigned i = 0; i < l->nstages; i++)
		if (eng_stage_rung(l->stages[i]))
			return true;
	return false;
}

void
eng_sleeps(struct eng *e, bool sleeps)
{
	show_sleep(&e->loops[0], sleeps);
}

bool
eng_rung(struct eng *e)
{
	return loop_rung(&e->loops[0]);
}

/* Shows the clients of this loop, and those of the hook, whether the loop sleeps. */
static void
all_sleep(struct eng_loop *l, bool sleeps)
{
	show_sleep(l, sleeps);
	if (l->index == 0 && l->e->cfg.hook_sleep != NULL)
		l->e->cfg.hook_sleep(l->e->cfg.hook_arg, sleeps);
}

static bool
all_rung(const struct eng_loop *l)
{
	return loop_rung(l) || (l->index == 0 && l->e->cfg.hook_rung != NULL &&
				       l->e->cfg.hook_rung(l->e->cfg.hook_arg));
}

int
eng_wake_on(struct eng *e, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLONESHOT};
	int epoll = e->loops[0].epoll_fd;

	if (epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &ev) == 0)
		return 0;
	if (errno == ENOENT && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	return -errno;
}

void
eng_wake_off(struct eng *e, int fd)
{
	epoll_ctl(e->loops[0].epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void
wait_for(struct eng_loop *l, uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
	struct epoll_event ev[WAKE_EVENTS];
	bool by_port = false;
	int n;

	rte_rcu_qsbr_thread_offline(l->e->qsbr, l->index);
	n = epoll_pwait2(l->epoll_fd, ev, WAKE_EVENTS, &ts, NULL);
	rte_rcu_qsbr_thread_online(l->e->qsbr, l->index);
	for (int i = 0; i < n; i++)
		by_port |= ev[i].data.u64 == ENG_EPOLL_PORT;
	l->stats.sleeps++;
	l->stats.wakes += n > 0;
	l->stats.port_wakes += by_port;
}

/* Enables the interrupts of the loop's receive queues. Returns whether all that gives the loop work
 * ends its sleep: each frame, each doorbell, and the work of the hook. */
static bool
loop_arm(struct eng_loop *l)
{
	bool all = !(l->index == 0 && l->e->cfg.hook != NULL) &&
		   !__atomic_load_n(&l->e->flat, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < l->ntransports; i++)
		all &= eng_transport_arm(l->transports[i], l->epoll_fd);
	return all;
}

static bool
loop_refused(const struct eng_loop *l)
{
	for (unsigned i = 0; i < l->ntransports; i++)
		if (eng_transport_refused(l->transports[i]))
			return true;
	return false;
}

static void
loop_disarm(struct eng_loop *l)
{
	for (unsigned i = 0; i < l->ntransports; i++)
		eng_transport_disarm(l->transports[i]);
}

/* Sleeps until an event, but at most until `due`. `armed`: the result of loop_arm(). `nap`: most ns
 * without it. */
static void
loop_sleep(struct eng_loop *l, uint64_t now, uint64_t due, bool armed, uint64_t nap)
{
	uint64_t ns = SK_MIN(due - now, armed ? SLEEP_MAX_NS : nap), end;

	wait_for(l, ns);
	if (!armed) {
		l->stats.naps++;
		return;
	}
	/* The time after the end of the sleep is not part of it: the loop was ready to run. */
	end = eng_clock();
	for (unsigned i = 0; i < l->ntransports; i++)
		eng_transport_slept(l->transports[i], SK_MIN(end, now + ns));
}

/* Sets the sleep flags, enables interrupts, runs one more turn, and then sleeps until an event or
 * the next deadline. It sleeps for at most `nap` ns if a frame may arrive without an event, or if a
 * port does not accept frames, such as a vhost port while its peer ends. A producer of work
 * publishes it before it reads the flags; because of the fence, either the producer sees a flag, or
 * the turn sees the work. Returns whether the turn found work; the loop then does not sleep. */
static bool
loop_nap(struct eng_loop *l, uint64_t nap)
{
	struct eng *e = l->e;
	bool work, armed;
	uint64_t now, due;

	__atomic_fetch_or(&e->sleeping, 1u << l->index, __ATOMIC_SEQ_CST);
	all_sleep(l, true);
	armed = loop_arm(l);
	shm_fence();
	now = eng_clock();
	l->look = true;
	work = eng_poll(e, l->index, now);
	l->look = false;
	work |= all_rung(l);
	due = loop_deadline(e, l);
	if (!work && due > now && !__atomic_load_n(&e->stop, __ATOMIC_ACQUIRE))
		loop_sleep(l, now, due, armed && !loop_refused(l), nap);
	loop_disarm(l);
	all_sleep(l, false);
	__atomic_fetch_and(&e->sleeping, ~(1u << l->index), __ATOMIC_SEQ_CST);
	return work;
}

/* Leaves the processor to other threads for a short time. sched_yield() does not: since Linux 6.6,
 * the scheduler selects the thread again ahead of those of a lower priority. */
static void
loop_yield(struct eng_loop *l)
{
	const struct timespec nap = {.tv_nsec = YIELD_NS};

	nanosleep(&nap, NULL);
	l->stats.sleeps++;
}

int
eng_run(struct eng *e, unsigned k)
{
	struct eng_loop *l = &e->loops[k];
	uint64_t tsc = rte_rdtsc(), nap_ns = NAP_MIN_NS;
	unsigned empty = 0;

	while (!__atomic_load_n(&e->stop, __ATOMIC_ACQUIRE)) {
		uint64_t start = tsc;
		bool work = eng_poll(e, k, scale(tsc));

		if (work) {
			empty = 0;
			nap_ns = NAP_MIN_NS;
		} else if (++empty > e->cfg.sleep_after && e->cfg.idle == ENG_IDLE_SLEEP) {
			work = loop_nap(l, nap_ns);
			nap_ns = SK_MIN(nap_ns * 2, (uint64_t)NAP_MAX_NS);
		} else if (empty > YIELD_AFTER && e->cfg.idle == ENG_IDLE_YIELD) {
			loop_yield(l);
		}
		tsc = rte_rdtsc();
		l->stats.total_cycles += tsc - start;
		if (work)
			l->stats.busy_cycles += tsc - start;
	}
	return 0;
}

void
eng_stop(struct eng *e)
{
	__atomic_store_n(&e->stop, true, __ATOMIC_RELEASE);
	eng_wake(e, UINT32_MAX);
}

void
eng_restart(struct eng *e)
{
	__atomic_store_n(&e->stop, false, __ATOMIC_RELEASE);
}

void
eng_loop_stats(const struct eng *e, unsigned loop, struct eng_loop_stats *out)
{
	*out = e->loops[loop].stats;
}
