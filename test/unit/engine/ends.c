/* SPDX-License-Identifier: BSD-3-Clause */
/* See ends.h. */
#include "ends.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#define HOME_SIZE (4u << 20)
#define MEM_SIZE  (1u << 20)
#define BUF_SIZE  16384u /* bytes of each QP: one half to send or read, one half to receive */
#define HALF      (BUF_SIZE / 2)
#define TURNS     2000000u

struct runner {
	struct eng *e;
	unsigned loop;
	pthread_t thread;
};

struct pair ends_pair;
struct end ends[2];
static struct runner runners[2 * ENG_MAX_LCORES];
static unsigned nrunners;

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
	if (nrunners > 0)
		sched_yield();
	else
		pair_turn(&ends_pair);
}

static void
attach(struct end *n, struct eng *e)
{
	struct saker_qp_attr attr = {
		.sq_depth = 16, .rq_depth = 16, .max_send_sge = 1, .max_recv_sge = 1};

	n->e = e;
	n->home = aligned_alloc(4096, HOME_SIZE);
	memset(n->home, 0, HOME_SIZE);
	n->client = eng_attach_flat(e, "test", n->home, HOME_SIZE, MEM_SIZE);
	cr_assert_geq(n->client, 0);
	cr_assert_eq(saker_open_flat(n->home, HOME_SIZE, idle, NULL, &n->s), 0);
	cr_assert_eq(saker_pd_create(n->s, &n->pd), 0);
	cr_assert_eq(saker_cq_create(n->s, 256, n, &n->cq), 0);
	n->mem = saker_alloc(n->s, ENDS_QPS * BUF_SIZE);
	cr_assert_not_null(n->mem);
	cr_assert_eq(saker_mr_create(n->pd, n->mem, ENDS_QPS * BUF_SIZE,
			     RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, &n->mr),
		0);
	attr.send_cq = attr.recv_cq = n->cq;
	for (unsigned q = 0; q < ENDS_QPS; q++)
		cr_assert_eq(saker_qp_create(n->pd, &attr, &n->qp[q]), 0, "%s", saker_error());
}

static void
detach(struct end *n)
{
	saker_close(n->s);
	eng_detach(n->e, n->client);
	for (unsigned i = 0; nrunners > 0 || i < TURNS; i++) {
		if (eng_client_gone(n->e, n->client))
			break;
		idle(NULL);
	}
	cr_assert(eng_client_gone(n->e, n->client));
	free(n->home);
}

struct saker_event
ends_event(struct end *n, enum saker_event_type type)
{
	struct saker_event ev = {0};

	while (saker_event(n->s, &ev) == 0)
		idle(NULL);
	cr_assert_eq(ev.type, type, "event %d, status %d", ev.type, ev.status);
	return ev;
}

static struct rd_wc
completion(struct end *n)
{
	struct rd_wc wc;

	while (saker_cq_poll(n->cq, &wc, 1) == 0)
		idle(NULL);
	cr_assert_eq(wc.status, RD_SUCCESS, "status %u", wc.status);
	return wc;
}

static void
connect_ends(const char *remote, uint16_t lport)
{
	struct saker_conn_param param = {.ird = 4, .ord = 4, .crc = 2, .markers = 2};
	struct sk_addr a = addr(remote);
	struct saker_listener *l;
	struct saker_event ev;

	cr_assert_eq(saker_listen(ends[1].s, NULL, ENDS_PORT, ENDS_QPS, NULL, &l), 0);
	for (unsigned q = 0; q < ENDS_QPS; q++) {
		param.lport = lport > 0 ? (uint16_t)(lport + q) : 0;
		cr_assert_eq(saker_connect(ends[0].qp[q], NULL, &a, ENDS_PORT, &param), 0);
		ev = ends_event(&ends[1], SAKER_EV_CONNECT_REQUEST);
		cr_assert(lport == 0 || ev.cm.rport == param.lport, "%u", ev.cm.rport);
		cr_assert_eq(saker_accept(ends[1].s, ev.request, ends[1].qp[q], &param), 0);
		ev = ends_event(&ends[0], SAKER_EV_ESTABLISHED);
		cr_assert(lport == 0 || ev.cm.lport == param.lport, "%u", ev.cm.lport);
		ends_event(&ends[1], SAKER_EV_ESTABLISHED);
	}
}

static void
post(struct end *n, unsigned q, enum rd_opcode op, const struct end *to, uint32_t len)
{
	uint8_t *mem = n->mem + q * BUF_SIZE;
	struct rd_sge sge = {.addr = (uintptr_t)mem, .len = len, .lkey = saker_mr_stag(n->mr)};
	struct saker_wr wr = {
		.wr_id = q, .opcode = (uint8_t)op, .flags = RD_SIGNALED, .nsge = 1, .sge = &sge};

	if (to != NULL) {
		wr.rkey = saker_mr_stag(to->mr);
		wr.remote_addr = (uintptr_t)to->mem + q * BUF_SIZE + HALF;
	}
	if (op == RD_RECV)
		cr_assert_eq(saker_post_recv(n->qp[q], &wr, 1), 1);
	else
		cr_assert_eq(saker_post_send(n->qp[q], &wr, 1), 1);
}

static uint8_t
pattern(unsigned q, unsigned round, uint32_t i)
{
	return (uint8_t)(i * 7 + round + q * 31);
}

static void
fill(struct end *n, unsigned round, uint32_t len)
{
	for (unsigned q = 0; q < ENDS_QPS; q++)
		for (uint32_t i = 0; i < len; i++)
			n->mem[q * BUF_SIZE + i] = pattern(q, round, i);
}

static void
check(const struct end *n, uint32_t at, unsigned round, uint32_t len, const char *what)
{
	for (unsigned q = 0; q < ENDS_QPS; q++)
		for (uint32_t i = 0; i < len; i++)
			cr_assert_eq(n->mem[q * BUF_SIZE + at + i], pattern(q, round, i),
				"%s, QP %u, round %u, byte %u", what, q, round, i);
}

void
ends_exchange(struct end *from, struct end *to, unsigned round)
{
	uint32_t len = 1 + round * 611 % HALF;

	fill(from, round, len);
	for (unsigned q = 0; q < ENDS_QPS; q++)
		post(to, q, RD_RECV, NULL, HALF);
	for (unsigned q = 0; q < ENDS_QPS; q++) {
		post(from, q, RD_WRITE, to, len);
		post(from, q, RD_SEND, NULL, len);
	}
	for (unsigned q = 0; q < ENDS_QPS; q++) {
		completion(from);
		completion(from);
		cr_assert_eq(completion(to).byte_len, len);
	}
	check(to, 0, round, len, "Send");
	check(to, HALF, round, len, "Write");
	fill(from, round + 1, len);
	for (unsigned q = 0; q < ENDS_QPS; q++)
		post(from, q, RD_READ, to, len);
	for (unsigned q = 0; q < ENDS_QPS; q++)
		completion(from);
	check(from, 0, round, len, "Read");
}

void
ends_start(uint16_t lport)
{
	unsigned loops = ends_pair.cfg[0].nloops;

	pair_start(&ends_pair);
	nrunners = loops > 1 ? 2 * loops : 0;
	for (unsigned i = 0; i < nrunners; i++) {
		runners[i] = (struct runner){.e = ends_pair.e[i / loops], .loop = i % loops};
		cr_assert_eq(pthread_create(&runners[i].thread, NULL, run, &runners[i]), 0);
	}
	attach(&ends[0], ends_pair.e[0]);
	attach(&ends[1], ends_pair.e[1]);
	connect_ends(PAIR_ADDR_B, lport);
}

void
ends_start_one(void)
{
	pair_start(&ends_pair);
	attach(&ends[0], ends_pair.e[0]);
	attach(&ends[1], ends_pair.e[0]);
	connect_ends(PAIR_ADDR_A, 0);
}

void
ends_finish(void)
{
	detach(&ends[0]);
	detach(&ends[1]);
	eng_stop(ends_pair.e[0]);
	eng_stop(ends_pair.e[1]);
	for (unsigned i = 0; i < nrunners; i++)
		pthread_join(runners[i].thread, NULL);
	pair_end(&ends_pair);
}
