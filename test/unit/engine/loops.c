/* SPDX-License-Identifier: BSD-3-Clause */
/* Stages split over loops that threads run and that sleep when idle: the same results as run to
 * completion. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/client/saker.h"
#include "pair.h"

#define HOME_SIZE (4u << 20)
#define MEM_SIZE  (1u << 20)
#define BUF_SIZE  65536u
#define PORT      7000
#define LOOPS     2

struct end {
	struct saker *s;
	struct saker_pd *pd;
	struct saker_cq *cq;
	struct saker_qp *qp;
	struct saker_mr *mr;
	uint8_t *mem;
	void *home;
	int client;
};

struct runner {
	struct eng *e;
	unsigned loop;
	pthread_t thread;
};

static struct pair pair;
static struct end end[2];
static struct runner runner[2 * LOOPS];

TestSuite(engine_loops, .init = pair_eal);

static void *
run(void *arg)
{
	struct runner *r = arg;

	eng_run(r->e, r->loop);
	return NULL;
}

static void
idle(void *arg)
{
	(void)arg;
	sched_yield();
}

static void
attach(struct end *n, struct eng *e)
{
	n->home = aligned_alloc(4096, HOME_SIZE);
	memset(n->home, 0, HOME_SIZE);
	n->client = eng_attach_flat(e, "test", n->home, HOME_SIZE, MEM_SIZE);
	cr_assert_geq(n->client, 0);
	cr_assert_eq(saker_open_flat(n->home, HOME_SIZE, idle, NULL, &n->s), 0);
	cr_assert_eq(saker_pd_create(n->s, &n->pd), 0);
	cr_assert_eq(saker_cq_create(n->s, 64, n, &n->cq), 0);
	n->mem = saker_alloc(n->s, BUF_SIZE);
	cr_assert_not_null(n->mem);
	cr_assert_eq(saker_mr_create(n->pd, n->mem, BUF_SIZE,
			     RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, &n->mr),
		0);
	struct saker_qp_attr attr = {.send_cq = n->cq,
		.recv_cq = n->cq,
		.sq_depth = 16,
		.rq_depth = 16,
		.max_send_sge = 1,
		.max_recv_sge = 1};
	cr_assert_eq(saker_qp_create(n->pd, &attr, &n->qp), 0);
}

static struct saker_event
wait_event(struct end *n, enum saker_event_type type)
{
	struct saker_event ev;

	while (saker_event(n->s, &ev) == 0)
		sched_yield();
	cr_assert_eq(ev.type, type, "event %d, status %d", ev.type, ev.status);
	return ev;
}

static struct rd_wc
wait_wc(struct end *n)
{
	struct rd_wc wc;

	while (saker_cq_poll(n->cq, &wc, 1) == 0)
		sched_yield();
	cr_assert_eq(wc.status, RD_SUCCESS, "status %u", wc.status);
	return wc;
}

static void
connect_ends(void)
{
	struct saker_conn_param param = {.ird = 4, .ord = 4, .crc = 2, .markers = 2};
	struct sk_addr to = pair_addr(PAIR_ADDR_B);
	struct saker_listener *l;
	struct saker_event ev;

	cr_assert_eq(saker_listen(end[1].s, NULL, PORT, 4, NULL, &l), 0);
	cr_assert_eq(saker_connect(end[0].qp, NULL, &to, PORT, &param), 0);
	ev = wait_event(&end[1], SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(saker_accept(end[1].s, ev.request, end[1].qp, &param), 0);
	wait_event(&end[0], SAKER_EV_ESTABLISHED);
	wait_event(&end[1], SAKER_EV_ESTABLISHED);
}

static void
post(struct end *n, enum rd_opcode op, const struct end *to, uint32_t len)
{
	struct rd_sge sge = {.addr = (uintptr_t)n->mem, .len = len, .lkey = saker_mr_stag(n->mr)};
	struct saker_wr wr = {
		.wr_id = op, .opcode = (uint8_t)op, .flags = RD_SIGNALED, .nsge = 1, .sge = &sge};

	if (to != NULL) {
		wr.rkey = saker_mr_stag(to->mr);
		wr.remote_addr = (uintptr_t)to->mem + BUF_SIZE / 2;
	}
	if (op == RD_READ)
		sge.addr += BUF_SIZE / 4;
	if (op == RD_RECV)
		cr_assert_eq(saker_post_recv(n->qp, &wr, 1), 1);
	else
		cr_assert_eq(saker_post_send(n->qp, &wr, 1), 1);
}

/* Sends, Writes and Reads back what it wrote; every byte compared. */
static void
exchange(unsigned round)
{
	uint32_t len = 1 + round * 611 % (BUF_SIZE / 4);

	for (uint32_t i = 0; i < len; i++)
		end[0].mem[i] = (uint8_t)(i * 7 + round);
	post(&end[1], RD_RECV, NULL, BUF_SIZE / 4);
	post(&end[0], RD_SEND, NULL, len);
	wait_wc(&end[0]);
	cr_assert_eq(wait_wc(&end[1]).byte_len, len);
	cr_assert_eq(memcmp(end[0].mem, end[1].mem, len), 0, "Send, round %u", round);
	post(&end[0], RD_WRITE, &end[1], len);
	post(&end[0], RD_READ, &end[1], len);
	wait_wc(&end[0]);
	wait_wc(&end[0]);
	cr_assert_eq(memcmp(end[0].mem, end[1].mem + BUF_SIZE / 2, len), 0, "Write");
	cr_assert_eq(memcmp(end[0].mem, end[0].mem + BUF_SIZE / 4, len), 0, "Read");
}

static void
start(enum eng_idle how)
{
	pair_init(&pair);
	for (int i = 0; i < 2; i++) {
		struct eng_config *cfg = &pair.cfg[i];

		cfg->nloops = LOOPS;
		cfg->transport_loop[0] = 0;
		cfg->stage_loop[0] = cfg->control_loop = 1;
		cfg->idle = how;
	}
	pair_start(&pair);
	for (int i = 0; i < 2 * LOOPS; i++) {
		runner[i] = (struct runner){.e = pair.e[i / LOOPS], .loop = i % LOOPS};
		cr_assert_eq(pthread_create(&runner[i].thread, NULL, run, &runner[i]), 0);
	}
	attach(&end[0], pair.e[0]);
	attach(&end[1], pair.e[1]);
	connect_ends();
}

static void
finish(void)
{
	for (int i = 0; i < 2; i++) {
		saker_close(end[i].s);
		eng_detach(pair.e[i], end[i].client);
		while (!eng_client_gone(pair.e[i], end[i].client))
			sched_yield();
	}
	eng_stop(pair.e[0]);
	eng_stop(pair.e[1]);
	for (int i = 0; i < 2 * LOOPS; i++)
		pthread_join(runner[i].thread, NULL);
	pair_end(&pair);
	free(end[0].home);
	free(end[1].home);
}

Test(engine_loops, split_stages_give_the_same_bytes)
{
	start(ENG_IDLE_YIELD);
	for (unsigned round = 0; round < 60; round++)
		exchange(round);
	finish();
}

Test(engine_loops, loops_that_sleep_are_woken)
{
	struct eng_loop_stats stats;

	start(ENG_IDLE_SLEEP);
	for (unsigned round = 0; round < 20; round++)
		exchange(round);
	/* With nothing to do they go to sleep. */
	do {
		sched_yield();
		eng_loop_stats(pair.e[0], 0, &stats);
	} while (stats.sleeps == 0);
	exchange(99);
	finish();
}
