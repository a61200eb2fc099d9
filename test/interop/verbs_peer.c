/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange on plain libibverbs and librdmacm, for Linux's soft-iWARP: `verbs_peer listen ADDR
 * PORT` or `verbs_peer connect ADDR PORT`, either followed by `quick`.
 */
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "exchange_verbs.h"

#define DEPTH 64

static int
do_connect(struct ex_rdma *p, struct sockaddr *to, struct rdma_conn_param *param)
{
	if (ex_rdma_resolve(p, to) || ex_rdma_qp(p, DEPTH) || exchange_prepare(&p->ex))
		return -1;
	if (rdma_connect(p->id, param))
		return ex_rdma_fail("rdma_connect");
	return ex_rdma_expect(p, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static int
do_accept(struct ex_rdma *p, struct sockaddr *at, struct rdma_conn_param *param)
{
	struct ex_event ev;

	if (ex_rdma_listen(p, at) || ex_rdma_expect(p, RDMA_CM_EVENT_CONNECT_REQUEST, &ev))
		return -1;
	p->id = ev.id;
	if (ex_rdma_qp(p, DEPTH) || exchange_prepare(&p->ex))
		return -1;
	if (rdma_accept(p->id, param))
		return ex_rdma_fail("rdma_accept");
	return ex_rdma_expect(p, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

int
main(int argc, char **argv)
{
	struct rdma_conn_param param = {.responder_resources = 8, .initiator_depth = 8};
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *ai;
	struct ex_rdma p = {0};
	bool first;
	int rc;

	if (argc < 4 || getaddrinfo(argv[2], argv[3], &hints, &ai)) {
		fprintf(stderr, "usage: verbs_peer listen|connect ADDR PORT [quick]\n");
		return 2;
	}
	first = strcmp(argv[1], "connect") == 0;
	p.events = rdma_create_event_channel();
	if (p.events == NULL)
		return ex_rdma_fail("rdma_create_event_channel"), 1;
	rc = first ? do_connect(&p, ai->ai_addr, &param) : do_accept(&p, ai->ai_addr, &param);
	if (rc == 0)
		rc = exchange(&p.ex, first, argc > 4 && strcmp(argv[4], "quick") == 0);
	if (rc == 0 && first)
		rdma_disconnect(p.id);
	if (rc == 0)
		rc = ex_rdma_expect(&p, RDMA_CM_EVENT_DISCONNECTED, NULL);
	printf("%s\n", rc == 0 ? "PASS" : "FAIL");
	return rc != 0;
}
