/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket's thread, the messages of other threads and the control stage together, for
 * ThreadSanitizer. Clients in threads of their own attach, register memory, flood the socket, write
 * to the descriptors that they have kept, and hang up, while another thread lists the clients as
 * the prompt does. The other stages accept everything, in the thread of the control stage. Exits
 * with status 1 if a correct client is refused what it may have, or if a client or a region stays.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

#include "../../lib/base/log.h"
#include "../../lib/engine/control/control.h"
#include "../../lib/engine/engine.h"
#include "../support/raw_client.h"
#include "../support/rng.h"

#define THREADS  6
#define LIVES    150 /* clients of each thread, one after the other */
#define KEPT     8   /* descriptors of dead clients that a thread keeps */
#define REGIONS  5   /* of one client */
#define DEADLINE 300 /* seconds; a healthy run takes some */
#define MEM_LEN  8192

static struct eng_config cfg;
static struct eng_control *control;
static struct rte_ring *to[2], *from[2]; /* the transport stage's, the engine stage's */
static struct rte_rcu_qsbr *rcu;
static char path[64];
static bool stop;         /* atomic */
static uint32_t wakes;    /* atomic */
static uint32_t welcomed; /* atomic */

static void
attach_need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "attach: %s\n", what);
	exit(1);
}

/* ---- The loop: control stage and the stages that accept everything ---- */

static void
loop_wake(void *arg, unsigned loop)
{
	__atomic_fetch_add((uint32_t *)arg, 1 + loop, __ATOMIC_RELAXED);
}

static void
stages_turn(void)
{
	for (int i = 0; i < 2; i++) {
		void *p;

		while (rte_ring_dequeue(to[i], &p) == 0) {
			struct eng_ctl *m = p;

			m->status = 0;
			attach_need(rte_ring_enqueue(from[i], m) == 0, "a ring is full");
		}
	}
}

static void *
loop_main(void *arg)
{
	uint64_t now = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		eng_control_poll(control, now);
		stages_turn();
		rte_rcu_qsbr_quiescent(rcu, 0);
		/* No stage handles doorbells here: each turn polls all mailboxes. */
		now += 10 * 1000 * 1000;
		sched_yield();
	}
	return arg;
}

/* ---- Clients ---- */

/* Creates a region and an MR in it, and destroys both. */
static void
register_memory(struct raw_client *c, uint32_t pd)
{
	struct shm_msg m = {.body.mr = {.pd = pd,
				    .access = RD_ACC_LOCAL_WRITE,
				    .base = RAW_BASE,
				    .len = MEM_LEN,
				    .nextents = 1,
				    .extents = {{.len = MEM_LEN}}}};
	int fd = raw_memfd(MEM_LEN, 0), n = raw_region(c, fd, MEM_LEN);

	attach_need(n > 0, "a region is refused");
	close(fd);
	m.body.mr.extents[0].region = (uint32_t)n;
	attach_need(raw_command(c, &m, SHM_MR_CREATE) == 0, "an MR is refused");
	attach_need(raw_destroy(c, SHM_MR_DESTROY, m.body.mr.mr) == 0, "an MR stays");
	attach_need(raw_destroy(c, SHM_REGION_DROP, (uint32_t)n) == 0, "a region stays");
}

/* Sends regions, and does not wait for the answers. */
static void
flood_regions(struct raw_client *c, uint64_t *rng)
{
	struct shm_sock_msg m = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_REGION, .size = MEM_LEN};
	int fd = raw_memfd(MEM_LEN, 0);

	for (uint32_t i = rng_below(rng, 2 * REGIONS); i > 0; i--)
		raw_socket_send(c->fd, &m, fd);
	close(fd);
}

/* Posts commands, and does not wait for the replies. */
static void
flood_commands(struct raw_client *c, uint64_t *rng)
{
	for (uint32_t i = rng_below(rng, 12); i > 0; i--) {
		struct shm_msg m = {.body.cq.depth = 4};

		raw_post(c, &m, i % 2 ? SHM_CQ_CREATE : SHM_REGION_DROP);
	}
}

static void
life(uint64_t *rng, int kept[KEPT])
{
	static const uint64_t one = 1;
	struct raw_client c;
	uint32_t pd, n = rng_below(rng, KEPT), end = rng_below(rng, 4);

	/* There are more threads than places, and the dead are buried by and by. */
	while (raw_attach(&c, path, true) < 0)
		raw_nap(500);
	__atomic_fetch_add(&welcomed, 1, __ATOMIC_RELAXED);
	if (end == 0) {
		attach_need(raw_pd(&c, &pd) == 0, "a PD is refused");
		register_memory(&c, pd);
	}
	if (end != 1)
		flood_regions(&c, rng);
	if (end != 2)
		flood_commands(&c, rng);
	if (kept[n] >= 0)
		close(kept[n]);
	kept[n] = dup(c.bell_fd);
	raw_detach(&c);
	for (int i = 0; i < KEPT; i++)
		if (kept[i] >= 0 && write(kept[i], &one, sizeof(one)) < 0)
			kept[i] = -1;
}

static void *
client_main(void *arg)
{
	uint64_t rng = (uint64_t)(uintptr_t)arg;
	int kept[KEPT];

	for (int i = 0; i < KEPT; i++)
		kept[i] = -1;
	for (int i = 0; i < LIVES; i++)
		life(&rng, kept);
	for (int i = 0; i < KEPT; i++)
		if (kept[i] >= 0)
			close(kept[i]);
	return NULL;
}

/* ---- The prompt ---- */

static void *
prompt_main(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		struct eng_client_view v[THREADS];
		struct eng_totals t = {0};

		for (int i = eng_control_clients(control, v, THREADS); i-- > 0;)
			attach_need(v[i].name[0] != '\0', "a client without a name");
		eng_control_totals(control, &t);
		raw_nap(1000);
	}
	return arg;
}

/* ---- Set-up ---- */

static struct rte_ring *
attach_ring(void)
{
	struct rte_ring *r = aligned_alloc(64, (size_t)rte_ring_get_memsize(ENG_CTL_RING));

	attach_need(r != NULL && rte_ring_init(r, "tsan", ENG_CTL_RING,
					 RING_F_SP_ENQ | RING_F_SC_DEQ) == 0,
		"no ring");
	return r;
}

static void
configure(void)
{
	eng_config_default(&cfg);
	cfg.ntransports = cfg.nstages = 1;
	cfg.nports = cfg.nifs = 1;
	cfg.ports[0].mtu = 1500;
	sk_addr_parse("10.0.0.1", &cfg.ifs[0].addr);
	cfg.huge_pages = false;
	cfg.limits.clients = THREADS - 1;
	cfg.limits.qps = cfg.limits.cqs = cfg.limits.mrs = cfg.limits.pds = 256;
	cfg.limits.client_qps = cfg.limits.client_cqs = cfg.limits.client_mrs = 32;
	cfg.limits.client_mws = 4;
	cfg.limits.client_regions = REGIONS;
	cfg.limits.client_home_bytes = 4u << 20;
	cfg.limits.client_mem_bytes = 64ull << 20;
}

static void
control_start(void)
{
	static const struct sk_key key = {{1, 2}};
	struct eng_control_args a = {.cfg = &cfg, .wake = loop_wake, .wake_arg = &wakes};
	char err[256] = "";

	configure();
	for (int i = 0; i < 2; i++) {
		to[i] = attach_ring();
		from[i] = attach_ring();
	}
	a.to_transport[0] = to[0];
	a.from_transport[0] = from[0];
	a.to_stage[0] = to[1];
	a.from_stage[0] = from[1];
	rcu = aligned_alloc(64, (rte_rcu_qsbr_get_memsize(1) + 63) & ~(size_t)63);
	attach_need(rcu != NULL && rte_rcu_qsbr_init(rcu, 1) == 0, "no RCU");
	rte_rcu_qsbr_thread_register(rcu, 0);
	rte_rcu_qsbr_thread_online(rcu, 0);
	a.rcu = rcu;
	a.mrs = rd_mr_table_create(256, &key);
	control = eng_control_create(&a, err, sizeof(err));
	attach_need(control != NULL, err);
	snprintf(path, sizeof(path), "/tmp/saker-tsan-%d.sock", getpid());
	unlink(path);
	attach_need(eng_control_socket_start(control, path, err, sizeof(err)) == 0, err);
}

/* Waits until no client and no region is left. The deadline ends a program that waits in vain. */
static void
all_gone(void)
{
	struct eng_totals t;

	do {
		raw_nap(1000);
		memset(&t, 0, sizeof(t));
		eng_control_totals(control, &t);
	} while (t.clients + t.regions + t.mrs + t.cqs + t.pds != 0);
}

int
main(void)
{
	pthread_t loop, prompt, t[THREADS];

	alarm(DEADLINE);
	sk_log_set(SK_LOG_ERR, NULL);
	control_start();
	pthread_create(&loop, NULL, loop_main, NULL);
	pthread_create(&prompt, NULL, prompt_main, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, client_main, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	all_gone();
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(prompt, NULL);
	eng_control_socket_stop(control);
	pthread_join(loop, NULL);
	attach_need(access(path, F_OK) != 0, "the socket stays");
	eng_control_destroy(control);
	attach_need(welcomed == THREADS * LIVES && wakes > 0, "a client found no place");
	printf("attach: %u clients came and went\n", welcomed);
	return 0;
}
