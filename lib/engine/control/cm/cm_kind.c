/* SPDX-License-Identifier: BSD-3-Clause */
/* Offers and outcomes: the part that is the same for every transport. */
#include <errno.h>

#include "cm_kind_priv.h"

const struct cm_kind *const cm_kinds[ENG_KINDS] = {
	[ENG_IWARP] = &cm_iwarp,
	[ENG_FALCON] = &cm_falcon,
};

void
cm_configure(struct eng_control *c)
{
	for (unsigned k = 0; k < ENG_KINDS; k++)
		cm_kinds[k]->configure(c);
}

static uint16_t
asked_depth(uint16_t want, uint16_t limit)
{
	return want == SHM_DEPTH_AUTO ? want : SK_MIN(want, limit);
}

/* Returns a depth within the device's limit. SHM_DEPTH_AUTO (not negotiated) becomes the limit. */
static uint16_t
cm_depth(uint16_t negotiated, uint16_t limit)
{
	return SK_MIN(negotiated, limit);
}

/* Sets the class of a connection: the command's, then the QP's, then that of the listener (NULL:
 * there is none), then the client's. */
static void
conn_class(const struct eng_control *c, struct cm_conn *q, const struct shm_class *command,
	const struct shm_class *listener, struct eng_offer *out)
{
	q->class = *command;
	ctl_class_fill(&q->class, &q->chosen);
	if (listener != NULL)
		ctl_class_fill(&q->class, listener);
	ctl_class_fill(&q->class, &q->client->class);
	out->class = ctl_class_net(c, &q->class);
}

int
cm_class_offer(struct eng_control *c, struct cm_conn *q, struct shm_msg *m, struct eng_offer *out)
{
	int rc = ctl_class_check(c, m, &m->body.cm.class);

	if (rc == 0)
		conn_class(c, q, &m->body.cm.class, NULL, out);
	return rc;
}

int
cm_offer(struct eng_control *c, const struct cm_conn *q, struct shm_msg *m, struct eng_offer *out)
{
	const struct shm_cm *cm = &m->body.cm;

	*out = (struct eng_offer){
		/* A listener's offer is for MPA: its modes of Falcon stay in the control stage. */
		.kind = q != NULL ? q->qp->kind : ENG_IWARP,
		.ird = asked_depth(cm->ird, c->cfg->limits.ird),
		.ord = asked_depth(cm->ord, c->cfg->limits.ord),
	};
	return cm_kinds[out->kind]->offer(c, q, NULL, m, out);
}

int
cm_answer_offer(struct eng_control *c, struct cm_conn *q, const struct cm_request *r,
	struct shm_msg *m, struct eng_offer *out)
{
	const struct shm_cm *cm = &m->body.cm;
	int rc = ctl_class_check(c, m, &cm->class);

	if (rc < 0)
		return rc;

	*out = (struct eng_offer){
		.kind = r->kind,
		.ird = cm_depth(cm->ird, c->cfg->limits.ird),
		.ord = cm_depth(cm->ord, c->cfg->limits.ord),
	};
	rc = cm_kinds[r->kind]->offer(c, q, r, m, out);
	if (rc == 0)
		conn_class(c, q, &cm->class, &r->class, out);
	return rc;
}

int
cm_modified_offer(struct eng_control *c, const struct cm_conn *q, struct eng_offer *out)
{
	const struct eng_limits *l = &c->cfg->limits;

	*out = (struct eng_offer){.kind = q->qp->kind,
		.ird = SK_MIN(q->move.ird, l->ird),
		.class = ctl_class_net(c, &q->class)};
	/* The program sets the ORD only when it moves the QP to RTS. */
	out->ord = q->move.state == RD_QP_RTS ? SK_MIN(q->move.ord, l->ord) : l->ord;
	return cm_kinds[out->kind]->offer(c, q, NULL, NULL, out);
}

int
cm_dialect(struct eng_control *c, struct shm_msg *m, bool *draft_ext)
{
	uint8_t want = m->body.cm.dialect;

	if (want > SHM_DIALECT_DRAFT)
		return ctl_refuse(c, m, -EINVAL, "there is no dialect of Atomics %u", want);
	*draft_ext = want == SHM_DIALECT_CONFIGURED ? c->cfg->draft_ext : want == SHM_DIALECT_DRAFT;
	return 0;
}

struct eng_start
cm_start(
	const struct eng_control *c, struct cm_conn *q, bool initiator, const struct eng_peer *peer)
{
	const struct eng_outcome *o = &peer->outcome;
	struct eng_start start = {
		.initiator = initiator,
		.ird = cm_depth(o->ird, c->cfg->limits.ird),
		.ord = cm_depth(o->ord, c->cfg->limits.ord),
		.emss = peer->emss,
		.send_space = peer->send_space,
		.draft_ext = q->draft_ext,
	};

	q->ird = start.ird;
	q->ord = start.ord;
	cm_kinds[o->kind]->start(q, o, &start);
	return start;
}

struct eng_start
cm_agree(const struct eng_control *c, struct cm_conn *q, const struct cm_request *r)
{
	struct eng_peer peer = {
		.outcome = r->outcome, .emss = r->emss, .send_space = r->send_space};

	cm_kinds[r->kind]->agree(&peer.outcome, &r->offer);
	return cm_start(c, q, false, &peer);
}

void
cm_private(struct shm_cm *cm, const struct eng_ctl *m)
{
	cm->private_len = SK_MIN(m->private_len, SHM_PRIVATE_MAX);
	memcpy(cm->private_data, m->private_data, cm->private_len);
}

void
cm_describe(struct shm_cm *cm, const struct eng_outcome *o, uint16_t ird, uint16_t ord,
	const struct eng_ctl *m)
{
	cm->ird = ird;
	cm->ord = ord;
	cm->peer_ird = o->peer_ird;
	cm->peer_ord = o->peer_ord;
	cm_kinds[o->kind]->describe(o, cm);
	cm_private(cm, m);
}
