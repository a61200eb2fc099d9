/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The guest's side of the start-up cases, on plain libibverbs and librdmacm. `verbs_cases listen
 * ADDR PORT` does what its peers request (talk.h) until one requests the end. `verbs_cases connect
 * ADDR PORT` connects in every way that siw supports; the peer at PORT + 1 accepts revision 1 only.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange_verbs.h"
#include "talk.h"

static struct ex_rdma p;

/* ---- Accepting ---- */

static int
accept_wish(const struct talk_wish *w, const struct ex_event *req, struct talk *t)
{
	struct rdma_conn_param param = {
		.responder_resources = (uint8_t)w->ird, .initiator_depth = (uint8_t)w->ord};
	struct ex_event ev;

	p.id = req->id;
	if (ex_rdma_qp(&p, TALK_DEPTH) || talk_prepare(t, &p.ex))
		return -1;
	t->careful = true;
	/* librdmacm reports the peer's IRD and ORD in these fields here, and the local depths
	 * later. */
	t->mine.seen_ird = req->initiator_depth;
	t->mine.seen_ord = req->responder_resources;
	if (rdma_accept(p.id, &param))
		return ex_rdma_fail("rdma_accept");
	if (ex_rdma_expect(&p, RDMA_CM_EVENT_ESTABLISHED, &ev))
		return -1;
	t->mine.ird = ev.initiator_depth;
	t->mine.ord = ev.responder_resources;
	return 0;
}

static int
serve(const struct talk_wish *w, const struct ex_event *req)
{
	struct talk t;
	int rc = accept_wish(w, req, &t);

	if (rc == 0 && w->kind == TALK_BREAK)
		rc = talk_greet(&t, false) || talk_broken(&t) ? -1 : 0;
	else if (rc == 0)
		rc = talk(&t, w->kind == TALK_REVERSED);
	return rc ? rc : ex_rdma_expect(&p, RDMA_CM_EVENT_DISCONNECTED, NULL);
}

static int
do_listen(struct sockaddr *at)
{
	struct talk_wish w;
	struct ex_event req;
	int rc = ex_rdma_listen(&p, at), n = 0, failed = 0;

	for (; rc == 0; n++) {
		if (ex_rdma_expect(&p, RDMA_CM_EVENT_CONNECT_REQUEST, &req) ||
			talk_wish_read(&w, req.private_data, req.private_len))
			return -1;
		if (w.kind == TALK_REJECT || w.kind == TALK_END) {
			rc = rdma_reject(req.id, TALK_NO_SIW, sizeof(TALK_NO_SIW));
			rdma_destroy_id(req.id);
			if (w.kind == TALK_END)
				break;
			continue;
		}
		if (serve(&w, &req)) {
			printf("request %d, kind %u, IRD %u, ORD %u: failed\n", n, w.kind, w.ird,
				w.ord);
			failed++;
		}
		ex_rdma_end(&p);
	}
	printf("%d requests served, %d failed\n", n, failed);
	return rc || failed ? -1 : 0;
}

/* ---- Connecting ---- */

static int
start(struct sockaddr *to, const struct talk_wish *w, uint16_t ird, uint16_t ord, struct talk *t)
{
	uint8_t private_data[TALK_WISH_LEN];
	struct rdma_conn_param param = {.responder_resources = (uint8_t)ird,
		.initiator_depth = (uint8_t)ord,
		.private_data = private_data,
		.private_data_len = (uint8_t)talk_wish_write(private_data, w)};

	if (ex_rdma_resolve(&p, to) || ex_rdma_qp(&p, TALK_DEPTH) || talk_prepare(t, &p.ex))
		return -1;
	t->careful = true;
	return rdma_connect(p.id, &param) ? ex_rdma_fail("rdma_connect") : 0;
}

static bool
is(const char *what, unsigned have, unsigned want)
{
	if (have != want)
		printf("%s is %u, not %u\n", what, have, want);
	return have == want;
}

/* siw does not support Atomics: the request is refused when it is posted. */
static int
try_atomics(struct talk *t)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};
	struct ibv_sge sge = {(uintptr_t)p.ex.buf + TALK_SINK, 8, p.mr->lkey};

	for (unsigned i = 0; i < 2; i++) {
		struct ibv_send_wr wr = {.wr_id = 9,
			.opcode = ops[i],
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.atomic = {.remote_addr = t->peer.addr + TALK_SOURCE,
				.rkey = t->peer.stag,
				.compare_add = 1}};
		struct ibv_send_wr *bad;
		int rc = ibv_post_send(p.id->qp, &wr, &bad);

		if (rc == 0) {
			printf("siw took atomic %u\n", ops[i]);
			return -1;
		}
		printf("atomic %u: refused by siw, %s\n", ops[i], strerror(rc < 0 ? -rc : rc));
	}
	return 0;
}

/* Connects with these depths; the acceptor has none above `theirs`. */
static int
try_depths(struct sockaddr *to, uint16_t ird, uint16_t ord, uint16_t theirs, bool atomics)
{
	struct talk_wish w = {TALK_PLAIN, theirs, theirs};
	struct ex_event ev;
	struct talk t;
	bool ok;

	if (start(to, &w, ird, ord, &t) || ex_rdma_expect(&p, RDMA_CM_EVENT_ESTABLISHED, &ev))
		return -1;
	/* siw reports the responder's depths as its own: IRD is the responder's ORD. */
	t.mine.ird = ev.initiator_depth;
	t.mine.ord = ev.responder_resources;
	ok = is("the responder's IRD", ev.responder_resources, ord < theirs ? ord : theirs) &&
	     is("the responder's ORD", ev.initiator_depth, ird < theirs ? ird : theirs) &&
	     talk_greet(&t, true) == 0 && is("our IRD as the peer saw it", t.peer.seen_ird, ird) &&
	     is("our ORD as the peer saw it", t.peer.seen_ord, ord) &&
	     (!atomics || try_atomics(&t) == 0) && talk_reads(&t) == 0 && talk_part(&t, true) == 0;
	rdma_disconnect(p.id);
	return ex_rdma_expect(&p, RDMA_CM_EVENT_DISCONNECTED, NULL) || !ok ? -1 : 0;
}

static int
try_rejected(struct sockaddr *to, enum talk_kind kind)
{
	struct talk_wish w = {(uint16_t)kind, 7, 9};
	struct ex_event ev;
	struct talk t;

	if (start(to, &w, 3, 4, &t) || ex_rdma_expect(&p, RDMA_CM_EVENT_REJECTED, &ev))
		return -1;
	if (ev.private_len >= sizeof(TALK_NO_SAKER) &&
		memcmp(ev.private_data, TALK_NO_SAKER, sizeof(TALK_NO_SAKER)) == 0)
		return 0;
	printf("%u bytes of private data came with the rejection\n", ev.private_len);
	return -1;
}

/* A peer that implements only revision 1 closes the connection; siw reports it as unreachable. */
static int
try_unenhanced(struct sockaddr *to)
{
	struct talk_wish w = {TALK_PLAIN, 1, 1};
	struct ex_event ev;
	struct talk t;

	if (start(to, &w, 1, 1, &t) || ex_rdma_event(&p, &ev))
		return -1;
	printf("a responder of revision 1: %s, status %d\n", rdma_event_str(ev.type), ev.status);
	return ev.type == RDMA_CM_EVENT_ESTABLISHED ? -1 : 0;
}

static int
report(int rc, const char *what, unsigned value)
{
	ex_rdma_end(&p);
	printf("%s  siw connects, %s %u\n", rc ? "FAIL" : "ok  ", what, value);
	return rc ? 1 : 0;
}

static int
do_connect(struct sockaddr *to, struct sockaddr *old)
{
	static const uint8_t depths[] = {0, 1, 2, 8, 31, 128};
	int failed = 0;

	for (unsigned i = 0; i < sizeof(depths); i++)
		failed += report(
			try_depths(to, depths[i], depths[i], 128, false), "depth", depths[i]);
	failed += report(try_depths(to, 128, 128, 5, false), "depth 128 against", 5);
	failed += report(try_depths(to, 0, 128, 128, false), "IRD 0, ORD", 128);
	failed += report(try_depths(to, 128, 0, 128, false), "ORD 0, IRD", 128);
	failed += report(
		try_depths(to, 4, 4, 4, true), "atomics refused, the stream goes on, depth", 4);
	failed += report(try_unenhanced(old), "to revision", 1);
	failed += report(try_rejected(to, TALK_REJECT), "rejected", 1);
	failed += report(try_rejected(to, TALK_END), "rejected for good", 1);
	printf("%d failed\n", failed);
	return failed;
}

int
main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *ai, *old;
	char next[16];
	int rc;

	snprintf(next, sizeof(next), "%d", argc == 4 ? atoi(argv[3]) + 1 : 0);
	if (argc != 4 || getaddrinfo(argv[2], argv[3], &hints, &ai) ||
		getaddrinfo(argv[2], next, &hints, &old)) {
		fprintf(stderr, "usage: verbs_cases listen|connect ADDR PORT\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	p.events = rdma_create_event_channel();
	if (p.events == NULL)
		return ex_rdma_fail("rdma_create_event_channel"), 1;
	rc = strcmp(argv[1], "connect") == 0 ? do_connect(ai->ai_addr, old->ai_addr)
					     : do_listen(ai->ai_addr);
	printf("%s\n", rc == 0 ? "PASS" : "FAIL");
	return rc != 0;
}
