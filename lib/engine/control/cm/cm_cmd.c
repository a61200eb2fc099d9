/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients' commands about connections: connect, accept, reject, disconnect. */
#include <errno.h>
#include <stdlib.h>

#include "cm_priv.h"

bool
cm_addr_is_ours(const struct eng_control *c, const struct sk_addr *a)
{
	for (unsigned i = 0; i < c->cfg->nifs; i++)
		if (!c->cfg->ifs[i].shared && sk_addr_eq(a, &c->cfg->ifs[i].addr))
			return true;
	return false;
}

static int
private_check(struct eng_control *c, struct shm_msg *m, uint8_t revision)
{
	const struct shm_cm *cm = &m->body.cm;
	size_t most = SK_MIN(mpa_private_max(revision), (size_t)SHM_PRIVATE_MAX);

	if (cm->private_len > most)
		return ctl_refuse(c, m, -EMSGSIZE,
			"MPA revision %u carries %zu bytes of private data, not %u", revision, most,
			cm->private_len);
	return 0;
}

static int
connect_addrs(struct eng_control *c, struct shm_msg *m)
{
	const struct shm_cm *cm = &m->body.cm;
	char text[SK_ADDR_STRLEN];

	if (sk_addr_is_any(&cm->remote) || sk_addr_is_multicast(&cm->remote) || cm->rport == 0)
		return ctl_refuse(c, m, -EINVAL, "%s port %u is nothing to connect to",
			sk_addr_str(&cm->remote, text), cm->rport);
	if (sk_addr_is_any(&cm->local))
		return 0;
	if (!cm_addr_is_ours(c, &cm->local))
		return ctl_refuse(c, m, -EADDRNOTAVAIL, "%s is not an address of this device",
			sk_addr_str(&cm->local, text));
	if (sk_addr_is_v4(&cm->local) != sk_addr_is_v4(&cm->remote))
		return ctl_refuse(c, m, -EAFNOSUPPORT, "the addresses are of two families");
	return 0;
}

/* A QP that may begin a connection. */
static struct ctl_qp *
fresh_qp(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_qp *q = ctl_qp_find(cl, m->body.cm.qp);

	if (q == NULL)
		ctl_refuse(c, m, -EINVAL, "there is no QP %u", m->body.cm.qp);
	else if (q->cm == CM_CLOSED)
		ctl_refuse(c, m, -EINVAL, "QP %u has been connected before", m->body.cm.qp);
	else if (q->cm != CM_IDLE)
		ctl_refuse(c, m, -EISCONN, "QP %u is connecting or connected", m->body.cm.qp);
	else
		return q;
	return NULL;
}

/* May it be tried again unenhanced (RFC 6581 10)? */
static int
fall_back_check(struct eng_control *c, struct shm_msg *m, uint8_t revision, bool *out)
{
	uint8_t want = m->body.cm.enhanced;

	if (want > SHM_ENHANCED_TRY)
		return ctl_refuse(c, m, -EINVAL, "there is no enum shm_enhanced %u", want);
	if (want == SHM_ENHANCED_ONLY && revision < 2)
		return ctl_refuse(c, m, -EINVAL, "MPA revision 1 is not enhanced");
	*out = want == SHM_ENHANCED_CONFIGURED ? c->cfg->mpa_fall_back : want == SHM_ENHANCED_TRY;
	return 0;
}

int
cm_connect(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_cm *cm = &m->body.cm;
	struct ctl_qp *q = fresh_qp(c, cl, m);
	struct eng_ctl what = {0};
	bool draft_ext;
	int rc = q != NULL ? connect_addrs(c, m) : m->status;

	if (rc == 0 && q->eng.type != SHM_RC && q->eng.type != SHM_XRC_SEND)
		rc = ctl_refuse(c, m, -EPROTOTYPE, "a QP of type %u does not connect", q->eng.type);
	if (rc == 0)
		rc = cm_offer(c, m, &what.offer);
	if (rc == 0)
		rc = cm_dialect(c, m, &draft_ext);
	if (rc == 0)
		rc = fall_back_check(c, m, what.offer.revision, &what.fall_back);
	if (rc == 0)
		rc = private_check(c, m, what.offer.revision);
	if (rc < 0)
		return rc;
	what.offer.enhanced_only = !what.fall_back;
	q->draft_ext = draft_ext;
	what.tuple = (struct tcp_tuple){.laddr = cm->local,
		.raddr = cm->remote,
		.lport = cm->lport,
		.rport = cm->rport,
		.vlan = ETH_NO_VLAN};
	what.private_len = cm->private_len;
	memcpy(what.private_data, cm->private_data, cm->private_len);
	cm_start_connect(c, q, &what);
	return 0;
}

int
cm_resolve(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_cm *cm = &m->body.cm;
	struct ctl_qp *q = fresh_qp(c, cl, m);
	struct eng_ctl what = {.offer.revision = 2};
	int rc = q != NULL ? connect_addrs(c, m) : m->status;

	if (rc == 0 && q->eng.type != SHM_UD)
		rc = ctl_refuse(c, m, -EPROTOTYPE, "QP %u is not for datagrams", cm->qp);
	if (rc == 0)
		rc = private_check(c, m, what.offer.revision);
	if (rc < 0)
		return rc;
	what.tuple = (struct tcp_tuple){.laddr = cm->local,
		.raddr = cm->remote,
		.rport = c->cfg->falcon.port,
		.vlan = ETH_NO_VLAN};
	what.ask = (struct eng_falcon_ask){.falcon = true, .lookup = true, .service = cm->rport};
	what.private_len = cm->private_len;
	memcpy(what.private_data, cm->private_data, cm->private_len);
	cm_start_connect(c, q, &what);
	return 0;
}

/* ---- Answers to requests ---- */

static struct cm_request *
open_request(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct cm_request *r = cm_request_find(cl, m->body.cm.request);

	if (r == NULL || r->accepting != NULL) {
		ctl_refuse(c, m, -ECONNRESET,
			"there is no request %u (its peer may have gone, or its time is over)",
			m->body.cm.request);
		return NULL;
	}
	return private_check(c, m, r->mpa.revision) < 0 ? NULL : r;
}

static int
keep_private(struct cm_request *r, const struct shm_cm *cm)
{
	r->private_len = cm->private_len;
	if (r->private_len == 0)
		return 0;
	r->private_data = malloc(r->private_len);
	if (r->private_data == NULL)
		return -ENOMEM;
	memcpy(r->private_data, cm->private_data, r->private_len);
	return 0;
}

/* The listener's revision stays: the request has come. */
static int
accept_offer(struct eng_control *c, struct cm_request *r, struct shm_msg *m, bool *draft_ext)
{
	int rc;

	m->body.cm.revision = r->mpa.revision;
	rc = cm_offer(c, m, &r->offer);
	if (rc == 0)
		rc = cm_dialect(c, m, draft_ext);
	r->offer.ird = cm_depth(r->offer.ird, c->cfg->limits.ird);
	r->offer.ord = cm_depth(r->offer.ord, c->cfg->limits.ord);
	return rc;
}

/* A datagram service is asked for: which QP it is, is all there is to be said. */
static int
cm_cmd_found(struct eng_control *c, const struct ctl_qp *q, struct cm_request *r, struct shm_msg *m)
{
	const struct shm_cm *cm = &m->body.cm;
	struct ctl_msg *msg = ctl_msg_get(c, ENG_CT_FOUND, NULL);

	msg->m.conn = r->conn;
	msg->m.ask.qpn = q->eng.rd.qpn;
	msg->m.ask.qkey = q->move.qkey;
	msg->m.private_len = cm->private_len;
	memcpy(msg->m.private_data, cm->private_data, cm->private_len);
	ctl_send_transport(c, r->transport, msg);
	cm_request_free(c, r);
	return 0;
}

int
cm_accept(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct cm_request *r = open_request(c, cl, m);
	struct ctl_qp *q = r != NULL ? fresh_qp(c, cl, m) : NULL;
	struct iw_params params;
	struct mpa_result mpa;
	bool draft_ext;

	if (q != NULL && q->eng.falcon != r->falcon)
		return ctl_refuse(c, m, -EPROTOTYPE, "QP %u is %s, the request is not",
			m->body.cm.qp, q->eng.falcon ? "Falcon's" : "iWARP's");
	if (q != NULL && q->eng.type != r->type)
		return ctl_refuse(c, m, -EPROTOTYPE, "QP %u is of type %u, the request needs %u",
			m->body.cm.qp, q->eng.type, r->type);
	if (q != NULL && r->type == SHM_UD)
		return cm_cmd_found(c, q, r, m);
	if (q == NULL || accept_offer(c, r, m, &draft_ext) < 0)
		return m->status;
	if (keep_private(r, &m->body.cm) < 0)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	q->draft_ext = draft_ext;
	mpa = r->mpa;
	mpa_result_accept(&mpa, &r->offer);
	params = cm_params(c, q, false, &mpa);
	params.emss = r->emss;
	params.send_space = r->send_space;
	r->accepting = q;
	q->request = r;
	q->transport = r->transport;
	q->conn = r->conn;
	cm_request_answered(c, r);
	cm_start_accept(c, q, &params);
	return 0;
}

void
cm_accept_send(struct eng_control *c, struct ctl_qp *q, struct ctl_msg *msg)
{
	struct cm_request *r = q->request;

	msg->m.offer = r->offer;
	msg->m.ask = cm_falcon_ask(c, q, &r->offer);
	msg->m.private_len = r->private_len;
	if (r->private_len)
		memcpy(msg->m.private_data, r->private_data, r->private_len);
	ctl_send_transport(c, q->transport, msg);
	cm_accept_forget(c, q);
}

void
cm_accept_forget(struct eng_control *c, struct ctl_qp *q)
{
	if (q->request != NULL)
		cm_request_free(c, q->request);
	q->request = NULL;
}

int
cm_reject(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct cm_request *r = open_request(c, cl, m);

	if (r == NULL)
		return m->status;
	cm_request_reject(c, r, &m->body.cm);
	return 0;
}

/* ---- The end ---- */

static void
disconnecting(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	if (op->status < 0)
		ctl_refuse(c, &op->reply, op->status, "the QP has gone");
	ctl_op_reply(c, op);
}

int
cm_disconnect(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_qp *q = ctl_qp_find(cl, m->body.cm.qp);
	struct ctl_op *op;
	struct ctl_msg *msg;

	if (q == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no QP %u", m->body.cm.qp);
	if (q->cm != CM_ESTABLISHED && q->cm != CM_CLOSED)
		return ctl_refuse(c, m, -ENOTCONN, "QP %u is not connected", m->body.cm.qp);
	op = ctl_op_new(c, cl, m, NULL, disconnecting);
	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	msg = ctl_msg_get(c, ENG_CE_QP_CLOSE, NULL);
	msg->m.qp = &q->eng;
	msg->m.client = &cl->eng;
	msg->m.how = m->body.cm.abort ? IW_CLOSE_ABORT : IW_CLOSE_ORDERLY;
	ctl_op_send_stage(c, op, q->eng.stage, msg);
	return CTL_LATER;
}
