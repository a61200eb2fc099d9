/* SPDX-License-Identifier: BSD-3-Clause */
/* An instance from its configuration to its end. */
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
#include "../rof/exchange.h"
#include "handoff_priv.h"
#include "stage_priv.h"
#include "telemetry_priv.h"
#include "transport_priv.h"

/*
 * Swift's base target delay. Hardware's 25 us are a few round trips; here a frame waits in the
 * port's ring until the loop that reads it comes round, and that has perhaps 32 frames of 8 KiB to
 * sum and place, 64 KiB to copy, or was not scheduled. That is no queue which smaller windows
 * would shorten: with 25 us they shrink until the loops wait for each other.
 */
#define SWIFT_BASE_NS 100000

#define REFUSE(...) (snprintf(err, errlen, __VA_ARGS__), -EINVAL)

void
eng_config_default(struct eng_config *cfg)
{
	*cfg = (struct eng_config){.name = "saker",
		.nloops = 1,
		.ntransports = 1,
		.nstages = 1,
		.idle = ENG_IDLE_POLL,
		.sleep_after = 1024,
		.limits = {.clients = 64,
			.qps = 16384,
			.cqs = 16384,
			.mrs = 65536,
			.mws = 65536,
			.pds = 4096,
			.srqs = 1024,
			.listeners = 256,
			.conns = 16384,
			.rx_mbufs = 16384,
			.tx_mbufs = 16384,
			.client_qps = 16384,
			.client_cqs = 16384,
			.client_mrs = 16384,
			.client_mws = 16384,
			.client_regions = SHM_MAX_REGIONS,
			.client_home_bytes = 64ull << 20,
			.client_mem_bytes = 4ull << 30,
			.sq_depth = 4096,
			.rq_depth = 4096,
			.cq_depth = 65536,
			.ird = 128,
			.ord = 128},
		.mpa_revision = 2,
		.mpa_crc = true,
		.port_min = 49152,
		.port_max = 65535,
		.socket_id = SOCKET_ID_ANY};
	tcp_config_default(&cfg->tcp);
	fa_config_default(&cfg->falcon.stack);
	fa_swift_defaults(&cfg->falcon.swift);
	cfg->falcon.swift.base_delay = fa_ticks_near(SWIFT_BASE_NS);
	/* Where the peer's thread has to wait for its processor that is its delay, and Swift's own
	 * least window would then be a packet in a hundred such waits. */
	cfg->falcon.swift.fcwnd_min = FA_CWND_ONE / 4;
	cfg->falcon.psps = ROFX_PSP(PSP_NO_CRYPTO);
	cfg->falcon.mtu = 4096;
	cfg->falcon.flows = 1;
	cfg->falcon.rnr_retry = ROF_RNR_FOREVER;
	cfg->falcon.rnr_code = 12; /* 640 us */
	cfg->falcon.port = 4795;
	cfg->falcon.patience_ns = 3000000000u;
	cfg->falcon.keepalive_ns = 10ull * 1000000000;
	cfg->falcon.rekey_ns = 3600ull * 1000000000;
	cfg->falcon.rekey_packets = 1ull << 30;
	cfg->falcon.device_key_ns = 86400ull * 1000000000;
}

static int
check_ports(const struct eng_config *cfg, char *err, size_t errlen)
{
	char text[SK_ADDR_STRLEN];

	if (cfg->nports > ENG_MAX_PORTS)
		return REFUSE("%u ports: at most %u", cfg->nports, ENG_MAX_PORTS);
	if (cfg->nifs > ENG_MAX_IFS || cfg->nroutes > ENG_MAX_ROUTES)
		return REFUSE("too many addresses or routes");
	for (unsigned i = 0; i < cfg->nports; i++) {
		if (!rte_eth_dev_is_valid_port(cfg->ports[i].port_id))
			return REFUSE("port %u: DPDK has no such port", cfg->ports[i].port_id);
		if (cfg->ports[i].mtu < 1280 || cfg->ports[i].mtu > ENG_MAX_FRAME - ETH_MAX)
			return REFUSE("port %u: an MTU of %u is not within 1280..%u",
				cfg->ports[i].port_id, cfg->ports[i].mtu, ENG_MAX_FRAME - ETH_MAX);
	}
	for (unsigned i = 0; i < cfg->nifs; i++)
		if (cfg->ifs[i].port >= cfg->nports)
			return REFUSE("address %s: there is no port %u",
				sk_addr_str(&cfg->ifs[i].addr, text), cfg->ifs[i].port);
	return 0;
}

static int
check_stages(const struct eng_config *cfg, char *err, size_t errlen)
{
	if (cfg->nloops == 0 || cfg->nloops > ENG_MAX_LCORES)
		return REFUSE("%u loops: 1 to %u", cfg->nloops, ENG_MAX_LCORES);
	if (cfg->ntransports == 0 || cfg->ntransports > ENG_MAX_TRANSPORTS)
		return REFUSE("%u transport stages: 1 to %u", cfg->ntransports, ENG_MAX_TRANSPORTS);
	if (cfg->nstages == 0 || cfg->nstages > ENG_MAX_STAGES)
		return REFUSE("%u engine stages: 1 to %u", cfg->nstages, ENG_MAX_STAGES);
	if (cfg->control_loop >= cfg->nloops)
		return REFUSE("the control stage's loop %u does not exist", cfg->control_loop);
	for (unsigned i = 0; i < cfg->ntransports; i++)
		if (cfg->transport_loop[i] >= cfg->nloops)
			return REFUSE("transport stage %u: loop %u does not exist", i,
				cfg->transport_loop[i]);
	for (unsigned i = 0; i < cfg->nstages; i++)
		if (cfg->stage_loop[i] >= cfg->nloops)
			return REFUSE(
				"engine stage %u: loop %u does not exist", i, cfg->stage_loop[i]);
	return 0;
}

static int
check_falcon(const struct eng_falcon_config *cfg, char *err, size_t errlen)
{
	if (!cfg->enabled)
		return 0;
	if (cfg->psps == 0 || (cfg->psps & ~(ROFX_PSP_KEYED | ROFX_PSP(PSP_NO_CRYPTO))) != 0)
		return REFUSE("Falcon: no PSP version, or one that there is not");
	if ((cfg->psps & ROFX_PSP_KEYED) && cfg->psk_len == 0)
		return REFUSE(
			"Falcon: PSP with keys needs a pre-shared key to hand them over under");
	if (cfg->psk_len > sizeof(cfg->psk) || (cfg->psk_len > 0 && cfg->psk_len < 16))
		return REFUSE("Falcon: a pre-shared key has 16 to 64 bytes, not %u", cfg->psk_len);
	if (cfg->ordering > ROF_ORDER_NONE || cfg->errors > ROF_ERRORS_COMPLETE)
		return REFUSE("Falcon: no such ordering or error mode");
	if (cfg->ordering == ROF_ORDER_NONE && cfg->errors != ROF_ERRORS_COMPLETE)
		return REFUSE("Falcon: the unordered mode completes in error (RoF 6.4)");
	if (cfg->mtu < ROF_MTU_MIN || cfg->mtu > ROF_MTU_MAX)
		return REFUSE("Falcon: an MTU of %u is not within %u..%u", cfg->mtu, ROF_MTU_MIN,
			ROF_MTU_MAX);
	if (cfg->flows != 1 && cfg->flows != FA_FLOWS_MAX)
		return REFUSE("Falcon: %u flows: 1 or %u", cfg->flows, FA_FLOWS_MAX);
	return 0;
}

static int
eng_check(const struct eng_config *cfg, char *err, size_t errlen)
{
	const struct eng_limits *lim = &cfg->limits;

	if (lim->qps == 0 || lim->conns == 0 || lim->qps > 1u << 24 || lim->conns > 1u << 24)
		return REFUSE("limits: QPs and connections are 1 to 16777216");
	if (lim->rx_mbufs < 256 || lim->tx_mbufs < 256)
		return REFUSE("limits: at least 256 receive and 256 send mbufs");
	if (lim->ird >= SHM_DEPTH_AUTO || lim->ord >= SHM_DEPTH_AUTO)
		return REFUSE("limits: IRD %u, ORD %u: at most %u", lim->ird, lim->ord,
			SHM_DEPTH_AUTO - 1);
	if (cfg->mpa_revision != 1 && cfg->mpa_revision != 2)
		return REFUSE("MPA revision %u: 1 or 2", cfg->mpa_revision);
	if (cfg->port_min == 0 || cfg->port_min > cfg->port_max)
		return REFUSE("local ports %u..%u: not a range", cfg->port_min, cfg->port_max);
	if (check_falcon(&cfg->falcon, err, errlen) != 0)
		return -EINVAL;
	return check_ports(cfg, err, errlen) != 0 ? -EINVAL : check_stages(cfg, err, errlen);
}

struct rte_ring *
eng_ring_create(const struct eng *e, const char *kind, unsigned a, unsigned b, unsigned esize,
	unsigned count)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "sk%u_%s%u_%u", e->id, kind, a, b);
	return rte_ring_create_elem(
		name, esize, count, e->cfg.socket_id, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

/* One pair for each (transport, engine) couple, one for each stage and the control stage. */
static int
make_rings(struct eng *e)
{
	for (unsigned t = 0; t < e->cfg.ntransports; t++) {
		struct eng_transport *tp = e->transports[t];

		for (unsigned s = 0; s < e->cfg.nstages; s++) {
			struct rte_ring *in = eng_ring_create(
				e, "ts", t, s, sizeof(struct eng_dmsg), ENG_DATA_RING);
			struct rte_ring *out = eng_ring_create(
				e, "st", t, s, sizeof(struct eng_dmsg), ENG_DATA_RING);

			tp->to_stage[s] = e->stages[s]->from_transport[t] = in;
			tp->from_stage[s] = e->stages[s]->to_transport[t] = out;
			if (in == NULL || out == NULL)
				return -ENOMEM;
		}
		tp->from_control = eng_ring_create(e, "ct", t, 0, sizeof(void *), ENG_CTL_RING);
		tp->to_control = eng_ring_create(e, "tc", t, 0, sizeof(void *), ENG_CTL_RING);
		if (tp->from_control == NULL || tp->to_control == NULL)
			return -ENOMEM;
	}
	for (unsigned s = 0; s < e->cfg.nstages; s++) {
		e->stages[s]->from_control =
			eng_ring_create(e, "cs", s, 0, sizeof(void *), ENG_CTL_RING);
		e->stages[s]->to_control =
			eng_ring_create(e, "sc", s, 0, sizeof(void *), ENG_CTL_RING);
		if (e->stages[s]->from_control == NULL || e->stages[s]->to_control == NULL)
			return -ENOMEM;
	}
	return 0;
}

static void
wake_loop(void *arg, unsigned loop)
{
	eng_wake(arg, loop);
}

static int
make_control(struct eng *e, char *err, size_t errlen)
{
	struct eng_control_args args = {
		.cfg = &e->cfg, .rcu = e->qsbr, .mrs = e->mrs, .wake = wake_loop, .wake_arg = e};

	if (e->cfg.nports > 0)
		memcpy(args.mac, e->ports[0].mac, sizeof(args.mac));
	for (unsigned t = 0; t < e->cfg.ntransports; t++) {
		args.to_transport[t] = e->transports[t]->from_control;
		args.from_transport[t] = e->transports[t]->to_control;
	}
	for (unsigned s = 0; s < e->cfg.nstages; s++) {
		args.to_stage[s] = e->stages[s]->from_control;
		args.from_stage[s] = e->stages[s]->to_control;
	}
	e->control = eng_control_create(&args, err, errlen);
	return e->control == NULL ? -ENOMEM : 0;
}

static int
make_loops(struct eng *e)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

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
		/* Edge-triggered: each write wakes every loop, and nobody has to read. */
		l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		if (l->epoll_fd < 0 || epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, e->wake_fd, &ev) != 0)
			return -errno;
		rte_rcu_qsbr_thread_register(e->qsbr, k);
		rte_rcu_qsbr_thread_online(e->qsbr, k);
	}
	return 0;
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
	return rte_rcu_qsbr_init(e->qsbr, e->cfg.nloops) == 0 ? 0 : -ENOMEM;
}

static int
make_tls(struct eng *e, char *err, size_t errlen)
{
	const struct rofx_tls_config cfg = {
		.psk = e->cfg.falcon.psk, .psk_len = e->cfg.falcon.psk_len};

	if (!e->cfg.falcon.enabled || cfg.psk_len == 0)
		return 0;
	e->tls = rofx_tls_create(&cfg, err, errlen);
	return e->tls == NULL ? -EINVAL : 0;
}

static int
make_stages(struct eng *e, char *err, size_t errlen)
{
	for (unsigned t = 0; t < e->cfg.ntransports; t++) {
		e->transports[t] = eng_transport_create(e, t, err, errlen);
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
		rc = make_tls(e, err, errlen);
	if (rc == 0)
		rc = make_stages(e, err, errlen);
	if (rc == 0)
		rc = make_rings(e);
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
	struct eng *e;

	snprintf(err, errlen, "no memory");
	if (eng_check(cfg, err, errlen) != 0)
		return NULL;
	e = aligned_alloc(_Alignof(struct eng), sizeof(*e));
	if (e == NULL)
		return NULL;
	memset(e, 0, sizeof(*e));
	e->cfg = *cfg;
	e->clock = eng_clock;
	e->cfg.tcp.max_conns = cfg->limits.conns;
	e->id = __atomic_fetch_add(&instances, 1, __ATOMIC_RELAXED);
	e->wake_fd = -1;
	sk_random(e->rss_key, sizeof(e->rss_key));
	for (unsigned k = 0; k < ENG_MAX_LCORES; k++)
		e->loops[k].epoll_fd = -1;
	if (eng_start(e, err, errlen) != 0) {
		eng_destroy(e);
		return NULL;
	}
	return e;
}

static void
free_rings(struct rte_ring **rings, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rte_ring_free(rings[i]);
}

/* Collected before the stages go: the rings are freed after all who might still look into them. */
static unsigned
collect_rings(const struct eng *e, struct rte_ring **out)
{
	unsigned n = 0;

	for (unsigned t = 0; t < e->cfg.ntransports && e->transports[t] != NULL; t++) {
		const struct eng_transport *tp = e->transports[t];

		for (unsigned s = 0; s < e->cfg.nstages; s++) {
			out[n++] = tp->to_stage[s];
			out[n++] = tp->from_stage[s];
		}
		out[n++] = tp->from_control;
		out[n++] = tp->to_control;
	}
	for (unsigned s = 0; s < e->cfg.nstages && e->stages[s] != NULL; s++) {
		out[n++] = e->stages[s]->from_control;
		out[n++] = e->stages[s]->to_control;
	}
	return n;
}

void
eng_destroy(struct eng *e)
{
	struct rte_ring *rings[2 * ENG_MAX_TRANSPORTS * (ENG_MAX_STAGES + 1) + 2 * ENG_MAX_STAGES];
	unsigned nrings = collect_rings(e, rings);

	telemetry_forget(e);
	for (unsigned i = 0; i < e->cfg.nports; i++)
		eng_port_stop(e, i);
	eng_handoff_destroy(e);
	for (unsigned t = 0; t < e->cfg.ntransports; t++)
		eng_transport_destroy(e->transports[t]);
	for (unsigned s = 0; s < e->cfg.nstages; s++)
		eng_stage_destroy(e->stages[s]);
	if (e->control != NULL)
		eng_control_destroy(e->control);
	free_rings(rings, nrings);
	for (unsigned k = 0; k < e->cfg.nloops; k++)
		if (e->loops[k].epoll_fd >= 0)
			close(e->loops[k].epoll_fd);
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	if (e->tls != NULL)
		rofx_tls_destroy(e->tls);
	if (e->mrs != NULL)
		rd_mr_table_destroy(e->mrs);
	free(e->qsbr);
	free(e);
	eng_pools_waiting();
}

struct eng_control *
eng_control_of(struct eng *e)
{
	return e->control;
}
