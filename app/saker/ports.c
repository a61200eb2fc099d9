/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Translates a user's names of ports (DPDK's number, the name of a device, the N of [port N]) into
 * the engine's configuration. If no port is configured, the engine uses all ports that EAL found,
 * with DPDK's numbers.
 */
#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>

#include "../../lib/wire/wire.h"
#include "saker.h"
#include "values.h"

/* The user's names of the ports, as ports_resolve() has found them. */
static struct names {
	char device[ENG_MAX_PORTS][RTE_ETH_NAME_MAX_LEN];
	unsigned label[ENG_MAX_PORTS]; /* the N of [port N] */
} found;

/* Returns DPDK's number of a device by its name or number, or -1. */
static int
device_find(const char *text)
{
	uint16_t id;
	uint32_t n;

	if (rte_eth_dev_get_port_by_name(text, &id) == 0)
		return id;
	if (!value_number(text, &n) || n >= RTE_MAX_ETHPORTS ||
		!rte_eth_dev_is_valid_port((uint16_t)n))
		return -1;
	return (int)n;
}

/* Writes the devices that EAL found: "0 (net_ring0), 1 (net_tap0)". */
static void
device_list(char *buf, size_t len)
{
	uint16_t id;
	size_t at = 0;

	snprintf(buf, len, "none");
	RTE_ETH_FOREACH_DEV(id)
	{
		char name[RTE_ETH_NAME_MAX_LEN];

		if (rte_eth_dev_get_name_by_port(id, name) == 0 && at < len)
			at += (size_t)snprintf(
				buf + at, len - at, "%s%u (%s)", at > 0 ? ", " : "", id, name);
	}
}

static int
port_add(struct settings *s, struct names *names, const struct port_setting *p, unsigned label,
	uint16_t id, char why[WHY_LEN])
{
	struct eng_config *c = &s->eng;
	struct eng_port_config *out = &c->ports[c->nports];
	/* A value for all ports from the command line or the environment takes precedence over the
	 * file's value for one port. */
	bool mtu = settings_source(s, "saker", "mtu") >= FROM_ENVIRONMENT;
	bool rxd = settings_source(s, "saker", "rxd") >= FROM_ENVIRONMENT;
	bool txd = settings_source(s, "saker", "txd") >= FROM_ENVIRONMENT;

	for (unsigned i = 0; i < c->nports; i++)
		if (c->ports[i].port_id == id)
			return settings_refuse(why, "[port %u] and [port %u] are the same device",
				names->label[i], label);
	if (c->nports == ENG_MAX_PORTS)
		return settings_refuse(why,
			"EAL found more than %u ports; select some with [port N]", ENG_MAX_PORTS);
	out->port_id = id;
	out->mtu = mtu || p->mtu == 0 ? s->mtu : p->mtu;
	out->rxd = rxd || p->rxd == 0 ? s->rxd : p->rxd;
	out->txd = txd || p->txd == 0 ? s->txd : p->txd;
	out->offload_cksum = p->checksum;
	out->offload_tso = p->tso;
	out->interrupts = p->interrupts;
	names->label[c->nports] = label;
	rte_eth_dev_get_name_by_port(id, names->device[c->nports]);
	c->nports++;
	return 0;
}

static int
ports_configured(struct settings *s, struct names *names, char why[WHY_LEN])
{
	char list[160];
	int rc = 0;

	for (unsigned i = 0; i < ENG_MAX_PORTS && rc == 0; i++) {
		const struct port_setting *p = &s->ports[i];
		char number[16];
		int id;

		if (!p->present)
			continue;
		snprintf(number, sizeof(number), "%u", i);
		id = device_find(p->device[0] != '\0' ? p->device : number);
		if (id < 0) {
			device_list(list, sizeof(list));
			settings_refuse(why, "[port %u]: there is no device '%s'; EAL found %s", i,
				p->device[0] != '\0' ? p->device : number, list);
			return -ENODEV;
		}
		rc = port_add(s, names, p, i, (uint16_t)id, why);
	}
	return rc;
}

static int
ports_found(struct settings *s, struct names *names, char why[WHY_LEN])
{
	const struct port_setting any = {.checksum = true, .tso = true, .interrupts = true};
	uint16_t id;

	RTE_ETH_FOREACH_DEV(id)
	{
		int rc = port_add(s, names, &any, id, id, why);

		if (rc < 0)
			return rc;
	}
	return 0;
}

int
ports_index(const struct eng_config *c, const char *text)
{
	uint32_t n = 0;
	bool number = value_number(text, &n);

	for (unsigned i = 0; i < c->nports; i++)
		if (strcmp(found.device[i], text) == 0 || (number && found.label[i] == n))
			return (int)i;
	return -1;
}

unsigned
ports_label(unsigned index)
{
	return found.label[index];
}

int
ports_addresses(struct settings *s, char why[WHY_LEN])
{
	struct eng_config *c = &s->eng;
	char addr[SK_ADDR_STRLEN], list[100];

	c->nifs = c->nroutes = 0;
	for (unsigned i = 0; i < ENG_MAX_ROUTES; i++)
		if (s->routes[i].present)
			c->routes[c->nroutes++] =
				(struct eng_route_config){.dst = s->routes[i].destination.addr,
					.prefix = s->routes[i].destination.len,
					.gateway = s->routes[i].gateway};
	for (unsigned i = 0; i < ENG_MAX_IFS; i++) {
		const struct if_setting *f = &s->ifs[i];
		int port;

		if (!f->present)
			continue;
		port = ports_index(c, f->port);
		if (port < 0) {
			device_list(list, sizeof(list));
			settings_refuse(why, "address %s: there is no port '%s'; EAL found %s",
				sk_addr_str(&f->address.addr, addr), f->port, list);
			return -ENODEV;
		}
		c->ifs[c->nifs++] = (struct eng_if_config){.port = (uint16_t)port,
			.vlan = f->vlan,
			.addr = f->address.addr,
			.prefix = f->address.len};
	}
	return 0;
}

int
ports_resolve(struct settings *s, char why[WHY_LEN])
{
	struct eng_config *c = &s->eng;
	int rc;

	c->nports = 0;
	rc = ports_configured(s, &found, why);
	if (rc == 0 && c->nports == 0)
		rc = ports_found(s, &found, why);
	if (rc < 0)
		return rc;
	if (c->nports == 0) {
		settings_refuse(why, "EAL found no Ethernet port; add one with -a or --vdev");
		return -ENODEV;
	}
	return ports_addresses(s, why);
}
