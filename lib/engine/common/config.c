/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of an instance: its defaults and its checks. */
#include <errno.h>
#include <stdio.h>

#include <rte_ethdev.h>

#include "../../rof/exchange.h"
#include "instance.h"

/*
 * Swift's base target delay. The 25 us of hardware are a few round trips. In software, a frame
 * waits in the port's ring until the loop polls the port again, and the loop may first have to
 * checksum and place 32 frames of 8 KiB, or to copy 64 KiB, or to wait for its processor. Smaller
 * windows do not shorten this delay: with 25 us, the windows shrink until the loops wait for each
 * other.
 */
#define SWIFT_BASE_NS 100000

#define REFUSE(...) (snprintf(err, errlen, __VA_ARGS__), -EINVAL)

static void
limits_default(struct eng_limits *l)
{
	*l = (struct eng_limits){.clients = 128,
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
		.users = 16,
		.user_min = 1,
		.user_most = 100,
		.client_home_bytes = 64ull << 20,
		.client_mem_bytes = 4ull << 30,
		.sq_depth = 4096,
		.rq_depth = 4096,
		.cq_depth = 1u << 22,
		.ird = 128,
		.ord = 128};
}

static void
falcon_default(struct eng_falcon_config *f)
{
	fa_config_default(&f->stack);
	f->stack.max_conns = 0;
	f->cc = fa_swift.name;
	f->rue = fa_rue_defaults;
	f->rue.swift.base_delay = fa_ticks_near(SWIFT_BASE_NS);
	/* A peer's thread that waits for its processor delays its acknowledgements by that time.
	 * With Swift's own minimum window, a sender would then send one packet in a hundred such
	 * delays. */
	f->rue.swift.min = FA_CWND_ONE / 4;
	f->psps = ROFX_PSP(PSP_NO_CRYPTO);
	f->datagram_ordering = ROF_ORDER_WEAK; /* verbs: completions are in order */
	f->datagram_errors = ROF_ERRORS_COMPLETE;
	f->mtu = 4096;
	f->flows = 1;
	f->rnr_retry = ROF_RNR_FOREVER;
	f->rnr_code = 12; /* 640 us */
	f->port = 4795;
	f->patience_ns = 3000000000u;
	f->keepalive_ns = 10ull * 1000000000;
	f->control_idle_ns = 30ull * 1000000000;
	f->rekey_ns = 3600ull * 1000000000;
	f->rekey_packets = 1000000000;
	f->device_key_ns = 86400ull * 1000000000;
}

void
eng_config_default(struct eng_config *cfg)
{
	*cfg = (struct eng_config){.name = "saker",
		.socket_mode = ENG_SOCKET_MODE,
		.nloops = 1,
		.ntransports = 1,
		.nstages = 1,
		.idle = ENG_IDLE_POLL,
		.sleep_after = 1024,
		.vlan_pcp = {0, 1, 2, 3, 4, 5, 6, 7},
		.mpa_revision = 2,
		.mpa_crc = true,
		.port_min = 49152,
		.port_max = 65535,
		.socket_id = SOCKET_ID_ANY};
	tcp_config_default(&cfg->tcp);
	limits_default(&cfg->limits);
	falcon_default(&cfg->falcon);
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

/* Checks the row `i` of the modes for some peers or ports. */
static int
check_modes(const struct eng_falcon_config *cfg, unsigned i, char *err, size_t errlen)
{
	const struct shm_modes *modes = &cfg->modes[i].modes;
	uint16_t psp = modes->psp & (cfg->require_psp ? ROFX_PSP_KEYED : UINT16_MAX);

	if (modes->ordering > SHM_ORDER_NONE || modes->errors > SHM_ERRORS_COMPLETE)
		return REFUSE("[connection %u]: no such ordering or error mode", i);
	if (modes->ordering == SHM_ORDER_NONE && modes->errors == SHM_ERRORS_VERBS)
		return REFUSE(
			"[connection %u]: the unordered mode completes in error (RoF 6.4)", i);
	if (modes->ordering == SHM_ORDER_CONFIGURED && modes->errors == SHM_ERRORS_VERBS &&
		cfg->ordering == ROF_ORDER_NONE)
		return REFUSE("[connection %u]: the unordered mode of all connections completes in "
			      "error (RoF 6.4)",
			i);
	if (modes->psp != 0 && psp == 0)
		return REFUSE("[connection %u]: require-psp = yes, but psp lists no version with "
			      "keys",
			i);
	if ((psp & ROFX_PSP_KEYED) && cfg->tls == NULL)
		return REFUSE("[connection %u]: PSP with keys needs a pre-shared key or a "
			      "certificate, under which the exchange transfers them",
			i);
	return 0;
}

static int
check_falcon(const struct eng_falcon_config *cfg, char *err, size_t errlen)
{
	if (!cfg->enabled)
		return 0;
	if (cfg->psps == 0 || (cfg->psps & ~(ROFX_PSP_KEYED | ROFX_PSP(PSP_NO_CRYPTO))) != 0)
		return REFUSE("Falcon: no PSP version, or one that there is not");
	if (cfg->require_psp && (cfg->psps & ROFX_PSP_KEYED) == 0)
		return REFUSE("Falcon: require-psp = yes, but psp lists no version with keys");
	if ((cfg->psps & ROFX_PSP_KEYED) && cfg->tls == NULL)
		return REFUSE(
			"Falcon: PSP with keys needs a pre-shared key or a certificate, under "
			"which the exchange transfers them");
	if (cfg->ordering > ROF_ORDER_NONE || cfg->errors > ROF_ERRORS_COMPLETE ||
		cfg->datagram_ordering > ROF_ORDER_NONE ||
		cfg->datagram_errors > ROF_ERRORS_COMPLETE)
		return REFUSE("Falcon: no such ordering or error mode");
	if (cfg->datagram_ordering == ROF_ORDER_NONE && cfg->datagram_errors != ROF_ERRORS_COMPLETE)
		return REFUSE("Falcon: unordered datagrams complete in error (RoF 6.4)");
	if (cfg->ordering == ROF_ORDER_NONE && cfg->errors != ROF_ERRORS_COMPLETE)
		return REFUSE("Falcon: the unordered mode completes in error (RoF 6.4)");
	if (cfg->mtu < ROF_MTU_MIN || cfg->mtu > ROF_MTU_MAX)
		return REFUSE("Falcon: an MTU of %u is not within %u..%u", cfg->mtu, ROF_MTU_MIN,
			ROF_MTU_MAX);
	if (cfg->flows != 1 && cfg->flows != FA_FLOWS_MAX)
		return REFUSE("Falcon: %u flows: 1 or %u", cfg->flows, FA_FLOWS_MAX);
	if (fa_algorithm_find(cfg->cc) == NULL)
		return REFUSE("Falcon: no congestion control '%s'", cfg->cc);
	for (unsigned i = 0; i < ENG_MAX_MODES; i++)
		if (cfg->modes[i].present && check_modes(cfg, i, err, errlen) < 0)
			return -EINVAL;
	return fa_rue_check(&cfg->rue, err, errlen);
}

static int
check_classes(const struct eng_config *cfg, char *err, size_t errlen)
{
	for (unsigned i = 0; i < ENG_PRIORITIES; i++)
		if (cfg->vlan_pcp[i] >= ENG_PRIORITIES)
			return REFUSE("priority %u: a VLAN tag has a priority of 0 to %u, not %u",
				i, ENG_PRIORITIES - 1, cfg->vlan_pcp[i]);
	for (unsigned i = 0; i < ENG_MAX_RATES; i++)
		if (cfg->rates[i].present && cfg->rates[i].priority >= ENG_PRIORITIES)
			return REFUSE("[client %u]: a priority is 0 to %u, not %u", i,
				ENG_PRIORITIES - 1, cfg->rates[i].priority);
	return 0;
}

int
eng_config_check(const struct eng_config *cfg, char *err, size_t errlen)
{
	const struct eng_limits *lim = &cfg->limits;

	if (lim->qps == 0 || lim->conns == 0 || lim->qps > 1u << 24 || lim->conns > 1u << 24)
		return REFUSE("limits: QPs and connections are 1 to 16777216");
	if (lim->rx_mbufs < 256 || lim->tx_mbufs < 256)
		return REFUSE("limits: at least 256 receive and 256 send mbufs");
	if (lim->user_most > 100 || lim->user_min > 50)
		return REFUSE("limits: a user's minimum of %u %% and most of %u %% of a pool are "
			      "not within 0..50 and 0..100",
			lim->user_min, lim->user_most);
	if (lim->ird >= SHM_DEPTH_AUTO || lim->ord >= SHM_DEPTH_AUTO)
		return REFUSE("limits: IRD %u, ORD %u: at most %u", lim->ird, lim->ord,
			SHM_DEPTH_AUTO - 1);
	if (cfg->socket_mode < 0600 || cfg->socket_mode > 0777)
		return REFUSE("socket mode %#o: 0600 to 0777", cfg->socket_mode);
	if (cfg->mpa_revision != 1 && cfg->mpa_revision != 2)
		return REFUSE("MPA revision %u: 1 or 2", cfg->mpa_revision);
	if (cfg->port_min == 0 || cfg->port_min > cfg->port_max)
		return REFUSE("local ports %u..%u: not a range", cfg->port_min, cfg->port_max);
	if (check_falcon(&cfg->falcon, err, errlen) != 0 || check_classes(cfg, err, errlen) != 0)
		return -EINVAL;
	return check_ports(cfg, err, errlen) != 0 ? -EINVAL : check_stages(cfg, err, errlen);
}
