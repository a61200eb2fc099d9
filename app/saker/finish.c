/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of settings that depend on each other, after all sources have been read. */
#include <inttypes.h>
#include <string.h>

#include "settings.h"

/* Assigns stages to loops. Without a list from the user, stages get loops of their own if there are
 * enough loops; else transport stage i and engine stage i share the loop i modulo `nloops`, so that
 * each loop runs to completion. */
static void
settings_spread(struct settings *s)
{
	struct eng_config *c = &s->eng;
	bool apart = c->ntransports + c->nstages <= c->nloops;

	for (unsigned i = 0; i < c->ntransports; i++)
		c->transport_loop[i] =
			s->transport_loops.n > 0 ? s->transport_loops.loop[i] : i % c->nloops;
	for (unsigned i = 0; i < c->nstages; i++)
		c->stage_loop[i] = s->stage_loops.n > 0 ? s->stage_loops.loop[i]
				   : apart              ? c->ntransports + i
							: i % c->nloops;
}

static int
finish_stages(struct settings *s, char why[WHY_LEN])
{
	struct eng_config *c = &s->eng;

	if (s->transport_loops.n != 0 && s->transport_loops.n != c->ntransports)
		return settings_refuse(why,
			"transport-loops lists %u loops for %u transport stages",
			s->transport_loops.n, c->ntransports);
	if (s->stage_loops.n != 0 && s->stage_loops.n != c->nstages)
		return settings_refuse(why, "stage-loops lists %u loops for %u engine stages",
			s->stage_loops.n, c->nstages);
	settings_spread(s);
	if (s->total_mbufs == 0)
		return 0;
	c->limits.rx_mbufs = s->total_mbufs / 2 / c->ntransports;
	c->limits.tx_mbufs = s->total_mbufs / 2 / c->nstages;
	if (c->limits.rx_mbufs < 256 || c->limits.tx_mbufs < 256)
		return settings_refuse(why, "total-num-mbufs %u gives a stage fewer than 256 mbufs",
			s->total_mbufs);
	return 0;
}

/* Refuses a pair of keys of a section of which the first is the greater one. */
static int
finish_crossed(const struct settings *s, const char *section, const char *key, const char *other,
	enum conf_kind kind, uint64_t least, uint64_t most, char why[WHY_LEN])
{
	char text[32];

	if (least <= most)
		return 0;
	conf_format(kind, most, text, sizeof(text));
	return settings_refuse_key(s, section, key, why, "exceeds %s = %s", other, text);
}

static int
finish_ranges(const struct settings *s, char why[WHY_LEN])
{
	const struct eng_config *c = &s->eng;
	uint64_t conns = (uint64_t)c->limits.conns + c->tcp.max_half_open + c->tcp.max_time_wait;
	int rc = finish_crossed(s, "tcp", "rto-min", "rto-max", CONF_TIME, c->tcp.rto_min_ns,
		c->tcp.rto_max_ns, why);

	if (rc == 0)
		rc = finish_crossed(s, "falcon", "rto-min", "rto-max", CONF_TIME,
			c->falcon.stack.rto_min_ns, c->falcon.stack.rto_max_ns, why);
	if (rc == 0 && c->port_min > c->port_max)
		rc = settings_refuse_key(
			s, "tcp", "port-min", why, "exceeds port-max = %u", c->port_max);
	if (rc == 0 && conns >= 1u << 24)
		rc = settings_refuse_key(s, "limits", "connections", why,
			"with [tcp] half-open = %" PRIu32 " and time-wait = %" PRIu32
			" exceeds 16777215",
			c->tcp.max_half_open, c->tcp.max_time_wait);
	return rc;
}

/* ---- Keys and certificates of Falcon, as far as that is possible without their files ---- */

static int
finish_peer(const struct settings *s, unsigned i, bool certificate, char why[WHY_LEN])
{
	const struct peer_setting *p = &s->peers[i];

	if (p->address.len == 0 && !sk_addr_is_v4(&p->address.addr))
		return settings_refuse_section(s, "peer", i, why, "lacks an address");
	if (p->psk[0] != '\0' && p->name[0] != '\0')
		return settings_refuse_section(s, "peer", i, why,
			"has both psk and name, but a name belongs to a certificate");
	if (p->psk[0] == '\0' && !certificate)
		return settings_refuse_section(
			s, "peer", i, why, "lacks psk, and there is no [falcon] certificate");
	return 0;
}

static int
finish_identity(const struct settings *s, char why[WHY_LEN])
{
	const struct identity_setting *id = &s->identity;
	bool all = id->ca[0] != '\0' && id->certificate[0] != '\0' && id->key[0] != '\0';
	bool none = id->ca[0] == '\0' && id->certificate[0] == '\0' && id->key[0] == '\0';
	int rc = 0;

	if (!all && !none)
		return settings_refuse(why,
			"[falcon] ca, certificate and key belong together, but %s is missing",
			id->ca[0] == '\0'            ? "ca"
			: id->certificate[0] == '\0' ? "certificate"
						     : "key");
	if (all && id->psk[0] != '\0')
		return settings_refuse(why,
			"[falcon] psk and [falcon] certificate exclude each other: both are for "
			"all peers");
	if (none && id->peer_name[0] != '\0')
		return settings_refuse_key(
			s, "falcon", "peer-name", why, "requires ca, certificate and key");
	for (unsigned i = 0; i < PEER_MAX && rc == 0; i++)
		if (s->peers[i].present)
			rc = finish_peer(s, i, !none, why);
	return rc;
}

/* ---- Addresses and routes ---- */

static int
finish_interface(const struct settings *s, unsigned i, char why[WHY_LEN])
{
	const struct if_setting *f = &s->ifs[i];
	char text[SK_ADDR_STRLEN];

	if (f->port[0] == '\0')
		return settings_refuse_section(s, "interface", i, why, "lacks a port");
	if (sk_addr_is_any(&f->address.addr))
		return settings_refuse_section(s, "interface", i, why, "lacks an address");
	for (unsigned k = 0; k < i; k++)
		if (s->ifs[k].present && s->ifs[k].vlan == f->vlan &&
			strcmp(s->ifs[k].port, f->port) == 0 &&
			sk_addr_eq(&s->ifs[k].address.addr, &f->address.addr))
			return settings_refuse_section(s, "interface", i, why,
				"has the address %s of [interface %u] again",
				sk_addr_str(&f->address.addr, text), k);
	return 0;
}

/* Returns whether both addresses have the same network of this prefix length. */
static bool
same_network(const struct sk_addr *a, const struct sk_addr *b, unsigned len)
{
	bool v4 = sk_addr_is_v4(a);

	return v4 == sk_addr_is_v4(b) && sk_in_prefix(a, b, len + (v4 ? 96 : 0));
}

static int
finish_gateway(const struct settings *s, unsigned i, char why[WHY_LEN])
{
	const struct sk_addr *gateway = &s->routes[i].gateway;
	char text[SK_ADDR_STRLEN], reason[CONF_WHY];
	bool connected = false;

	sk_addr_str(gateway, text);
	if (conf_host(gateway, 128, reason) < 0)
		return settings_refuse_section(s, "route", i, why, "gateway = %s %s", text, reason);
	for (unsigned k = 0; k < ENG_MAX_IFS; k++) {
		const struct prefix *p = &s->ifs[k].address;

		if (!s->ifs[k].present)
			continue;
		if (sk_addr_eq(&p->addr, gateway))
			return settings_refuse_section(s, "route", i, why,
				"gateway = %s is the address of [interface %u]", text, k);
		connected |= same_network(&p->addr, gateway, p->len);
	}
	if (!connected)
		return settings_refuse_section(s, "route", i, why,
			"gateway = %s is in the network of no [interface]", text);
	return 0;
}

static int
finish_route(const struct settings *s, unsigned i, char why[WHY_LEN])
{
	const struct route_setting *r = &s->routes[i];
	char to[SK_ADDR_STRLEN], by[SK_ADDR_STRLEN];

	if (r->destination.len == ROUTE_UNSET)
		return settings_refuse_section(s, "route", i, why, "lacks a destination");
	if (sk_addr_is_any(&r->gateway))
		return settings_refuse_section(s, "route", i, why, "lacks a gateway");
	if (sk_addr_is_v4(&r->destination.addr) != sk_addr_is_v4(&r->gateway))
		return settings_refuse_section(s, "route", i, why,
			"destination = %s/%u and gateway = %s are of different families",
			sk_addr_str(&r->destination.addr, to), r->destination.len,
			sk_addr_str(&r->gateway, by));
	return finish_gateway(s, i, why);
}

static int
finish_network(const struct settings *s, char why[WHY_LEN])
{
	int rc = 0;

	for (unsigned i = 0; i < ENG_MAX_IFS && rc == 0; i++)
		if (s->ifs[i].present)
			rc = finish_interface(s, i, why);
	for (unsigned i = 0; i < ENG_MAX_ROUTES && rc == 0; i++)
		if (s->routes[i].present)
			rc = finish_route(s, i, why);
	return rc;
}

/* ---- Connections of Falcon ---- */

static int
finish_connections(struct settings *s, char why[WHY_LEN])
{
	for (unsigned i = 0; i < ENG_MAX_MODES; i++) {
		const struct connection_setting *row = &s->connections[i];
		const struct prefix *p = &row->address;

		if (!row->present)
			continue;
		if (row->port == 0 && p->len == 0)
			return settings_refuse_section(
				s, "connection", i, why, "needs an address or a port");
		s->eng.falcon.modes[i] = (struct eng_modes_config){.present = true,
			.addr = p->addr,
			.prefix = p->len + (sk_addr_is_v4(&p->addr) ? 96 : 0),
			.port = row->port,
			.modes = {.ordering = row->ordering,
				.errors = row->errors,
				.flows = row->flows,
				.psp = row->psp,
				.mtu = (uint16_t)row->mtu}};
	}
	return 0;
}

/* ---- Clients and machines ---- */

static int
finish_users(const struct settings *s, char why[WHY_LEN])
{
	const struct eng_rates_config *r = s->eng.rates;

	for (unsigned i = 0; i < ENG_MAX_RATES; i++)
		if (r[i].present && (r[i].name[0] == '\0') == (r[i].uid == ENG_NO_UID))
			return settings_refuse_section(
				s, "client", i, why, "needs either a name or a uid");
	for (unsigned i = 0; i < VM_MAX && !s->gateway.enabled; i++)
		if (s->vms[i].present)
			return settings_refuse_section(
				s, "vm", i, why, "requires [gateway] enabled = yes");
	return 0;
}

/* Derives the path of the control socket: that of the clients' socket, with another ending. */
static int
finish_control(struct settings *s, char why[WHY_LEN])
{
	size_t n = strlen(s->socket), end = strlen(".sock");

	if (s->control[0] != '\0')
		return 0;
	if (n > end && strcmp(s->socket + n - end, ".sock") == 0)
		n -= end;
	if (snprintf(s->control, sizeof(s->control), "%.*s.control", (int)n, s->socket) <
		(int)sizeof(s->control))
		return 0;
	return settings_refuse(why,
		"[saker] socket = %s is too long to derive the path of the control socket from it; "
		"set control",
		s->socket);
}

int
settings_finish(struct settings *s, char why[WHY_LEN])
{
	int rc = finish_stages(s, why);

	if (rc == 0)
		rc = finish_control(s, why);
	if (rc == 0)
		rc = finish_ranges(s, why);
	if (rc == 0)
		rc = finish_network(s, why);
	if (rc == 0)
		rc = finish_connections(s, why);
	if (rc == 0)
		rc = finish_users(s, why);
	return rc == 0 ? finish_identity(s, why) : rc;
}
