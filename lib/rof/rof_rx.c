/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deliveries. Each request is checked once, and its verdict goes back: taken; to be repeated later
 * (RNR); or an error, which ends the request or the QP as the error mode requires (6.3). On an
 * ordered connection that refused a request, all requests behind it are refused until it is
 * delivered again, since Falcon may have delivered them already.
 */
#include "rof_priv.h"

enum rof_reason
rof_fault_reason(enum rd_fault fault)
{
	static const uint8_t reasons[] = {
		[RD_FAULT_STAG] = ROF_STAG,
		[RD_FAULT_PD] = ROF_STAG_PD,
		[RD_FAULT_ACCESS] = ROF_ACCESS,
		[RD_FAULT_BOUNDS] = ROF_BOUNDS,
		[RD_FAULT_WRAP] = ROF_BOUNDS,
	};

	return (enum rof_reason)reasons[fault];
}

/* ---- Answers ---- */

#define TAKEN_MAX 65536 /* requests in one message */

static void
post_taken(struct rof_chan *c)
{
	struct rof_msg m = {
		.kind = ROF_MSG_OUTCOME,
		.outcome = {.rsn = c->taken_rsn,
			.verdict = FA_TAKEN,
			.more = (uint16_t)(c->taken - 1)},
	};

	c->taken = 0;
	if (!rof_chan_send(c, &m) && c->rc != NULL)
		rof_fail(c->rc, ROF_NO_BUFFER);
}

/* Sends an answer. If it cannot even wait for room, the QP fails: it cannot continue without it. */
static void
rof_rx_post(struct rof_chan *c, const struct rof_msg *m)
{
	if (c->taken > 0)
		post_taken(c);
	if (rof_chan_send(c, m))
		return;
	if (m->buf != NULL)
		c->st->ops.buf_put(c->st->ctx, m->buf);
	if (m->outcome.buf != NULL)
		c->st->ops.buf_put(c->st->ctx, m->outcome.buf);
	if (c->rc != NULL)
		rof_fail(c->rc, ROF_NO_BUFFER);
}

static void
rof_rx_verdict(struct rof_chan *c, uint32_t rsn, enum fa_verdict v, uint8_t ulp_code)
{
	struct rof_msg m = {
		.kind = ROF_MSG_OUTCOME,
		.outcome = {.rsn = rsn, .verdict = (uint8_t)v, .ulp_code = ulp_code},
	};

	rof_rx_post(c, &m);
}

/* Reports that a request was taken. Consecutive ones share one message. */
static void
report_taken(struct rof_chan *c, uint32_t rsn)
{
	if (c->taken > 0 && (rsn != c->taken_rsn + c->taken || c->taken == TAKEN_MAX))
		post_taken(c);
	if (c->taken++ == 0)
		c->taken_rsn = rsn;
	if (!c->in_rx)
		post_taken(c);
}

static void
post_answer(struct rof_chan *c, enum rof_msg_kind kind, uint32_t rsn, struct fa_buf *buf)
{
	struct rof_msg m = {.kind = (uint8_t)kind, .buf = buf, .outcome = {.rsn = rsn}};

	rof_rx_post(c, &m);
}

/* Takes a pull and answers it. */
static void
rof_rx_answer(struct rof_chan *c, uint32_t rsn, struct fa_buf *buf)
{
	post_answer(c, ROF_MSG_ANSWER, rsn, buf);
}

static void
come_again(struct rof_chan *c, const struct fa_delivery *d, uint8_t rnr_code)
{
	struct rof_msg m = {
		.kind = ROF_MSG_OUTCOME,
		.outcome = {.rsn = d->rsn, .verdict = FA_RNR, .rnr = rnr_code, .buf = d->buf},
	};

	rof_rx_post(c, &m);
}

/* ---- Requests that are refused for now ---- */

/* Returns whether a request before this one was refused, so that this one must be refused, too.
 * Those behind are delivered again in order and after that one; unless the peer has given it up,
 * which shows when one of them is delivered again. */
static bool
behind(struct rof_chan *c, const struct fa_delivery *d)
{
	uint32_t ahead = d->rsn - c->refuse_rsn;

	if (c->p.ordering != ROF_ORDER_STRONG || !c->refused || (int32_t)ahead <= 0)
		return false;
	if (d->restart || ahead <= c->bounced_rsn - c->refuse_rsn) {
		c->refused = false;
		return false;
	}
	c->bounced_rsn = d->rsn;
	return true;
}

static void
refused_first(struct rof_chan *c, uint32_t rsn)
{
	if (!c->refused) {
		c->refused = true;
		c->refuse_rsn = rsn;
		c->rnr_count = 0;
		c->buffer_waits = 0;
	}
	if (rsn == c->refuse_rsn)
		c->bounced_rsn = rsn;
}

/* Counts the refusals of the request that was refused first. Returns false when they are too
 * many. */
static bool
patient(struct rof_chan *c, uint32_t rsn)
{
	if (rsn != c->refuse_rsn || c->p.rnr_retry == ROF_RNR_FOREVER)
		return true;
	return c->rnr_count++ < c->p.rnr_retry;
}

static void
accepted(struct rof_chan *c, uint32_t rsn)
{
	if (rsn == c->refuse_rsn)
		c->refused = false;
}

/* ---- Sequence numbers ---- */

/* Checks a sequence number (8.2). In the strongly ordered mode each packet is the next one, unless
 * Falcon gave one up and the error mode lets the others continue; in the weakly ordered mode the
 * missing ones are recorded. */
static enum rof_reason
sn_check(const struct rof_chan *c, uint32_t sn)
{
	uint32_t ahead = sn - c->sn_next;

	switch (c->p.ordering) {
	case ROF_ORDER_STRONG:
		if (c->p.errors == ROF_ERRORS_COMPLETE)
			return ahead < ROF_SN_WINDOW ? ROF_NONE : ROF_SEQUENCE;
		return ahead == 0 ? ROF_NONE : ROF_SEQUENCE;
	case ROF_ORDER_WEAK:
		if (ahead >= ROF_SN_WINDOW)
			return ROF_SEQUENCE;
		sn %= ROF_SN_WINDOW;
		return c->sn_map[sn / 64] >> sn % 64 & 1 ? ROF_SEQUENCE : ROF_NONE;
	default:
		return ROF_NONE;
	}
}

static void
sn_came(struct rof_chan *c, uint32_t sn)
{
	if (c->p.ordering == ROF_ORDER_STRONG)
		c->sn_next = sn + 1;
	if (c->p.ordering != ROF_ORDER_WEAK)
		return;
	sn %= ROF_SN_WINDOW;
	c->sn_map[sn / 64] |= 1ull << sn % 64;
	for (;; c->sn_next++) {
		uint32_t at = c->sn_next % ROF_SN_WINDOW;

		if (!(c->sn_map[at / 64] >> at % 64 & 1))
			return;
		c->sn_map[at / 64] &= ~(1ull << at % 64);
	}
}

bool
rof_sn_reached(const struct rof_chan *c, uint32_t sn)
{
	return (int32_t)(c->sn_next - sn) > 0;
}

/* ---- Requests ---- */

bool
rof_in_parse(struct rof_stage *st, struct rof_in *in, const struct fa_delivery *d)
{
	const struct fa_buf *b = d->buf;
	int head = -1;

	*in = (struct rof_in){.buf = d->buf, .rsn = d->rsn, .pull = d->type == FA_PULL};
	if (b != NULL && (b->data_len == b->len || (st->lengths_only && b->data_len > 0)))
		head = wire_rof_parse(&in->h, b->data, b->len);
	if (head < 0) {
		rof_count(st, ROF_BAD_HEADER);
		return false;
	}
	in->head = (uint32_t)head;
	in->len = d->buf->len - in->head - in->h.pad;
	return true;
}

/* Returns whether the opcode is valid for this Falcon packet and this connection. */
static bool
opcode_fits(const struct rof_chan *c, const struct rof_in *in)
{
	return (in->h.opcode & ROF_TRANSPORT) == c->p.transport &&
	       wire_rof_falcon_type(in->h.opcode) ==
		       (in->pull ? FALCON_PULL_REQUEST : FALCON_PUSH_DATA);
}

static enum rof_reason
rof_rx_judge(struct rof_chan *c, struct rof_in *in, uint8_t *nak)
{
	struct rof_qp *q = c->rc;
	enum rof_reason reason;

	*nak = ROF_NAK_QP;
	if (q->phase != ROF_PHASE_OPEN)
		return ROF_QP_STATE;
	*nak = ROF_NAK_REQUEST;
	reason = sn_check(c, in->h.sn);
	if (reason != ROF_NONE)
		return reason;
	in->in_sequence = true;
	if (!opcode_fits(c, in))
		return ROF_BAD_OPCODE;
	if (!rof_xrc_use(q, in->h.xrc_srq))
		return ROF_XRC_SRQ;
	if (in->pull)
		return rof_rx_pull(q, in, nak);
	if (wire_rof_headers(in->h.opcode) & ROF_RETH)
		return rof_rx_write(q, in, nak);
	return rof_rx_send(q, in, nak);
}

/* Refuses an invalid request. A push gets a NACK; a pull gets its answer (Falcon 8.5.3.5, 11),
 * which is empty when the request's headers are invalid. The connection of a QP that fails here
 * stays, so that the answer arrives: the peer closes it. */
static void
rof_rx_refuse(struct rof_chan *c, const struct rof_in *in, enum rof_reason reason, uint8_t nak)
{
	bool fatal = c->p.errors == ROF_ERRORS_VERBS;

	if (in->pull) {
		rof_rx_answer(c, in->rsn, in->answer);
	} else {
		rof_rx_verdict(c, in->rsn, fatal ? FA_FATAL_ERROR : FA_CIE, nak);
	}
	if (in->buf != NULL)
		c->st->ops.buf_put(c->st->ctx, in->buf);
	if (fatal && c->rc != NULL)
		rof_fail_target(c->rc, reason);
}

static void
rof_rx_taken(struct rof_chan *c, const struct rof_in *in)
{
	if (in->answer != NULL)
		rof_rx_answer(c, in->rsn, in->answer);
	else
		report_taken(c, in->rsn);
	c->st->ops.buf_put(c->st->ctx, in->buf);
}

/* Refuses a request for a QP of another connection (6.9). Its sequence number is this connection's,
 * which continues. */
static bool
misdirected(struct rof_chan *c, const struct rof_in *in)
{
	if (c->rc == NULL || in->h.dest_qp == c->rc->rd->qpn)
		return false;
	rof_count(c->st, ROF_WRONG_QP);
	if (sn_check(c, in->h.sn) == ROF_NONE)
		sn_came(c, in->h.sn);
	rof_rx_verdict(c, in->rsn, FA_WRONG_CID, ROF_NAK_REQUEST);
	c->st->ops.buf_put(c->st->ctx, in->buf);
	return true;
}

/* Returns the RNR code for a request that found no buffer. The time grows while the request that
 * was refused first finds none: each attempt costs as much as a request that is served, and a peer
 * that acknowledges no data keeps its share of the buffers for seconds. */
static uint8_t
buffer_rnr(struct rof_chan *c, uint32_t rsn)
{
	uint8_t code = (uint8_t)(ROF_RNR_SOON + c->buffer_waits);

	if (rsn == c->refuse_rsn && code < ROF_RNR_LATE)
		c->buffer_waits++;
	return code;
}

/* Refuses a request for now, when no state has changed and a repetition may succeed. Returns false
 * otherwise. */
static bool
later(struct rof_chan *c, const struct fa_delivery *d, enum rof_reason reason)
{
	if (reason != ROF_NO_BUFFER && reason != ROF_NO_RECEIVE)
		return false;
	refused_first(c, d->rsn);
	if (reason == ROF_NO_RECEIVE && !patient(c, d->rsn))
		return false;
	rof_count(c->st, reason);
	come_again(c, d, reason == ROF_NO_BUFFER ? buffer_rnr(c, d->rsn) : c->p.rnr_code);
	return true;
}

/* ---- Pulls that wait for those before them ---- */

/* Returns whether a valid pull has to wait (rof_parked.c). */
static bool
overtook(const struct rof_chan *c, const struct rof_in *in)
{
	return in->pull && c->p.ordering == ROF_ORDER_WEAK && c->rc != NULL &&
	       c->rc->phase == ROF_PHASE_OPEN && !rof_parked_first(c, in->h.sn) &&
	       sn_check(c, in->h.sn) == ROF_NONE && opcode_fits(c, in);
}

/* Executes a pull that has waited. Returns ROF_NO_PAGE, and has changed nothing, when pages are
 * missing; otherwise the pull has its answer. */
static enum rof_reason
parked_execute(struct rof_chan *c, struct rof_in *in)
{
	enum rof_reason reason = ROF_QP_STATE;
	uint8_t nak;

	if (c->rc != NULL && c->rc->phase == ROF_PHASE_OPEN)
		reason = rof_xrc_use(c->rc, in->h.xrc_srq) ? rof_rx_pull(c->rc, in, &nak)
							   : ROF_XRC_SRQ;
	if (reason == ROF_NO_PAGE)
		return reason;
	if (reason != ROF_NONE)
		rof_pull_refuse(c, in); /* it has a reserved buffer */
	post_answer(c, ROF_MSG_DATA, in->rsn, in->answer);
	return reason;
}

void
rof_parked_run(struct rof_chan *c)
{
	struct rof_in *in;

	while ((in = rof_parked_next(c)) != NULL) {
		bool open = c->rc != NULL && c->rc->phase == ROF_PHASE_OPEN;
		enum rof_reason reason = parked_execute(c, in);

		if (reason != ROF_NONE)
			rof_count(c->st, reason);
		if (reason == ROF_NO_PAGE)
			return;
		rof_parked_remove(c);
		if (reason == ROF_NONE || !open)
			continue;
		if (c->p.errors == ROF_ERRORS_VERBS)
			rof_fail_target(c->rc, reason);
	}
}

static void
rof_rx_park(struct rof_chan *c, const struct rof_in *in, const struct fa_delivery *d)
{
	if (!rof_parked_add(c, in)) {
		later(c, d, ROF_NO_BUFFER);
		return;
	}
	accepted(c, in->rsn);
	rof_rx_verdict(c, in->rsn, FA_TAKEN, 0);
	sn_came(c, in->h.sn);
	rof_parked_run(c);
	rof_recvs_complete(c->rc);
}

static bool
rof_rx_reliable(struct rof_chan *c, struct rof_in *in, const struct fa_delivery *d)
{
	enum rof_reason reason = ROF_QP_STATE;
	uint8_t nak = ROF_NAK_QP;

	if (c->rc != NULL)
		reason = rof_rx_judge(c, in, &nak);
	if (reason == ROF_NO_PAGE)
		return false;
	if (later(c, d, reason))
		return true;
	if (reason == ROF_NO_RECEIVE) {
		reason = ROF_RNR_EXHAUSTED;
		nak = ROF_NAK_RNR;
	}
	if (reason != ROF_NONE && in->pull && opcode_fits(c, in) && !rof_pull_refuse(c, in)) {
		later(c, d, ROF_NO_BUFFER);
		return true;
	}
	accepted(c, in->rsn);
	if (in->in_sequence)
		sn_came(c, in->h.sn);
	if (reason == ROF_NONE) {
		rof_rx_taken(c, in);
	} else {
		rof_count(c->st, reason);
		if (c->rc != NULL && reason != ROF_SEQUENCE && opcode_fits(c, in) && !in->pull)
			rof_recv_refused(c->rc, in);
		rof_rx_refuse(c, in, reason, nak);
	}
	rof_parked_run(c);
	if (c->rc != NULL)
		rof_recvs_complete(c->rc);
	return true;
}

static void
datagram(struct rof_chan *c, struct rof_in *in)
{
	bool taken = false;

	if (opcode_fits(c, in) && !in->pull)
		taken = rof_rx_datagram(c, in);
	else
		rof_count(c->st, ROF_BAD_OPCODE);
	if (in->pull)
		rof_rx_answer(c, in->rsn, NULL);
	else
		report_taken(c, in->rsn);
	if (!taken)
		c->st->ops.buf_put(c->st->ctx, in->buf);
}

static bool
rof_rx_request(struct rof_chan *c, const struct fa_delivery *d)
{
	struct rof_in in;

	if (behind(c, d)) {
		come_again(c, d, c->p.rnr_code);
		return true;
	}
	if (!rof_in_parse(c->st, &in, d)) {
		rof_rx_refuse(c, &in, ROF_BAD_HEADER, ROF_NAK_REQUEST);
	} else if (c->p.transport == ROF_UD) {
		datagram(c, &in);
	} else if (misdirected(c, &in)) {
		rof_parked_run(c);
		rof_recvs_complete(c->rc);
	} else if (overtook(c, &in)) {
		rof_rx_park(c, &in, d);
	} else {
		return rof_rx_reliable(c, &in, d);
	}
	return true;
}

bool
rof_rx_one(struct rof_chan *c, const struct fa_delivery *d)
{
	switch (d->type) {
	case FA_PUSH:
	case FA_PULL:
		return rof_rx_request(c, d);
	case FA_PULL_DATA:
		return rof_rx_pull_data(c, d);
	case FA_COMPLETION:
		rof_rx_completion(c, d);
		break;
	}
	return true;
}

bool
rof_rx_kicks(const struct rof_chan *c)
{
	if (c->pending_head != c->pending_tail)
		return true;
	if (c->rc != NULL)
		return c->rc->blocked && c->rc->phase == ROF_PHASE_OPEN;
	return !TAILQ_EMPTY(&c->ready) ||
	       (!TAILQ_EMPTY(&c->waiting) && c->txn_next - c->txn_base < c->txn_cap);
}

/* ---- Fast paths ---- */

/* Reports that a fast path has taken a request, with the answer of a pull. */
static inline void
fast_taken(struct rof_chan *c, const struct fa_delivery *d, struct fa_buf *answer)
{
	if (answer != NULL)
		rof_rx_answer(c, d->rsn, answer);
	else
		report_taken(c, d->rsn);
	rof_buf_done(c->st, d->buf);
	if (c->rc->recvs != NULL)
		rof_recvs_complete(c->rc);
}

/* Processes a pull or pull data. Returns false, and has changed nothing, when the general path must
 * do it. */
static bool
pull_fast(struct rof_chan *c, const struct fa_delivery *d)
{
	struct fa_buf *answer;

	if (d->type == FA_PULL_DATA)
		return rof_rx_pull_data_next(c, d);
	if (d->type != FA_PULL)
		return false;
	switch (rof_rx_pull_next(c, d, &answer)) {
	case ROF_FAST_NONE:
		return false;
	case ROF_FAST_NOBUF:
		later(c, d, ROF_NO_BUFFER);
		break;
	case ROF_FAST_DONE:
		fast_taken(c, d, answer);
		break;
	}
	return true;
}

static void
rx_or_wait(struct rof_chan *c, const struct fa_delivery *d)
{
	if (c->is_late) {
		rof_late_add(c, d);
	} else if (!rof_rx_one(c, d)) {
		rof_count(c->st, ROF_NO_PAGE);
		rof_late_add(c, d);
	}
}

/* Processes a delivery by a fast path. Returns false, and has changed nothing, when the general
 * path must do it. */
static inline bool
rx_fast(struct rof_chan *c, const struct fa_delivery *d, struct rd_span *target)
{
	if (c->is_late)
		return false;
	if (d->type != FA_PUSH)
		return pull_fast(c, d);
	if (!rof_rx_write_next(c, d->buf, target))
		return false;
	fast_taken(c, d, NULL);
	return true;
}

/* Processes deliveries with consecutive RSNs. */
static void
rx_chain(struct rof_chan *c, const struct fa_delivery *d)
{
	struct fa_delivery one = *d;
	struct rd_span target = {0};

	for (struct fa_buf *b = d->buf, *next; b != NULL; b = next) {
		next = b->next;
		b->next = NULL;
		one.buf = b;
		if (!rx_fast(c, &one, &target)) {
			rx_or_wait(c, &one);
			target.host = NULL; /* it may have invalidated the region */
		}
		one.rsn++;
		one.restart = false;
	}
}

static void
free_done(struct rof_stage *st)
{
	struct fa_buf *chain = st->done, *next;

	st->done = NULL;
	if (chain != NULL && st->ops.bufs_put != NULL) {
		st->ops.bufs_put(st->ctx, chain);
		return;
	}
	for (; chain != NULL; chain = next) {
		next = chain->next;
		st->ops.buf_put(st->ctx, chain);
	}
}

bool
rof_rx(struct rof_chan *c, uint64_t now, const struct fa_delivery *d)
{
	c->in_rx = true;
	if (d->buf != NULL)
		rx_chain(c, d);
	else
		rx_or_wait(c, d);
	c->in_rx = false;
	free_done(c->st);
	if (c->taken > 0)
		post_taken(c);
	return rof_rx_kicks(c);
}
