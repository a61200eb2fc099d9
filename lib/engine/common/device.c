/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices that are removed while they are in use, and devices that have to start again.
 *
 * EAL reports the removal of a PCI device (under VFIO, the kernel requests the device and waits
 * until it is closed), and some drivers report it as an event of the port. Where a device is
 * removed without a warning, the first access to its mapped registers raises SIGBUS; a guard
 * (eng_guard()) puts zero pages there. Each of the three sets d->gone. The owner closes the device
 * a second or two after its threads have noted that: threads that only read the statistics of the
 * port have finished by then.
 *
 * net_memif as client connects to its server when the port starts, and never again. When the server
 * has ended, the port has no link, and only a stop and a start connect it to the next server. Both
 * replace what the threads call, so that no thread may use the port meanwhile: d->gone is set as
 * for a removed device, and d->again.
 *
 * A port of net_memif that has started has a connection to the server, but no link until the two
 * have exchanged some messages. A server with little time on its core may need seconds for that. It
 * must not find the connection closed when it accepts it: the driver of DPDK 22.11 then closes a
 * descriptor that EAL still watches, and EAL ends the server's process. A server that is not ready
 * closes the connection itself.
 */
/* EAL's reports of devices are not yet in the stable part of its interface. */
#define ALLOW_EXPERIMENTAL_API

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>

#include "../../base/log.h"
#include "../engine.h"
#include "device_priv.h"

#define CONNECT_LOOKS 30 /* calls of eng_device_look() that a connection may take */
#define RELEASE_LOOKS 3  /* calls of eng_device_look() until an unused device is closed */

/* ---- Removal ---- */

/* Handles the report that the device is gone. Any thread. */
static void
device_lost(struct eng_device *d)
{
	__atomic_store_n(&d->gone, true, __ATOMIC_RELEASE);
	if (d->lost != NULL)
		d->lost(d->arg);
}

static int
on_port_event(uint16_t id, enum rte_eth_event_type type, void *arg, void *ret)
{
	device_lost(arg);
	return 0;
}

static void
on_device_event(const char *name, enum rte_dev_event_type type, void *arg)
{
	if (type == RTE_DEV_EVENT_REMOVE)
		device_lost(arg);
}

/* The kernel maps the registers of a PCI device from its files resource0..5. */
static void
bars_guard(struct eng_device *d)
{
	char line[512], part[sizeof(d->name) + 16];
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t from, to;
	unsigned n = 0;

	snprintf(part, sizeof(part), "/%s/resource", d->name);
	while (maps != NULL && n < ENG_BARS && fgets(line, sizeof(line), maps) != NULL)
		if (strstr(line, part) != NULL &&
			sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2)
			d->bars[n++] = eng_guard((void *)from, to - from, &d->gone);
	if (maps != NULL)
		fclose(maps);
}

static void
bars_unguard(struct eng_device *d)
{
	for (unsigned n = 0; n < ENG_BARS; n++) {
		eng_unguard(d->bars[n]);
		d->bars[n] = -1;
	}
}

/* ---- The watch ---- */

static void
speed_note(struct eng_device *d, const struct rte_eth_link *link)
{
	uint32_t mbps = link->link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link->link_speed;

	__atomic_store_n(&d->speed, mbps, __ATOMIC_RELAXED);
}

void
eng_device_watch(struct eng_device *d, void (*lost)(void *arg), void *arg)
{
	static bool monitored; /* set with the first device, before any thread uses one */
	const struct rte_devargs *args;
	struct rte_eth_dev_info info;
	struct rte_eth_link link;

	d->lost = lost;
	d->arg = arg;
	d->looks = 0;
	d->connecting = CONNECT_LOOKS;
	for (unsigned n = 0; n < ENG_BARS; n++)
		d->bars[n] = -1;
	if (rte_eth_link_get_nowait(d->id, &link) == 0)
		speed_note(d, &link);
	if (rte_eth_dev_info_get(d->id, &info) != 0 || info.device == NULL ||
		rte_eth_dev_get_name_by_port(d->id, d->port) != 0)
		return;
	args = rte_dev_devargs(info.device);
	snprintf(d->name, sizeof(d->name), "%s", rte_dev_name(info.device));
	if (args != NULL && args->args != NULL && args->args[0] != '\0')
		snprintf(d->args, sizeof(d->args), "%s", args->args);
	d->connects = info.driver_name != NULL && strcmp(info.driver_name, "net_memif") == 0 &&
		      strstr(d->args, "role=server") == NULL &&
		      strstr(d->args, "role=master") == NULL;
	(void)rte_eth_dev_callback_register(d->id, RTE_ETH_EVENT_INTR_RMV, on_port_event, d);
	if (strcmp(rte_bus_name(rte_dev_bus(info.device)), "pci") != 0)
		return;
	bars_guard(d);
	(void)rte_dev_event_callback_register(d->name, on_device_event, d);
	if (!monitored && rte_dev_event_monitor_start() != 0)
		sk_log(SK_LOG_INFO, "EAL cannot watch for devices that are removed");
	monitored = true;
}

void
eng_device_unwatch(struct eng_device *d)
{
	/* -EAGAIN: a thread of EAL is in the callback. */
	while (rte_eth_dev_callback_unregister(d->id, RTE_ETH_EVENT_INTR_RMV, on_port_event, d) ==
		-EAGAIN)
		sched_yield();
	while (rte_dev_event_callback_unregister(d->name, on_device_event, d) == -EAGAIN)
		sched_yield();
	bars_unguard(d);
}

/* ---- Polling ---- */

/* Takes a device without a link out of use if it has to start again. */
static void
again_begin(struct eng_device *d)
{
	if (!d->connects)
		return;
	if (d->connecting > 0 && eng_device_peer_open(d->args)) {
		d->connecting--;
		return;
	}
	d->looks = 0;
	__atomic_store_n(&d->again, true, __ATOMIC_RELAXED);
	device_lost(d);
}

/* Starts a device that no thread uses. If it cannot start yet, the next call tries again. */
static enum eng_device_change
again_look(struct eng_device *d)
{
	if (d->looks++ == 0)
		(void)rte_eth_dev_stop(d->id);
	if (rte_eth_dev_start(d->id) != 0)
		return ENG_DEVICE_SAME;
	d->connecting = CONNECT_LOOKS;
	return ENG_DEVICE_STARTED;
}

static enum eng_device_change
removed_look(struct eng_device *d, bool unused)
{
	if (d->looks == 0)
		sk_log(SK_LOG_WARNING, "port %u: its device %s was removed", d->id, d->name);
	d->looks = unused ? d->looks + 1 : 1;
	return d->looks >= RELEASE_LOOKS ? ENG_DEVICE_UNUSED : ENG_DEVICE_SAME;
}

enum eng_device_change
eng_device_look(struct eng_device *d, bool unused)
{
	struct rte_eth_link link;
	bool down;

	if (eng_device_is_removed(d))
		return removed_look(d, unused);
	if (eng_device_is_gone(d))
		return unused ? again_look(d) : ENG_DEVICE_SAME;
	if (rte_eth_link_get_nowait(d->id, &link) != 0)
		return ENG_DEVICE_SAME;
	speed_note(d, &link);
	down = link.link_status == RTE_ETH_LINK_DOWN;
	if (!down)
		d->connecting = 0;
	else if (__atomic_load_n(&d->down, __ATOMIC_RELAXED))
		again_begin(d);
	if (down != __atomic_load_n(&d->down, __ATOMIC_RELAXED)) {
		__atomic_store_n(&d->down, down, __ATOMIC_RELAXED);
		sk_log(SK_LOG_INFO, "port %u: the link is %s", d->id, down ? "down" : "up");
	}
	return ENG_DEVICE_SAME;
}

void
eng_device_back(struct eng_device *d)
{
	__atomic_store_n(&d->gone, false, __ATOMIC_RELEASE);
	__atomic_store_n(&d->again, false, __ATOMIC_RELAXED);
}

void
eng_device_release(struct eng_device *d)
{
	struct rte_eth_dev_info info;
	int rc;

	eng_device_unwatch(d);
	rc = rte_eth_dev_info_get(d->id, &info);
	if (rc == 0)
		(void)rte_eth_dev_stop(d->id);
	if (rc == 0 && info.device != NULL)
		rc = rte_dev_remove(info.device);
	if (rc != 0)
		sk_log(SK_LOG_INFO, "port %u: EAL cannot close the device %s: %s", d->id, d->name,
			strerror(-rc));
}

static int
probe_refuse(const struct eng_device *d, const char *why, int rc, char *err, size_t errlen)
{
	snprintf(err, errlen, "port %u: %s (%s)", d->id, why, strerror(-rc));
	return rc;
}

int
eng_device_probe(struct eng_device *d, bool in_use, char *err, size_t errlen)
{
	char text[sizeof(d->name) + sizeof(d->args) + 1];
	int rc;

	if (!eng_device_is_removed(d))
		return probe_refuse(d, "its device was not removed", -EEXIST, err, errlen);
	if (in_use)
		return probe_refuse(d, "its removed device is still in use", -EBUSY, err, errlen);
	snprintf(text, sizeof(text), "%s%s%s", d->name, d->args[0] != '\0' ? "," : "", d->args);
	rc = rte_dev_probe(text);
	if (rc != 0) {
		snprintf(err, errlen, "port %u: EAL finds no device %s: %s", d->id, text,
			strerror(-rc));
		return rc;
	}
	rc = rte_eth_dev_get_port_by_name(d->port, &d->id);
	if (rc != 0)
		snprintf(err, errlen, "the device %s has no port %s", text, d->port);
	return rc;
}
