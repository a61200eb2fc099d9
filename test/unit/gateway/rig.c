/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#define HOME_SIZE (8u << 20)
#define MEM_SIZE  (1u << 20)

static void *
turn(void *arg)
{
	struct rig *r = arg;
	uint64_t next = 0;

	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
		uint64_t now = eng_clock();

		pair_turn(&r->pair);
		if (r->bar != NULL && now >= next) {
			gw_bar_poll(r->bar, now);
			next = now + 1000000;
		}
		sched_yield();
	}
	return NULL;
}

void
rig_go(struct rig *r)
{
	r->stop = false;
	cr_assert_eq(pthread_create(&r->thread, NULL, turn, r), 0);
}

void
rig_pause(struct rig *r)
{
	__atomic_store_n(&r->stop, true, __ATOMIC_RELEASE);
	pthread_join(r->thread, NULL);
}

static void
bar_make(struct rig *r)
{
	const struct gw_bar_config cfg = {
		.path = r->path, .size = RIG_SIZE, .slots = RIG_SLOTS, .timeout_ms = RIG_TIMEOUT};
	char err[256];

	r->bar = gw_bar_create(r->pair.e[0], &cfg, err, sizeof(err));
	cr_assert_not_null(r->bar, "%s", err);
}

void
rig_start(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	snprintf(r->path, sizeof(r->path), "/dev/shm/saker-bar-%d", getpid());
	snprintf(r->where, sizeof(r->where), "ivshmem:%s", r->path);
	unlink(r->path);
	pair_init(&r->pair);
	for (int i = 0; i < 2; i++) {
		struct eng_limits *l = &r->pair.cfg[i].limits;

		l->client_qps = l->client_cqs = 16;
		l->client_mrs = 64;
	}
	pair_start(&r->pair);
	bar_make(r);
	r->home = aligned_alloc(4096, HOME_SIZE);
	memset(r->home, 0, HOME_SIZE);
	r->client = eng_attach_flat(r->pair.e[1], "far", r->home, HOME_SIZE, MEM_SIZE);
	cr_assert_geq(r->client, 0);
	rig_go(r);
}

void
rig_end(struct rig *r)
{
	gw_bar_stop(r->bar);
	rig_clients(r, 0, 0);
	eng_detach(r->pair.e[1], r->client);
	rig_clients(r, 1, 0);
	rig_pause(r);
	pair_end(&r->pair);
	gw_bar_destroy(r->bar);
	unlink(r->path);
	free(r->home);
}

struct gw_bar_view
rig_look(const struct rig *r)
{
	struct gw_bar_view v;

	gw_bar_view(r->bar, &v);
	return v;
}

void
rig_clients(struct rig *r, int i, uint32_t clients)
{
	struct eng_totals t;

	do {
		sched_yield();
		eng_totals(r->pair.e[i], &t);
	} while (t.clients != clients);
}

static void
make_qp(struct prog *p)
{
	struct saker_qp_attr attr = {.send_cq = p->cq,
		.recv_cq = p->cq,
		.sq_depth = 16,
		.rq_depth = 16,
		.max_send_sge = 1,
		.max_recv_sge = 1};

	cr_assert_eq(saker_qp_create(p->pd, &attr, &p->qp), 0, "%s", saker_error());
}

void
prog_more_qp(struct prog *p)
{
	cr_assert_eq(saker_qp_destroy(p->qp), 0);
	make_qp(p);
}

static void
prog_make(struct prog *p)
{
	cr_assert_eq(saker_pd_create(p->s, &p->pd), 0, "%s", saker_error());
	cr_assert_eq(saker_cq_create(p->s, 64, NULL, &p->cq), 0, "%s", saker_error());
	p->mem = saker_alloc(p->s, RIG_BYTES);
	cr_assert_not_null(p->mem, "%s", saker_error());
	for (unsigned i = 0; i < RIG_BYTES; i++)
		cr_assert_eq(p->mem[i], 0, "memory is zeroed, whoever had it before");
	cr_assert_eq(saker_mr_create(p->pd, p->mem, RIG_BYTES,
			     RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, &p->mr),
		0, "%s", saker_error());
	make_qp(p);
}

void
prog_open(struct rig *r, struct prog *p)
{
	memset(p, 0, sizeof(*p));
	cr_assert_eq(saker_open(r->where, "prog", &p->s), 0, "%s", saker_error());
	prog_make(p);
}

void
prog_open_far(struct rig *r, struct prog *p)
{
	memset(p, 0, sizeof(*p));
	cr_assert_eq(
		saker_open_flat(r->home, HOME_SIZE, NULL, NULL, &p->s), 0, "%s", saker_error());
	prog_make(p);
}

void
prog_close(struct prog *p)
{
	saker_close(p->s);
}

struct saker_event
prog_event(struct prog *p, enum saker_event_type type)
{
	struct saker_event ev = {0};

	while (saker_event(p->s, &ev) == 0)
		saker_wait(p->s, 100);
	cr_assert_eq(ev.type, type, "event %d (%s), not %d", ev.type, strerror(-ev.status), type);
	return ev;
}

void
prog_connect(struct prog *from, struct prog *to, const char *remote, uint16_t port)
{
	const struct saker_conn_param cp = {.ird = 8, .ord = 8, .crc = 2, .markers = 2};
	struct sk_addr a = addr(remote);
	struct saker_listener *l;
	struct saker_event ev;

	cr_assert_eq(saker_listen(to->s, NULL, port, 4, NULL, &l), 0, "%s", saker_error());
	cr_assert_eq(saker_connect(from->qp, NULL, &a, port, &cp), 0, "%s", saker_error());
	ev = prog_event(to, SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(saker_accept(to->s, ev.request, to->qp, &cp), 0, "%s", saker_error());
	prog_event(to, SAKER_EV_ESTABLISHED);
	prog_event(from, SAKER_EV_ESTABLISHED);
	cr_assert_eq(saker_unlisten(l), 0);
}

void
prog_write(struct prog *from, struct prog *to, unsigned n)
{
	struct rd_sge sge = {
		.addr = (uintptr_t)from->mem, .len = RIG_BYTES, .lkey = saker_mr_stag(from->mr)};
	struct saker_wr wr = {.opcode = RD_WRITE,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.rkey = saker_mr_stag(to->mr),
		.remote_addr = (uintptr_t)to->mem};
	struct rd_wc wc;

	for (unsigned k = 0; k < n; k++) {
		volatile uint8_t *last = &to->mem[RIG_BYTES - 1];

		for (unsigned i = 0; i < RIG_BYTES; i++)
			from->mem[i] = (uint8_t)(i * 7 + i / 256 + k + 1);
		cr_assert_eq(saker_post_send(from->qp, &wr, 1), 1, "%s", saker_error());
		while (saker_cq_poll(from->cq, &wc, 1) == 0)
			saker_wait(from->s, 1);
		cr_assert_eq(wc.status, 0, "completion with status %u", wc.status);
		/* The last byte is placed last. */
		while (*last != from->mem[RIG_BYTES - 1])
			sched_yield();
		cr_assert_arr_eq(to->mem, from->mem, RIG_BYTES);
	}
}
