/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One side of a link: posts operations at random and takes completions. Every request is recorded
 * until it has completed, and a completion must be that of the oldest outstanding request, so that
 * each request completes exactly once and in order.
 */
#include <string.h>

#include "soak.h"

#define ALL_RIGHTS (RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ)
#define INLINE     256u /* limits with which the QPs are created */
#define NOTICE_LEN 8u
#define FLOOD_LEN  (128u << 10) /* the longest FPDU has 64 KiB and a few bytes */

static const uint8_t opcodes[KINDS] = {
	RD_SEND, RD_SEND, RD_SEND_INV, RD_SEND_INV, RD_WRITE, RD_READ};

uint8_t *
side_local(const struct side *sd, int slot)
{
	return sd->mem + (size_t)slot * SLOT_LEN;
}

uint8_t *
side_remote(const struct side *sd, int slot)
{
	return sd->mem + (size_t)(SLOTS + slot) * SLOT_LEN;
}

uint8_t *
side_recv(const struct side *sd, unsigned n)
{
	return sd->mem + (size_t)(2 * SLOTS + n % RECVS) * SLOT_LEN;
}

/* Cuts [p, p + len) into 1 to 4 elements, of which some may be empty. Returns their number. */
static uint8_t
cut(struct side *sd, struct rd_sge sge[4], const uint8_t *p, uint32_t len)
{
	uint8_t n = (uint8_t)(1 + soak_pick(sd->soak, 4));

	for (uint8_t i = 0; i < n; i++) {
		uint32_t part = i + 1 == n ? len : soak_pick(sd->soak, len + 1);

		sge[i] = (struct rd_sge){(uintptr_t)p, part, saker_mr_stag(sd->mr)};
		p += part;
		len -= part;
	}
	return n;
}

static uint64_t
next_id(struct soak *s)
{
	return ++s->serial * 0x9e3779b97f4a7c15ull; /* odd: no two are equal */
}

void
side_post_recvs(struct side *sd)
{
	while (sd->recv_in - sd->recv_out < RECVS) {
		uint8_t *p = side_recv(sd, sd->recv_in);
		struct rd_sge sge[4];
		struct saker_wr wr = {.wr_id = next_id(sd->soak), .sge = sge};

		memset(p, OLD, SLOT_LEN);
		wr.nsge = cut(sd, sge, p, MSG_MAX);
		if (saker_post_recv(sd->qp, &wr, 1) != 1)
			soak_fail(sd->soak, sd, "saker_post_recv: %s", saker_error());
		sd->recv_id[sd->recv_in++ % RECVS] = wr.wr_id;
	}
}

static uint32_t
random_len(struct soak *s)
{
	static const uint32_t most[] = {64, 1448, 9000, 65536, MSG_MAX, MSG_MAX};
	uint32_t of = soak_pick(s, 7);

	return of == 6 ? 0 : soak_pick(s, most[of] + 1);
}

/* Records a request as outstanding and decides whether it is signaled. */
static void
owe(struct side *sd, struct saker_wr *wr, int slot)
{
	struct posted *p = &sd->sq[sd->sq_in++ % FIFO];
	bool signaled = sd->silent == 3 || soak_pick(sd->soak, 4) != 0;

	sd->silent = signaled ? 0 : sd->silent + 1;
	wr->wr_id = next_id(sd->soak);
	if (signaled)
		wr->flags |= RD_SIGNALED;
	/* A fence behind a Read that is never answered would hold the flood back. */
	if (soak_pick(sd->soak, 8) == 0 && sd->soak->o.corrupt_crc == 0)
		wr->flags |= RD_FENCE;
	*p = (struct posted){wr->wr_id, wr->opcode, signaled, slot};
}

/* Prepares the Send that follows a Write: when it arrives, the Write has been placed. */
static void
notice(struct side *sd, struct saker_wr *wr, struct rd_sge *sge, const uint64_t *word, int slot)
{
	*sge = (struct rd_sge){(uintptr_t)word, NOTICE_LEN, 0};
	*wr = (struct saker_wr){.opcode = RD_SEND, .flags = RD_INLINE, .nsge = 1, .sge = sge};
	owe(sd, wr, -1);
	sd->far->coming[sd->far->coming_in++ % RECVS] = (struct coming){(uint8_t)slot, true};
}

/* Prepares the operation's source and destination. */
static int
prepare(struct side *sd, int slot, struct op *op, struct saker_wr *wr)
{
	uint8_t *near = side_local(sd, slot), *there = side_remote(sd->far, slot);
	int rc = 0;

	if (op->kind == READ) {
		memset(near, OLD, SLOT_LEN);
		bytes_fill(there, op->len, op->key);
	} else {
		bytes_fill(near, op->len, op->key);
	}
	if (op->kind == WRITE)
		memset(there, OLD, SLOT_LEN);
	if (op->kind >= WRITE) {
		wr->remote_addr = (uintptr_t)there;
		wr->rkey = saker_mr_stag(sd->far->mr);
	}
	if (op->kind == SEND_INV || op->kind == SEND_SE_INV) {
		rc = saker_mr_create(sd->far->pd, there, MSG_MAX, ALL_RIGHTS, &op->window);
		if (rc == 0)
			wr->imm = saker_mr_stag(op->window);
	}
	if (op->kind == SEND_SE || op->kind == SEND_SE_INV)
		wr->flags |= RD_SOLICITED;
	return rc;
}

static void
start(struct side *sd, int slot)
{
	struct soak *s = sd->soak;
	struct op *op = &sd->op[slot];
	struct rd_sge sge[4], tell;
	struct saker_wr wr[2] = {{.sge = sge}};
	uint64_t word = 0;
	int n = 1;

	*op = (struct op){.kind = soak_pick(s, KINDS),
		.busy = true,
		.len = random_len(s),
		.key = soak_random(s)};
	if (op->kind != READ && sd->far->coming_in == sd->far->recv_in) {
		op->busy = false; /* no receive is posted for it */
		return;
	}
	if (prepare(sd, slot, op, &wr[0])) {
		soak_fail(s, sd, "saker_mr_create: %s", saker_error());
		return;
	}
	wr[0].opcode = opcodes[op->kind];
	wr[0].nsge = cut(sd, sge, side_local(sd, slot), op->len);
	if (op->kind != READ && op->len <= INLINE && soak_pick(s, 2))
		wr[0].flags |= RD_INLINE;
	owe(sd, &wr[0], slot);
	if (op->kind == WRITE) {
		bytes_fill((uint8_t *)&word, NOTICE_LEN, ~op->key);
		notice(sd, &wr[n++], &tell, &word, slot);
	} else if (op->kind != READ) {
		sd->far->coming[sd->far->coming_in++ % RECVS] =
			(struct coming){(uint8_t)slot, false};
	}
	if (saker_post_send(sd->qp, wr, n) != n)
		soak_fail(s, sd, "saker_post_send: %s", saker_error());
	s->count[op->kind]++;
}

void
side_act(struct side *sd)
{
	for (int i = 0; i < SLOTS; i++)
		if (!sd->op[i].busy) {
			start(sd, i);
			return;
		}
}

void
side_nudge(struct side *sd)
{
	struct saker_wr wr = {.opcode = RD_WRITE};

	if (sd->silent == 0)
		return;
	sd->silent = 3;
	owe(sd, &wr, -1);
	if (saker_post_send(sd->qp, &wr, 1) != 1)
		soak_fail(sd->soak, sd, "saker_post_send: %s", saker_error());
}

void
side_flood(struct side *sd)
{
	uint8_t *near = side_recv(sd, RECVS - 1) + SLOT_LEN;
	uint8_t *there = side_recv(sd->far, RECVS - 1) + SLOT_LEN;
	struct rd_sge sge = {(uintptr_t)near, FLOOD_LEN, saker_mr_stag(sd->mr)};
	struct saker_wr wr = {.opcode = RD_WRITE,
		.nsge = 1,
		.sge = &sge,
		.remote_addr = (uintptr_t)there,
		.rkey = saker_mr_stag(sd->far->mr)};

	owe(sd, &wr, -1);
	if (saker_post_send(sd->qp, &wr, 1) != 1)
		soak_fail(sd->soak, sd, "saker_post_send: %s", saker_error());
}

bool
side_idle(const struct side *sd)
{
	for (int i = 0; i < SLOTS; i++)
		if (sd->op[i].busy)
			return false;
	return sd->sq_in == sd->sq_out && sd->coming_in == sd->coming_out;
}

bool
side_drained(const struct side *sd)
{
	for (unsigned i = sd->sq_out; i != sd->sq_in; i++)
		if (sd->sq[i % FIFO].signaled)
			return false;
	return sd->recv_in == sd->recv_out;
}

static void
verified(struct side *actor, int slot)
{
	struct op *op = &actor->op[slot];

	op->seen = true;
	op->busy = !op->acted;
	actor->soak->moved += op->len;
}

/* Handles a completed request: overwrites the source, which no longer belongs to the request. */
static void
acted(struct side *sd, const struct posted *p)
{
	struct op *op = p->slot < 0 ? NULL : &sd->op[p->slot];

	if (op == NULL)
		return;
	op->acted = true;
	if (op->kind == READ) {
		if (!bytes_right(side_local(sd, p->slot), op->len, op->key))
			soak_fail(sd->soak, sd, "a Read of %u bytes brought wrong ones", op->len);
		verified(sd, p->slot);
		return;
	}
	memset(side_local(sd, p->slot), 0x5a, op->len);
	op->busy = !op->seen;
}

static void
send_done(struct side *sd, const struct rd_wc *wc)
{
	bool ok = wc->status == RD_SUCCESS;

	while (sd->sq_out != sd->sq_in) {
		struct posted *p = &sd->sq[sd->sq_out++ % FIFO];

		if (p->wr_id == wc->wr_id) {
			if (ok && (!p->signaled || wc->opcode != p->opcode))
				soak_fail(sd->soak, sd, "opcode %u completed as %u, signalled: %d",
					p->opcode, wc->opcode, p->signaled);
			if (ok)
				acted(sd, p);
			return;
		}
		if (p->signaled)
			break; /* lost, or out of order */
		if (ok)
			acted(sd, p);
	}
	soak_fail(sd->soak, sd, "wr_id %016llx (opcode %u, status %u) is not the one owed",
		(unsigned long long)wc->wr_id, wc->opcode, wc->status);
}

static void
check_send(struct side *sd, struct op *op, const struct rd_wc *wc, const uint8_t *buf)
{
	bool se = op->kind == SEND_SE || op->kind == SEND_SE_INV;
	bool inv = op->kind == SEND_INV || op->kind == SEND_SE_INV;

	if (wc->byte_len != op->len || !bytes_right(buf, op->len, op->key))
		soak_fail(sd->soak, sd, "a Send of %u bytes brought %u wrong ones", op->len,
			wc->byte_len);
	if (!!(wc->flags & RD_WC_SOLICITED) != se || !!(wc->flags & RD_WC_INV) != inv ||
		(inv && wc->inv_stag != saker_mr_stag(op->window)))
		soak_fail(sd->soak, sd, "a Send of kind %u came with flags %u, STag %08x", op->kind,
			wc->flags, wc->inv_stag);
	if (op->window != NULL && saker_mr_destroy(op->window))
		soak_fail(sd->soak, sd, "saker_mr_destroy: %s", saker_error());
	op->window = NULL;
}

static void
received(struct side *sd, const struct rd_wc *wc, const uint8_t *buf)
{
	struct coming c = sd->coming[sd->coming_out++ % RECVS];
	struct op *op = &sd->far->op[c.slot];

	if (c.notice) {
		if (wc->byte_len != NOTICE_LEN || !bytes_right(buf, NOTICE_LEN, ~op->key))
			soak_fail(sd->soak, sd, "the notice of a Write is wrong");
		if (!bytes_right(side_remote(sd, c.slot), op->len, op->key))
			soak_fail(sd->soak, sd, "a Write of %u bytes placed wrong ones", op->len);
	} else {
		check_send(sd, op, wc, buf);
	}
	verified(sd->far, c.slot);
	side_post_recvs(sd);
}

/* Handles a flushed receive, which a message may have filled in part. */
static void
recv_flushed(struct side *sd, const uint8_t *buf)
{
	struct coming c = {0};
	struct op none = {0}, *op = &none;
	uint32_t len = 0;
	uint64_t key = 0;

	if (sd->coming_out != sd->coming_in) {
		c = sd->coming[sd->coming_out++ % RECVS];
		op = &sd->far->op[c.slot];
		len = c.notice ? NOTICE_LEN : op->len;
		key = c.notice ? ~op->key : op->key;
	}
	if (!bytes_right_or_old(buf, len, key))
		soak_fail(sd->soak, sd, "a flushed receive holds wrong bytes");
}

static void
recv_done(struct side *sd, const struct rd_wc *wc)
{
	const uint8_t *buf = side_recv(sd, sd->recv_out);

	if (sd->recv_out == sd->recv_in || sd->recv_id[sd->recv_out % RECVS] != wc->wr_id) {
		soak_fail(sd->soak, sd, "receive %016llx (status %u) is not the one owed",
			(unsigned long long)wc->wr_id, wc->status);
		return;
	}
	sd->recv_out++;
	if (wc->status != RD_SUCCESS)
		recv_flushed(sd, buf);
	else if (sd->coming_out == sd->coming_in)
		soak_fail(sd->soak, sd, "%u bytes came that nobody sent", wc->byte_len);
	else
		received(sd, wc, buf);
}

void
side_completion(struct side *sd, const struct rd_wc *wc)
{
	if (wc->status != RD_SUCCESS)
		sd->broken = true;
	if (wc->opcode >= RD_RECV)
		recv_done(sd, wc);
	else
		send_done(sd, wc);
}

void
side_audit(struct side *sd)
{
	for (int i = 0; i < SLOTS; i++) {
		struct op *op = &sd->op[i];
		const uint8_t *at = op->kind == READ ? side_local(sd, i) : side_remote(sd->far, i);

		if (op->busy && !op->seen && op->kind >= WRITE &&
			!bytes_right_or_old(at, op->len, op->key))
			soak_fail(sd->soak, sd, "a %s of %u bytes broke off and placed wrong ones",
				op->kind == READ ? "Read" : "Write", op->len);
		if (op->window != NULL && saker_mr_destroy(op->window))
			soak_fail(sd->soak, sd, "saker_mr_destroy: %s", saker_error());
		op->window = NULL;
	}
}
