/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that links libibverbs and librdmacm and does not depend on Saker: it connects to itself
 * and provokes the errors that verbs define, each on a connection of its own. Runs under saker-run,
 * once per device ($SAKER_DEVICE).
 *
 *	verbs_errors ADDRESS	every case; exits with status 1 if one had another result
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs_pair.h"

#define EVENT_MS 20000 /* generous, reached only when something is broken */

static int failures;

static void
check(bool right, const char *what, int got)
{
	printf("%s: %s (%d)\n", right ? "ok" : "WRONG", what, got);
	if (!right)
		failures++;
}

/* ---- Requests ---- */

static int
read_from(struct pair *p, uint64_t addr, uint32_t rkey, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)p->a.mem, len, p->a.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_RDMA_READ,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	if (ibv_post_send(p->a.id->qp, &wr, &bad) != 0)
		return -1;
	return pair_status(p->a.scq);
}

static int
send_it(struct pair *p, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)p->a.mem, len, lkey};
	struct ibv_send_wr wr = {.wr_id = 2,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	if (ibv_post_send(p->a.id->qp, &wr, &bad) != 0)
		return -1;
	return pair_status(p->a.scq);
}

static int
receive(struct side *s, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)s->mem, len, s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(s->id->qp, &wr, &bad);
}

/* Returns the asynchronous event of one side's QP, or 0 when none arrives. Discards other
 * events. */
static int
event_of(struct pair *p, const struct side *s)
{
	struct ibv_async_event ev;

	while (pair_async(p, EVENT_MS, &ev)) {
		bool its = ev.element.qp == s->id->qp;

		ibv_ack_async_event(&ev);
		if (its)
			return (int)ev.event_type;
	}
	return 0;
}

/* ---- Cases ---- */

static void
wrong_key(struct pair *p)
{
	int status = read_from(p, (uintptr_t)p->b.mem, p->b.mr->rkey ^ 0x5500, 8);

	check(status == IBV_WC_REM_ACCESS_ERR, "a Read with a wrong key: remote access error",
		status);
	status = event_of(p, &p->b);
	check(status == IBV_EVENT_QP_ACCESS_ERR, "and the peer's queue pair says so", status);
	check(pair_ended(p, EVENT_MS), "and the connection ends on both sides", 0);
}

static void
wrong_bounds(struct pair *p)
{
	int status = read_from(p, (uintptr_t)p->b.mem + PAIR_BYTES - 4, p->b.mr->rkey, 8);

	check(status == IBV_WC_REM_ACCESS_ERR, "a Read beyond the region: remote access error",
		status);
}

static void
wrong_lkey(struct pair *p)
{
	int status = send_it(p, 8, p->a.mr->lkey ^ 0x5500);

	check(status == IBV_WC_LOC_PROT_ERR, "a Send with a wrong lkey: local protection error",
		status);
}

/* An iWARP Send completes when TCP has accepted it, and the peer ends the connection (RFC 5040
 * 7.1). A Falcon Send is refused until the retries are used up. */
static void
no_receive(struct pair *p)
{
	bool iwarp = p->a.id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	int status = send_it(p, 8, p->a.mr->lkey);

	check(iwarp ? status == IBV_WC_SUCCESS : status == IBV_WC_RNR_RETRY_EXC_ERR,
		"a Send without a receive", status);
	check(pair_ended(p, EVENT_MS), "and the connection ends on both sides", 0);
}

static void
short_receive(struct pair *p)
{
	int rc = receive(&p->b, 4), status;

	check(rc == 0, "a receive of 4 bytes is posted", rc);
	send_it(p, 8, p->a.mr->lkey);
	status = pair_status(p->b.rcq);
	check(status == IBV_WC_LOC_LEN_ERR, "8 bytes into 4: local length error at the receiver",
		status);
	status = event_of(p, &p->b);
	check(status == IBV_EVENT_QP_REQ_ERR, "and its queue pair got an impossible request",
		status);
}

static void
flushed(struct pair *p)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	int rc = receive(&p->a, 8), status;

	check(rc == 0, "a receive is posted", rc);
	rc = ibv_modify_qp(p->a.id->qp, &attr, IBV_QP_STATE);
	check(rc == 0, "the queue pair is moved to the error state", rc);
	status = pair_status(p->a.rcq);
	check(status == IBV_WC_WR_FLUSH_ERR, "its receive is flushed", status);
	status = send_it(p, 8, p->a.mr->lkey);
	check(status == IBV_WC_WR_FLUSH_ERR, "what is posted then is flushed, too", status);
}

static void
overflow(struct pair *p)
{
	struct ibv_async_event ev;
	struct ibv_sge sge = {(uintptr_t)p->a.mem, 1, p->a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_RDMA_WRITE,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	bool told = false;

	wr.wr.rdma.remote_addr = (uintptr_t)p->b.mem;
	wr.wr.rdma.rkey = p->b.mr->rkey;
	/* No completion is taken, so more requests than the queue has entries overflow it. */
	for (int n = 0; n < 100000 && !told; n++) {
		int rc = ibv_post_send(p->a.id->qp, &wr, &bad);

		if (rc != 0 && rc != ENOMEM)
			break;
		told = pair_async(p, n % 64 == 0 || rc == ENOMEM ? 10 : 0, &ev);
	}
	while (told && ev.event_type != IBV_EVENT_CQ_ERR) {
		ibv_ack_async_event(&ev);
		told = pair_async(p, EVENT_MS, &ev);
	}
	check(told && ev.event_type == IBV_EVENT_CQ_ERR && ev.element.cq == p->a.scq,
		"a completion queue that overflows says so", told ? (int)ev.event_type : -1);
	if (told)
		ibv_ack_async_event(&ev);
}

static void
refused_posts(struct pair *p)
{
	struct ibv_sge sge[64];
	struct ibv_send_wr wr[2] = {{.sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND},
		{.sg_list = sge, .num_sge = 64, .opcode = IBV_WR_SEND}},
			   *bad = NULL;
	int rc;

	for (int i = 0; i < 64; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)p->a.mem, 1, p->a.mr->lkey};
	wr[0].next = &wr[1];
	receive(&p->b, 8);
	rc = ibv_post_send(p->a.id->qp, wr, &bad);
	check(rc == EINVAL && bad == &wr[1], "the second of two has too many elements", rc);
	wr[0].next = NULL;
	wr[0].opcode = IBV_WR_DRIVER1;
	rc = ibv_post_send(p->a.id->qp, wr, &bad);
	check(rc == EINVAL && bad == &wr[0], "an operation that there is not", rc);
}

static void
in_use(struct pair *p)
{
	int rc = ibv_destroy_cq(p->a.scq);

	check(rc == EBUSY, "a completion queue in use is not destroyed", rc);
	rc = ibv_dealloc_pd(p->a.pd);
	check(rc == EBUSY, "a protection domain in use is not given back", rc);
}

/* Runs in the child: no object of the parent works, a device of its own does. Returns the exit
 * status. */
static int
child(struct pair *p)
{
	struct ibv_sge sge = {(uintptr_t)p->a.mem, 8, p->a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_device **list;
	struct ibv_context *c;
	struct ibv_wc wc;

	if (ibv_post_send(p->a.id->qp, &wr, &bad) == 0 || ibv_poll_cq(p->a.scq, 1, &wc) >= 0)
		return 1;
	list = ibv_get_device_list(NULL);
	c = list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;
	return c != NULL && ibv_alloc_pd(c) != NULL ? 0 : 2;
}

static void
forked(struct pair *p)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(child(p));
	waitpid(pid, &status, 0);
	check(status == 0, "a child uses a device of its own and nothing of its parent's", status);
	status = receive(&p->b, 8);
	check(status == 0 && send_it(p, 8, p->a.mr->lkey) == IBV_WC_SUCCESS &&
			pair_status(p->b.rcq) == IBV_WC_SUCCESS,
		"and the parent goes on", status);
}

/* Not an error, but no Debian program uses it: a region with addresses of its own choice. */
static void
other_addresses(struct pair *p)
{
	const uint64_t base = 0x123456789000;
	struct ibv_mr *mr = ibv_reg_mr_iova(p->b.pd, p->b.mem, PAIR_BYTES, base,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	int status;

	check(mr != NULL, "a region with addresses of its own", mr == NULL ? errno : 0);
	if (mr == NULL)
		return;
	memset(p->b.mem, 0x5a, PAIR_BYTES);
	memset(p->a.mem, 0, PAIR_BYTES);
	status = read_from(p, base + 100, mr->rkey, 8);
	check(status == IBV_WC_SUCCESS && p->a.mem[0] == 0x5a && p->a.mem[7] == 0x5a,
		"and a Read by them", status);
	status = ibv_dereg_mr(mr);
	check(status == 0, "and its end", status);
}

static const struct {
	const char *name;
	void (*run)(struct pair *p);
} cases[] = {
	{"wrong key", wrong_key},
	{"wrong bounds", wrong_bounds},
	{"wrong lkey", wrong_lkey},
	{"no receive", no_receive},
	{"short receive", short_receive},
	{"flush", flushed},
	{"overflow", overflow},
	{"refused posts", refused_posts},
	{"in use", in_use},
	{"fork", forked},
	{"other addresses", other_addresses},
};

/* Posts before the QP is connected. */
static void
wrong_state(const char *address)
{
	struct side s;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	int rc;

	side_resolve(&s, address, pair_port);
	side_make(&s, s.id);
	sge = (struct ibv_sge){(uintptr_t)s.mem, 8, s.mr->lkey};
	rc = ibv_post_send(s.id->qp, &wr, &bad);
	check(rc == EINVAL && bad == &wr, "a Send before the connection: EINVAL", rc);
	attr.qp_state = IBV_QPS_SQD;
	rc = ibv_modify_qp(s.id->qp, &attr, IBV_QP_STATE);
	check(rc != 0, "a step that there is not", rc);
	side_unmake(&s);
}

static void
nobody_there(const char *address, const char *what)
{
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct side s;
	int event;

	side_resolve(&s, address, pair_port + 1);
	side_make(&s, s.id);
	rdma_connect(s.id, &param);
	event = pair_event(s.channel, NULL);
	check(event == RDMA_CM_EVENT_REJECTED || event == RDMA_CM_EVENT_UNREACHABLE, what, event);
	side_unmake(&s);
}

int
main(int argc, char **argv)
{
	struct pair p;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2) {
		fprintf(stderr, "verbs_errors ADDRESS\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		printf("-- %s\n", cases[i].name);
		pair_connect(&p, argv[1], NULL);
		cases[i].run(&p);
		pair_end(&p);
	}
	wrong_state(argv[1]);
	nobody_there(argv[1], "nobody listens: rejected or unreachable");
	printf("%d came out otherwise\n", failures);
	return failures != 0;
}
