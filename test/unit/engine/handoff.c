/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several transport stages on one port: a frame reaches the home stage of its connection, whichever
 * queue it arrives at. A frame that concerns all stages reaches all, and one stage answers it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "../../../lib/engine/transport/handoff_priv.h"
#include "../../../lib/engine/transport/transport_priv.h"
#include "ends.h"

#define STAGES 2u
#define MORE   3u /* transport stages in some tests */

TestSuite(engine_handoff, .init = pair_eal);

/* Configures `transports` transport stages and two engine stages on each side, and a port with
 * `queues` queues. */
static void
configure(unsigned queues, unsigned transports, unsigned loops)
{
	pair_init_queues(&ends_pair, queues);
	for (int i = 0; i < 2; i++) {
		struct eng_config *cfg = &ends_pair.cfg[i];

		cfg->nloops = loops;
		cfg->ntransports = transports;
		cfg->nstages = STAGES;
		for (unsigned k = 0; k < MORE; k++)
			cfg->transport_loop[k] = cfg->stage_loop[k] = k % loops;
		cfg->idle = ENG_IDLE_YIELD;
		if (transports > STAGES) /* memory is scarce without huge pages */
			cfg->limits.rx_mbufs = cfg->limits.tx_mbufs = 512;
	}
}

static void
start(unsigned queues, unsigned transports, unsigned loops)
{
	configure(queues, transports, loops);
	ends_start(0);
}

/* Counts the connections of each transport stage of `e`, and checks that it is their home. */
static void
count_homes(const struct eng *e, unsigned at[MORE])
{
	memset(at, 0, MORE * sizeof(at[0]));
	for (unsigned s = 0; s < e->cfg.ntransports; s++) {
		const struct eng_transport *t = e->transports[s];

		for (uint32_t i = 0; i < t->fresh; i++) {
			if (t->conns[i].tcp == NULL)
				continue;
			at[s]++;
			cr_assert_eq(eng_home(e, tcp_tuple(t->conns[i].tcp)), s);
		}
	}
}

static struct tcp_tuple
tuple_of(const char *laddr, const char *raddr, uint16_t lport, uint16_t port)
{
	return (struct tcp_tuple){.laddr = addr(laddr),
		.raddr = addr(raddr),
		.lport = lport,
		.rport = ENDS_PORT,
		.vlan = ETH_NO_VLAN,
		.port = port};
}

Test(engine_handoff, rss_hash_is_the_one_that_ports_compute)
{
	/* The verification suite of Microsoft's description of RSS, which NICs implement. */
	static const uint8_t key[] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
		0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4,
		0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac,
		0x01, 0xfa};
	struct tcp_tuple v4 = tuple_of("161.142.100.80", "66.9.149.187", 1766, 0);
	struct tcp_tuple v6 = tuple_of("3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 0);
	struct eng *e = calloc(1, sizeof(*e));

	v4.rport = v6.rport = 2794;
	memcpy(e->ports[0].rss_key, key, sizeof(key));
	e->cfg.nports = 1;
	e->ports[0].reta_mask = 0xff;
	e->cfg.ntransports = 256; /* eng_home() then returns the low bits of the hash */
	cr_assert_eq(eng_home(e, &v4), 0x51ccc178 & 0xff);
	cr_assert_eq(eng_home(e, &v6), 0x40207d3d & 0xff);
	e->ports[0].reta_mask = 0x7f;
	e->cfg.ntransports = 3;
	cr_assert_eq(eng_home(e, &v4), 0x78 % 3);
	e->cfg.ntransports = 1;
	cr_assert_eq(eng_home(e, &v4), 0);
	free(e);
}

Test(engine_handoff, chosen_source_ports_hash_home)
{
	struct tcp_tuple key[] = {tuple_of(PAIR_ADDR_A, PAIR_ADDR_B, 0, 0),
		tuple_of("fe80::1", "fe80::2", 0, 0), tuple_of(PAIR_ADDR_A, PAIR_ADDR_A, 0, 1)};

	configure(2, STAGES, 1);
	pair_start(&ends_pair);
	for (unsigned k = 0; k < RTE_DIM(key); k++) {
		for (unsigned s = 0; s < STAGES; s++) {
			for (unsigned i = 0; i < 50; i++) {
				key[k].lport =
					eng_lport_choose(ends_pair.e[0]->transports[s], &key[k]);
				cr_assert_geq(key[k].lport, ends_pair.cfg[0].port_min);
				cr_assert_eq(eng_home(ends_pair.e[0], &key[k]), s);
			}
		}
	}
	pair_end(&ends_pair);
}

/* ---- UDP source ports that a stage lists for its peer ---- */

#define UDP_RSS (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP)

/* Checks the ports that are listed for a stage: where their packets arrive, their classes, and that
 * all differ. */
static void
check_listed(const struct eng *e, unsigned stage, struct tcp_tuple key)
{
	uint16_t ports[ENG_HOME_RPORTS];

	cr_assert(eng_home_rports(e, stage, &key, ports), "stage %u of %u", stage,
		e->cfg.ntransports);
	for (unsigned i = 0; i < ENG_HOME_RPORTS; i++) {
		key.rport = ports[i];
		cr_assert_geq(ports[i], ENG_HOME_PORT_MIN);
		cr_assert_eq(ports[i] % ENG_HOME_CLASSES, i % ENG_HOME_CLASSES);
		cr_assert_eq(eng_home(e, &key), stage);
		for (unsigned k = 0; k < i; k++)
			cr_assert_neq(ports[i], ports[k]);
	}
}

static void
check_all_stages(struct eng *e)
{
	const struct tcp_tuple v4 = tuple_of(PAIR_ADDR_A, PAIR_ADDR_B, 1000, 0);
	const struct tcp_tuple v6 = tuple_of("fe80::1", "fe80::2", 1000, 0);

	for (e->cfg.ntransports = 2; e->cfg.ntransports <= 64; e->cfg.ntransports++) {
		e->ports[0].rx_queues = (uint16_t)e->cfg.ntransports;
		for (unsigned s = 0; s < e->cfg.ntransports; s += 1 + s / 4) {
			check_listed(e, s, v4);
			check_listed(e, s, v6);
		}
	}
}

Test(engine_handoff, listed_ports_hash_home_with_every_key)
{
	static const uint32_t masks[] = {127, 511, 2047};
	struct eng *e = calloc(1, sizeof(*e));

	e->cfg.nports = 1;
	e->ports[0].rss = UDP_RSS;
	for (unsigned i = 0; i < 6; i++) {
		eng_home_key(e);
		memcpy(e->ports[0].rss_key, e->rss_key, sizeof(e->rss_key));
		e->ports[0].reta_mask = masks[i % RTE_DIM(masks)];
		check_all_stages(e);
	}
	free(e);
}

Test(engine_handoff, no_ports_are_listed_where_they_decide_nothing)
{
	struct tcp_tuple v4 = tuple_of(PAIR_ADDR_A, PAIR_ADDR_B, 1000, 0);
	struct tcp_tuple v6 = tuple_of("fe80::1", "fe80::2", 1000, 0);
	struct eng *e = calloc(1, sizeof(*e));
	uint16_t ports[ENG_HOME_RPORTS];

	eng_home_key(e);
	memcpy(e->ports[0].rss_key, e->rss_key, sizeof(e->rss_key));
	e->cfg.nports = 1;
	e->cfg.ntransports = 4;
	e->ports[0].reta_mask = 127;
	e->ports[0].rx_queues = 3;
	e->ports[0].rss = RTE_ETH_RSS_NONFRAG_IPV4_UDP;
	cr_assert(eng_home_rports(e, 2, &v4, ports));
	cr_assert_not(eng_home_rports(e, 3, &v4, ports), "a stage without a queue");
	cr_assert_not(eng_home_rports(e, 2, &v6, ports), "the port does not hash IPv6");
	e->ports[0].reta_mask = 1;
	cr_assert_not(eng_home_rports(e, 2, &v4, ports), "a table that has no such stage");
	e->ports[0].reta_mask = 127;
	e->ports[0].rss = RTE_ETH_RSS_NONFRAG_IPV4_TCP;
	cr_assert_not(eng_home_rports(e, 2, &v4, ports), "the port hashes TCP only");
	e->ports[0].rss = UDP_RSS;
	v4.port = 1;
	cr_assert_not(eng_home_rports(e, 2, &v4, ports), "the loop port");
	v4.port = 0;
	e->cfg.ntransports = 1;
	cr_assert_not(eng_home_rports(e, 0, &v4, ports), "one stage");
	free(e);
}

Test(engine_handoff, a_port_is_asked_for_the_types_and_the_key_that_it_has)
{
	struct rte_eth_dev_info info = {
		.flow_type_rss_offloads = RTE_ETH_RSS_IPV4 | UDP_RSS, .hash_key_size = 52};
	struct eng *e = calloc(1, sizeof(*e));
	struct eng_port p = {.rx_queues = 2};
	struct rte_eth_conf conf = {0};

	eng_home_configure(e, &p, &info, &conf);
	cr_assert_eq(conf.rxmode.mq_mode, RTE_ETH_MQ_RX_RSS);
	cr_assert_eq(conf.rx_adv_conf.rss_conf.rss_hf, UDP_RSS);
	cr_assert_eq(conf.rx_adv_conf.rss_conf.rss_key, e->rss_key);
	cr_assert_eq(conf.rx_adv_conf.rss_conf.rss_key_len, 52);
	cr_assert_eq(p.rss, UDP_RSS);
	info.hash_key_size = 0; /* some drivers take a key nevertheless */
	eng_home_configure(e, &p, &info, &conf);
	cr_assert_eq(conf.rx_adv_conf.rss_conf.rss_key_len, 40);
	conf = (struct rte_eth_conf){0};
	p = (struct eng_port){.rx_queues = 1};
	eng_home_configure(e, &p, &info, &conf);
	cr_assert_eq(p.rss, 0);
	cr_assert_eq(conf.rxmode.mq_mode, RTE_ETH_MQ_RX_NONE);
	free(e);
}

/* ---- Connections ---- */

/* Each connection is on the stage that receives its segments, whichever stage began to open it. */
Test(engine_handoff, source_ports_of_the_programs_choice_have_the_same_homes)
{
	const struct saker_conn_param again = {.lport = 100, .crc = 2, .markers = 2};
	struct sk_addr peer = addr(PAIR_ADDR_B);
	struct saker_qp_attr attr = {.sq_depth = 1, .rq_depth = 1};
	struct saker_qp *qp;
	unsigned at[MORE];

	configure(MORE, MORE, 1);
	ends_start(again.lport);
	count_homes(ends_pair.e[0], at);
	cr_assert_eq(at[0] + at[1] + at[2], ENDS_QPS);
	for (unsigned round = 0; round < 5; round++) {
		ends_exchange(&ends[0], &ends[1], round);
		ends_exchange(&ends[1], &ends[0], round);
	}
	attr.send_cq = attr.recv_cq = ends[0].cq;
	cr_assert_eq(saker_qp_create(ends[0].pd, &attr, &qp), 0, "%s", saker_error());
	cr_assert_eq(saker_connect(qp, NULL, &peer, ENDS_PORT, &again), 0);
	cr_assert_eq(ends_event(&ends[0], SAKER_EV_UNREACHABLE).status, -EADDRINUSE);
	ends_finish();
}

/* Stage 0 receives all frames, and stage 1 has no send queue. */
Test(engine_handoff, one_queue_serves_two_stages)
{
	unsigned at[MORE];

	start(1, STAGES, 1);
	cr_assert_eq(ends_pair.e[0]->ports[0].rx_queues, 1);
	cr_assert_eq(ends_pair.e[0]->ports[0].tx_queues, 1);
	count_homes(ends_pair.e[0], at);
	/* Active opens are distributed over the stages in turn, as their QPs are. */
	cr_assert_eq(at[0], ENDS_QPS / 2);
	cr_assert_eq(at[1], ENDS_QPS / 2);
	count_homes(ends_pair.e[1], at);
	cr_assert_eq(at[0] + at[1], ENDS_QPS);
	for (unsigned round = 0; round < 20; round++) {
		ends_exchange(&ends[0], &ends[1], round);
		ends_exchange(&ends[1], &ends[0], round);
	}
	cr_assert_gt(pair_counter(ends_pair.e[0], "eng", "ENG_HANDOFF"), ENDS_QPS / 2 * 20);
	cr_assert_eq(pair_counter(ends_pair.e[0], "eng", "ENG_HANDOFF_FULL"), 0);
	cr_assert_eq(pair_counter(ends_pair.e[0], "tcp", "TCP_NO_CONN"), 0);
	ends_finish();
}

Test(engine_handoff, two_queues_without_rss)
{
	unsigned at[MORE];

	start(2, STAGES, 1);
	cr_assert_eq(ends_pair.e[0]->ports[0].rx_queues, 2);
	count_homes(ends_pair.e[0], at);
	cr_assert_eq(at[1], ENDS_QPS / 2);
	count_homes(ends_pair.e[1], at);
	cr_assert_eq(at[0] + at[1], ENDS_QPS);
	for (unsigned round = 0; round < 20; round++)
		ends_exchange(&ends[0], &ends[1], round);
	ends_finish();
}

/* Stages 0 and 1 have a queue each; stage 2 sends through a lane to stage 0. */
Test(engine_handoff, three_stages_on_two_queues)
{
	unsigned at[MORE];

	start(2, MORE, 1);
	cr_assert_gt(pair_counter(ends_pair.e[1], "eng", "ENG_LANE"), 0);
	cr_assert_null(ends_pair.e[1]->ports[0].lane[1]);
	cr_assert_not_null(ends_pair.e[1]->ports[0].lane[2]);
	count_homes(ends_pair.e[0], at);
	cr_assert_eq(at[0] + at[1] + at[2], ENDS_QPS);
	for (unsigned round = 0; round < 10; round++) {
		ends_exchange(&ends[0], &ends[1], round);
		ends_exchange(&ends[1], &ends[0], round);
	}
	ends_finish();
}

Test(engine_handoff, clients_of_one_instance_meet)
{
	configure(1, STAGES, 1);
	ends_start_one();
	for (unsigned round = 0; round < 10; round++)
		ends_exchange(&ends[0], &ends[1], round);
	cr_assert_gt(pair_counter(ends_pair.e[0], "eng", "ENG_LOOP_PORT"), 0);
	ends_finish();
}

Test(engine_handoff, stages_in_threads)
{
	start(1, STAGES, STAGES);
	for (unsigned round = 0; round < 40; round++) {
		ends_exchange(&ends[0], &ends[1], round);
		ends_exchange(&ends[1], &ends[0], round);
	}
	ends_finish();
}

/* ---- Frames of no connection ---- */

static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 9};

/* Puts a frame into queue 0 of the only instance, as if its peer had sent it. */
static void
inject(const uint8_t *frame, unsigned len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(ends_pair.e[0]->transports[0]->tx_pool);

	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	cr_assert_eq(rte_ring_sp_enqueue(rte_ring_lookup("wire0_0"), m), 0);
	for (int i = 0; i < 4; i++)
		eng_poll(ends_pair.e[0], 0, eng_clock());
}

/* Returns the number of frames with this EtherType (and IP protocol) that the instance has sent. */
static unsigned
sent(uint16_t type, uint8_t proto)
{
	unsigned n = 0;
	void *m;

	while (rte_ring_sc_dequeue(rte_ring_lookup("wire1_0"), &m) == 0) {
		struct rte_mbuf *f = m;
		struct wire_pkt pkt;

		cr_assert_geq(wire_pkt_parse(&pkt, rte_pktmbuf_mtod(f, uint8_t *), f->data_len,
				      f->pkt_len),
			0);
		n += pkt.eth.type == type && (type == ETH_ARP || pkt.ip.proto == proto);
		rte_pktmbuf_free(m);
	}
	return n;
}

static void
start_alone(void)
{
	char err[256];

	configure(1, STAGES, 1);
	ends_pair.cfg[0].limits.rx_mbufs = 2 * ENG_HANDOFF_RING;
	ends_pair.e[0] = eng_create(&ends_pair.cfg[0], err, sizeof(err));
	cr_assert_not_null(ends_pair.e[0], "%s", err);
	inject((const uint8_t *)"", 0); /* so that the instance sends its first frames */
	sent(ETH_ARP, 0);
}

static unsigned
ip_frame(uint8_t *at, uint8_t proto, unsigned payload)
{
	struct wire_eth eth = {.type = ETH_IPV4, .vlan = ETH_NO_VLAN};
	struct wire_ip ip = {.src = addr(PAIR_ADDR_B),
		.dst = addr(PAIR_ADDR_A),
		.proto = proto,
		.ttl = 64,
		.payload_len = payload};
	unsigned len;

	memcpy(eth.dst, ends_pair.e[0]->ports[0].mac, 6);
	memcpy(eth.src, peer_mac, 6);
	len = wire_eth_emit(at, &eth);
	return len + wire_ip_emit(at + len, &ip);
}

Test(engine_handoff, arp_is_answered_once_and_learned_by_all)
{
	struct wire_eth eth = {.type = ETH_ARP, .vlan = ETH_NO_VLAN};
	struct wire_arp arp = {.op = ARP_REQUEST};
	uint8_t frame[64] = {0};
	struct sk_addr peer = addr(PAIR_ADDR_B);
	unsigned len;

	start_alone();
	arp.spa = addr(PAIR_ADDR_B);
	arp.tpa = addr(PAIR_ADDR_A);
	memset(eth.dst, 0xff, 6);
	memcpy(eth.src, peer_mac, 6);
	memcpy(arp.sha, peer_mac, 6);
	len = wire_eth_emit(frame, &eth);
	len += wire_arp_emit(frame + len, &arp);
	inject(frame, len);
	cr_assert_eq(sent(ETH_ARP, 0), 1);
	cr_assert_eq(pair_counter(ends_pair.e[0], "eng", "ENG_HANDOFF"), 0);
	cr_assert_eq(pair_counter(ends_pair.e[0], "eng", "ENG_HANDOFF_COPY"), 1);
	for (unsigned s = 0; s < STAGES; s++) {
		struct net_neighbor_view v[2];

		cr_assert_eq(net_neighbors(ends_pair.e[0]->transports[s]->net, v, 2), 1);
		cr_assert(v[0].port == 0 && v[0].vlan == ETH_NO_VLAN);
		cr_assert(sk_addr_eq(&v[0].addr, &peer));
		cr_assert_arr_eq(v[0].mac, peer_mac, 6);
		cr_assert_str_eq(v[0].state, "stale");
	}
	pair_end(&ends_pair);
}

Test(engine_handoff, echo_is_answered_once)
{
	struct wire_icmp icmp = {.kind = ICMP_ECHO_REQUEST};
	struct sk_addr peer = addr(PAIR_ADDR_B);
	uint8_t frame[128] = {0};
	unsigned l4;

	start_alone();
	l4 = ip_frame(frame, IP_ICMP, ICMP_ECHO_LEN);
	wire_icmp_emit(frame + l4, &icmp, false);
	wire_icmp_checksum(frame + l4, ICMP_ECHO_LEN, &ends_pair.cfg[0].ifs[0].addr, &peer);
	inject(frame, l4 + ICMP_ECHO_LEN);
	cr_assert_eq(sent(ETH_IPV4, IP_ICMP), 1);
	cr_assert_eq(pair_counter(ends_pair.e[0], "net", "NET_ECHO"), 1);
	cr_assert_eq(pair_counter(ends_pair.e[0], "eng", "ENG_HANDOFF"), 0);
	pair_end(&ends_pair);
}

/* Writes a SYN for a port without listener, with a tuple whose home is stage `home`. */
static unsigned
syn(uint8_t *frame, unsigned home, uint16_t *sport)
{
	struct tcp_tuple key = tuple_of(PAIR_ADDR_A, PAIR_ADDR_B, 99, 0);
	struct wire_tcp tcp = {.dport = 99, .flags = TCP_SYN, .window = 1000};
	struct wire_ip ip;
	uint8_t head[TCP_MAX];
	unsigned len = wire_tcp_emit(head, &tcp), l4 = ip_frame(frame, IP_TCP, len);
	uint16_t sum;

	do
		key.rport = ++*sport;
	while (eng_home(ends_pair.e[0], &key) != home);
	tcp.sport = key.rport;
	wire_tcp_emit(frame + l4, &tcp);
	ip.dst = key.laddr;
	ip.src = key.raddr;
	sum = wire_sum_fold(
		wire_sum(wire_pseudo_sum(&ip.src, &ip.dst, IP_TCP, len), frame + l4, len));
	memcpy(frame + l4 + TCP_CKSUM_OFFSET, &sum, sizeof(sum));
	return l4 + len;
}

Test(engine_handoff, unknown_segment_is_refused_by_its_home_alone)
{
	uint8_t frame[128] = {0};
	uint16_t sport = 1000;
	unsigned len;

	start_alone();
	len = syn(frame, 1, &sport);
	inject(frame, len);
	cr_assert_eq(pair_counter(ends_pair.e[0], "eng", "ENG_HANDOFF"), 1);
	cr_assert_eq(pair_counter(ends_pair.e[0], "tcp", "TCP_NO_CONN"), 1);
	len = syn(frame, 0, &sport);
	inject(frame, len);
	cr_assert_eq(pair_counter(ends_pair.e[0], "eng", "ENG_HANDOFF"), 1);
	cr_assert_eq(pair_counter(ends_pair.e[0], "tcp", "TCP_NO_CONN"), 2);
	sent(ETH_ARP, 0); /* removes the frames that were sent */
	pair_end(&ends_pair);
}

Test(engine_handoff, full_ring_drops_and_counts)
{
	struct eng_transport *t;
	uint8_t frame[128] = {0};
	uint16_t sport = 1000;
	unsigned len;

	start_alone();
	t = ends_pair.e[0]->transports[0];
	for (unsigned i = 0; i < ENG_HANDOFF_RING + 9; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(t->rx_pool);

		cr_assert_not_null(m);
		len = syn(frame, 1, &sport);
		memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
		eng_rx_frame(t, 0, m);
	}
	/* An rte_ring holds one element less than its size. */
	cr_assert_eq(t->counters[ENG_HANDOFF], ENG_HANDOFF_RING - 1);
	cr_assert_eq(t->counters[ENG_HANDOFF_FULL], 10);
	pair_end(&ends_pair); /* also frees the frames in the ring */
}
