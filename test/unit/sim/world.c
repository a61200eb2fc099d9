/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests small complete runs: every byte arrives once, the same seed gives the same run, and the
 * parameters of a scenario have their effect. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../../../app/saker-sim/report.h"

static char why[SIM_WHY];

/* Runs the default scenario with the given "section.key=value"..., NULL. */
static struct sim_result
run(const char *first, ...)
{
	struct sim_file f = {.nruns = 1};
	const char *values[SIM_SWEEPS];
	struct sim_scenario sc;
	struct sim_result r;
	struct sim_world *w;
	va_list ap;

	sim_scenario_default(&f.base);
	va_start(ap, first);
	for (const char *s = first; s != NULL; s = va_arg(ap, const char *))
		cr_assert_eq(sim_file_override(&f, s, why), 0, "%s", why);
	va_end(ap);
	cr_assert_eq(sim_file_run(&f, 0, &sc, values, why), 0, "%s", why);
	w = sim_world_create(&sc, why);
	cr_assert_not_null(w, "%s", why);
	sim_result_of(w, sim_world_run(w), &r);
	sim_world_destroy(w);
	cr_assert_eq(r.wrong, 0);
	cr_assert_eq(r.dead, 0);
	cr_assert_eq(r.failed, 0);
	return r;
}

static const char *const transports[] = {"host.transport=tcp", "host.transport=iwarp",
	"host.transport=falcon", "host.transport=rof"};

/* The size is odd, so that the last packet of a message is short. */
Test(world, counted_messages_all_arrive_whole)
{
	for (unsigned i = 0; i < 2; i++) {
		struct sim_result r =
			run(transports[i], "traffic.messages=20", "traffic.message-bytes=100001",
				"traffic.connections=3", "link.loss=2", "link.reorder=2", NULL);

		cr_assert(r.finished, "%s", transports[i]);
		cr_assert_eq(r.messages, 60);
		cr_assert_eq(r.delivered, 60 * 100001);
		cr_assert_gt(r.totals.counts.retransmits, 0);
	}
}

/* Runs pulls and Reads, and then pushes and pulls, Writes and Reads together. */
Test(world, pulls_arrive_whole)
{
	static const char *const operations[] = {
		"traffic.operation=pull", "traffic.operation=both"};

	for (unsigned i = 0; i < 6; i++) {
		struct sim_result r = run(transports[1 + i % 3], operations[i / 3],
			"traffic.messages=20", "traffic.message-bytes=100001",
			"traffic.connections=3", "link.loss=2", "link.reorder=2", NULL);

		cr_assert(r.finished, "%s %s", transports[1 + i % 3], operations[i / 3]);
		cr_assert_eq(r.delivered, 60 * 100001);
	}
}

Test(world, rdma_in_every_ordering_mode)
{
	static const char *const modes[][2] = {{"falcon.ordered=yes", "rof.unordered=none"},
		{"falcon.ordered=no", "rof.unordered=weak"},
		{"falcon.ordered=no", "rof.unordered=none"}};

	for (unsigned i = 0; i < 3; i++) {
		struct sim_result r =
			run("host.transport=rof", modes[i][0], modes[i][1], "traffic.messages=10",
				"traffic.operation=both", "link.loss=1", "falcon.packets=4", NULL);

		cr_assert(r.finished, "%u", i);
		cr_assert_eq(r.delivered, 10 << 20);
	}
}

Test(world, rdma_needs_a_packet_for_each_connection)
{
	struct sim_scenario sc;

	sim_scenario_default(&sc);
	cr_assert_eq(sim_scenario_set(&sc, "host", "transport", "rof", why), 0);
	cr_assert_eq(sim_scenario_set(&sc, "traffic", "connections", "5", why), 0);
	cr_assert_eq(sim_scenario_set(&sc, "falcon", "packets", "4", why), 0);
	cr_assert_null(sim_world_create(&sc, why));
	cr_assert_eq(strncmp(why, "rof: ", 5), 0, "%s", why);
}

Test(world, ordered_connections_and_four_flows_too)
{
	struct sim_result r = run("host.transport=falcon", "falcon.ordered=yes", "falcon.flows=4",
		"topology.type=leaf-spine", "topology.hosts=8", "fabric.loss=1",
		"traffic.messages=10", "traffic.message-bytes=65536", NULL);

	cr_assert(r.finished);
	cr_assert_eq(r.delivered, 4 * 10 * 65536);
}

Test(world, the_same_seed_gives_the_same_run)
{
	for (unsigned i = 0; i < 4; i++) {
		struct sim_result a, b, c;
		const char *rest[] = {"topology.type=star", "topology.hosts=8",
			"traffic.pattern=random", "traffic.messages=5", "link.loss=1",
			"traffic.spread-us=10"};

		a = run(transports[i], rest[0], rest[1], rest[2], rest[3], rest[4], rest[5], NULL);
		b = run(transports[i], rest[0], rest[1], rest[2], rest[3], rest[4], rest[5], NULL);
		c = run(transports[i], rest[0], rest[1], rest[2], rest[3], rest[4], rest[5],
			"run.seed=2", NULL);
		cr_assert_eq(memcmp(&a, &b, sizeof(a)), 0, "%s", transports[i]);
		cr_assert_neq(a.events, c.events, "another seed, another run");
	}
}

/* A TCP packet has 4096 bytes of payload in at most 4096 + 12 + 32 + 40 + 14 + 24 bytes: 97 %. */
Test(world, eight_connections_fill_a_clean_link)
{
	for (unsigned i = 0; i < 2; i++) {
		struct sim_result r =
			run(transports[i], "traffic.connections=8", "run.duration-us=3000", NULL);

		cr_assert_gt(r.share, 95.5, "%s: %f", transports[i], r.share);
		cr_assert_lt(r.share, 97.5);
		cr_assert_gt(r.jain, 0.95, "%s: %f", transports[i], r.jain);
		cr_assert_eq(r.totals.counts.retransmits, 0);
	}
}

/* One connection has at most 128 packets in flight: 128 * 4096 bytes in little more than 25 us. */
Test(world, one_falcon_connection_is_held_by_its_window)
{
	struct sim_result r =
		run("host.transport=falcon", "run.warmup-us=5000", "run.duration-us=3000", NULL);

	cr_assert(r.goodput_gbps > 140 && r.goodput_gbps < 168, "%f", r.goodput_gbps);
}

/* A host whose scheduler runs other programs for 3 ms in 23: packets wait in its port. Swift does
 * not take the stops for delay of the network. Packets are resent only for the timeout of 1 ms. */
Test(world, a_receiver_that_stops_keeps_its_rate_while_it_runs)
{
	struct sim_result r = run("host.transport=falcon", "traffic.connections=8", "link.gbps=100",
		"receiver.stop-us=3000", "run.warmup-us=40000", "run.duration-us=100000", NULL);

	cr_assert_gt(r.share, 0.95 * 20 / 23 * 96.5, "%f", r.share);
	cr_assert_eq(r.totals.receiver_drops, 0);
	cr_assert_lt(100 * r.totals.counts.retransmits, r.totals.counts.packets);
}

/* A packet needs a fifth more time than it takes on the wire. */
Test(world, a_receiver_that_is_too_slow_loses_little)
{
	struct sim_result r = run("host.transport=falcon", "traffic.connections=8", "link.gbps=100",
		"receiver.packet-ns=403", "run.warmup-us=20000", "run.duration-us=50000", NULL);

	cr_assert_gt(r.share, 0.9 / 1.2 * 96.5, "%f", r.share);
	cr_assert_lt(r.share, 82, "%f", r.share);
	cr_assert_lt(1000 * r.totals.receiver_drops, r.totals.counts.packets);
}

/* The targets of goodput under random loss: 95 % of the clean link at 1 %, 85 % at 5 %. */
Test(world, falcon_keeps_its_goodput_under_loss)
{
	static const char *const loss[] = {"link.loss=0", "link.loss=1", "link.loss=5"};
	double goodput[3];

	for (unsigned i = 0; i < 3; i++)
		goodput[i] = run("host.transport=falcon", "traffic.connections=8", loss[i],
			"run.duration-us=5000", NULL)
				     .goodput_gbps;
	cr_assert_gt(goodput[1], 0.95 * goodput[0], "%f of %f", goodput[1], goodput[0]);
	cr_assert_gt(goodput[2], 0.85 * goodput[0], "%f of %f", goodput[2], goodput[0]);
}

Test(world, incast_fills_the_queue_of_one_port)
{
	for (unsigned i = 0; i < 4; i++) {
		struct sim_result r = run(transports[i], "topology.type=star", "topology.hosts=17",
			"traffic.pattern=incast", "switch.queue-kib=256", "link.delay-ns=1000",
			"run.warmup-us=100", "run.duration-us=1000", NULL);

		cr_assert_gt(r.share, 70, "%s: %f", transports[i], r.share);
		cr_assert_leq(r.totals.ports.deepest, 256 * 1024);
		cr_assert_gt(r.totals.ports.deepest, 128 * 1024);
		cr_assert_gt(r.totals.ports.dropped, 0);
	}
}

Test(world, dctcp_keeps_queues_at_the_mark)
{
	struct sim_result r = run("host.transport=tcp", "tcp.congestion=dctcp",
		"topology.type=star", "topology.hosts=5", "traffic.pattern=incast",
		"switch.ecn-kib=128", "link.delay-ns=1000", "run.duration-us=3000", NULL);

	cr_assert_gt(r.totals.ports.marked, 0);
	cr_assert_eq(r.totals.ports.dropped, 0);
	cr_assert_gt(r.share, 90, "%f", r.share);
	cr_assert_lt(r.depth_p50, 256 * 1024);
}

/* Falcon's congestion controls, each selected by one key. */
static const char *const controls[] = {"falcon.congestion=swift", "falcon.congestion=dctcp"};

/* Swift fills the queue up to its target delay, DCTCP up to the mark; neither loses a packet. */
Test(world, swift_and_dctcp_of_falcon_under_incast)
{
	struct sim_result r[2];

	for (unsigned i = 0; i < 2; i++) {
		r[i] = run("host.transport=falcon", controls[i], "topology.type=star",
			"topology.hosts=26", "link.gbps=100", "link.delay-ns=2000",
			"traffic.pattern=incast", "traffic.message-bytes=65536",
			"traffic.outstanding=1", "falcon.window=64", "falcon.packets=8192",
			"switch.ecn-kib=100", "run.duration-us=2000", NULL);
		cr_assert_gt(r[i].share, 95, "%s: %f", controls[i], r[i].share);
		cr_assert_gt(r[i].jain, 0.95, "%s: %f", controls[i], r[i].jain);
		cr_assert_eq(r[i].totals.ports.dropped, 0, "%s", controls[i]);
	}
	cr_assert_lt(2 * r[1].depth_p99, r[0].depth_p99, "%" PRIu64 " of %" PRIu64, r[1].depth_p99,
		r[0].depth_p99);
}

/* No switch marks a packet: DCTCP has no signal, and its window is the largest one. */
Test(world, dctcp_of_falcon_needs_marks)
{
	struct sim_result r = run("host.transport=falcon", controls[1], "topology.type=star",
		"topology.hosts=26", "link.gbps=100", "link.delay-ns=2000",
		"traffic.pattern=incast", "falcon.window=64", "run.duration-us=2000", NULL);

	cr_assert_gt(r.totals.ports.dropped, 0);
}

/* A loss without congestion costs nothing, unless early retransmissions cut the window. */
Test(world, swift_and_dctcp_of_falcon_under_loss)
{
	static const char *const cuts[] = {"no", "yes"};
	double share[2][2];

	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < 2; k++) {
			char key[64];

			snprintf(key, sizeof(key), "falcon.early-cuts=%s", cuts[k]);
			share[i][k] = run("host.transport=falcon", controls[i], key, "link.loss=1",
				"traffic.connections=8", "run.duration-us=3000", NULL)
					      .share;
		}
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_gt(share[i][0], 93, "%s: %f", controls[i], share[i][0]);
		cr_assert_lt(share[i][1], 75, "%s: %f", controls[i], share[i][1]);
	}
	cr_assert_eq(run("host.transport=falcon", controls[1], "link.loss=1",
			     "traffic.connections=8", "run.duration-us=3000", NULL)
			     .share,
		share[1][1], "DCTCP's default is that of RFC 8257 3.5");
}

/* PLB by delay, and by marks. */
Test(world, swift_and_dctcp_of_falcon_on_four_paths)
{
	for (unsigned i = 0; i < 2; i++) {
		struct sim_result r[2];

		for (unsigned k = 0; k < 2; k++)
			r[k] = run("host.transport=falcon", controls[i],
				k ? "falcon.plb=yes" : "falcon.plb=no", "falcon.plb-fraction=5",
				"topology.type=leaf-spine", "topology.hosts=16", "link.gbps=100",
				"link.delay-ns=500", "fabric.delay-ns=2000",
				"traffic.message-bytes=262144", "traffic.outstanding=4",
				"switch.ecn-kib=100", "run.warmup-us=8000", "run.duration-us=2000",
				NULL);
		cr_assert_eq(r[0].totals.counts.repaths, 0);
		cr_assert_gt(r[1].share, r[0].share + 5, "%s: %f, %f", controls[i], r[0].share,
			r[1].share);
	}
}

/* Eight connections of one flow each have four paths: the hash selects three of them, and PLB finds
 * the fourth. With four flows, each connection uses all paths from the start. */
Test(world, plb_and_four_flows_use_all_paths)
{
	static const char *const how[] = {"falcon.plb=no", "falcon.plb=yes", "falcon.flows=4"};
	double share[3];

	for (unsigned i = 0; i < 3; i++)
		share[i] = run("host.transport=falcon", "topology.type=leaf-spine",
			"topology.hosts=16", "link.gbps=100", "link.delay-ns=500",
			"fabric.delay-ns=2000", "traffic.outstanding=4", "falcon.plb-delay=95",
			"run.warmup-us=10000", "run.duration-us=2000", how[i], NULL)
				   .share;
	cr_assert_lt(share[0], 80, "%f", share[0]);
	cr_assert_gt(share[1], 90, "%f", share[1]);
	cr_assert_gt(share[2], 90, "%f", share[2]);
}

/* All pools hold one packet, or two; requests and answers cross, the wire loses packets, and the
 * ULPs are not always ready. */
Test(world, smallest_pools_do_not_deadlock)
{
	static const char *const packets[] = {"falcon.packets=1", "falcon.packets=2"};
	static const char *const ordered[] = {"falcon.ordered=no", "falcon.ordered=yes"};

	for (unsigned i = 0; i < 4; i++) {
		struct sim_result r = run("host.transport=falcon", packets[i % 2], ordered[i / 2],
			"topology.type=star", "topology.hosts=6", "traffic.pattern=random",
			"traffic.operation=both", "traffic.connections=3", "traffic.messages=3",
			"traffic.message-bytes=30000", "link.loss=2", "link.reorder=1",
			"falcon.rnr=10", NULL);

		cr_assert(r.finished, "%s %s", packets[i % 2], ordered[i / 2]);
		cr_assert_eq(r.delivered, 6 * 3 * 3 * 30000);
	}
}

Test(world, a_limit_ends_what_does_not_finish)
{
	struct sim_result r =
		run("host.transport=falcon", "traffic.messages=1000000", "run.limit-ms=1", NULL);

	cr_assert_not(r.finished);
}
