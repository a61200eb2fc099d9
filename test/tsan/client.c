/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libsaker with several threads, for ThreadSanitizer: two threads post to their own QPs and poll,
 * two send commands, one sleeps for events, and another runs the engine. Exits with status 1 if a
 * completion or reply is lost, duplicated or delivered to the wrong thread.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../mini/mini.h"

#define POSTERS    2
#define COMMANDERS 2
#define POSTS      200000u
#define DEPTH      64
#define COMMANDS   1000
#define DEADLINE   300 /* seconds; a healthy run takes a few */

static struct mini engine;
static struct saker *s;
static struct saker_pd *pd;
static uint32_t stop;

static void
need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "client: %s (%s)\n", what, saker_error());
	exit(1);
}

static void *
engine_main(void *arg)
{
	while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0)
		if (!mini_poll(&engine))
			sched_yield();
	return arg;
}

static void *
poster_main(void *arg)
{
	struct saker_qp_attr attr = {
		.sq_depth = DEPTH, .rq_depth = 2, .max_send_sge = 1, .max_recv_sge = 1};
	const struct rd_sge sge = {0x1000, 64, 1};
	struct saker_qp *qp;
	uint64_t posted = 0, done = 0;

	need(saker_cq_create(s, DEPTH, arg, &attr.send_cq) == 0, "no CQ");
	attr.recv_cq = attr.send_cq;
	need(saker_qp_create(pd, &attr, &qp) == 0, "no QP");
	while (done < POSTS) {
		struct rd_wc wc[8];
		int n;

		while (posted < POSTS && posted - done < DEPTH) {
			struct saker_wr wr = {
				.wr_id = posted, .opcode = RD_WRITE, .nsge = 1, .sge = &sge};

			n = saker_post_send(qp, &wr, 1);
			need(n >= 0, "a post failed");
			if (n == 0)
				break;
			posted++;
		}
		if (done % 16 == 0)
			saker_cq_arm(attr.send_cq, false);
		n = saker_cq_poll(attr.send_cq, wc, 8);
		for (int i = 0; i < n; i++)
			need(wc[i].wr_id == done++ && wc[i].qpn == saker_qp_num(qp),
				"a completion is lost, doubled or another's");
		if (n == 0)
			sched_yield();
	}
	return qp;
}

static void *
commander_main(void *arg)
{
	for (int i = 0; i < COMMANDS; i++) {
		struct saker_pd *own;
		struct saker_device dev;

		need(saker_pd_create(s, &own) == 0, "no PD");
		need(saker_device(s, &dev) == 0, "no device");
		need(saker_pd_destroy(own) == 0, "a PD stays");
	}
	return arg;
}

static void *
sleeper_main(void *arg)
{
	struct saker_cq *cq;

	while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0)
		if (saker_wait(s, 1) == 1)
			while (saker_cq_event(s, &cq) == 1)
				need(saker_cq_user(cq) != NULL, "the event of nobody");
	return arg;
}

int
main(void)
{
	pthread_t t[POSTERS + COMMANDERS], aside[2];

	alarm(DEADLINE);
	need(mini_init(&engine, 1u << 20), "no memory");
	pthread_create(&aside[0], NULL, engine_main, NULL);
	need(saker_open_flat(engine.home, engine.size, NULL, NULL, &s) == 0, "not attached");
	need(saker_pd_create(s, &pd) == 0, "no PD");
	pthread_create(&aside[1], NULL, sleeper_main, NULL);
	for (int i = 0; i < POSTERS + COMMANDERS; i++)
		pthread_create(&t[i], NULL, i < POSTERS ? poster_main : commander_main, &engine);
	for (int i = 0; i < POSTERS + COMMANDERS; i++)
		pthread_join(t[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(aside[1], NULL);
	pthread_join(aside[0], NULL);
	printf("client: %u requests from %d threads, each completed once\n", POSTERS * POSTS,
		POSTERS);
	return 0;
}
