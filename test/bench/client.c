/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of posting and polling when no other thread touches the rings: the engine runs between
 * the timed parts, in the same thread. Prints nanoseconds per request, for comparison; it does not
 * pass or fail.
 */
#include <stdio.h>

#include "../mini/mini.h"
#include "../support/clock.h"

#define DEPTH  1024
#define ROUNDS 2000

static struct mini engine;

static void
bench(struct saker_qp *qp, struct saker_cq *cq, int burst)
{
	const struct rd_sge sge = {0x1000, 64, 1};
	uint64_t post = 0, poll = 0, posts = 0, polls = 0;
	struct saker_wr wr[32];
	struct rd_wc wc[32];

	for (int i = 0; i < 32; i++)
		wr[i] = (struct saker_wr){.opcode = RD_WRITE, .nsge = 1, .sge = &sge};
	for (int r = 0; r < ROUNDS; r++) {
		uint64_t t0 = now_ns(), t1;

		for (int i = 0; i < DEPTH; i += burst)
			posts += (uint64_t)saker_post_send(qp, wr, burst);
		post += now_ns() - t0;
		mini_poll(&engine);
		t1 = now_ns();
		for (int i = 0; i < DEPTH; i += burst)
			polls += (uint64_t)saker_cq_poll(cq, wc, burst);
		poll += now_ns() - t1;
	}
	printf("burst %2d: post %5.1f ns, poll %5.1f ns\n", burst, (double)post / (double)posts,
		(double)poll / (double)polls);
}

int
main(void)
{
	struct saker_qp_attr attr = {
		.sq_depth = DEPTH, .rq_depth = 2, .max_send_sge = 1, .max_recv_sge = 1};
	struct saker_pd *pd;
	struct saker_qp *qp;
	struct saker *s;

	if (!mini_init(&engine, 4u << 20) ||
		saker_open_flat(engine.home, engine.size, mini_idle, &engine, &s) != 0 ||
		saker_pd_create(s, &pd) != 0 || saker_cq_create(s, DEPTH, NULL, &attr.send_cq) != 0)
		return 1;
	attr.recv_cq = attr.send_cq;
	if (saker_qp_create(pd, &attr, &qp) != 0)
		return 1;
	for (int burst = 1; burst <= 32; burst *= 2)
		bench(qp, attr.send_cq, burst);
	saker_close(s);
	mini_free(&engine);
	return 0;
}
