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
#include "handoff_priv.h"
#include "transport_priv.h"

#define DESCRIPTORS 1024 /* of a queue, when the configuration has no number */

static int
engine_port_refuse(char *err, size_t errlen, const struct eng_port *p, const char *what, int rc)
{
	snprintf(err, errlen, "port %u: %s: %s", p->id, what, strerror(-rc));
	return rc;
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

/* Enables the offloads that the port offers and the configuration enables. */
static void
choose_offloads(struct eng_port *p, const struct eng_port_config *pc,
	const struct rte_eth_dev_info *info, struct rte_eth_conf *conf, uint16_t txd)
{
	uint64_t tx = info->tx_offload_capa, rx = info->rx_offload_capa;

	p->multi_seg = (tx & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
	p->cksum = pc->offload_cksum && (tx & RTE_ETH_TX_OFFLOAD_TCP_CKSUM);
	p->ip_cksum = p->cksum && (tx & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM);
	p->udp_cksum = p->cksum && (tx & RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
	if (pc->offload_tso && p->cksum && p->multi_seg && tso_works(info))
		p->tso = tso_most(&info->tx_desc_lim, txd);
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
	if (pc->offload_cksum)
		conf->rxmode.offloads |= rx & RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
	if (rx & RTE_ETH_RX_OFFLOAD_SCATTER)
		conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
}

static int
setup_queues(struct eng *e, struct eng_port *p, uint16_t rxd, uint16_t txd)
{
	int socket = rte_eth_dev_socket_id(p->id), rc = 0;

	for (uint16_t q = 0; q < p->rx_queues && rc == 0; q++)
		rc = rte_eth_rx_queue_setup(
			p->id, q, rxd, (unsigned)socket, NULL, e->transports[q]->rx_pool);
	for (uint16_t q = 0; q < p->tx_queues && rc == 0; q++)
		rc = rte_eth_tx_queue_setup(p->id, q, txd, (unsigned)socket, NULL);
	return rc;
}

/* Sets p->mac from the configuration or from the port. A port without a MAC address (net_ring) gets
 * a random one. */
static int
take_mac(struct eng_port *p, const struct eng_port_config *pc)
{
	struct rte_ether_addr mac;
	int rc;

	memcpy(p->mac, pc->mac, sizeof(p->mac));
	memcpy(mac.addr_bytes, pc->mac, sizeof(p->mac));
	if (rte_is_valid_assigned_ether_addr(&mac))
		return 0;
	rc = rte_eth_macaddr_get(p->id, &mac);
	if (rc != 0)
		return rc;
	if (!rte_is_valid_assigned_ether_addr(&mac)) {
		sk_random(&mac, sizeof(mac));
		mac.addr_bytes[0] = (mac.addr_bytes[0] & 0xfc) | RTE_ETHER_LOCAL_ADMIN_ADDR;
		if (rte_eth_dev_default_mac_addr_set(p->id, &mac) != 0)
			(void)rte_eth_promiscuous_enable(p->id);
	}
	memcpy(p->mac, mac.addr_bytes, sizeof(p->mac));
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

/* Configures the port, sets up its queues and starts it, with receive interrupts or without them.
 * Returns 0, or -errno with a sentence in `err`. */
static int
bring_up(struct eng *e, struct eng_port *p, const struct eng_port_config *pc,
	const struct rte_eth_dev_info *info, bool interrupts, char *err, size_t errlen)
{
	uint16_t rxd = pc->rxd ? pc->rxd : DESCRIPTORS, txd = pc->txd ? pc->txd : DESCRIPTORS;
	struct rte_eth_conf conf = {.intr_conf.rxq = interrupts};
	int rc;

	conf.rxmode.mtu = mtu_to_ask(p, info);
	if (conf.rxmode.mtu == 0)
		return engine_port_refuse(err, errlen, p, "it does not carry this MTU", -EINVAL);
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &rxd, &txd);
	if (rc != 0)
		return engine_port_refuse(err, errlen, p, "refuses the numbers of descriptors", rc);
	choose_offloads(p, pc, info, &conf, txd);
	eng_home_configure(e, p, info, &conf);
	rc = rte_eth_dev_configure(p->id, p->rx_queues, p->tx_queues, &conf);
	if (rc != 0)
		return engine_port_refuse(err, errlen, p, "cannot be configured", rc);
	rc = setup_queues(e, p, rxd, txd);
	if (rc != 0)
		return engine_port_refuse(err, errlen, p, "its queues cannot be set up", rc);
	/* A port without this function carries each frame that fits the mbufs. */
	rc = rte_eth_dev_set_mtu(p->id, (uint16_t)p->mtu);
	if (rc != 0 && rc != -ENOTSUP)
		return engine_port_refuse(err, errlen, p, "refuses the MTU", rc);
	rc = rte_eth_dev_start(p->id);
	return rc == 0 ? 0 : engine_port_refuse(err, errlen, p, "does not start", rc);
}

/* Starts the port with receive interrupts if they are of use, and otherwise, or if its driver
 * refuses them, without. */
static int
bring_up_either(
	struct eng *e, unsigned i, const struct rte_eth_dev_info *info, char *err, size_t errlen)
{
	const struct eng_port_config *pc = &e->cfg.ports[i];
	struct eng_port *p = &e->ports[i];

	if (pc->interrupts && e->cfg.idle == ENG_IDLE_SLEEP) {
		if (bring_up(e, p, pc, info, true, err, errlen) == 0) {
			if (!eng_intr_open(e, i))
				sk_log(SK_LOG_INFO, "port %u has no receive interrupts", p->id);
			return 0;
		}
		sk_log(SK_LOG_INFO, "with receive interrupts, %s", err);
	}
	return bring_up(e, p, pc, info, false, err, errlen);
}

int
eng_port_start(struct eng *e, unsigned i, char *err, size_t errlen)
{
	const struct eng_port_config *pc = &e->cfg.ports[i];
	struct eng_port *p = &e->ports[i];
	struct rte_eth_dev_info info;
	int rc;

	p->id = pc->port_id;
	p->mtu = pc->mtu;
	rc = rte_eth_dev_info_get(p->id, &info);
	if (rc != 0)
		return engine_port_refuse(err, errlen, p, "no such port", rc);
	p->rx_queues = (uint16_t)RTE_MIN(e->cfg.ntransports, info.max_rx_queues);
	p->tx_queues = (uint16_t)RTE_MIN(e->cfg.ntransports, info.max_tx_queues);
	if (p->rx_queues == 0 || p->tx_queues == 0)
		return engine_port_refuse(err, errlen, p, "it has no queues", -EINVAL);
	rc = bring_up_either(e, i, &info, err, errlen);
	if (rc != 0)
		return rc;
	p->started = true;
	eng_home_spread(e, p, &info);
	/* Neighbour solicitations are sent to multicast addresses. */
	(void)rte_eth_allmulticast_enable(p->id);
	rc = take_mac(p, pc);
	return rc == 0 ? 0 : engine_port_refuse(err, errlen, p, "has no MAC address", rc);
}

void
eng_ports_look(struct eng *e)
{
	for (unsigned i = 0; i < e->cfg.nports; i++) {
		struct eng_port *p = &e->ports[i];
		struct rte_eth_link link;
		bool down;

		if (!p->started || rte_eth_link_get_nowait(p->id, &link) != 0)
			continue;
		down = link.link_status == RTE_ETH_LINK_DOWN;
		if (down == __atomic_load_n(&p->down, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&p->down, down, __ATOMIC_RELAXED);
		sk_log(SK_LOG_INFO, "port %u: the link is %s", p->id, down ? "down" : "up");
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
	eng_intr_close(e, i);
	for (unsigned q = 0; q < p->rx_queues; q++) {
		/* The number of bursts is limited, because the port may still receive frames. */
		for (unsigned k = 0; k < UINT16_MAX / ENG_BURST; k++) {
			n = rte_eth_rx_burst(p->id, (uint16_t)q, burst, ENG_BURST);
			if (n == 0)
				break;
			rte_pktmbuf_free_bulk(burst, n);
		}
	}
	(void)rte_eth_tx_done_cleanup(p->id, 0, 0);
	rte_eth_dev_stop(p->id);
	p->started = false;
}
