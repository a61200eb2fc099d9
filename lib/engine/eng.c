/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of an instance: eng_create() and eng_destroy(). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "../base/mem.h"
#include "common/pages.h"
#include "common/waker.h"
#include "common/places.h"
#include "control/control.h"
#include "stage/stage.h"
#include "telemetry_priv.h"
#include "transport/transport.h"

/* Creates a ring in *at. Returns false when memory is exhausted. */
static bool
ring_at(struct rte_ring **at, const struct eng *e, const char *kind, unsigned a, unsigned b)
{
	bool data = kind[0] == 'd';

	*at = eng_ring_create(e, kind, a, b, data ? sizeof(struct eng_dmsg) : sizeof(void *),
		data ? ENG_DATA_RING : ENG_CTL_RING);
	return *at != NULL;
}

/* Makes the pair of rings between a transport stage and an engine stage, unless there is one. The
 * two stages find it when a connection that they share starts. Without memory there is none, and
 * the engine stage refuses the connection. Only the control stage's thread calls it. */
static void
eng_rings_link(struct eng *e, unsigned t, unsigned s)
{
	struct rte_ring **to_stage = &e->rings.to_stage[t][s];
	struct rte_ring **to_transport = &e->rings.to_transport[t][s];

	if (*to_stage != NULL)
		return;
	if (ring_at(to_transport, e, "dst", t, s) && ring_at(to_stage, e, "dts", t, s))
		return;
	rte_ring_free(*to_transport);
	*to_transport = NULL;
}

/* Allocates the row of a transport stage. Creates its rings to and from the engine stage with the
 * same number, if one loop polls both: most connections use them. */
static bool
make_row(struct eng *e, unsigned t)
{
	const struct eng_config *cfg = &e->cfg;
	struct eng_rings *r = &e->rings;

	r->to_stage[t] = calloc(cfg->nstages, sizeof(*r->to_stage[t]));
	r->to_transport[t] = calloc(cfg->nstages, sizeof(*r->to_transport[t]));
	if (r->to_stage[t] == NULL || r->to_transport[t] == NULL)
		return false;
	if (t >= cfg->nstages || cfg->stage_loop[t] != cfg->transport_loop[t])
		return true;
	eng_rings_link(e, t, t);
	return r->to_stage[t][t] != NULL;
}

/* Creates the rings that exist from the start, among them a pair between the control stage and each
 * other stage. */
static int
make_rings(struct eng *e)
{
	struct eng_rings *r = &e->rings;
	bool all = true;

	for (unsigned t = 0; t < e->cfg.ntransports; t++) {
		all &= make_row(e, t);
		all &= ring_at(&r->control_transport[t], e, "ct", t, 0);
		all &= ring_at(&r->transport_control[t], e, "tc", t, 0);
	}
	for (unsigned s = 0; s < e->cfg.nstages; s++) {
		all &= ring_at(&r->control_stage[s], e, "cs", s, 0);
		all &= ring_at(&r->stage_control[s], e, "sc", s, 0);
	}
	return all ? 0 : -ENOMEM;
}

static void
wake_loop(void *arg, unsigned loop)
{
	eng_wake(arg, 1u << loop);
}

static int
watch_doorbell(void *arg, int fd, bool watch)
{
	if (watch)
		return eng_doorbell_watch(arg, fd);
	eng_doorbell_unwatch(arg, fd);
	return 0;
}

static void
link_stages(void *arg, unsigned transport, unsigned stage)
{
	eng_rings_link(arg, transport, stage);
}

static int
make_control(struct eng *e, char *err, size_t errlen)
{
	struct eng_control_args args = {
		.cfg = &e->cfg,
		.rcu = e->qsbr,
		.mrs = e->mrs,
		.link = link_stages,
		.wake = wake_loop,
		.doorbell = watch_doorbell,
		.wake_arg = e,
		.pages = e->pages,
		.waker = e->waker,
		.places = e->places,
	};

	if (e->cfg.nports > 0) {
		memcpy(args.mac, e->ports[0].mac, sizeof(args.mac));
		args.speed = &e->ports[0].dev.speed;
	}
	for (unsigned t = 0; t < e->cfg.ntransports; t++) {
		args.to_transport[t] = e->rings.control_transport[t];
		args.from_transport[t] = e->rings.transport_control[t];
	}
	for (unsigned s = 0; s < e->cfg.nstages; s++) {
		args.to_stage[s] = e->rings.control_stage[s];
		args.from_stage[s] = e->rings.stage_control[s];
	}
	e->control = eng_control_create(&args, err, errlen);
	return e->control == NULL ? -ENOMEM : 0;
}

static int
make_loops(struct eng *e)
{
	e->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (e->wake_fd < 0)
		return -errno;
	for (unsigned k = 0; k < e->cfg.nloops; k++) {
		struct eng_loop *l = &e->loops[k];

		l->e = e;
		l->index = k;
		l->control = k == e->cfg.control_loop;
		for (unsigned t = 0; t < e->cfg.ntransports; t++)
			if (e->cfg.transport_loop[t] == k)
				l->transports[l->ntransports++] = e->transports[t];
		for (unsigned s = 0; s < e->cfg.nstages; s++)
			if (e->cfg.stage_loop[s] == k)
				l->stages[l->nstages++] = e->stages[s];
		l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		if (l->epoll_fd < 0)
			return -errno;
		rte_rcu_qsbr_thread_register(e->qsbr, k);
		rte_rcu_qsbr_thread_online(e->qsbr, k);
	}
	return eng_doorbell_watch(e, e->wake_fd);
}

static int
make_tables(struct eng *e)
{
	struct sk_key key;
	uint32_t slots = 1;

	while (slots < (uint64_t)e->cfg.limits.mrs + e->cfg.limits.mws && slots < 1u << 24)
		slots <<= 1;
	sk_random(&key, sizeof(key));
	sk_random(&e->cid_key, sizeof(e->cid_key));
	e->mrs = rd_mr_table_create(slots, &key);
	e->qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE,
		RTE_ALIGN(rte_rcu_qsbr_get_memsize(e->cfg.nloops), RTE_CACHE_LINE_SIZE));
	if (e->mrs == NULL || e->qsbr == NULL)
		return -ENOMEM;
	if (e->cfg.falcon.enabled) {
		e->places = eng_places_create(e->cfg.limits.qps, e->cfg.limits.srqs);
		if (e->places == NULL)
			return -ENOMEM;
	}
	return rte_rcu_qsbr_init(e->qsbr, e->cfg.nloops) == 0 ? 0 : -ENOMEM;
}

static void
wake_stage(void *arg, unsigned stage)
{
	struct eng *e = arg;

	eng_wake(e, 1u << e->cfg.stage_loop[stage]);
}

/* Creates what the threads need that help the loops. A QP has one request for pages at most. */
static int
make_helpers(struct eng *e)
{
	e->pages = eng_pages_create(e, e->cfg.nstages, e->cfg.limits.qps, wake_stage, e);
	e->waker = eng_waker_create(e->cfg.limits.clients);
	return e->pages == NULL || e->waker == NULL ? -ENOMEM : 0;
}

static int
make_stages(struct eng *e, uint64_t now, char *err, size_t errlen)
{
	for (unsigned t = 0; t < e->cfg.ntransports; t++) {
		e->transports[t] = eng_transport_create(e, t, now, err, errlen);
		if (e->transports[t] == NULL)
			return -ENOMEM;
	}
	for (unsigned s = 0; s < e->cfg.nstages; s++) {
		e->stages[s] = eng_stage_create(e, s, err, errlen);
		if (e->stages[s] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int
eng_start(struct eng *e, char *err, size_t errlen)
{
	uint64_t now = eng_clock();
	int rc = make_tables(e);

	if (rc == 0)
		rc = make_rings(e);
	if (rc == 0)
		rc = make_helpers(e);
	if (rc == 0)
		rc = make_stages(e, now, err, errlen);
	for (unsigned i = 0; i < e->cfg.nports && rc == 0; i++)
		rc = eng_port_start(e, i, err, errlen);
	if (rc == 0)
		rc = eng_handoff_create(e);
	for (unsigned t = 0; t < e->cfg.ntransports && rc == 0; t++)
		rc = eng_transport_start(e->transports[t], now, err, errlen);
	if (rc == 0)
		rc = make_loops(e);
	return rc != 0 ? rc : make_control(e, err, errlen);
}

struct eng *
eng_create(const struct eng_config *cfg, char *err, size_t errlen)
{
	static unsigned instances;
	bool populates;
	struct eng *e;
	int rc;

	snprintf(err, errlen, "no memory");
	if (eng_config_check(cfg, err, errlen) != 0)
		return NULL;
	e = aligned_alloc(_Alignof(struct eng), sizeof(*e));
	if (e == NULL)
		return NULL;
	memset(e, 0, sizeof(*e));
	e->cfg = *cfg;
	e->clock = eng_clock;
	e->bounds = eng_bounds;
	e->cfg.tcp.max_conns = cfg->limits.conns;
	if (e->cfg.falcon.stack.max_conns == 0)
		e->cfg.falcon.stack.max_conns = cfg->limits.conns;
	fa_swift_flow_scaling(&e->cfg.falcon.rue.swift);
	/* Slices out of order and unfinished FPDUs (stage_iwarp.c) pin at most half of the mbufs.
	 * Payloads that Falcon holds may pin the other half but for an eighth of all
	 * (SCARCE_PART). */
	e->cfg.tcp.ooo_slices_total = SK_MIN(cfg->tcp.ooo_slices_total, cfg->limits.rx_mbufs / 4);
	e->id = __atomic_fetch_add(&instances, 1, __ATOMIC_RELAXED);
	e->wake_fd = -1;
	eng_home_key(e);
	for (unsigned k = 0; k < ENG_MAX_LCORES; k++)
		e->loops[k].epoll_fd = -1;
	populates = sk_mem_populates(true);
	rc = eng_start(e, err, errlen);
	sk_mem_populates(populates);
	if (rc != 0) {
		eng_destroy(e);
		return NULL;
	}
	return e;
}

static void
free_row(struct rte_ring **rings, unsigned n)
{
	for (unsigned i = 0; rings != NULL && i < n; i++)
		rte_ring_free(rings[i]);
	free(rings);
}

/* Frees the rings. The stages that read them are gone. */
static void
free_rings(struct eng *e)
{
	struct eng_rings *r = &e->rings;

	for (unsigned t = 0; t < e->cfg.ntransports; t++) {
		free_row(r->to_stage[t], e->cfg.nstages);
		free_row(r->to_transport[t], e->cfg.nstages);
		rte_ring_free(r->control_transport[t]);
		rte_ring_free(r->transport_control[t]);
	}
	for (unsigned s = 0; s < e->cfg.nstages; s++) {
		rte_ring_free(r->control_stage[s]);
		rte_ring_free(r->stage_control[s]);
	}
}

void
eng_destroy(struct eng *e)
{
	eng_telemetry_forget(e);
	for (unsigned i = 0; i < e->cfg.nports; i++)
		eng_port_stop(e, i);
	eng_handoff_destroy(e);
	for (unsigned t = 0; t < e->cfg.ntransports; t++)
		eng_transport_destroy(e->transports[t]);
	for (unsigned s = 0; s < e->cfg.nstages; s++)
		eng_stage_destroy(e->stages[s]);
	if (e->control != NULL)
		eng_control_destroy(e->control);
	/* The socket's thread, which the control stage ends, uses both. */
	eng_pages_destroy(e->pages);
	eng_waker_destroy(e->waker);
	free_rings(e);
	for (unsigned k = 0; k < e->cfg.nloops; k++)
		if (e->loops[k].epoll_fd >= 0)
			close(e->loops[k].epoll_fd);
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	if (e->mrs != NULL)
		rd_mr_table_destroy(e->mrs);
	free(e->qsbr);
	free(e->places);
	free(e);
	eng_pools_waiting();
}
