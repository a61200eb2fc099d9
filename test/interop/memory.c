/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program's own memory, registered at a running saker: much of it from malloc(3), with other
 * threads writing to it all the time, moved and returned without a second copy; bytes that pass
 * through the wire into static and heap memory; the allocator's later use of the memory; a child
 * after a fork.
 *
 *	memory SOCKET ADDRESS MIB	all tests; ADDRESS is an address of the saker
 *	memory SOCKET ADDRESS MIB hold	registers, prints "held" and waits to be killed
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <saker/saker.h>

#include "memory_use.h"

#define SLACK   (48ul << 10) /* KiB by which memory use may differ: far less than a copy */
#define ACCESS  (RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ)
#define PORT    7471
#define MESSAGE (3u << 20)

static struct saker *s;
static struct saker_pd *pd;
static struct saker_cq *cq;
static struct saker_qp *qp[2]; /* connected to each other */
static uint8_t in_bss[MESSAGE];
static size_t big; /* bytes */

static void
need(bool ok, const char *what)
{
	if (ok)
		return;
	printf("%s (%s)\n", what, saker_error());
	exit(1);
}

static struct saker_mr *
reg(void *p, size_t len)
{
	struct saker_mr *mr = NULL;

	need(saker_mr_create(pd, p, len, ACCESS, &mr) == 0, "memory cannot be registered");
	return mr;
}

/* ---- A connection within the program ---- */

static void
next_event(struct saker_event *ev)
{
	int rc;

	for (int naps = 0; (rc = saker_event(s, ev)) == 0 && naps < 600; naps++)
		saker_wait(s, 100);
	need(rc == 1, "no event came");
}

static void
join_up(const char *address)
{
	struct saker_conn_param param = {
		.ird = SAKER_DEPTH_AUTO, .ord = SAKER_DEPTH_AUTO, .crc = 2, .markers = 2};
	struct saker_qp_attr attr = {.sq_depth = 16,
		.rq_depth = 16,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.sig_all = true};
	struct saker_listener *l;
	struct saker_event ev;
	struct sk_addr to;

	need(saker_cq_create(s, 64, NULL, &cq) == 0, "no CQ");
	attr.send_cq = attr.recv_cq = cq;
	for (int i = 0; i < 2; i++)
		need(saker_qp_create(pd, &attr, &qp[i]) == 0, "no QP");
	need(sk_addr_parse(address, &to) == 0, "no address");
	need(saker_listen(s, NULL, PORT, 1, NULL, &l) == 0, "no listener");
	need(saker_connect(qp[0], NULL, &to, PORT, &param) == 0, "not connected");
	for (int up = 0; up < 2;) {
		next_event(&ev);
		if (ev.type == SAKER_EV_CONNECT_REQUEST)
			need(saker_accept(s, ev.request, qp[1], &param) == 0, "not accepted");
		else if (ev.type == SAKER_EV_ESTABLISHED)
			up++;
		else
			need(false, "another event");
	}
	saker_unlisten(l);
}

/* Writes from one registration to another, through the wire. */
static void
transfer(const void *from, const struct saker_mr *fmr, void *to, const struct saker_mr *tmr)
{
	struct rd_sge sge = {(uintptr_t)from, MESSAGE, saker_mr_stag(fmr)};
	struct saker_wr wr = {.opcode = RD_WRITE,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.remote_addr = (uintptr_t)to,
		.rkey = saker_mr_stag(tmr)};
	const volatile uint8_t *last = (uint8_t *)to + MESSAGE - 1;
	const uint8_t want = ((const uint8_t *)from)[MESSAGE - 1];
	struct rd_wc wc;

	*(uint8_t *)to = (uint8_t) ~*(const uint8_t *)from;
	((uint8_t *)to)[MESSAGE - 1] = (uint8_t)~want;
	need(saker_post_send(qp[0], &wr, 1) == 1, "a Write cannot be posted");
	while (saker_cq_poll(cq, &wc, 1) == 0)
		saker_wait(s, 1);
	need(wc.status == RD_SUCCESS, "a Write failed");
	for (int naps = 0; *last != want && naps < 60000; naps++)
		usleep(1000);
	need(memcmp(from, to, MESSAGE) == 0, "other bytes came");
}

static void
transfers(void)
{
	uint8_t *p = malloc(MESSAGE + 100) + 33;
	struct saker_mr *a = reg(p, MESSAGE), *b = reg(in_bss, MESSAGE);

	for (size_t i = 0; i < MESSAGE; i++)
		p[i] = (uint8_t)(i * 13 + i / 4096);
	transfer(p, a, in_bss, b);
	for (size_t i = 0; i < MESSAGE; i++)
		p[i] = (uint8_t)(i * 17);
	transfer(p, a, in_bss, b);
	saker_mr_destroy(b);
	need(memcmp(p, in_bss, MESSAGE) == 0, "other bytes came back");
	/* One registration is destroyed and created again while the other stays. */
	b = reg(in_bss, MESSAGE);
	memset(p, 0x5a, MESSAGE);
	transfer(p, a, in_bss, b);
	saker_mr_destroy(b);
	saker_mr_destroy(a);
	need(p[MESSAGE - 1] == 0x5a, "other bytes came back");
	free(p - 33);
	printf("bytes went through the wire between heap and static memory\n");
}

/* ---- Large memory ---- */

static void
costs(const char *what, const struct use_peak *peak, const struct use *before)
{
	struct use now;

	use_now(&now);
	printf("%s in %.0f ms: resident %lu MiB private + %lu MiB shared, before %lu + %lu; in use"
	       " at most %lu "
	       "MiB more\n",
		what, peak->ms, now.anon >> 10, now.shared >> 10, before->anon >> 10,
		before->shared >> 10,
		peak->most > before->total ? (peak->most - before->total) >> 10 : 0);
	need(peak->most < before->total + SLACK, "there was a second copy");
	need(now.total < before->total + SLACK, "there is a second copy");
}

static void
trusted(uint8_t *p)
{
	uint8_t *q = (uint8_t *)(((uintptr_t)p + 4095) & ~4095ul);

	need(madvise(q, 2 << 20, MADV_DONTNEED) == 0, "pages cannot be given up");
	for (size_t i = 0; i < 2 << 20; i++)
		need(q[i] == 0, "a page that was given up is not zero");
	q[big - 8192] = 9;
	p = realloc(p, big + (64ul << 20));
	need(p != NULL, "the allocator cannot make it larger");
	q = (uint8_t *)(((uintptr_t)p + 4095) & ~4095ul);
	need(q[big - 8192] == 9, "the larger block has other bytes");
	free(p);
	printf("the allocator enlarged and freed the block\n");
}

static void
much(void)
{
	struct use before, after;
	struct use_peak peak;
	struct writers w;
	struct saker_mr *mr;
	uint8_t *p = malloc(big);

	need(p != NULL, "no memory");
	writers_begin(&w, p, big);
	use_now(&before);
	for (int i = 0; i < 2; i++) {
		use_watch(&peak);
		mr = reg(p, big);
		use_watch_end(&peak);
		costs("registered", &peak, &before);
		use_watch(&peak);
		need(saker_mr_destroy(mr) == 0, "it cannot be deregistered");
		use_watch_end(&peak);
		costs("deregistered", &peak, &before);
	}
	use_now(&after);
	need(after.anon + SLACK > before.anon && after.window < 4096,
		"not all has come back as private memory");
	need(writers_end(&w), "writes were lost or doubled, or bytes changed");
	printf("two threads wrote to it meanwhile, %lu times to each page; each write is there\n",
		w.rounds);
	trusted(p);
}

/* ---- fork ---- */

static int
child(uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i += 511)
		if (p[i] != (uint8_t)i)
			return 1;
	memset(p, 0, len);
	free(malloc(1 << 20));
	return saker_close(s), p[5] != 0;
}

static void
forks(void)
{
	const size_t len = 64 << 20;
	uint8_t *p = malloc(len);
	struct saker_mr *mr = reg(p, len), *to = reg(in_bss, MESSAGE);
	int status = 1;
	pid_t pid;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)i;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(child(p, len));
	transfer(p, mr, in_bss, to);
	need(waitpid(pid, &status, 0) == pid && status == 0, "the child has other bytes");
	for (size_t i = 0; i < len; i++)
		need(p[i] == (uint8_t)i, "the child changed its parent's bytes");
	transfer(p + MESSAGE, mr, in_bss, to);
	need(system("true") == 0, "no program can be started");
	saker_mr_destroy(mr);
	saker_mr_destroy(to);
	free(p);
	printf("parent and child went on\n");
}

static void
hold(void)
{
	uint8_t *p = malloc(big);

	memset(p, 1, big);
	reg(p, big);
	printf("held\n");
	for (;;)
		pause();
}

int
main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	big = strtoul(argv[3], NULL, 10) << 20;
	setvbuf(stdout, NULL, _IOLBF, 0);
	need(saker_open(argv[1], "memory", &s) == 0, "not attached");
	need(saker_pd_create(s, &pd) == 0, "no protection domain");
	if (argc > 4)
		hold();
	join_up(argv[2]);
	transfers();
	much();
	forks();
	saker_close(s);
	printf("memory: all is well\n");
	return 0;
}
