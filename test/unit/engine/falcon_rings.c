/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Full rings between the stages. The messages of Falcon wait, in either direction, and none is lost
 * or sent twice. The test fills the rings with messages about connections and QPs that do not
 * exist.
 */
#include <criterion/criterion.h>
#include <rte_ring_elem.h>
#include <string.h>

#include "../../../lib/engine/stage/stage_priv.h"
#include "../../../lib/engine/transport/transport_priv.h"
#include "falcon_rig.h"

#define NOBODY 0xffffffu /* an index that no QP and no connection has */
#define ROUNDS 40

TestSuite(engine_falcon_rings, .init = pair_eal);

static void
two_loops(struct eng_config *cfg, int node)
{
	cfg->nloops = 2;
	cfg->stage_loop[0] = 1;
}

static void
fill(struct rte_ring *r, uint32_t type)
{
	struct eng_dmsg m = {.id_type = ENG_DMSG(type, NOBODY)};

	while (rte_ring_sp_enqueue_elem(r, &m, sizeof(m)) == 0)
		;
}

/* Runs transfers of both sides while the rings of node `node` in one direction are full again and
 * again. */
static void
crowded(int node, bool to_stage)
{
	struct eng *e;
	uint64_t before;

	frig_start(two_loops);
	frig_connect();
	e = frig.p.e[node];
	before = frig_count(node, "eng", "ENG_RING_FULL");
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < FRIG_MEM; i++)
			frig.n[0].mem[i] = (uint8_t)(i * 5 + (i >> 8) + round);
		frig_post(0, RD_WRITE, FRIG_MEM, 0);
		frig_post(1, RD_READ, FRIG_MEM, 0);
		frig_turns(round % 7);
		/* The loop that would empty the ring is not polled. */
		frig.loop_idle = to_stage ? 2 : 1;
		fill(to_stage ? e->transports[0]->to_stage[0] : e->stages[0]->to_transport[0],
			to_stage ? ENG_E_SPACE : ENG_T_CONSUMED);
		frig_turns(20);
		frig.loop_idle = 0;
		cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
		cr_assert_eq(frig_wc(1).status, RD_SUCCESS);
		cr_assert_arr_eq(frig.n[1].mem, frig.n[0].mem, FRIG_MEM);
	}
	cr_assert_gt(frig_count(node, "eng", "ENG_RING_FULL"), before, "it was never full");
	frig_works();
	frig_stop();
}

Test(engine_falcon_rings, the_initiators_deliveries_wait)
{
	crowded(0, true);
}

Test(engine_falcon_rings, the_targets_deliveries_wait)
{
	crowded(1, true);
}

Test(engine_falcon_rings, the_initiators_requests_wait)
{
	crowded(0, false);
}

Test(engine_falcon_rings, the_targets_verdicts_wait)
{
	crowded(1, false);
}
