/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A loop that sleeps until a frame arrives. The linker replaces the functions of ethdev for receive
 * interrupts, so that a net_ring port has the interrupts of this file.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "pair.h"

#define HOME_SIZE (8u << 20)
#define ROUNDS    20

TestSuite(engine_sleep, .init = pair_eal);

/* The interrupts of the port, as its driver has them. */
static struct device {
	int fd;             /* of the receive queue; -1: none */
	bool enabled;       /* atomic */
	unsigned requests;  /* calls of rte_eth_dev_configure() that request interrupts */
	unsigned enables;   /* calls of rte_eth_dev_rx_intr_enable() */
	bool no_function;   /* rte_eth_dev_rx_intr_enable() is not supported */
	bool refuses;       /* rte_eth_dev_configure() fails with interrupts */
	bool starts_not;    /* rte_eth_dev_start() fails with interrupts */
	bool configured;    /* with interrupts */
	unsigned callbacks; /* registered */
	rte_eth_dev_cb_fn report;
	void *report_arg;
	void (*on_enable)(void); /* runs in the loop's thread */
} device;

static struct rig {
	struct pair pair;
	struct eng *e;
	struct rte_ring *wire, *back; /* to the port, and from it */
	struct rte_mempool *pool;
	pthread_t thread;
	void *home;
} rig;

int __real_rte_eth_dev_configure(
	uint16_t port, uint16_t rx, uint16_t tx, const struct rte_eth_conf *conf);
int __wrap_rte_eth_dev_configure(
	uint16_t port, uint16_t rx, uint16_t tx, const struct rte_eth_conf *conf);
int __real_rte_eth_dev_start(uint16_t port);
int __wrap_rte_eth_dev_start(uint16_t port);
int __wrap_rte_eth_dev_rx_intr_enable(uint16_t port, uint16_t queue);
int __wrap_rte_eth_dev_rx_intr_disable(uint16_t port, uint16_t queue);
int __wrap_rte_eth_dev_rx_intr_ctl_q_get_fd(uint16_t port, uint16_t queue);
int __wrap_rte_eth_dev_callback_register(
	uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn fn, void *arg);
int __wrap_rte_eth_dev_callback_unregister(
	uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn fn, void *arg);

int
__wrap_rte_eth_dev_configure(
	uint16_t port, uint16_t rx, uint16_t tx, const struct rte_eth_conf *conf)
{
	device.configured = conf->intr_conf.rxq;
	device.requests += conf->intr_conf.rxq;
	if (conf->intr_conf.rxq && device.refuses)
		return -EINVAL;
	return __real_rte_eth_dev_configure(port, rx, tx, conf);
}

int
__wrap_rte_eth_dev_start(uint16_t port)
{
	return device.configured && device.starts_not ? -EIO : __real_rte_eth_dev_start(port);
}

int
__wrap_rte_eth_dev_rx_intr_enable(uint16_t port, uint16_t queue)
{
	if (device.no_function)
		return -ENOTSUP;
	device.enables++;
	__atomic_store_n(&device.enabled, true, __ATOMIC_SEQ_CST);
	if (device.on_enable != NULL)
		device.on_enable();
	return 0;
}

int
__wrap_rte_eth_dev_rx_intr_disable(uint16_t port, uint16_t queue)
{
	__atomic_store_n(&device.enabled, false, __ATOMIC_SEQ_CST);
	return 0;
}

int
__wrap_rte_eth_dev_rx_intr_ctl_q_get_fd(uint16_t port, uint16_t queue)
{
	return __atomic_load_n(&device.fd, __ATOMIC_SEQ_CST);
}

int
__wrap_rte_eth_dev_callback_register(
	uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn fn, void *arg)
{
	device.callbacks += event != RTE_ETH_EVENT_INTR_RMV;
	if (event == RTE_ETH_EVENT_INTR_LSC) {
		device.report = fn;
		device.report_arg = arg;
	}
	return 0;
}

int
__wrap_rte_eth_dev_callback_unregister(
	uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn fn, void *arg)
{
	device.callbacks -= event != RTE_ETH_EVENT_INTR_RMV;
	return 0;
}

/* ---- The rig: one instance, whose loop runs in a thread; the test is its peer ---- */

static void *
loop_main(void *arg)
{
	eng_run(arg, 0);
	return NULL;
}

static void
prepare(void)
{
	device.fd = eventfd(0, EFD_NONBLOCK);
	pair_init(&rig.pair);
	rig.pair.cfg[1].idle = ENG_IDLE_SLEEP;
	rig.pair.cfg[1].sleep_after = 0;
	rig.pair.cfg[1].ports[0].interrupts = true;
	rig.wire = rte_ring_lookup("wire1_0");
	rig.back = rte_ring_lookup("wire0_0");
	rig.pool = rte_pktmbuf_pool_create("frames", 63, 0, 0, 256, SOCKET_ID_ANY);
	cr_assert(rig.wire != NULL && rig.back != NULL && rig.pool != NULL && device.fd >= 0);
}

static void
run(void)
{
	char err[256];

	rig.e = rig.pair.e[1] = eng_create(&rig.pair.cfg[1], err, sizeof(err));
	cr_assert_not_null(rig.e, "%s", err);
	cr_assert_eq(pthread_create(&rig.thread, NULL, loop_main, rig.e), 0);
}

static void
finish(void)
{
	void *sent;

	eng_stop(rig.e);
	pthread_join(rig.thread, NULL);
	while (rte_ring_dequeue(rig.back, &sent) == 0)
		rte_pktmbuf_free(sent);
	pair_end(&rig.pair);
	cr_assert_eq(device.callbacks, 0);
	cr_assert_eq(rte_mempool_in_use_count(rig.pool), 0);
	free(rig.home);
	close(device.fd);
}

static struct eng_loop_stats
stats(void)
{
	struct eng_loop_stats st;

	eng_loop_stats(rig.e, 0, &st);
	return st;
}

/* Puts a frame into the port's queue. It is no valid packet: the engine frees it. */
static void
put_frame(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(rig.pool);

	cr_assert(m != NULL && rte_pktmbuf_append(m, 60) != NULL);
	cr_assert_eq(rte_ring_enqueue(rig.wire, m), 0);
}

/* Does the same as a device with interrupts. */
static void
frame_arrives(void)
{
	const uint64_t one = 1;

	put_frame();
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&device.enabled, __ATOMIC_SEQ_CST))
		cr_assert_eq(write(device.fd, &one, sizeof(one)), (ssize_t)sizeof(one));
}

static void
wait_until_received(void)
{
	while (rte_mempool_in_use_count(rig.pool) > 0)
		sched_yield();
}

static void
wait_for_naps(void)
{
	for (uint64_t before = stats().naps; stats().naps < before + 3;)
		sched_yield();
}

/* Lets frames arrive, each while the interrupt is enabled, until the port has woken the loop. */
static void
exchange(void)
{
	uint64_t before = stats().port_wakes;

	for (unsigned i = 0; i < ROUNDS || stats().port_wakes < before + 3; i++) {
		while (!__atomic_load_n(&device.enabled, __ATOMIC_SEQ_CST))
			sched_yield();
		frame_arrives();
		wait_until_received();
	}
}

/* ---- Tests ---- */

Test(engine_sleep, a_frame_ends_the_sleep)
{
	prepare();
	run();
	exchange();
	cr_assert_eq(stats().naps, 0);
	cr_assert_geq(stats().wakes, stats().port_wakes);
	finish();
}

/* The client keeps the eventfd, so that closing it would not remove it from the epoll set. */
Test(engine_sleep, a_doorbell_ends_the_sleep_until_its_client_has_left)
{
	static const uint64_t one = 1;
	int bell = eventfd(0, EFD_NONBLOCK), kept = dup(bell);
	uint64_t before, sleeps;

	prepare();
	run();
	cr_assert(bell >= 0 && kept >= 0 && eng_doorbell_watch(rig.e, bell) == 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		before = stats().wakes;
		while (stats().wakes == before) {
			cr_assert_eq(write(kept, &one, sizeof(one)), (ssize_t)sizeof(one));
			sched_yield();
		}
	}
	eng_doorbell_unwatch(rig.e, bell);
	close(bell);
	for (sleeps = stats().sleeps; stats().sleeps < sleeps + 2;)
		sched_yield(); /* the last event has been seen */
	before = stats().wakes;
	cr_assert_eq(write(kept, &one, sizeof(one)), (ssize_t)sizeof(one));
	for (sleeps = stats().sleeps; stats().sleeps < sleeps + 2;)
		sched_yield();
	cr_assert_eq(stats().wakes, before);
	close(kept);
	finish();
}

static uint64_t sleeps_before_frame;

static void
late_frame(void)
{
	/* eng_create() enables the interrupt once, to find out whether the driver can. */
	if (device.enables == 2)
		put_frame();
	if (device.enables == 3)
		__atomic_store_n(&sleeps_before_frame, stats().sleeps, __ATOMIC_RELEASE);
}

/* A frame that arrives while the loop enables the interrupt causes none. */
Test(engine_sleep, the_queue_is_polled_after_its_interrupt_is_enabled)
{
	prepare();
	device.on_enable = late_frame;
	sleeps_before_frame = UINT64_MAX;
	run();
	while (__atomic_load_n(&sleeps_before_frame, __ATOMIC_ACQUIRE) == UINT64_MAX)
		sched_yield();
	wait_until_received();
	cr_assert_eq(sleeps_before_frame, 0, "the loop slept although a frame was in the queue");
	finish();
}

/* net_vhost has other virtqueues after its peer has connected again. */
Test(engine_sleep, a_new_link_has_a_new_descriptor)
{
	int old;

	prepare();
	old = device.fd;
	run();
	exchange();
	cr_assert_eq(device.callbacks, 2);
	__atomic_store_n(&device.fd, eventfd(0, EFD_NONBLOCK), __ATOMIC_SEQ_CST);
	close(old);
	device.report(rig.pair.port[1], RTE_ETH_EVENT_INTR_LSC, device.report_arg, NULL);
	exchange();
	cr_assert_eq(stats().naps, 0);
	finish();
}

/* A port without a descriptor has none until its driver reports a change. */
Test(engine_sleep, a_port_without_a_link_takes_naps)
{
	int fd;

	prepare();
	fd = device.fd;
	device.fd = -1;
	run();
	wait_for_naps();
	cr_assert_eq(stats().port_wakes, 0);
	__atomic_store_n(&device.fd, fd, __ATOMIC_SEQ_CST);
	device.report(rig.pair.port[1], RTE_ETH_EVENT_QUEUE_STATE, device.report_arg, NULL);
	exchange();
	finish();
}

/* The queue of a vhost port whose peer ends accepts no frame, for as long as that takes. */
Test(engine_sleep, a_port_that_accepts_no_frames_leaves_the_loop_naps)
{
	unsigned mine = 0;
	uint64_t naps;
	void *sent;

	prepare();
	while (rte_ring_enqueue(rig.back, &rig) == 0) /* no frame: only this test takes it out */
		mine++;
	run(); /* the instance announces its address */
	exchange();
	wait_for_naps();
	for (; mine > 0; mine--)
		cr_assert(rte_ring_dequeue(rig.back, &sent) == 0 && sent == &rig);
	while (rte_ring_empty(rig.back))
		sched_yield();
	naps = stats().naps;
	exchange();
	cr_assert_leq(stats().naps, naps + 1, "the loop takes naps though the frame has left");
	finish();
}

static void
only_naps(unsigned requests)
{
	run();
	put_frame();
	wait_until_received();
	wait_for_naps();
	cr_assert_eq(device.requests, requests);
	cr_assert_not(device.configured && device.callbacks > 0);
	cr_assert_eq(stats().port_wakes, 0);
	finish();
}

Test(engine_sleep, a_driver_without_the_function_gets_naps)
{
	prepare();
	device.no_function = true;
	only_naps(1);
}

Test(engine_sleep, a_driver_that_refuses_interrupts_starts_without)
{
	prepare();
	device.refuses = true;
	only_naps(1);
	cr_assert_not(device.configured);
}

Test(engine_sleep, a_port_that_does_not_start_with_interrupts_starts_without)
{
	prepare();
	device.starts_not = true;
	only_naps(1);
	cr_assert_not(device.configured);
}

Test(engine_sleep, the_configuration_can_do_without_interrupts)
{
	prepare();
	rig.pair.cfg[1].ports[0].interrupts = false;
	only_naps(0);
}

Test(engine_sleep, a_loop_that_does_not_sleep_requests_no_interrupts)
{
	prepare();
	rig.pair.cfg[1].idle = ENG_IDLE_YIELD;
	run();
	put_frame();
	wait_until_received();
	cr_assert_eq(device.requests, 0);
	finish();
}

/* The doorbell of a flat client wakes no loop. */
Test(engine_sleep, a_flat_client_leaves_the_loop_naps)
{
	prepare();
	run();
	exchange();
	cr_assert_eq(stats().naps, 0);
	rig.home = aligned_alloc(4096, HOME_SIZE);
	cr_assert_not_null(rig.home);
	memset(rig.home, 0, HOME_SIZE);
	cr_assert_geq(eng_attach_flat(rig.e, "flat", rig.home, HOME_SIZE, 1u << 20), 0);
	wait_for_naps();
	finish();
}
