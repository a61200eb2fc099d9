/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The uplink: the device by which the switch reaches the wire. It may be removed and come back
 * (lib/engine/device.h). Meanwhile the switch goes on: the host and the machines still reach each
 * other.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ether.h>

#include "../../lib/base/log.h"
#include "../../lib/wire/wire.h"
#include "gateway_priv.h"

#define LOOK_NS 1000000000ull

int
gw_uplink_start(struct gw *g, char *err, size_t errlen)
{
	struct gw_port_config pc = {.kind = GW_WIRE, .tenant = GW_HOST, .vlan = ETH_NO_VLAN};
	struct gw_uplink *u = &g->uplink;
	struct rte_ether_addr mac;
	int rc;

	u->port = -1;
	if (g->cfg.uplink < 0)
		return 0;
	u->dev.id = pc.device = (uint16_t)g->cfg.uplink;
	rc = gw_device_start(g, pc.device, &pc.multi_seg, err, errlen);
	if (rc != 0)
		return rc;
	if (rte_eth_macaddr_get(pc.device, &mac) == 0 && rte_is_valid_assigned_ether_addr(&mac))
		memcpy(g->mac, mac.addr_bytes, sizeof(g->mac));
	eng_device_watch(&u->dev, NULL, NULL);
	u->started = true;
	pc.gone = &u->dev.gone;
	u->port = gw_switch_add(g->sw, &pc);
	return 0;
}

static void
uplink_release(struct gw_uplink *u)
{
	eng_device_release(&u->dev);
	u->started = false;
}

void
gw_uplink_stop(struct gw *g)
{
	struct gw_uplink *u = &g->uplink;

	if (!u->started)
		return;
	if (eng_device_is_removed(&u->dev)) {
		uplink_release(u);
		return;
	}
	eng_device_unwatch(&u->dev);
	rte_eth_dev_stop(u->dev.id);
	u->started = false;
}

/* Returns whether no turn of the switch can be using the device, which is gone. */
static bool
is_unused(const struct gw *g, struct gw_uplink *u)
{
	if (!u->leaving)
		u->since = gw_switch_turns(g->sw);
	u->leaving = true;
	return gw_quiet(g, u->since);
}

void
gw_uplink_tend(struct gw *g, uint64_t now)
{
	struct gw_uplink *u = &g->uplink;
	bool unused;

	if (!u->started || now < u->look_at)
		return;
	u->look_at = now + LOOK_NS;
	unused = eng_device_is_gone(&u->dev) && is_unused(g, u);
	switch (eng_device_look(&u->dev, unused)) {
	case ENG_DEVICE_STARTED:
		u->leaving = false;
		eng_device_back(&u->dev);
		break;
	case ENG_DEVICE_UNUSED:
		uplink_release(u);
		break;
	case ENG_DEVICE_SAME:
		break;
	}
}

static int
uplink_attach(struct gw *g, char *err, size_t errlen)
{
	struct gw_uplink *u = &g->uplink;
	bool multi_seg;
	int rc = eng_device_probe(&u->dev, u->started, err, errlen);

	if (rc != 0)
		return rc;
	rc = gw_device_start(g, u->dev.id, &multi_seg, err, errlen);
	eng_device_watch(&u->dev, NULL, NULL);
	if (rc != 0) {
		uplink_release(u);
		return rc;
	}
	u->started = true;
	u->leaving = false;
	gw_switch_wire(g->sw, u->port, u->dev.id, multi_seg);
	eng_device_back(&u->dev);
	sk_log(SK_LOG_INFO, "port %u: its device %s is back", u->dev.id, u->dev.name);
	return 0;
}

int
gw_uplink_attach(struct gw *g, uint16_t *port, char *err, size_t errlen)
{
	int rc = -ENOENT;

	pthread_mutex_lock(&g->lock);
	if (g->cfg.uplink >= 0 && g->uplink.dev.id == *port) {
		rc = uplink_attach(g, err, errlen);
		*port = g->uplink.dev.id;
	} else {
		snprintf(err, errlen, "port %u is not the uplink", *port);
	}
	pthread_mutex_unlock(&g->lock);
	return rc;
}
