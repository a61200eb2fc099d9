/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of settings, and the functions that find, set and print them. */
#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/rof/rof.h"
#include "../../lib/shm/shm_sock.h"
#include "../../lib/wire/wire.h"
#include "settings_priv.h"
#include "values.h"

#define SECOND        1000000000ull
#define ONE           1024 /* of KIND_1024THS */
#define AT(f)         offsetof(struct settings, f)
#define RUE(f)        AT(eng.falcon.rue.f)
#define PORT(f)       offsetof(struct port_setting, f)
#define IF(f)         offsetof(struct if_setting, f)
#define ROUTE(f)      offsetof(struct route_setting, f)
#define VM(f)         offsetof(struct vm_setting, f)
#define PEER(f)       offsetof(struct peer_setting, f)
#define CONNECTION(f) offsetof(struct connection_setting, f)
#define RATES(f)      offsetof(struct eng_rates_config, f)

static const struct row rows[] = {
	{"saker", "name", KIND_TEXT, AT(eng.name), 0, SHM_NAME_MAX},
	{"saker", "socket", KIND_TEXT, AT(socket), 0, PATH_LEN},
	{"saker", "socket-group", KIND_TEXT, AT(eng.socket_group), 0, ENG_GROUP_MAX},
	{"saker", "socket-mode", KIND_MODE, AT(eng.socket_mode), 0600, 0777},
	{"saker", "control", KIND_TEXT, AT(control), 0, PATH_LEN},
	{"saker", "control-group", KIND_TEXT, AT(control_group), 0, ENG_GROUP_MAX},
	{"saker", "control-mode", KIND_MODE, AT(control_mode), 0600, 0777},
	{"saker", "log", KIND_LEVEL, AT(log_level), 0, 0, AT_ONCE},
	{"saker", "idle", KIND_IDLE, AT(eng.idle), 0, 0},
	{"saker", "sleep-after", KIND_U32, AT(eng.sleep_after), 0, 1u << 30},
	{"saker", "loops", KIND_UINT, AT(eng.nloops), 1, ENG_MAX_LCORES},
	{"saker", "transports", KIND_UINT, AT(eng.ntransports), 1, ENG_MAX_TRANSPORTS},
	{"saker", "stages", KIND_UINT, AT(eng.nstages), 1, ENG_MAX_STAGES},
	{"saker", "control-loop", KIND_UINT, AT(eng.control_loop), 0, ENG_MAX_LCORES - 1},
	{"saker", "transport-loops", KIND_LOOPS, AT(transport_loops), 0, 0},
	{"saker", "stage-loops", KIND_LOOPS, AT(stage_loops), 0, 0},
	{"saker", "huge-pages", KIND_BOOL, AT(eng.huge_pages), 0, 0},
	{"saker", "mtu", KIND_U32, AT(mtu), 1280, 65535 - 18},
	{"saker", "rxd", KIND_U16, AT(rxd), 32, 32768},
	{"saker", "txd", KIND_U16, AT(txd), 32, 32768},
	{"saker", "total-num-mbufs", KIND_U32, AT(total_mbufs), 0, 1u << 26},
	{"saker", "vlan-priorities", KIND_PRIORITIES, AT(eng.vlan_pcp), 0, 0},

	{"tcp", "cc", KIND_CC, AT(eng.tcp.cc), 0, 0},
	{"tcp", "ecn", KIND_BOOL, AT(eng.tcp.ecn), 0, 0},
	{"tcp", "timestamps", KIND_BOOL, AT(eng.tcp.timestamps), 0, 0},
	{"tcp", "sack", KIND_BOOL, AT(eng.tcp.sack), 0, 0},
	{"tcp", "window-scale", KIND_U8, AT(eng.tcp.rcv_wscale), 0, 14},
	{"tcp", "send-buffer", KIND_BYTES32, AT(eng.tcp.snd_buf), 4096, 1u << 30},
	{"tcp", "receive-buffer", KIND_BYTES32, AT(eng.tcp.rcv_buf), 131072, 1u << 30},
	{"tcp", "out-of-order-slices", KIND_U32, AT(eng.tcp.ooo_slices), 1, 1u << 20},
	{"tcp", "half-open", KIND_U32, AT(eng.tcp.max_half_open), 1, 1u << 20},
	{"tcp", "half-open-per-listener", KIND_U32, AT(eng.tcp.half_open_per_listener), 1,
		1u << 20},
	{"tcp", "half-open-per-prefix", KIND_U32, AT(eng.tcp.half_open_per_prefix), 1, 1u << 20},
	{"tcp", "time-wait", KIND_U32, AT(eng.tcp.max_time_wait), 1, 1u << 20},
	{"tcp", "msl", KIND_TIME, AT(eng.tcp.msl_ns), 0, 240 * SECOND},
	{"tcp", "rto-min", KIND_TIME, AT(eng.tcp.rto_min_ns), 100000, 60 * SECOND},
	{"tcp", "rto-max", KIND_TIME, AT(eng.tcp.rto_max_ns), 100000, 300 * SECOND},
	{"tcp", "rto-initial", KIND_TIME, AT(eng.tcp.rto_initial_ns), 100000, 60 * SECOND},
	{"tcp", "delayed-ack", KIND_TIME, AT(eng.tcp.delack_ns), 0, SECOND / 2},
	{"tcp", "keepalive-idle", KIND_TIME, AT(eng.tcp.keepalive_idle_ns), 0, 86400 * SECOND},
	{"tcp", "keepalive-unfinished", KIND_TIME, AT(eng.tcp.keepalive_held_ns), 0,
		86400 * SECOND},
	{"tcp", "keepalive-interval", KIND_TIME, AT(eng.tcp.keepalive_interval_ns), 1000000,
		86400 * SECOND},
	{"tcp", "keepalive-probes", KIND_U32, AT(eng.tcp.keepalive_probes), 1, 255},
	{"tcp", "syn-retries", KIND_U32, AT(eng.tcp.syn_retries), 1, 255},
	{"tcp", "data-retries", KIND_U32, AT(eng.tcp.data_retries), 1, 255},
	{"tcp", "zero-window-timeout", KIND_TIME, AT(eng.tcp.zero_window_ns), 0, 86400 * SECOND},
	{"tcp", "port-min", KIND_U16, AT(eng.port_min), 1, 65535},
	{"tcp", "port-max", KIND_U16, AT(eng.port_max), 1, 65535},

	{"mpa", "revision", KIND_U8, AT(eng.mpa_revision), 1, 2},
	{"mpa", "crc", KIND_BOOL, AT(eng.mpa_crc), 0, 0},
	{"mpa", "markers", KIND_BOOL, AT(eng.mpa_markers), 0, 0},
	{"mpa", "fall-back", KIND_BOOL, AT(eng.mpa_fall_back), 0, 0},
	{"mpa", "first-fpdu-delay", KIND_TIME, AT(eng.mpa_first_fpdu_delay_ns), 0, SECOND},
	{"mpa", "first-fpdu-wait", KIND_TIME, AT(eng.mpa_first_fpdu_ns), 0, 60 * SECOND},

	{"rdmap", "draft-ext", KIND_BOOL, AT(eng.draft_ext), 0, 0},

	{"falcon", "enabled", KIND_BOOL, AT(eng.falcon.enabled), 0, 0},
	{"falcon", "psp", KIND_PSP, AT(eng.falcon.psps), 0, 0},
	{"falcon", "require-psp", KIND_BOOL, AT(eng.falcon.require_psp), 0, 0},
	{"falcon", "psk", KIND_SOURCE, AT(identity.psk), 0, FILE_LEN, WITH_IDENTITY},
	{"falcon", "ca", KIND_SOURCE, AT(identity.ca), 0, FILE_LEN, WITH_IDENTITY},
	{"falcon", "certificate", KIND_SOURCE, AT(identity.certificate), 0, FILE_LEN,
		WITH_IDENTITY},
	{"falcon", "key", KIND_SOURCE, AT(identity.key), 0, FILE_LEN, WITH_IDENTITY},
	{"falcon", "peer-name", KIND_TEXT, AT(identity.peer_name), 0, FILE_LEN, WITH_IDENTITY},
	{"falcon", "ordering", KIND_ORDERING, AT(eng.falcon.ordering), 0, 0},
	{"falcon", "errors", KIND_ERRORS, AT(eng.falcon.errors), 0, 0},
	{"falcon", "datagram-ordering", KIND_ORDERING, AT(eng.falcon.datagram_ordering), 0, 0},
	{"falcon", "datagram-errors", KIND_ERRORS, AT(eng.falcon.datagram_errors), 0, 0},
	{"falcon", "mtu", KIND_POWER, AT(eng.falcon.mtu), ROF_MTU_MIN, ROF_MTU_MAX},
	{"falcon", "flows", KIND_FLOWS, AT(eng.falcon.flows), 0, 0},
	{"falcon", "rnr-retry", KIND_U8, AT(eng.falcon.rnr_retry), 0, ROF_RNR_FOREVER},
	{"falcon", "rnr-delay", KIND_RNR, AT(eng.falcon.rnr_code), 0, 0},
	{"falcon", "tunnel", KIND_BOOL, AT(eng.falcon.tunnel), 0, 0},
	{"falcon", "tunnel-source", KIND_ADDR, AT(eng.falcon.tunnel_source), 0, 0},
	{"falcon", "pcid", KIND_BOOL, AT(eng.falcon.pcid), 0, 0},
	{"falcon", "function", KIND_U32, AT(eng.falcon.function), 0, 0xffffff},
	{"falcon", "keepalive", KIND_TIME, AT(eng.falcon.keepalive_ns), 0, 86400 * SECOND},
	{"falcon", "control-idle", KIND_TIME, AT(eng.falcon.control_idle_ns), 1000000,
		86400 * SECOND},
	{"falcon", "rekey-time", KIND_TIME, AT(eng.falcon.rekey_ns), 0, 30 * 86400 * SECOND},
	{"falcon", "rekey-packets", KIND_COUNT, AT(eng.falcon.rekey_packets), 0, 1ull << 60},
	{"falcon", "device-key-time", KIND_TIME, AT(eng.falcon.device_key_ns), 0,
		365 * 86400 * SECOND},
	{"falcon", "cc", KIND_RUE, AT(eng.falcon.cc), 0, 0},
	{"falcon", "rtt-weight", KIND_1024THS, RUE(rtt_alpha), 0, ONE},
	{"falcon", "rto-round-trips", KIND_U8, RUE(rto_scalar), 1, 255},
	{"falcon", "swift-target", KIND_TICKS, RUE(swift.base_delay), 1000, SECOND},
	{"falcon", "swift-per-hop", KIND_TICKS, RUE(swift.per_hop), 0, SECOND / 1000},
	{"falcon", "swift-flow-scaling", KIND_TICKS, RUE(swift.flow_max), 0, SECOND / 200},
	{"falcon", "swift-flow-from", KIND_1024THS, RUE(swift.flow_from), 1, 256 * ONE},
	{"falcon", "swift-flow-to", KIND_1024THS, RUE(swift.flow_to), 1, 256 * ONE},
	{"falcon", "swift-delay", KIND_DELAY, RUE(swift.delay_select), 0, 0},
	{"falcon", "swift-delay-weight", KIND_1024THS, RUE(swift.delay_alpha), 0, ONE},
	{"falcon", "swift-initial", KIND_1024THS, RUE(swift.initial), 1, 256 * ONE},
	{"falcon", "swift-min", KIND_1024THS, RUE(swift.min), 1, 256 * ONE},
	{"falcon", "swift-max", KIND_1024THS, RUE(swift.max), 1, 256 * ONE},
	{"falcon", "swift-increase", KIND_1024THS, RUE(swift.ai), 1, 256 * ONE},
	{"falcon", "swift-decrease", KIND_1024THS, RUE(swift.md), 0, ONE},
	{"falcon", "swift-max-decrease", KIND_1024THS, RUE(swift.max_md), 0, ONE},
	{"falcon", "swift-retransmits", KIND_U8, RUE(swift.retransmit_limit), 1, 7},
	{"falcon", "swift-early-cuts", KIND_BOOL, RUE(swift.early_cuts), 0, 0},
	{"falcon", "swift-drop-cuts", KIND_BOOL, RUE(swift.drop_cuts), 0, 0},
	{"falcon", "swift-plb-delay", KIND_1024THS, RUE(swift.plb_delay), 1, 16 * ONE},
	{"falcon", "dctcp-initial", KIND_1024THS, RUE(dctcp.initial), 1, 256 * ONE},
	{"falcon", "dctcp-min", KIND_1024THS, RUE(dctcp.min), 1, 256 * ONE},
	{"falcon", "dctcp-max", KIND_1024THS, RUE(dctcp.max), 1, 256 * ONE},
	{"falcon", "dctcp-increase", KIND_1024THS, RUE(dctcp.ai), 1, 256 * ONE},
	{"falcon", "dctcp-gain", KIND_1024THS, RUE(dctcp.gain), 1, ONE},
	{"falcon", "dctcp-early-cuts", KIND_BOOL, RUE(dctcp.early_cuts), 0, 0},
	{"falcon", "fixed-window", KIND_1024THS, RUE(fixed.fcwnd), ONE, 256 * ONE},
	{"falcon", "fixed-nic-window", KIND_1024THS, RUE(fixed.ncwnd), ONE, 256 * ONE},
	{"falcon", "nic-initial", KIND_1024THS, RUE(nic.initial), 1, 256 * ONE},
	{"falcon", "nic-min", KIND_1024THS, RUE(nic.min), 1, 256 * ONE},
	{"falcon", "nic-max", KIND_1024THS, RUE(nic.max), 1, 256 * ONE},
	{"falcon", "nic-increase", KIND_1024THS, RUE(nic.ai), 1, 256 * ONE},
	{"falcon", "nic-decrease", KIND_1024THS, RUE(nic.md), 0, ONE},
	{"falcon", "nic-max-decrease", KIND_1024THS, RUE(nic.max_md), 0, ONE},
	{"falcon", "nic-level", KIND_U8, RUE(nic.level), 1, 31},
	{"falcon", "plb-attempts", KIND_U8, RUE(plb.attempts), 0, 255},
	{"falcon", "plb-fraction", KIND_1024THS, RUE(plb.fraction), 1, ONE},
	{"falcon", "rto-min", KIND_TIME, AT(eng.falcon.stack.rto_min_ns), 10000, 10 * SECOND},
	{"falcon", "rto-max", KIND_TIME, AT(eng.falcon.stack.rto_max_ns), 10000, 10 * SECOND},
	{"falcon", "retransmits", KIND_U32, AT(eng.falcon.stack.max_retransmits), 1, 1000},
	{"falcon", "reclaim", KIND_TIME, AT(eng.falcon.stack.reclaim_ns), SECOND / 10,
		3600 * SECOND},
	{"falcon", "rack", KIND_BOOL, AT(eng.falcon.stack.rack), 0, 0},
	{"falcon", "port", KIND_U16, AT(eng.falcon.port), 1, 65535},
	{"falcon", "patience", KIND_TIME, AT(eng.falcon.patience_ns), 1000000, 86400 * SECOND},

	{"limits", "clients", KIND_U32, AT(eng.limits.clients), 1, 4096},
	{"limits", "qps", KIND_U32, AT(eng.limits.qps), 1, 1u << 24},
	{"limits", "cqs", KIND_U32, AT(eng.limits.cqs), 1, 1u << 24},
	{"limits", "mrs", KIND_U32, AT(eng.limits.mrs), 1, 1u << 24},
	{"limits", "mws", KIND_U32, AT(eng.limits.mws), 0, 1u << 24},
	{"limits", "pds", KIND_U32, AT(eng.limits.pds), 1, 1u << 24},
	{"limits", "srqs", KIND_U32, AT(eng.limits.srqs), 1, 1u << 24},
	{"limits", "listeners", KIND_U32, AT(eng.limits.listeners), 1, 65535},
	{"limits", "connections", KIND_U32, AT(eng.limits.conns), 1, 1u << 24},
	{"limits", "rx-mbufs", KIND_U32, AT(eng.limits.rx_mbufs), 256, 1u << 26},
	{"limits", "tx-mbufs", KIND_U32, AT(eng.limits.tx_mbufs), 256, 1u << 26},
	{"limits", "client-qps", KIND_U32, AT(eng.limits.client_qps), 1, 1u << 24, AT_ONCE},
	{"limits", "client-cqs", KIND_U32, AT(eng.limits.client_cqs), 1, 1u << 24, AT_ONCE},
	{"limits", "client-mrs", KIND_U32, AT(eng.limits.client_mrs), 1, 1u << 24, AT_ONCE},
	{"limits", "client-mws", KIND_U32, AT(eng.limits.client_mws), 0, 1u << 24, AT_ONCE},
	{"limits", "client-regions", KIND_U32, AT(eng.limits.client_regions), 1, SHM_MAX_REGIONS,
		AT_ONCE},
	{"limits", "client-home", KIND_BYTES, AT(eng.limits.client_home_bytes), 1u << 20,
		1ull << 36, AT_ONCE},
	{"limits", "client-memory", KIND_BYTES, AT(eng.limits.client_mem_bytes), 1u << 20,
		1ull << 44, AT_ONCE},
	{"limits", "users", KIND_U32, AT(eng.limits.users), 0, 4096},
	{"limits", "user-minimum", KIND_U32, AT(eng.limits.user_min), 0, 50},
	{"limits", "user-most", KIND_U32, AT(eng.limits.user_most), 1, 100},
	{"limits", "sq-depth", KIND_U32, AT(eng.limits.sq_depth), 2, 1u << 20},
	{"limits", "rq-depth", KIND_U32, AT(eng.limits.rq_depth), 2, 1u << 20},
	{"limits", "cq-depth", KIND_U32, AT(eng.limits.cq_depth), 2, 1u << 22},
	{"limits", "ird", KIND_U16, AT(eng.limits.ird), 0, SHM_DEPTH_AUTO - 1},
	{"limits", "ord", KIND_U16, AT(eng.limits.ord), 0, SHM_DEPTH_AUTO - 1},

	{"metrics", "listen", KIND_TEXT, AT(metrics.listen), 0, PATH_LEN},
	{"metrics", "group", KIND_TEXT, AT(metrics.group), 0, ENG_GROUP_MAX},
	{"metrics", "mode", KIND_MODE, AT(metrics.mode), 0600, 0777},

	{"gateway", "enabled", KIND_BOOL, AT(gateway.enabled), 0, 0},
	{"gateway", "uplink", KIND_TEXT, AT(gateway.uplink), 0, NAME_LEN},
	{"gateway", "mbufs", KIND_U32, AT(gateway.mbufs), 1024, 1u << 24},
};
_Static_assert(sizeof(rows) / sizeof(rows[0]) <= MAX_KEYS, "source[]");

#define VM_KEY_TEXT(id, key) [VM_##id] = (key),
#define VM_KEY_ROW(id, key)  {"vm", key, KIND_TEXT, VM(value[VM_##id]), 0, VALUE_LEN},
const char *const settings_vm_keys[VM_KEYS] = {VM_KEY_LIST(VM_KEY_TEXT)};

static const struct row numbered_rows[] = {{"port", "device", KIND_TEXT, PORT(device), 0, NAME_LEN},
	{"port", "mtu", KIND_U32, PORT(mtu), 1280, 65535 - 18},
	{"port", "rxd", KIND_U16, PORT(rxd), 32, 32768},
	{"port", "txd", KIND_U16, PORT(txd), 32, 32768},
	{"port", "checksum", KIND_BOOL, PORT(checksum), 0, 0},
	{"port", "tso", KIND_BOOL, PORT(tso), 0, 0},
	{"port", "interrupts", KIND_BOOL, PORT(interrupts), 0, 0},
	{"interface", "port", KIND_TEXT, IF(port), 0, NAME_LEN},
	{"interface", "vlan", KIND_VLAN, IF(vlan), 0, 0},
	{"interface", "address", KIND_HOST, IF(address), 0, 0},
	{"route", "destination", KIND_PREFIX, ROUTE(destination), 0, 0},
	{"route", "gateway", KIND_ADDR, ROUTE(gateway), 0, 0},
	{"peer", "address", KIND_RANGE, PEER(address), 0, 0},
	{"peer", "psk", KIND_SOURCE, PEER(psk), 0, FILE_LEN},
	{"peer", "name", KIND_TEXT, PEER(name), 0, FILE_LEN},
	{"connection", "address", KIND_RANGE, CONNECTION(address), 0, 0},
	{"connection", "port", KIND_U16, CONNECTION(port), 1, 65535},
	{"connection", "ordering", KIND_ORDERING_CHOICE, CONNECTION(ordering), 0, 0},
	{"connection", "errors", KIND_ERRORS_CHOICE, CONNECTION(errors), 0, 0},
	{"connection", "mtu", KIND_POWER, CONNECTION(mtu), ROF_MTU_MIN, ROF_MTU_MAX},
	{"connection", "flows", KIND_FLOWS, CONNECTION(flows), 0, 0},
	{"connection", "psp", KIND_PSP, CONNECTION(psp), 0, 0},
	{"client", "name", KIND_TEXT, RATES(name), 0, SHM_NAME_MAX},
	{"client", "uid", KIND_UID, RATES(uid), 0, 0},
	{"client", "weight", KIND_U32, RATES(rates.weight), 1, ENG_WEIGHT_MAX},
	{"client", "max-gbps", KIND_GIGA, RATES(rates.bits), 1000, 10000ull * 1000000000},
	{"client", "max-mops", KIND_MEGA, RATES(rates.messages), 1, 10000ull * 1000000},
	{"client", "traffic-class", KIND_U8, RATES(traffic_class), 0, 255},
	{"client", "priority", KIND_U8, RATES(priority), 0, ENG_PRIORITIES - 1},
	VM_KEY_LIST(VM_KEY_ROW)};

static const struct numbered numbered[] = {
	{"port", AT(ports), sizeof(struct port_setting), PORT(present), ENG_MAX_PORTS},
	{"interface", AT(ifs), sizeof(struct if_setting), IF(present), ENG_MAX_IFS, AT_ONCE},
	{"route", AT(routes), sizeof(struct route_setting), ROUTE(present), ENG_MAX_ROUTES,
		AT_ONCE},
	{"peer", AT(peers), sizeof(struct peer_setting), PEER(present), PEER_MAX, WITH_IDENTITY},
	{"connection", AT(connections), sizeof(struct connection_setting), CONNECTION(present),
		ENG_MAX_MODES, AT_ONCE},
	{"client", AT(eng.rates), sizeof(struct eng_rates_config), RATES(present), ENG_MAX_RATES,
		AT_ONCE},
	{"vm", AT(vms), sizeof(struct vm_setting), VM(present), VM_MAX, AS_MACHINE},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
_Static_assert(COUNT(numbered) == NUMBERED_KINDS, "section_line[]");

const struct row *
settings_row(size_t i)
{
	return i < COUNT(rows) ? &rows[i] : NULL;
}

const struct row *
settings_numbered_row(size_t i)
{
	return i < COUNT(numbered_rows) ? &numbered_rows[i] : NULL;
}

const struct numbered *
settings_numbered(size_t i)
{
	return i < COUNT(numbered) ? &numbered[i] : NULL;
}

void
settings_default(struct settings *s)
{
	memset(s, 0, sizeof(*s));
	eng_config_default(&s->eng);
	s->eng.huge_pages = true;
	strcpy(s->socket, SHM_SOCKET_DEFAULT);
	s->control_mode = 0600;
	s->log_level = SK_LOG_INFO;
	s->metrics.mode = 0600;
	s->mtu = 1500;
	s->gateway.mbufs = 16384;
	s->rxd = s->txd = 1024;
	for (unsigned i = 0; i < ENG_MAX_PORTS; i++)
		s->ports[i].checksum = s->ports[i].tso = s->ports[i].interrupts = true;
	for (unsigned i = 0; i < ENG_MAX_IFS; i++)
		s->ifs[i].vlan = ETH_NO_VLAN;
	for (unsigned i = 0; i < ENG_MAX_ROUTES; i++)
		s->routes[i].destination.len = ROUTE_UNSET;
	for (unsigned i = 0; i < ENG_MAX_RATES; i++)
		s->eng.rates[i].uid = ENG_NO_UID;
}

static const struct row *
row_find(const struct row *table, size_t n, const char *section, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(table[i].section, section) == 0 && strcmp(table[i].key, key) == 0)
			return &table[i];
	return NULL;
}

static bool
section_exists(const char *section)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		if (strcmp(rows[i].section, section) == 0)
			return true;
	return false;
}

int
settings_numbered_find(
	const char *section, const struct numbered **kind, unsigned *number, char *why)
{
	size_t len = strcspn(section, " ");
	char canonical[NAME_LEN];
	unsigned long index;

	*kind = NULL;
	for (size_t i = 0; i < COUNT(numbered); i++)
		if (strlen(numbered[i].section) == len &&
			strncmp(numbered[i].section, section, len) == 0)
			*kind = &numbered[i];
	settings_refuse(why, "is unknown");
	if (*kind == NULL)
		return -ENOENT;
	index = strtoul(section + len, NULL, 10);
	snprintf(canonical, sizeof(canonical), "%s %lu", (*kind)->section, index);
	if (strcmp(section, canonical) != 0 || index >= (*kind)->count) {
		settings_refuse(why, "needs a number within 0..%u", (*kind)->count - 1);
		return -ENOENT;
	}
	*number = (unsigned)index;
	return 0;
}

static uint8_t *
numbered_member(struct settings *s, const struct numbered *kind, unsigned number)
{
	return (uint8_t *)s + kind->at + number * kind->size;
}

int
settings_section(struct settings *s, const char *section, char why[WHY_LEN])
{
	const struct numbered *kind;
	unsigned number;

	if (section_exists(section))
		return 0;
	if (settings_numbered_find(section, &kind, &number, why) < 0)
		return -ENOENT;
	*(bool *)(numbered_member(s, kind, number) + kind->present) = true;
	s->section_line[kind - numbered][number] = s->line;
	return 0;
}

static int
set_numbered(struct settings *s, const char *section, const char *key, const char *text,
	char why[WHY_LEN])
{
	const struct numbered *kind;
	const struct row *row;
	unsigned number;

	if (settings_numbered_find(section, &kind, &number, why) < 0)
		return -ENOENT;
	row = row_find(numbered_rows, COUNT(numbered_rows), kind->section, key);
	if (row == NULL)
		return -ESRCH;
	*(bool *)(numbered_member(s, kind, number) + kind->present) = true;
	return value_parse(row->kind, row->min, row->max, text,
		numbered_member(s, kind, number) + row->at, why);
}

int
settings_set(struct settings *s, const char *section, const char *key, const char *text,
	enum source source, char why[WHY_LEN])
{
	const struct row *row = row_find(rows, COUNT(rows), section, key);
	int rc;

	if (row == NULL)
		return section_exists(section) ? -ESRCH : set_numbered(s, section, key, text, why);
	rc = value_parse(row->kind, row->min, row->max, text, (uint8_t *)s + row->at, why);
	if (rc == 0) {
		s->source[row - rows] = source;
		s->key_line[row - rows] = s->line;
	}
	return rc;
}

/* Writes "FILE:LINE: " to `buf`, or nothing for the line 0. */
static const char *
settings_place(const struct settings *s, uint32_t line, char buf[FILE_LEN + 16])
{
	buf[0] = '\0';
	if (line != 0)
		snprintf(buf, FILE_LEN + 16, "%s:%u: ", s->config_file, line);
	return buf;
}

/* Returns the line of a section with a number in the configuration file, or 0. */
static uint32_t
section_line(const struct settings *s, const char *section, unsigned number)
{
	for (size_t i = 0; i < COUNT(numbered); i++)
		if (strcmp(numbered[i].section, section) == 0)
			return s->section_line[i][number];
	return 0;
}

int
settings_refuse_section(const struct settings *s, const char *section, unsigned number,
	char why[WHY_LEN], const char *fmt, ...)
{
	char place[FILE_LEN + 16], reason[WHY_LEN / 2];
	uint32_t line = section_line(s, section, number);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	return settings_refuse(
		why, "%s[%s %u] %s", settings_place(s, line, place), section, number, reason);
}

int
settings_refuse_key(const struct settings *s, const char *section, const char *key,
	char why[WHY_LEN], const char *fmt, ...)
{
	const struct row *row = row_find(rows, COUNT(rows), section, key);
	char place[FILE_LEN + 16], reason[WHY_LEN / 2], value[FILE_LEN], shown[CONF_SHOWN];
	uint32_t line = s->source[row - rows] == FROM_FILE ? s->key_line[row - rows] : 0;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	value_format(row->kind, (const uint8_t *)s + row->at, value, sizeof(value));
	return settings_refuse(why, "%s[%s] %s = %s %s", settings_place(s, line, place), section,
		key, conf_shown(value, shown), reason);
}

const char *
settings_shown(const char *key, const char *text, char buf[CONF_SHOWN])
{
	/* A key that was put where its file belongs is not repeated. */
	bool source = text[0] == '/' || strncmp(text, CREDENTIAL, strlen(CREDENTIAL)) == 0;

	return strcmp(key, "psk") == 0 && !source ? "(a secret)" : conf_shown(text, buf);
}

enum source
settings_source(const struct settings *s, const char *section, const char *key)
{
	const struct row *row = row_find(rows, COUNT(rows), section, key);

	return row != NULL ? s->source[row - rows] : FROM_DEFAULT;
}

static bool
same_interface(const struct if_setting *a, const struct if_setting *b)
{
	return strcmp(a->port, b->port) == 0 && a->vlan == b->vlan &&
	       a->address.len == b->address.len && sk_addr_eq(&a->address.addr, &b->address.addr);
}

int
settings_add_address(struct settings *s, const char *text, char why[WHY_LEN])
{
	const char *equals = strchr(text, '=');
	struct if_setting added = {.present = true, .vlan = ETH_NO_VLAN}, *room = NULL;

	if (equals == NULL || equals == text || equals - text >= NAME_LEN)
		return settings_refuse(why, "is not PORT=ADDRESS/LENGTH");
	snprintf(added.port, sizeof(added.port), "%.*s", (int)(equals - text), text);
	if (value_parse(KIND_HOST, 0, 0, equals + 1, &added.address, why) < 0)
		return -EINVAL;
	for (unsigned i = 0; i < ENG_MAX_IFS; i++) {
		struct if_setting *f = &s->ifs[i];

		/* A saved file has the addresses of the options, too. */
		if (f->present && section_line(s, "interface", i) > 0 && same_interface(f, &added))
			return 0;
		if (!f->present && room == NULL)
			room = f;
	}
	if (room != NULL) {
		*room = added;
		return 0;
	}
	return settings_refuse(why, "exceeds the maximum of %u addresses", ENG_MAX_IFS);
}

/* Makes the name of a key in the environment: SAKER_IDLE, SAKER_TCP_RTO_MIN. */
static void
env_name(const struct row *row, char name[NAME_LEN])
{
	if (strcmp(row->section, "saker") == 0)
		snprintf(name, NAME_LEN, "SAKER_%s", row->key);
	else
		snprintf(name, NAME_LEN, "SAKER_%s_%s", row->section, row->key);
	for (char *p = name; *p != '\0'; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

/* Variables that other programs and libraries of Saker read, and its tests. A name that ends with
 * '_' stands for all that begin with it. */
static const char *const env_others[] = {"SAKER_CONFIG", "SAKER_DEVICE", "SAKER_DEVICES",
	"SAKER_IFADDRS", "SAKER_MOVE", "SAKER_POLL", "SAKER_VECTORS", "SAKER_VERBOSE",
	"SAKER_ASAN_BUILD", "SAKER_BUILD", "SAKER_GUEST_", "SAKER_SEED"};

static bool
env_known(const char *name)
{
	char known[NAME_LEN];

	for (size_t i = 0; i < COUNT(rows); i++) {
		env_name(&rows[i], known);
		if (strcmp(name, known) == 0)
			return true;
	}
	for (size_t i = 0; i < COUNT(env_others); i++) {
		size_t n = strlen(env_others[i]);

		if (strncmp(name, env_others[i], n) == 0 &&
			(name[n] == '\0' || env_others[i][n - 1] == '_'))
			return true;
	}
	return false;
}

static int
env_refuse_unknown(char why[WHY_LEN])
{
	for (char **e = environ; e != NULL && *e != NULL; e++) {
		char name[CONF_SHOWN];
		size_t n = strcspn(*e, "=");

		if (strncmp(*e, "SAKER_", 6) != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)n, *e);
		if (n >= sizeof(name) || !env_known(name))
			return settings_refuse(why, "environment variable %s is unknown", name);
	}
	return 0;
}

int
settings_environment(struct settings *s, char why[WHY_LEN])
{
	char name[NAME_LEN], reason[WHY_LEN], shown[CONF_SHOWN];

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *text;

		env_name(&rows[i], name);
		text = getenv(name);
		if (text == NULL || settings_set(s, rows[i].section, rows[i].key, text,
					    FROM_ENVIRONMENT, reason) == 0)
			continue;
		return settings_refuse(why, "environment variable %s: '%s' %s", name,
			settings_shown(rows[i].key, text, shown), reason);
	}
	return env_refuse_unknown(why);
}

static void
each_row(const struct row *row, const void *base, const char *section, const char *source,
	settings_visit *visit, void *arg)
{
	char value[FILE_LEN];

	value_format(row->kind, (const uint8_t *)base + row->at, value, sizeof(value));
	/* 0 and an empty text in a section with a number select the value of [saker]. */
	if (value[0] != '\0' && (source != NULL || row->kind == KIND_TEXT ||
					row->kind == KIND_UID || strcmp(value, "0") != 0))
		visit(arg, section, row->key, value, source);
}

static void
each_numbered(const struct settings *s, const struct numbered *n, settings_visit *visit, void *arg)
{
	char section[NAME_LEN];

	for (unsigned i = 0; i < n->count; i++) {
		const uint8_t *member = (const uint8_t *)s + n->at + i * n->size;

		if (!*(const bool *)(member + n->present))
			continue;
		snprintf(section, sizeof(section), "%s %u", n->section, i);
		visit(arg, section, NULL, NULL, NULL);
		for (size_t r = 0; r < COUNT(numbered_rows); r++)
			if (strcmp(numbered_rows[r].section, n->section) == 0)
				each_row(&numbered_rows[r], member, section, NULL, visit, arg);
	}
}

void
settings_each(const struct settings *s, settings_visit *visit, void *arg)
{
	static const char *const from[] = {"default", "file", "environment", "option", "command"};
	const char *section = "";

	for (size_t i = 0; i < COUNT(rows); i++) {
		if (strcmp(section, rows[i].section) != 0)
			visit(arg, rows[i].section, NULL, NULL, NULL);
		section = rows[i].section;
		each_row(&rows[i], s, section, from[s->source[i]], visit, arg);
	}
	for (size_t i = 0; i < COUNT(numbered); i++)
		each_numbered(s, &numbered[i], visit, arg);
}
