/* SPDX-License-Identifier: BSD-3-Clause */
/* The rig of the Falcon tests; see falcon_rig.h. */
#include "falcon_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_thash.h>

#include "../../../lib/base/mem.h"

#define HOME_SIZE       (8u << 20)
#define CLIENT          (1u << 20) /* bytes for the client's own use */
#define TURNS           20000000u
#define CARRIER_IDLE_NS 1000000000ull
#define STEP_NS         1000000ull

struct frig frig;

static void
take_copy(const struct rte_mbuf *m)
{
	struct rte_mbuf *copy;

	if (frig.nkept == SK_ARRAY_LEN(frig.kept))
		return;
	copy = rte_pktmbuf_copy(m, frig.pool, 0, UINT32_MAX);
	cr_assert_not_null(copy);
	frig.kept[frig.nkept++] = copy;
}

static unsigned
pick(unsigned n)
{
	frig.rng ^= frig.rng << 13;
	frig.rng ^= frig.rng >> 7;
	frig.rng ^= frig.rng << 17;
	return (unsigned)(frig.rng >> 32) % n;
}

static void
hold(int node, struct rte_mbuf *m)
{
	frig.held[frig.nheld].m = m;
	frig.held[frig.nheld].at = frig.now + (1 + pick(20)) * frig.step;
	frig.held[frig.nheld++].node = node;
}

static void
release(int node, bool all)
{
	for (unsigned i = 0; i < frig.nheld;) {
		if (frig.held[i].node != node || (!all && frig.held[i].at > frig.now)) {
			i++;
			continue;
		}
		cr_assert_eq(rte_ring_enqueue(frig.to[node], frig.held[i].m), 0);
		frig.held[i] = frig.held[--frig.nheld];
	}
}

/* Loses, duplicates and delays frames at random. */
static void
mistreat(int node)
{
	unsigned n = rte_ring_count(frig.to[node]);
	void *m;

	for (unsigned i = 0; i < n; i++) {
		unsigned luck = pick(1000);

		cr_assert_eq(rte_ring_dequeue(frig.to[node], &m), 0);
		if (luck < frig.bad) {
			rte_pktmbuf_free(m);
			frig.lost++;
			continue;
		}
		if (luck < 2 * frig.bad) {
			struct rte_mbuf *again = rte_pktmbuf_copy(m, frig.pool, 0, UINT32_MAX);

			if (again != NULL)
				cr_assert_eq(rte_ring_enqueue(frig.to[node], again), 0);
		} else if (luck < 3 * frig.bad && frig.nheld < SK_ARRAY_LEN(frig.held)) {
			hold(node, m);
			continue;
		}
		cr_assert_eq(rte_ring_enqueue(frig.to[node], m), 0);
	}
	release(node, false);
}

/* Processes the frames on their way to a node: passes them to frig.port, copies them, or drops
 * them. */
static void
wire(int node)
{
	unsigned n;
	void *m;

	if (frig.bad > 0)
		mistreat(node);
	n = rte_ring_count(frig.to[node]);
	for (unsigned i = 0; i < n && (frig.silent || frig.keep == node || frig.port != NULL);
		i++) {
		cr_assert_eq(rte_ring_dequeue(frig.to[node], &m), 0);
		if (frig.port != NULL)
			frig.port(m, node);
		if (frig.keep == node)
			take_copy(m);
		if (frig.silent)
			rte_pktmbuf_free(m);
		else
			cr_assert_eq(rte_ring_enqueue(frig.to[node], m), 0);
	}
}

/* ---- Ports with RSS ---- */

#define RETA_MASK 127u

static uint32_t
word(const struct sk_addr *a, unsigned i)
{
	return (uint32_t)a->b[i] << 24 | a->b[i + 1] << 16 | a->b[i + 2] << 8 | a->b[i + 3];
}

/* Returns the queue of a port with the key and the table of the node's engine. */
static unsigned
rss_queue(int node, const struct rte_mbuf *m)
{
	struct wire_pkt pkt;
	uint32_t words[9], ports;
	unsigned n = 0;

	if (wire_pkt_parse(&pkt, rte_pktmbuf_mtod(m, uint8_t *), m->data_len, m->pkt_len) < 0)
		return 0;
	if (pkt.eth.type == ETH_ARP || (pkt.ip.proto != IP_TCP && pkt.ip.proto != IP_UDP))
		return 0;
	ports = pkt.ip.proto == IP_TCP ? (uint32_t)pkt.tcp.sport << 16 | pkt.tcp.dport
				       : (uint32_t)pkt.udp.sport << 16 | pkt.udp.dport;
	for (unsigned i = sk_addr_is_v4(&pkt.ip.src) ? 12 : 0; i < 16; i += 4)
		words[n++] = word(&pkt.ip.src, i);
	for (unsigned i = sk_addr_is_v4(&pkt.ip.src) ? 12 : 0; i < 16; i += 4)
		words[n++] = word(&pkt.ip.dst, i);
	words[n++] = ports;
	return (rte_softrss(words, n, frig.p.e[node]->rss_key) & RETA_MASK) % frig.queues;
}

static struct rte_ring *
queue_of(int node, unsigned q)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "wire%d_%u", node, q);
	return rte_ring_lookup(name);
}

/* Moves the frames on their way to a node to the queues at which they arrive. */
static void
spread(int node)
{
	static void *m[PAIR_QUEUES * 1024];
	unsigned n = 0;

	for (unsigned q = 0; q < frig.queues; q++)
		n += rte_ring_dequeue_burst(queue_of(node, q), m + n, 1024, NULL);
	for (unsigned i = 0; i < n; i++) {
		if (frig.silent)
			rte_pktmbuf_free(m[i]);
		else
			cr_assert_eq(
				rte_ring_enqueue(queue_of(node, rss_queue(node, m[i])), m[i]), 0);
	}
}

static void
rss_config(struct eng_config *cfg)
{
	cfg->nloops = cfg->ntransports = cfg->nstages = frig.queues;
	for (unsigned k = 0; k < frig.queues; k++)
		cfg->transport_loop[k] = cfg->stage_loop[k] = k;
	cfg->limits.rx_mbufs = cfg->limits.tx_mbufs = 512; /* memory is scarce without huge pages */
}

/* ---- The wire ---- */

static uint64_t
rig_clock(void)
{
	return frig.now;
}

/* Delays the frames on their way to a node until run_wire(). */
static void
stop_wire(int node)
{
	void *m;

	while (frig.nlate[node] < SK_ARRAY_LEN(frig.late[0]) &&
		rte_ring_dequeue(frig.to[node], &m) == 0)
		frig.late[node][frig.nlate[node]++] = m;
}

static void
run_wire(int node)
{
	for (unsigned i = 0; i < frig.nlate[node]; i++)
		cr_assert_eq(rte_ring_enqueue(frig.to[node], frig.late[node][i]), 0);
	frig.nlate[node] = 0;
}

void
frig_turn(void)
{
	frig.now += frig.step;
	for (int i = 0; i < 2; i++) {
		if (frig.queues > 1)
			spread(i);
		else
			wire(i);
		if (frig.delay)
			stop_wire(i);
		else
			run_wire(i);
		for (unsigned k = 0; frig.p.e[i] != NULL && k < frig.p.cfg[i].nloops; k++)
			if (!(frig.loop_idle & 1u << k))
				eng_poll(frig.p.e[i], k, frig.now);
	}
}

void
frig_turns(unsigned n)
{
	while (n-- > 0)
		frig_turn();
}

void
frig_sleep(uint64_t ns)
{
	for (uint64_t step = SK_MIN(ns, STEP_NS); ns > 0; ns -= step, step = SK_MIN(ns, STEP_NS)) {
		frig.now += step;
		frig_turns(4);
	}
}

static void
idle(void *arg)
{
	frig_turn();
}

/* ---- Beginning and end ---- */

static void
attach(struct fnode *n, const char *name)
{
	n->home = aligned_alloc(4096, HOME_SIZE);
	memset(n->home, 0, HOME_SIZE);
	n->client = eng_attach_flat(n->e, name, n->home, HOME_SIZE, CLIENT);
	cr_assert_geq(n->client, 0);
	cr_assert_eq(saker_open_flat(n->home, HOME_SIZE, idle, NULL, &n->s), 0);
	cr_assert_eq(saker_pd_create(n->s, &n->pd), 0, "%s", saker_error());
	cr_assert_eq(saker_cq_create(n->s, 256, n, &n->cq), 0, "%s", saker_error());
	n->mem = saker_alloc(n->s, FRIG_MEM);
	cr_assert_not_null(n->mem);
	cr_assert_eq(saker_mr_create(n->pd, n->mem, FRIG_MEM,
			     RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ |
				     RD_ACC_REMOTE_ATOMIC,
			     &n->mr),
		0, "%s", saker_error());
}

static void
start(void (*tweak)(struct eng_config *cfg, int node), bool one, unsigned queues)
{
	memset(&frig, 0, sizeof(frig));
	frig.keep = -1;
	frig.one = one;
	frig.queues = queues;
	frig.step = FRIG_STEP;
	frig.rng = 0x9e3779b97f4a7c15ull;
	pair_init_queues(&frig.p, queues);
	frig.pool = rte_pktmbuf_pool_create(
		"hand", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	cr_assert_not_null(frig.pool);
	for (int i = 0; i < 2; i++) {
		frig.to[i] = rte_ring_lookup(i == 0 ? "wire0_0" : "wire1_0");
		cr_assert_not_null(frig.to[i]);
		frig.p.cfg[i].falcon.enabled = true;
		frig.p.cfg[i].falcon.control_idle_ns = CARRIER_IDLE_NS;
		if (queues > 1)
			rss_config(&frig.p.cfg[i]);
		if (tweak != NULL)
			tweak(&frig.p.cfg[i], i);
	}
	pair_start(&frig.p);
	frig.now = eng_clock(); /* the engines have started with eng_clock() */
	for (int i = 0; i < 2; i++) {
		frig.p.e[i]->clock = rig_clock;
		if (queues > 1) /* net_ring has no RSS */
			frig.p.e[i]->ports[0].rss = UINT64_MAX;
		frig.n[i].e = frig.p.e[one ? 0 : i];
		frig.n[i].addr = addr(i == 0 || one ? PAIR_ADDR_A : PAIR_ADDR_B);
		attach(&frig.n[i], "test");
	}
}

void
frig_start(void (*tweak)(struct eng_config *cfg, int node))
{
	start(tweak, false, 1);
}

void
frig_start_one(void (*tweak)(struct eng_config *cfg, int node))
{
	start(tweak, true, 1);
}

void
frig_start_rss(unsigned loops, void (*tweak)(struct eng_config *cfg, int node))
{
	start(tweak, false, loops);
}

static void
wait_gone(struct fnode *n)
{
	for (unsigned i = 0; i < TURNS && !eng_client_gone(n->e, n->client); i++)
		frig_turn();
	cr_assert(eng_client_gone(n->e, n->client));
}

void
frig_kill(int node)
{
	struct fnode *n = &frig.n[node];

	cr_assert_eq(eng_detach(n->e, n->client), 0);
	wait_gone(n);
	n->client = -1;
}

void
frig_client(int node, const char *name, struct fnode *n)
{
	*n = (struct fnode){.e = frig.n[node].e, .addr = frig.n[node].addr};
	attach(n, name);
}

void
frig_client_kill(struct fnode *n)
{
	cr_assert_eq(eng_detach(n->e, n->client), 0);
	wait_gone(n);
	n->client = -1;
}

void
frig_client_end(struct fnode *n)
{
	saker_close(n->s);
	if (n->client >= 0)
		frig_client_kill(n);
	free(n->home);
}

static void
nothing_left(struct eng *e)
{
	struct eng_totals t = {0};

	for (unsigned i = 0; i < TURNS; i++) {
		eng_totals(e, &t);
		if (t.conns == 0)
			break;
		if (i < 100)
			frig_turn();
		else /* carriers end when they have been idle */
			frig_sleep(CARRIER_IDLE_NS / 4);
	}
	cr_assert_eq(t.clients + t.qps + t.cqs + t.mrs + t.mws + t.pds + t.srqs + t.listeners, 0);
	cr_assert_eq(t.conns, 0, "%u connections are left", t.conns);
}

void
frig_stop(void)
{
	frig.silent = false;
	frig.bad = 0;
	for (int i = 0; i < 2; i++)
		release(i, true);
	frig.loop_idle = 0;
	frig.keep = -1;
	for (int i = 0; i < 2; i++) {
		struct fnode *n = &frig.n[i];

		saker_close(n->s);
		if (n->client < 0)
			continue;
		eng_detach(n->e, n->client);
		wait_gone(n);
	}
	for (int i = 0; i < 2; i++)
		nothing_left(frig.p.e[i]);
	while (frig.nkept > 0)
		rte_pktmbuf_free(frig.kept[--frig.nkept]);
	pair_end(&frig.p);
	cr_assert(rte_mempool_full(frig.pool), "the hand's frames are still out");
	for (int i = 0; i < 2; i++)
		free(frig.n[i].home);
}

/* ---- Connections ---- */

struct saker_ah *
frig_ah(int node, const struct sk_addr *remote)
{
	struct saker_ah *ah;

	cr_assert_eq(saker_ah_create(frig.n[node].pd, remote, &ah), 0, "%s", saker_error());
	return ah;
}

struct saker_qp *
frig_deep_qp(const struct fnode *n, enum saker_transport transport, uint32_t depth)
{
	struct saker_qp_attr attr = {.send_cq = n->cq,
		.recv_cq = n->cq,
		.sq_depth = depth,
		.rq_depth = FRIG_DEPTH,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.transport = transport};
	struct saker_qp *qp;

	cr_assert_eq(saker_qp_create(n->pd, &attr, &qp), 0, "%s", saker_error());
	return qp;
}

struct saker_qp *
frig_datagram_qp(const struct fnode *n, uint32_t qkey, uint32_t depth, enum saker_ordering ordering)
{
	struct saker_qp_move m = {
		.state = RD_QP_INIT, .qkey = qkey, .modes = {.ordering = ordering}};
	struct saker_qp_attr attr = {.send_cq = n->cq,
		.recv_cq = n->cq,
		.sq_depth = depth,
		.rq_depth = 128,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.transport = SAKER_FALCON,
		.type = SAKER_UD};
	struct saker_qp *qp;

	cr_assert_eq(saker_qp_create(n->pd, &attr, &qp), 0, "%s", saker_error());
	for (; m.state <= RD_QP_RTS; m.state++)
		cr_assert_eq(saker_qp_move(qp, &m), 0, "%s", saker_error());
	return qp;
}

struct saker_qp *
frig_qp(int node, enum saker_transport transport)
{
	struct fnode *n = &frig.n[node];

	n->qp = frig_deep_qp(n, transport, FRIG_DEPTH);
	return n->qp;
}

struct saker_event
frig_event(int node, enum saker_event_type type)
{
	struct saker_event ev = {0};

	for (unsigned i = 0; i < TURNS; i++) {
		frig_turn();
		if (saker_event(frig.n[node].s, &ev) == 1) {
			cr_assert_eq(ev.type, type, "event %d instead of %d, status %d", ev.type,
				type, ev.status);
			return ev;
		}
	}
	cr_assert_fail("event %d did not come to node %d", type, node);
	return ev;
}

bool
frig_no_event(int node)
{
	struct saker_event ev;

	frig_turns(2000);
	return saker_event(frig.n[node].s, &ev) == 0;
}

struct rd_wc
frig_wc(int node)
{
	struct rd_wc wc = {0};

	for (unsigned i = 0; i < TURNS; i++) {
		frig_turn();
		if (saker_cq_poll(frig.n[node].cq, &wc, 1) == 1)
			return wc;
	}
	cr_assert_fail("no completion came");
	return wc;
}

struct saker_listener *
frig_listen(int node)
{
	struct saker_listener *l;

	cr_assert_eq(
		saker_listen(frig.n[node].s, NULL, FRIG_PORT, 4, NULL, &l), 0, "%s", saker_error());
	return l;
}

void
frig_ask(const struct saker_conn_param *p)
{
	cr_assert_eq(saker_connect(frig.n[0].qp, NULL, &frig.n[1].addr, FRIG_PORT, p), 0, "%s",
		saker_error());
}

void
frig_connect_reads(enum saker_transport transport, uint16_t reads)
{
	struct saker_conn_param p = {.ird = reads, .ord = reads};
	struct saker_listener *l = frig_listen(1);
	struct saker_event ev;

	frig_qp(0, transport);
	frig_qp(1, transport);
	frig_ask(&p);
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(ev.cm.transport, transport);
	cr_assert_eq(
		saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p), 0, "%s", saker_error());
	cr_assert_eq(frig_event(1, SAKER_EV_ESTABLISHED).qp, frig.n[1].qp);
	cr_assert_eq(frig_event(0, SAKER_EV_ESTABLISHED).qp, frig.n[0].qp);
	cr_assert_eq(saker_unlisten(l), 0, "%s", saker_error());
}

void
frig_connect_over(enum saker_transport transport)
{
	frig_connect_reads(transport, 4);
}

void
frig_connect(void)
{
	frig_connect_over(SAKER_FALCON);
}

int
frig_ended(int *other)
{
	int status = frig_event(0, SAKER_EV_DISCONNECTED).status;

	*other = frig_event(1, SAKER_EV_DISCONNECTED).status;
	return status;
}

/* ---- Work ---- */

void
frig_post(int node, uint8_t opcode, uint32_t len, uint64_t imm)
{
	struct fnode *n = &frig.n[node], *peer = &frig.n[!node];
	struct rd_sge sge = {(uintptr_t)n->mem, len, saker_mr_stag(n->mr)};
	struct saker_wr wr = {.wr_id = opcode,
		.opcode = opcode,
		.flags = RD_SIGNALED,
		.nsge = len > 0,
		.sge = &sge,
		.remote_addr = (uintptr_t)peer->mem,
		.rkey = saker_mr_stag(peer->mr),
		.imm = imm,
		.data = imm,
		.data_mask = opcode == RD_CMP_SWAP ? UINT64_MAX : 0, /* nothing is masked */
		.compare = imm,
		.compare_mask = UINT64_MAX};

	cr_assert_eq(saker_post_send(n->qp, &wr, 1), 1);
}

void
frig_recv(int node, uint64_t wr_id)
{
	struct fnode *n = &frig.n[node];
	struct rd_sge sge = {(uintptr_t)n->mem, FRIG_MEM, saker_mr_stag(n->mr)};
	struct saker_wr wr = {.wr_id = wr_id, .nsge = 1, .sge = &sge};

	cr_assert_eq(saker_post_recv(n->qp, &wr, 1), 1);
}

static void
done(int node, uint8_t opcode)
{
	struct rd_wc wc = frig_wc(node);

	cr_assert_eq(wc.status, RD_SUCCESS, "opcode %u: status %u", opcode, wc.status);
	cr_assert_eq(wc.opcode, opcode);
}

void
frig_works(void)
{
	struct fnode *a = &frig.n[0], *b = &frig.n[1];

	for (unsigned i = 0; i < FRIG_MEM; i++)
		a->mem[i] = (uint8_t)(i * 7 + (i >> 8));
	memset(b->mem, 0, FRIG_MEM);
	frig_post(0, RD_WRITE, 60000, 0);
	done(0, RD_WRITE);
	/* The completion of an iWARP Write reports only that TCP has accepted the data. */
	for (unsigned i = 0; i < TURNS && b->mem[59999] != a->mem[59999]; i++)
		frig_turn();
	cr_assert_arr_eq(b->mem, a->mem, 60000);
	cr_assert_eq(b->mem[60000], 0);
	memset(a->mem, 0, FRIG_MEM);
	frig_post(0, RD_READ, 50000, 0);
	done(0, RD_READ);
	cr_assert_arr_eq(a->mem, b->mem, 50000);
	cr_assert_eq(a->mem[50000], 0);
	memset(b->mem, 0xee, FRIG_MEM);
	frig_recv(1, 77);
	frig_post(0, RD_SEND, 5000, 0);
	done(0, RD_SEND);
	done(1, RD_RECV);
	cr_assert_arr_eq(b->mem, a->mem, 5000);
	cr_assert_eq(b->mem[5000], 0xee);
}

uint64_t
frig_count(int node, const char *layer, const char *name)
{
	return pair_counter(frig.n[node].e, layer, name);
}

static struct rte_mbuf *
piece(const void *bytes, size_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(frig.pool);
	void *at;

	cr_assert_not_null(m);
	at = rte_pktmbuf_append(m, (uint16_t)len);
	cr_assert_not_null(at);
	memcpy(at, bytes, len);
	return m;
}

void
frig_inject(int node, const void *frame, size_t len)
{
	cr_assert_eq(rte_ring_enqueue(frig.to[node], piece(frame, len)), 0);
}

void
frig_inject_cut(int node, const void *frame, size_t len, size_t cut)
{
	struct rte_mbuf *m = piece(frame, cut);

	cr_assert_eq(rte_pktmbuf_chain(m, piece((const char *)frame + cut, len - cut)), 0);
	cr_assert_eq(rte_ring_enqueue(frig.to[node], m), 0);
}
