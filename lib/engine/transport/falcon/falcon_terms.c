/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The terms of a Falcon connection: the offer of this side, and the connection that results from
 * the offers of both sides. falcon_startup.c exchanges the offers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../../base/mem.h"
#include "../handoff_priv.h"
#include "falcon_priv.h"

_Static_assert(ENG_HOME_RPORTS == ROFX_PORTS && ENG_HOME_CLASSES == FA_FLOWS_MAX &&
		       ENG_HOME_PORT_MIN == ROFX_PORT_BASE && ENG_FALCON_SPORT == ROFX_PORT_BASE,
	"the list of ports");

#define FALCON_TTL     64
#define CREDIT_PACKETS 256 /* most outstanding requests of a connection */

static void
derive_keys(struct eng_falcon *f, struct rofx_side *s)
{
	const uint8_t *device = psp_device_key(f->device, s->spi);

	if (s->psp & (ROFX_PSP(PSP_AES_GCM_128) | ROFX_PSP(PSP_GMAC_128)))
		psp_derive_key(f->crypto, s->key128, device, s->spi, PSP_AES_GCM_128);
	if (s->psp & (ROFX_PSP(PSP_AES_GCM_256) | ROFX_PSP(PSP_GMAC_256)))
		psp_derive_key(f->crypto, s->key256, device, s->spi, PSP_AES_GCM_256);
}

int
eng_falcon_terms(struct eng_transport *t, const struct eng_conn *c, const struct tcp_tuple *ends,
	const struct eng_offer *offer, struct rofx_side *s)
{
	const struct eng_falcon_config *cfg = &t->e->cfg.falcon;
	const struct eng_falcon_ask *ask = &offer->falcon;

	*s = (struct rofx_side){
		.transport = ask->transport,
		.addressing = ask->addressing,
		.ordering = ask->ordering,
		.errors = ask->errors,
		.cid = eng_falcon_conn_of(c)->cid,
		.qpn = ask->qpn,
		.to_qpn = ask->to_qpn,
		.gid = ends->laddr,
		.to_gid = ends->raddr,
		.mtu = eng_falcon_mtu(t->e, ask->mtu, c->path.mtu),
		.ird = offer->ird,
		.ord = offer->ord,
		.request_window = FA_REQUEST_WINDOW,
		.data_window = FA_DATA_WINDOW,
		.flows = ask->flows,
		.rnr_retry = ask->rnr_retry,
		.rnr_code = ask->rnr_code,
		.ttl = FALCON_TTL,
		.function = ask->function,
		.tunnel = cfg->tunnel,
		.outer = sk_addr_is_any(&cfg->tunnel_source) ? ends->laddr : cfg->tunnel_source,
		.has_pcid = cfg->pcid,
		.psp = ask->psp,
		.spi = psp_device_spi(eng_falcon_of(t)->device),
	};
	sk_random(&s->request_psn, sizeof(s->request_psn));
	sk_random(&s->data_psn, sizeof(s->data_psn));
	sk_random(&s->rsn, sizeof(s->rsn));
	if (s->has_pcid) {
		sk_random(&s->pcid, sizeof(s->pcid));
		s->pcid = wire_psp_vc(s->function, s->pcid);
	}
	if (s->spi == 0)
		return -ENOSPC;
	eng_falcon_conn_of(c)->generation = eng_falcon_of(t)->device->generation;
	if (s->psp & ROFX_PSP_KEYED)
		derive_keys(eng_falcon_of(t), s);
	return 0;
}

/* In tunnel mode, packets may arrive at another port of the network than the control channel. If
 * its redirection table has another size, too, they are handed off. */
void
eng_falcon_list_ports(const struct eng_transport *t, struct rofx *x, const struct tcp_tuple *ends,
	const struct rofx_side *ours, const struct rofx_side *peer)
{
	const struct tcp_tuple key = {.laddr = ours->tunnel ? ours->outer : ends->laddr,
		.raddr = ours->tunnel ? peer->outer : ends->raddr,
		.lport = PSP_UDP_PORT,
		.vlan = ends->vlan,
		.port = ends->port};
	uint16_t ports[ROFX_PORTS];

	if (eng_home_rports(t->e, t->index, &key, ports))
		rofx_list_ports(x, ports);
}

/* Returns whether the UDP checksums of sent payloads are computed here: neither the port computes
 * them nor does an ICV replace them. */
static bool
terms_sums(const struct eng_transport *t, const struct eng_falcon_conn *fc)
{
	return fc->tx_psp.version == PSP_NO_CRYPTO && fc->path.port != t->loop_port &&
	       !t->e->ports[fc->path.port].udp_cksum;
}

/* Returns whether the QP is self-connected: it named itself as its peer, and receives the packets
 * that it sends. */
static bool
is_self(const struct rofx_agreed *a)
{
	return a->ours.addressing == ROFX_ADDRESS && rofx_cross(&a->ours, &a->peer) == ROFX_SELF;
}

static void
falcon_terms_credits(const struct fa_pools *pools, uint32_t mtu, struct fa_credits *out)
{
	struct fa_credits push, pull, data;

	fa_cost_push(pools, mtu + ROF_MAX, &push);
	fa_cost_pull(pools, mtu + ROF_MAX, &pull);
	fa_cost_pull_data(pools, mtu + ROF_MAX, &data);
	*out = (struct fa_credits){
		.req_pkt_tx = CREDIT_PACKETS,
		.req_buf_tx = CREDIT_PACKETS * push.req_buf_tx,
		.req_pkt_rx = CREDIT_PACKETS,
		.req_buf_rx = CREDIT_PACKETS * pull.req_buf_rx,
		.data_pkt_tx = CREDIT_PACKETS,
		.data_buf_tx = CREDIT_PACKETS * data.data_buf_tx,
	};
}

/* Keeps the list of ports that the peer has sent, beyond the exchange's start-up. Returns false
 * when there is no memory. */
static bool
keep_paths(struct eng_falcon_conn *fc, const struct rofx_agreed *a)
{
	if (!a->listed)
		return true;
	fc->paths = malloc(sizeof(a->tx_ports));
	if (fc->paths != NULL)
		memcpy(fc->paths, a->tx_ports, sizeof(a->tx_ports));
	return fc->paths != NULL;
}

int
eng_falcon_agreed(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_conn *fc = eng_falcon_conn_of(c);
	const struct rofx_agreed *a = rofx_agreed(fc->out.x);
	const struct eng_falcon_host *h = fc->host;
	struct eng_falcon_open o = {.laddr = h->laddr,
		.raddr = h->raddr,
		.port = h->port,
		.vlan = h->vlan,
		.tunnel = a->tunnel,
		.outer_laddr = a->ours.outer,
		.outer_raddr = a->peer.outer,
		.has_cookie = a->peer.has_pcid,
		.tx_cookie = a->peer.pcid,
		.rx_cookie = a->ours.pcid,
		.class = c->su->offer.class,
		.psp = a->psp,
		.tx_spi = a->tx.spi,
		.rx_spi = a->rx.spi};
	struct eng_falcon_start *start = calloc(1, sizeof(*start));
	int rc;

	if (start == NULL || !keep_paths(fc, a)) {
		free(start);
		return -ENOMEM;
	}
	fc->self = is_self(a);
	memcpy(o.tx_key, fc->self ? a->rx.key : a->tx.key, sizeof(o.tx_key));
	rofx_fill_falcon(a, &o.fa);
	o.fa.paths = fc->paths;
	rofx_fill_channel(a, &start->chan);
	start->chan.pools = t->e->cfg.falcon.stack.pools;
	falcon_terms_credits(&start->chan.pools, a->mtu, &start->chan.credits);
	start->peer_qpn = a->peer.qpn;
	start->laddr = h->laddr;
	start->raddr = h->raddr;
	start->ird = SK_MIN(a->ird, t->e->cfg.limits.ird);
	start->ord = SK_MIN(a->ord, t->e->cfg.limits.ord);
	rc = eng_falcon_open(t, fc, &o);
	explicit_bzero(o.tx_key, sizeof(o.tx_key));
	if (rc < 0) {
		free(start);
		return rc;
	}
	start->chan.sums = terms_sums(t, fc);
	fc->start = start;
	return 0;
}
