/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start and stop of ports. A port gets a receive and a send queue for each transport stage, as far
 * as it has so many, and the offloads that it offers and that the configuration enables.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#include "../../base/log.h"
#include "../../base/mem.h"
#include "handoff_priv.h"
#include "transport_priv.h"

#define DESCRIPTORS 1024 /* of a queue, when the configuration has no number */

/* The features that a port may refuse although it offers them. */
enum wish {
	WISH_INTERRUPTS = 1,
	WISH_RSS = 2,
	WISH_TSO = 4,
	WISH_CKSUM = 8,
	WISH_SEGS = 16,
	WISH_QUEUES = 32,
	WISH_ALL = 63,
};

/* The features that bring_up_any() gives up, one more with each attempt, in this order. */
static const struct {
	enum wish wish;
	const char *name;
} wish_names[] = {
	{WISH_INTERRUPTS, "receive interrupts"},
	{WISH_RSS, "RSS"},
	{WISH_TSO, "TSO"},
	{WISH_CKSUM, "checksum offload"},
	{WISH_SEGS, "frames of several segments"},
	{WISH_QUEUES, "more than one queue"},
};

/* An attempt to start a port: the features that it requests, and the descriptors of a queue. */
struct attempt {
	unsigned wishes;
	uint16_t rxd, txd;
};

static int
engine_port_refuse(char *err, size_t errlen, const struct eng_port *p, const char *what, int rc)
{
	snprintf(err, errlen, "port %u: %s: %s", p->dev.id, what, strerror(-rc));
	return rc;
}

/* Returns the smaller one of two limits, of which 0 means none. */
static uint16_t
least_limit(uint16_t a, uint16_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Returns the most TCP payload bytes of a TSO frame. A port may limit the segments of a frame, and
 * the send queue limits them in any case, because it must hold several frames. Each ENG_COPY_MAX
 * bytes of payload need two segments at most: one for an attached record, one for the copies
 * between it and the next attached record. The headers need one more segment. */
static uint32_t
tso_most(const struct rte_eth_desc_lim *lim, uint16_t txd)
{
	uint32_t pieces = txd / 3u;

	if (lim->nb_seg_max != 0)
		pieces = RTE_MIN(pieces, (uint32_t)lim->nb_seg_max);
	pieces = RTE_MAX(pieces, 1u);
	return RTE_MIN((uint32_t)ENG_TSO_MAX, (pieces - 1) / 2 * ENG_COPY_MAX);
}

/* Returns whether TSO of the port works. The net_tap of DPDK 22.11 counts the Ethernet header as
 * part of the MTU when it checks the segment size, and refuses every frame with full segments. */
static bool
tso_works(const struct rte_eth_dev_info *info)
{
	return (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_TCP_TSO) &&
	       strcmp(info->driver_name, "net_tap") != 0;
}

/* Enables the offloads that the port offers, the configuration enables, and `wishes` has. */
static void
choose_offloads(struct eng_port *p, const struct eng_port_config *pc,
	const struct rte_eth_dev_info *info, struct rte_eth_conf *conf, struct attempt *a)
{
	uint64_t tx = info->tx_offload_capa, rx = info->rx_offload_capa;
	bool sums = pc->offload_cksum && (a->wishes & WISH_CKSUM);

	p->foreign = strcmp(info->driver_name, "net_ring") == 0;
	p->multi_seg = (a->wishes & WISH_SEGS) && (tx & RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
	p->most_segs = least_limit(info->tx_desc_lim.nb_seg_max, info->tx_desc_lim.nb_mtu_seg_max);
	p->cksum = sums && (tx & RTE_ETH_TX_OFFLOAD_TCP_CKSUM);
	p->ip_cksum = p->cksum && (tx & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM);
	p->udp_cksum = p->cksum && (tx & RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
	p->tso = 0;
	if (pc->offload_tso && (a->wishes & WISH_TSO) && p->cksum && p->multi_seg &&
		tso_works(info))
		p->tso = tso_most(&info->tx_desc_lim, a->txd);
	if (p->multi_seg)
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (p->cksum)
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
	if (p->ip_cksum)
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	if (p->udp_cksum)
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	if (p->tso > 0)
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_TCP_TSO;
	/* The IPv4 header checksum is not offloaded: computing it costs less than testing the
	 * port's result. */
	if (sums)
		conf->rxmode.offloads |= rx & RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
	if ((a->wishes & WISH_SEGS) && (rx & RTE_ETH_RX_OFFLOAD_SCATTER))
		conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
}

/* Sets up a receive queue. With several queues, a queue without a free descriptor drops frames
 * instead of blocking the others, if the driver can do so. */
static int
setup_rx_queue(const struct eng *e, const struct eng_port *p, uint16_t q, uint16_t rxd,
	const struct rte_eth_dev_info *info)
{
	unsigned socket = (unsigned)rte_eth_dev_socket_id(p->dev.id);
	struct rte_mempool *pool = e->transports[q]->rx_pool;
	struct rte_eth_rxconf conf = info->default_rxconf;

	conf.rx_drop_en = 1;
	if (p->rx_queues > 1 && rte_eth_rx_queue_setup(p->dev.id, q, rxd, socket, &conf, pool) == 0)
		return 0;
	return rte_eth_rx_queue_setup(p->dev.id, q, rxd, socket, NULL, pool);
}

static int
setup_queues(struct eng *e, struct eng_port *p, const struct attempt *a,
	const struct rte_eth_dev_info *info)
{
	int socket = rte_eth_dev_socket_id(p->dev.id), rc = 0;

	for (uint16_t q = 0; q < p->rx_queues && rc == 0; q++)
		rc = setup_rx_queue(e, p, q, a->rxd, info);
	for (uint16_t q = 0; q < p->tx_queues && rc == 0; q++)
		rc = rte_eth_tx_queue_setup(p->dev.id, q, a->txd, (unsigned)socket, NULL);
	return rc;
}

/* Sets the MAC address of the device. A device that cannot change it accepts all frames. */
static void
set_mac(const struct eng_port *p)
{
	struct rte_ether_addr mac;

	memcpy(mac.addr_bytes, p->mac, sizeof(p->mac));
	if (rte_eth_dev_default_mac_addr_set(p->dev.id, &mac) != 0)
		(void)rte_eth_promiscuous_enable(p->dev.id);
}

/* Sets p->mac from the configuration or from the port. A port without a MAC address (net_ring) gets
 * a random one. A port whose device has come back keeps its address. */
static int
take_mac(struct eng_port *p, const struct eng_port_config *pc)
{
	struct rte_ether_addr mac, have;
	int rc;

	rc = rte_eth_macaddr_get(p->dev.id, &have);
	memcpy(mac.addr_bytes, eng_device_is_gone(&p->dev) ? p->mac : pc->mac, sizeof(p->mac));
	if (!rte_is_valid_assigned_ether_addr(&mac)) {
		if (rc != 0)
			return rc;
		mac = have;
	}
	if (!rte_is_valid_assigned_ether_addr(&mac)) {
		sk_random(&mac, sizeof(mac));
		mac.addr_bytes[0] = (mac.addr_bytes[0] & 0xfc) | RTE_ETHER_LOCAL_ADMIN_ADDR;
	}
	memcpy(p->mac, mac.addr_bytes, sizeof(p->mac));
	if (rc != 0 || !rte_is_same_ether_addr(&mac, &have))
		set_mac(p);
	return 0;
}

/* Returns the MTU for rte_eth_dev_configure(), or 0 when the port cannot carry the configured one.
 * net_memif reports that it carries standard frames only and has no function to set the MTU, but it
 * carries each frame that fits its buffers (bsize=). */
static uint32_t
mtu_to_ask(const struct eng_port *p, const struct rte_eth_dev_info *info)
{
	if (p->mtu < info->min_mtu || p->mtu > info->max_mtu)
		return 0;
	if (p->mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN <= info->max_rx_pktlen)
		return p->mtu;
	return strcmp(info->driver_name, "net_memif") == 0 ? RTE_ETHER_MTU : 0;
}

static int
refuse_mtu(char *err, size_t errlen, const struct eng_port *p, const struct rte_eth_dev_info *info)
{
	uint32_t frame = info->max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN;

	snprintf(err, errlen, "port %u: it does not carry an MTU of %u, only %u to %u", p->dev.id,
		p->mtu, info->min_mtu, RTE_MIN((uint32_t)info->max_mtu, frame));
	return -EINVAL;
}

/* Sets the MTU, before the port starts or, for drivers that refuse that, afterwards. A port without
 * this function carries each frame that fits the mbufs, and one that has accepted the MTU of
 * rte_eth_dev_configure() may refuse to set it again. */
static int
start_with_mtu(struct eng_port *p, char *err, size_t errlen)
{
	int set = rte_eth_dev_set_mtu(p->dev.id, (uint16_t)p->mtu),
	    rc = rte_eth_dev_start(p->dev.id);
	uint16_t have = 0;

	if (rc != 0)
		return engine_port_refuse(err, errlen, p, "does not start", rc);
	if (set != 0 && set != -ENOTSUP)
		set = rte_eth_dev_set_mtu(p->dev.id, (uint16_t)p->mtu);
	if (set == 0 || set == -ENOTSUP)
		return 0;
	if (rte_eth_dev_get_mtu(p->dev.id, &have) == 0 && have >= p->mtu)
		return 0;
	(void)rte_eth_dev_stop(p->dev.id);
	return engine_port_refuse(err, errlen, p, "refuses the MTU", set);
}

/* Sets the queues: one of each kind for each stage, as far as the port has them. The driver of
 * net_e1000_em reports two for all its NICs. The 82540EM has one, and never sends what the second
 * one accepts; and on none of them does the driver spread received frames. */
static void
choose_queues(const struct eng *e, struct eng_port *p, const struct rte_eth_dev_info *info,
	const struct attempt *a)
{
	p->rx_queues = p->tx_queues = 1;
	if (!(a->wishes & WISH_QUEUES) || strcmp(info->driver_name, "net_e1000_em") == 0)
		return;
	p->rx_queues = (uint16_t)RTE_MIN(e->cfg.ntransports, info->max_rx_queues);
	p->tx_queues = (uint16_t)RTE_MIN(e->cfg.ntransports, info->max_tx_queues);
}

/* Configures the port with the features of `a`, sets up its queues and starts it. Returns 0, or
 * -errno with a sentence in `err`. */
static int
bring_up(struct eng *e, struct eng_port *p, const struct eng_port_config *pc,
	const struct rte_eth_dev_info *info, struct attempt *a, char *err, size_t errlen)
{
	struct rte_eth_conf conf = {.intr_conf.rxq = (a->wishes & WISH_INTERRUPTS) != 0};
	int rc;

	a->rxd = pc->rxd ? pc->rxd : DESCRIPTORS;
	a->txd = pc->txd ? pc->txd : DESCRIPTORS;
	conf.intr_conf.rmv = (*info->dev_flags & RTE_ETH_DEV_INTR_RMV) != 0;
	conf.rxmode.mtu = mtu_to_ask(p, info);
	if (conf.rxmode.mtu == 0)
		return refuse_mtu(err, errlen, p, info);
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->dev.id, &a->rxd, &a->txd);
	if (rc != 0)
		return engine_port_refuse(err, errlen, p, "refuses the numbers of descriptors", rc);
	choose_queues(e, p, info, a);
	choose_offloads(p, pc, info, &conf, a);
	p->rss = 0;
	if (a->wishes & WISH_RSS)
		eng_home_configure(e, p, info, &conf);
	rc = rte_eth_dev_configure(p->dev.id, p->rx_queues, p->tx_queues, &conf);
	if (rc != 0)
		return engine_port_refuse(err, errlen, p, "cannot be configured", rc);
	rc = setup_queues(e, p, a, info);
	if (rc != 0)
		return engine_port_refuse(err, errlen, p, "its queues cannot be set up", rc);
	return start_with_mtu(p, err, errlen);
}

/* Starts the port. If it refuses, does without one feature after the other. */
static int
bring_up_any(struct eng *e, unsigned i, const struct rte_eth_dev_info *info, struct attempt *a,
	char *err, size_t errlen)
{
	const struct eng_port_config *pc = &e->cfg.ports[i];
	struct eng_port *p = &e->ports[i];
	int rc;

	a->wishes = WISH_ALL;
	if (!pc->interrupts || e->cfg.idle != ENG_IDLE_SLEEP)
		a->wishes &= ~WISH_INTERRUPTS;
	if (e->cfg.ntransports == 1)
		a->wishes &= ~(WISH_RSS | WISH_QUEUES);
	rc = bring_up(e, p, pc, info, a, err, errlen);
	for (unsigned k = 0; k < SK_ARRAY_LEN(wish_names) && rc != 0; k++) {
		if (!(a->wishes & wish_names[k].wish))
			continue;
		a->wishes &= ~wish_names[k].wish;
		sk_log(SK_LOG_INFO, "%s; it is tried without %s", err, wish_names[k].name);
		rc = bring_up(e, p, pc, info, a, err, errlen);
	}
	return rc;
}

/* ---- After the start ---- */

static void
add_group(struct rte_ether_addr *to, unsigned *n, const uint8_t last[3])
{
	to[(*n)++] = (struct rte_ether_addr){{0x33, 0x33, 0xff, last[0], last[1], last[2]}};
}

/* Sets the groups to which neighbour solicitations and router advertisements are sent: all nodes,
 * and the solicited-node groups of the port's addresses, the link-local one included. */
static int
set_groups(const struct eng *e, unsigned i)
{
	struct rte_ether_addr groups[ENG_MAX_IFS + 2] = {{{0x33, 0x33, 0, 0, 0, 1}}};
	const struct eng_port *p = &e->ports[i];
	unsigned n = 1;

	add_group(groups, &n, p->mac + 3);
	for (unsigned k = 0; k < e->cfg.nifs; k++)
		if (e->cfg.ifs[k].port == i && !sk_addr_is_v4(&e->cfg.ifs[k].addr))
			add_group(groups, &n, e->cfg.ifs[k].addr.b + 13);
	return rte_eth_dev_set_mc_addr_list(p->dev.id, groups, n);
}

/* Makes the port accept neighbour solicitations, which are sent to multicast addresses. A port
 * without any of the functions has no filter. */
static void
accept_multicast(const struct eng *e, unsigned i)
{
	const struct eng_port *p = &e->ports[i];
	int all = rte_eth_allmulticast_enable(p->dev.id), groups, any;

	if (all == 0)
		return;
	groups = set_groups(e, i);
	any = groups == 0 ? 0 : rte_eth_promiscuous_enable(p->dev.id);
	if (groups == 0 || any == 0)
		sk_log(SK_LOG_INFO, "port %u cannot accept all multicast frames (%s): it %s",
			p->dev.id, strerror(-all),
			groups == 0 ? "accepts those to its IPv6 addresses" : "is promiscuous");
	else if (all != -ENOTSUP || groups != -ENOTSUP || any != -ENOTSUP)
		sk_log(SK_LOG_WARNING,
			"port %u accepts no multicast frames (%s): its IPv6 neighbours cannot "
			"find it",
			p->dev.id, strerror(-all));
}

/* Turns pause frames off: a stage that is late would stop all stations of the switch, and
 * congestion control needs the loss. */
static void
pause_off(const struct eng_port *p)
{
	struct rte_eth_fc_conf fc = {0};
	int rc = rte_eth_dev_flow_ctrl_get(p->dev.id, &fc);

	if (rc != 0 || fc.mode == RTE_ETH_FC_NONE)
		return;
	fc.mode = RTE_ETH_FC_NONE;
	rc = rte_eth_dev_flow_ctrl_set(p->dev.id, &fc);
	if (rc != 0)
		sk_log(SK_LOG_INFO, "port %u keeps its flow control: %s", p->dev.id, strerror(-rc));
}

/* Has a bond take in the ports that its arguments name. DPDK's driver does that when it is
 * configured, and has none of their offloads and queues before. */
static int
take_in(const struct eng_port *p, struct rte_eth_dev_info *info)
{
	struct rte_eth_conf conf = {0};
	int rc;

	if (strcmp(info->driver_name, "net_bonding") != 0)
		return 0;
	rc = rte_eth_dev_configure(p->dev.id, 1, 1, &conf);
	return rc != 0 ? rc : rte_eth_dev_info_get(p->dev.id, info);
}

/* The loops note that a device is out of use when they run. */
static void
wake_all(void *e)
{
	eng_wake(e, UINT32_MAX);
}

int
eng_port_open(struct eng *e, unsigned i, char *err, size_t errlen)
{
	const struct eng_port_config *pc = &e->cfg.ports[i];
	struct eng_port *p = &e->ports[i];
	struct rte_eth_dev_info info;
	struct attempt a;
	int rc;

	rc = rte_eth_dev_info_get(p->dev.id, &info);
	if (rc != 0)
		return engine_port_refuse(err, errlen, p, "no such port", rc);
	if (info.max_rx_queues == 0 || info.max_tx_queues == 0)
		return engine_port_refuse(err, errlen, p, "it has no queues", -EINVAL);
	rc = take_in(p, &info);
	if (rc != 0)
		return engine_port_refuse(err, errlen, p, "cannot be configured", rc);
	rc = bring_up_any(e, i, &info, &a, err, errlen);
	if (rc != 0)
		return rc;
	p->started = true;
	if ((a.wishes & WISH_INTERRUPTS) && !eng_intr_open(e, i))
		sk_log(SK_LOG_INFO, "port %u has no receive interrupts", p->dev.id);
	eng_home_spread(e, p);
	rc = take_mac(p, pc);
	if (rc != 0)
		return engine_port_refuse(err, errlen, p, "has no MAC address", rc);
	accept_multicast(e, i);
	pause_off(p);
	eng_device_watch(&p->dev, wake_all, e);
	return 0;
}

int
eng_port_start(struct eng *e, unsigned i, char *err, size_t errlen)
{
	struct eng_port *p = &e->ports[i];

	p->dev.id = e->cfg.ports[i].port_id;
	p->mtu = e->cfg.ports[i].mtu;
	for (unsigned k = 0; k < e->cfg.nifs; k++)
		p->tagged |= e->cfg.ifs[k].port == i && e->cfg.ifs[k].vlan != ETH_NO_VLAN;
	return eng_port_open(e, i, err, errlen);
}

void
eng_ports_look(struct eng *e)
{
	uint64_t all = UINT64_MAX >> (64 - e->cfg.ntransports);

	for (unsigned i = 0; i < e->cfg.nports; i++) {
		struct eng_port *p = &e->ports[i];

		if (!p->started)
			continue;
		switch (eng_device_look(
			&p->dev, __atomic_load_n(&p->left, __ATOMIC_ACQUIRE) == all)) {
		case ENG_DEVICE_STARTED:
			eng_port_back(p);
			eng_wake(e, UINT32_MAX);
			break;
		case ENG_DEVICE_UNUSED:
			eng_port_release(e, i);
			break;
		case ENG_DEVICE_SAME:
			break;
		}
	}
}

void
eng_port_stop(struct eng *e, unsigned i)
{
	struct eng_port *p = &e->ports[i];
	struct rte_mbuf *burst[ENG_BURST];
	uint16_t n;

	if (!p->started)
		return;
	if (eng_device_is_removed(&p->dev)) {
		eng_port_release(e, i);
		return;
	}
	eng_device_unwatch(&p->dev);
	eng_intr_close(e, i);
	for (unsigned q = 0; q < p->rx_queues; q++) {
		/* The number of bursts is limited, because the port may still receive frames. */
		for (unsigned k = 0; k < UINT16_MAX / ENG_BURST; k++) {
			n = rte_eth_rx_burst(p->dev.id, (uint16_t)q, burst, ENG_BURST);
			if (n == 0)
				break;
			rte_pktmbuf_free_bulk(burst, n);
		}
	}
	(void)rte_eth_tx_done_cleanup(p->dev.id, 0, 0);
	rte_eth_dev_stop(p->dev.id);
	p->started = false;
}
