/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomics [EAL options, two lcores] -- [FetchAdds]: atomicity across streams and lcores (RFC 7306
 * 5.3). Eight streams end on two engine stages of one RNIC, each stage on its own lcore, and all
 * access the same two words (atomics.h). Another RNIC with two stages sends, half of the requests
 * from each lcore. At the end the count must be exact, each number must have been returned once, no
 * carry may have left its field, and each successful CmpSwap must be one step of the upper field.
 * The default is 10 million FetchAdds on the first word.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "../../lib/base/mem.h"
#include "../../lib/wire/wire.h"
#include "atomics.h"
#include "rig.h"

#define PORT        7800
#define ORD         128
#define MEM_LEN     (1u << 20)
#define YIELD_AFTER 64             /* turns without progress */
#define STALL_NS    60000000000ull /* generous; reached only when something is broken */

static struct rig rig;
static struct worker workers[WORKERS];
static struct stream streams[STREAMS];
static struct saker_qp *targets[STREAMS];
static uint64_t *words; /* the words of client 1, which all streams access */
static unsigned go, finished;

static void
die(const char *what)
{
	printf("FAIL: %s (%s)\n", what, saker_error());
	fflush(stdout);
	_Exit(1); /* the other thread would wait for ever */
}

static void
work(struct worker *w)
{
	struct rig_hand *hand = &rig.hand[w->index];
	uint64_t until = eng_clock() + STALL_NS, done = 0;
	unsigned idle = 0;
	int rc = 0;

	while (rc == 0) {
		uint64_t now = 0;

		rig_turn(hand);
		rc = worker_turn(w);
		for (unsigned i = 0; i < w->nstreams; i++)
			now += w->streams[i]->done;
		idle = now == done ? idle + 1 : 0;
		if (idle == 0)
			until = eng_clock() + STALL_NS;
		else if (idle > YIELD_AFTER)
			sched_yield(); /* the other lcore may need this processor */
		done = now;
		if (rc < 0 || eng_clock() > until)
			die(rc < 0 ? "a stream broke" : "nothing happens any more");
	}
	/* The other thread's frames may still have to pass through this thread's loops. */
	__atomic_fetch_add(&finished, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) < WORKERS)
		rig_turn(hand);
}

static int
second(void *arg)
{
	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		rig_turn(&rig.hand[1]);
	work(&workers[1]);
	return rig_serve(arg);
}

static struct saker_qp *
make_qp(struct saker_pd *pd, struct saker_cq *cq)
{
	struct saker_qp_attr attr = {.send_cq = cq,
		.recv_cq = cq,
		.sq_depth = ORD,
		.rq_depth = 16,
		.max_send_sge = 1,
		.max_recv_sge = 1};
	struct saker_qp *qp;

	if (saker_qp_create(pd, &attr, &qp))
		die("creating a QP");
	return qp;
}

/* Creates a PD and registers memory with all access rights. */
static void *
make_memory(struct saker *s, struct saker_pd **pd, struct saker_mr **mr)
{
	void *mem = saker_alloc(s, MEM_LEN / 2);

	if (mem == NULL || saker_pd_create(s, pd) ||
		saker_mr_create(
			*pd, mem, MEM_LEN / 2, RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_ATOMIC, mr))
		die("memory");
	return mem;
}

static void
make_sender(const struct saker_mr *target, uint64_t total)
{
	struct saker *s = rig.end[0].s;
	struct saker_pd *pd;
	struct saker_mr *mr;
	uint64_t(*sinks)[BATCHES][OPS] = make_memory(s, &pd, &mr);

	for (unsigned k = 0; k < WORKERS; k++)
		if (worker_init(&workers[k], k, total) ||
			saker_cq_create(s, STREAMS * ORD, NULL, &workers[k].cq))
			die("a worker");
	for (unsigned i = 0; i < STREAMS; i++) {
		struct worker *w = &workers[i % WORKERS];

		streams[i] = (struct stream){
			.qp = make_qp(pd, w->cq),
			.to = (uintptr_t)words,
			.rkey = saker_mr_stag(target),
			.sinks = sinks[i],
			.lkey = saker_mr_stag(mr),
			.batches = (uint32_t)(total / BATCH / STREAMS),
		};
		w->streams[w->nstreams++] = &streams[i];
	}
}

static void
wait_event(int at, enum saker_event_type want, struct saker_event *ev)
{
	uint64_t until = eng_clock() + STALL_NS;

	while (saker_event(rig.end[at].s, ev) == 0 && eng_clock() < until)
		rig_turn(&rig.hand[0]);
	if (ev->type != want)
		die("connecting");
}

static void
connect_all(void)
{
	struct saker_conn_param p = {.ird = ORD, .ord = ORD, .crc = 1};
	struct saker_listener *l;

	if (saker_listen(rig.end[1].s, NULL, PORT, STREAMS, NULL, &l))
		die("listening");
	for (unsigned i = 0; i < STREAMS; i++) {
		struct saker_event ev = {.type = SAKER_EV_ENGINE_GONE};

		if (saker_connect(streams[i].qp, NULL, &rig.end[1].addr, PORT, &p))
			die("connecting");
		wait_event(1, SAKER_EV_CONNECT_REQUEST, &ev);
		if (saker_accept(rig.end[1].s, ev.request, targets[i], &p))
			die("accepting");
		wait_event(1, SAKER_EV_ESTABLISHED, &ev);
		wait_event(0, SAKER_EV_ESTABLISHED, &ev);
	}
}

/* Checks that half of the streams end on either stage. */
static void
check_stages(void)
{
	unsigned on[2] = {0, 0};

	for (unsigned i = 0; i < STREAMS; i++) {
		struct saker_qp_info info;

		if (saker_qp_query(targets[i], &info) || info.stage > 1 || info.ird != ORD)
			die("a QP is not where it should be");
		on[info.stage]++;
	}
	if (on[0] != STREAMS / 2 || on[1] != STREAMS / 2)
		die("the streams are not on both stages");
}

static void
set_up(uint64_t total)
{
	struct rig_options o = {.two_stages = true,
		.vlan = ETH_NO_VLAN,
		.mtu = 1500,
		.mem_len = MEM_LEN,
		.ring_len = 8 << 20};
	struct saker_cq *cq;
	struct saker_pd *pd;
	struct saker_mr *mr;

	if (rig_open(&rig, &o))
		die("the rig");
	rte_eal_remote_launch(second, &rig, rte_get_next_lcore(-1, 1, 0));
	if (rig_attach(&rig, 0, &rig.hand[0]) || rig_attach(&rig, 1, &rig.hand[0]))
		die("attaching");
	words = make_memory(rig.end[1].s, &pd, &mr);
	if (saker_cq_create(rig.end[1].s, 64, NULL, &cq))
		die("a CQ");
	for (unsigned i = 0; i < STREAMS; i++)
		targets[i] = make_qp(pd, cq);
	make_sender(mr, total);
	connect_all();
	check_stages();
}

static void
need(bool ok, const char *what, unsigned *failed)
{
	if (ok)
		return;
	printf("%s\n", what);
	(*failed)++;
}

/* Returns how often consecutive numbers were given to streams of different stages. */
static uint64_t
turns_taken(uint64_t total)
{
	uint64_t n = 0;

	for (uint64_t i = 1; i < total; i++)
		n += bit_is_set(workers[0].seen, i) != bit_is_set(workers[0].seen, i - 1);
	return n;
}

static unsigned
check(uint64_t total)
{
	const struct worker *a = &workers[0], *b = &workers[1];
	uint64_t hits = a->hits + b->hits, once = 0, steps = 0, turns = turns_taken(total);
	unsigned failed = 0;

	for (uint64_t i = 0; i < total; i++)
		once += bit_is_set(a->seen, i) != bit_is_set(b->seen, i);
	for (uint64_t i = 0; i < hits && i < total / BATCH; i++)
		steps += bit_is_set(a->won, i) != bit_is_set(b->won, i);
	printf("%" PRIu64 " FetchAdds of 1: the word is %" PRIu64 ", %" PRIu64
	       " numbers were returned once; the stages took turns %" PRIu64 " times\n",
		total, words[0], once, turns);
	printf("%" PRIu64 " masked FetchAdds: the field is %08x, the sum %08x; %" PRIu64
	       " CmpSwaps hit: the field is %u\n",
		total / BATCH, (uint32_t)words[1], a->added + b->added, hits,
		(uint32_t)(words[1] >> 32));
	need(words[0] == total, "the sum is not exact", &failed);
	need(once == total, "the original values are not all there, each once", &failed);
	need(turns > 0, "the two stages never met", &failed);
	need((uint32_t)words[1] == a->added + b->added, "the lower field is not exact", &failed);
	need(words[1] >> 32 == hits, "the upper field is not exact", &failed);
	need(hits > 0 && steps == hits, "a step of the upper field was taken twice", &failed);
	need(a->mistakes + b->mistakes == 0, "mistakes", &failed);
	return failed;
}

int
main(int argc, char **argv)
{
	int n = rte_eal_init(argc, argv);
	uint64_t total = 10000000, begin, ns;
	unsigned failed;

	if (n < 0 || rte_lcore_count() < 2) {
		printf("atomics needs two lcores\n");
		return 2;
	}
	if (argc > n + 1)
		total = strtoull(argv[n + 1], NULL, 0);
	total = total / (BATCH * STREAMS) * (BATCH * STREAMS);
	set_up(total);
	begin = eng_clock();
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	work(&workers[0]);
	ns = SK_MAX(eng_clock() - begin, 1ul);
	printf("%.2f M/s\n", 1e3 * (double)total * OPS / BATCH / (double)ns);
	failed = check(total);
	if (rig_detach(&rig, 0) || rig_detach(&rig, 1) || rig_all_home(&rig))
		failed++;
	__atomic_store_n(&rig.stop, true, __ATOMIC_RELEASE);
	rte_eal_mp_wait_lcore();
	rig_close(&rig);
	for (unsigned k = 0; k < WORKERS; k++)
		worker_free(&workers[k]);
	rte_eal_cleanup();
	printf("%s\n", failed ? "FAIL" : "PASS");
	return failed != 0;
}
