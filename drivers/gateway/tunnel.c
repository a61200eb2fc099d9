/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The outer address that several machines share for their Falcon packets (Falcon 7.1.2): a port of
 * the switch without a device. A net_stack answers ARP, neighbour discovery and echo requests for
 * the address. The switch forwards a Falcon packet to the machine whose Destination Function begins
 * the packet's cookie (PCID, 9.2.1). The cookie is the only field that identifies the receiver and
 * that encrypted packets and acknowledgements show as well. PSP authenticates it, and the machine's
 * engine checks both cookie and function; here they only select the port.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/net/net.h"
#include "../../lib/wire/falcon.h"
#include "gateway_priv.h"
#include "switch_priv.h"
#include "tunnel.h"

#define REFUSE(...) (snprintf(err, errlen, __VA_ARGS__), NULL)

struct gw_tunnel {
	struct gw_switch *sw;
	struct net_stack *net;
	struct gw_claim claim;
	uint8_t mac[6];
	int port; /* atomic: of the switch, or -1 */
};

/* ops.send: forwards an answer. During gw_tunnel_create() the net_stack announces the address; the
 * tunnel has no port yet, and the frame is dropped. */
static void
tunnel_answer(void *ctx, uint16_t net_port, const uint8_t *frame, size_t len)
{
	struct gw_tunnel *t = ctx;
	int port = __atomic_load_n(&t->port, __ATOMIC_ACQUIRE);
	struct rte_mbuf *m = port < 0 ? NULL : rte_pktmbuf_alloc(t->sw->pool);
	void *at = m == NULL ? NULL : rte_pktmbuf_append(m, (uint16_t)len);

	if (at != NULL) {
		memcpy(at, frame, len);
		gw_sw_forward(t->sw, &t->sw->ports[port], m);
		return;
	}
	rte_pktmbuf_free(m);
	if (port >= 0)
		sk_count(t->sw->counters, GW_NO_MBUF);
}

/* ops.release, ops.icmp_error: no frame waits for a neighbour here, and there is no transport that
 * handles ICMP errors. */
static void
tunnel_release(void *ctx, uint16_t port, void *frame, const uint8_t *dst_mac)
{
}

static void
tunnel_icmp_error(void *ctx, uint16_t port, uint16_t vlan, const struct wire_icmp *icmp)
{
}

/* ---- Frames ---- */

static struct gw_sw_port *
tunnel_find(const struct gw_tunnel *t, uint32_t function)
{
	for (uint32_t i = 0; i < t->sw->last; i++) {
		struct gw_sw_port *p = &t->sw->ports[i];

		if (gw_sw_in_use(p) && p->cfg.kind == GW_ENGINE && p->cfg.vlan == t->claim.vlan &&
			sk_addr_eq(&p->cfg.tunnel, &t->claim.addr) && p->cfg.function == function)
			return p;
	}
	return NULL;
}

/* Forwards a frame to a machine's engine, with the engine's MAC address as its destination. */
static void
tunnel_pass(struct gw_switch *sw, struct gw_sw_port *to, struct rte_mbuf *m)
{
	if (rte_mbuf_refcnt_read(m) > 1 || !RTE_MBUF_DIRECT(m))
		m = gw_sw_own_copy(sw, m);
	if (m == NULL)
		return;
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), to->cfg.mac, sizeof(to->cfg.mac));
	gw_sw_put(sw, to, m);
}

static bool
is_psp(const struct wire_pkt *pkt)
{
	return (pkt->eth.type == ETH_IPV4 || pkt->eth.type == ETH_IPV6) &&
	       pkt->ip.proto == IP_UDP && pkt->udp.dport == PSP_UDP_PORT;
}

static void
tunnel_falcon(const struct gw_tunnel *t, const struct wire_pkt *pkt, struct rte_mbuf *m)
{
	const uint8_t *at = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->payload);
	struct gw_switch *sw = t->sw;
	struct gw_sw_port *to = NULL;
	struct wire_psp psp;

	if (pkt->payload + RTE_MIN(pkt->payload_len, (uint32_t)PSP_MAX) > m->data_len ||
		!sk_addr_eq(&pkt->ip.dst, &t->claim.addr) ||
		wire_psp_parse(&psp, at, pkt->payload_len) < 0 ||
		(psp.next != PSP_NEXT_IP4 && psp.next != PSP_NEXT_IP6)) {
		gw_sw_drop(sw, m, GW_TUNNELED);
		return;
	}
	if (psp.has_vc)
		to = tunnel_find(t, wire_psp_vc_function(psp.vc));
	if (to == NULL)
		gw_sw_drop(sw, m, GW_FUNCTION);
	else if (!gw_sw_may_meet(sw->from, to))
		gw_sw_drop(sw, m, GW_TENANT);
	else
		tunnel_pass(sw, to, m);
}

static void
tunnel_input(void *arg, struct rte_mbuf *m)
{
	struct gw_tunnel *t = arg;
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	bool to_all = (frame[0] & 1) != 0;
	struct wire_pkt pkt;
	int rc = wire_pkt_parse(&pkt, frame, m->data_len, m->pkt_len);

	if (rc == 0 && !to_all && is_psp(&pkt)) {
		tunnel_falcon(t, &pkt, m);
		return;
	}
	if (rc == 0)
		rc = net_input(t->net, t->sw->now, 0, &pkt, frame, m->data_len);
	/* Broadcast and multicast frames for other stations are normal and not counted. */
	if (rc < 0 && !to_all)
		sk_count(t->sw->counters, GW_TUNNELED);
	rte_pktmbuf_free(m);
}

/* ---- Creation and removal ---- */

static int
tunnel_plug(struct gw_tunnel *t)
{
	struct gw_port_config pc = {.kind = GW_TUNNEL,
		.tenant = GW_HOST,
		.vlan = t->claim.vlan,
		.claims = &t->claim,
		.nclaims = 1,
		.input = tunnel_input,
		.input_arg = t};

	memcpy(pc.mac, t->mac, sizeof(pc.mac));
	return gw_switch_add(t->sw, &pc);
}

struct gw_tunnel *
gw_tunnel_create(struct gw_switch *sw, const struct sk_addr *addr, uint16_t vlan, uint32_t mtu,
	char *err, size_t errlen)
{
	const struct net_ops ops = {
		.send = tunnel_answer, .release = tunnel_release, .icmp_error = tunnel_icmp_error};
	unsigned whole = sk_addr_is_v4(addr) ? 32 : 128;
	struct gw_tunnel *t;
	char text[SK_ADDR_STRLEN];
	int ifindex, port;

	if (gw_switch_claimed(sw, addr, vlan))
		return REFUSE("tunnel=%s is in use by another port", sk_addr_str(addr, text));
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return REFUSE("out of memory for a tunnel");
	*t = (struct gw_tunnel){.sw = sw, .claim = {.addr = *addr, .vlan = vlan}, .port = -1};
	gw_mac_of(addr->b, sizeof(addr->b), t->mac);
	t->net = net_create(&ops, t, 0);
	ifindex = t->net == NULL ? -ENOMEM : net_if_add(t->net, 0, vlan, t->mac, mtu);
	if (ifindex < 0 || net_addr_add(t->net, ifindex, addr, whole, 0) < 0) {
		gw_tunnel_destroy(t);
		return REFUSE(
			"tunnel=%s cannot be the address of a tunnel", sk_addr_str(addr, text));
	}
	port = tunnel_plug(t);
	__atomic_store_n(&t->port, port, __ATOMIC_RELEASE);
	if (port >= 0)
		return t;
	gw_tunnel_destroy(t);
	return REFUSE("tunnel=%s: the switch has no free port, or its MAC address is in use",
		sk_addr_str(addr, text));
}

void
gw_tunnel_unplug(struct gw_tunnel *t)
{
	gw_switch_del(t->sw, t->port);
}

void
gw_tunnel_destroy(struct gw_tunnel *t)
{
	if (t == NULL)
		return;
	net_destroy(t->net);
	free(t);
}

const struct sk_addr *
gw_tunnel_addr(const struct gw_tunnel *t)
{
	return &t->claim.addr;
}
