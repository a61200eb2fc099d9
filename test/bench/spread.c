/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a message with several loops: two instances with N loops each, joined by ports with N
 * queues and RSS. A QP of each loop sends small Writes to a QP of the other instance, each of which
 * has a loop of its own. One thread runs all of it on a virtual clock. The functions sender_turn()
 * and receiver_turn() contain what the lcores and the clients do, for callgrind, and not what the
 * ports do.
 *
 *	bench_spread [EAL options] -- N [iwarp|falcon [ms]]
 *
 * ms: the duration on the virtual clock, divided by N (8).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>
#include <rte_thash.h>

#include <saker/saker.h>

#include "../../lib/base/mem.h"
#include "../../lib/engine/common/instance.h"
#include "../../lib/engine/transport/handoff_priv.h"

#define HOME_SIZE (24u << 20)
#define MEM_SIZE  (4u << 20)
#define BUF_SIZE  4096u
#define PORT      7000
#define SIZE      8u
#define DEPTH     256u
#define BATCH     16u
#define STEP      200 /* ns between two reads of the clock of one loop */

#define LOOPS_MOST 16
#define MBUFS      32768u /* of all stages of a kind */
#define WAIT_STEP  5000   /* ns of a turn that waits for a connection: its timers are long */

#define TRIES_MOST 1000 /* requests until one arrives at a loop */

static struct side {
	struct eng *e;
	struct saker *s;
	struct saker_pd *pd;
	struct saker_mr *mr;
	uint8_t *mem;
	struct saker_cq *cq[LOOPS_MOST];
	struct saker_qp *qp[LOOPS_MOST];
	struct rte_ring *in[LOOPS_MOST], *out[LOOPS_MOST];
	uint16_t port;
} side[2];

static unsigned loops, posted[LOOPS_MOST];
static enum saker_transport transport = SAKER_IWARP;
static uint64_t clock_ns, done;

static uint64_t
bench_clock(void)
{
	clock_ns += STEP / loops;
	return clock_ns;
}

static void
die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, saker_error());
	exit(1);
}

/* ---- The ports ---- */

static struct rte_ring *
make_ring(const char *kind, int i, unsigned q)
{
	char name[RTE_RING_NAMESIZE];
	struct rte_ring *r;

	snprintf(name, sizeof(name), "%s%d_%u", kind, i, q);
	r = rte_ring_create(name, 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (r == NULL)
		die("ring");
	return r;
}

static void
make_port(int i)
{
	struct side *n = &side[i];

	for (unsigned q = 0; q < loops; q++) {
		n->in[q] = make_ring("in", i, q);
		n->out[q] = make_ring("out", i, q);
	}
	n->port = (uint16_t)rte_eth_from_rings(i == 0 ? "a" : "b", n->in, loops, n->out, loops, 0);
}

/* Returns the queue at which a frame arrives at `n`. */
static unsigned
queue_of(const struct side *n, const struct rte_mbuf *m)
{
	struct tcp_tuple key = {0};
	struct wire_pkt pkt;

	if (wire_pkt_parse(&pkt, rte_pktmbuf_mtod(m, uint8_t *), m->data_len, m->pkt_len) < 0 ||
		pkt.eth.type == ETH_ARP)
		return 0;
	key.laddr = pkt.ip.dst;
	key.raddr = pkt.ip.src;
	if (pkt.ip.proto == IP_TCP) {
		key.lport = pkt.tcp.dport;
		key.rport = pkt.tcp.sport;
	} else {
		key.lport = pkt.udp.dport;
		key.rport = pkt.udp.sport;
	}
	return eng_home(n->e, &key);
}

/* Carries the frames that a side has sent to the queues of the other one. */
static void
carry(int from)
{
	struct side *to = &side[!from];
	void *m[64];
	unsigned n;

	for (unsigned q = 0; q < loops; q++) {
		while ((n = rte_ring_dequeue_burst(side[from].out[q], m, 64, NULL)) > 0)
			for (unsigned i = 0; i < n; i++)
				if (rte_ring_enqueue(to->in[queue_of(to, m[i])], m[i]) != 0)
					rte_pktmbuf_free(m[i]);
	}
}

/* ---- The sides ---- */

static void
poll_loops(const struct side *n)
{
	for (unsigned k = 0; k < loops; k++)
		eng_poll(n->e, k, bench_clock());
}

static void
turn(void *arg)
{
	for (int i = 0; i < 2; i++) {
		if (side[i].e == NULL)
			continue;
		poll_loops(&side[i]);
		if (side[!i].e != NULL)
			carry(i);
	}
}

static void
configure(struct eng_config *cfg, int i)
{
	eng_config_default(cfg);
	cfg->nports = cfg->nifs = 1;
	cfg->ports[0] = (struct eng_port_config){
		.port_id = side[i].port, .mtu = 1500, .rxd = 1024, .txd = 1024};
	cfg->ifs[0] = (struct eng_if_config){.vlan = ETH_NO_VLAN, .prefix = 24};
	sk_addr_parse(i == 0 ? "10.0.0.1" : "10.0.0.2", &cfg->ifs[0].addr);
	cfg->nloops = cfg->ntransports = cfg->nstages = loops;
	for (unsigned k = 0; k < loops; k++)
		cfg->transport_loop[k] = cfg->stage_loop[k] = k;
	cfg->limits.qps = cfg->limits.conns = 64;
	cfg->limits.rx_mbufs = cfg->limits.tx_mbufs = SK_MIN(4096u, MBUFS / loops);
	cfg->falcon.enabled = transport == SAKER_FALCON;
}

static void
start_side(int i)
{
	struct side *n = &side[i];
	struct eng_config cfg;
	char err[256];
	void *home = sk_mem_alloc(HOME_SIZE);

	configure(&cfg, i);
	n->e = eng_create(&cfg, err, sizeof(err));
	if (n->e == NULL) {
		fprintf(stderr, "%s\n", err);
		exit(1);
	}
	n->e->clock = bench_clock;
	n->e->ports[0].rss = UINT64_MAX; /* carry() is the RSS of these ports */
	if (eng_attach_flat(n->e, "bench", home, HOME_SIZE, MEM_SIZE) < 0 ||
		saker_open_flat(home, HOME_SIZE, turn, NULL, &n->s) != 0)
		die("attach");
	n->mem = saker_alloc(n->s, loops * BUF_SIZE);
	if (saker_pd_create(n->s, &n->pd) != 0 || n->mem == NULL ||
		saker_mr_create(n->pd, n->mem, loops * BUF_SIZE,
			RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE, &n->mr) != 0)
		die("memory");
}

/* Creates the QP of loop `k`, with a CQ of its own. */
static void
make_qp(struct side *n, unsigned k)
{
	struct saker_qp_attr attr = {.sq_depth = DEPTH,
		.rq_depth = 16,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline = 64,
		.transport = transport};

	if (saker_cq_create(n->s, 2 * DEPTH, n, &n->cq[k]) != 0)
		die("cq");
	attr.send_cq = attr.recv_cq = n->cq[k];
	if (saker_qp_create(n->pd, &attr, &n->qp[k]) != 0)
		die("qp");
}

static void
wait_event(struct side *n, enum saker_event_type type, struct saker_event *ev)
{
	while (saker_event(n->s, ev) == 0) {
		turn(NULL);
		clock_ns += WAIT_STEP;
	}
	if (ev->type != type) {
		fprintf(stderr, "event %d, status %d\n", ev->type, ev->status);
		exit(1);
	}
}

/* Connects the QP of loop `k`. The responder rejects requests whose QP a loop would serve that has
 * one already, so that all loops have the same work. */
static void
connect_loop(unsigned k)
{
	static bool taken[LOOPS_MOST];
	const struct saker_conn_param param = {.ird = 16, .ord = 16, .crc = 2, .markers = 2};
	const struct sk_addr *to = &side[1].e->cfg.ifs[0].addr;
	struct saker_qp_info info;
	struct saker_event ev;

	make_qp(&side[0], k);
	for (unsigned tries = 0;; tries++) {
		if (tries == TRIES_MOST)
			die("no request arrives at a free loop");
		if (saker_connect(side[0].qp[k], NULL, to, PORT, &param) != 0)
			die("connect");
		wait_event(&side[1], SAKER_EV_CONNECT_REQUEST, &ev);
		make_qp(&side[1], k);
		if (saker_qp_query(side[1].qp[k], &info) != 0)
			die("query");
		if (!taken[info.stage])
			break;
		if (saker_qp_destroy(side[1].qp[k]) != 0 || saker_cq_destroy(side[1].cq[k]) != 0 ||
			saker_reject(side[1].s, ev.request, NULL, 0) != 0)
			die("reject");
		wait_event(&side[0], SAKER_EV_REJECTED, &ev);
	}
	taken[info.stage] = true;
	if (saker_accept(side[1].s, ev.request, side[1].qp[k], &param) != 0)
		die("accept");
	wait_event(&side[0], SAKER_EV_ESTABLISHED, &ev);
	wait_event(&side[1], SAKER_EV_ESTABLISHED, &ev);
}

/* ---- The measured part ---- */

static void
post(unsigned k, bool signaled)
{
	struct rd_sge sge = {.addr = (uintptr_t)side[0].mem + k * BUF_SIZE,
		.len = SIZE,
		.lkey = saker_mr_stag(side[0].mr)};
	struct saker_wr wr = {.opcode = RD_WRITE,
		.flags = signaled ? RD_SIGNALED : 0,
		.nsge = 1,
		.rkey = saker_mr_stag(side[1].mr),
		.remote_addr = (uintptr_t)side[1].mem + k * BUF_SIZE,
		.sge = &sge};

	if (saker_post_send(side[0].qp[k], &wr, 1) != 1)
		die("post");
}

static __attribute__((noinline)) void
sender_turn(void)
{
	struct rd_wc wc[DEPTH / BATCH];

	for (unsigned k = 0; k < loops; k++) {
		for (; posted[k] + BATCH <= DEPTH; posted[k] += BATCH)
			for (unsigned i = 0; i < BATCH; i++)
				post(k, i == BATCH - 1);
		eng_poll(side[0].e, k, bench_clock());
	}
	for (unsigned k = 0; k < loops; k++) {
		int n = saker_cq_poll(side[0].cq[k], wc, (int)SK_ARRAY_LEN(wc));

		for (int i = 0; i < n; i++)
			if (wc[i].status != RD_SUCCESS)
				die("completion");
		posted[k] -= (unsigned)n * BATCH;
		done += (unsigned)n * BATCH;
	}
}

static __attribute__((noinline)) void
receiver_turn(void)
{
	poll_loops(&side[1]);
}

static void
show_crossings(void *arg, const char *layer, const char *name, enum sk_severity sev,
	const char *help, uint64_t value)
{
	static const char *const crossings[] = {
		"ENG_HANDOFF", "ENG_LANE", "ENG_CROSS", "ENG_DATAGRAM"};

	for (unsigned i = 0; i < SK_ARRAY_LEN(crossings); i++)
		if (strcmp(name, crossings[i]) == 0 && value != 0)
			printf("  side %d: %s %lu\n", *(int *)arg, name, value);
}

int
main(int argc, char **argv)
{
	int n = rte_eal_init(argc, argv);
	struct saker_listener *l;
	uint64_t end, ms = 8;

	if (n < 0 || n + 1 >= argc)
		return 1;
	loops = (unsigned)atoi(argv[n + 1]);
	if (loops == 0 || loops > LOOPS_MOST)
		return 1;
	if (n + 2 < argc && strcmp(argv[n + 2], "falcon") == 0)
		transport = SAKER_FALCON;
	if (n + 3 < argc)
		ms = strtoull(argv[n + 3], NULL, 10);
	clock_ns = eng_clock();
	for (int i = 0; i < 2; i++)
		make_port(i);
	for (int i = 0; i < 2; i++)
		start_side(i);
	if (saker_listen(side[1].s, NULL, PORT, 4, NULL, &l) != 0)
		die("listen");
	for (unsigned k = 0; k < loops; k++)
		connect_loop(k);
	for (end = clock_ns + ms * 1000000 / loops; clock_ns < end;) {
		sender_turn();
		carry(0);
		receiver_turn();
		carry(1);
	}
	printf("%u loops, %u B, %lu done\n", loops, SIZE, done);
	for (int i = 0; i < 2; i++)
		eng_counters(side[i].e, show_crossings, &i);
	return 0;
}
