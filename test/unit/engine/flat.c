/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two instances in one process, connected by rings, each with a flat client: connecting, the
 * operations, refusals, endings. One thread polls both. The clock is that of the machine, but no
 * result depends on it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <saker/saker.h>

#include "../../../lib/client/client_priv.h"
#include "../../../lib/engine/common/pages.h"
#include "../../../lib/engine/common/sigbus.h"
#include "../../../lib/engine/stage/stage_priv.h"
#include "../../../lib/iwarp/iwarp.h"

#define HOME_SIZE (8u << 20)
#define MEM_SIZE  (1u << 20)
#define TURNS     2000000u
#define PATIENCE  60000000000ull /* ns: for an event, which a refusal causes after half a second */
#define PORT      7000

static struct node {
	struct eng *eng;
	struct saker *s;
	void *home;
	int client;
	struct sk_addr addr;
	struct saker_pd *pd;
	struct saker_cq *cq;
	struct saker_qp *qp;
	struct saker_mr *mr;
	uint8_t *mem;
} node[2];

static void
turn(void *arg)
{
	for (int i = 0; i < 2; i++)
		if (node[i].eng != NULL)
			eng_poll(node[i].eng, 0, eng_clock());
}

static unsigned stages = 1;

static void
start_node(struct node *n, int port, const char *addr)
{
	struct eng_config *cfg = calloc(1, sizeof(*cfg));
	char err[256];

	eng_config_default(cfg);
	snprintf(cfg->name, sizeof(cfg->name), "node%d", port);
	cfg->nports = cfg->nifs = 1;
	cfg->ports[0] = (struct eng_port_config){
		.port_id = (uint16_t)port, .mtu = 1500, .rxd = 256, .txd = 256};
	cr_assert_eq(sk_addr_parse(addr, &n->addr), 0);
	cfg->ifs[0] = (struct eng_if_config){.vlan = ETH_NO_VLAN, .addr = n->addr, .prefix = 24};
	cfg->limits.qps = cfg->limits.client_qps = 64;
	cfg->limits.cqs = cfg->limits.client_cqs = 64;
	cfg->limits.mrs = cfg->limits.client_mrs = 256;
	cfg->limits.mws = cfg->limits.client_mws = 16;
	cfg->limits.conns = 64;
	cfg->limits.rx_mbufs = cfg->limits.tx_mbufs = 2048;
	cfg->nstages = stages;
	n->eng = eng_create(cfg, err, sizeof(err));
	cr_assert_not_null(n->eng, "%s", err);
	free(cfg);
}

static void
attach(struct node *n)
{
	n->home = aligned_alloc(4096, HOME_SIZE);
	memset(n->home, 0, HOME_SIZE);
	n->client = eng_attach_flat(n->eng, "test", n->home, HOME_SIZE, MEM_SIZE);
	cr_assert_geq(n->client, 0);
	cr_assert_eq(
		saker_open_flat(n->home, HOME_SIZE, turn, NULL, &n->s), 0, "%s", saker_error());
	cr_assert_eq(saker_pd_create(n->s, &n->pd), 0, "%s", saker_error());
	cr_assert_eq(saker_cq_create(n->s, 64, n, &n->cq), 0, "%s", saker_error());
	n->mem = saker_alloc(n->s, 65536);
	cr_assert_not_null(n->mem);
	cr_assert_eq(saker_mr_create(n->pd, n->mem, 65536,
			     RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, &n->mr),
		0, "%s", saker_error());
}

static void
make_qp(struct node *n)
{
	struct saker_qp_attr attr = {.send_cq = n->cq,
		.recv_cq = n->cq,
		.sq_depth = 16,
		.rq_depth = 16,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.max_inline = 64,
		.user = n};

	cr_assert_eq(saker_qp_create(n->pd, &attr, &n->qp), 0, "%s", saker_error());
}

static void
setup(void)
{
	char *argv[] = {"test", "--no-huge", "--no-shconf", "--no-pci", "-m", "64", "-l", "0",
		"--no-telemetry"};
	struct rte_ring *r[2];

	cr_assert_geq(rte_eal_init(9, argv), 0);
	r[0] = rte_ring_create("ab", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	r[1] = rte_ring_create("ba", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	cr_assert_eq(rte_eth_from_rings("w0", &r[0], 1, &r[1], 1, 0), 0);
	cr_assert_eq(rte_eth_from_rings("w1", &r[1], 1, &r[0], 1, 0), 1);
	start_node(&node[0], 0, "10.0.0.1");
	start_node(&node[1], 1, "10.0.0.2");
	attach(&node[0]);
	attach(&node[1]);
}

static void
wait_gone(struct node *n)
{
	for (unsigned i = 0; i < TURNS && !eng_client_gone(n->eng, n->client); i++)
		turn(NULL);
	cr_assert(eng_client_gone(n->eng, n->client));
}

static void
teardown(void)
{
	for (int i = 0; i < 2; i++) {
		struct eng_totals t = {0};

		saker_close(node[i].s);
		eng_detach(node[i].eng, node[i].client);
		wait_gone(&node[i]);
		eng_totals(node[i].eng, &t);
		cr_assert_eq(
			t.clients + t.qps + t.cqs + t.mrs + t.mws + t.pds + t.srqs + t.listeners,
			0);
	}
	for (int i = 0; i < 2; i++) {
		struct eng *e = node[i].eng;

		node[i].eng = NULL;
		eng_destroy(e);
		free(node[i].home);
	}
}

static struct saker_event
wait_event(struct node *n, enum saker_event_type type)
{
	struct saker_event ev = {0};
	uint64_t end = eng_clock() + PATIENCE;

	while (eng_clock() < end) {
		turn(NULL);
		if (saker_event(n->s, &ev) == 1) {
			cr_assert_eq(ev.type, type, "event %d instead of %d, status %d", ev.type,
				type, ev.status);
			return ev;
		}
	}
	cr_assert_fail("event %d did not come", type);
	return ev;
}

static struct rd_wc
wait_wc(struct node *n)
{
	struct rd_wc wc = {0};

	for (unsigned i = 0; i < TURNS; i++) {
		turn(NULL);
		if (saker_cq_poll(n->cq, &wc, 1) == 1)
			return wc;
	}
	cr_assert_fail("no completion came");
	return wc;
}

static void
connect_with(struct saker_conn_param p, struct saker_conn_param answer)
{
	struct saker_listener *l;
	struct saker_event ev;

	make_qp(&node[0]);
	make_qp(&node[1]);
	cr_assert_eq(saker_listen(node[1].s, NULL, PORT, 4, NULL, &l), 0, "%s", saker_error());
	cr_assert_eq(
		saker_connect(node[0].qp, NULL, &node[1].addr, PORT, &p), 0, "%s", saker_error());
	ev = wait_event(&node[1], SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(ev.cm.private_len, 5);
	cr_assert_arr_eq(ev.cm.private_data, "hello", 5);
	cr_assert(sk_addr_eq(&ev.cm.remote, &node[0].addr));
	cr_assert_eq(
		saker_accept(node[1].s, ev.request, node[1].qp, &answer), 0, "%s", saker_error());
	ev = wait_event(&node[1], SAKER_EV_ESTABLISHED);
	cr_assert_eq(ev.qp, node[1].qp);
	ev = wait_event(&node[0], SAKER_EV_ESTABLISHED);
	cr_assert_eq(ev.qp, node[0].qp);
	cr_assert_eq(ev.cm.private_len, 7);
	cr_assert_arr_eq(ev.cm.private_data, "welcome", 7);
	cr_assert_eq(saker_unlisten(l), 0, "%s", saker_error());
}

static const struct saker_conn_param hello = {
	.ird = 4, .ord = 4, .crc = 2, .markers = 2, .private_data = "hello", .private_len = 5};
static const struct saker_conn_param welcome = {
	.ird = 4, .ord = 4, .crc = 2, .markers = 2, .private_data = "welcome", .private_len = 7};

static void
connect_nodes(void)
{
	connect_with(hello, welcome);
}

static void
post(struct node *n, uint8_t opcode, uint32_t len, uint64_t remote, uint32_t rkey)
{
	struct rd_sge sge = {(uintptr_t)n->mem, len, saker_mr_stag(n->mr)};
	struct saker_wr wr = {.wr_id = opcode,
		.opcode = opcode,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.remote_addr = remote,
		.rkey = rkey};

	cr_assert_eq(saker_post_send(n->qp, &wr, 1), 1);
	cr_assert_eq(wait_wc(n).status, RD_SUCCESS);
}

Test(engine_flat, send_write_read_between_two_instances)
{
	struct node *a = &node[0], *b = &node[1];
	struct saker_wr recv = {.wr_id = 77, .nsge = 1};
	struct rd_sge sge;
	struct rd_wc wc;

	setup();
	connect_nodes();
	sge = (struct rd_sge){(uintptr_t)b->mem, 65536, saker_mr_stag(b->mr)};
	recv.sge = &sge;
	memset(a->mem, 0x11, 5000);
	cr_assert_eq(saker_post_recv(b->qp, &recv, 1), 1);
	post(a, RD_SEND, 5000, 0, 0);
	wc = wait_wc(b);
	cr_assert_eq(wc.status, RD_SUCCESS);
	cr_assert_eq(wc.wr_id, 77);
	cr_assert_eq(wc.byte_len, 5000);
	cr_assert_arr_eq(b->mem, a->mem, 5000);
	memset(a->mem, 0x22, 60000);
	post(a, RD_WRITE, 60000, (uintptr_t)b->mem, saker_mr_stag(b->mr));
	for (unsigned i = 0; i < TURNS && b->mem[59999] != 0x22; i++)
		turn(NULL);
	cr_assert_arr_eq(b->mem, a->mem, 60000);
	memset(b->mem, 0x33, 40000);
	post(a, RD_READ, 40000, (uintptr_t)b->mem, saker_mr_stag(b->mr));
	cr_assert_arr_eq(a->mem, b->mem, 40000);
	teardown();
}

struct look {
	struct eng *eng;
	struct eng_qp_view view;
	int n;
	bool done; /* atomic */
};

/* eng_qps() waits for the stages, which the test's thread polls. */
static void *
look_main(void *arg)
{
	struct look *l = arg;

	l->n = eng_qps(l->eng, &l->view, 1);
	__atomic_store_n(&l->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static struct eng_qp_view
look_at(struct node *n)
{
	struct look l = {.eng = n->eng};
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, look_main, &l), 0);
	while (!__atomic_load_n(&l.done, __ATOMIC_ACQUIRE))
		turn(NULL);
	pthread_join(thread, NULL);
	cr_assert_eq(l.n, 1);
	cr_assert(l.view.connected);
	return l.view;
}

Test(engine_flat, the_view_of_a_qp_has_what_both_sides_agreed_on_6581_9)
{
	struct saker_conn_param ask = hello, answer = welcome;
	struct eng_qp_view v[2];

	setup();
	ask.crc = 1;
	answer.crc = 0;
	ask.markers = 1; /* in what it receives */
	answer.markers = 0;
	ask.ird = 7;
	ask.ord = 6;
	answer.ird = 3;
	answer.ord = 9;
	ask.rtr = answer.rtr = SAKER_RTR_WRITE;
	connect_with(ask, answer);
	for (int i = 0; i < 2; i++) {
		v[i] = look_at(&node[i]);
		cr_assert_eq(v[i].mpa.revision, 2);
		cr_assert(v[i].mpa.crc, "one side requires it");
		cr_assert_eq(v[i].mpa.rtr, SHM_RTR_WRITE);
	}
	cr_assert(v[0].mpa.rx_markers && !v[0].mpa.tx_markers);
	cr_assert(v[1].mpa.tx_markers && !v[1].mpa.rx_markers);
	/* The one's ORD is within the other's IRD. */
	cr_assert_eq(v[0].ord, 3);
	cr_assert_eq(v[1].ird, 3);
	cr_assert_eq(v[0].ird, 7);
	cr_assert_eq(v[1].ord, 7);
	teardown();
}

/* Posts one Write with that number; waits while the send queue is full. */
static void
post_numbered(struct node *a, const struct node *b, uint64_t number)
{
	struct rd_sge sge = {(uintptr_t)a->mem, 64, saker_mr_stag(a->mr)};
	struct saker_wr wr = {.wr_id = number,
		.opcode = RD_WRITE,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.remote_addr = (uintptr_t)b->mem,
		.rkey = saker_mr_stag(b->mr)};

	for (unsigned i = 0; i < TURNS && saker_post_send(a->qp, &wr, 1) != 1; i++)
		turn(NULL);
}

/* The queue is full with completions, and more are under way, each time that it grows. */
Test(engine_flat, a_completion_queue_that_grows_under_traffic_loses_nothing)
{
	struct node *a = &node[0];
	uint64_t in = 0, out = 0;
	uint32_t depth = 64;

	setup();
	connect_nodes();
	for (; depth < 4096; depth *= 2) {
		while (in - out < depth)
			post_numbered(a, &node[1], in++);
		cr_assert_eq(saker_cq_resize(a->cq, 2 * depth), 0, "%s", saker_error());
		for (uint32_t i = 0; i < depth / 2; i++)
			cr_assert_eq(wait_wc(a).wr_id, out++);
	}
	while (out < in)
		cr_assert_eq(wait_wc(a).wr_id, out++);
	cr_assert_eq(saker_cq_resize(a->cq, 1u << 23), -EINVAL);
	/* 256 MiB do not fit into the home region. */
	cr_assert_eq(saker_cq_resize(a->cq, 1u << 22), -ENOMEM);
	post(a, RD_WRITE, 64, (uintptr_t)node[1].mem, saker_mr_stag(node[1].mr));
	teardown();
}

/* The clients end while the engine resizes their queues. */
Test(engine_flat, a_client_that_ends_during_a_resize_leaves_nothing)
{
	setup();
	connect_nodes();
	for (int i = 0; i < 2; i++) {
		struct shm_msg m = {.body.cq = {.cq = node[i].cq->obj.handle, .depth = 1024}};
		struct cl_call call = {.msg = &m};

		cr_assert_eq(cl_call_send(node[i].s, &call, SHM_CQ_RESIZE), 0);
		for (int k = 0; k < i; k++)
			turn(NULL);
		eng_detach(node[i].eng, node[i].client);
		cr_assert_eq(cl_call_wait(node[i].s, &call), -EPIPE);
	}
	teardown();
}

/* Puts memory without pages in the place of the node's buffer, and watches it. Returns its memfd.
 */
static int
make_poor(struct node *n, int *guard, bool *dead)
{
	int fd = memfd_create("pages", MFD_CLOEXEC);

	cr_assert_eq(ftruncate(fd, 65536), 0);
	cr_assert_eq(
		mmap(n->mem, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), n->mem);
	*guard = eng_guard(n->mem, 65536, dead);
	cr_assert_geq(*guard, 0);
	cr_assert_eq(eng_pages_start(n->eng->pages), 0);
	cr_assert_eq(eng_watch(*guard, 65536, 4096), 0);
	return fd;
}

static uint64_t
pages_of(int fd)
{
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512 / 4096;
}

static uint8_t
byte_of(int fd, off_t at)
{
	uint8_t v = 0;

	cr_assert_eq(pread(fd, &v, 1, at), 1);
	return v;
}

Test(engine_flat, missing_pages_are_fetched_by_a_thread_and_holes_are_filled_again)
{
	struct node *a = &node[0], *b = &node[1];
	bool dead = false;
	uint64_t *waits;
	int fd, guard;

	if (eng_watch_permitted() < 0)
		cr_skip_test("userfaultfd is not permitted");
	setup();
	connect_nodes();
	fd = make_poor(b, &guard, &dead);
	waits = &b->eng->stages[0]->counters[ENG_PAGE_WAIT];
	memset(a->mem, 0x22, 60000);
	post(a, RD_WRITE, 60000, (uintptr_t)b->mem, saker_mr_stag(b->mr));
	for (unsigned i = 0; i < TURNS && byte_of(fd, 59999) != 0x22; i++)
		turn(NULL);
	cr_assert_eq(byte_of(fd, 0), 0x22);
	cr_assert_eq(byte_of(fd, 59999), 0x22);
	cr_assert_gt(*waits, 0);
	cr_assert_eq(pages_of(fd), 15, "pages that nobody touched cost nothing");
	*waits = 0;
	cr_assert_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 65536), 0);
	post(a, RD_READ, 40000, (uintptr_t)b->mem, saker_mr_stag(b->mr));
	cr_assert(a->mem[0] == 0 && a->mem[39999] == 0 && a->mem[40000] == 0x22);
	cr_assert_gt(*waits, 0);
	cr_assert_eq(pages_of(fd), 10);
	post(b, RD_WRITE, 50000, (uintptr_t)a->mem, saker_mr_stag(a->mr));
	for (unsigned i = 0; i < TURNS && a->mem[49999] != 0; i++)
		turn(NULL);
	cr_assert_eq(a->mem[49999], 0);
	cr_assert_not(dead);
	eng_unguard(guard);
	close(fd);
	teardown();
}

/* A program on another core may post to a full queue as soon as it polls a completion. */
Test(engine_flat, a_completed_request_has_left_its_place_free)
{
	struct node *n = &node[0];
	struct saker_wr wr = {.opcode = RD_WRITE};
	const struct rd_wc done = {.wr_id = 5, .status = RD_SUCCESS};
	struct eng_stage *s;
	struct eng_qp *qp = NULL;
	struct rd_wr taken;

	setup();
	connect_nodes();
	s = n->eng->stages[0];
	for (uint32_t i = 0; i < s->nqps && (qp == NULL || qp->rd.qpn != saker_qp_num(n->qp)); i++)
		qp = s->qps[i];
	cr_assert_not_null(qp);
	while (saker_send_fits(n->qp, 1))
		cr_assert_eq(saker_post_send(n->qp, &wr, 1), 1);
	cr_assert(eng_sq_next(s, &qp->rd, &taken));
	cr_assert_not(saker_send_fits(n->qp, 1), "told before there was need");
	eng_complete(s, &qp->rd, false, &done);
	cr_assert_eq(saker_post_send(n->qp, &wr, 1), 1);
	cr_assert_eq(wait_wc(n).wr_id, 5);
	teardown();
}

/* The peer receives an STag with the Send behind the bind, writes through the window, invalidates
 * it, and is refused then. */
Test(engine_flat, a_type_2_window_from_bind_to_remote_invalidation)
{
	struct node *a = &node[0], *b = &node[1];
	struct rd_sge sge = {0};
	struct saker_wr wr = {.wr_id = 5, .opcode = RD_SEND_INV, .flags = RD_SIGNALED};
	struct saker_mw_bind bind = {.wr_id = 4,
		.flags = RD_SIGNALED,
		.key = 0x42,
		.len = 100,
		.access = RD_ACC_REMOTE_WRITE};
	struct saker_mw *mw;
	struct saker_mr *mr;
	struct rd_wc wc;

	setup();
	connect_nodes();
	cr_assert_eq(
		saker_mr_create(b->pd, b->mem, 65536, RD_ACC_LOCAL_WRITE | RD_ACC_MW_BIND, &mr), 0);
	cr_assert_eq(saker_mw_alloc(b->pd, RD_MW_TYPE_2, &mw), 0, "%s", saker_error());
	cr_assert_eq(saker_post_recv(b->qp, &(struct saker_wr){.wr_id = 6, .sge = &sge}, 1), 1);
	bind.mr = mr;
	bind.addr = (uintptr_t)b->mem + 500;
	cr_assert_eq(saker_mw_bind(b->qp, mw, &bind), 0);
	wc = wait_wc(b);
	cr_assert(wc.wr_id == 4 && wc.opcode == RD_BIND_MW && wc.status == RD_SUCCESS);
	cr_assert_eq(saker_mw_stag(mw) & 0xff, 0x42);
	cr_assert_eq(saker_mr_destroy(mr), -EBUSY);
	cr_assert_not_null(strstr(saker_error(), "windows bound"), "%s", saker_error());
	memset(a->mem, 0x44, 100);
	post(a, RD_WRITE, 100, bind.addr, saker_mw_stag(mw));
	wr.imm = saker_mw_stag(mw);
	cr_assert_eq(saker_post_send(a->qp, &wr, 1), 1);
	cr_assert_eq(wait_wc(a).status, RD_SUCCESS);
	wc = wait_wc(b);
	cr_assert(wc.wr_id == 6 && (wc.flags & RD_WC_INV) && wc.inv_stag == saker_mw_stag(mw));
	cr_assert(b->mem[500] == 0x44 && b->mem[599] == 0x44);
	cr_assert(b->mem[499] == 0 && b->mem[600] == 0);
	cr_assert_eq(saker_mr_destroy(mr), 0, "%s", saker_error());
	memset(a->mem, 0x55, 100);
	post(a, RD_WRITE, 100, bind.addr, saker_mw_stag(mw));
	cr_assert_eq(wait_event(b, SAKER_EV_QP_FATAL).async.code, IW_DDP_T_STAG);
	cr_assert_eq(b->mem[500], 0x44);
	teardown();
}

/* One window is bound repeatedly, with Reads of the peer in between, and the client ends while it
 * is bound. Each bind except the first ends the previous one, and waits for the other stages. */
static void
bind_anew(void)
{
	struct node *a = &node[0], *b = &node[1];
	struct saker_mw_bind bind = {.flags = RD_SIGNALED, .len = 64, .access = RD_ACC_REMOTE_READ};
	struct saker_mw *mw;
	struct saker_mr *mr;

	setup();
	connect_nodes();
	cr_assert_eq(saker_mr_create(b->pd, b->mem, 65536, RD_ACC_MW_BIND, &mr), 0);
	cr_assert_eq(saker_mw_alloc(b->pd, RD_MW_TYPE_1, &mw), 0, "%s", saker_error());
	bind.mr = mr;
	/* A responder may not send before the first FPDU of the initiator. */
	post(a, RD_READ, 64, (uintptr_t)b->mem, saker_mr_stag(b->mr));
	for (unsigned i = 0; i < 300; i++) {
		b->mem[64 * i] = (uint8_t)i;
		bind.addr = (uintptr_t)b->mem + 64 * i;
		cr_assert_eq(saker_mw_bind(b->qp, mw, &bind), 0);
		cr_assert_eq(wait_wc(b).status, RD_SUCCESS, "bind %u", i);
		post(a, RD_READ, 64, bind.addr, saker_mw_stag(mw));
		cr_assert_eq(a->mem[0], (uint8_t)i);
	}
	teardown();
}

Test(engine_flat, a_type_1_window_is_bound_anew_until_its_client_dies)
{
	bind_anew();
}

Test(engine_flat, a_type_1_window_is_bound_anew_with_two_engine_stages)
{
	stages = 2;
	bind_anew();
}

static uint32_t
pick(uint32_t n)
{
	static uint64_t x = 0x9e3779b97f4a7c15ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 32) % n;
}

/* Returns a random request with the STag of the region [0], of a window, or of another client
 * [nstags - 1], with any range and rights. Each field is mostly such that the request could
 * succeed. */
static struct saker_wr
wild_request(const struct node *n, const uint32_t *stag, unsigned nstags)
{
	struct saker_wr wr = {.flags = RD_SIGNALED, .opcode = RD_BIND_MW};

	wr.rkey = (stag[pick(8) ? 1 + pick(nstags - 2) : pick(nstags)] & ~0xffu) | pick(256);
	wr.imm = stag[pick(8) ? 0 : pick(nstags)] ^ (pick(32) ? 0 : 1u << pick(32));
	wr.remote_addr =
		(uintptr_t)n->mem + pick(4) * 0x4000ull - (pick(32) ? 0 : 1ull << pick(64));
	wr.data = pick(16) ? pick(0x5000) : (uint64_t)pick(~0u) << pick(33);
	wr.compare = pick(32) ? pick(8) * 2 : 1ull << pick(64);
	if (pick(8) == 0) {
		wr.opcode = RD_LOCAL_INV;
		wr.imm = stag[pick(nstags)];
	}
	return wr;
}

/* Posts such requests until the QP fails. Returns how many binds succeeded. */
static unsigned
wild_life(const struct node *n, const uint32_t *stag, unsigned nstags)
{
	unsigned done = 0;

	for (;;) {
		struct saker_wr wr = wild_request(n, stag, nstags);
		struct rd_wc wc;

		cr_assert_eq(saker_post_send(n->qp, &wr, 1), 1);
		wc = wait_wc(&node[0]);
		if (wc.status == RD_SUCCESS) {
			done += wr.opcode == RD_BIND_MW;
			continue;
		}
		cr_assert_eq(wc.status, wr.opcode == RD_BIND_MW ? RD_MW_BIND_ERR : RD_LOC_PROT_ERR);
		return done;
	}
}

/* The client of node 0 posts arbitrary requests. It has the STag of another client of its engine,
 * whose region permits binds. */
Test(engine_flat, wild_binds_and_invalidations_harm_no_other_client)
{
	struct node *a = &node[0], neighbour = {0};
	struct saker_mr *own, *theirs;
	struct saker_mw *mw[4];
	unsigned done = 0;
	uint32_t stag[6];

	setup();
	neighbour.eng = a->eng;
	attach(&neighbour);
	cr_assert_eq(saker_mr_create(neighbour.pd, neighbour.mem, 4096,
			     RD_ACC_LOCAL_WRITE | RD_ACC_MW_BIND, &theirs),
		0);
	cr_assert_eq(
		saker_mr_create(a->pd, a->mem, 65536, RD_ACC_LOCAL_WRITE | RD_ACC_MW_BIND, &own),
		0);
	stag[0] = saker_mr_stag(own);
	stag[5] = saker_mr_stag(theirs);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(saker_mw_alloc(a->pd, i % 2 ? RD_MW_TYPE_1 : RD_MW_TYPE_2, &mw[i]), 0);
		stag[1 + i] = saker_mw_stag(mw[i]);
	}
	for (unsigned i = 0; i < 40; i++) {
		struct saker_event ev;

		connect_nodes();
		done += wild_life(a, stag, 6);
		cr_assert_eq(saker_qp_destroy(a->qp), 0);
		cr_assert_eq(saker_qp_destroy(node[1].qp), 0);
		for (unsigned k = 0; k < 2; k++)
			while (saker_event(node[k].s, &ev) == 1)
				;
	}
	cr_assert_gt(done, 0);
	cr_assert_eq(saker_mr_destroy(theirs), 0, "%s", saker_error());
	saker_close(neighbour.s);
	eng_detach(neighbour.eng, neighbour.client);
	wait_gone(&neighbour);
	free(neighbour.home);
	teardown();
}

Test(engine_flat, disconnect_reaches_both_sides)
{
	setup();
	connect_nodes();
	cr_assert_eq(saker_disconnect(node[0].qp, false), 0, "%s", saker_error());
	wait_event(&node[0], SAKER_EV_DISCONNECTED);
	wait_event(&node[1], SAKER_EV_DISCONNECTED);
	teardown();
}

Test(engine_flat, the_peer_of_a_dead_client_receives_an_event)
{
	setup();
	connect_nodes();
	cr_assert_eq(eng_detach(node[0].eng, node[0].client), 0);
	wait_gone(&node[0]);
	cr_assert_eq(wait_event(&node[1], SAKER_EV_DISCONNECTED).status, 0);
	teardown();
}

Test(engine_flat, a_port_without_listener_is_unreachable_and_may_be_tried_again)
{
	struct saker_conn_param p = {.crc = 2, .markers = 2};

	setup();
	make_qp(&node[0]);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(saker_connect(node[0].qp, NULL, &node[1].addr, PORT, &p), 0, "%s",
			saker_error());
		cr_assert_eq(wait_event(&node[0], SAKER_EV_UNREACHABLE).status, -ECONNREFUSED);
	}
	teardown();
}

Test(engine_flat, a_listener_of_one_family_leaves_the_port_to_the_other)
{
	static const uint8_t zero[4];
	const struct sk_addr any4 = sk_addr_v4(zero);
	struct saker_conn_param p = {.crc = 2, .markers = 2};
	struct saker_listener *v4, *v6, *l;

	setup();
	make_qp(&node[0]);
	cr_assert_eq(saker_listen_v6only(node[1].s, SAKER_SPACE_TCP, PORT, 4, NULL, NULL, &v6), 0,
		"%s", saker_error());
	/* The peer's address is IPv4. */
	cr_assert_eq(
		saker_connect(node[0].qp, NULL, &node[1].addr, PORT, &p), 0, "%s", saker_error());
	cr_assert_eq(wait_event(&node[0], SAKER_EV_UNREACHABLE).status, -ECONNREFUSED);
	cr_assert_eq(saker_listen(node[1].s, NULL, PORT, 4, NULL, &l), -EADDRINUSE);
	cr_assert_eq(saker_listen(node[1].s, &any4, PORT, 4, NULL, &v4), 0, "%s", saker_error());
	cr_assert_eq(saker_listen(node[1].s, &node[1].addr, PORT, 4, NULL, &l), -EADDRINUSE);
	cr_assert_eq(
		saker_connect(node[0].qp, NULL, &node[1].addr, PORT, &p), 0, "%s", saker_error());
	cr_assert_eq(wait_event(&node[1], SAKER_EV_CONNECT_REQUEST).listener, v4);
	teardown();
}

Test(engine_flat, a_reject_carries_its_private_data)
{
	struct saker_conn_param p = {.crc = 2, .markers = 2};
	struct saker_listener *l;
	struct saker_event ev;

	setup();
	make_qp(&node[0]);
	cr_assert_eq(
		saker_listen(node[1].s, &node[1].addr, PORT, 4, NULL, &l), 0, "%s", saker_error());
	cr_assert_eq(
		saker_connect(node[0].qp, NULL, &node[1].addr, PORT, &p), 0, "%s", saker_error());
	ev = wait_event(&node[1], SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(saker_reject(node[1].s, ev.request, "no", 2), 0, "%s", saker_error());
	ev = wait_event(&node[0], SAKER_EV_REJECTED);
	cr_assert_eq(ev.cm.private_len, 2);
	cr_assert_arr_eq(ev.cm.private_data, "no", 2);
	teardown();
}
