/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a link: two QPs are created and connected, act until enough bytes have moved, and end
 * in order. A link that breaks (checksum-neutral corruption) is checked and created again, while
 * the others continue.
 */
#include <string.h>

#include "soak.h"

#define PORT 7471

static struct link *
link_of(struct side *sd)
{
	return &sd->soak->link[*(uint8_t *)saker_qp_user(sd->qp)];
}

static int
make_qp(struct link *l, struct side *sd)
{
	struct soak *s = sd->soak;
	struct saker_qp_attr attr = {
		.send_cq = s->cq[sd->at][l->index % 2],
		.recv_cq = l->index % 2 ? s->recv_cq[sd->at] : s->cq[sd->at][0],
		.sq_depth = FIFO,
		.rq_depth = RECVS,
		.max_send_sge = 4,
		.max_recv_sge = 4,
		.max_inline = 256,
		.user = &l->index,
	};

	if (saker_qp_create(sd->pd, &attr, &sd->qp)) {
		soak_fail(s, sd, "saker_qp_create: %s", saker_error());
		return -1;
	}
	memset(sd->op, 0, sizeof(sd->op));
	sd->sq_in = sd->sq_out = sd->silent = sd->recv_in = sd->recv_out = 0;
	sd->coming_in = sd->coming_out = 0;
	sd->up = sd->gone = sd->broken = false;
	sd->reason[0] = 0;
	side_post_recvs(sd);
	return 0;
}

static struct saker_conn_param
params(const struct link *l)
{
	/* With damaged FPDUs, Reads that are never answered must not hold the flood back. */
	bool damaged = l->side[0].soak->o.corrupt_crc > 0;

	return (struct saker_conn_param){.ird = 8,
		.ord = damaged ? 8 : 4,
		.crc = 2,
		.markers = 2,
		.private_data = &l->index,
		.private_len = 1};
}

/* Connects the link; odd links connect in the other direction. */
static int
begin(struct link *l)
{
	struct side *from = &l->side[(l->index + l->lives) % 2];
	struct saker_conn_param p = params(l);
	struct soak *s = from->soak;

	if (make_qp(l, &l->side[0]) || make_qp(l, &l->side[1]))
		return -1;
	l->lives++;
	l->flooded = false;
	l->state = LINK_CONNECTING;
	if (saker_connect(from->qp, NULL, &s->rig.end[from->far->at].addr,
		    (uint16_t)(PORT + from->far->at), &p)) {
		soak_fail(s, from, "saker_connect: %s", saker_error());
		return -1;
	}
	return 0;
}

static int
destroy(struct link *l)
{
	for (int i = 0; i < 2; i++) {
		struct side *sd = &l->side[i];

		if (saker_qp_destroy(sd->qp)) {
			soak_fail(sd->soak, sd, "saker_qp_destroy: %s", saker_error());
			return -1;
		}
		sd->qp = NULL;
	}
	return 0;
}

static bool
both(const struct link *l, bool (*is)(const struct side *sd))
{
	return is(&l->side[0]) && is(&l->side[1]);
}

static bool
is_gone(const struct side *sd)
{
	return sd->gone;
}

static bool
enough(const struct soak *s)
{
	return s->moved >= s->o.bytes;
}

static int
run(struct link *l)
{
	struct soak *s = l->side[0].soak;

	if (l->side[0].broken || l->side[1].broken) {
		if (s->o.corrupt_crc == 0)
			soak_fail(s, &l->side[0], "link %u broke: %s, %s", l->index,
				l->side[0].reason, l->side[1].reason);
		l->state = LINK_DYING;
		return 0;
	}
	if (!enough(s)) {
		side_act(&l->side[0]);
		side_act(&l->side[1]);
		return 0;
	}
	side_nudge(&l->side[0]);
	side_nudge(&l->side[1]);
	if (!both(l, side_idle))
		return 0;
	l->state = LINK_ENDING;
	return saker_disconnect(l->side[l->index / 2 % 2].qp, false);
}

/* Checks that one side has found the damage, and that the other received a Terminate or found
 * damage, too. */
static void
judge(struct link *l)
{
	struct soak *s = l->side[0].soak;
	bool found = false;

	for (int i = 0; i < 2; i++) {
		side_audit(&l->side[i]);
		found = found || strcmp(l->side[i].reason, "IW_LLP_CRC") == 0;
	}
	if (!found && s->o.corrupt_crc > 0)
		soak_fail(s, &l->side[0], "link %u broke without a CRC error: '%s', '%s'", l->index,
			l->side[0].reason, l->side[1].reason);
	s->deaths++;
}

void
link_flood(struct link *l)
{
	if (l->state != LINK_UP || l->flooded)
		return;
	l->flooded = true;
	side_flood(&l->side[0]);
	side_flood(&l->side[1]);
}

int
link_step(struct link *l)
{
	switch (l->state) {
	case LINK_NEW:
		return begin(l);
	case LINK_CONNECTING:
		if (l->side[0].up && l->side[1].up)
			l->state = LINK_UP;
		return 0;
	case LINK_UP:
		return run(l);
	case LINK_DYING:
		if (!both(l, is_gone) || !both(l, side_drained))
			return 0;
		judge(l);
		l->state = enough(l->side[0].soak) ? LINK_CLOSED : LINK_NEW;
		return destroy(l);
	case LINK_ENDING:
		if (!both(l, is_gone) || !both(l, side_drained))
			return 0;
		l->state = LINK_CLOSED;
		return destroy(l);
	case LINK_CLOSED:
		break;
	}
	return 0;
}

static void
request(struct soak *s, int at, const struct saker_event *ev)
{
	uint8_t index = ev->cm.private_data[0];
	struct saker_conn_param p;

	if (ev->cm.private_len != 1 || index >= LINKS) {
		soak_fail(s, NULL, "a connect request with %u bytes of private data",
			ev->cm.private_len);
		return;
	}
	p = params(&s->link[index]);
	if (saker_accept(s->rig.end[at].s, ev->request, s->link[index].side[at].qp, &p))
		soak_fail(s, NULL, "saker_accept: %s", saker_error());
}

void
link_event(struct soak *s, int at, const struct saker_event *ev)
{
	struct side *sd = NULL;

	if (ev->type == SAKER_EV_CONNECT_REQUEST) {
		request(s, at, ev);
		return;
	}
	if (ev->qp != NULL)
		sd = &s->link[*(uint8_t *)saker_qp_user(ev->qp)].side[at];
	if (sd == NULL || ev->type == SAKER_EV_REJECTED || ev->type == SAKER_EV_UNREACHABLE ||
		ev->type == SAKER_EV_CQ_OVERFLOW || ev->type == SAKER_EV_ENGINE_GONE) {
		soak_fail(s, sd, "event %d, status %d", ev->type, ev->status);
		return;
	}
	if (ev->type == SAKER_EV_ESTABLISHED)
		sd->up = true;
	if (ev->type == SAKER_EV_QP_FATAL) {
		sd->broken = true;
		snprintf(sd->reason, sizeof(sd->reason), "%s", ev->async.reason);
	}
	if (ev->type == SAKER_EV_DISCONNECTED) {
		sd->gone = true;
		sd->broken = sd->broken || link_of(sd)->state == LINK_UP;
	}
}
