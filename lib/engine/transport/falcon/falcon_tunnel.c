/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The modes of PSP (Falcon 7.1): transport mode, or tunnel mode with an inner IP header between the
 * PSP and the Falcon header. The inner addresses are those of the connect request, for example of
 * virtual machines; the outer addresses are those of the hosts. The inner header is not encrypted,
 * as the CID behind it must not be, but it is authenticated. The CID and the key identify the
 * connection, and the fields of the inner header are only compared with it.
 */
#include <errno.h>
#include <stdlib.h>

#include "falcon_priv.h"

#define INNER_TTL 64

static int
inner_open(struct eng_falcon_conn *fc, const struct eng_falcon_open *o)
{
	fc->tunnel = calloc(1, sizeof(*fc->tunnel));
	if (fc->tunnel == NULL)
		return -ENOMEM;
	fc->tunnel->len = sk_addr_is_v4(&o->raddr) ? IP4_LEN : IP6_LEN;
	fc->tunnel->ip = (struct wire_ip){.src = o->laddr,
		.dst = o->raddr,
		.proto = PSP_NEXT_FALCON,
		.ttl = INNER_TTL,
		.dscp = o->class.dscp,
		.ecn = IP_ECN_ECT0};
	return 0;
}

/* Returns whether packets with `payload` bytes of RDMA payload fit the MTU of the outer path. */
static bool
fits(const struct eng_falcon_conn *fc, uint32_t payload)
{
	return fc->path.l3_len + UDP_LEN + PSP_LEN + fc->extra + FALCON_PUSH_DATA_LEN + payload +
		       PSP_ICV_LEN <=
	       fc->path.mtu;
}

int
eng_falcon_tunnel_open(
	struct eng_transport *t, struct eng_falcon_conn *fc, const struct eng_falcon_open *o)
{
	struct tcp_tuple ends = {.laddr = o->tunnel ? o->outer_laddr : o->laddr,
		.raddr = o->tunnel ? o->outer_raddr : o->raddr};
	unsigned inner = 0;
	struct wire_eth eth;
	int rc;

	rc = net_path_init(t->net, &fc->path, &ends.laddr, &ends.raddr, IP_UDP, t->now);
	if (rc == 0 && o->tunnel)
		rc = inner_open(fc, o);
	if (rc < 0)
		return rc;
	net_path_set_class(&fc->path, &o->class);
	fc->port = o->port;
	fc->vlan = o->vlan;
	fc->tx_psp.next = PSP_NEXT_FALCON;
	if (fc->tunnel != NULL) {
		inner = fc->tunnel->len;
		wire_eth_parse(&eth, fc->path.head, fc->path.l2_len);
		fc->port = fc->path.port;
		fc->vlan = eth.vlan;
		fc->tx_psp.next = inner == IP4_LEN ? PSP_NEXT_IP4 : PSP_NEXT_IP6;
	}
	fc->raddr = ends.raddr;
	fc->addr_sum = eng_addr_sum(&ends, IP_UDP);
	fc->extra = (uint16_t)(inner + (o->has_cookie ? PSP_VC_LEN : 0));
	fc->tx_psp.has_vc = o->has_cookie;
	fc->tx_psp.vc = o->tx_cookie;
	fc->tx_psp.crypt_offset = wire_psp_crypt_offset(o->has_cookie, inner);
	return fc->tunnel == NULL || fits(fc, o->fa.mtu) ? 0 : -EMSGSIZE;
}

void
eng_falcon_tunnel_close(struct eng_falcon_conn *fc)
{
	free(fc->tunnel);
	fc->tunnel = NULL;
}

void
eng_falcon_inner_emit(
	struct eng_transport *t, const struct eng_falcon_conn *fc, uint8_t *at, uint32_t len)
{
	struct wire_ip *ip = &fc->tunnel->ip;

	ip->id = t->ip_id;
	ip->payload_len = len;
	wire_ip_emit(at, ip);
}

int
eng_falcon_inner_len(uint8_t next)
{
	switch (next) {
	case PSP_NEXT_FALCON:
		return 0;
	case PSP_NEXT_IP4:
		return IP4_LEN;
	case PSP_NEXT_IP6:
		return IP6_LEN;
	default:
		return -WIRE_IP_PROTOCOL;
	}
}

int
eng_falcon_inner_check(
	const struct eng_falcon_conn *fc, const uint8_t *p, uint32_t inner, uint32_t len, bool *ce)
{
	const struct wire_ip *ours;
	struct wire_ip ip;
	int n;

	*ce = false;
	if (fc->tunnel == NULL || inner == 0)
		return fc->tunnel == NULL && inner == 0 ? 0 : -ENG_FALCON_INNER;
	ours = &fc->tunnel->ip;
	n = inner == IP4_LEN ? wire_ip4_parse(&ip, p, inner + len)
			     : wire_ip6_parse(&ip, p, inner + len);
	if (n != (int)inner || ip.proto != PSP_NEXT_FALCON || ip.payload_len != len ||
		!sk_addr_eq(&ip.src, &ours->dst) || !sk_addr_eq(&ip.dst, &ours->src))
		return -ENG_FALCON_INNER;
	*ce = ip.ecn == IP_ECN_CE;
	return 0;
}
