/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices that are removed while their port is in use, and that come back.
 *
 * EAL reports the removal of a PCI device (under VFIO, the kernel requests the device and waits
 * until it is closed), and some drivers report it as an event of the port. Where a device is
 * removed without a warning, the first access to its mapped registers raises SIGBUS; a guard
 * (eng_guard()) puts zero pages there. Each of the three sets p->gone. Then every transport stage
 * ends its connections on the port, sets its bit in p->left, and uses the device no more. When
 * all stages have done so, eng_ports_look() closes the device a second or two later: threads that
 * only read the port's statistics have finished by then.
 */
/* EAL's reports of devices are not yet in the stable part of its interface. */
#define ALLOW_EXPERIMENTAL_API

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>

#include "../../base/log.h"
#include "transport_priv.h"

/* Handles the report that the device is gone. Any thread. */
static void
port_lost(struct eng *e, struct eng_port *p)
{
	__atomic_store_n(&p->gone, true, __ATOMIC_RELEASE);
	eng_wake(e, UINT32_MAX);
}

static int
on_port_event(uint16_t id, enum rte_eth_event_type type, void *arg, void *ret)
{
	struct eng *e = arg;

	for (unsigned i = 0; i < e->cfg.nports; i++)
		if (e->ports[i].started && e->ports[i].id == id)
			port_lost(e, &e->ports[i]);
	return 0;
}

static void
on_device_event(const char *device, enum rte_dev_event_type type, void *arg)
{
	struct eng *e = arg;

	if (type != RTE_DEV_EVENT_REMOVE || device == NULL)
		return;
	for (unsigned i = 0; i < e->cfg.nports; i++)
		if (e->ports[i].started && strcmp(e->ports[i].device, device) == 0)
			port_lost(e, &e->ports[i]);
}

/* ---- The registers of a PCI device, which the kernel maps from its files resource0..5 ---- */

static void
bars_guard(struct eng_port *p)
{
	char line[512], part[sizeof(p->device) + 16];
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t from, to;
	unsigned n = 0;

	snprintf(part, sizeof(part), "/%s/resource", p->device);
	while (maps != NULL && n < ENG_BARS && fgets(line, sizeof(line), maps) != NULL)
		if (strstr(line, part) != NULL &&
			sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2)
			p->bars[n++] = eng_guard((void *)from, to - from, &p->gone);
	if (maps != NULL)
		fclose(maps);
}

static void
bars_unguard(struct eng_port *p)
{
	for (unsigned n = 0; n < ENG_BARS; n++) {
		eng_unguard(p->bars[n]);
		p->bars[n] = -1;
	}
}

/* ---- The watch ---- */

void
eng_port_watch(struct eng *e, unsigned i)
{
	static bool monitored; /* set by the first port, before any loop runs */
	struct eng_port *p = &e->ports[i];
	struct rte_eth_dev_info info;
	const struct rte_devargs *args;

	for (unsigned n = 0; n < ENG_BARS; n++)
		p->bars[n] = -1;
	if (rte_eth_dev_info_get(p->id, &info) != 0 || info.device == NULL ||
		rte_eth_dev_get_name_by_port(p->id, p->name) != 0)
		return;
	args = rte_dev_devargs(info.device);
	snprintf(p->device, sizeof(p->device), "%s", rte_dev_name(info.device));
	if (args != NULL && args->args != NULL && args->args[0] != '\0')
		snprintf(p->args, sizeof(p->args), "%s", args->args);
	(void)rte_eth_dev_callback_register(p->id, RTE_ETH_EVENT_INTR_RMV, on_port_event, e);
	if (strcmp(rte_bus_name(rte_dev_bus(info.device)), "pci") != 0)
		return;
	bars_guard(p);
	(void)rte_dev_event_callback_register(p->device, on_device_event, e);
	if (!monitored && rte_dev_event_monitor_start() != 0)
		sk_log(SK_LOG_INFO, "EAL cannot watch for devices that are removed");
	monitored = true;
}

void
eng_port_unwatch(struct eng *e, unsigned i)
{
	struct eng_port *p = &e->ports[i];

	/* -EAGAIN: a thread of EAL is in the callback. */
	while (rte_eth_dev_callback_unregister(p->id, RTE_ETH_EVENT_INTR_RMV, on_port_event, e) ==
		-EAGAIN)
		sched_yield();
	while (rte_dev_event_callback_unregister(p->device, on_device_event, e) == -EAGAIN)
		sched_yield();
	bars_unguard(p);
}

/* ---- The end of the device ---- */

static bool
is_on_port(const void *port, const struct tcp_tuple *tuple)
{
	return tuple->port == *(const uint16_t *)port;
}

void
eng_port_leave(struct eng_transport *t, uint16_t port)
{
	struct eng_port *p = &t->e->ports[port];
	uint64_t bit = 1ull << t->index;

	if (__atomic_load_n(&p->left, __ATOMIC_ACQUIRE) & bit)
		return;
	if (!eng_port_is_gone(p))
		return; /* it has come back since the caller looked; see eng_port_back() */
	for (uint32_t i = 0; i < t->fresh && !eng_port_is_again(p); i++) {
		struct eng_conn *c = &t->conns[i];

		if (c->state == ECONN_FREE || !eng_conn_alive(c) || c->path.port != port)
			continue;
		if (c->state == ECONN_CARRIER) {
			tcp_abort(c->tcp, t->now);
			continue;
		}
		sk_count(t->counters, ENG_PORT_GONE);
		eng_startup_fail(t, c, -ENETDOWN);
	}
	if (eng_port_is_again(p))
		net_port_forget(t->net, port);
	else
		tcp_left_reset(t->tcp, t->now, is_on_port, &port);
	/* Frames in the queue of this stage are dropped at the end of the turn (send_burst()). */
	__atomic_fetch_or(&p->left, bit, __ATOMIC_RELEASE);
}

void
eng_port_release(struct eng *e, unsigned i)
{
	struct eng_port *p = &e->ports[i];
	struct rte_eth_dev_info info;
	int rc;

	eng_intr_close(e, i);
	eng_port_unwatch(e, i);
	p->started = false;
	rc = rte_eth_dev_info_get(p->id, &info);
	if (rc == 0)
		(void)rte_eth_dev_stop(p->id);
	if (rc == 0 && info.device != NULL)
		rc = rte_dev_remove(info.device);
	if (rc != 0)
		sk_log(SK_LOG_INFO, "port %u: EAL cannot close the device %s: %s", p->id, p->device,
			strerror(-rc));
}

/* ---- The device comes back ---- */

/* A stage that finds its bit in p->left cleared sees the other two stores as well. */
void
eng_port_back(struct eng_port *p)
{
	__atomic_store_n(&p->gone, false, __ATOMIC_RELEASE);
	__atomic_store_n(&p->again, false, __ATOMIC_RELAXED);
	__atomic_store_n(&p->left, 0, __ATOMIC_RELEASE);
}

static int
attach_refuse(char *err, size_t errlen, const struct eng_port *p, const char *why, int rc)
{
	snprintf(err, errlen, "port %u: %s (%s)", p->id, why, strerror(-rc));
	return rc;
}

/* Lets EAL find the device again, and sets p->id. */
static int
attach_probe(struct eng_port *p, char *err, size_t errlen)
{
	char text[sizeof(p->device) + sizeof(p->args) + 1];
	int rc;

	snprintf(text, sizeof(text), "%s%s%s", p->device, p->args[0] != '\0' ? "," : "", p->args);
	rc = rte_dev_probe(text);
	if (rc != 0) {
		snprintf(err, errlen, "port %u: EAL finds no device %s: %s", p->id, text,
			strerror(-rc));
		return rc;
	}
	rc = rte_eth_dev_get_port_by_name(p->name, &p->id);
	if (rc != 0)
		snprintf(err, errlen, "the device %s has no port %s", text, p->name);
	return rc;
}

int
eng_port_attach(struct eng *e, unsigned i, char *err, size_t errlen)
{
	struct eng_port *p = &e->ports[i];
	uint16_t tx_queues = p->tx_queues;
	struct rte_ether_addr mac;
	int rc;

	if (!eng_port_is_gone(p) || eng_port_is_again(p))
		return attach_refuse(err, errlen, p, "its device was not removed", -EEXIST);
	if (p->started)
		return attach_refuse(err, errlen, p, "its removed device is still in use", -EBUSY);
	rc = attach_probe(p, err, errlen);
	if (rc != 0)
		return rc;
	rc = eng_port_open(e, i, err, errlen);
	if (rc == 0 && p->tx_queues != tx_queues)
		rc = attach_refuse(
			err, errlen, p, "the device has other queues than before", -EINVAL);
	if (rc != 0) {
		eng_port_release(e, i);
		return rc;
	}
	memcpy(&mac, p->mac, sizeof(mac));
	if (rte_eth_dev_default_mac_addr_set(p->id, &mac) != 0)
		(void)rte_eth_promiscuous_enable(p->id);
	p->looks = 0;
	eng_port_back(p);
	sk_log(SK_LOG_INFO, "port %u: its device %s is back", p->id, p->device);
	eng_wake(e, UINT32_MAX);
	return 0;
}
