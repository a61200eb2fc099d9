/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules by which two sides become one connection: which parameters must be equal, which become
 * the smaller of the two, which the responder reduces, and which replies the initiator accepts.
 */
#include <string.h>

#include "../base/mem.h"
#include "exchange_priv.h"

#define PSP_KNOWN (ROFX_PSP_KEYED | ROFX_PSP(PSP_NO_CRYPTO))

/* ---- One side ---- */

static bool
is_transport(uint8_t t)
{
	return t == ROF_RC || t == ROF_XRC || t == ROF_UD;
}

static bool
modes_valid(const struct rofx_side *s, bool any)
{
	return is_transport(s->transport) && s->addressing <= ROFX_ADDRESS &&
	       (s->ordering <= ROF_ORDER_NONE || (any && s->ordering == ROFX_ANY)) &&
	       (s->errors <= ROF_ERRORS_COMPLETE || (any && s->errors == ROFX_ANY));
}

static bool
numbers_valid(const struct rofx_side *s)
{
	return s->cid <= FALCON_CID_MAX && s->qpn <= ROF_QPN_MAX && s->to_qpn <= ROF_QPN_MAX &&
	       s->function <= 0xffffff && s->spi != 0 && s->ird <= ROFX_DEPTH_MAX &&
	       s->ord <= ROFX_DEPTH_MAX && s->mtu >= ROF_MTU_MIN && s->mtu <= ROF_MTU_MAX;
}

static bool
limits_valid(const struct rofx_side *s)
{
	return s->request_window >= 1 && s->request_window <= FA_REQUEST_WINDOW &&
	       s->data_window >= 1 && s->data_window <= FA_DATA_WINDOW &&
	       (s->flows == 1 || s->flows == FA_FLOWS_MAX) && s->rnr_retry <= ROF_RNR_FOREVER &&
	       s->rnr_code <= 31 && s->ttl >= 1;
}

bool
rofx_outer_valid(const struct rofx_side *s)
{
	return !s->tunnel || (!sk_addr_is_any(&s->outer) && !sk_addr_is_multicast(&s->outer));
}

bool
rofx_side_valid(const struct rofx_side *s, bool any)
{
	return modes_valid(s, any) && numbers_valid(s) && limits_valid(s);
}

/* ---- Both sides ---- */

/* Returns the strongest version in `both`, without crypto only if there is no other. `both` has at
 * least one known version. */
static uint8_t
choose_psp(uint16_t both)
{
	static const uint8_t order[] = {
		PSP_AES_GCM_256, PSP_AES_GCM_128, PSP_GMAC_256, PSP_GMAC_128};

	for (unsigned i = 0; i < SK_ARRAY_LEN(order); i++)
		if (both & ROFX_PSP(order[i]))
			return order[i];
	return PSP_NO_CRYPTO;
}

static void
take_own_key(struct rofx_agreed *a)
{
	unsigned len = psp_key_len(a->psp);

	a->rx.version = a->tx.version = a->psp;
	a->rx.spi = a->ours.spi;
	a->tx.spi = a->peer.spi;
	if (len > 0)
		memcpy(a->rx.key, len == 16 ? a->ours.key128 : a->ours.key256, len);
}

/* Fills in *a. `from` is the side of the reply, on which both agree. The caller sets ird and
 * ord. */
static void
exchange_settle_fill(struct rofx_agreed *a, const struct rofx_side *ours,
	const struct rofx_side *peer, const struct rofx_side *from)
{
	bool full =
		peer->request_window == FA_REQUEST_WINDOW && peer->data_window == FA_DATA_WINDOW;

	a->ours = *ours;
	a->peer = *peer;
	a->transport = from->transport;
	a->ordering = from->ordering;
	a->errors = from->errors;
	a->flows = from->flows;
	a->mtu = from->mtu;
	a->tunnel = from->tunnel;
	a->tx_window = full ? 0 : SK_MIN(peer->request_window, peer->data_window);
	a->rnr_retry = peer->rnr_retry;
	a->rnr_code = ours->rnr_code;
	a->psp = choose_psp(from->psp);
	take_own_key(a);
}

/* ---- Responder ---- */

/* Returns whether a request that addresses a QP names this one, and comes from the peer for which
 * this QP waits. */
static bool
exchange_settle_addressed(const struct rofx_side *peer, const struct rofx_side *ours)
{
	if (peer->addressing == ROFX_LISTENER)
		return true;
	return peer->to_qpn == ours->qpn && peer->qpn == ours->to_qpn &&
	       sk_addr_eq(&peer->to_gid, &ours->gid) && sk_addr_eq(&peer->gid, &ours->to_gid);
}

/* Chooses the PSP version. On a stream in clear, versions with keys are an error. */
static int
settle_psp(const struct rofx_side *peer, const struct rofx_side *ours, bool secure, uint16_t *psp)
{
	uint16_t both = peer->psp & ours->psp & PSP_KNOWN;

	if (!secure && ((peer->psp & ~ROFX_PSP(PSP_NO_CRYPTO)) != 0 ||
			       !(ours->psp & ROFX_PSP(PSP_NO_CRYPTO))))
		return ROFX_CRYPTO_IN_CLEAR;
	if (both == 0)
		return ROFX_NO_PSP;
	*psp = ROFX_PSP(choose_psp(both));
	return 0;
}

static int
settle_modes(const struct rofx_side *peer, const struct rofx_side *ours)
{
	if (peer->transport != ours->transport)
		return ROFX_TRANSPORT;
	if (!exchange_settle_addressed(peer, ours))
		return ROFX_NO_QP;
	if (ours->ordering != ROFX_ANY && peer->ordering != ours->ordering)
		return ROFX_ORDERING;
	if (ours->errors != ROFX_ANY && peer->errors != ours->errors)
		return ROFX_ERRORS;
	if (peer->tunnel != ours->tunnel)
		return ROFX_ENCAPSULATION;
	return 0;
}

int
rofx_settle_request(const struct rofx_side *peer, const struct rofx_side *ours, bool secure,
	struct rofx_agreed *a, struct rofx_side *reply)
{
	int err = settle_modes(peer, ours);

	*reply = *ours;
	if (err == 0)
		err = settle_psp(peer, ours, secure, &reply->psp);
	if (err != 0)
		return err;
	reply->addressing = peer->addressing;
	reply->ordering = peer->ordering;
	reply->errors = peer->errors;
	reply->to_qpn = peer->qpn;
	reply->to_gid = peer->gid;
	reply->mtu = SK_MIN(peer->mtu, ours->mtu);
	reply->flows = SK_MIN(peer->flows, ours->flows);
	reply->ird = SK_MIN(ours->ird, peer->ord);
	reply->ord = SK_MIN(ours->ord, peer->ird);
	exchange_settle_fill(a, reply, peer, reply);
	a->ird = reply->ird;
	a->ord = reply->ord;
	return 0;
}

/* ---- Initiator ---- */

static bool
within(const struct rofx_side *ours, const struct rofx_side *r)
{
	bool one_psp = r->psp != 0 && (r->psp & (r->psp - 1)) == 0;

	return r->transport == ours->transport && r->addressing == ours->addressing &&
	       r->ordering == ours->ordering && r->errors == ours->errors &&
	       r->tunnel == ours->tunnel && r->mtu <= ours->mtu && r->flows <= ours->flows &&
	       r->ird <= ours->ord && r->ord <= ours->ird && one_psp &&
	       (r->psp & ours->psp & PSP_KNOWN);
}

int
rofx_settle_reply(
	const struct rofx_side *ours, const struct rofx_side *reply, struct rofx_agreed *a)
{
	bool ours_answered = reply->to_qpn == ours->qpn && sk_addr_eq(&reply->to_gid, &ours->gid);
	bool theirs = ours->addressing == ROFX_LISTENER ||
		      (reply->qpn == ours->to_qpn && sk_addr_eq(&reply->gid, &ours->to_gid));

	if (!within(ours, reply) || !ours_answered || !theirs)
		return ROFX_CONTRADICTION;
	exchange_settle_fill(a, ours, reply, reply);
	a->ird = reply->ord;
	a->ord = reply->ird;
	return 0;
}

/* ---- Parameters for Falcon and for the channel ---- */

void
rofx_fill_falcon(const struct rofx_agreed *a, struct fa_params *p)
{
	p->cid = a->ours.cid;
	p->peer_cid = a->peer.cid;
	p->peer_function = a->peer.function;
	p->function = a->ours.function;
	p->protocol = FALCON_RDMA;
	p->ordered = a->ordering == ROF_ORDER_STRONG;
	p->tx_request_psn = a->ours.request_psn;
	p->tx_data_psn = a->ours.data_psn;
	p->tx_rsn = a->ours.rsn;
	p->rx_request_psn = a->peer.request_psn;
	p->rx_data_psn = a->peer.data_psn;
	p->rx_rsn = a->peer.rsn;
	p->mtu = (uint32_t)a->mtu + ROF_MAX + 3; /* headers, and padding to a multiple of 4 */
	p->tx_window = a->tx_window;
	p->pulls = a->transport == ROF_UD ? 0 : a->ird;
	p->flows = a->flows;
	p->paths = a->listed ? a->tx_ports : NULL;
}

void
rofx_fill_channel(const struct rofx_agreed *a, struct rof_chan_params *p)
{
	p->transport = a->transport;
	p->ordering = a->ordering;
	p->errors = a->errors;
	p->mtu = a->mtu;
	p->tx_rsn = a->ours.rsn;
	p->rnr_code = a->rnr_code;
	p->rnr_retry = a->rnr_retry;
}

/* ---- Crossing attempts ---- */

enum rofx_crossing
rofx_cross(const struct rofx_side *ours, const struct rofx_side *theirs)
{
	int c = memcmp(ours->gid.b, theirs->gid.b, sizeof(ours->gid.b));

	if (c == 0 && ours->qpn == theirs->qpn)
		return ROFX_SELF;
	if (c == 0)
		c = ours->qpn > theirs->qpn ? 1 : -1;
	return c > 0 ? ROFX_OURS : ROFX_THEIRS;
}
