/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engines with as many transport stages and engine stages as there may be, all of them polled by
 * one thread: QPs of both transports on the last stages work, and what a CQ, a client and the rings
 * between stages take follows the stages that are used.
 */
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_eal.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/control/registry/registry.h"
#include "../../../lib/engine/stage/stage_priv.h"
#include "falcon_rig.h"

static void
eal(void)
{
	char *args[] = {"test", "--no-huge", "--no-shconf", "--no-pci", "-m", "1024", "-l", "0",
		"--no-telemetry", "--log-level=error"};

	cr_assert_geq(rte_eal_init(SK_ARRAY_LEN(args), args), 0);
}

TestSuite(engine_wide, .init = eal);

static unsigned stages[2];

static void
wide(struct eng_config *cfg, int node)
{
	cfg->ntransports = cfg->nstages = stages[node];
	cfg->limits.qps = cfg->limits.client_qps = 256;
	cfg->limits.client_cqs = 16; /* each stage has an event ring with room for all CQs */
	/* The ports receive into those of stage 0, which hands a copy of each ARP to each stage:
	 * all stages ask for the same neighbours at the same time. */
	cfg->limits.rx_mbufs = 1024;
	cfg->limits.tx_mbufs = 256;
	/* Each transport stage has a table for so many. */
	cfg->tcp.max_half_open = cfg->tcp.max_time_wait = 64;
}

/* Starts node 0 with so many stages, and node 1 with fewer, since memory without huge pages is
 * scarce. */
static void
start_wide(unsigned n)
{
	stages[0] = n;
	stages[1] = SK_MIN(n, 16u);
	frig_start(wide);
}

/* ---- Objects, as the control stage sees them ---- */

static struct ctl_client *
client(int node)
{
	return frig.n[node].e->control->clients[CTL_ID_NUMBER((uint32_t)frig.n[node].client)];
}

static unsigned
stage_of(struct saker_qp *qp)
{
	struct saker_qp_info info;

	cr_assert_eq(saker_qp_query(qp, &info), 0, "%s", saker_error());
	return info.stage;
}

/* Creates QPs, which complete in `cq`, until the next one comes to stage `next`. A QP comes to the
 * stage with the fewest QPs. */
static void
fill_up_to(int node, struct saker_cq *cq, unsigned next)
{
	const struct eng_control *c = frig.n[node].e->control;
	struct saker_qp_attr attr = {.send_cq = cq,
		.recv_cq = cq,
		.sq_depth = 1,
		.rq_depth = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.transport = SAKER_IWARP};
	struct saker_qp *qp;

	while (ctl_least_loaded(c) != next)
		cr_assert_eq(saker_qp_create(frig.n[node].pd, &attr, &qp), 0, "%s", saker_error());
}

static struct saker_cq *
spare_cq(int node)
{
	struct saker_cq *cq;

	cr_assert_eq(saker_cq_create(frig.n[node].s, 4, NULL, &cq), 0, "%s", saker_error());
	return cq;
}

/* ---- QPs ---- */

static void
last_stage_works(unsigned n, enum saker_transport transport)
{
	start_wide(n);
	for (int i = 0; i < 2; i++)
		fill_up_to(i, spare_cq(i), stages[i] - 1);
	frig_connect_over(transport);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(stage_of(frig.n[i].qp), stages[i] - 1);
	frig_works();
	frig_stop();
}

Test(engine_wide, an_iwarp_qp_works_on_the_last_of_16_stages)
{
	last_stage_works(16, SAKER_IWARP);
}

Test(engine_wide, a_falcon_qp_works_on_the_last_of_16_stages)
{
	last_stage_works(16, SAKER_FALCON);
}

Test(engine_wide, an_iwarp_qp_works_on_the_last_of_64_stages)
{
	last_stage_works(ENG_MAX_STAGES, SAKER_IWARP);
}

/* ---- Completion queues ---- */

static void
posts_and_polls(struct saker_qp *qp[2][2])
{
	/* The two stages complete their requests in sub-rings of their own, at the same time. */
	for (unsigned round = 0; round < 20; round++) {
		unsigned seen[2] = {0};

		for (unsigned k = 0; k < 2; k++) {
			for (int i = 0; i < 2; i++)
				frig.n[i].qp = qp[i][k];
			frig_post(0, RD_WRITE, 1000, 0);
		}
		for (unsigned k = 0; k < 2; k++) {
			struct rd_wc wc = frig_wc(0);

			cr_assert_eq(wc.status, RD_SUCCESS);
			seen[wc.qpn == saker_qp_num(qp[0][1])]++;
		}
		cr_assert_eq(seen[0], 1);
		cr_assert_eq(seen[1], 1);
	}
}

static uint32_t
subs_of(int node, struct saker_qp *qp)
{
	const struct ctl_client *cl = client(node);

	for (uint32_t i = 0; i < cl->qps.fresh; i++) {
		struct ctl_qp *q = ctl_qp_find(cl, i);

		if (q != NULL && q->eng.rd.qpn == saker_qp_num(qp))
			return ctl_cq_find(cl, q->eng.rd.send_cq->handle)->nsubs;
	}
	return 0;
}

Test(engine_wide, a_cq_of_stages_0_and_63_has_two_sub_rings_and_both_are_polled)
{
	struct saker_qp *qp[2][2];

	start_wide(ENG_MAX_STAGES);
	frig_connect_over(SAKER_IWARP);
	for (int i = 0; i < 2; i++) {
		qp[i][0] = frig.n[i].qp;
		cr_assert_eq(stage_of(qp[i][0]), 0);
		cr_assert_eq(subs_of(i, qp[i][0]), 1);
		fill_up_to(i, spare_cq(i), stages[i] - 1);
	}
	frig_connect_over(SAKER_FALCON);
	for (int i = 0; i < 2; i++) {
		qp[i][1] = frig.n[i].qp;
		cr_assert_eq(stage_of(qp[i][1]), stages[i] - 1);
		cr_assert_eq(subs_of(i, qp[i][1]), 2);
	}
	posts_and_polls(qp);
	frig_stop();
}

/* ---- Memory ---- */

static uint64_t
heap_used(int node)
{
	return client(node)->heap.used;
}

/* Creates a QP that completes in `cq`. Returns the bytes that the CQ has grown by in the home
 * region. */
static uint64_t
growth_with_a_qp(struct saker_cq *cq, uint32_t depth)
{
	struct saker_qp_attr attr = {.send_cq = cq,
		.recv_cq = cq,
		.sq_depth = depth,
		.rq_depth = depth,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.transport = SAKER_IWARP};
	struct saker_qp *qp;
	uint64_t before = heap_used(0);

	cr_assert_eq(saker_qp_create(frig.n[0].pd, &attr, &qp), 0, "%s", saker_error());
	return heap_used(0) - before;
}

Test(engine_wide, a_cq_grows_with_each_stage_that_uses_it)
{
	uint64_t sub = shm_cq_ring_bytes(shm_log2(1024)), before, none, own;
	struct saker_cq *cq, *small;

	start_wide(16);
	before = heap_used(0);
	cr_assert_eq(saker_cq_create(frig.n[0].s, 1024, NULL, &cq), 0, "%s", saker_error());
	none = heap_used(0) - before;
	cr_assert_leq(none, 2 * shm_cq_bytes(16), "%lu B for no stage", none);
	small = spare_cq(0);
	/* The memory of a QP by itself: the next ones take as much beside the CQ's sub-ring. */
	own = growth_with_a_qp(small, 4) - shm_cq_ring_bytes(shm_log2(4));
	for (unsigned k = 1; k < 16; k++)
		cr_assert_eq(growth_with_a_qp(cq, 4) - own, sub, "stage %u", k);
	/* The second QP of a stage finds the sub-ring. */
	cr_assert_eq(growth_with_a_qp(small, 4), own);
	frig_stop();
}

/* Returns the bytes that the engine's own part of a CQ takes, and of a client. */
static void
private_bytes(unsigned n, size_t *cq, size_t *client_bytes)
{
	start_wide(n);
	*cq = malloc_usable_size(ctl_table_get(&client(0)->cqs, 0));
	*client_bytes = malloc_usable_size(client(0));
	frig_stop();
}

Test(engine_wide, a_cq_and_a_client_have_room_for_the_stages_that_there_are)
{
	size_t cq, bytes;

	private_bytes(1, &cq, &bytes);
	cr_assert_leq(cq, 512, "%zu B of a CQ", cq);
	cr_assert_lt(bytes, sizeof(struct ctl_client) + 2 * sizeof(struct eng_client_stage));
}

static unsigned
rings(int node)
{
	const struct eng *e = frig.n[node].e;
	unsigned n = 0;

	for (unsigned t = 0; t < stages[node]; t++)
		for (unsigned s = 0; s < stages[node]; s++)
			n += e->rings.to_stage[t][s] != NULL;
	return n;
}

Test(engine_wide, rings_between_two_stages_are_made_with_their_first_connection)
{
	unsigned before;

	start_wide(16);
	cr_assert_eq(rings(0), 16, "a pair for each transport stage and its engine stage");
	fill_up_to(0, spare_cq(0), 7);
	fill_up_to(1, spare_cq(1), 3);
	before = rings(1);
	frig_connect_over(SAKER_IWARP);
	frig_works();
	cr_assert_leq(rings(1), before + 1);
	cr_assert_eq(frig.n[1].e->stages[3]->nlinked, 1 + (rings(1) - before));
	frig_stop();
}

/* ---- Configuration ---- */

Test(engine_wide, more_stages_than_there_may_be_are_refused_with_a_sentence)
{
	struct eng_config cfg;
	char err[128];

	eng_config_default(&cfg);
	cfg.nstages = ENG_MAX_STAGES + 1;
	cr_assert_eq(eng_config_check(&cfg, err, sizeof(err)), -EINVAL);
	cr_assert_str_eq(err, "65 engine stages: 1 to 64");
	cfg.nstages = 1;
	cfg.ntransports = ENG_MAX_TRANSPORTS + 1;
	cr_assert_eq(eng_config_check(&cfg, err, sizeof(err)), -EINVAL);
	cr_assert_str_eq(err, "65 transport stages: 1 to 64");
	cfg.ntransports = 1;
	cfg.nloops = ENG_MAX_LCORES + 1;
	cr_assert_eq(eng_config_check(&cfg, err, sizeof(err)), -EINVAL);
	cr_assert_str_eq(err, "33 loops: 1 to 32");
}
