/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The totals of an engine stage, read by another thread while QPs come and go, for ThreadSanitizer.
 * The main thread is the loop of the stage, and the control stage, which frees the QPs. Exits with
 * status 1 if a total falls, or lacks something at the end.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ring.h>

#include "../../lib/engine/common/pages.h"
#include "../../lib/engine/stage/qp_ops_priv.h"
#include "../support/rng.h"

#define QPS   64
#define TURNS 20000

/* A QP with the counters that it pretends to have. */
struct made {
	struct eng_qp qp;
	struct eng_host host;
	struct eng_work work;
};

static struct eng e;
static struct eng_stage *s;
static struct made *made[QPS];
static struct eng_work all; /* what all QPs have counted */
static uint64_t now = 1000000000;
static bool stop; /* atomic */

static void
totals_need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "totals: %s\n", what);
	exit(1);
}

static void
made_info(const struct eng_qp *qp, struct eng_work *out)
{
	*out = ((const struct made *)qp)->work;
}

static void
made_destroy(struct eng_stage *stage, struct eng_qp *qp)
{
	eng_host_ops.destroy(stage, qp);
}

static const struct eng_qp_ops made_ops = {.destroy = made_destroy, .info = made_info};

static void *
reader_main(void *arg)
{
	struct eng_totals was = {0};

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		struct eng_totals t = {0};

		eng_stage_totals(s, &t);
		totals_need(
			t.msgs_in >= was.msgs_in && t.msgs_out >= was.msgs_out, "messages fall");
		totals_need(
			t.bytes_in >= was.bytes_in && t.bytes_out >= was.bytes_out, "bytes fall");
		was = t;
	}
	return arg;
}

/* Executes a command of the control stage. */
static void
totals_command(enum eng_ctl_type type, struct eng_qp *qp)
{
	struct eng_ctl m = {.type = (uint16_t)type, .qp = qp, .status = 1};
	void *answer = NULL;

	totals_need(rte_ring_sp_enqueue(e.rings.control_stage[0], &m) == 0, "a ring is full");
	for (int i = 0; i < 4 && answer == NULL; i++) {
		eng_stage_poll(s, now, false);
		rte_ring_sc_dequeue(e.rings.stage_control[0], &answer);
	}
	totals_need(answer == &m && m.status == 0, "a command fails");
}

static void
come_or_go(struct made **at)
{
	struct made *m = *at;

	if (m != NULL) {
		totals_command(ENG_CE_QP_DEL, &m->qp);
		memset(m, 0xa5, sizeof(*m));
		free(m);
		*at = NULL;
		return;
	}
	*at = m = aligned_alloc(64, (sizeof(*m) + 63) & ~(size_t)63);
	totals_need(m != NULL, "no memory");
	memset(m, 0, sizeof(*m));
	m->qp.host = &m->host;
	m->qp.kind = ENG_FALCON;
	totals_command(ENG_CE_QP_ADD, &m->qp);
	m->qp.ops = &made_ops;
}

static void
set_up(void)
{
	char *args[] = {"totals", "--no-huge", "-m", "64", "--no-pci", "--no-telemetry",
		"--no-shconf", "-l", "0", NULL};
	char err[128] = "";

	totals_need(rte_eal_init((int)SK_ARRAY_LEN(args) - 1, args) >= 0, "no EAL");
	eng_config_default(&e.cfg);
	e.bounds = eng_bounds;
	e.cfg.nports = e.cfg.nstages = e.cfg.ntransports = 1;
	e.cfg.ports[0].mtu = 1500;
	e.cfg.limits.qps = 2 * QPS;
	e.cfg.limits.tx_mbufs = 256;
	e.cfg.socket_id = SOCKET_ID_ANY;
	e.rings.to_stage[0] = calloc(1, sizeof(*e.rings.to_stage[0]));
	e.rings.to_transport[0] = calloc(1, sizeof(*e.rings.to_transport[0]));
	e.rings.control_stage[0] = eng_ring_create(&e, "c", 0, 0, sizeof(void *), ENG_CTL_RING);
	e.rings.stage_control[0] = eng_ring_create(&e, "d", 0, 0, sizeof(void *), ENG_CTL_RING);
	e.pages = eng_pages_create(&e, 1, 2 * QPS, NULL, NULL);
	s = eng_stage_create(&e, 0, err, sizeof(err));
	totals_need(s != NULL, err);
}

int
main(void)
{
	struct eng_totals t = {0};
	uint64_t rng = 1;
	pthread_t reader;

	set_up();
	pthread_create(&reader, NULL, reader_main, NULL);
	for (unsigned i = 0; i < TURNS; i++) {
		struct made **at = &made[rng_below(&rng, QPS)];

		come_or_go(at);
		if (*at != NULL) {
			(*at)->work.msgs_in += 1 + i % 3;
			(*at)->work.bytes_out += i;
			all.msgs_in += 1 + i % 3;
			all.bytes_out += i;
		}
		now += 1000000;
		eng_stage_poll(s, now, false);
	}
	for (unsigned i = 0; i < QPS; i++)
		if (made[i] != NULL)
			come_or_go(&made[i]);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(reader, NULL);
	eng_stage_totals(s, &t);
	totals_need(t.msgs_in == all.msgs_in && t.bytes_out == all.bytes_out, "a count is lost");
	eng_stage_destroy(s);
	eng_pages_destroy(e.pages);
	printf("totals: %lu messages\n", (unsigned long)t.msgs_in);
	return 0;
}
