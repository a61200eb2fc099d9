/* SPDX-License-Identifier: BSD-3-Clause */
/* Assembles the gateway (uplink, host port, switch, machines) and runs its two turns, gw_poll() and
 * gw_tend(). */
#include "gateway_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ether.h>

#include "../../lib/wire/wire.h"

#define FRAME_MIN  2048u
#define HEAD_BYTES 64u

static int
gateway_start_host(struct gw *g, char *err, size_t errlen)
{
	struct gw_port_config pc = {.kind = GW_ENGINE, .tenant = GW_HOST, .vlan = ETH_NO_VLAN};
	int rc = gw_vport_make(g, &g->host, "gateway", err, errlen);

	if (rc != 0)
		return rc;
	rte_eth_random_addr(g->mac);
	rc = gw_uplink_start(g, err, errlen);
	if (rc != 0)
		return rc;
	memcpy(pc.mac, g->mac, sizeof(pc.mac));
	pc.in = g->host.in;
	pc.out = g->host.out;
	g->host.port = gw_switch_add(g->sw, &pc);
	return 0;
}

struct gw *
gw_create(const struct gw_config *cfg, char *err, size_t errlen)
{
	static unsigned instances;
	uint32_t frame = (cfg->mtu + ETH_MAX + HEAD_BYTES + 1023) / 1024 * 1024;
	struct gw *g = calloc(1, sizeof(*g));

	if (g == NULL) {
		snprintf(err, errlen, "out of memory");
		return NULL;
	}
	g->cfg = *cfg;
	pthread_mutex_init(&g->lock, NULL);
	g->pool = eng_pool_create("gw", __atomic_fetch_add(&instances, 1, __ATOMIC_RELAXED), 0,
		cfg->mbufs, frame < FRAME_MIN ? FRAME_MIN : frame, SOCKET_ID_ANY);
	g->sw = g->pool == NULL ? NULL : gw_switch_create(g->pool);
	if (g->sw == NULL)
		snprintf(err, errlen, "out of memory for the gateway's %u mbufs", cfg->mbufs);
	if (g->sw == NULL || gateway_start_host(g, err, errlen) != 0) {
		gw_destroy(g);
		return NULL;
	}
	return g;
}

void
gw_destroy(struct gw *g)
{
	if (g == NULL)
		return;
	g->cfg.wake = NULL; /* the poller has ended and cannot sleep */
	gw_machines_free(g);
	gw_uplink_stop(g);
	gw_vport_free(&g->host);
	gw_switch_destroy(g->sw);
	if (g->pool != NULL)
		eng_pool_free(g->pool);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

uint16_t
gw_host_port(const struct gw *g, uint8_t mac[6])
{
	memcpy(mac, g->mac, sizeof(g->mac));
	return g->host.device;
}

/* Returns the next engine from index *i on, or NULL at the end, and sets *i behind it. */
static struct eng *
next_engine(const struct gw *g, uint32_t *i)
{
	while (*i < __atomic_load_n(&g->last, __ATOMIC_ACQUIRE)) {
		struct eng *e = __atomic_load_n(&g->engines[(*i)++], __ATOMIC_ACQUIRE);

		if (e != NULL)
			return e;
	}
	return NULL;
}

bool
gw_quiet(const struct gw *g, uint64_t since)
{
	return g->cfg.running == NULL || !g->cfg.running(g->cfg.running_arg) ||
	       gw_switch_turns(g->sw) >= since + 2;
}

bool
gw_poll(struct gw *g, uint64_t now)
{
	bool work = gw_switch_poll(g->sw, now);
	uint32_t i = 0;

	for (struct eng *e; (e = next_engine(g, &i)) != NULL;)
		work |= eng_poll(e, 0, now);
	return work;
}

static bool
hook(void *arg, uint64_t now)
{
	return gw_poll(arg, now);
}

static void
hook_sleep(void *arg, bool sleeps)
{
	uint32_t i = 0;

	for (struct eng *e; (e = next_engine(arg, &i)) != NULL;)
		eng_sleeps(e, sleeps);
}

static bool
hook_rung(void *arg)
{
	uint32_t i = 0;

	for (struct eng *e; (e = next_engine(arg, &i)) != NULL;)
		if (eng_rung(e))
			return true;
	return false;
}

void
gw_hook(struct gw *g, struct eng_config *c)
{
	c->hook = hook;
	c->hook_sleep = hook_sleep;
	c->hook_rung = hook_rung;
	c->hook_arg = g;
}

void
gw_tend(struct gw *g, uint64_t now)
{
	pthread_mutex_lock(&g->lock);
	gw_machines_tend(g, now);
	gw_uplink_tend(g, now);
	pthread_mutex_unlock(&g->lock);
}
