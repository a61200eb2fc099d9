/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that links libibverbs and librdmacm and does not depend on Saker: how it starts, grows
 * large, and is notified that its device has gone. Runs under saker-run, once per device
 * ($SAKER_DEVICE).
 *
 *	verbs_life ADDRESS once		one connection, one Send, everything freed
 *	verbs_life ADDRESS many N	N connections at once, and the time that they took
 *	verbs_life ADDRESS bereft	waits until its saker ends, and checks which objects are
 *					notified, and how often
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/clock.h"
#include "verbs_pair.h"

#define LONG_MS 60000 /* generous, reached only when something is broken */

static int
complain(const char *what)
{
	fprintf(stderr, "%s\n", what);
	return 1;
}

static int
once(const char *address)
{
	struct ibv_sge sge;
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;
	struct pair p;

	pair_connect(&p, address, NULL);
	memset(p.a.mem, 0x5a, 8);
	sge = (struct ibv_sge){(uintptr_t)p.b.mem, 8, p.b.mr->lkey};
	if (ibv_post_recv(p.b.id->qp, &recv, &bad_recv) != 0)
		return complain("ibv_post_recv");
	sge = (struct ibv_sge){(uintptr_t)p.a.mem, 8, p.a.mr->lkey};
	if (ibv_post_send(p.a.id->qp, &send, &bad_send) != 0)
		return complain("ibv_post_send");
	if (pair_status(p.a.scq) != IBV_WC_SUCCESS || pair_status(p.b.rcq) != IBV_WC_SUCCESS)
		return complain("a completion with an error");
	if (memcmp(p.a.mem, p.b.mem, 8) != 0)
		return complain("other bytes than were sent");
	pair_end(&p);
	return 0;
}

static int
many(const char *address, int n)
{
	struct pair *p = calloc((size_t)n, sizeof(*p));
	uint64_t began = now_ns();

	for (int i = 0; i < n; i++)
		pair_connect(&p[i], address, i == 0 ? NULL : &p[0]);
	printf("%d connections, %d queue pairs in %.2f s\n", n, 2 * n,
		(double)(now_ns() - began) / 1e9);
	for (int i = n - 1; i >= 0; i--)
		pair_end(&p[i]);
	free(p);
	return 0;
}

/* ---- The end of saker ---- */

static bool
readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* Checks that one IBV_EVENT_DEVICE_FATAL arrives and nothing else, so that a thread that sleeps on
 * the descriptor continues to sleep. */
static int
fatal_once(struct ibv_context *c)
{
	struct ibv_async_event ev;

	fcntl(c->async_fd, F_SETFL, fcntl(c->async_fd, F_GETFL) | O_NONBLOCK);
	do {
		if (!readable(c->async_fd, LONG_MS))
			return complain("nobody says that the device has gone");
	} while (ibv_get_async_event(c, &ev) != 0);
	ibv_ack_async_event(&ev);
	if (ev.event_type != IBV_EVENT_DEVICE_FATAL)
		return complain(ibv_event_type_str(ev.event_type));
	if (readable(c->async_fd, 0))
		return complain("the descriptor is readable still");
	return 0;
}

static int
threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	while (d != NULL && readdir(d) != NULL)
		n++;
	closedir(d);
	return n - 2;
}

static int
bereft(const char *address)
{
	struct ibv_context *c;
	struct ibv_wc wc;
	struct pair p;
	int type;

	pair_connect(&p, address, NULL);
	c = p.a.id->verbs;
	puts("ready");
	if (fatal_once(c) != 0)
		return 1;
	type = pair_event(p.a.channel, NULL);
	if (type != RDMA_CM_EVENT_DEVICE_REMOVAL)
		return complain(rdma_event_str(type));
	/* The thread that forwards events has nothing to wait for. */
	for (int i = 0; threads() > 1; i++, poll(NULL, 0, 10))
		if (i > LONG_MS / 10)
			return complain("a thread goes on");
	if (ibv_poll_cq(p.a.scq, 1, &wc) > 0 && wc.status == IBV_WC_SUCCESS)
		return complain("something was done nevertheless");
	pair_end(&p);
	return 0;
}

int
main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(what, "once") == 0)
		return once(argv[1]);
	if (strcmp(what, "many") == 0 && argc > 3)
		return many(argv[1], atoi(argv[3]));
	if (strcmp(what, "bereft") == 0)
		return bereft(argv[1]);
	fprintf(stderr, "verbs_life ADDRESS once | many N | bereft\n");
	return 2;
}
