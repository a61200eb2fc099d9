/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures the engine's cost of a client behind a machine's shared memory, beside that of a client
 * at the Unix socket. A client of the first of two instances, which are joined by rings or by the
 * switch, sends small Writes to a client of the second. This thread runs all turns of the measured
 * part; measured_turn() contains the turns of the first instance only, for callgrind:
 *
 *	valgrind --tool=callgrind --toggle-collect=measured_turn
 *		bench_machine [EAL options] -- socket|device|tenant
 *
 * socket: a client at the Unix socket; device: a client of the same instance behind a machine's
 * memory; tenant: a machine with an engine of its own, whose frames pass through the switch, so
 * that measured_turn() contains the switch and both engines.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <saker/saker.h>

#include "../../drivers/gateway/gateway.h"
#include "../../lib/wire/wire.h"

#define PORT    7000
#define WRITES  20000u
#define DEPTH   32u
#define SIZE    64u
#define FAR_MEM (1u << 20)
#define FAR_ALL (16u << 20)

static struct eng *eng[2];
static struct gw *gw;
static struct gw_bar *bar;
static bool stop; /* atomic */

static void
die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, saker_error());
	exit(1);
}

void measured_turn(void);

__attribute__((noinline)) void
measured_turn(void)
{
	eng_poll(eng[0], 0, eng_clock());
}

static void *
attend(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		if (eng[1] != NULL)
			eng_poll(eng[1], 0, eng_clock());
		eng_poll(eng[0], 0, eng_clock());
		if (bar != NULL)
			gw_bar_poll(bar, eng_clock());
		if (gw != NULL)
			gw_tend(gw, eng_clock());
	}
	return NULL;
}

static void
config(struct eng_config *c, uint16_t port, const char *addr)
{
	eng_config_default(c);
	c->nports = c->nifs = 1;
	c->ports[0] = (struct eng_port_config){.port_id = port, .mtu = 1500};
	c->ifs[0] = (struct eng_if_config){.vlan = ETH_NO_VLAN, .prefix = 24};
	sk_addr_parse(addr, &c->ifs[0].addr);
	c->limits.qps = c->limits.conns = c->limits.client_qps = 16;
	c->limits.cqs = c->limits.client_cqs = 16;
	c->limits.client_home_bytes = 4u << 20;
}

static void
engines_pair(void)
{
	struct rte_ring *r[2];
	char err[256], name[16];

	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "wire%d", i);
		r[i] = rte_ring_create(name, 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	}
	for (int i = 0; i < 2; i++) {
		static struct eng_config c;
		int port = rte_eth_from_rings(i == 0 ? "a" : "b", &r[i], 1, &r[!i], 1, 0);

		config(&c, (uint16_t)port, i == 0 ? "10.0.0.1" : "10.0.0.2");
		eng[i] = eng_create(&c, err, sizeof(err));
		if (eng[i] == NULL)
			die(err);
	}
}

/* The host's engine is the remote one here, and its loop runs the machine's engine. */
static void
engine_and_machine(const char *path)
{
	static struct eng_config c;
	const struct gw_config gc = {.base = &c, .uplink = -1, .mtu = 1500, .mbufs = 2048};
	char err[256], line[256];
	struct cmd_out *out;

	config(&c, 0, "10.0.0.2");
	gw = gw_create(&gc, err, sizeof(err));
	if (gw == NULL)
		die(err);
	c.ports[0].port_id = gw_host_port(gw, c.ports[0].mac);
	gw_hook(gw, &c);
	eng[0] = eng_create(&c, err, sizeof(err));
	snprintf(line, sizeof(line), "m path=%s size=16m slots=1 ip=10.0.0.1/24 qps=16", path);
	out = cmd_out_new();
	if (eng[0] == NULL || out == NULL || gw_command_add(gw, line, out) != 0)
		die("the machine");
	cmd_out_free(out);
}

struct end {
	struct saker *s;
	struct saker_pd *pd;
	struct saker_cq *cq;
	struct saker_qp *qp;
	struct saker_mr *mr;
	uint8_t *mem;
};

static void
end_make(struct end *e)
{
	struct saker_qp_attr attr;

	if (saker_pd_create(e->s, &e->pd) < 0 || saker_cq_create(e->s, 256, NULL, &e->cq) < 0)
		die("queues");
	e->mem = saker_alloc(e->s, 4096);
	if (e->mem == NULL || saker_mr_create(e->pd, e->mem, 4096,
				      RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE, &e->mr) < 0)
		die("memory");
	attr = (struct saker_qp_attr){.send_cq = e->cq,
		.recv_cq = e->cq,
		.sq_depth = DEPTH,
		.rq_depth = 16,
		.max_send_sge = 1,
		.max_recv_sge = 1};
	if (saker_qp_create(e->pd, &attr, &e->qp) < 0)
		die("a QP");
}

static void
expect(struct saker *s, enum saker_event_type type, struct saker_event *ev)
{
	while (saker_event(s, ev) == 0)
		saker_wait(s, 10);
	if (ev->type != type)
		die("an event that was not expected");
}

static void
join(struct end *near, struct end *far)
{
	const struct saker_conn_param cp = {.ird = 8, .ord = 8, .crc = 2, .markers = 2};
	struct saker_listener *l;
	struct saker_event ev;
	struct sk_addr to;

	sk_addr_parse("10.0.0.2", &to);
	if (saker_listen(far->s, NULL, PORT, 1, NULL, &l) < 0 ||
		saker_connect(near->qp, NULL, &to, PORT, &cp) < 0)
		die("connecting");
	expect(far->s, SAKER_EV_CONNECT_REQUEST, &ev);
	if (saker_accept(far->s, ev.request, far->qp, &cp) < 0)
		die("accepting");
	expect(far->s, SAKER_EV_ESTABLISHED, &ev);
	expect(near->s, SAKER_EV_ESTABLISHED, &ev);
}

static void
turn(void)
{
	if (eng[1] != NULL)
		eng_poll(eng[1], 0, eng_clock());
	measured_turn();
}

static void
writes(struct end *near, struct end *far)
{
	struct rd_sge sge = {
		.addr = (uintptr_t)near->mem, .len = SIZE, .lkey = saker_mr_stag(near->mr)};
	struct saker_wr wr = {.opcode = RD_WRITE,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.rkey = saker_mr_stag(far->mr),
		.remote_addr = (uintptr_t)far->mem};
	unsigned posted = 0, done = 0;
	struct rd_wc wc[DEPTH];

	while (done < WRITES) {
		int n;

		while (posted < WRITES && posted - done < DEPTH &&
			saker_post_send(near->qp, &wr, 1) == 1)
			posted++;
		turn();
		n = saker_cq_poll(near->cq, wc, DEPTH);
		for (int i = 0; i < n; i++)
			if (wc[i].status != 0)
				die("a completion in error");
		done += (unsigned)n;
	}
}

int
main(int argc, char **argv)
{
	int n = rte_eal_init(argc, argv);
	const char *mode = n >= 0 && argc - n > 1 ? argv[n + 1] : "socket";
	struct gw_bar_config bc = {.size = 16u << 20, .slots = 1, .timeout_ms = 60000};
	char path[64], where[80], sock[64], err[256];
	struct end near = {0}, far = {0};
	void *home = aligned_alloc(4096, FAR_ALL);
	pthread_t thread;

	snprintf(path, sizeof(path), "/dev/shm/saker-bench-%d", getpid());
	snprintf(where, sizeof(where), "ivshmem:%s", path);
	snprintf(sock, sizeof(sock), "/tmp/saker-bench-%d", getpid());
	bc.path = path;
	if (strcmp(mode, "tenant") == 0)
		engine_and_machine(path);
	else
		engines_pair();
	if (strcmp(mode, "device") == 0)
		bar = gw_bar_create(eng[0], &bc, err, sizeof(err));
	if (strcmp(mode, "socket") == 0 && eng_socket_start(eng[0], sock, err, sizeof(err)) < 0)
		die(err);
	memset(home, 0, FAR_ALL);
	eng_attach_flat(eng[gw == NULL], "far", home, FAR_ALL, FAR_MEM);
	pthread_create(&thread, NULL, attend, NULL);
	if (saker_open(strcmp(mode, "socket") == 0 ? sock : where, "near", &near.s) < 0 ||
		saker_open_flat(home, FAR_ALL, NULL, NULL, &far.s) < 0)
		die("attaching");
	end_make(&near);
	end_make(&far);
	join(&near, &far);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	writes(&near, &far);
	printf("%s: %u Writes of %u bytes\n", mode, WRITES, SIZE);
	fflush(stdout);
	unlink(path);
	unlink(sock);
	_exit(0);
}
