/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Saker's side of the start-up cases. `saker_cases SOCKET connect ADDR PORT` connects in every way
 * that RFC 6581 defines, and tries Atomics with a peer that has none while another stream (PORT +
 * 1) continues. `saker_cases SOCKET listen PORT` does what its peers request (talk.h) until one
 * requests the end, and refuses revision 2 at PORT + 1.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exchange_saker.h"
#include "talk.h"

#define ANY     SAKER_DEPTH_AUTO
#define SIW_MAX 128    /* siw's limit of IRD and ORD */
#define DEAF_US 300000 /* siw ignores an FPDU right behind its reply: see peer_connect() */

static struct ex_saker b, neighbour;
static struct sk_addr to;
static uint16_t port;

static bool
is(const char *what, unsigned have, unsigned want)
{
	if (have != want)
		printf("%s is %u, not %u\n", what, have, want);
	return have == want;
}

/* Creates a new QP, because an iWARP QP connects once. */
static int
fresh(struct ex_saker *x, struct talk *t)
{
	struct saker_qp_attr attr = {.send_cq = x->p.cq,
		.recv_cq = x->p.cq,
		.sq_depth = TALK_DEPTH,
		.rq_depth = 64,
		.max_send_sge = 1,
		.max_recv_sge = 1};
	struct rd_wc wc;
	int rc;

	if (x->p.qp != NULL && (rc = saker_qp_destroy(x->p.qp)) < 0)
		return peer_fail("saker_qp_destroy", rc);
	x->p.qp = NULL;
	while (saker_cq_poll(x->p.cq, &wc, 1) == 1)
		;
	rc = saker_qp_create(x->p.pd, &attr, &x->p.qp);
	return rc < 0 ? peer_fail("saker_qp_create", rc) : talk_prepare(t, &x->ex);
}

static void
open_side(struct ex_saker *x)
{
	exchange_saker_init(x);
	x->p.param.revision = 2;
}

static int
start(struct ex_saker *x, uint16_t at, const struct talk_wish *w, struct talk *t)
{
	uint8_t private_data[TALK_WISH_LEN];
	int rc;

	x->p.param.private_data = private_data;
	x->p.param.private_len = (uint16_t)talk_wish_write(private_data, w);
	if (fresh(x, t))
		return -1;
	rc = saker_connect(x->p.qp, NULL, &to, at, &x->p.param);
	x->p.param.private_data = NULL;
	x->p.param.private_len = 0;
	return rc < 0 ? peer_fail("saker_connect", rc) : 0;
}

static int
established(struct ex_saker *x, struct talk *t, struct saker_event *ev)
{
	if (peer_expect(&x->p, SAKER_EV_ESTABLISHED, ev))
		return -1;
	t->mine.ird = ev->cm.ird;
	t->mine.ord = ev->cm.ord;
	usleep(DEAF_US);
	return 0;
}

static int
end(struct ex_saker *x)
{
	int rc = saker_disconnect(x->p.qp, false);

	return rc < 0 ? peer_fail("saker_disconnect", rc) : peer_wait_end(&x->p);
}

static uint16_t
least(uint16_t x, uint16_t y)
{
	return x < y ? x : y;
}

/* ---- Depths ---- */

/* siw raises its IRD to the local ORD, and keeps its ORD at most the local IRD. */
static int
try_depths(uint16_t ird, uint16_t ord, uint16_t theirs)
{
	struct talk_wish w = {TALK_PLAIN, theirs, theirs};
	uint16_t their_ird = least(ord, SIW_MAX) > theirs ? least(ord, SIW_MAX) : theirs;
	struct saker_event ev;
	struct talk t;

	b.p.param.ird = ird;
	b.p.param.ord = ord;
	if (start(&b, port, &w, &t) || established(&b, &t, &ev))
		return -1;
	if (!is("revision", ev.cm.revision, 2) || !is("enhanced", ev.cm.enhanced, 1) ||
		!is("the peer's IRD", ev.cm.peer_ird, their_ird) ||
		!is("the peer's ORD", ev.cm.peer_ord, least(ird, theirs)) ||
		!is("IRD", ev.cm.ird, least(ird, theirs)) ||
		!is("ORD", ev.cm.ord, least(ord, their_ird)))
		return -1;
	if (talk_greet(&t, true) ||
		!is("our IRD as siw saw it", t.peer.seen_ird, least(ird, SIW_MAX)) ||
		!is("our ORD as siw saw it", t.peer.seen_ord, least(ord, SIW_MAX)))
		return -1;
	return talk_reads(&t) || talk_part(&t, true) || end(&b) ? -1 : 0;
}

/* Revision 1 has no depths: each side keeps its own. */
static int
try_revision_1(uint8_t crc)
{
	struct talk_wish w = {TALK_PLAIN, 8, 8};
	struct saker_event ev;
	struct talk t;
	int rc;

	b.p.param.revision = 1;
	b.p.param.crc = crc;
	b.p.param.ird = b.p.param.ord = 8;
	rc = start(&b, port, &w, &t) || established(&b, &t, &ev);
	b.p.param.revision = 2;
	b.p.param.crc = 2;
	if (rc || !is("revision", ev.cm.revision, 1) || !is("enhanced", ev.cm.enhanced, 0) ||
		!is("the peer's IRD", ev.cm.peer_ird, ANY) ||
		!is("the peer's ORD", ev.cm.peer_ord, ANY) || !is("IRD", ev.cm.ird, 8) ||
		!is("CRC", ev.cm.crc, crc != 0) || !is("ORD", ev.cm.ord, 8))
		return -1;
	return talk(&t, true) || end(&b) ? -1 : 0;
}

/* ---- Ready-to-receive messages ---- */

/* siw regards the stream as established when it has received an FPDU, and then sends first. */
static int
try_rtr(uint8_t rtr, enum talk_kind kind)
{
	struct talk_wish w = {(uint16_t)kind, 4, 4};
	struct saker_event ev;
	struct talk t;
	int rc;

	b.p.param.rtr = rtr;
	b.p.param.ird = b.p.param.ord = 4;
	rc = start(&b, port, &w, &t) || established(&b, &t, &ev);
	b.p.param.rtr = SAKER_RTR_ANY;
	if (rc ||
		!is("the message in use", ev.cm.rtr, rtr == SAKER_RTR_ANY ? SAKER_RTR_WRITE : rtr))
		return -1;
	/* siw may have ignored the ready-to-receive message. */
	if (kind == TALK_REVERSED && talk_nudge(&t))
		return -1;
	return talk(&t, kind == TALK_PLAIN) || end(&b) ? -1 : 0;
}

/* siw accepts no Send as ready-to-receive message: Terminate, code 7. */
static int
try_rtr_send(void)
{
	struct talk_wish w = {TALK_PLAIN, 4, 4};
	struct saker_event ev;
	struct talk t;
	int rc;

	b.p.param.rtr = SAKER_RTR_SEND;
	rc = start(&b, port, &w, &t) || peer_expect(&b.p, SAKER_EV_UNREACHABLE, &ev);
	b.p.param.rtr = SAKER_RTR_ANY;
	return rc || !is("the error", (unsigned)-ev.status, EOPNOTSUPP) ? -1 : 0;
}

/* ---- Rejection ---- */

static int
try_rejected(enum talk_kind kind, uint8_t revision)
{
	struct talk_wish w = {(uint16_t)kind, 4, 4};
	struct saker_event ev;
	struct talk t;
	int rc;

	b.p.param.revision = revision;
	b.p.param.ird = 11;
	b.p.param.ord = 12;
	rc = start(&b, port, &w, &t) || peer_expect(&b.p, SAKER_EV_REJECTED, &ev);
	b.p.param.revision = 2;
	if (rc)
		return -1;
	if (ev.cm.private_len != sizeof(TALK_NO_SIW) ||
		memcmp(ev.cm.private_data, TALK_NO_SIW, sizeof(TALK_NO_SIW)) != 0) {
		printf("%u bytes of private data came with the rejection\n", ev.cm.private_len);
		return -1;
	}
	/* The rejection states the depths that siw would have used (RFC 6581 9.1). */
	return is("the peer's IRD", ev.cm.peer_ird, revision == 2 ? 12 : ANY) &&
			       is("the peer's ORD", ev.cm.peer_ord, revision == 2 ? 11 : ANY)
		       ? 0
		       : -1;
}

/* ---- Atomics ---- */

static int
neighbour_begins(struct talk *t)
{
	struct talk_wish w = {TALK_PLAIN, 4, 4};
	struct saker_event ev;

	neighbour.p.param.ird = neighbour.p.param.ord = 4;
	return start(&neighbour, (uint16_t)(port + 1), &w, t) || established(&neighbour, t, &ev) ||
			       talk_greet(t, true)
		       ? -1
		       : 0;
}

static int
atomic_post(struct talk *t, enum rd_opcode op, uint64_t operand)
{
	struct rd_sge sge = {
		(uintptr_t)b.ex.buf + TALK_SINK, sizeof(uint64_t), saker_mr_stag(b.p.mr)};
	struct saker_wr wr = {.wr_id = 99,
		.opcode = (uint8_t)op,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.remote_addr = t->peer.addr + TALK_SOURCE,
		.rkey = t->peer.stag,
		.data = operand,
		.compare_mask = ~0ull,
		.data_mask = op == RD_FETCH_ADD ? 0 : ~0ull};
	int rc = saker_post_send(b.p.qp, &wr, 1);

	return rc == 1 ? 0 : peer_fail("saker_post_send", rc);
}

/* Only the Atomic completes with an error of its own; the end of the QP is reported. */
static int
atomic_refused(struct talk *t, enum rd_opcode op, uint64_t operand, enum rd_status want)
{
	struct saker_event ev;
	struct rd_wc wc;

	if (atomic_post(t, op, operand))
		return -1;
	do {
		if (peer_wait(&b.p, &wc, false))
			return -1;
	} while (wc.wr_id != 99);
	if (peer_expect(&b.p, SAKER_EV_QP_FATAL, &ev))
		return -1;
	printf("      told as: %s\n", ev.async.reason);
	return peer_wait_end(&b.p) || !is("the status", wc.status, want) ? -1 : 0;
}

/* siw refuses by a Terminate, after which the stream ends (RFC 5040 7); all other streams
 * continue. */
static int
try_atomic(enum rd_opcode op, uint64_t operand, uint8_t dialect)
{
	enum rd_status want = op == RD_SWAP && dialect != SAKER_DIALECT_DRAFT ? RD_LOC_QP_OP_ERR
									      : RD_REM_INV_REQ_ERR;
	struct talk_wish w = {TALK_BREAK, 4, 4};
	struct talk t, other;
	struct saker_event ev;
	int rc;

	if (neighbour_begins(&other))
		return -1;
	b.p.param.ird = b.p.param.ord = 4;
	b.p.param.dialect = dialect;
	rc = start(&b, port, &w, &t) || established(&b, &t, &ev) || talk_greet(&t, true);
	b.p.param.dialect = SAKER_DIALECT_CONFIGURED;
	/* siw sends no Terminate while its own last message is not acknowledged. */
	usleep(DEAF_US);
	rc = rc || atomic_refused(&t, op, operand, want);
	return talk_reads(&other) || talk_part(&other, true) || end(&neighbour) || rc ? -1 : 0;
}

/* ---- All of them ---- */

static int failed;

static void
report(int rc, const char *what, unsigned value)
{
	struct saker_event ev;

	printf("%s  saker connects, %s %u\n", rc ? "FAIL" : "ok  ", what, value);
	failed += rc != 0;
	/* Discards the events that a failed case has left behind. */
	while (rc && saker_wait(b.p.s, 500) == 1)
		while (saker_event(b.p.s, &ev) == 1)
			;
}

static int
do_connect(void)
{
	static const uint8_t depths[] = {0, 1, 2, 3, 7, 8, 31, 64, 127, 128};

	for (unsigned i = 0; i < sizeof(depths); i++)
		report(try_depths(depths[i], depths[i], depths[i]), "depth", depths[i]);
	report(try_depths(0, 128, 3), "IRD 0, ORD 128 against", 3);
	report(try_depths(128, 0, 3), "ORD 0, IRD 128 against", 3);
	report(try_depths(ANY, ANY, 5), "depths not negotiated, against", 5);
	report(try_revision_1(2), "revision", 1);
	report(try_revision_1(0), "no CRC, revision", 1);
	report(try_rtr(SAKER_RTR_WRITE, TALK_REVERSED), "siw speaks first after a Write", 2);
	report(try_rtr(SAKER_RTR_READ, TALK_REVERSED), "siw speaks first after a Read", 4);
	report(try_rtr(SAKER_RTR_ANY, TALK_PLAIN), "any ready-to-receive message", 0);
	report(try_rtr(SAKER_RTR_NONE, TALK_PLAIN), "no ready-to-receive message", 8);
	report(try_rejected(TALK_REJECT, 2), "rejected, revision", 2);
	report(try_rejected(TALK_REJECT, 1), "rejected, revision", 1);
	report(try_atomic(RD_FETCH_ADD, 1, SAKER_DIALECT_RFC7306), "FetchAdd of", 1);
	report(try_atomic(RD_FETCH_ADD, 0, SAKER_DIALECT_RFC7306), "the question, FetchAdd of", 0);
	report(try_atomic(RD_CMP_SWAP, 1, SAKER_DIALECT_RFC7306), "CmpSwap to", 1);
	report(try_atomic(RD_SWAP, 1, SAKER_DIALECT_DRAFT), "the draft's Swap to", 1);
	report(try_atomic(RD_SWAP, 1, SAKER_DIALECT_RFC7306), "without the dialect, Swap to", 1);
	report(try_rejected(TALK_END, 2), "rejected for good, revision", 2);
	return failed;
}

/* Ends the other stream's listener, too. */
static int
end_neighbour(void)
{
	struct talk_wish w = {TALK_END, 0, 0};
	struct saker_event ev;
	struct talk t;

	return start(&neighbour, (uint16_t)(port + 1), &w, &t) ||
			       peer_expect(&neighbour.p, SAKER_EV_REJECTED, &ev)
		       ? -1
		       : 0;
}

/* ---- Accepting ---- */

static int
serve(const struct talk_wish *w, const struct saker_event *req)
{
	struct saker_event ev;
	struct talk t;
	int rc;

	if (fresh(&b, &t))
		return -1;
	b.p.param.ird = w->ird;
	b.p.param.ord = w->ord;
	rc = saker_accept(b.p.s, req->request, b.p.qp, &b.p.param);
	if (rc < 0)
		return peer_fail("saker_accept", rc);
	if (peer_expect(&b.p, SAKER_EV_ESTABLISHED, &ev))
		return -1;
	t.mine = (struct talk_note){.ird = ev.cm.ird,
		.ord = ev.cm.ord,
		.seen_ird = req->cm.peer_ird,
		.seen_ord = req->cm.peer_ord};
	if (!is("IRD", ev.cm.ird, least(req->cm.peer_ord, w->ird)) ||
		!is("ORD", ev.cm.ord, least(req->cm.peer_ird, w->ord)) || talk(&t, false))
		return -1;
	return 0;
}

/* Waits for the next connect request. The end of the previous stream may be reported in between, or
 * belong to no QP if its QP has been destroyed. */
static int
next_request(struct saker_event *req)
{
	for (int naps = 0; naps < PEER_WAIT_MS / 100;) {
		if (saker_event(b.p.s, req) != 1) {
			naps += saker_wait(b.p.s, 100) == 0;
			continue;
		}
		if (req->type == SAKER_EV_CONNECT_REQUEST)
			return 0;
		if (req->type != SAKER_EV_DISCONNECTED) {
			printf("event %d (status %d)\n", req->type, req->status);
			failed++;
		}
	}
	printf("no request came\n");
	return -1;
}

static int
do_listen(void)
{
	struct saker_conn_param old = {.revision = 1, .crc = 2, .markers = 2};
	struct saker_listener *unenhanced;
	struct saker_event req;
	struct talk_wish w;
	int rc = saker_listen_as(b.p.s, NULL, (uint16_t)(port + 1), 4, &old, NULL, &unenhanced);

	if (rc < 0)
		return peer_fail("saker_listen_as", rc);
	if (peer_listen(&b.p, port))
		return -1;
	for (;;) {
		if (next_request(&req) ||
			talk_wish_read(&w, req.cm.private_data, req.cm.private_len))
			return -1;
		if (w.kind == TALK_REJECT || w.kind == TALK_END) {
			rc = saker_reject(b.p.s, req.request, TALK_NO_SAKER, sizeof(TALK_NO_SAKER));
			if (rc < 0 || w.kind == TALK_END)
				return rc < 0 ? peer_fail("saker_reject", rc) : failed;
		} else if (serve(&w, &req)) {
			printf("a request for IRD %u, ORD %u failed\n", w.ird, w.ord);
			failed++;
		}
	}
}

int
main(int argc, char **argv)
{
	bool connects = argc >= 5 && strcmp(argv[2], "connect") == 0;
	bool sends = argc >= 5 && strcmp(argv[2], "send") == 0;
	int rc;

	if (argc < 4 || ((connects || sends) && sk_addr_parse(argv[3], &to) < 0)) {
		fprintf(stderr, "usage: saker_cases SOCKET connect ADDR PORT | "
				"send ADDR PORT | listen PORT\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	port = (uint16_t)atoi(argv[connects || sends ? 4 : 3]);
	rc = peer_open(&b.p, argv[1], "saker_cases", EX_BUF_LEN);
	neighbour.p.s = b.p.s;
	if (rc == 0)
		rc = peer_setup(&neighbour.p, EX_BUF_LEN);
	if (rc == 0) {
		open_side(&b);
		open_side(&neighbour);
		rc = connects ? do_connect() : sends ? try_rtr_send() : do_listen();
		if (connects && end_neighbour())
			rc = -1;
	}
	peer_close(&b.p);
	printf("%s\n", rc == 0 ? "PASS" : "FAIL");
	return rc != 0;
}
