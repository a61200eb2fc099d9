/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a program after the completions of its messages over iWARP: the peer gets them. The
 * test polls both instances; while `held` is set, the frames of the first one wait in the wire.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <saker/saker.h>

#include "pair.h"

#define HOME_SIZE (4u << 20)
#define MEM_SIZE  (1u << 20)
#define LEN       65536u
#define PORT      7000
#define TURNS     2000000u

TestSuite(engine_leave, .init = pair_eal);

static struct node {
	struct saker *s;
	void *home;
	int client;
	struct saker_pd *pd;
	struct saker_cq *cq;
	struct saker_qp *qp;
	struct saker_mr *mr;
	uint8_t *mem;
} node[2];

static struct pair both;
static bool held;

static void
turn(void *arg)
{
	for (int i = 0; i < (held ? 1 : 2); i++)
		eng_poll(both.e[i], 0, eng_clock());
}

static void
attach(struct node *n, struct eng *e)
{
	struct saker_qp_attr attr = {
		.sq_depth = 16, .rq_depth = 16, .max_send_sge = 1, .max_recv_sge = 1};

	n->home = aligned_alloc(4096, HOME_SIZE);
	memset(n->home, 0, HOME_SIZE);
	n->client = eng_attach_flat(e, "test", n->home, HOME_SIZE, MEM_SIZE);
	cr_assert_geq(n->client, 0);
	cr_assert_eq(saker_open_flat(n->home, HOME_SIZE, turn, NULL, &n->s), 0);
	cr_assert_eq(saker_pd_create(n->s, &n->pd), 0);
	cr_assert_eq(saker_cq_create(n->s, 64, n, &n->cq), 0);
	n->mem = saker_alloc(n->s, LEN);
	cr_assert_not_null(n->mem);
	cr_assert_eq(saker_mr_create(n->pd, n->mem, LEN,
			     RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, &n->mr),
		0);
	attr.send_cq = attr.recv_cq = n->cq;
	cr_assert_eq(saker_qp_create(n->pd, &attr, &n->qp), 0, "%s", saker_error());
}

static struct saker_event
event_of(struct node *n, enum saker_event_type type)
{
	struct saker_event ev = {0};

	for (unsigned i = 0; i < TURNS; i++) {
		turn(NULL);
		if (saker_event(n->s, &ev) == 0)
			continue;
		cr_assert_eq(ev.type, type, "event %d, status %d", ev.type, ev.status);
		return ev;
	}
	cr_assert_fail("event %d did not come", type);
	return ev;
}

static void
post(struct node *n, enum rd_opcode op, uint32_t len)
{
	struct rd_sge sge = {(uintptr_t)n->mem, len, saker_mr_stag(n->mr)};
	struct saker_wr wr = {.wr_id = (uint64_t)op,
		.opcode = (uint8_t)op,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.rkey = saker_mr_stag(node[1].mr),
		.remote_addr = (uintptr_t)node[1].mem};

	if (op == RD_RECV)
		cr_assert_eq(saker_post_recv(n->qp, &wr, 1), 1);
	else
		cr_assert_eq(saker_post_send(n->qp, &wr, 1), 1);
}

static struct rd_wc
completion(struct node *n)
{
	struct rd_wc wc = {0};

	for (unsigned i = 0; i < TURNS; i++) {
		if (saker_cq_poll(n->cq, &wc, 1) == 1)
			return wc;
		turn(NULL);
	}
	cr_assert_fail("no completion came");
	return wc;
}

static uint64_t
count_of(int side, const char *name)
{
	return pair_counter(both.e[side], "tcp", name);
}

/* Connects two QPs, and holds the frames of the first one back. */
static void
begin(void)
{
	const struct saker_conn_param param = {.ird = 4, .ord = 4, .crc = 2, .markers = 2};
	struct sk_addr to = addr(PAIR_ADDR_B);
	struct saker_listener *l;
	struct saker_event ev;

	held = false;
	pair_init(&both);
	pair_start(&both);
	attach(&node[0], both.e[0]);
	attach(&node[1], both.e[1]);
	cr_assert_eq(saker_listen(node[1].s, NULL, PORT, 4, NULL, &l), 0);
	cr_assert_eq(saker_connect(node[0].qp, NULL, &to, PORT, &param), 0);
	ev = event_of(&node[1], SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(saker_accept(node[1].s, ev.request, node[1].qp, &param), 0);
	event_of(&node[0], SAKER_EV_ESTABLISHED);
	event_of(&node[1], SAKER_EV_ESTABLISHED);
	post(&node[1], RD_RECV, LEN);
	memset(node[0].mem, 0x5a, LEN);
	held = true;
}

static void
send_one(uint32_t len)
{
	post(&node[0], RD_SEND, len);
	cr_assert_eq(completion(&node[0]).status, RD_SUCCESS);
}

static void
gone(int side)
{
	for (unsigned i = 0; i < TURNS && !eng_client_gone(both.e[side], node[side].client); i++)
		turn(NULL);
	cr_assert(eng_client_gone(both.e[side], node[side].client));
}

/* The message of `len` bytes arrives, and then the end of the connection, in order. */
static void
delivered(uint32_t len)
{
	struct rd_wc wc;

	held = false;
	wc = completion(&node[1]);
	cr_assert_eq(wc.status, RD_SUCCESS, "status %u", wc.status);
	cr_assert_eq(wc.byte_len, len);
	for (uint32_t i = 0; i < len; i++)
		cr_assert_eq(node[1].mem[i], 0x5a, "byte %u", i);
	cr_assert_eq(event_of(&node[1], SAKER_EV_DISCONNECTED).status, 0);
	cr_assert_eq(count_of(0, "TCP_LEFT"), 1);
	cr_assert_eq(count_of(0, "TCP_RESET_OUT"), 0);
	cr_assert_eq(count_of(1, "TCP_RESET_IN"), 0);
}

/* The connection is reset, and what was under way is flushed. */
static void
reset(void)
{
	held = false;
	cr_assert_eq(event_of(&node[1], SAKER_EV_DISCONNECTED).status, -ECONNRESET);
	cr_assert_eq(count_of(0, "TCP_LEFT"), 0);
	cr_assert_eq(count_of(0, "TCP_RESET_OUT"), 1);
	cr_assert_eq(count_of(1, "TCP_RESET_IN"), 1);
}

static void
finish(void)
{
	held = false;
	for (int i = 0; i < 2; i++) {
		saker_close(node[i].s);
		if (!eng_client_gone(both.e[i], node[i].client))
			eng_detach(both.e[i], node[i].client);
		gone(i);
		free(node[i].home);
	}
	pair_end(&both);
}

Test(engine_leave, message_of_a_qp_that_is_destroyed_after_its_completion_arrives)
{
	begin();
	send_one(LEN);
	cr_assert_eq(saker_qp_destroy(node[0].qp), 0, "%s", saker_error());
	delivered(LEN);
	finish();
}

Test(engine_leave, message_of_a_client_that_dies_after_its_completion_arrives)
{
	begin();
	send_one(LEN);
	cr_assert_eq(eng_detach(both.e[0], node[0].client), 0);
	gone(0);
	delivered(LEN);
	finish();
}

Test(engine_leave, message_of_a_qp_that_is_aborted_after_its_completion_arrives)
{
	begin();
	send_one(100);
	cr_assert_eq(saker_disconnect(node[0].qp, true), 0, "%s", saker_error());
	cr_assert_eq(event_of(&node[0], SAKER_EV_DISCONNECTED).status, -ECONNABORTED);
	delivered(100);
	finish();
}

Test(engine_leave, message_of_a_qp_that_is_modified_to_error_after_its_completion_arrives)
{
	begin();
	send_one(100);
	cr_assert_eq(saker_qp_modify(node[0].qp, RD_QP_ERR), 0, "%s", saker_error());
	delivered(100);
	finish();
}

/* With the FIN still under way: the QP was disconnected first. */
Test(engine_leave, message_of_a_qp_that_is_destroyed_after_its_disconnect_arrives)
{
	begin();
	send_one(100);
	cr_assert_eq(saker_disconnect(node[0].qp, false), 0, "%s", saker_error());
	cr_assert_eq(saker_qp_destroy(node[0].qp), 0, "%s", saker_error());
	delivered(100);
	finish();
}

Test(engine_leave, qp_with_an_outstanding_read_is_reset)
{
	begin();
	send_one(100);
	post(&node[0], RD_READ, 100);
	for (unsigned i = 0; i < 100; i++)
		turn(NULL);
	cr_assert_eq(saker_qp_destroy(node[0].qp), 0, "%s", saker_error());
	reset();
	finish();
}

Test(engine_leave, client_that_dies_with_an_outstanding_read_is_reset)
{
	begin();
	post(&node[0], RD_READ, 100);
	for (unsigned i = 0; i < 100; i++)
		turn(NULL);
	cr_assert_eq(eng_detach(both.e[0], node[0].client), 0);
	gone(0);
	reset();
	finish();
}
