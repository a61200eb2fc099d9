/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests hostile tenants: a machine that names another's object by number, key or address, and a
 * machine that requests more than its quota. The engine refuses and counts each attempt, and the
 * other tenant is not affected.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../../../drivers/gateway/gateway_priv.h"
#include "../../../lib/client/client_priv.h"
#include "../../../lib/wire/wire.h"
#include "host.h"

TestSuite(tenants, .init = pair_eal, .timeout = 100);

#define QPS 8 /* as in vm_add() */
#define MRS 8

static struct {
	struct rig a, b;
	struct prog one, two, far[2]; /* far: the host's program, with a QP for either machine */
} t;

static int
more_qps(struct prog *p, struct saker_qp **qp)
{
	struct saker_qp_attr attr = {.send_cq = p->cq,
		.recv_cq = p->cq,
		.sq_depth = 4,
		.rq_depth = 4,
		.max_send_sge = 1,
		.max_recv_sge = 1};

	return saker_qp_create(p->pd, &attr, qp);
}

static void
start(void)
{
	host_start(NULL);
	t.a = vm_add("one", "ip=10.9.0.2/24");
	t.b = vm_add("two", "ip=10.9.0.3/24");
	prog_open(&t.a, &t.one);
	prog_open(&t.b, &t.two);
	prog_open_far(&host.rig, &t.far[0]);
	t.far[1] = t.far[0];
	cr_assert_eq(more_qps(&t.far[1], &t.far[1].qp), 0);
	prog_connect(&t.one, &t.far[0], HOST_ADDR, RIG_PORT);
	prog_connect(&t.two, &t.far[1], HOST_ADDR, RIG_PORT);
}

static void
end(void)
{
	prog_close(&t.one);
	prog_close(&t.two);
	prog_close(&t.far[0]);
	vm_del(&t.a, "one");
	vm_del(&t.b, "two");
	host_end();
}

static void
two_works(void)
{
	prog_write(&t.two, &t.far[1], 2);
	prog_write(&t.far[1], &t.two, 2);
}

static struct rd_wc
completion(struct prog *p)
{
	struct rd_wc wc;

	while (saker_cq_poll(p->cq, &wc, 1) == 0)
		saker_wait(p->s, 1);
	return wc;
}

static void
write_to(struct prog *from, uint32_t lkey, uint32_t rkey, const void *at)
{
	struct rd_sge sge = {.addr = (uintptr_t)from->mem, .len = 64, .lkey = lkey};
	const struct saker_wr wr = {.opcode = RD_WRITE,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.rkey = rkey,
		.remote_addr = (uintptr_t)at};

	cr_assert_eq(saker_post_send(from->qp, &wr, 1), 1, "%s", saker_error());
}

/* ---- Objects of another tenant ---- */

Test(tenants, a_doorbell_for_anothers_qp_rings_nowhere)
{
	struct saker_qp *qp;

	start();
	/* The handle of two's third QP is none of one's handles. */
	cr_assert_eq(more_qps(&t.two, &qp), 0);
	cr_assert_eq(more_qps(&t.two, &qp), 0);
	cr_assert_gt(cl_sq_of(qp)->handle, cl_sq_of(t.one.qp)->handle);
	for (uint32_t i = 0; i < 100; i++)
		while (!cl_ring(t.one.s, 0, i < 50 ? cl_sq_of(qp)->handle : i * 0x01234567u))
			;
	while (vm_counted("one", "eng", "ENG_BAD_DOORBELL") < 100)
		saker_wait(t.one.s, 1);
	cr_assert_eq(vm_counted("two", "eng", "ENG_BAD_DOORBELL"), 0);
	two_works();
	end();
}

Test(tenants, a_command_about_anothers_object_is_refused_and_counted)
{
	static const enum shm_op ops[] = {
		SHM_QP_DESTROY, SHM_CQ_DESTROY, SHM_MR_DESTROY, SHM_PD_DESTROY};
	struct saker_qp *qp;
	struct saker_cq *cq;
	struct saker_mr *mr;
	struct saker_pd *pd;
	uint32_t handle[4];
	uint64_t bad;

	start();
	bad = vm_counted("one", "eng", "ENG_BAD_COMMAND");
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(more_qps(&t.two, &qp), 0);
		cr_assert_eq(saker_cq_create(t.two.s, 4, NULL, &cq), 0);
		cr_assert_eq(saker_pd_create(t.two.s, &pd), 0);
		cr_assert_eq(saker_mr_create(t.two.pd, t.two.mem, 64, RD_ACC_LOCAL_WRITE, &mr), 0);
	}
	handle[0] = cl_sq_of(qp)->handle;
	handle[1] = cq->obj.handle;
	handle[2] = mr->obj.handle;
	handle[3] = pd->obj.handle;
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_lt(cl_command_handle(t.one.s, ops[i], handle[i]), 0, "op %u", ops[i]);
		cr_assert_eq(
			vm_counted("one", "eng", "ENG_BAD_COMMAND"), bad + i + 1, "op %u", ops[i]);
	}
	cr_assert_eq(vm_counted("two", "eng", "ENG_BAD_COMMAND"), 0);
	two_works();
	end();
}

/* A region's key is invalid in an engine that did not create it. */
Test(tenants, anothers_lkey_is_no_memory)
{
	start();
	write_to(&t.one, saker_mr_stag(t.two.mr), saker_mr_stag(t.far[0].mr), t.far[0].mem);
	cr_assert_eq(completion(&t.one).status, RD_LOC_PROT_ERR);
	two_works();
	end();
}

Test(tenants, anothers_rkey_is_no_memory_where_it_is_sent)
{
	uint64_t before;

	start();
	before = pair_counter(host.e, "iw", "IW_DDP_T_STAG");
	memset(t.two.mem, 0x33, RIG_BYTES);
	write_to(&t.one, saker_mr_stag(t.one.mr), saker_mr_stag(t.two.mr), t.two.mem);
	prog_event(&t.one, SAKER_EV_QP_FATAL);
	prog_event(&t.one, SAKER_EV_DISCONNECTED);
	cr_assert_eq(pair_counter(host.e, "iw", "IW_DDP_T_STAG"), before + 1);
	for (unsigned i = 0; i < RIG_BYTES; i++)
		cr_assert_eq(t.two.mem[i], 0x33);
	prog_event(&t.far[0], SAKER_EV_QP_FATAL);
	prog_event(&t.far[0], SAKER_EV_DISCONNECTED);
	two_works();
	end();
}

/* An extent of a region names memory by its offset. The memory behind the slot belongs to another
 * program. */
Test(tenants, a_region_beyond_the_slot_is_refused)
{
	struct shm_msg m = {.body.mr = {.pd = 0, .access = RD_ACC_LOCAL_WRITE, .nextents = 1}};
	uint64_t bad;

	start();
	bad = vm_counted("one", "eng", "ENG_BAD_COMMAND");
	m.body.mr.pd = t.one.pd->obj.handle;
	m.body.mr.len = 4096;
	m.body.mr.extents[0] = (struct shm_extent){
		.region = SHM_HOME, .offset = t.one.s->size - 2048, .len = 4096};
	cr_assert_lt(cl_command(t.one.s, &m, SHM_MR_CREATE), 0);
	m.body.mr = (struct shm_mr){.pd = t.one.pd->obj.handle,
		.access = RD_ACC_LOCAL_WRITE,
		.len = 4096,
		.nextents = 1,
		.extents = {{.region = SHM_HOME, .offset = 0ull - 4096, .len = 4096}}};
	cr_assert_lt(cl_command(t.one.s, &m, SHM_MR_CREATE), 0);
	m.body.mr = (struct shm_mr){.pd = t.one.pd->obj.handle,
		.access = RD_ACC_LOCAL_WRITE,
		.len = 4096,
		.nextents = 1,
		.extents = {{.region = SHM_HOME + 1, .offset = 0, .len = 4096}}};
	cr_assert_lt(cl_command(t.one.s, &m, SHM_MR_CREATE), 0);
	cr_assert_eq(vm_counted("one", "eng", "ENG_BAD_COMMAND"), bad + 3);
	two_works();
	end();
}

/* ---- Quotas ---- */

static void
sentence_has(const char *a, const char *b)
{
	cr_assert(strstr(saker_error(), a) != NULL && strstr(saker_error(), b) != NULL, "%s",
		saker_error());
}

Test(tenants, the_quota_of_qps_holds_and_is_named)
{
	struct saker_qp *qp;
	struct prog other;

	start();
	for (unsigned i = 1; i < QPS; i++)
		cr_assert_eq(more_qps(&t.one, &qp), 0, "%u: %s", i, saker_error());
	cr_assert_eq(more_qps(&t.one, &qp), -EDQUOT);
	sentence_has("no more than 8", "QPs");
	cr_assert_eq(vm_counted("one", "eng", "ENG_QUOTA"), 1);
	/* The quota includes a second program of the machine, */
	memset(&other, 0, sizeof(other));
	cr_assert_eq(saker_open(t.a.where, "other", &other.s), 0, "%s", saker_error());
	cr_assert_eq(saker_pd_create(other.s, &other.pd), 0);
	cr_assert_eq(saker_cq_create(other.s, 4, NULL, &other.cq), 0);
	cr_assert_eq(more_qps(&other, &qp), -ENOSPC);
	sentence_has("no more than 8", "QPs");
	cr_assert_eq(vm_counted("one", "eng", "ENG_QUOTA"), 2);
	prog_close(&other);
	/* and another machine has a quota of its own. */
	cr_assert_eq(more_qps(&t.two, &qp), 0);
	two_works();
	end();
}

Test(tenants, the_quota_of_regions_holds_and_is_named)
{
	struct saker_mr *mr[MRS];

	start();
	for (unsigned i = 1; i < MRS; i++)
		cr_assert_eq(saker_mr_create(t.one.pd, t.one.mem, 64, RD_ACC_LOCAL_WRITE, &mr[i]),
			0, "%u: %s", i, saker_error());
	cr_assert_eq(saker_mr_create(t.one.pd, t.one.mem, 64, RD_ACC_LOCAL_WRITE, &mr[0]), -EDQUOT);
	sentence_has("no more than 8", "memory regions");
	cr_assert_eq(vm_counted("one", "eng", "ENG_QUOTA"), 1);
	cr_assert_eq(saker_mr_destroy(mr[1]), 0);
	cr_assert_eq(saker_mr_create(t.one.pd, t.one.mem, 64, RD_ACC_LOCAL_WRITE, &mr[1]), 0);
	two_works();
	end();
}

/* 16 MiB in two slots leave 3/4 of 8 MiB for data, less the program's present allocations. */
Test(tenants, the_quota_of_bytes_is_the_slots_memory)
{
	uint64_t got = 0;

	start();
	while (saker_alloc(t.one.s, 65536) != NULL)
		got += 65536;
	sentence_has("no", "bytes left");
	cr_assert_leq(got, 6u << 20);
	cr_assert_geq(got, 5u << 20);
	two_works();
	end();
}

/* The rate permits bursts of 128 KiB, and the bytes of the time that has passed. The test sets the
 * time. */
Test(tenants, the_rate_holds_for_the_machines_devices)
{
	const uint64_t rate = 10u << 20, second = 1000000000, from = eng_clock() + second;
	struct gw_port_view before, after;
	struct gw_vport *v;
	struct rig r;

	host_start(NULL);
	r = vm_add("one", "ip=10.9.0.2/24 rate=10m");
	host_pause();
	v = &host_machine("one")->vport;
	gw_poll(host.g, from);
	gw_switch_port_view(host.g->sw, v->port, &before);
	for (uint64_t ms = 0; ms <= 1000; ms++) {
		for (unsigned i = rte_ring_count(v->in); i < 64; i++) {
			struct rte_mbuf *m = rte_pktmbuf_alloc(host.g->pool);

			cr_assert_not_null(m);
			memset(rte_pktmbuf_append(m, 1500), 0, 1500);
			cr_assert_eq(rte_ring_sp_enqueue(v->in, m), 0);
		}
		gw_switch_poll(host.g->sw, from + ms * 1000000);
	}
	gw_switch_port_view(host.g->sw, v->port, &after);
	cr_assert_geq(after.bytes_in - before.bytes_in, rate);
	cr_assert_leq(after.bytes_in - before.bytes_in, rate + 131072 + 32 * 1500);
	cr_assert_gt(host_counted("GW_PACED"), 0);
	host_go();
	vm_del(&r, "one");
	host_end();
}

/* Gives the host further addresses as `set interface` does: none, or the one in `text`. */
static void
host_change(const char *text)
{
	struct eng_config next = host.cfg;
	struct eng_changed changed;
	char err[256] = "";

	next.nifs = 1;
	if (text != NULL) {
		next.ifs[next.nifs] = next.ifs[0];
		next.ifs[next.nifs++].addr = addr(text);
	}
	cr_assert_eq(eng_change(host.e, &next, &changed, err, sizeof(err)), 0, "%s", err);
	host.cfg = next;
	gw_host_claim(host.g);
}

Test(tenants, an_address_that_the_host_gets_while_it_runs_is_not_a_machines)
{
	const struct sk_addr more = addr("10.9.0.77"), last = addr("10.9.0.78");
	struct rig one;
	char *out;
	int rc;

	host_start(NULL);
	one = vm_add("one", "ip=10.9.0.2/24");
	cr_assert_not(gw_switch_claimed(host.g->sw, &more, ETH_NO_VLAN));
	host_change("10.9.0.77");
	cr_assert(gw_switch_claimed(host.g->sw, &more, ETH_NO_VLAN));
	out = host_say("add thief path=/dev/shm/sk-thief size=16m slots=2 qps=8 mrs=8 mbufs=512 "
		       "ip=10.9.0.77/24",
		&rc);
	cr_assert_neq(rc, 0, "a machine has the host's address");
	cr_assert_not_null(strstr(out, "ip=10.9.0.77 is in use by another port"), "%s", out);
	host_change("10.9.0.78");
	cr_assert(gw_switch_claimed(host.g->sw, &last, ETH_NO_VLAN));
	cr_assert_not(gw_switch_claimed(host.g->sw, &more, ETH_NO_VLAN), "it is free again");
	host_change(NULL);
	cr_assert_not(gw_switch_claimed(host.g->sw, &last, ETH_NO_VLAN));
	cr_assert(gw_switch_claimed(host.g->sw, &host.cfg.ifs[0].addr, ETH_NO_VLAN));
	vm_del(&one, "one");
	host_end();
}
