/* SPDX-License-Identifier: BSD-3-Clause */
/* Translates between clients' messages and MPA (RFC 5044, RFC 6581). No other file of the control
 * stage uses a type of lib/iwarp. */
#include <errno.h>

#include "../../../iwarp/iwarp.h"
#include "../../../iwarp/mpa.h"
#include "cm_kind_priv.h"

#define CM_CONFIGURED 2 /* shm_cm.crc, shm_cm.markers: the value of the configuration */
#define RTR_KINDS     (SHM_RTR_SEND | SHM_RTR_WRITE | SHM_RTR_READ)

_Static_assert(SHM_DEPTH_AUTO == MPA_IRD_AUTO, "one value for clients and on the wire");

static void
cm_iwarp_configure(struct eng_control *c)
{
	c->qp_types[ENG_IWARP] = 1u << SHM_RC;
}

/* A client that names no ready-to-receive message offers all of them, so that a server may send
 * first (RFC 6581 9.2). */
static int
rtr_offer(struct eng_control *c, struct shm_msg *m, struct mpa_offer *out)
{
	uint8_t rtr = m->body.cm.rtr;

	if (rtr > SHM_RTR_NONE || (rtr & SHM_RTR_NONE && rtr & RTR_KINDS))
		return ctl_refuse(
			c, m, -EINVAL, "there are no ready-to-receive messages 0x%02x", rtr);
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

/* Sets whether a second, unenhanced attempt is allowed (RFC 6581 10). */
static int
retry_offer(struct eng_control *c, struct shm_msg *m, struct eng_offer *out)
{
	uint8_t want = m->body.cm.enhanced;

	if (want > SHM_ENHANCED_TRY)
		return ctl_refuse(c, m, -EINVAL, "there is no enhanced mode %u", want);
	if (want == SHM_ENHANCED_ONLY && out->mpa.revision < 2)
		return ctl_refuse(c, m, -EINVAL, "MPA revision 1 has no enhanced requests");
	out->retry =
		want == SHM_ENHANCED_CONFIGURED ? c->cfg->mpa_fall_back : want == SHM_ENHANCED_TRY;
	out->mpa.enhanced_only = !out->retry;
	return 0;
}

static int
cm_iwarp_offer(struct eng_control *c, const struct cm_conn *q, const struct cm_request *request,
	struct shm_msg *m, struct eng_offer *out)
{
	const struct shm_cm *cm = &m->body.cm;
	int rc;

	if (cm->revision > 2)
		return ctl_refuse(c, m, -EINVAL, "there is no MPA revision %u", cm->revision);
	if (cm->crc > CM_CONFIGURED || cm->markers > CM_CONFIGURED)
		return ctl_refuse(c, m, -EINVAL, "CRC and markers are 0, 1 or 2, not %u",
			SK_MAX(cm->crc, cm->markers));
	out->mpa = (struct mpa_offer){
		/* A reply has the revision of its request. */
		.revision = request != NULL ? request->outcome.mpa.revision
			    : cm->revision  ? cm->revision
					    : c->cfg->mpa_revision,
		.crc = cm->crc == CM_CONFIGURED ? c->cfg->mpa_crc : cm->crc,
		.markers = cm->markers == CM_CONFIGURED ? c->cfg->mpa_markers : cm->markers,
		.ird = out->ird,
		.ord = out->ord,
	};
	rc = rtr_offer(c, m, &out->mpa);
	return rc < 0 || q == NULL || request != NULL ? rc : retry_offer(c, m, out);
}

/* A reply has the revision of its request, which also determines the limit of private data. */
static void
cm_iwarp_request(const struct eng_outcome *o, struct eng_offer *offer)
{
	offer->mpa.revision = o->mpa.revision;
}

static void
cm_iwarp_agree(struct eng_outcome *o, const struct eng_offer *offer)
{
	mpa_result_accept(&o->mpa, &offer->mpa);
	o->ird = o->mpa.ird;
	o->ord = o->mpa.ord;
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

static void
cm_iwarp_start(struct cm_conn *q, const struct eng_outcome *o, struct eng_start *start)
{
	start->mpa = o->mpa;
	q->mpa = (struct eng_mpa_view){.revision = o->mpa.revision,
		.rtr = rtr_in_use(&o->mpa),
		.crc = o->mpa.crc,
		.tx_markers = o->mpa.tx_markers,
		.rx_markers = o->mpa.rx_markers};
}

static void
cm_iwarp_describe(const struct eng_outcome *o, struct shm_cm *cm)
{
	cm->revision = o->mpa.revision;
	cm->enhanced = o->mpa.enhanced;
	cm->crc = o->mpa.crc;
	cm->markers = o->mpa.rx_markers;
	cm->rtr = rtr_in_use(&o->mpa);
}

static size_t
cm_iwarp_private_max(const struct eng_offer *offer)
{
	return mpa_private_max(offer->mpa.revision);
}

static uint8_t
cm_iwarp_request_type(const struct eng_outcome *o)
{
	return SHM_RC;
}

static bool
cm_iwarp_names_qp(const struct eng_outcome *o)
{
	return false;
}

static uint16_t
cm_iwarp_qpn_port(const struct eng_control *c)
{
	return 0;
}

const struct cm_kind cm_iwarp = {
	.name = "iWARP",
	.reasons = &iw_reasons,
	.configure = cm_iwarp_configure,
	.offer = cm_iwarp_offer,
	.request = cm_iwarp_request,
	.agree = cm_iwarp_agree,
	.start = cm_iwarp_start,
	.describe = cm_iwarp_describe,
	.private_max = cm_iwarp_private_max,
	.request_type = cm_iwarp_request_type,
	.names_qp = cm_iwarp_names_qp,
	.qpn_port = cm_iwarp_qpn_port,
};
