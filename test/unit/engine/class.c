/* SPDX-License-Identifier: BSD-3-Clause */
/* The class of packets on the wire: DSCP, VLAN priority and IPv6 flow label of a QP, a listener, an
 * address handle and a client. Every frame between the two engines is checked. */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_mbuf.h>

#include "falcon_rig.h"

TestSuite(engine_class, .init = pair_eal);

#define QKEY  0x11111111u
#define LABEL 0xabcdeu
#define SKIP  0xff /* a value that the wire does not check */
#define TCP_CLASS(c)                                                                               \
	(struct saker_class)                                                                       \
	{                                                                                          \
		.set = SAKER_CLASS_TRAFFIC, .traffic_class = (c)                                   \
	}

/* The classes that the frames to a node must carry, and those that they carried: by protocol, [1]:
 * UDP. */
static struct wish {
	uint8_t dscp[2];
	uint8_t pcp[2];
	uint16_t vlan;
	/* Of all segments of TCP, and of the first packet of Falcon. 0: TCP: any, but the same in
	 * all segments; Falcon: any. */
	uint32_t flow[2];
} wish[2];
static struct seen {
	unsigned frames[2], ect[2];
	unsigned inner; /* packets of Falcon with an inner header, of the same class */
	uint32_t flow[2];
	unsigned labelled; /* packets of Falcon with the label of the first one */
} seen[2];

/* Checks the inner IP header of a packet in tunnel mode (Falcon 7.1.2): its class is that of the
 * outer one. */
static void
look_inside(const struct wire_pkt *pkt, const uint8_t *udp, struct seen *s)
{
	struct wire_psp psp;
	struct wire_ip in;
	int n = wire_psp_parse(&psp, udp, pkt->payload_len);

	cr_assert_gt(n, 0);
	if (psp.next == PSP_NEXT_FALCON)
		return;
	udp += n;
	n = psp.next == PSP_NEXT_IP4 ? wire_ip4_parse(&in, udp, pkt->payload_len - (uint32_t)n)
				     : wire_ip6_parse(&in, udp, pkt->payload_len - (uint32_t)n);
	cr_assert_gt(n, 0);
	cr_assert_eq(in.dscp, pkt->ip.dscp, "inside %u, outside %u", in.dscp, pkt->ip.dscp);
	cr_assert_eq(in.ecn, IP_ECN_ECT0);
	s->inner++;
}

static void
look(struct rte_mbuf *m, int node)
{
	const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct wish *w = &wish[node];
	struct seen *s = &seen[node];
	struct wire_pkt pkt;
	unsigned udp;

	cr_assert_geq(wire_pkt_parse(&pkt, at, m->data_len, m->pkt_len), 0);
	cr_assert_eq(pkt.eth.vlan, w->vlan);
	if (pkt.eth.type == ETH_ARP || (pkt.ip.proto != IP_TCP && pkt.ip.proto != IP_UDP))
		return;
	udp = pkt.ip.proto == IP_UDP;
	s->frames[udp]++;
	if (w->dscp[udp] != SKIP)
		cr_assert_eq(pkt.ip.dscp, w->dscp[udp], "to %d: %u", node, pkt.ip.dscp);
	cr_assert_eq(pkt.eth.pcp, w->pcp[udp], "to %d: %u", node, pkt.eth.pcp);
	cr_assert_neq(pkt.ip.ecn, IP_ECN_ECT1);
	s->ect[udp] += pkt.ip.ecn == IP_ECN_ECT0;
	if (udp)
		look_inside(&pkt, at + pkt.payload, s);
	if (pkt.eth.type != ETH_IPV6)
		return;
	if (s->flow[udp] == 0)
		s->flow[udp] = w->flow[udp] != 0 ? w->flow[udp] : pkt.ip.flow;
	if (!udp || (w->flow[udp] != 0 && s->frames[udp] == 1))
		cr_assert_eq(pkt.ip.flow, s->flow[udp], "to %d: 0x%05x", node, pkt.ip.flow);
	s->labelled += udp && pkt.ip.flow == s->flow[udp];
}

/* ---- Configurations ---- */

static void
with_ip6(struct eng_config *cfg, int node)
{
	cfg->ifs[0].addr = addr(node == 0 ? "fd00::1" : "fd00::2");
	cfg->ifs[0].prefix = 64;
}

/* Node 0 maps priorities to others; node 1 does not. */
static void
with_vlan(struct eng_config *cfg, int node)
{
	cfg->ifs[0].vlan = 7;
	if (node == 0)
		memcpy(cfg->vlan_pcp, (uint8_t[]){7, 6, 5, 4, 3, 2, 1, 0}, sizeof(cfg->vlan_pcp));
}

static void
with_vlan_ip6(struct eng_config *cfg, int node)
{
	with_vlan(cfg, node);
	with_ip6(cfg, node);
}

/* The clients of node 0 have a default. */
static void
with_default(struct eng_config *cfg, int node)
{
	cfg->ifs[0].vlan = 7;
	if (node == 0)
		cfg->rates[3] = (struct eng_rates_config){.present = true,
			.name = "test",
			.uid = ENG_NO_UID,
			.traffic_class = 46 << 2,
			.priority = 5};
}

/* Tunnel mode, with outer addresses of their own. */
static void
with_tunnel(struct eng_config *cfg, int node)
{
	cfg->falcon.tunnel = cfg->falcon.pcid = true;
	cfg->falcon.psps = ROFX_PSP(PSP_NO_CRYPTO);
	cfg->falcon.tunnel_source = addr(node == 0 ? "fd00:7::1" : "fd00:7::2");
	cfg->ifs[cfg->nifs] = cfg->ifs[0];
	cfg->ifs[cfg->nifs].addr = cfg->falcon.tunnel_source;
	cfg->ifs[cfg->nifs++].prefix = 64;
}

static void
with_tunnel_ip6(struct eng_config *cfg, int node)
{
	with_ip6(cfg, node);
	with_tunnel(cfg, node);
}

static void
start(void (*tweak)(struct eng_config *cfg, int node))
{
	frig_start(tweak);
	for (int i = 0; i < 2; i++) {
		seen[i] = (struct seen){0};
		wish[i] = (struct wish){.vlan = frig.p.cfg[i].ifs[0].vlan};
		frig.n[i].addr = frig.p.cfg[i].ifs[0].addr;
	}
	frig.port = look;
}

static void
stop(void)
{
	frig.port = NULL;
	frig_stop();
}

static void
wish_dscp(int to, uint8_t tcp, uint8_t udp)
{
	wish[to].dscp[0] = tcp;
	wish[to].dscp[1] = udp;
}

static void
wish_pcp(int to, uint8_t tcp, uint8_t udp)
{
	wish[to].pcp[0] = tcp;
	wish[to].pcp[1] = udp;
}

/* ---- Connections ---- */

static struct saker_qp *
qp_with(int node, enum saker_transport transport, const struct saker_class *traffic)
{
	struct fnode *n = &frig.n[node];
	struct saker_qp_attr attr = {.send_cq = n->cq,
		.recv_cq = n->cq,
		.sq_depth = FRIG_DEPTH,
		.rq_depth = FRIG_DEPTH,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.transport = transport,
		.traffic = *traffic};

	cr_assert_eq(saker_qp_create(n->pd, &attr, &n->qp), 0, "%s", saker_error());
	return n->qp;
}

/* Connects two QPs: the classes of saker_connect(), of the listener, and of saker_accept(). */
static void
connect_with(enum saker_transport transport, struct saker_class ask, struct saker_class listen,
	struct saker_class accept)
{
	struct saker_conn_param p[] = {{.ird = 4, .ord = 4, .crc = 2, .markers = 2, .traffic = ask},
		{.ird = 4, .ord = 4, .crc = 2, .markers = 2, .traffic = listen},
		{.ird = 4, .ord = 4, .crc = 2, .markers = 2, .traffic = accept}};
	struct saker_listener *l;
	struct saker_event ev;

	cr_assert_eq(saker_listen_as(frig.n[1].s, NULL, FRIG_PORT, 4, &p[1], NULL, &l), 0, "%s",
		saker_error());
	if (frig.n[0].qp == NULL)
		frig_qp(0, transport);
	if (frig.n[1].qp == NULL)
		frig_qp(1, transport);
	frig_ask(&p[0]);
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(
		saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p[2]), 0, "%s", saker_error());
	frig_event(1, SAKER_EV_ESTABLISHED);
	frig_event(0, SAKER_EV_ESTABLISHED);
}

static void
check_query(int node, uint8_t traffic_class, uint8_t priority, uint32_t flow)
{
	struct saker_qp_info info;

	cr_assert_eq(saker_qp_query(frig.n[node].qp, &info), 0, "%s", saker_error());
	cr_assert_eq(info.traffic.traffic_class, traffic_class);
	cr_assert_eq(info.traffic.priority, priority);
	cr_assert_eq(info.traffic.flow_label, flow);
}

static const struct saker_class none;

Test(engine_class, segments_of_iwarp_carry_the_dscp_and_their_own_ecn_rfc3168_5)
{
	start(NULL);
	wish_dscp(1, 46, SKIP);
	/* The lower two bits, of ECN, do not count. */
	connect_with(SAKER_IWARP, TCP_CLASS(46 << 2 | 1), none, none);
	frig_works();
	cr_assert_gt(seen[1].ect[0], 0, "data is ECN-capable");
	cr_assert_lt(seen[1].ect[0], seen[1].frames[0], "a SYN is not");
	cr_assert_gt(seen[0].ect[0], 0);
	check_query(0, 46 << 2 | 1, 0, 0);
	check_query(1, 0, 0, 0);
	stop();
}

Test(engine_class, segments_of_iwarp_over_ipv6_have_one_flow_label_rfc6437_3)
{
	struct saker_class c = {.set = SAKER_CLASS_TRAFFIC | SAKER_CLASS_FLOW,
		.traffic_class = 0x2b << 2,
		.flow_label = LABEL};

	start(with_ip6);
	wish_dscp(1, 0x2b, SKIP);
	wish[1].flow[0] = LABEL;
	connect_with(SAKER_IWARP, c, none, none);
	frig_works();
	cr_assert_gt(seen[1].ect[0], 0);
	check_query(0, 0x2b << 2, 0, LABEL);
	stop();
}

Test(engine_class, a_passive_side_has_the_class_of_its_listener_from_the_syn_on)
{
	start(with_vlan);
	wish_dscp(0, 12, SKIP);
	wish_pcp(1, 7, 7); /* priority 0 in the map of node 0 */
	wish_pcp(0, 3, 3);
	connect_with(SAKER_IWARP, none,
		(struct saker_class){.set = SAKER_CLASS_TRAFFIC | SAKER_CLASS_PRIORITY,
			.traffic_class = 12 << 2,
			.priority = 3},
		none);
	frig_works();
	check_query(1, 12 << 2, 3, 0);
	stop();
}

Test(engine_class, an_acceptance_replaces_the_class_of_the_listener)
{
	start(NULL);
	wish_dscp(0, SKIP, SKIP);
	connect_with(SAKER_IWARP, none, TCP_CLASS(12 << 2), TCP_CLASS(0));
	wish_dscp(0, 0, SKIP);
	frig_works();
	check_query(1, 0, 0, 0);
	stop();
}

Test(engine_class, a_connection_replaces_the_class_of_its_qp)
{
	start(NULL);
	qp_with(0, SAKER_IWARP, &TCP_CLASS(8 << 2));
	qp_with(1, SAKER_IWARP, &TCP_CLASS(16 << 2));
	check_query(0, 8 << 2, 0, 0);
	wish_dscp(1, 24, SKIP);
	wish_dscp(0, SKIP, SKIP);
	connect_with(SAKER_IWARP, TCP_CLASS(24 << 2), TCP_CLASS(12 << 2), none);
	wish_dscp(0, 16, SKIP); /* the QP's, not the listener's */
	frig_works();
	check_query(0, 24 << 2, 0, 0);
	check_query(1, 16 << 2, 0, 0);
	stop();
}

Test(engine_class, priorities_are_mapped_to_those_of_the_tag_ieee802_1q_6_9)
{
	struct saker_class c = {.set = SAKER_CLASS_PRIORITY, .priority = 6};

	start(with_vlan_ip6);
	wish_pcp(1, 0, 1);
	wish_pcp(0, 0, 6);
	connect_with(SAKER_FALCON, c, c, none);
	frig_works();
	cr_assert_gt(seen[1].frames[1], 0);
	stop();
}

Test(engine_class, the_default_of_a_client_is_for_what_the_program_leaves_open)
{
	start(with_default);
	wish_dscp(1, 0, 46);
	wish_pcp(1, 0, 5);
	connect_with(SAKER_FALCON, none, none, none);
	frig_works();
	check_query(0, 46 << 2, 5, 0);
	stop();
}

Test(engine_class, a_program_can_choose_the_class_0_instead_of_the_default)
{
	start(with_default);
	wish_pcp(1, 0, 5);
	wish_dscp(1, 0, 0);
	connect_with(SAKER_FALCON, TCP_CLASS(0), none, none);
	frig_works();
	check_query(0, 0, 5, 0);
	stop();
}

/* ---- Falcon: the exchange over TCP is that of the two hosts, and in class 0 ---- */

static void
falcon_carries(bool v6)
{
	struct saker_class c = {.set = SAKER_CLASS_TRAFFIC | SAKER_CLASS_FLOW,
		.traffic_class = 34 << 2,
		.flow_label = LABEL};

	start(v6 ? with_ip6 : NULL);
	wish_dscp(1, 0, 34);
	wish_dscp(0, SKIP, 10);
	if (v6)
		wish[1].flow[1] = LABEL;
	connect_with(SAKER_FALCON, c, none, TCP_CLASS(10 << 2));
	for (unsigned i = 0; i < 20; i++)
		frig_works();
	/* Data of one side, acknowledgements of the other; all packets are ECN-capable. */
	for (int i = 0; i < 2; i++) {
		cr_assert_gt(seen[i].frames[1], 40);
		cr_assert_eq(seen[i].ect[1], seen[i].frames[1]);
	}
	if (v6)
		cr_assert_gt(seen[1].labelled, 20, "its data; acknowledgements have the peer's");
	check_query(0, 34 << 2, 0, LABEL);
	stop();
}

Test(engine_class, packets_of_falcon_and_acknowledgements_carry_the_dscp)
{
	falcon_carries(false);
}

Test(engine_class, packets_of_falcon_over_ipv6_begin_with_the_flow_label)
{
	falcon_carries(true);
}

/* The inner addresses are IPv4 or IPv6, the outer ones IPv6. */
static void
tunnel_carries(void (*tweak)(struct eng_config *cfg, int node))
{
	start(tweak);
	wish_dscp(1, 0, 34);
	wish_dscp(0, SKIP, 10);
	connect_with(SAKER_FALCON, TCP_CLASS(34 << 2), none, TCP_CLASS(10 << 2));
	for (unsigned i = 0; i < 20; i++)
		frig_works();
	for (int i = 0; i < 2; i++) {
		cr_assert_gt(seen[i].inner, 20);
		cr_assert_eq(seen[i].inner, seen[i].frames[1]);
		cr_assert_eq(seen[i].ect[1], seen[i].frames[1]);
	}
	stop();
}

Test(engine_class, both_headers_of_a_tunnel_carry_the_dscp_falcon_7_1_2)
{
	tunnel_carries(with_tunnel);
}

Test(engine_class, both_headers_of_a_tunnel_for_ipv6_carry_the_dscp_falcon_7_1_2)
{
	tunnel_carries(with_tunnel_ip6);
}

Test(engine_class, a_qp_that_the_program_moves_has_the_class_of_the_move)
{
	struct saker_qp *qp[2];

	start(NULL);
	wish_dscp(0, SKIP, 20);
	wish_dscp(1, SKIP, 10);
	for (int i = 0; i < 2; i++)
		qp[i] = frig_qp(i, SAKER_FALCON);
	for (int i = 0; i < 2; i++) {
		struct saker_qp_move m = {.state = RD_QP_INIT,
			.access = RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ,
			.remote = frig.n[!i].addr,
			.remote_qpn = saker_qp_num(qp[!i]),
			.ird = 4,
			.ord = 4,
			.rnr_retry = 7,
			.retry = 7,
			.timeout = 14,
			.traffic = TCP_CLASS(i == 0 ? 10 << 2 : 20 << 2)};

		for (; m.state <= RD_QP_RTS; m.state++)
			cr_assert_eq(saker_qp_move(qp[i], &m), 0, "%s", saker_error());
	}
	frig_works();
	cr_assert_gt(seen[0].frames[1], 0);
	cr_assert_gt(seen[1].frames[1], 0);
	check_query(0, 10 << 2, 0, 0);
	cr_assert_eq(saker_qp_modify(qp[0], RD_QP_RESET), 0, "%s", saker_error());
	check_query(0, 0, 0, 0);
	stop();
}

/* ---- Datagrams ---- */

/* Sends a datagram from node `from`, and waits until it has arrived. */
static void
datagram(int from, struct saker_qp *qp, const struct saker_ah *ah, struct saker_qp *to)
{
	struct fnode *n = &frig.n[from], *peer = &frig.n[!from];
	struct rd_sge sge = {(uintptr_t)n->mem, 100, saker_mr_stag(n->mr)},
		      into = {(uintptr_t)peer->mem, 1000, saker_mr_stag(peer->mr)};
	struct saker_wr recv = {.wr_id = 1, .nsge = 1, .sge = &into},
			wr = {.opcode = RD_SEND,
				.flags = RD_SIGNALED,
				.nsge = 1,
				.sge = &sge,
				.ah = ah,
				.remote_qpn = saker_qp_num(to),
				.remote_qkey = QKEY};

	cr_assert_eq(saker_post_recv(to, &recv, 1), 1);
	cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
	cr_assert_eq(frig_wc(!from).status, RD_SUCCESS);
	cr_assert_eq(frig_wc(from).status, RD_SUCCESS);
}

Test(engine_class, datagrams_carry_the_class_of_their_address_handle)
{
	static const uint8_t dscp[] = {0, 46, 10};
	struct saker_qp *a, *b;
	struct saker_ah *ah[3], *back;
	struct eng_totals t;

	start(with_vlan);
	frig.port = NULL;
	for (unsigned i = 0; i < 3; i++) {
		struct saker_class c = {.set = SAKER_CLASS_TRAFFIC | SAKER_CLASS_PRIORITY,
			.traffic_class = (uint8_t)(dscp[i] << 2),
			.priority = 2};

		cr_assert_eq(saker_ah_create_class(frig.n[0].pd, &frig.n[1].addr,
				     SAKER_ORDER_CONFIGURED, &c, &ah[i]),
			0, "%s", saker_error());
		if (i == 1)
			cr_assert_eq(saker_ah_create_class(frig.n[1].pd, &frig.n[0].addr,
					     SAKER_ORDER_CONFIGURED, &c, &back),
				0, "%s", saker_error());
	}
	a = frig_datagram_qp(&frig.n[0], QKEY, 64, SAKER_ORDER_CONFIGURED);
	b = frig_datagram_qp(&frig.n[1], QKEY, 64, SAKER_ORDER_CONFIGURED);
	for (unsigned i = 0; i < 3; i++) /* connects the hosts, once for each class */
		datagram(0, a, ah[i], b);
	frig_sleep(3000000000ull);
	frig.port = look;
	wish_pcp(1, 0, 7 - 2);
	wish_pcp(0, 0, 2);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 3; i++) {
			/* Acknowledgements have the class, too. */
			frig_sleep(1000000);
			wish_dscp(0, SKIP, dscp[i]);
			wish_dscp(1, SKIP, dscp[i]);
			datagram(0, a, ah[i], b);
		}
	}
	frig_sleep(1000000);
	wish_dscp(0, SKIP, 46);
	wish_dscp(1, SKIP, 46);
	datagram(1, b, back, a);
	frig_sleep(1000000);
	cr_assert_gt(seen[0].frames[1], 9);
	eng_totals(frig.n[0].e, &t);
	cr_assert_eq(t.conns, 3 + 1, "the first of each class, and the carrier");
	stop();
}

/* ---- Refusals ---- */

#define REFUSED(call, sentence)                                                                    \
	do {                                                                                       \
		cr_assert_eq((call), -EINVAL);                                                     \
		cr_assert_str_eq(saker_error(), sentence);                                         \
	} while (0)

Test(engine_class, values_that_do_not_fit_are_refused_with_a_sentence)
{
	static const char priority[] = "a priority (service level) is 0 to 7, not 8",
			  flow[] = "a flow label has 20 bits (0 to 0xfffff), and 0x100000 does not "
				   "fit",
			  set[] = "a class has no members 0x08";
	struct saker_conn_param p = {
		.crc = 2, .markers = 2, .traffic = {.set = SAKER_CLASS_PRIORITY, .priority = 8}};
	const struct saker_class label = {.set = SAKER_CLASS_FLOW, .flow_label = 0x100000};
	struct saker_qp_move m = {.state = RD_QP_INIT};
	struct saker_qp_attr attr;
	struct saker_listener *l;
	struct saker_qp *qp;
	struct saker_ah *ah;

	start(NULL);
	frig_qp(0, SAKER_IWARP);
	REFUSED(saker_connect(frig.n[0].qp, NULL, &frig.n[1].addr, FRIG_PORT, &p), priority);
	REFUSED(saker_listen_as(frig.n[0].s, NULL, FRIG_PORT, 4, &p, NULL, &l), priority);
	p.traffic.set = 9;
	REFUSED(saker_connect(frig.n[0].qp, NULL, &frig.n[1].addr, FRIG_PORT, &p), set);
	REFUSED(saker_ah_create_class(
			frig.n[0].pd, &frig.n[1].addr, SAKER_ORDER_CONFIGURED, &label, &ah),
		flow);
	attr = (struct saker_qp_attr){.send_cq = frig.n[0].cq,
		.recv_cq = frig.n[0].cq,
		.sq_depth = 4,
		.rq_depth = 4,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.transport = SAKER_FALCON,
		.traffic = label};
	REFUSED(saker_qp_create(frig.n[0].pd, &attr, &qp), flow);
	attr.traffic = none;
	cr_assert_eq(saker_qp_create(frig.n[0].pd, &attr, &qp), 0, "%s", saker_error());
	cr_assert_eq(saker_qp_move(qp, &m), 0, "%s", saker_error());
	m = (struct saker_qp_move){
		.state = RD_QP_RTR, .remote = frig.n[1].addr, .remote_qpn = 5, .traffic = label};
	REFUSED(saker_qp_move(qp, &m), flow);
	/* A value whose bit is not set does not count. */
	m.traffic.set = 0;
	cr_assert_eq(saker_qp_move(qp, &m), 0, "%s", saker_error());
	stop();
}

Test(engine_class, a_configuration_with_wrong_priorities_is_refused)
{
	struct eng_config cfg;
	char err[200];

	eng_config_default(&cfg);
	cfg.vlan_pcp[3] = 8;
	cr_assert_eq(eng_config_check(&cfg, err, sizeof(err)), -EINVAL);
	cr_assert_str_eq(err, "priority 3: a VLAN tag has a priority of 0 to 7, not 8");
	cfg.vlan_pcp[3] = 3;
	cfg.rates[2].present = true;
	cfg.rates[2].priority = 9;
	cr_assert_eq(eng_config_check(&cfg, err, sizeof(err)), -EINVAL);
	cr_assert_str_eq(err, "[client 2]: a priority is 0 to 7, not 9");
}
