/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client says about a connection's start-up in MPA's words, and what came of it in RDMAP's
 * and the client's. */
#include <errno.h>

#include "cm_priv.h"

#define RTR_KINDS (SHM_RTR_SEND | SHM_RTR_WRITE | SHM_RTR_READ)

static uint16_t
asked_depth(uint16_t want, uint16_t limit)
{
	return want == SHM_DEPTH_AUTO ? want : SK_MIN(want, limit);
}

uint16_t
cm_depth(uint16_t negotiated, uint16_t limit)
{
	return SK_MIN(negotiated, limit);
}

/* All of them if nothing is said, so that a server may send first (RFC 6581 9.2). */
static int
rtr_offer(struct eng_control *c, struct shm_msg *m, struct mpa_offer *out)
{
	uint8_t rtr = m->body.cm.rtr;

	if (rtr > SHM_RTR_NONE || (rtr & SHM_RTR_NONE && rtr & RTR_KINDS))
		return ctl_refuse(c, m, -EINVAL, "enum shm_rtr does not know 0x%02x", rtr);
	if (out->revision == 1 && (rtr & RTR_KINDS))
		return ctl_refuse(c, m, -EINVAL,
			"MPA revision 1 has no ready-to-receive messages (RFC 6581 6)");
	if (rtr == SHM_RTR_ANY && out->revision == 2)
		rtr = RTR_KINDS;
	out->rtr_send = rtr & SHM_RTR_SEND;
	out->rtr_write = rtr & SHM_RTR_WRITE;
	out->rtr_read = rtr & SHM_RTR_READ && c->cfg->limits.ird > 0 && c->cfg->limits.ord > 0;
	return 0;
}

int
cm_offer(struct eng_control *c, struct shm_msg *m, struct mpa_offer *out)
{
	const struct shm_cm *cm = &m->body.cm;

	if (cm->revision > 2)
		return ctl_refuse(c, m, -EINVAL, "there is no MPA revision %u", cm->revision);
	if (cm->crc > CM_CONFIGURED || cm->markers > CM_CONFIGURED)
		return ctl_refuse(c, m, -EINVAL, "CRC and markers are 0, 1 or 2, not %u",
			SK_MAX(cm->crc, cm->markers));
	*out = (struct mpa_offer){
		.revision = cm->revision ? cm->revision : c->cfg->mpa_revision,
		.crc = cm->crc == CM_CONFIGURED ? c->cfg->mpa_crc : cm->crc,
		.markers = cm->markers == CM_CONFIGURED ? c->cfg->mpa_markers : cm->markers,
		.ird = asked_depth(cm->ird, c->cfg->limits.ird),
		.ord = asked_depth(cm->ord, c->cfg->limits.ord),
	};
	return rtr_offer(c, m, out);
}

int
cm_dialect(struct eng_control *c, struct shm_msg *m, bool *draft_ext)
{
	uint8_t want = m->body.cm.dialect;

	if (want > SHM_DIALECT_DRAFT)
		return ctl_refuse(c, m, -EINVAL, "there is no enum shm_dialect %u", want);
	*draft_ext = want == SHM_DIALECT_CONFIGURED ? c->cfg->draft_ext : want == SHM_DIALECT_DRAFT;
	return 0;
}

struct iw_params
cm_params(
	const struct eng_control *c, struct ctl_qp *q, bool initiator, const struct mpa_result *mpa)
{
	q->ird = cm_depth(mpa->ird, c->cfg->limits.ird);
	q->ord = cm_depth(mpa->ord, c->cfg->limits.ord);
	return (struct iw_params){
		.initiator = initiator,
		.crc = mpa->crc,
		.tx_markers = mpa->tx_markers,
		.rx_markers = mpa->rx_markers,
		.rtr = (uint8_t)mpa->rtr,
		.ird = q->ird,
		.ord = q->ord,
		.draft_ext = q->draft_ext,
	};
}

static uint8_t
rtr_in_use(const struct mpa_result *mpa)
{
	switch (mpa->rtr) {
	case MPA_RTR_SEND:
		return SHM_RTR_SEND;
	case MPA_RTR_WRITE:
		return SHM_RTR_WRITE;
	case MPA_RTR_READ:
		return SHM_RTR_READ;
	default:
		return SHM_RTR_NONE;
	}
}

void
cm_describe(struct shm_cm *cm, const struct mpa_result *mpa, uint16_t ird, uint16_t ord)
{
	cm->ird = ird;
	cm->ord = ord;
	cm->peer_ird = mpa->peer_ird;
	cm->peer_ord = mpa->peer_ord;
	cm->revision = mpa->revision;
	cm->enhanced = mpa->enhanced;
	cm->crc = mpa->crc;
	cm->markers = mpa->rx_markers;
	cm->rtr = rtr_in_use(mpa);
	cm->private_len = SK_MIN(mpa->private_len, SHM_PRIVATE_MAX);
	memcpy(cm->private_data, mpa->private_data, cm->private_len);
}

struct eng_falcon_ask
cm_falcon_ask(const struct eng_control *c, const struct ctl_qp *q, const struct mpa_offer *offer)
{
	const struct eng_falcon_config *cfg = &c->cfg->falcon;
	bool sends = q->by_hand && q->move.state == RD_QP_RTS;

	return (struct eng_falcon_ask){
		.falcon = q->eng.falcon,
		.transport = q->eng.type == SHM_RC   ? ROF_RC
			     : q->eng.type == SHM_UD ? ROF_UD
						     : ROF_XRC,
		.addressing = q->by_hand ? ROFX_ADDRESS : ROFX_LISTENER,
		.ordering = q->host != NULL ? ROF_ORDER_NONE : cfg->ordering,
		.errors = q->host != NULL ? ROF_ERRORS_COMPLETE : cfg->errors,
		.rnr_retry = sends ? q->move.rnr_retry : cfg->rnr_retry,
		.rnr_code = q->by_hand ? q->move.min_rnr_timer : cfg->rnr_code,
		.qpn = q->eng.rd.qpn,
		.function = c->cfg->falcon.function,
		.to_qpn = q->by_hand ? q->move.remote_qpn : 0,
		.ird = offer->ird,
		.ord = offer->ord,
	};
}
