/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that links libibverbs and librdmacm, does not depend on Saker, and outlives its device:
 * when the device has failed, it destroys all its objects, closes the device, and opens the next
 * one. It connects two QPs of its own, compares what each Send carries, and waits for the end of
 * the device. Runs under saker-run.
 *
 *	verbs_restart ADDRESS PORT N	ends after N devices have failed
 *
 * It prints "at work K" when the K-th device works, and at the end "left D" with the number of
 * descriptors and mappings beyond those after the first device.
 */
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verbs_pair.h"

#define DEVICE_S 120 /* generous, reached only when something is broken */
#define ROUNDS   32  /* Sends for each device */

static void
restart_fail(const char *what)
{
	fprintf(stderr, "verbs_restart: %s\n", what);
	exit(1);
}

/* Opens the device that rdma_cm uses for itself, too, once there is one. */
static struct ibv_context *
device_await(void)
{
	time_t until = time(NULL) + DEVICE_S;

	while (time(NULL) < until) {
		int n = 0;
		struct ibv_device **list = ibv_get_device_list(&n);
		struct ibv_context *c = n > 0 ? ibv_open_device(list[0]) : NULL;

		if (list != NULL)
			ibv_free_device_list(list);
		if (c != NULL)
			return c;
		poll(NULL, 0, 20);
	}
	restart_fail("no device comes");
	return NULL;
}

/* Sends from `from` to `to`. Returns whether that succeeded. */
static bool
send_one(struct side *from, struct side *to, uint8_t byte)
{
	struct ibv_sge sge = {(uintptr_t)to->mem, PAIR_BYTES, to->mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;

	memset(from->mem, byte, PAIR_BYTES);
	memset(to->mem, 0, PAIR_BYTES);
	if (ibv_post_recv(to->id->qp, &recv, &bad_recv) != 0)
		return false;
	sge = (struct ibv_sge){(uintptr_t)from->mem, PAIR_BYTES, from->mr->lkey};
	send.sg_list = &sge;
	if (ibv_post_send(from->id->qp, &send, &bad_send) != 0)
		return false;
	if (pair_status(from->scq) != IBV_WC_SUCCESS || pair_status(to->rcq) != IBV_WC_SUCCESS)
		return false;
	if (memcmp(from->mem, to->mem, PAIR_BYTES) != 0)
		restart_fail("other bytes than were sent");
	return true;
}

static void
work(struct pair *p)
{
	for (int i = 0; i < ROUNDS; i++)
		if (!send_one(i % 2 != 0 ? &p->a : &p->b, i % 2 != 0 ? &p->b : &p->a,
			    (uint8_t)(i + 1)))
			restart_fail("a Send failed");
}

static void
failure_await(struct ibv_context *c, struct pair *p)
{
	struct ibv_async_event ev;

	if (ibv_get_async_event(c, &ev) != 0)
		restart_fail("no asynchronous event");
	if (ev.event_type != IBV_EVENT_DEVICE_FATAL)
		restart_fail(ibv_event_type_str(ev.event_type));
	ibv_ack_async_event(&ev);
	for (int type; (type = pair_event(p->a.channel, NULL)) != RDMA_CM_EVENT_DEVICE_REMOVAL;)
		if (type != RDMA_CM_EVENT_DISCONNECTED)
			restart_fail(rdma_event_str((enum rdma_cm_event_type)type));
}

static int
entries(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	while (d != NULL && readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static int
mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0;
	char line[512];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, "memfd:") != NULL;
	fclose(f);
	return n;
}

int
main(int argc, char **argv)
{
	int devices = argc > 3 ? atoi(argv[3]) : 0, fds = 0, maps = 0;

	if (devices < 1) {
		fprintf(stderr, "verbs_restart ADDRESS PORT N\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	pair_port = (uint16_t)atoi(argv[2]);
	for (int k = 1; k <= devices; k++) {
		struct ibv_context *c = device_await();
		struct ibv_pd *pd = ibv_alloc_pd(c);
		struct pair p;

		if (pd == NULL)
			restart_fail("no protection domain");
		pair_connect(&p, argv[1], NULL);
		work(&p);
		/* Both are taken in the same state, with one device at work. */
		if (k == 1) {
			fds = entries("/proc/self/fd");
			maps = mappings();
		}
		if (k == devices)
			printf("left %d\n", entries("/proc/self/fd") - fds + mappings() - maps);
		printf("at work %d\n", k);
		failure_await(c, &p);
		pair_end(&p);
		if (ibv_dealloc_pd(pd) != 0 || ibv_close_device(c) != 0)
			restart_fail("the device that failed cannot be closed");
	}
	return 0;
}
