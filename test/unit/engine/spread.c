/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several loops, each with a transport stage, an engine stage and a queue of a port with RSS: the
 * frames of every connection arrive at the queue of its stage, in both directions and over both
 * transports, so that no stage passes a frame to another one.
 */
#include <criterion/criterion.h>
#include <rte_ethdev.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/transport/handoff_priv.h"
#include "../../../lib/engine/transport/transport_priv.h"
#include "falcon_rig.h"

#define LOOPS 4u
#define QPS   8u

TestSuite(engine_spread, .init = pair_eal_large);

static struct saker_qp *qps[2][QPS];

/* Makes QPs and connects them, up to the acceptance. The responder's program creates its QP when
 * the request arrives. */
static void
ask_and_accept(enum saker_transport transport)
{
	struct saker_conn_param p = {.ird = 4, .ord = 4};
	struct saker_event ev;

	frig_qp(0, transport);
	frig_ask(&p);
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	frig_qp(1, transport);
	cr_assert_eq(
		saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p), 0, "%s", saker_error());
}

static void
connect_one(enum saker_transport transport, unsigned k)
{
	ask_and_accept(transport);
	for (int i = 0; i < 2; i++)
		qps[i][k] = frig.n[i].qp;
	frig_event(1, SAKER_EV_ESTABLISHED);
	frig_event(0, SAKER_EV_ESTABLISHED);
}

static void
connect_all(enum saker_transport transport)
{
	struct saker_listener *l = frig_listen(1);

	for (unsigned k = 0; k < QPS; k++)
		connect_one(transport, k);
	cr_assert_eq(saker_unlisten(l), 0, "%s", saker_error());
}

static void
select_qps(unsigned k)
{
	frig.n[0].qp = qps[0][k];
	frig.n[1].qp = qps[1][k];
}

static void
all_work(void)
{
	for (unsigned k = 0; k < QPS; k++) {
		select_qps(k);
		frig_works();
	}
}

static uint64_t
both(const char *layer, const char *name)
{
	return frig_count(0, layer, name) + frig_count(1, layer, name);
}

static void
nothing_crossed(void)
{
	cr_assert_eq(both("eng", "ENG_HANDOFF"), 0);
	cr_assert_eq(both("eng", "ENG_HANDOFF_FULL"), 0);
	cr_assert_eq(both("eng", "ENG_LANE"), 0);
	cr_assert_eq(both("eng", "ENG_CROSS"), 0);
}

/* Returns the number of transport stages of a node that have connections. */
static unsigned
stages_in_use(int node)
{
	unsigned n = 0;

	for (unsigned s = 0; s < LOOPS; s++)
		n += frig.n[node].e->transports[s]->nused > 0;
	return n;
}

static void
spread_over(enum saker_transport transport, void (*tweak)(struct eng_config *cfg, int node))
{
	frig_start_rss(LOOPS, tweak);
	connect_all(transport);
	cr_assert_eq(stages_in_use(0), LOOPS);
	all_work();
	nothing_crossed();
	frig_stop();
}

Test(engine_spread, iwarp)
{
	spread_over(SAKER_IWARP, NULL);
}

Test(engine_spread, falcon)
{
	spread_over(SAKER_FALCON, NULL);
}

static void
four_flows(struct eng_config *cfg, int node)
{
	cfg->falcon.flows = FA_FLOWS_MAX;
}

Test(engine_spread, falcon_with_four_flows)
{
	spread_over(SAKER_FALCON, four_flows);
}

static void
under_psp(struct eng_config *cfg, int node)
{
	cfg->falcon.psps = ROFX_PSP(PSP_AES_GCM_256);
	cfg->falcon.tls = pair_tls('k');
}

Test(engine_spread, falcon_under_psp)
{
	spread_over(SAKER_FALCON, under_psp);
}

/* The addresses of the outer header count. */
static void
tunnelled(struct eng_config *cfg, int node)
{
	cfg->falcon.tunnel = true;
	cfg->falcon.tunnel_source = addr(node == 0 ? "fd00:7::1" : "fd00:7::2");
	cfg->ifs[cfg->nifs] = cfg->ifs[0];
	cfg->ifs[cfg->nifs].addr = cfg->falcon.tunnel_source;
	cfg->ifs[cfg->nifs++].prefix = 64;
}

Test(engine_spread, falcon_in_tunnel_mode_over_ipv6)
{
	spread_over(SAKER_FALCON, tunnelled);
}

/* The program has begun to send, when the wire loses everything for a while. */
static void
lose_for_a_while(unsigned k)
{
	select_qps(k);
	frig_post(0, RD_WRITE, 5000, 0);
	frig.silent = true;
	frig_sleep(300000000);
	frig.silent = false;
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
}

Test(engine_spread, a_changed_path_leads_to_the_same_queue)
{
	uint64_t before;

	frig_start_rss(LOOPS, four_flows);
	connect_all(SAKER_FALCON);
	before = both("fa", "FA_REPATH");
	for (unsigned k = 0; k < QPS; k++)
		lose_for_a_while(k);
	cr_assert_gt(both("fa", "FA_REPATH"), before + QPS);
	all_work();
	nothing_crossed();
	frig_stop();
}

/* Without lists of ports the same work is handed off: this rig can fail. */
Test(engine_spread, a_port_without_rss_for_udp_has_hand_offs)
{
	frig_start_rss(LOOPS, NULL);
	for (int i = 0; i < 2; i++)
		frig.n[i].e->ports[0].rss = RTE_ETH_RSS_NONFRAG_IPV4_TCP;
	connect_all(SAKER_FALCON);
	all_work();
	cr_assert_gt(both("eng", "ENG_HANDOFF"), 0);
	frig_stop();
}

/* ---- Rings that a connection makes ---- */

static void
two_stages(struct eng_config *cfg, int node)
{
	cfg->nstages = 2;
	cfg->stage_loop[1] = cfg->stage_loop[0];
}

/* Connects a QP of each node. Returns the type of the event at node 0. */
static enum saker_event_type
try_to_connect(enum saker_transport transport)
{
	struct saker_event ev;

	ask_and_accept(transport);
	do
		frig_turn();
	while (saker_event(frig.n[0].s, &ev) != 1);
	return ev.type;
}

/* The rings between a QP's stage and its transport stage cannot be made. Both programs hear of it,
 * and a later connection makes the rings. */
static void
without_memory_for_rings(enum saker_transport transport)
{
	enum saker_event_type type = SAKER_EV_ESTABLISHED;
	struct rte_ring *taken;
	struct saker_event ev;

	frig_start(two_stages);
	taken = eng_ring_create(frig.n[0].e, "dts", 0, 1, sizeof(struct eng_dmsg), 64);
	cr_assert_not_null(taken, "no ring has this name yet");
	frig_listen(1);
	for (unsigned k = 0; k < 2 && type == SAKER_EV_ESTABLISHED; k++) {
		type = try_to_connect(transport);
		if (type == SAKER_EV_ESTABLISHED)
			frig_event(1, SAKER_EV_ESTABLISHED);
	}
	cr_assert_eq(type, SAKER_EV_UNREACHABLE);
	frig_event(1, SAKER_EV_ESTABLISHED);
	do
		frig_turn();
	while (saker_event(frig.n[1].s, &ev) != 1 || ev.type != SAKER_EV_DISCONNECTED);
	rte_ring_free(taken);
	for (unsigned k = 0; k < 2; k++) {
		cr_assert_eq(try_to_connect(transport), SAKER_EV_ESTABLISHED);
		frig_event(1, SAKER_EV_ESTABLISHED);
		frig_works();
	}
	frig_stop();
}

Test(engine_spread, a_ring_that_cannot_be_made_refuses_iwarp)
{
	without_memory_for_rings(SAKER_IWARP);
}

Test(engine_spread, a_ring_that_cannot_be_made_refuses_falcon)
{
	without_memory_for_rings(SAKER_FALCON);
}
