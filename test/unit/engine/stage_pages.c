/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine stage: QPs whose pages are missing again and again cost their own user. */
#include "stage_rig.h"

#include <sched.h>

#include <criterion/criterion.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "../../../lib/engine/common/pages.h"
#include "pair.h"

#define QPS     100
#define STEP_NS 50000u

static const uint8_t hole[64]; /* memory of the test: the thread finds no region there */

/* Counts a visit where qp->control points to, and requests a page, as a failed probe does. */
static bool
missing_run(struct eng_stage *s, struct eng_qp *qp)
{
	(*(uint64_t *)qp->control)++;
	eng_pages_fetch(s, &qp->rd, hole, sizeof(hole));
	return false;
}

/* The client has removed the page meanwhile: the QP tries again. */
static bool
missing_pages(struct eng_stage *s, struct eng_qp *qp)
{
	return true;
}

static const struct eng_qp_ops missing = {.run = missing_run,
	.pages = missing_pages,
	.info = stage_qp_info,
	.opened = stage_qp_opened};

/* A client whose QPs never find their pages. */
struct puncher {
	struct stage_client c;
	struct eng_qp qp[QPS];
	uint64_t visits;
	unsigned nqps;
};

static void
puncher_start(struct stage_rig *r, struct puncher *p, unsigned nqps, uint16_t user)
{
	static uint32_t index;

	*p = (struct puncher){.nqps = nqps};
	stage_client_add(r, &p->c, user, NULL);
	for (unsigned i = 0; i < nqps; i++) {
		stage_qp_make(&p->qp[i], &p->c, &missing, &p->visits);
		p->qp[i].index = index++ % r->s->nqps;
		r->s->qps[p->qp[i].index] = &p->qp[i];
		eng_qp_activate(r->s, &p->qp[i]);
	}
}

static void
puncher_stop(struct stage_rig *r, struct puncher *p)
{
	for (unsigned i = 0; i < p->nqps; i++) {
		eng_qp_deactivate(r->s, &p->qp[i]);
		r->s->qps[p->qp[i].index] = NULL;
	}
	stage_client_del(r, &p->c);
}

/* Runs turns of no length until the thread holds no request of the QPs. */
static void
answered(struct stage_rig *r, struct puncher *p)
{
	bool busy = true;

	while (busy && p->visits < 100000) { /* the checks of the callers are far below */
		stage_rig_turn(r, 0);
		busy = false;
		for (unsigned i = 0; i < p->nqps; i++)
			busy |= p->qp[i].active == EQP_ACTIVE ||
				eng_pages_req(r->e->pages, 0, p->qp[i].index)->busy;
		sched_yield();
	}
}

Test(engine_stage_pages, a_turn_has_a_budget_of_probes_that_fail, .init = pair_eal)
{
	struct puncher p;
	struct stage_rig r;

	stage_rig_start(&r, NULL);
	puncher_start(&r, &p, QPS, 1);
	for (unsigned i = 1; i <= QPS / ENG_FAULTS_TURN; i++) {
		stage_rig_turn(&r, 0);
		cr_assert_eq(p.visits, i * ENG_FAULTS_TURN, "turn %u: %lu", i, p.visits);
	}
	puncher_stop(&r, &p);
	stage_rig_end(&r);
}

/* A message of the peer whose target is missing. */
static void
missing_message(struct eng_stage *s, struct eng_qp *qp, const struct eng_dmsg *m)
{
	missing_run(s, qp);
}

Test(engine_stage_pages, messages_wait_when_the_budget_of_probes_is_used_up, .init = pair_eal)
{
	static const struct eng_qp_ops target = {.message = missing_message,
		.pages = missing_pages,
		.info = stage_qp_info,
		.opened = stage_qp_opened};
	struct eng_dmsg m = {.id_type = ENG_E_SPACE};
	struct puncher p;
	struct stage_rig r;

	stage_rig_start(&r, NULL);
	puncher_start(&r, &p, 1, 1);
	eng_qp_deactivate(r.s, &p.qp[0]);
	p.qp[0].ops = &target;
	m.id_type |= p.qp[0].index << 4;
	for (unsigned i = 0; i < 3 * ENG_BURST; i++)
		rte_ring_sp_enqueue_elem(r.e->rings.to_stage[0][0], &m, sizeof(m));
	for (unsigned i = 1; i <= 3; i++) {
		stage_rig_turn(&r, 0);
		cr_assert_eq(p.visits, i * ENG_BURST, "turn %u: %lu", i, p.visits);
	}
	puncher_stop(&r, &p);
	stage_rig_end(&r);
}

Test(engine_stage_pages, a_user_requests_pages_at_a_limited_rate, .init = pair_eal)
{
	const unsigned burst = ENG_FETCH_BURST_NS / ENG_FETCH_NS;
	struct puncher p, other;
	struct stage_rig r;
	uint64_t before;

	stage_rig_start(&r, NULL);
	cr_assert_eq(eng_pages_start(r.e->pages), 0);
	puncher_start(&r, &p, QPS, 1);
	answered(&r, &p);
	cr_assert_eq(p.visits, QPS + burst, "each QP waits for its next request: %lu", p.visits);
	before = p.visits;
	for (unsigned i = 0; i < 1000; i++) {
		stage_rig_turn(&r, STEP_NS);
		answered(&r, &p);
	}
	cr_assert_float_eq((double)(p.visits - before), 1000.0 * STEP_NS / ENG_FETCH_NS, 2,
		"%lu in 1000 steps", p.visits - before);
	/* The requests of another user do not wait. */
	puncher_start(&r, &other, 1, 2);
	answered(&r, &other);
	cr_assert_eq(other.visits, burst + 1, "%lu", other.visits);
	puncher_stop(&r, &other);
	puncher_stop(&r, &p);
	stage_rig_end(&r);
}
