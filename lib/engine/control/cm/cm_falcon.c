/* SPDX-License-Identifier: BSD-3-Clause */
/* Translates between clients' messages and the exchange of Falcon (doc/falcon-cm.md). */
#include "cm_modes_priv.h"

/* The limit of private data is that of an enhanced MPA request, which carries the depths in 4
 * bytes, so that no program depends on the transport. */
#define PRIVATE_MAX (SHM_PRIVATE_MAX - 4)

static void
cm_falcon_configure(struct eng_control *c)
{
	if (!c->cfg->falcon.enabled)
		return;
	c->qp_types[ENG_FALCON] =
		1u << SHM_RC | 1u << SHM_UD | 1u << SHM_XRC_SEND | 1u << SHM_XRC_RECV;
	c->datagrams = c->xrc = true;
	c->reserved_port = c->cfg->falcon.port;
	c->patience_ns = c->cfg->falcon.patience_ns;
}

static int
cm_falcon_offer(struct eng_control *c, const struct cm_conn *q, const struct cm_request *request,
	struct shm_msg *m, struct eng_offer *out)
{
	const struct eng_falcon_config *cfg = &c->cfg->falcon;
	bool sends = q->modified && q->move.state == RD_QP_RTS;

	out->falcon = (struct eng_falcon_ask){
		.transport = q->qp->type == SHM_RC   ? ROF_RC
			     : q->qp->type == SHM_UD ? ROF_UD
						     : ROF_XRC,
		.addressing = q->modified ? ROFX_ADDRESS : ROFX_LISTENER,
		.rnr_retry = sends ? q->move.rnr_retry : cfg->rnr_retry,
		.rnr_code = q->modified ? q->move.min_rnr_timer : cfg->rnr_code,
		.qpn = q->qp->rd.qpn,
		.function = cfg->function,
		.to_qpn = q->modified ? q->move.remote_qpn : 0,
	};
	if (q->modified)
		return cm_modes_modified(c, &q->move.modes, &q->move.remote, NULL, &out->falcon);
	if (request != NULL)
		return cm_modes_accept(c, request, m, &out->falcon);
	return cm_modes_connect(c, m, &out->falcon);
}

static void
cm_falcon_request(const struct eng_outcome *o, struct eng_offer *offer)
{
}

/* The rule for the depths is that of MPA: neither side's ORD exceeds the other's IRD. */
static void
cm_falcon_agree(struct eng_outcome *o, const struct eng_offer *offer)
{
	o->ird = SK_MIN(offer->ird, o->peer_ord);
	o->ord = SK_MIN(offer->ord, o->peer_ird);
}

/* The transport stage sends the other parameters with ENG_E_OPEN. */
static void
cm_falcon_start(struct cm_conn *q, const struct eng_outcome *o, struct eng_start *start)
{
}

/* Falcon has no MPA: revision, CRC and markers are 0. */
static void
cm_falcon_describe(const struct eng_outcome *o, struct shm_cm *cm)
{
	cm->rtr = SHM_RTR_NONE;
	cm_modes_describe(&o->falcon, &cm->modes);
}

static size_t
cm_falcon_private_max(const struct eng_offer *offer)
{
	return PRIVATE_MAX;
}

static uint8_t
cm_falcon_request_type(const struct eng_outcome *o)
{
	return o->falcon.transport == ROF_XRC ? SHM_XRC_RECV : SHM_RC;
}

static bool
cm_falcon_names_qp(const struct eng_outcome *o)
{
	return o->falcon.addressing == ROFX_ADDRESS;
}

static uint16_t
cm_falcon_qpn_port(const struct eng_control *c)
{
	return c->cfg->falcon.port;
}

const struct cm_kind cm_falcon = {
	.name = "Falcon",
	.reasons = &rof_reasons,
	.modifiable = true,
	.configure = cm_falcon_configure,
	.offer = cm_falcon_offer,
	.request = cm_falcon_request,
	.agree = cm_falcon_agree,
	.start = cm_falcon_start,
	.describe = cm_falcon_describe,
	.private_max = cm_falcon_private_max,
	.request_type = cm_falcon_request_type,
	.names_qp = cm_falcon_names_qp,
	.qpn_port = cm_falcon_qpn_port,
};
