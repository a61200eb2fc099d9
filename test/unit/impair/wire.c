/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Impairments by chance and by time. Rates are compared with bounds of five standard deviations;
 * with a fixed seed the outcome is always the same.
 */
#include "fixture.h"

#include <math.h>
#include <rte_bus_vdev.h>
#include <rte_cycles.h>

#include "../../../drivers/net/impair/impair_priv.h"

#define N 3000

TestSuite(wire, .init = impair_fixture, .fini = impair_fixture_end);

static struct rte_mbuf *got[2 * N];

static void
within(uint64_t count, double p, const char *what)
{
	double mean = N * p, sd = sqrt(N * p * (1 - p));

	cr_assert(fabs((double)count - mean) < 5 * sd, "%s: %lu of %d at %g", what,
		(unsigned long)count, N, p);
}

Test(wire, passes_everything_in_order_when_nothing_is_asked)
{
	uint16_t port = start("");
	unsigned n = send_all(port, 0, N, got, 2 * N);

	cr_assert_eq(n, N);
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(frame_number(got[i], false), i);
	cr_assert_eq(impair_count(port, true, IMPAIR_FRAMES), N);
	cr_assert_eq(impair_count(port, true, IMPAIR_PASSED), N);
	cr_assert_eq(impair_held(port), 0);
	free_all(got, n);
	stop(port);
}

Test(wire, drops_at_its_rate)
{
	uint16_t port = start("seed=7,drop=0.1");
	unsigned n = send_all(port, 0, N, got, 2 * N);

	cr_assert_eq(n + impair_count(port, true, IMPAIR_DROP), N);
	within(impair_count(port, true, IMPAIR_DROP), 0.1, "drop");
	for (unsigned i = 1; i < n; i++)
		cr_assert_gt(frame_number(got[i], false), frame_number(got[i - 1], false));
	free_all(got, n);
	stop(port);
}

Test(wire, drops_all_at_one_and_none_at_zero)
{
	uint16_t port = start("drop=1");
	struct impair_cfg cfg = config(port);

	cr_assert_eq(send_all(port, 0, N, got, 2 * N), 0);
	cfg.drop = 0;
	cr_assert_eq(impair_set(port, &cfg), 0);
	cr_assert_eq(send_all(port, 0, 100, got, 2 * N), 100);
	free_all(got, 100);
	stop(port);
}

Test(wire, duplicates_at_its_rate_right_behind_the_original)
{
	uint16_t port = start("seed=7,dup=0.1");
	unsigned n = send_all(port, 0, N, got, 2 * N);
	unsigned twins = 0;

	for (unsigned i = 1; i < n; i++) {
		if (frame_number(got[i], false) != frame_number(got[i - 1], false))
			continue;
		twins++;
		cr_assert_neq(got[i], got[i - 1]);
		cr_assert_arr_eq(rte_pktmbuf_mtod(got[i], void *),
			rte_pktmbuf_mtod(got[i - 1], void *), got[i]->data_len);
	}
	cr_assert_eq(twins, impair_count(port, true, IMPAIR_DUP));
	cr_assert_eq(n, N + twins);
	within(twins, 0.1, "dup");
	free_all(got, n);
	stop(port);
}

Test(wire, reorders_at_its_rate_within_its_span)
{
	uint16_t port = start("seed=7,reorder=0.1,reorder_frames=4,reorder_us=1000000");
	unsigned n = send_all(port, 0, N, got, 2 * N), late = 0, most = 0, high = 0;
	unsigned tail;

	impair_flush(port);
	tail = take_out(port, got + n, 2 * N - n);
	cr_assert_leq(tail, 4);
	n += tail;
	cr_assert_eq(n, N, "nothing is lost");
	for (unsigned i = 0; i < n; i++) {
		unsigned f = frame_number(got[i], false);

		if (f < high) {
			late++;
			most = RTE_MAX(most, high - f);
		}
		high = RTE_MAX(high, f);
	}
	within(impair_count(port, true, IMPAIR_REORDER), 0.1, "reorder");
	/* A frame that is overtaken only by frames that were set aside, too, may be in order
	 * again. */
	cr_assert_leq(late, impair_count(port, true, IMPAIR_REORDER));
	cr_assert_geq(late, impair_count(port, true, IMPAIR_REORDER) * 9 / 10);
	cr_assert_gt(most, 3);
	cr_assert_lt(most, 32);
	free_all(got, n);
	stop(port);
}

Test(wire, reordered_frame_without_followers_comes_by_its_time_bound)
{
	uint16_t port = start("reorder=1,reorder_us=1");
	unsigned n = send_all(port, 0, 1, got, 1);

	while (n == 0)
		n = take_out(port, got, 1);
	cr_assert_eq(impair_count(port, true, IMPAIR_REORDER), 1);
	free_all(got, n);
	stop(port);
}

/* Returns the numbers and bytes of the frames that arrived, as one number. */
static uint64_t
fingerprint(uint16_t port)
{
	unsigned n = send_all(port, 0, 2000, got, 2 * N);
	uint64_t h = n;

	impair_flush(port);
	n += take_out(port, got + n, 2 * N - n);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < got[i]->data_len; k++)
			h = h * 1099511628211ULL ^ *rte_pktmbuf_mtod_offset(got[i], uint8_t *, k);
	free_all(got, n);
	return h;
}

Test(wire, repeats_bit_for_bit_with_the_same_seed)
{
	uint16_t port = start("seed=42,drop=0.05,dup=0.05,reorder=0.05,reorder_us=1000000,"
			      "ecn=0.05,corrupt=0.05,corrupt_crc=0.05");
	struct impair_cfg cfg = config(port);
	uint64_t first = fingerprint(port), again;

	cr_assert_eq(impair_set(port, &cfg), 0);
	again = fingerprint(port);
	cr_assert_eq(first, again);
	cfg.seed = 43;
	impair_set(port, &cfg);
	cr_assert_neq(fingerprint(port), first);
	stop(port);
}

Test(wire, queues_and_directions_draw_apart)
{
	const struct impair_cfg cfg = {.seed = 1, .tx = true, .rx = true};
	static struct lane lane[8];

	for (unsigned i = 0; i < 8; i++) {
		impair_lane_set(&lane[i], &cfg, i & 1, i / 2);
		for (unsigned k = 0; k < i; k++)
			cr_assert_neq(lane[i].rng, lane[k].rng, "%u %u", i, k);
	}
}

Test(wire, one_impairment_does_not_move_another)
{
	uint16_t port = start("seed=9,drop=0.1");
	struct impair_cfg cfg = config(port);
	static uint32_t alone[N];
	unsigned n = send_all(port, 0, N, got, 2 * N), k = 0, m;

	for (unsigned i = 0; i < n; i++)
		alone[i] = frame_number(got[i], false);
	free_all(got, n);
	cfg.dup = 0.2;
	cfg.ecn = 0.2;
	impair_set(port, &cfg);
	m = send_all(port, 0, N, got, 2 * N);
	for (unsigned i = 0; i < m; i++) {
		if (i != 0 && frame_number(got[i], false) == frame_number(got[i - 1], false))
			continue;
		cr_assert_lt(k, n);
		cr_assert_eq(frame_number(got[i], false), alone[k++]);
	}
	cr_assert_eq(k, n);
	free_all(got, m);
	stop(port);
}

Test(wire, directions_are_impaired_apart)
{
	uint16_t port = start("drop=1,dir=rx");
	struct rte_mbuf *m = tcp_frame(1, 100, 0, false);

	cr_assert_eq(send_all(port, 0, 10, got, 2 * N), 10);
	free_all(got, 10);
	rte_ring_enqueue(wire_in, m);
	cr_assert_eq(rte_eth_rx_burst(port, 0, got, 32), 0);
	cr_assert_eq(impair_count(port, false, IMPAIR_DROP), 1);
	cr_assert_eq(impair_count(port, true, IMPAIR_DROP), 0);
	stop(port);
}

Test(wire, receives_through_the_same_impairments)
{
	uint16_t port = start("seed=3,drop=0.1,dup=0.1,dir=rx");
	unsigned n = 0;

	for (unsigned i = 0; i < N; i++) {
		struct rte_mbuf *m = tcp_frame(i, 100, 0, false);

		rte_ring_enqueue(wire_in, m);
		n += rte_eth_rx_burst(port, 0, got + n, 32);
	}
	cr_assert_eq(n + impair_count(port, false, IMPAIR_DROP),
		N + impair_count(port, false, IMPAIR_DUP));
	within(impair_count(port, false, IMPAIR_DROP), 0.1, "drop");
	free_all(got, n);
	stop(port);
}

Test(wire, delays_every_frame_and_keeps_their_order)
{
	uint16_t port = start("delay_us=2000,jitter_us=500");
	uint64_t begin = rte_get_tsc_cycles(), hz = rte_get_tsc_hz();
	unsigned n = send_all(port, 0, 200, got, 2 * N);

	if (rte_get_tsc_cycles() - begin < hz / 1000 * 2)
		cr_assert_eq(n, 0, "nothing comes before its time");
	/* A receive burst forwards sent frames. */
	while (n < 200) {
		rte_eth_rx_burst(port, 0, got + n, 32);
		n += rte_ring_dequeue_burst(wire_out, (void **)(got + n), 2 * N - n, NULL);
		if (n == 0)
			cr_assert_gt(impair_held(port), 0);
	}
	cr_assert_geq(rte_get_tsc_cycles() - begin, hz / 1000 * 2);
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(frame_number(got[i], false), i);
	free_all(got, n);
	stop(port);
}

Test(wire, rate_limit_drops_the_tail)
{
	uint16_t port = start("rate_mbps=1,queue=64");
	struct rte_mbuf *burst[200];

	for (unsigned i = 0; i < 200; i++)
		burst[i] = tcp_frame(i, 100, 0, false);
	cr_assert_eq(rte_eth_tx_burst(port, 0, burst, 200), 200);
	cr_assert_eq(impair_count(port, true, IMPAIR_QUEUE_FULL), 200 - 64);
	impair_flush(port);
	cr_assert_eq(take_out(port, got, N), 64);
	free_all(got, 64);
	stop(port);
}

Test(wire, rate_limit_spaces_frames)
{
	/* 178 bytes at 10 Mb/s take 142.4 us, from the first frame on. */
	uint16_t port = start("rate_mbps=10");
	uint64_t begin = rte_get_tsc_cycles();
	unsigned n = send_all(port, 0, 32, got, N);

	while (n < 32)
		n += take_out(port, got + n, N - n);
	cr_assert_geq((double)(rte_get_tsc_cycles() - begin) / (double)rte_get_tsc_hz(),
		32 * 142.4e-6 * 0.999);
	free_all(got, n);
	stop(port);
}

/* A dropped frame occupies the wire: with this seed, one of the last four of 32 frames passes,
 * after 28 others, half of which are dropped. */
Test(wire, a_lost_frame_takes_its_time)
{
	uint16_t port = start("rate_mbps=10,drop=0.5,seed=3");
	uint64_t begin = rte_get_tsc_cycles();
	unsigned n = send_all(port, 0, 32, got, N);

	while (impair_held(port) != 0)
		n += take_out(port, got + n, N - n);
	n += take_out(port, got + n, N - n);
	cr_assert_leq(n, 24);
	cr_assert_geq(frame_number(got[n - 1], false), 28);
	cr_assert_geq((double)(rte_get_tsc_cycles() - begin) / (double)rte_get_tsc_hz(),
		28 * 142.4e-6 * 0.999);
	free_all(got, n);
	stop(port);
}

/* Sends single frames until one is refused, then takes all of them: the accepted ones must arrive,
 * in order. */
static void
push_back(const char *args)
{
	uint16_t port = start(args);
	unsigned sent = 0, n = 0;

	for (;; sent++) {
		struct rte_mbuf *m = tcp_frame(sent, 20, 0, false);

		if (rte_eth_tx_burst(port, 0, &m, 1) == 1)
			continue;
		rte_pktmbuf_free(m);
		break;
	}
	cr_assert_geq(sent, rte_ring_get_capacity(wire_out));
	while (n < sent) {
		unsigned k = take_out(port, got + n, 2 * N - n);

		cr_assert_gt(k, 0);
		n += k;
	}
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(frame_number(got[i], false), i);
	cr_assert_eq(impair_count(port, true, IMPAIR_QUEUE_FULL), 0);
	cr_assert_eq(impair_held(port), 0);
	free_all(got, n);
	stop(port);
}

Test(wire, full_lower_port_pushes_back_and_loses_nothing)
{
	push_back("queue=64,ecn=1"); /* these frames are not ECN-capable */
}

Test(wire, full_lower_port_pushes_back_where_nothing_is_impaired)
{
	push_back("");
}

Test(wire, held_frames_are_freed_when_the_port_stops)
{
	uint16_t port = start("delay_us=10000000");
	struct rte_mbuf *m = tcp_frame(1, 100, 0, false);

	send_all(port, 0, 100, got, N);
	rte_ring_enqueue(wire_in, m);
	rte_eth_rx_burst(port, 0, got, 32);
	cr_assert_eq(impair_held(port), 101);
	rte_eth_dev_stop(port);
	cr_assert_eq(impair_held(port), 0);
	cr_assert_eq(impair_count(port, true, IMPAIR_FLUSHED), 100);
	cr_assert_eq(rte_mempool_avail_count(pool), POOL);
	cr_assert_eq(rte_eth_rx_queue_setup(port, 0, 256, 0, NULL, pool), 0);
	cr_assert_eq(rte_eth_tx_queue_setup(port, 0, 256, 0, NULL), 0);
	cr_assert_eq(rte_eth_dev_start(port), 0, "it starts again");
	send_all(port, 0, 10, got, N);
	cr_assert_eq(impair_held(port), 10);
	stop(port);
}

Test(wire, overtaken_and_refused_frames_are_freed_when_the_port_stops)
{
	uint16_t port = start("reorder=0.2,reorder_us=1000000");
	unsigned sent = 0;

	for (;; sent++) {
		struct rte_mbuf *m = tcp_frame(sent, 20, 0, false);

		if (rte_eth_tx_burst(port, 0, &m, 1) == 1)
			continue;
		rte_pktmbuf_free(m);
		break;
	}
	cr_assert_gt(impair_held(port), 0);
	cr_assert_eq(impair_held(port) + rte_ring_count(wire_out), sent);
	stop(port);
}

Test(wire, receives_unharmed_where_only_sending_is_impaired)
{
	uint16_t port = start("drop=1,dir=tx");
	struct rte_eth_stats stats;
	struct rte_mbuf *m;

	for (unsigned i = 0; i < 100; i++) {
		m = tcp_frame(i, 100, 0, false);
		rte_ring_enqueue(wire_in, m);
		cr_assert_eq(rte_eth_rx_burst(port, 0, got, 32), 1);
		cr_assert_eq(got[0], m);
		rte_pktmbuf_free(m);
	}
	cr_assert_eq(impair_count(port, false, IMPAIR_PASSED), 100);
	rte_eth_stats_get(port, &stats);
	cr_assert_eq(stats.ipackets, 100);
	cr_assert_eq(stats.ibytes, 15400);
	stop(port);
}

Test(wire, goes_with_its_vdev)
{
	uint16_t port = start("");

	cr_assert_eq(rte_vdev_uninit("net_impair0"), 0);
	cr_assert_not(rte_eth_dev_is_valid_port(port));
	cr_assert_not(rte_eth_dev_is_valid_port(lower));
}

Test(wire, copies_that_find_no_mbuf_are_counted)
{
	uint16_t port = start("dup=1");
	struct rte_mbuf *m = tcp_frame(1, 100, 0, false), *all[POOL];

	cr_assert_eq(rte_pktmbuf_alloc_bulk(pool, all, POOL - 1), 0);
	cr_assert_eq(rte_eth_tx_burst(port, 0, &m, 1), 1);
	cr_assert_eq(take_out(port, got, N), 1, "the original goes");
	cr_assert_eq(impair_count(port, true, IMPAIR_NO_MBUF), 1);
	cr_assert_eq(impair_count(port, true, IMPAIR_DUP), 0);
	free_all(all, POOL - 1);
	free_all(got, 1);
	stop(port);
}

Test(wire, wrong_arguments_are_refused)
{
	static const char *const bad[] = {"drop=1.5", "drop=-0.1", "drop=x", "drop=nan", "seed=-1",
		"delay_us=99999999", "dir=up", "queue=1", "reorder_frames=0", "nic=2", "colour=red",
		"rate_mbps=1e3", "delay_us=11s", "delay_us=1ns", "port="};
	char text[128];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "port=%u,%s", lower, bad[i]);
		cr_assert_lt(rte_vdev_init("net_impair1", text), 0, "%s", text);
	}
	cr_assert_lt(rte_vdev_init("net_impair1", "drop=0.1"), 0, "no port");
	cr_assert_lt(rte_vdev_init("net_impair1", "port=nobody"), 0);
	cr_assert_eq(rte_eth_dev_count_avail(), 1, "nothing is left behind");
}

Test(wire, configuration_is_checked_when_it_changes)
{
	uint16_t port = start("seed=5");
	struct impair_cfg cfg = config(port);

	cr_assert_eq(cfg.seed, 5);
	cfg.drop = 1.01;
	cr_assert_eq(impair_set(port, &cfg), -EINVAL);
	cfg.drop = 0;
	cfg.reorder_frames = 0;
	cr_assert_eq(impair_set(port, &cfg), -EINVAL);
	cr_assert_eq(impair_set(lower, &cfg), -ENODEV);
	cr_assert_eq(impair_get(RTE_MAX_ETHPORTS, &cfg), -ENODEV);
	cr_assert_eq(impair_flush(lower), -ENODEV);
	stop(port);
}

Test(wire, xstats_show_the_counters)
{
	uint16_t port = start("drop=1,dir=tx");
	struct rte_eth_stats stats;
	uint64_t id, value;

	send_all(port, 0, 7, got, N);
	cr_assert_eq(rte_eth_xstats_get_id_by_name(port, "tx_drop", &id), 0);
	cr_assert_eq(rte_eth_xstats_get_by_id(port, &id, &value, 1), 1);
	cr_assert_eq(value, 7);
	cr_assert_eq(rte_eth_xstats_get_id_by_name(port, "rx_queue_full", &id), 0);
	cr_assert_eq(rte_eth_xstats_reset(port), 0);
	cr_assert_eq(impair_count(port, true, IMPAIR_DROP), 0);
	cr_assert_eq(rte_eth_stats_get(port, &stats), 0);
	cr_assert_eq(stats.opackets, 0);
	stop(port);
}

Test(wire, owns_the_port_below)
{
	uint16_t port = start(""), p, seen = 0;
	struct rte_ether_addr mac, below;
	struct rte_eth_link link;

	RTE_ETH_FOREACH_DEV(p)
	{
		cr_assert_eq(p, port);
		seen++;
	}
	cr_assert_eq(seen, 1);
	cr_assert_eq(rte_eth_macaddr_get(port, &mac), 0);
	cr_assert_eq(rte_eth_macaddr_get(lower, &below), 0);
	cr_assert(!rte_is_zero_ether_addr(&mac) && rte_is_unicast_ether_addr(&mac));
	cr_assert_eq(rte_eth_link_get(port, &link), 0);
	cr_assert_eq(link.link_status, RTE_ETH_LINK_UP);
	cr_assert_eq(rte_eth_promiscuous_enable(port), 0);
	cr_assert_eq(rte_eth_promiscuous_get(lower), 1);
	cr_assert_eq(rte_eth_promiscuous_disable(port), 0);
	cr_assert_eq(rte_eth_promiscuous_get(lower), 0);
	cr_assert_eq(rte_eth_allmulticast_enable(port), 0);
	cr_assert_eq(rte_eth_allmulticast_get(lower), 1);
	cr_assert_eq(rte_eth_allmulticast_disable(port), 0);
	cr_assert_eq(rte_eth_allmulticast_get(lower), 0);
	mac.addr_bytes[5] ^= 0x55;
	cr_assert_eq(rte_eth_dev_default_mac_addr_set(port, &mac), 0);
	cr_assert_eq(rte_eth_macaddr_get(port, &below), 0);
	cr_assert(rte_is_same_ether_addr(&mac, &below));
	stop(port);
}
