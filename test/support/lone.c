/* SPDX-License-Identifier: BSD-3-Clause */
#include "lone.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/rof/exchange_priv.h"

struct lone {
	struct rofx_carrier *k;
	struct rofx *x; /* NULL: a responder before the request */
	struct rofx_config cfg;
	uint64_t now;
	int failed; /* -reason of the exchange, or 0 */
	bool lost;  /* the carrier ended, and there is no other */
	bool told;  /* ROFX_EV_FAILED of the carrier was returned */
	bool rekeyed;
	unsigned strays;
	struct rofx_agreed agreed;
};

static void
frame(void *ctx, struct rofx_carrier *k, const struct rofx_frame *f)
{
	struct lone *x = ctx;
	int rc = -ROFX_UNKNOWN;

	if (x->x == NULL && rofx_frame_begins(f))
		x->x = rofx_listen(&x->cfg, x->now, LONE_RESPONDER, k, f);
	if (x->x != NULL)
		rc = rofx_take(x->x, x->now, k, f);
	if (rc == -ROFX_UNKNOWN) {
		x->strays++;
		rofx_unknown(k, f);
	} else if (rc < 0) {
		x->failed = rc;
	}
}

static struct lone *
create(const struct rofx_config *cfg, uint64_t now, bool initiator, int *err)
{
	struct lone *x = calloc(1, sizeof(*x));

	*err = -ENOMEM;
	if (x == NULL)
		return NULL;
	x->cfg = *cfg;
	x->now = now;
	x->k = rofx_carrier_create(cfg, now, initiator, frame, x, err);
	if (x->k != NULL)
		return x;
	free(x);
	return NULL;
}

struct lone *
lone_connect_as(const struct rofx_config *cfg, uint64_t now, uint32_t name, uint16_t service,
	const struct rofx_side *ours, const void *private_data, size_t len, int *err)
{
	bool listener = ours->addressing == ROFX_LISTENER;
	struct rofx *x = rofx_connect(cfg, now, name, ours, listener ? service : 0,
		listener ? LONE_PORT : 0, private_data, len, err);
	struct lone *l = x != NULL ? create(cfg, now, true, err) : NULL;

	if (l != NULL)
		l->x = x;
	else
		rofx_destroy(x);
	return l;
}

struct lone *
lone_connect(const struct rofx_config *cfg, uint64_t now, const struct rofx_side *ours,
	const void *private_data, size_t len, int *err)
{
	return lone_connect_as(
		cfg, now, LONE_INITIATOR, LONE_SERVICE, ours, private_data, len, err);
}

struct lone *
lone_lookup(const struct rofx_config *cfg, uint64_t now, const struct rofx_question *q, int *err)
{
	struct rofx *x = rofx_lookup(cfg, now, LONE_INITIATOR, q, err);
	struct lone *l = x != NULL ? create(cfg, now, true, err) : NULL;

	if (l != NULL)
		l->x = x;
	else
		rofx_destroy(x);
	return l;
}

struct lone *
lone_listen(const struct rofx_config *cfg, uint64_t now)
{
	int err;

	return create(cfg, now, false, &err);
}

void
lone_destroy(struct lone *x)
{
	if (x == NULL)
		return;
	rofx_destroy(x->x);
	rofx_carrier_destroy(x->k);
	explicit_bzero(x, sizeof(*x));
	free(x);
}

int
lone_input(struct lone *x, uint64_t now, const uint8_t *data, size_t len)
{
	int rc;

	x->now = now;
	rc = rofx_carrier_input(x->k, now, data, len);
	return x->failed < 0 ? x->failed : rc;
}

size_t
lone_output(struct lone *x, uint8_t *buf, size_t room)
{
	size_t n = 0, more;

	do {
		while (x->x != NULL && rofx_pass(x->x, x->k) == 0)
			;
		more = rofx_carrier_output(x->k, buf + n, room - n);
		n += more;
	} while (more > 0);
	return n;
}

bool
lone_handshakes(const struct lone *x)
{
	return rofx_carrier_handshakes(x->k);
}

void
lone_lost(struct lone *x)
{
	x->lost = true;
}

void
lone_renew(struct lone *x, const struct rofx_config *cfg, uint64_t now, bool initiator)
{
	int err;

	rofx_carrier_destroy(x->k);
	x->k = rofx_carrier_create(cfg, now, initiator, frame, x, &err);
	if (x->k == NULL)
		abort();
	if (x->x != NULL)
		rofx_lost(x->x, now);
}

uint64_t
lone_deadline(const struct lone *x)
{
	uint64_t at = rofx_carrier_deadline(x->k), other = UINT64_MAX;

	if (x->x != NULL)
		other = rofx_deadline(x->x);
	return at < other ? at : other;
}

void
lone_timeout(struct lone *x, uint64_t now)
{
	if (x->x != NULL)
		rofx_timeout(x->x, now);
	rofx_carrier_timeout(x->k, now);
}

enum rofx_event
lone_event(struct lone *x)
{
	enum rofx_event ev = x->x != NULL ? rofx_event(x->x) : ROFX_EV_NONE;

	if (ev == ROFX_EV_REKEY) {
		x->agreed = *lone_agreed(x);
		x->agreed.tx = *rofx_tx(x->x);
		x->rekeyed = true;
	}
	if (ev != ROFX_EV_NONE)
		return ev;
	if ((rofx_carrier_why(x->k) == ROFX_NONE && !x->lost) || x->told)
		return ROFX_EV_NONE;
	x->told = true;
	return ROFX_EV_FAILED;
}

enum rofx_reason
lone_why(const struct lone *x)
{
	enum rofx_reason why = rofx_carrier_why(x->k);

	if (x->failed < 0)
		return (enum rofx_reason) - x->failed;
	if (why == ROFX_NONE && x->x != NULL)
		why = rofx_why(x->x);
	return why == ROFX_NONE && x->lost ? ROFX_CLOSED : why;
}

uint8_t
lone_peer_version(const struct lone *x)
{
	return rofx_carrier_peer_version(x->k);
}

bool
lone_holds(const struct lone *x, const void *bytes, size_t len)
{
	return memmem(x->x->out, x->x->out_room, bytes, len) != NULL ||
	       memmem(x->k->out, ROFX_CARRIER_OUT, bytes, len) != NULL ||
	       memmem(x->k->frame, ROFX_FRAME_MAX, bytes, len) != NULL;
}

unsigned
lone_strays(const struct lone *x)
{
	return x->strays;
}

const struct rofx_request *
lone_request(const struct lone *x)
{
	return x->x != NULL ? rofx_request(x->x) : NULL;
}

const struct rofx_question *
lone_question(const struct lone *x)
{
	return x->x != NULL ? rofx_question(x->x) : NULL;
}

const struct rofx_answer *
lone_answer(const struct lone *x)
{
	return x->x != NULL ? rofx_answer(x->x) : NULL;
}

const struct rofx_agreed *
lone_agreed(struct lone *x)
{
	const struct rofx_agreed *a = x->x != NULL ? rofx_agreed(x->x) : NULL;

	if (a != NULL && !x->rekeyed)
		x->agreed = *a;
	return &x->agreed;
}

void
lone_list_ports(struct lone *x, const uint16_t ports[ROFX_PORTS])
{
	rofx_list_ports(x->x, ports);
}

int
lone_accept(struct lone *x, uint64_t now, const struct rofx_side *ours, const void *private_data,
	size_t len)
{
	return x->x != NULL ? rofx_accept(x->x, now, ours, private_data, len) : -EINVAL;
}

int
lone_reject(struct lone *x, enum rofx_reason why, const void *private_data, size_t len)
{
	return x->x != NULL ? rofx_reject(x->x, why, private_data, len) : -EINVAL;
}

int
lone_later(struct lone *x, uint64_t now, uint32_t delay_ms)
{
	return x->x != NULL ? rofx_later(x->x, now, delay_ms) : -EINVAL;
}

int
lone_found(struct lone *x, uint32_t qpn, uint32_t qkey, const void *private_data, size_t len)
{
	return x->x != NULL ? rofx_found(x->x, qpn, qkey, private_data, len) : -EINVAL;
}

int
lone_ready(struct lone *x)
{
	return x->x != NULL ? rofx_ready(x->x) : -EINVAL;
}

int
lone_rekey(struct lone *x, uint64_t now, const struct rofx_sa *sa)
{
	int rc = x->x != NULL ? rofx_rekey(x->x, now, sa) : -EINVAL;

	if (rc == 0) {
		x->agreed = *lone_agreed(x);
		x->agreed.rx = *sa;
		x->rekeyed = true;
	}
	return rc;
}

int
lone_rekeyed(struct lone *x)
{
	return x->x != NULL ? rofx_rekeyed(x->x) : -EINVAL;
}

int
lone_finish(struct lone *x, uint64_t now)
{
	return x->x != NULL ? rofx_finish(x->x, now) : -EINVAL;
}

bool
lone_finished(const struct lone *x)
{
	return x->x != NULL && rofx_finished(x->x);
}

int
lone_give_up(struct lone *x, enum rofx_reason why)
{
	return x->x != NULL ? rofx_give_up(x->x, why) : -EINVAL;
}

void
lone_trim(struct lone *x)
{
	(void)lone_agreed(x);
	if (x->x != NULL)
		rofx_trim(x->x);
}
