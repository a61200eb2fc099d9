/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests a machine that ends in mid-transfer: it is removed, it is killed or migrated away (its
 * heartbeat stops without notice), or it is reset (another program takes the slot). The gateway
 * frees everything that the machine held, its peers receive their events, and its address can be
 * used again.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../../drivers/gateway/gateway_priv.h"
#include "../../../lib/client/attach/bar_priv.h"
#include "../../../lib/wire/falcon.h"
#include "host.h"

/* A Falcon peer that falls silent is given up after half a minute, in each of the rounds. */
TestSuite(leave, .init = pair_eal, .timeout = 400);

#define DEPTH  16
#define ROUNDS 3

static bool falcon;

static void
speaks_falcon(struct eng_config *c)
{
	c->falcon.enabled = true;
	c->falcon.psps = 1u << PSP_NO_CRYPTO;
	c->falcon.control_idle_ns = 100000000; /* a carrier that is idle counts as an object */
}

static void
load_qp(struct prog *p)
{
	struct saker_qp_attr attr = {.send_cq = p->cq,
		.recv_cq = p->cq,
		.transport = falcon ? SAKER_FALCON : SAKER_IWARP,
		.sq_depth = DEPTH,
		.rq_depth = DEPTH,
		.max_send_sge = 1,
		.max_recv_sge = 1};

	cr_assert_eq(saker_qp_create(p->pd, &attr, &p->qp), 0, "%s", saker_error());
}

/* Posts as many Writes of all the memory as the send queue holds, without waiting for any. */
static void
load(struct prog *from, struct prog *to)
{
	struct rd_sge sge = {
		.addr = (uintptr_t)from->mem, .len = RIG_BYTES, .lkey = saker_mr_stag(from->mr)};
	const struct saker_wr wr = {.opcode = RD_WRITE,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.rkey = saker_mr_stag(to->mr),
		.remote_addr = (uintptr_t)to->mem};

	for (unsigned i = 0; i < DEPTH; i++)
		cr_assert_eq(saker_post_send(from->qp, &wr, 1), 1, "%s", saker_error());
}

/* Checks that each posted request completes, successfully or flushed, and that the event of the
 * connection's end follows. */
static void
all_ends(struct prog *p)
{
	unsigned n = 0, bad = 0;
	struct rd_wc wc;

	while (n < DEPTH) {
		if (saker_cq_poll(p->cq, &wc, 1) == 0) {
			saker_wait(p->s, 1);
			continue;
		}
		n++;
		bad += wc.status != RD_SUCCESS;
		cr_assert(
			bad == 0 || wc.status != RD_SUCCESS, "one is done behind one that is not");
	}
	prog_event(p, SAKER_EV_DISCONNECTED);
}

static struct eng_totals
totals(const struct eng *e)
{
	struct eng_totals v;

	eng_totals(e, &v);
	return v;
}

static struct eng *
engine(const char *name)
{
	for (unsigned i = 0; i < GW_VMS; i++)
		if (host.g->vms[i] != NULL && strcmp(host.g->vms[i]->cfg.name, name) == 0)
			return host.g->vms[i]->e;
	return NULL;
}

/* Waits until the engine holds no more objects than in *was. A leak makes it wait until the test
 * times out. */
static void
as_before(const struct eng *e, const struct eng_totals *was)
{
	struct eng_totals v;

	do {
		sched_yield();
		v = totals(e);
	} while (v.clients != was->clients || v.qps != was->qps || v.mrs != was->mrs ||
		 v.cqs != was->cqs || v.pds != was->pds || v.conns != was->conns ||
		 v.listeners != was->listeners || v.regions != was->regions ||
		 v.rx_mbufs_free != was->rx_mbufs_free || v.tx_mbufs_free != was->tx_mbufs_free);
}

static void
begin(struct rig *r, struct prog *one, struct prog *far)
{
	prog_open(r, one);
	load_qp(one);
	load_qp(far);
	prog_connect(one, far, HOST_ADDR, RIG_PORT);
	prog_write(one, far, 1);
	load(one, far);
	load(far, one);
}

/* Stops a program's heartbeat without notice. */
static void
freeze(struct prog *p)
{
	struct cl_bar *b = p->s->bar;

	__atomic_store_n(&b->stop, true, __ATOMIC_RELEASE);
	pthread_join(b->thread, NULL);
	b->beating = false;
}

static void
removed(void)
{
	struct prog far, one;
	struct rig r;

	host_start(falcon ? speaks_falcon : NULL);
	prog_open_far(&host.rig, &far);
	for (unsigned i = 0; i < ROUNDS; i++) {
		r = vm_add("one", "ip=10.9.0.2/24");
		begin(&r, &one, &far);
		vm_del(&r, "one");
		cr_assert_null(engine("one"));
		all_ends(&far);
		prog_event(&one, SAKER_EV_ENGINE_GONE);
		prog_close(&one);
		cr_assert_eq(saker_qp_destroy(far.qp), 0);
	}
	prog_close(&far);
	host_end();
}

Test(leave, a_machine_that_is_removed_under_load_leaves_nothing)
{
	falcon = false;
	removed();
}

Test(leave, a_machine_that_is_removed_under_load_leaves_nothing_falcon)
{
	falcon = true;
	removed();
}

static void
frozen(void)
{
	struct eng_totals here, there;
	struct prog far, one;
	struct rig r;

	host_start(falcon ? speaks_falcon : NULL);
	r = vm_add("one", "ip=10.9.0.2/24");
	prog_open_far(&host.rig, &far);
	here = totals(host.e);
	there = totals(engine("one"));
	for (unsigned i = 0; i < ROUNDS; i++) {
		begin(&r, &one, &far);
		freeze(&one);
		all_ends(&far);
		as_before(engine("one"), &there);
		/* The program runs again, and finds that no engine serves it. */
		prog_event(&one, SAKER_EV_ENGINE_GONE);
		prog_close(&one);
		cr_assert_eq(saker_qp_destroy(far.qp), 0);
		as_before(host.e, &here);
	}
	prog_close(&far);
	vm_del(&r, "one");
	host_end();
}

Test(leave, a_machine_that_falls_silent_under_load_leaves_nothing)
{
	falcon = false;
	frozen();
}

Test(leave, a_machine_that_falls_silent_under_load_leaves_nothing_falcon)
{
	falcon = true;
	frozen();
}

/* After a reset, the guest's next program draws another number for the slot. */
Test(leave, a_machine_that_is_reset_under_load_leaves_nothing)
{
	struct eng_totals here, there;
	struct prog far, one;
	struct rig r;

	falcon = false;
	host_start(NULL);
	r = vm_add("one", "ip=10.9.0.2/24");
	prog_open_far(&host.rig, &far);
	here = totals(host.e);
	there = totals(engine("one"));
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct shm_bar_slot *slot;

		begin(&r, &one, &far);
		freeze(&one);
		slot = &one.s->bar->dir->slots[one.s->bar->slot];
		__atomic_store_n(&slot->want, one.s->bar->token ^ 1, __ATOMIC_RELEASE);
		all_ends(&far);
		while (__atomic_load_n(&slot->serves, __ATOMIC_ACQUIRE) != (one.s->bar->token ^ 1))
			sched_yield();
		cr_assert_eq(saker_qp_destroy(far.qp), 0);
		__atomic_store_n(&slot->want, 0, __ATOMIC_RELEASE);
		as_before(engine("one"), &there);
		as_before(host.e, &here);
		prog_close(&one);
	}
	prog_close(&far);
	vm_del(&r, "one");
	host_end();
}
