/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * falcon_soak [EAL options] -- [options]: RDMA over Falcon over a hostile wire, in both directions,
 * with many requests outstanding. Every byte is verified. Every request must complete once, in the
 * order that the ordering mode guarantees, and out of order if none is guaranteed. At the end every
 * mbuf must have been freed.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "../../drivers/net/impair/impair.h"
#include "../../lib/base/mem.h"
#include "../../lib/rof/rof.h"
#include "../../lib/wire/falcon.h"
#include "../../lib/wire/wire.h"
#include "falcon_storm.h"

#define PORT     7481
#define STALL_NS 60000000000ull /* generous; reached only when something is broken */
#define DEPTH    (2 * STORM_WINDOW)

struct options {
	uint32_t requests, ordering, errors, psp, op, mtu, split, v6, seed;
	double drop, dup, reorder;
};

static struct soak {
	struct options o;
	struct rig rig;
	struct saker_cq *cq[2];
	struct saker_pd *pd[2];
	struct storm storm[2]; /* [1]: the other direction; each has its own QP */
	unsigned up, gone, failed;
} soak;

enum { NUMBER, CHANCE, CHOICE, FLAG };

static const char *const orderings[] = {"strong", "weak", "none", NULL};
static const char *const errors[] = {"verbs", "complete", NULL};
static const char *const psps[] = {"gcm128", "gcm256", "gmac128", "gmac256", "none", NULL};

static const struct word {
	const char *name;
	int kind;
	size_t at;
	const char *const *choices;
} words[] = {
	{"requests", NUMBER, offsetof(struct options, requests), NULL},
	{"seed", NUMBER, offsetof(struct options, seed), NULL},
	{"mtu", NUMBER, offsetof(struct options, mtu), NULL},
	{"drop", CHANCE, offsetof(struct options, drop), NULL},
	{"dup", CHANCE, offsetof(struct options, dup), NULL},
	{"reorder", CHANCE, offsetof(struct options, reorder), NULL},
	{"ordering", CHOICE, offsetof(struct options, ordering), orderings},
	{"errors", CHOICE, offsetof(struct options, errors), errors},
	{"psp", CHOICE, offsetof(struct options, psp), psps},
	{"op", CHOICE, offsetof(struct options, op), storm_op_name},
	{"split", FLAG, offsetof(struct options, split), NULL},
	{"v6", FLAG, offsetof(struct options, v6), NULL},
};

static int
choose(const struct word *w, uint32_t *to)
{
	for (uint32_t i = 0; w->choices[i] != NULL; i++)
		if (strcmp(w->choices[i], optarg) == 0) {
			*to = i;
			return 0;
		}
	return -1;
}

static int
take_option(struct options *o, const struct word *w)
{
	void *at = (char *)o + w->at;

	if (w->kind == CHOICE)
		return choose(w, at);
	if (w->kind == CHANCE)
		*(double *)at = atof(optarg);
	else
		*(uint32_t *)at = w->kind == FLAG ? 1 : (uint32_t)atoi(optarg);
	return 0;
}

static int
parse(struct options *o, int argc, char **argv)
{
	struct option list[SK_ARRAY_LEN(words) + 1] = {{0}};
	int c;

	for (size_t i = 0; i < SK_ARRAY_LEN(words); i++)
		list[i] = (struct option){words[i].name, words[i].kind != FLAG, NULL, (int)i};
	*o = (struct options){.requests = 2000, .seed = 1, .mtu = 1500, .psp = 4, .op = UINT32_MAX};
	while ((c = getopt_long(argc, argv, "", list, NULL)) != -1)
		if (c == '?' || take_option(o, &words[c]))
			return -1;
	return optind == argc ? 0 : -1;
}

static int
fail(const char *what)
{
	printf("%s: %s\n", what, saker_error());
	soak.failed++;
	return -1;
}

/* Returns an end of storm `i`, which goes from client i to the other. */
static struct storm_end *
end_of(int i, int at)
{
	return i == at ? &soak.storm[i].from : &soak.storm[i].to;
}

static int
make_end(struct storm_end *e, int at)
{
	struct saker_qp_attr attr = {
		.send_cq = soak.cq[at],
		.recv_cq = soak.cq[at],
		.sq_depth = DEPTH,
		.rq_depth = DEPTH,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.transport = SAKER_FALCON,
		.user = e,
	};

	e->s = soak.rig.end[at].s;
	e->pd = soak.pd[at];
	e->mem = saker_alloc(e->s, STORM_MEM);
	if (e->mem == NULL || saker_mr_create(e->pd, e->mem, STORM_MEM,
				      RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE |
					      RD_ACC_REMOTE_READ | RD_ACC_REMOTE_ATOMIC,
				      &e->mr))
		return fail("memory");
	return saker_qp_create(e->pd, &attr, &e->qp) ? fail("saker_qp_create") : 0;
}

static int
open_client(int at)
{
	struct saker *s = soak.rig.end[at].s;
	struct saker_listener *l;

	if (saker_pd_create(s, &soak.pd[at]) ||
		saker_cq_create(s, 8 * STORM_WINDOW, NULL, &soak.cq[at]) ||
		saker_listen(s, NULL, (uint16_t)(PORT + at), 4, NULL, &l))
		return fail("a client");
	return make_end(end_of(0, at), at) || make_end(end_of(1, at), at) ? -1 : 0;
}

static void
take_event(int at, const struct saker_event *ev)
{
	struct saker_conn_param p = {.ird = 16, .ord = 16};

	switch (ev->type) {
	case SAKER_EV_CONNECT_REQUEST: /* of the storm in the other direction */
		if (saker_accept(soak.rig.end[at].s, ev->request, soak.storm[1 - at].to.qp, &p))
			fail("saker_accept");
		break;
	case SAKER_EV_ESTABLISHED:
		soak.up++;
		break;
	case SAKER_EV_DISCONNECTED:
		soak.gone++;
		break;
	default:
		printf("client %d: event %d, status %d, %s\n", at, ev->type, ev->status,
			ev->type == SAKER_EV_QP_FATAL ? ev->async.reason : "");
		soak.failed++;
	}
}

static struct storm *
storm_of(int at, uint32_t qpn)
{
	for (int i = 0; i < 2; i++)
		if (saker_qp_num(end_of(i, at)->qp) == qpn)
			return &soak.storm[i];
	return NULL;
}

/* Returns whether there was any progress. */
static bool
turn(void)
{
	struct saker_event ev;
	struct rd_wc wc[32];
	bool any = false;

	for (int at = 0; at < 2; at++) {
		int n = saker_cq_poll(soak.cq[at], wc, (int)SK_ARRAY_LEN(wc));

		for (int i = 0; i < n; i++)
			storm_completion(storm_of(at, wc[i].qpn), &wc[i]);
		any = any || n > 0;
		while (saker_event(soak.rig.end[at].s, &ev) == 1) {
			take_event(at, &ev);
			any = true;
		}
	}
	rig_turn(&soak.rig.hand[0]);
	soak.failed += soak.storm[0].failed + soak.storm[1].failed;
	return any;
}

static bool
are_up(void)
{
	return soak.up == 4;
}

static bool
are_gone(void)
{
	return soak.gone == 4;
}

static bool
storms_over(void)
{
	storm_post(&soak.storm[0]);
	storm_post(&soak.storm[1]);
	return storm_over(&soak.storm[0]) && storm_over(&soak.storm[1]);
}

static int
until(bool (*is)(void), const char *what)
{
	uint64_t progress = eng_clock();

	while (!is() && soak.failed == 0) {
		if (turn())
			progress = eng_clock();
		if (eng_clock() - progress > STALL_NS)
			return fail(what);
	}
	return soak.failed ? -1 : 0;
}

static int
traffic(void)
{
	struct saker_conn_param p = {.ird = 16, .ord = 16};

	for (int i = 0; i < 2; i++)
		if (saker_connect(soak.storm[i].from.qp, NULL, &soak.rig.end[1 - i].addr,
			    (uint16_t)(PORT + 1 - i), &p))
			return fail("saker_connect");
	if (until(are_up, "connecting takes for ever") || until(storms_over, "nothing happens"))
		return -1;
	for (int i = 0; i < 2; i++)
		if (saker_disconnect(soak.storm[i].from.qp, false))
			return fail("saker_disconnect");
	if (until(are_gone, "disconnecting takes for ever"))
		return -1;
	for (int i = 0; i < 2; i++)
		if (saker_qp_destroy(soak.storm[i].from.qp) ||
			saker_qp_destroy(soak.storm[i].to.qp))
			return fail("saker_qp_destroy");
	return 0;
}

/* Checks that no event was counted that healthy peers never cause. */
static void
no_warnings(void *arg, const char *layer, const char *name, enum sk_severity sev, const char *help,
	uint64_t value)
{
	static const char *const layers[] = {"eng", "rof", "fa", "psp", "rdma"};

	for (size_t i = 0; i < SK_ARRAY_LEN(layers); i++)
		if (strcmp(layer, layers[i]) == 0 && sev >= SK_WARNING && value != 0) {
			printf("%s: %" PRIu64 " (%s)\n", name, value, help);
			soak.failed++;
		}
}

/* Return the frames that were impaired on their way to either end, and a counter of both ends: one
 * end may receive a few hundred frames only. */
static uint64_t
impaired(enum impair_reason reason)
{
	return impair_count(soak.rig.port[0], true, reason) +
	       impair_count(soak.rig.port[1], true, reason);
}

static uint64_t
counted(const char *name)
{
	return rig_count(soak.rig.eng[0], "fa", name) + rig_count(soak.rig.eng[1], "fa", name);
}

/* Checks that the wire impaired frames as configured, that Falcon detected it, and that completions
 * without a guaranteed order were reordered. */
static void
check(void)
{
	const struct options *o = &soak.o;
	const struct {
		double p;
		enum impair_reason reason;
	} did[] = {{o->drop, IMPAIR_DROP}, {o->dup, IMPAIR_DUP}, {o->reorder, IMPAIR_REORDER}};

	for (size_t i = 0; i < SK_ARRAY_LEN(did); i++)
		if (did[i].p > 0 && impaired(did[i].reason) == 0)
			fail("the wire was not hostile");
	for (int i = 0; i < 2; i++)
		eng_counters(soak.rig.eng[i], no_warnings, NULL);
	if ((o->drop > 0 && counted("FA_RETRANSMIT") == 0) ||
		(o->dup > 0 && counted("FA_DUPLICATE") == 0))
		fail("Falcon saw nothing of it");
	for (unsigned i = 0; i < STORM_OPS && o->op == UINT32_MAX; i++)
		if (soak.storm[0].count[i] == 0)
			fail(storm_op_name[i]);
	if (o->ordering == ROF_ORDER_NONE && o->drop > 0 &&
		soak.storm[0].late + soak.storm[1].late == 0)
		fail("unordered completions came in order");
}

static void
report(void)
{
	const struct storm *a = &soak.storm[0], *b = &soak.storm[1];

	printf("%u requests, %" PRIu64 " bytes verified, %u late; %" PRIu64
	       " frames dropped, %" PRIu64 " packets sent again:",
		a->completed + b->completed, a->bytes + b->bytes, a->late + b->late,
		impaired(IMPAIR_DROP), counted("FA_RETRANSMIT"));
	for (unsigned i = 0; i < STORM_OPS; i++)
		printf(" %s %" PRIu64, storm_op_name[i], a->count[i] + b->count[i]);
	printf("\n");
}

static int
set_up(void)
{
	static const uint8_t versions[] = {
		PSP_AES_GCM_128, PSP_AES_GCM_256, PSP_GMAC_128, PSP_GMAC_256, PSP_NO_CRYPTO};
	const struct options *o = &soak.o;
	const struct rig_falcon falcon = {
		.ordering = (uint8_t)o->ordering,
		.errors = (uint8_t)o->errors,
		.psp = versions[o->psp],
	};
	char impair[256];
	struct rig_options ro = {
		.split = o->split,
		.v6 = o->v6,
		.vlan = ETH_NO_VLAN,
		.mtu = o->mtu,
		.falcon = &falcon,
		.mem_len = 2 * (STORM_MEM + 4096),
		.ring_len = 16 << 20,
		.impair = impair,
	};

	snprintf(impair, sizeof(impair), "dir=tx,drop=%g,dup=%g,reorder=%g,seed=%u", o->drop,
		o->dup, o->reorder, o->seed);
	for (unsigned i = 0; i < 2; i++) {
		struct storm *st = &soak.storm[i];

		st->only = (int)o->op;
		st->ordered = o->ordering != ROF_ORDER_NONE;
		/* 6.2: up to one MTU without ordering; an Ethernet frame has room for that. */
		st->send_max = st->ordered ? STORM_MSG : o->mtu / 2;
		st->rng = o->seed + i;
		st->limit = o->requests;
	}
	return rig_open(&soak.rig, &ro);
}

static int
run(void)
{
	struct rig *rig = &soak.rig;

	if (set_up())
		return -1;
	if (rig->nhands == 2)
		rte_eal_remote_launch(rig_serve, rig, rte_get_next_lcore(-1, 1, 0));
	if (rig_attach(rig, 0, &rig->hand[0]) || rig_attach(rig, 1, &rig->hand[0]) ||
		open_client(0) || open_client(1))
		return -1;
	if (traffic() == 0)
		check();
	report();
	if (rig_detach(rig, 0) || rig_detach(rig, 1) || rig_all_home(rig))
		soak.failed++;
	__atomic_store_n(&rig->stop, true, __ATOMIC_RELEASE);
	rte_eal_mp_wait_lcore();
	rig_close(rig);
	return soak.failed ? -1 : 0;
}

int
main(int argc, char **argv)
{
	int n = rte_eal_init(argc, argv), rc;

	if (n < 0 || parse(&soak.o, argc - n, argv + n)) {
		printf("usage: falcon_soak [EAL options] -- [--requests N] [--ordering"
		       " strong|weak|none] [--errors verbs|complete]"
		       " [--psp gcm128|gcm256|gmac128|gmac256|none] [--op OPCODE] [--mtu N] [--v6]"
		       " [--split] [--seed N] [--drop P]"
		       " [--dup P] [--reorder P]\n");
		return 2;
	}
	rc = run();
	printf("%s\n", rc == 0 ? "PASS" : "FAIL");
	fflush(stdout);
	/* After a failure, threads remain for which rte_eal_cleanup() would wait. */
	if (rc)
		_exit(1);
	rte_eal_cleanup();
	return 0;
}
