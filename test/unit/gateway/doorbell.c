/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests the doorbell: the server of QEMU's ivshmem protocol, where the test plays a correct and an
 * incorrect QEMU; a program that rings by the device's registers; and an engine that sleeps.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "../../../drivers/gateway/gateway_priv.h"
#include "../../../lib/base/sock.h"
#include "../../../lib/client/client_priv.h"
#include "../../support/dial.h"
#include "../../support/lingering.h"
#include "host.h"

TestSuite(doorbell, .init = pair_eal, .timeout = 100);

#define VECTORS 2

static char path[64];

/* ---- The other end of QEMU's chardev ---- */

struct qemu {
	int fd, memory, ring, vector[VECTORS];
	int64_t id, peer;
};

static int64_t
hear(int fd, int *passed)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	int64_t word;
	struct iovec iov = {&word, sizeof(word)};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room)};
	struct cmsghdr *c;

	cr_assert_eq(recvmsg(fd, &m, MSG_CMSG_CLOEXEC), sizeof(word));
	c = CMSG_FIRSTHDR(&m);
	*passed = -1;
	if (c != NULL)
		memcpy(passed, CMSG_DATA(c), sizeof(*passed));
	return word;
}

/* Checks the greeting of ivshmem-spec.txt: version, the client's peer number, the memory, then the
 * other peers with their vectors. */
static void
qemu_start(struct qemu *q, int fd)
{
	int passed;

	q->fd = fd;
	cr_assert_eq(hear(fd, &passed), 0, "the protocol's version");
	cr_assert_eq(passed, -1);
	q->id = hear(fd, &passed);
	cr_assert_eq(passed, -1);
	cr_assert_eq(hear(fd, &q->memory), -1);
	cr_assert_geq(q->memory, 0);
	q->peer = hear(fd, &q->ring);
	cr_assert_geq(q->ring, 0);
	cr_assert_eq(q->id, SHM_BAR_PEER_GUEST);
	cr_assert_eq(q->peer, SHM_BAR_PEER_SAKER);
	for (unsigned i = 0; i < VECTORS; i++) {
		cr_assert_eq(hear(fd, &q->vector[i]), SHM_BAR_PEER_GUEST);
		cr_assert_geq(q->vector[i], 0);
	}
}

static void
qemu_end(struct qemu *q)
{
	close(q->fd);
	close(q->memory);
	close(q->ring);
	for (unsigned i = 0; i < VECTORS; i++)
		close(q->vector[i]);
}

static void
ring(const struct qemu *q, uint64_t n)
{
	cr_assert_eq(write(q->ring, &n, sizeof(n)), sizeof(n));
}

/* ---- The server alone ---- */

static struct gw_doorbell *d;
static struct {
	unsigned on, off;
	int fd;
} woken;

static void
wake(void *arg, int fd, bool on)
{
	cr_assert_eq(arg, &woken);
	woken.on += on;
	woken.off += !on;
	woken.fd = fd;
}

static struct gw_doorbell_config
config(int memory)
{
	return (struct gw_doorbell_config){.path = path,
		.name = "m",
		.memory = memory,
		.nvectors = VECTORS,
		.wake = wake,
		.arg = &woken};
}

static void
server_of(const struct gw_doorbell_config *cfg)
{
	char err[256];

	snprintf(path, sizeof(path), "/tmp/saker-bell-%d", getpid());
	memset(&woken, 0, sizeof(woken));
	d = gw_doorbell_create(cfg, err, sizeof(err));
	cr_assert_not_null(d, "%s", err);
}

static void
server(int memory)
{
	const struct gw_doorbell_config cfg = config(memory);

	server_of(&cfg);
}

static struct gw_doorbell_view
look(void)
{
	struct gw_doorbell_view v;

	gw_doorbell_view(d, &v);
	return v;
}

static void
join(struct qemu *q)
{
	int fd = dial(path, SOCK_STREAM);

	gw_doorbell_tend(d);
	qemu_start(q, fd);
}

Test(doorbell, qemu_gets_the_memory_and_a_bell)
{
	int memory = memfd_create("memory", MFD_CLOEXEC);
	struct stat ours, theirs;
	struct qemu q;

	server(memory);
	join(&q);
	cr_assert_eq(fstat(memory, &ours), 0);
	cr_assert_eq(fstat(q.memory, &theirs), 0);
	cr_assert_eq(ours.st_ino, theirs.st_ino);
	/* A saker process that restarts while QEMU runs can lock the file again. */
	cr_assert_eq(flock(memory, LOCK_EX | LOCK_NB), 0);
	cr_assert_eq(flock(q.memory, LOCK_EX | LOCK_NB), -1, "QEMU has our lock");
	cr_assert(look().connected);
	cr_assert_eq(woken.on, 1, "it may wake from the start");
	gw_doorbell_tend(d);
	cr_assert_eq(woken.on, 1, "nothing has rung");
	ring(&q, 1);
	gw_doorbell_tend(d);
	cr_assert_eq(look().rings, 1);
	cr_assert_eq(woken.on, 2);
	qemu_end(&q);
	gw_doorbell_tend(d);
	cr_assert_not(look().connected);
	cr_assert_eq(woken.off, 1);
	gw_doorbell_destroy(d);
	cr_assert_neq(access(path, F_OK), 0);
	close(memory);
}

/* Each call of gw_doorbell_tend() permits one wake-up, whatever the number of rings. */
Test(doorbell, a_guest_that_rings_all_the_time_wakes_once_for_each_look)
{
	struct qemu q;

	server(memfd_create("memory", MFD_CLOEXEC));
	join(&q);
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 1000; k++)
			ring(&q, 1);
		gw_doorbell_tend(d);
	}
	cr_assert_eq(look().rings, 100000);
	cr_assert_eq(woken.on, 1 + 100);
	qemu_end(&q);
	gw_doorbell_destroy(d);
}

/* QEMU shares the eventfd, and nothing that it does to the eventfd can block Saker. */
Test(doorbell, a_qemu_that_tampers_blocks_no_machine)
{
	const uint64_t most = UINT64_MAX - 1;
	uint64_t n;
	struct qemu q;

	server(memfd_create("memory", MFD_CLOEXEC));
	join(&q);
	cr_assert_eq(fcntl(q.ring, F_SETFL, 0), 0, "it waits when it is read");
	gw_doorbell_tend(d);
	ring(&q, 3);
	cr_assert_eq(read(q.ring, &n, sizeof(n)), sizeof(n));
	gw_doorbell_tend(d);
	cr_assert_eq(look().rings, 0);
	ring(&q, most);
	gw_doorbell_tend(d);
	cr_assert_eq(look().rings, most);
	cr_assert_eq(woken.on, 2);
	qemu_end(&q);
	gw_doorbell_destroy(d);
}

/* Waits until the vector's eventfd has been written to, and reads it. */
static void
interrupted(const struct qemu *q, unsigned vector)
{
	struct pollfd p = {.fd = q->vector[vector], .events = POLLIN};
	uint64_t n;

	cr_assert_eq(poll(&p, 1, 60000), 1, "no interrupt comes");
	cr_assert_eq(read(q->vector[vector], &n, sizeof(n)), sizeof(n));
}

static void
engine_wakes(unsigned slot)
{
	const uint64_t one = 1;

	cr_assert_eq(write(gw_doorbell_wakes(d)[slot], &one, sizeof(one)), sizeof(one));
}

Test(doorbell, a_program_that_sleeps_has_the_interrupt_of_its_slot)
{
	struct pollfd p = {.events = POLLIN};
	struct qemu q[2];

	server(memfd_create("memory", MFD_CLOEXEC));
	join(&q[0]);
	for (unsigned i = 0; i < VECTORS; i++) {
		engine_wakes(i);
		interrupted(&q[0], i);
		p.fd = q[0].vector[1 - i];
		cr_assert_eq(poll(&p, 1, 0), 0, "the other slot's program sleeps on");
	}
	cr_assert_eq(look().interrupts, VECTORS);
	/* The next QEMU has vectors of its own. A wake-up before it comes is not lost. */
	qemu_end(&q[0]);
	gw_doorbell_tend(d);
	engine_wakes(1);
	join(&q[1]);
	interrupted(&q[1], 1);
	qemu_end(&q[1]);
	gw_doorbell_destroy(d);
}

/* A QEMU that fills a vector's eventfd and makes it blocking stops the thread of its connection
 * only, and the connection can still be ended. */
Test(doorbell, a_qemu_that_blocks_its_vectors_harms_itself)
{
	const uint64_t most = UINT64_MAX - 1;
	struct pollfd p = {.events = POLLIN};
	struct qemu q;

	server(memfd_create("memory", MFD_CLOEXEC));
	join(&q);
	cr_assert_eq(fcntl(q.vector[0], F_SETFL, 0), 0);
	cr_assert_eq(write(q.vector[0], &most, sizeof(most)), sizeof(most));
	p.fd = gw_doorbell_wakes(d)[0];
	engine_wakes(0);
	while (poll(&p, 1, 0) == 1)
		sched_yield(); /* until the thread has taken it, and writes */
	engine_wakes(0);
	ring(&q, 1);
	gw_doorbell_tend(d);
	cr_assert_eq(look().rings, 1);
	cr_assert_eq(look().interrupts, 0);
	gw_doorbell_destroy(d);
	qemu_end(&q);
}

/* ---- A QEMU that sends descriptors which do not close ---- */

/* Checks that saker has closed the connection without a greeting. */
static void
not_greeted(int fd)
{
	char byte;

	cr_assert_leq(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	cr_assert_neq(errno, EAGAIN);
	close(fd);
}

/* A client of the protocol sends nothing (ivshmem-spec.txt, "Client-Server protocol"). */
Test(doorbell, a_peer_that_sends_bytes_is_no_qemu)
{
	struct qemu q;
	int fd;

	server(memfd_create("memory", MFD_CLOEXEC));
	fd = dial(path, SOCK_STREAM);
	cr_assert_eq(sk_sock_send(fd, "hello", 5, NULL, 0, 0), 0);
	gw_doorbell_tend(d);
	cr_assert_not(look().connected);
	not_greeted(fd);
	join(&q);
	cr_assert(look().connected);
	cr_assert_eq(sk_sock_send(q.fd, "hello", 5, NULL, 0, 0), -EPIPE);
	gw_doorbell_tend(d);
	cr_assert(look().connected, "nothing has come");
	qemu_end(&q);
	gw_doorbell_destroy(d);
}

Test(doorbell, a_qemu_whose_descriptors_do_not_close_delays_no_machine)
{
	struct timespec began;
	struct qemu q;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &began);
	server(memfd_create("memory", MFD_CLOEXEC));
	/* Messages that nobody reads. */
	fd = dial(path, SOCK_STREAM);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(send_lingering(fd), 0);
	gw_doorbell_tend(d);
	not_greeted(fd);
	/* A connection that is greeted cannot send any. */
	join(&q);
	cr_assert_eq(send_lingering(q.fd), -EPIPE);
	gw_doorbell_tend(d);
	cr_assert(look().connected);
	qemu_end(&q);
	gw_doorbell_tend(d);
	cr_assert_not(look().connected);
	/* One that is not accepted any more ends with the socket. */
	fd = dial(path, SOCK_STREAM);
	cr_assert_eq(send_lingering(fd), 0);
	gw_doorbell_destroy(d);
	close(fd);
	cr_assert_not(has_lingered(&began));
}

Test(doorbell, a_machine_that_comes_back_has_a_bell_of_its_own)
{
	struct qemu q[2];

	server(memfd_create("memory", MFD_CLOEXEC));
	join(&q[0]);
	join(&q[1]);
	cr_assert_eq(woken.on, 2);
	cr_assert_eq(woken.off, 1);
	ring(&q[0], 1);
	gw_doorbell_tend(d);
	cr_assert_eq(look().rings, 0, "the first one's is no more");
	ring(&q[1], 1);
	gw_doorbell_tend(d);
	cr_assert_eq(look().rings, 1);
	cr_assert_eq(look().guests, 2);
	qemu_end(&q[0]);
	gw_doorbell_tend(d);
	cr_assert(look().connected);
	qemu_end(&q[1]);
	gw_doorbell_destroy(d);
}

static bool
refused(const char *at, int memory, char *err, size_t errlen)
{
	struct gw_doorbell_config cfg = config(memory);

	cfg.path = at;
	return gw_doorbell_create(&cfg, err, errlen) == NULL;
}

Test(doorbell, a_socket_that_cannot_be_made_is_named)
{
	int memory = memfd_create("memory", MFD_CLOEXEC);
	char err[256], lengthy[256];

	cr_assert(refused("/nowhere/x", memory, err, sizeof(err)));
	cr_assert_not_null(strstr(err, "/nowhere/x"));
	memset(lengthy, 'x', sizeof(lengthy));
	lengthy[200] = '\0';
	cr_assert(refused(lengthy, memory, err, sizeof(err)));
	/* A socket that is in use stays. */
	server(memory);
	cr_assert(refused(path, memory, err, sizeof(err)));
	cr_assert_eq(access(path, F_OK), 0);
	gw_doorbell_destroy(d);
}

/* ---- A saker that ends, and the next one ---- */

#define STORE 16

/* The service manager: descriptors by name. */
static struct {
	char name[64];
	int fd;
} store[STORE];

static void
keep(const char *name, int fd)
{
	for (unsigned i = 0; i < STORE; i++)
		if (store[i].name[0] == '\0') {
			snprintf(store[i].name, sizeof(store[i].name), "%s", name);
			store[i].fd = dup(fd);
			return;
		}
	cr_assert_fail("the store is full");
}

static void
forget(const char *name)
{
	for (unsigned i = 0; i < STORE; i++)
		if (strcmp(store[i].name, name) == 0) {
			store[i].name[0] = '\0';
			close(store[i].fd);
		}
}

static int
kept(const char *name)
{
	for (unsigned i = 0; i < STORE; i++)
		if (strcmp(store[i].name, name) == 0)
			return dup(store[i].fd);
	return -1;
}

static unsigned
stored(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < STORE; i++)
		n += store[i].name[0] != '\0';
	return n;
}

/* Starts a saker with a keeper, for a machine with `n` slots. */
static void
server_kept(int memory, unsigned n)
{
	struct gw_doorbell_config cfg = config(memory);

	cfg.nvectors = n;
	cfg.keeper = (struct gw_keeper){keep, forget, kept};
	server_of(&cfg);
}

/* Checks that QEMU and saker interrupt each other. */
static void
both_ways(const struct qemu *q)
{
	uint64_t rings = look().rings;

	for (unsigned i = 0; i < VECTORS; i++) {
		engine_wakes(i);
		interrupted(q, i);
	}
	ring(q, 1);
	gw_doorbell_tend(d);
	cr_assert_eq(look().rings, rings + 1);
}

Test(doorbell, the_next_saker_continues_the_connection_of_a_qemu_that_does_not_notice)
{
	int memory = memfd_create("memory", MFD_CLOEXEC);
	struct pollfd p = {.events = POLLIN};
	struct qemu q;

	server_kept(memory, VECTORS);
	join(&q);
	cr_assert_eq(stored(), 3 + VECTORS);
	p.fd = q.fd;
	for (unsigned k = 0; k < 3; k++) {
		both_ways(&q);
		gw_doorbell_destroy(d);
		cr_assert_eq(poll(&p, 1, 0), 0, "QEMU sees an end");
		cr_assert_eq(stored(), 3 + VECTORS);
		server_kept(memory, VECTORS);
		cr_assert(look().connected);
		cr_assert_eq(woken.on, 1);
	}
	both_ways(&q);
	qemu_end(&q);
	cr_assert(gw_doorbell_tend(d));
	cr_assert_not(look().connected);
	cr_assert_eq(stored(), 0);
	join(&q);
	both_ways(&q);
	gw_doorbell_end(d);
	cr_assert_eq(stored(), 0, "the machine was removed");
	gw_doorbell_destroy(d);
	qemu_end(&q);
	close(memory);
}

/* One of which a part is missing, with another memory, with another number of slots. */
Test(doorbell, a_connection_that_does_not_fit_the_machine_is_forgotten)
{
	int memory = memfd_create("memory", MFD_CLOEXEC), other = memfd_create("x", MFD_CLOEXEC);
	struct qemu q;

	for (unsigned k = 0; k < 3; k++) {
		server_kept(memory, VECTORS);
		join(&q);
		gw_doorbell_destroy(d);
		if (k == 0)
			forget("doorbell.ring.m");
		server_kept(k == 1 ? other : memory, k == 2 ? VECTORS - 1 : VECTORS);
		cr_assert_not(look().connected);
		cr_assert_eq(stored(), k == 2 ? VECTORS : 0, "those of slots have other names");
		gw_doorbell_destroy(d);
		qemu_end(&q);
	}
	close(memory);
	close(other);
}

/* A saker whose connections could send may have left one. */
Test(doorbell, a_connection_on_which_something_was_sent_is_not_continued)
{
	int memory = memfd_create("memory", MFD_CLOEXEC), pair[2];
	struct timespec began;
	struct qemu q;

	clock_gettime(CLOCK_MONOTONIC, &began);
	server_kept(memory, VECTORS);
	join(&q);
	gw_doorbell_destroy(d);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	forget("doorbell.link.m");
	keep("doorbell.link.m", pair[0]);
	close(pair[0]);
	cr_assert_eq(send_lingering(pair[1]), 0);
	server_kept(memory, VECTORS);
	cr_assert_not(look().connected);
	cr_assert_eq(stored(), 0);
	gw_doorbell_destroy(d);
	qemu_end(&q);
	close(pair[1]);
	close(memory);
	cr_assert_not(has_lingered(&began));
}

/* ---- A machine, and a host that sleeps ---- */

#define IDLE_WORD 0xffffffffu

/* A copy of the device's folder in sysfs with its registers, and the part of QEMU that reacts when
 * a program writes to them. */
static struct {
	char folder[48];
	uint8_t *regs;
	struct qemu q;
	pthread_t thread;
	bool stop;
	unsigned rung; /* atomic */
} device;

static uint32_t *
reg(unsigned at)
{
	return (uint32_t *)(device.regs + 256 + at);
}

static void *
device_main(void *arg)
{
	while (!__atomic_load_n(&device.stop, __ATOMIC_ACQUIRE)) {
		uint32_t word =
			__atomic_exchange_n(reg(SHM_BAR_DOORBELL), IDLE_WORD, __ATOMIC_ACQ_REL);

		if (word == SHM_BAR_RING) {
			ring(&device.q, 1);
			__atomic_fetch_add(&device.rung, 1, __ATOMIC_RELAXED);
		}
		sched_yield();
	}
	return NULL;
}

static void
device_start(uint32_t position)
{
	char name[80];
	FILE *f;
	int fd;

	memset(&device, 0, sizeof(device));
	snprintf(device.folder, sizeof(device.folder), "/dev/shm/saker-pci-%d", getpid());
	cr_assert_eq(mkdir(device.folder, 0700), 0);
	/* BAR 0 does not begin a page. */
	snprintf(name, sizeof(name), "%s/resource", device.folder);
	f = fopen(name, "w");
	fprintf(f, "0x00000000febf1100 0x00000000febf11ff 0x0000000000040200\n");
	fclose(f);
	snprintf(name, sizeof(name), "%s/resource0", device.folder);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(ftruncate(fd, 4096), 0);
	device.regs = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	*reg(SHM_BAR_IVPOSITION) = position;
	*reg(SHM_BAR_DOORBELL) = IDLE_WORD;
}

static void
device_end(void)
{
	static const char *const files[] = {"resource", "resource0", "resource2"};
	char name[80];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s/%s", device.folder, files[i]);
		unlink(name);
	}
	cr_assert_eq(rmdir(device.folder), 0);
	munmap(device.regs, 4096);
}

static struct rig
machine_start(void)
{
	struct rig r = {0};
	char line[512], *text;
	int rc;

	snprintf(path, sizeof(path), "/tmp/saker-bell-%d", getpid());
	snprintf(r.path, sizeof(r.path), "%s/resource2", device.folder);
	snprintf(r.where, sizeof(r.where), "ivshmem:%s", r.path);
	snprintf(line, sizeof(line),
		"add one path=%s doorbell=%s size=16m slots=2 mbufs=512 qps=8 mrs=8 timeout=60000 "
		"ip=10.9.0.2/24",
		r.path, path);
	text = host_say(line, &rc);
	cr_assert_eq(rc, 0, "%s", text);
	return r;
}

static void
sleepy(struct eng_config *c)
{
	c->idle = ENG_IDLE_SLEEP;
}

static uint64_t
rings(void)
{
	struct gw_doorbell_view v;

	gw_doorbell_view(host.g->vms[0]->doorbell, &v);
	return v.rings;
}

/* The program writes to the register only while the engine sleeps. The engine then wakes and
 * processes the work. */
Test(doorbell, a_program_wakes_a_saker_that_sleeps)
{
	struct eng_loop_stats stats;
	struct prog one, far;
	struct rig r;
	uint64_t slept, woke;

	device_start(SHM_BAR_PEER_GUEST);
	host_start(sleepy);
	r = machine_start();
	qemu_start(&device.q, dial(path, SOCK_STREAM));
	cr_assert_eq(pthread_create(&device.thread, NULL, device_main, NULL), 0);
	prog_open(&r, &one);
	prog_open_far(&host.rig, &far);
	prog_connect(&one, &far, HOST_ADDR, RIG_PORT);
	prog_write(&one, &far, 1);
	eng_loop_stats(host.e, 0, &stats);
	woke = stats.wakes;
	do {
		/* Waits until the engine sleeps again, so that the next Write finds it asleep. */
		eng_loop_stats(host.e, 0, &stats);
		slept = stats.sleeps;
		while (stats.sleeps < slept + 3) {
			sched_yield();
			eng_loop_stats(host.e, 0, &stats);
		}
		prog_write(&one, &far, 1);
		eng_loop_stats(host.e, 0, &stats);
		/* Nothing else wakes the engine: the host's program has no doorbell descriptor. */
	} while (__atomic_load_n(&device.rung, __ATOMIC_RELAXED) < 3 || rings() < 3 ||
		 stats.wakes == woke);
	cr_assert_not_null(strstr(host_show(), "\"connected\":true,\"rings\":"));
	prog_close(&one);
	prog_close(&far);
	__atomic_store_n(&device.stop, true, __ATOMIC_RELEASE);
	pthread_join(device.thread, NULL);
	vm_del(&r, "one");
	host_end();
	qemu_end(&device.q);
	device_end();
}

/* When a machine is killed or migrated away, QEMU's end of the socket closes, and its programs are
 * detached long before their heartbeat timeout. */
Test(doorbell, a_machine_whose_qemu_ends_leaves_nothing)
{
	struct gw_bar_view v;
	struct prog one, far;
	struct rig r;

	device_start(SHM_BAR_PEER_GUEST);
	host_start(NULL);
	r = machine_start();
	prog_open_far(&host.rig, &far);
	for (unsigned i = 1; i <= 3; i++) {
		struct rd_sge sge;
		struct saker_wr wr;

		qemu_start(&device.q, dial(path, SOCK_STREAM));
		prog_open(&r, &one);
		if (i > 1)
			prog_more_qp(&far);
		prog_connect(&one, &far, HOST_ADDR, RIG_PORT);
		sge = (struct rd_sge){.addr = (uintptr_t)one.mem,
			.len = RIG_BYTES,
			.lkey = saker_mr_stag(one.mr)};
		wr = (struct saker_wr){.opcode = RD_WRITE,
			.nsge = 1,
			.sge = &sge,
			.rkey = saker_mr_stag(far.mr),
			.remote_addr = (uintptr_t)far.mem};
		for (unsigned k = 0; k < 16; k++)
			cr_assert_eq(saker_post_send(one.qp, &wr, 1), 1);
		qemu_end(&device.q);
		prog_event(&far, SAKER_EV_DISCONNECTED);
		do
			gw_bar_view(host.g->vms[0]->bar, &v);
		while (v.clients != 0);
		cr_assert_eq(v.attached, i);
		cr_assert_eq(v.timed_out, 0);
		prog_event(&one, SAKER_EV_ENGINE_GONE);
		prog_close(&one);
	}
	prog_close(&far);
	vm_del(&r, "one");
	host_end();
	device_end();
}

/* An ivshmem-plain device has the register, but writes to it have no effect. */
Test(doorbell, a_device_without_a_doorbell_is_not_rung)
{
	struct prog one, far;
	struct rig r;

	device_start(0);
	host_start(sleepy);
	r = machine_start();
	prog_open(&r, &one);
	prog_open_far(&host.rig, &far);
	cr_assert_null(one.s->wake_register);
	prog_connect(&one, &far, HOST_ADDR, RIG_PORT);
	prog_write(&one, &far, 3);
	cr_assert_eq(*reg(SHM_BAR_DOORBELL), IDLE_WORD);
	prog_close(&one);
	prog_close(&far);
	vm_del(&r, "one");
	host_end();
	device_end();
}
