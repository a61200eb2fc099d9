/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An address that several machines share as the outer one of their Falcon packets (Falcon 7.1.2): a
 * port of the switch without a device. A net_stack answers for it, as any host does for its
 * address. A Falcon packet to it goes to that machine whose Destination Function the cookie
 * (PCID, 9.2.1) begins with: the one thing about a packet's receiver that a sealed packet shows as
 * well, and that an acknowledgement has, too. The seal covers it, and the machine's own engine
 * checks both, cookie and function; here they only say where to.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/net/net.h"
#include "../../lib/wire/falcon.h"
#include "switch_priv.h"

#define REFUSE(...) (snprintf(err, errlen, __VA_ARGS__), NULL)

struct gw_tunnel {
	struct gw_switch *sw;
	struct net_stack *net;
	struct gw_claim claim;
	uint8_t mac[6];
	int port; /* atomic: of the switch, or -1 */
};

/* ops.send: an answer. What is said while it is made (the address is announced) finds no port. */
static void
tunnel_answer(void *ctx, uint16_t net_port, const uint8_t *frame, size_t len)
{
	struct gw_tunnel *t = ctx;
	int port = __atomic_load_n(&t->port, __ATOMIC_ACQUIRE);
	struct rte_mbuf *m = port < 0 ? NULL : rte_pktmbuf_alloc(t->sw->pool);
	void *at = m == NULL ? NULL : rte_pktmbuf_append(m, (uint16_t)len);

	(void)net_port;
	if (at != NULL) {
		memcpy(at, frame, len);
		sw_forward(t->sw, &t->sw->ports[port], m);
		return;
	}
	rte_pktmbuf_free(m);
	if (port >= 0)
		sk_count(t->sw->counters, GW_NO_MBUF);
}

/* No frame waits for a neighbour here, and no transport hears of errors. */
static void
tunnel_release(void *ctx, uint16_t port, void *frame, const uint8_t *dst_mac)
{
	(void)ctx, (void)port, (void)frame, (void)dst_mac;
}

static void
icmp_error(void *ctx, uint16_t port, uint16_t vlan, const struct wire_icmp *icmp)
{
	(void)ctx, (void)port, (void)vlan, (void)icmp;
}

/* Locally administered, and the same for the same address: FNV-1a. */
static void
tunnel_mac_of(const struct sk_addr *a, uint8_t mac[6])
{
	uint64_t h = 14695981039346656037ull;

	for (unsigned i = 0; i < sizeof(a->b); i++)
		h = (h ^ a->b[i]) * 1099511628211ull;
	for (unsigned i = 0; i < 6; i++)
		mac[i] = (uint8_t)(h >> (8 * i));
	mac[0] = (mac[0] & 0xfc) | 0x02;
}

static int
plug(struct gw_tunnel *t)
{
	struct gw_port_config pc = {.kind = GW_TUNNEL,
		.tenant = GW_HOST,
		.vlan = t->claim.vlan,
		.claims = &t->claim,
		.nclaims = 1,
		.tunnel = t};

	memcpy(pc.mac, t->mac, sizeof(pc.mac));
	return gw_switch_add(t->sw, &pc);
}

struct gw_tunnel *
gw_tunnel_create(struct gw_switch *sw, const struct sk_addr *addr, uint16_t vlan, uint32_t mtu,
	char *err, size_t errlen)
{
	const struct net_ops ops = {
		.send = tunnel_answer, .release = tunnel_release, .icmp_error = icmp_error};
	unsigned whole = sk_addr_is_v4(addr) ? 32 : 128;
	struct gw_tunnel *t;
	char text[SK_ADDR_STRLEN];
	int ifindex, port;

	if (gw_switch_claimed(sw, addr, vlan))
		return REFUSE("somebody has the address %s already", sk_addr_str(addr, text));
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return REFUSE("no memory for a tunnel");
	*t = (struct gw_tunnel){.sw = sw, .claim = {.addr = *addr, .vlan = vlan}, .port = -1};
	tunnel_mac_of(addr, t->mac);
	t->net = net_create(&ops, t, 0);
	ifindex = t->net == NULL ? -ENOMEM : net_if_add(t->net, 0, vlan, t->mac, mtu);
	if (ifindex < 0 || net_addr_add(t->net, ifindex, addr, whole, 0) < 0) {
		gw_tunnel_destroy(t);
		return REFUSE("a tunnel cannot end at %s", sk_addr_str(addr, text));
	}
	port = plug(t);
	__atomic_store_n(&t->port, port, __ATOMIC_RELEASE);
	if (port >= 0)
		return t;
	gw_tunnel_destroy(t);
	return REFUSE("the switch has no port for a tunnel at %s", sk_addr_str(addr, text));
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

/* ---- Frames ---- */

static struct sw_port *
tunnel_find(struct gw_switch *sw, const struct gw_tunnel *t, uint32_t function)
{
	for (uint32_t i = 0; i < sw->last; i++) {
		struct sw_port *p = &sw->ports[i];

		if (sw_in_use(p) && p->cfg.kind == GW_ENGINE && p->cfg.tunnel == t &&
			p->cfg.function == function)
			return p;
	}
	return NULL;
}

/* To the machine's engine, as if it had been sent there. */
static void
tunnel_pass(struct gw_switch *sw, struct sw_port *to, struct rte_mbuf *m)
{
	if (rte_mbuf_refcnt_read(m) > 1 || !RTE_MBUF_DIRECT(m))
		m = sw_own_copy(sw, m);
	if (m == NULL)
		return;
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), to->cfg.mac, sizeof(to->cfg.mac));
	sw_put(sw, to, m);
}

static bool
is_psp(const struct wire_pkt *pkt)
{
	return (pkt->eth.type == ETH_IPV4 || pkt->eth.type == ETH_IPV6) &&
	       pkt->ip.proto == IP_UDP && pkt->udp.dport == PSP_UDP_PORT;
}

static void
falcon(struct gw_switch *sw, const struct gw_tunnel *t, const struct wire_pkt *pkt,
	struct rte_mbuf *m)
{
	const uint8_t *at = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->payload);
	struct sw_port *to = NULL;
	struct wire_psp psp;

	if (pkt->payload + RTE_MIN(pkt->payload_len, (uint32_t)PSP_MAX) > m->data_len ||
		!sk_addr_eq(&pkt->ip.dst, &t->claim.addr) ||
		wire_psp_parse(&psp, at, pkt->payload_len) < 0 ||
		(psp.next != PSP_NEXT_IP4 && psp.next != PSP_NEXT_IP6)) {
		sw_drop(sw, m, GW_TUNNELED);
		return;
	}
	if (psp.has_vc)
		to = tunnel_find(sw, t, wire_psp_vc_function(psp.vc));
	if (to == NULL)
		sw_drop(sw, m, GW_FUNCTION);
	else if (!sw_may_meet(sw->from, to))
		sw_drop(sw, m, GW_TENANT);
	else
		tunnel_pass(sw, to, m);
}

void
sw_tunnel_input(struct gw_switch *sw, struct sw_port *p, struct rte_mbuf *m)
{
	struct gw_tunnel *t = p->cfg.tunnel;
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	bool to_all = (frame[0] & 1) != 0;
	struct wire_pkt pkt;
	int rc = wire_pkt_parse(&pkt, frame, m->data_len, m->pkt_len);

	if (rc == 0 && !to_all && is_psp(&pkt)) {
		falcon(sw, t, &pkt, m);
		return;
	}
	if (rc == 0)
		rc = net_input(t->net, sw->now, 0, &pkt, frame, m->data_len);
	/* What goes to all stations concerns few. */
	if (rc < 0 && !to_all)
		sk_count(sw->counters, GW_TUNNELED);
	rte_pktmbuf_free(m);
}
