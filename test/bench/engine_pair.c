/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The speed of the engine: two instances on two lcores, connected by rings, each with a client on
 * its own lcore. The benchmark prints half the round trip of a small Write, the same of a raw frame
 * over the same kind of port, the rate of small Writes, and the bandwidth of large ones.
 *
 *	bench_engine_pair [EAL options, two lcores] -- lat|rate|floor|solo|sololat|turns|idle|
 *		connect [size [mtu [depth [idle QPs [write|read|fetch_add|pong [iwarp|falcon
 *		[ms]]]]]]]
 *
 * ms: the duration of solo and turns, on their virtual clock (20).
 * solo: one thread does the work of "rate" for both sides, and the result is processor time, which
 * other programs on the machine disturb least. rate and solo also measure Reads and FetchAdds (8
 * bytes). With solo, "pong" is the ping-pong of "lat" instead.
 * turns: as solo, but the "idle" QPs take turns, with one message in each. `depth` messages are in
 * flight on all QPs together, and each has a completion.
 * connect: one thread creates as many QPs at each side as "idle QPs" states, and connects them,
 * WINDOW at a time. The results are processor time of both sides and both clients.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_ring.h>

#include <saker/saker.h>

#include "../../lib/base/hist.h"
#include "../../lib/base/mem.h"
#include "../../lib/engine/common/instance.h"
#include "../../lib/wire/falcon.h"

#define HOME_SIZE (160u << 20)
#define MEM_SIZE  (32u << 20)
#define BUF_SIZE  (8u << 20)
#define PORT      7000
#define RUN_NS    1000000000ull
#define WINDOW    32  /* connect: connections under way at a time */
#define SOLO_STEP 200 /* solo: ns between two reads of the clock */
/* The same of turns: with it, each QP has about 500 ns, as on a processor. */
#define TURNS_STEP  3200
#define TURNS_DEPTH 16 /* of a send queue */

static bool solo, pong, rounds;

/* Returns the time in ns. With solo, each call advances a virtual clock, so that counts of
 * instructions are the same in each run. */
static uint64_t
bench_clock(void)
{
	static uint64_t now;

	if (!solo)
		return eng_clock();
	now = now == 0 ? eng_clock() : now + (rounds ? TURNS_STEP : SOLO_STEP);
	return now;
}

static struct side {
	struct eng *e;
	struct saker *s;
	struct saker_pd *pd;
	struct saker_cq *cq;
	struct saker_qp *qp;
	struct saker_mr *mr;
	uint8_t *mem;
	int client;
	uint16_t port;
} side[2];

static unsigned size = 64, mtu = 1500, depth = 256, idle_qps;
static uint8_t op = RD_WRITE; /* operation of rate and solo */
static enum saker_transport transport = SAKER_IWARP;
static uint64_t solo_ns = 20000000; /* solo: the time of a run on the virtual clock */
static volatile bool stop;
static struct sk_hist hist;
static struct saker_qp **round_qp; /* turns: [round_n], those of side 0 */
static unsigned round_n, round_next;

static void
die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, saker_error());
	exit(1);
}

static void
turn(void *arg)
{
	for (int i = 0; i < 2; i++)
		if (side[i].e != NULL)
			eng_poll(side[i].e, 0, bench_clock());
}

static void
make_ports(const char *kind, uint16_t port[2])
{
	struct rte_ring *r[2];
	char name[32];

	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s_ring%d", kind, i);
		r[i] = rte_ring_create(name, 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	}
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s%d", kind, i);
		port[i] = (uint16_t)rte_eth_from_rings(name, &r[i], 1, &r[!i], 1, 0);
	}
}

static void
start_side(int i)
{
	struct side *n = &side[i];
	struct eng_config cfg;
	char err[256];
	void *home = sk_mem_alloc(HOME_SIZE);

	eng_config_default(&cfg);
	cfg.nports = cfg.nifs = 1;
	cfg.ports[0] =
		(struct eng_port_config){.port_id = n->port, .mtu = mtu, .rxd = 1024, .txd = 1024};
	cfg.ifs[0] = (struct eng_if_config){.vlan = ETH_NO_VLAN, .prefix = 24};
	sk_addr_parse(i == 0 ? "10.0.0.1" : "10.0.0.2", &cfg.ifs[0].addr);
	cfg.falcon.enabled = transport == SAKER_FALCON;
	cfg.falcon.mtu = 8192;
	cfg.limits.user_min = 0; /* the only user may have all QPs */
	n->e = eng_create(&cfg, err, sizeof(err));
	if (n->e == NULL) {
		fprintf(stderr, "%s\n", err);
		exit(1);
	}
	n->e->clock = bench_clock;
	n->client = eng_attach_flat(n->e, "bench", home, HOME_SIZE, MEM_SIZE);
	if (n->client < 0 || saker_open_flat(home, HOME_SIZE, turn, NULL, &n->s) != 0)
		die("attach");
	if (saker_pd_create(n->s, &n->pd) != 0 || saker_cq_create(n->s, 4096, n, &n->cq) != 0)
		die("objects");
	n->mem = saker_alloc(n->s, BUF_SIZE);
	if (n->mem == NULL || saker_mr_create(n->pd, n->mem, BUF_SIZE,
				      RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE |
					      RD_ACC_REMOTE_READ | RD_ACC_REMOTE_ATOMIC,
				      &n->mr) != 0)
		die("memory");
}

static void
make_qp(struct side *n, unsigned sq_depth)
{
	struct saker_qp_attr attr = {.send_cq = n->cq,
		.recv_cq = n->cq,
		.sq_depth = sq_depth,
		.rq_depth = 16,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline = 64,
		.transport = transport,
		.user = n};

	if (saker_qp_create(n->pd, &attr, &n->qp) != 0)
		die("qp");
}

static void
wait_event(struct side *n, enum saker_event_type type, struct saker_event *ev)
{
	while (saker_event(n->s, ev) == 0)
		turn(NULL);
	if (ev->type != type) {
		fprintf(stderr, "event %d, status %d\n", ev->type, ev->status);
		exit(1);
	}
}

static void
connect_sides(unsigned sq_depth)
{
	struct saker_conn_param param = {.ird = 128, .ord = 128, .crc = 2, .markers = 2};
	static struct saker_listener *l;
	struct saker_event ev;
	struct sk_addr to;

	make_qp(&side[0], sq_depth);
	make_qp(&side[1], sq_depth);
	sk_addr_parse("10.0.0.2", &to);
	if (l == NULL && saker_listen(side[1].s, NULL, PORT, 4, NULL, &l) != 0)
		die("listen");
	if (saker_connect(side[0].qp, NULL, &to, PORT, &param) != 0)
		die("connect");
	wait_event(&side[1], SAKER_EV_CONNECT_REQUEST, &ev);
	if (saker_accept(side[1].s, ev.request, side[1].qp, &param) != 0)
		die("accept");
	wait_event(&side[0], SAKER_EV_ESTABLISHED, &ev);
	wait_event(&side[1], SAKER_EV_ESTABLISHED, &ev);
}

static void
post_write(struct side *n, const struct side *to, uint32_t len, bool signaled)
{
	struct rd_sge sge = {.addr = (uintptr_t)n->mem, .len = len, .lkey = saker_mr_stag(n->mr)};
	struct saker_wr wr = {.opcode = op,
		.flags = signaled ? RD_SIGNALED : 0,
		.nsge = 1,
		.rkey = saker_mr_stag(to->mr),
		.remote_addr = (uintptr_t)to->mem + BUF_SIZE / 2,
		.data = 1,
		.sge = &sge};

	while (saker_post_send(n->qp, &wr, 1) != 1)
		eng_poll(n->e, 0, bench_clock());
}

static void
drain(struct side *n)
{
	struct rd_wc wc[16];
	int k = saker_cq_poll(n->cq, wc, 16);

	for (int i = 0; i < k; i++)
		if (wc[i].status != RD_SUCCESS && !stop) {
			fprintf(stderr, "completion status %u, %u\n", wc[i].status,
				wc[i].vendor_err);
			exit(1);
		}
}

/* Waits until the last byte that the peer writes is `v`. */
static bool
await(struct side *n, uint8_t v)
{
	const uint8_t *at = n->mem + BUF_SIZE / 2 + size - 1;

	while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != v) {
		eng_poll(n->e, 0, bench_clock());
		if (stop)
			return false;
	}
	return true;
}

static int
echo(void *arg)
{
	uint8_t v = 0;

	for (unsigned i = 0; await(&side[1], ++v); i++) {
		side[1].mem[size - 1] = v;
		post_write(&side[1], &side[0], size, i % 64 == 0);
		if (i % 64 == 32)
			drain(&side[1]);
	}
	return 0;
}

static void
run_lat(void)
{
	uint64_t end = bench_clock() + RUN_NS, t0;
	uint8_t v = 0;

	for (unsigned i = 0; bench_clock() < end; i++) {
		t0 = bench_clock();
		side[0].mem[size - 1] = ++v;
		post_write(&side[0], &side[1], size, i % 64 == 0);
		await(&side[0], v);
		if (i > 1000)
			sk_hist_add(&hist, (bench_clock() - t0) / 2);
		if (i % 64 == 32)
			drain(&side[0]);
	}
	stop = true;
	printf("lat  %u B, mtu %u: p50 %lu ns, p99 %lu ns, p99.9 %lu ns\n", size, mtu,
		sk_hist_quantile(&hist, 0.5), sk_hist_quantile(&hist, 0.99),
		sk_hist_quantile(&hist, 0.999));
}

static int
serve(void *arg)
{
	while (!stop)
		eng_poll(side[1].e, 0, bench_clock());
	return 0;
}

static uint64_t
cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A turn of each side is a function of its own, so that a profiler shows them separately. */
static __attribute__((noinline)) unsigned
sender_turn(unsigned out, unsigned batch)
{
	struct rd_wc wc[64];

	while (out + batch <= depth) {
		for (unsigned i = 0; i < batch; i++)
			post_write(&side[0], &side[1], size, i == batch - 1);
		out += batch;
	}
	eng_poll(side[0].e, 0, bench_clock());
	return out - (unsigned)saker_cq_poll(side[0].cq, wc, 64) * batch;
}

static __attribute__((noinline)) void
receiver_turn(void)
{
	eng_poll(side[1].e, 0, bench_clock());
}

static void
run_rate(void)
{
	uint64_t begin = bench_clock(), end = begin + (solo ? solo_ns : RUN_NS), posted = 0, done,
		 ns, cpu = cpu_ns();
	unsigned out = 0, batch = SK_MIN(16u, depth / 2);

	while (bench_clock() < end) {
		posted += (depth - out) / batch * batch;
		out = sender_turn(out, batch);
		if (solo)
			receiver_turn();
	}
	ns = solo ? cpu_ns() - cpu : bench_clock() - begin;
	stop = true;
	done = posted - out;
	printf("rate %u B, mtu %u: %.3f Mop/s, %.2f Gb/s, %lu done\n", size, mtu,
		(double)done * 1e3 / (double)ns, (double)done * size * 8 / (double)ns, done);
}

/* Connects the QPs that take turns. */
static void
make_round(void)
{
	round_n = SK_MAX(idle_qps, 1u);
	round_qp = calloc(round_n, sizeof(round_qp[0]));
	if (round_qp == NULL)
		die("memory");
	for (unsigned i = 0; i < round_n; i++) {
		connect_sides(TURNS_DEPTH);
		round_qp[i] = side[0].qp;
	}
}

/* Posts a message to the next QP. */
static void
post_next(void)
{
	side[0].qp = round_qp[round_next];
	round_next = (round_next + 1) % round_n;
	post_write(&side[0], &side[1], size, true);
}

static __attribute__((noinline)) unsigned
visitor_turn(unsigned out)
{
	struct rd_wc wc[64];

	for (; out < depth; out++)
		post_next();
	eng_poll(side[0].e, 0, bench_clock());
	return out - (unsigned)saker_cq_poll(side[0].cq, wc, 64);
}

/* Returns the number of messages that were completed until `end`, a time of the virtual clock. */
static __attribute__((noinline)) uint64_t
measured_turns(uint64_t end)
{
	unsigned out = depth;
	uint64_t done = 0;

	for (; bench_clock() < end; done += depth - out) {
		out = visitor_turn(out);
		receiver_turn();
	}
	return done;
}

static void
run_turns(void)
{
	uint64_t done, cpu, ns;
	unsigned out = 0;

	/* The first rounds make the queues of each QP, and a client clears each entry before its
	 * first use. They are not measured. */
	for (uint64_t begun = 0; begun < (TURNS_DEPTH + 1) * round_n; begun += depth - out) {
		out = visitor_turn(out);
		receiver_turn();
	}
	for (; out < depth; out++)
		post_next();
	cpu = cpu_ns();
	done = measured_turns(bench_clock() + solo_ns);
	ns = cpu_ns() - cpu;
	stop = true;
	printf("turns %u QPs, %u B, mtu %u: %.3f Mop/s, %lu done\n", round_n, size, mtu,
		(double)done * 1e3 / (double)ns, done);
}

/* The part of one side in a message of the ping-pong: the client of side `i` posts a Write of the
 * value `v`, a turn of its engine sends it, and turns of the peer's engine run until the peer's
 * client finds the value. */
static __attribute__((noinline)) unsigned
pong_turn(int i, uint8_t v, bool signaled)
{
	const uint8_t *at = side[!i].mem + BUF_SIZE / 2 + size - 1;
	unsigned turns = 0;

	side[i].mem[size - 1] = v;
	post_write(&side[i], &side[!i], size, signaled);
	eng_poll(side[i].e, 0, bench_clock());
	do {
		eng_poll(side[!i].e, 0, bench_clock());
		turns++;
	} while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != v);
	return turns;
}

static void
run_pong(void)
{
	uint64_t end = bench_clock() + solo_ns, cpu = cpu_ns(), turns = 0;
	unsigned n = 0;

	for (; bench_clock() < end; n += 2) {
		for (int i = 0; i < 2; i++)
			turns += pong_turn(i, (uint8_t)(n / 2 + 1), n % 128 == 0);
		if (n % 128 == 64)
			for (int i = 0; i < 2; i++)
				drain(&side[i]);
	}
	printf("pong %u B, mtu %u: %lu ns a message, %.2f turns to receive it, %u done\n", size,
		mtu, (cpu_ns() - cpu) / n, (double)turns / n, n);
}

static void
run_sololat(void)
{
	uint64_t cpu = cpu_ns(), n = 300000;
	const uint8_t *at = side[1].mem + BUF_SIZE / 2 + size - 1;
	uint64_t turns = 0;

	for (unsigned i = 0; i < n; i++) {
		side[0].mem[size - 1] = (uint8_t)i;
		post_write(&side[0], &side[1], size, i % 64 == 0);
		eng_poll(side[0].e, 0, bench_clock());
		do {
			eng_poll(side[1].e, 0, bench_clock());
			turns++;
		} while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != (uint8_t)i);
		if (i % 64 == 32)
			drain(&side[0]);
	}
	printf("sololat %u B: %lu ns, %.2f turns\n", size, (cpu_ns() - cpu) / n, (double)turns / n);
}

/* Handles the events of both sides. Returns how many connections they established at side 0. */
static unsigned
connect_events(struct saker_qp **qp, const struct saker_conn_param *param)
{
	struct saker_event ev;
	unsigned up = 0, n;

	for (int i = 0; i < 2; i++) {
		while (saker_event(side[i].s, &ev) == 1) {
			if (ev.type == SAKER_EV_CONNECT_REQUEST) {
				memcpy(&n, ev.cm.private_data, sizeof(n));
				if (saker_accept(side[i].s, ev.request, qp[n], param) != 0)
					die("accept");
			} else if (ev.type != SAKER_EV_ESTABLISHED) {
				fprintf(stderr, "event %d, status %d\n", ev.type, ev.status);
				exit(1);
			}
			up += ev.type == SAKER_EV_ESTABLISHED && i == 0;
		}
	}
	return up;
}

static __attribute__((noinline)) void
connect_many(struct saker_qp **from, struct saker_qp **to, unsigned n)
{
	struct saker_conn_param param = {
		.ird = 128, .ord = 128, .crc = 2, .markers = 2, .no_wait = true};
	unsigned started = 0, up = 0;
	struct sk_addr addr;

	sk_addr_parse("10.0.0.2", &addr);
	param.private_data = &started;
	param.private_len = sizeof(started);
	while (up < n) {
		for (; started < n && started - up < WINDOW; started++)
			if (saker_connect(from[started], NULL, &addr, PORT, &param) != 0)
				die("connect");
		turn(NULL);
		up += connect_events(to, &param);
	}
}

static void
run_connect(void)
{
	struct saker_qp_attr attr = {.sq_depth = 16,
		.rq_depth = 16,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.transport = transport};
	unsigned n = SK_MAX(idle_qps, 1u);
	struct saker_listener *l;
	struct saker_qp **qp[2];
	uint64_t begin = cpu_ns(), created;

	for (int i = 0; i < 2; i++) {
		qp[i] = calloc(n, sizeof(struct saker_qp *));
		attr.send_cq = attr.recv_cq = side[i].cq;
		if (saker_qp_create_many(side[i].pd, &attr, n, qp[i]) != (int)n)
			die("qp");
	}
	created = cpu_ns();
	if (saker_listen(side[1].s, NULL, PORT, 4 * WINDOW, NULL, &l) != 0)
		die("listen");
	connect_many(qp[0], qp[1], n);
	printf("connect %u: %.2f us to create two QPs, %.2f us to connect them\n", n,
		(double)(created - begin) / 1e3 / n, (double)(cpu_ns() - created) / 1e3 / n);
	for (int i = 0; i < 2; i++)
		free(qp[i]);
}

static void
run_idle(void)
{
	uint64_t cpu = cpu_ns(), n = 10000000;

	for (unsigned i = 0; i < n; i++)
		eng_poll(side[0].e, 0, bench_clock());
	printf("idle: %.1f ns a turn\n", (double)(cpu_ns() - cpu) / (double)n);
}

/* ---- The floor: the round trip of a raw frame with a payload ---- */

static struct rte_mempool *pool;
static uint16_t floor_port[2];

static void
floor_send(int i, const uint8_t *from)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(size + 100));

	memcpy(at + 100, from, size);
	while (rte_eth_tx_burst(floor_port[i], 0, &m, 1) == 0)
		;
}

static bool
floor_await(int i, uint8_t *to)
{
	struct rte_mbuf *m;

	while (rte_eth_rx_burst(floor_port[i], 0, &m, 1) == 0)
		if (stop)
			return false;
	memcpy(to, rte_pktmbuf_mtod_offset(m, uint8_t *, 100), size);
	rte_pktmbuf_free(m);
	return true;
}

static int
floor_echo(void *arg)
{
	static uint8_t buf[65536];

	while (floor_await(1, buf))
		floor_send(1, buf);
	return 0;
}

static void
run_floor(void)
{
	static uint8_t buf[65536];
	uint64_t end = bench_clock() + RUN_NS, t0;

	while (bench_clock() < end) {
		t0 = bench_clock();
		floor_send(0, buf);
		floor_await(0, buf);
		sk_hist_add(&hist, (bench_clock() - t0) / 2);
	}
	stop = true;
	printf("floor %u B: p50 %lu ns, p99 %lu ns\n", size, sk_hist_quantile(&hist, 0.5),
		sk_hist_quantile(&hist, 0.99));
}

static void
start_floor(void)
{
	struct rte_eth_conf conf = {0};

	make_ports("floor", floor_port);
	pool = rte_pktmbuf_pool_create("floor", 4096, 256, 64, 2176, SOCKET_ID_ANY);
	for (int i = 0; i < 2; i++) {
		rte_eth_dev_configure(floor_port[i], 1, 1, &conf);
		rte_eth_rx_queue_setup(floor_port[i], 0, 1024, 0, NULL, pool);
		rte_eth_tx_queue_setup(floor_port[i], 0, 1024, 0, NULL);
		rte_eth_dev_start(floor_port[i]);
	}
}

static void
show_counter(void *arg, const char *layer, const char *name, enum sk_severity sev, const char *help,
	uint64_t value)
{
	if (value != 0)
		printf("  side %d: %s %s %lu\n", *(int *)arg, layer, name, value);
}

/* The modes: what the main lcore runs, and what the other lcore runs unless one thread does all. */
static const struct mode {
	const char *name;
	void (*run)(void);
	lcore_function_t *other;
	bool solo;
} modes[] = {
	{"lat", run_lat, echo, false},
	{"rate", run_rate, serve, false},
	{"floor", run_floor, floor_echo, false},
	{"solo", run_rate, NULL, true},
	{"sololat", run_sololat, NULL, true},
	{"turns", run_turns, NULL, true},
	{"idle", run_idle, NULL, true},
	{"connect", run_connect, NULL, true},
};

static const struct mode *
mode_of(const char *name)
{
	for (size_t i = 0; i < SK_ARRAY_LEN(modes); i++)
		if (strcmp(modes[i].name, name) == 0)
			return &modes[i];
	return NULL;
}

/* Reads the arguments behind the mode: `argv` ends with NULL. */
static void
arguments(char **argv)
{
	unsigned *const numbers[] = {&size, &mtu, &depth, &idle_qps};

	for (size_t i = 0; i < SK_ARRAY_LEN(numbers); i++) {
		if (*argv == NULL)
			return;
		*numbers[i] = (unsigned)atoi(*argv++);
	}
	if (*argv == NULL)
		return;
	pong = strcmp(*argv, "pong") == 0;
	if (!pong && strcmp(*argv, "write") != 0)
		op = strcmp(*argv, "read") == 0 ? RD_READ : RD_FETCH_ADD;
	if (*++argv == NULL)
		return;
	if (strcmp(*argv, "falcon") == 0)
		transport = SAKER_FALCON;
	if (*++argv != NULL)
		solo_ns = strtoull(*argv, NULL, 10) * 1000000;
}

/* Starts both sides, and connects the QPs of the mode. The virtual clock begins behind that, except
 * for "connect", which measures it. */
static void
start_sides(const struct mode *m)
{
	uint16_t port[2];

	make_ports("wire", port);
	side[0].port = port[0];
	side[1].port = port[1];
	start_side(0);
	start_side(1);
	solo = m->run == run_connect;
	rounds = m->run == run_turns;
	if (rounds)
		make_round();
	for (unsigned i = 0; i < idle_qps && !solo && !rounds; i++)
		connect_sides(16);
	if (!solo)
		connect_sides(pong ? SK_MAX(depth, 256u) : depth);
	solo = m->solo;
}

static void
show_sides(void)
{
	struct eng_totals t;

	eng_totals(side[0].e, &t);
	printf("%u QPs; an idle one: %zu private and %zu shared bytes\n", t.qps,
		t.private_bytes_per_qp, t.shared_bytes_per_qp);
	for (int i = 0; i < 2; i++)
		eng_counters(side[i].e, show_counter, &i);
}

int
main(int argc, char **argv)
{
	int n = rte_eal_init(argc, argv);
	const struct mode *m;

	if (n < 0 || n + 1 >= argc || rte_lcore_count() < 2)
		return 1;
	m = mode_of(argv[n + 1]);
	if (m == NULL) {
		fprintf(stderr, "no mode '%s'\n", argv[n + 1]);
		return 1;
	}
	arguments(argv + n + 2);
	sk_hist_init(&hist);
	if (m->run == run_floor)
		start_floor();
	else
		start_sides(m);
	if (m->other != NULL)
		rte_eal_remote_launch(m->other, NULL, rte_get_next_lcore(-1, 1, 0));
	if (m->run == run_rate && solo && pong)
		run_pong();
	else
		m->run();
	rte_eal_mp_wait_lcore();
	if (m->run != run_floor)
		show_sides();
	return 0;
}
