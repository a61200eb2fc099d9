/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients' commands about connections: connect, accept, reject, disconnect. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm_kind_priv.h"

bool
cm_addr_is_ours(const struct eng_control *c, const struct sk_addr *a)
{
	for (unsigned i = 0; i < c->cfg->nifs; i++)
		if (!c->cfg->ifs[i].shared && sk_addr_eq(a, &c->cfg->ifs[i].addr))
			return true;
	return false;
}

static int
private_check(struct eng_control *c, struct shm_msg *m, size_t most)
{
	const struct shm_cm *cm = &m->body.cm;

	if (cm->private_len > SK_MIN(most, (size_t)SHM_PRIVATE_MAX))
		return ctl_refuse(c, m, -EMSGSIZE,
			"the connection carries up to %zu bytes of private data, not %u",
			SK_MIN(most, (size_t)SHM_PRIVATE_MAX), cm->private_len);
	return 0;
}

static int
connect_addrs(struct eng_control *c, struct shm_msg *m)
{
	const struct shm_cm *cm = &m->body.cm;
	char text[SK_ADDR_STRLEN], remote[SK_ADDR_STRLEN];

	if (sk_addr_is_any(&cm->remote) || sk_addr_is_multicast(&cm->remote) || cm->rport == 0)
		return ctl_refuse(c, m, -EINVAL, "%s port %u is not the address of a peer",
			sk_addr_str(&cm->remote, text), cm->rport);
	if (sk_addr_is_any(&cm->local))
		return 0;
	if (!cm_addr_is_ours(c, &cm->local))
		return ctl_refuse(c, m, -EADDRNOTAVAIL, "%s is not an address of this device",
			sk_addr_str(&cm->local, text));
	if (sk_addr_is_v4(&cm->local) != sk_addr_is_v4(&cm->remote))
		return ctl_refuse(c, m, -EAFNOSUPPORT,
			"the local address %s and the remote address %s are of different families",
			sk_addr_str(&cm->local, text), sk_addr_str(&cm->remote, remote));
	return 0;
}

/* Returns the connection of a QP that can connect, or NULL with a refusal in `m`. */
static struct cm_conn *
fresh_conn(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_qp *qp = ctl_qp_find(cl, m->body.cm.qp);
	struct cm_conn *q = qp != NULL ? &qp->conn : NULL;

	if (q == NULL)
		ctl_refuse(c, m, -EINVAL, "there is no QP %u", m->body.cm.qp);
	else if (q->state == CM_CLOSED)
		ctl_refuse(c, m, -EINVAL, "QP %u has been connected before", m->body.cm.qp);
	else if (q->state != CM_IDLE)
		ctl_refuse(c, m, -EISCONN, "QP %u is connecting or connected", m->body.cm.qp);
	else if (q->move.state == RD_QP_ERR && q->qp->type != SHM_UD)
		ctl_refuse(c, m, -EINVAL, "QP %u is in the error state", m->body.cm.qp);
	else
		return q;
	return NULL;
}

static void
fill_connect(const struct shm_cm *cm, uint16_t rport, struct eng_ctl *what)
{
	what->connect.tuple = (struct tcp_tuple){.laddr = cm->local,
		.raddr = cm->remote,
		.lport = cm->lport,
		.rport = rport,
		.vlan = ETH_NO_VLAN};
	what->private_len = cm->private_len;
	memcpy(what->private_data, cm->private_data, cm->private_len);
}

int
cm_connect(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_cm *cm = &m->body.cm;
	struct cm_conn *q = fresh_conn(c, cl, m);
	struct eng_ctl what;
	struct eng_offer *offer = &what.connect.offer;
	bool draft_ext;
	int rc = q != NULL ? connect_addrs(c, m) : m->status;

	memset(&what, 0, offsetof(struct eng_ctl, private_data));
	what.type = ENG_CT_CONNECT;
	if (rc == 0 && q->qp->type != SHM_RC && q->qp->type != SHM_XRC_SEND)
		rc = ctl_refuse(c, m, -EPROTOTYPE, "a QP of type %u does not connect", q->qp->type);
	if (rc == 0)
		rc = cm_offer(c, q, m, offer);
	if (rc == 0)
		rc = cm_class_offer(c, q, m, offer);
	if (rc == 0)
		rc = cm_dialect(c, m, &draft_ext);
	if (rc == 0)
		rc = private_check(c, m, cm_kinds[offer->kind]->private_max(offer));
	if (rc < 0)
		return rc;
	q->draft_ext = draft_ext;
	fill_connect(cm, cm->rport, &what);
	cm_again_keep(c, q, &what);
	cm_start_connect(c, q, &what);
	return 0;
}

int
cm_resolve(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_cm *cm = &m->body.cm;
	struct cm_conn *q = fresh_conn(c, cl, m);
	struct eng_ctl what = {.type = ENG_CT_LOOKUP};
	int rc = q != NULL ? connect_addrs(c, m) : m->status;

	if (rc == 0 && q->qp->type != SHM_UD)
		rc = ctl_refuse(c, m, -EPROTOTYPE, "QP %u is not a datagram QP", cm->qp);
	if (rc == 0)
		rc = cm_class_offer(c, q, m, &what.connect.offer);
	if (rc < 0)
		return rc;
	what.connect.offer.kind = q->qp->kind;
	rc = private_check(c, m, cm_kinds[q->qp->kind]->private_max(&what.connect.offer));
	if (rc < 0)
		return rc;
	fill_connect(cm, cm_kinds[q->qp->kind]->qpn_port(c), &what);
	what.connect.tuple.lport = 0;
	what.connect.service = cm->rport;
	cm_again_keep(c, q, &what);
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
			"there is no request %u: its peer left or its deadline has passed",
			m->body.cm.request);
		return NULL;
	}
	return private_check(c, m, cm_kinds[r->kind]->private_max(&r->offer)) < 0 ? NULL : r;
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

/* Answers the lookup of a datagram service with the QP number and the Q_Key. */
static int
cm_cmd_found(
	struct eng_control *c, const struct cm_conn *q, struct cm_request *r, struct shm_msg *m)
{
	const struct shm_cm *cm = &m->body.cm;
	struct ctl_msg *msg = ctl_msg_get(c, ENG_CT_FOUND, NULL);

	msg->m.conn = r->conn;
	msg->m.lookup.qpn = q->qp->rd.qpn;
	msg->m.lookup.qkey = q->move.qkey;
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
	struct cm_conn *q = r != NULL ? fresh_conn(c, cl, m) : NULL;
	struct eng_start start;
	struct eng_offer offer;
	bool draft_ext;

	if (q == NULL)
		return m->status;
	if (q->qp->kind != r->kind)
		return ctl_refuse(c, m, -EPROTOTYPE, "QP %u is %s's, the request is %s's",
			m->body.cm.qp, cm_kinds[q->qp->kind]->name, cm_kinds[r->kind]->name);
	if (q->qp->type != r->type)
		return ctl_refuse(c, m, -EPROTOTYPE, "QP %u is of type %u, the request needs %u",
			m->body.cm.qp, q->qp->type, r->type);
	if (r->type == SHM_UD)
		return cm_cmd_found(c, q, r, m);
	if (cm_answer_offer(c, q, r, m, &offer) < 0 || cm_dialect(c, m, &draft_ext) < 0)
		return m->status;
	if (keep_private(r, &m->body.cm) < 0)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	q->draft_ext = draft_ext;
	r->offer = offer;
	start = cm_agree(c, q, r);
	r->accepting = q;
	q->request = r;
	q->transport = r->transport;
	q->conn = r->conn;
	cm_request_answered(c, r);
	cm_start_accept(c, q, &start);
	return 0;
}

void
cm_accept_send(struct eng_control *c, struct cm_conn *q, struct ctl_msg *msg)
{
	struct cm_request *r = q->request;

	msg->m.connect.offer = r->offer;
	msg->m.private_len = r->private_len;
	if (r->private_len)
		memcpy(msg->m.private_data, r->private_data, r->private_len);
	ctl_send_transport(c, q->transport, msg);
	cm_accept_forget(c, q);
}

void
cm_accept_forget(struct eng_control *c, struct cm_conn *q)
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

/* ---- Disconnecting ---- */

int
cm_disconnect(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_qp *qp = ctl_qp_find(cl, m->body.cm.qp);
	struct cm_conn *q = qp != NULL ? &qp->conn : NULL;
	struct ctl_op *op;
	struct ctl_msg *msg;

	if (q == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no QP %u", m->body.cm.qp);
	if (q->state != CM_ESTABLISHED && q->state != CM_CLOSED)
		return ctl_refuse(c, m, -ENOTCONN, "QP %u is not connected", m->body.cm.qp);
	op = ctl_op_new(c, cl, m, NULL, ctl_op_finish_qp);
	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	msg = ctl_msg_get(c, ENG_CE_QP_CLOSE, NULL);
	msg->m.qp = q->qp;
	msg->m.client = &cl->eng;
	msg->m.close.how = m->body.cm.abort ? ENG_CLOSE_ABORT : ENG_CLOSE_ORDERLY;
	ctl_op_send_stage(c, op, q->qp->stage, msg);
	return CTL_LATER;
}
