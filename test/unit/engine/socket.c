/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Unix socket: correct and hostile clients, and what a client's process can do to the memory
 * that it shares. The only stage besides the control stage is an engine stage that answers each
 * command with 0.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <saker/saker.h>

#include "../../../lib/engine/control/attach/place.h"
#include "../../../lib/engine/control/attach/socket.h"
#include "../../../lib/engine/control/attach/socket_priv.h"
#include "../../../lib/engine/control/attach/socket_users.h"
#include "../../support/clock.h"
#include "../../support/lingering.h"
#include "served.h"

static struct served served;

/* Calls of all threads whose answer may come from a program (FUSE) or from a server. */
static unsigned questions; /* atomic */

static void
question(int fd)
{
	if (fcntl(fd, F_GET_SEALS) < 0)
		__atomic_add_fetch(&questions, 1, __ATOMIC_RELAXED);
}

int __real_fstat64(int fd, struct stat *st);
int __real_fstatfs64(int fd, struct statfs *fs);
int __wrap_fstat64(int fd, struct stat *st);
int __wrap_fstatfs64(int fd, struct statfs *fs);

int
__wrap_fstat64(int fd, struct stat *st)
{
	question(fd);
	return __real_fstat64(fd, st);
}

int
__wrap_fstatfs64(int fd, struct statfs *fs)
{
	question(fd);
	return __real_fstatfs64(fd, fs);
}

/* Sends `len` bytes with at most one descriptor. */
static void
pass_along(int fd, const void *buf, size_t len, int pass)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

	if (pass >= 0) {
		struct cmsghdr *cm = (struct cmsghdr *)control;

		cm->cmsg_len = CMSG_LEN(sizeof(int));
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(cm), &pass, sizeof(int));
		h.msg_control = control;
		h.msg_controllen = sizeof(control);
	}
	cr_assert_eq(sendmsg(fd, &h, MSG_NOSIGNAL), (ssize_t)len);
}

/* As pass_along(). Returns the answer; op 0: the connection ended. */
static struct shm_sock_msg
ask(int fd, const void *buf, size_t len, int pass)
{
	struct shm_sock_msg m = {0};

	pass_along(fd, buf, len, pass);
	if (recv(fd, &m, sizeof(m), 0) <= 0)
		m.op = 0;
	return m;
}

static struct shm_sock_msg
say(int fd, enum shm_sock_op op, uint64_t size, int pass)
{
	struct shm_sock_msg m = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = op, .size = size, .text = "t"};

	return ask(fd, &m, sizeof(m), pass);
}

static int
memfd(uint64_t size, int seals)
{
	int fd = memfd_create("m", MFD_ALLOW_SEALING);

	cr_assert_eq(ftruncate(fd, (off_t)size), 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

Test(engine_socket, a_client_has_the_rates_of_its_user_id)
{
	struct saker *client;
	int rc;

	served_start(&served);
	served.s->cfg.rates[0] = (struct eng_rates_config){
		.present = true, .uid = (uint32_t)getuid() + 1, .rates.messages = 5};
	served.s->cfg.rates[1] = (struct eng_rates_config){
		.present = true, .uid = (uint32_t)getuid(), .rates.messages = 7};
	rc = saker_open(served.path, "me", &client);
	cr_assert_eq(rc, 0, "%d", rc);
	cr_assert_eq(script_last(served.s, ENG_CE_CLIENT_ADD)->client->user_rates.messages, 7);
	cr_assert_eq(script_last(served.s, ENG_CE_CLIENT_ADD)->client->rates.messages, 0);
	saker_close(client);
	served_end(&served);
}

Test(engine_socket, hello_is_welcomed_and_regions_are_numbered)
{
	int fd, m1 = memfd(8192, F_SEAL_SHRINK), m2 = memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);
	struct shm_sock_msg r;

	served_start(&served);
	fd = served_dial(&served);
	r = say(fd, SHM_HELLO, 0, -1);
	cr_assert_eq(r.op, SHM_WELCOME);
	cr_assert_eq(r.size, served.s->cfg.limits.client_home_bytes);
	r = say(fd, SHM_REGION, 8192, m1);
	cr_assert_eq(r.op, SHM_REGION_IS);
	cr_assert_eq(r.region, 1);
	cr_assert_eq(say(fd, SHM_REGION, 4096, m2).region, 2);
	close(fd);
	served_end(&served);
}

Test(engine_socket, what_cannot_be_trusted_is_refused_with_a_sentence)
{
	int fd, file, unsealed = memfd(4096, 0), sealed = memfd(4096, F_SEAL_SHRINK);
	int readonly = memfd(4096, F_SEAL_SHRINK | F_SEAL_WRITE);
	char name[] = "/tmp/saker-file-XXXXXX";

	served_start(&served);
	fd = served_dial(&served);
	file = mkstemp(name);
	unlink(name);
	cr_assert_eq(ftruncate(file, 4096), 0);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	struct {
		int fd;
		uint64_t size;
		int status;
		const char *what;
	} rows[] = {
		{unsealed, 4096, -EPERM, "not sealed"},
		{file, 4096, -EINVAL, "no memfd"},
		{sealed, 8192, -EINVAL, "not 8192 bytes"},
		{sealed, 4095, -EINVAL, "not 4095 bytes"},
		{readonly, 4096, -EPERM, "cannot be mapped"},
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct shm_sock_msg r = say(fd, SHM_REGION, rows[i].size, rows[i].fd);

		cr_assert_eq(r.op, SHM_REFUSED, "row %u", i);
		cr_assert_eq(r.status, rows[i].status, "row %u: %d", i, r.status);
		cr_assert_not_null(strstr(r.text, rows[i].what), "row %u: %s", i, r.text);
	}
	/* The refusals have not ended the connection. */
	cr_assert_eq(say(fd, SHM_REGION, 4096, sealed).op, SHM_REGION_IS);
	close(fd);
	served_end(&served);
}

Test(engine_socket, the_quota_of_brought_memory_holds)
{
	int fd, big, small = memfd(4096, F_SEAL_SHRINK);

	served_start(&served);
	fd = served_dial(&served);
	big = memfd(served.s->cfg.limits.client_mem_bytes, F_SEAL_SHRINK);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	cr_assert_eq(
		say(fd, SHM_REGION, served.s->cfg.limits.client_mem_bytes, big).op, SHM_REGION_IS);
	cr_assert_eq(say(fd, SHM_REGION, 4096, small).status, -EDQUOT);
	close(fd);
	served_end(&served);
}

Test(engine_socket, the_quota_of_regions_holds)
{
	int fd, m = memfd(4096, F_SEAL_SHRINK);

	served_start(&served);
	fd = served_dial(&served);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	for (uint32_t i = 0; i < served.s->cfg.limits.client_regions; i++)
		cr_assert_eq(say(fd, SHM_REGION, 4096, m).op, SHM_REGION_IS);
	cr_assert_eq(say(fd, SHM_REGION, 4096, m).status, -EDQUOT);
	close(fd);
	served_end(&served);
}

Test(engine_socket, garbage_and_messages_out_of_turn_end_the_connection)
{
	struct shm_sock_msg m = {.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_HELLO};
	int memory = memfd(4096, F_SEAL_SHRINK), fd;
	char junk[300] = "junk";

	served_start(&served);
	struct {
		const void *buf;
		size_t len;
		int pass;
		uint32_t version, op;
	} rows[] = {
		{junk, 4, -1, 0, 0},
		{junk, sizeof(m), -1, 0, 0},
		{junk, sizeof(junk), -1, 0, 0},
		{&m, sizeof(m) - 1, -1, SHM_VERSION, SHM_HELLO},
		{&m, sizeof(m), -1, SHM_VERSION + 1, SHM_HELLO},
		{&m, sizeof(m), memory, SHM_VERSION, SHM_HELLO},
		{&m, sizeof(m), memory, SHM_VERSION, SHM_REGION}, /* before HELLO */
		{&m, sizeof(m), -1, SHM_VERSION, SHM_WELCOME},
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		m.version = rows[i].version;
		m.op = rows[i].op;
		m.size = 4096;
		fd = served_dial(&served);
		cr_assert_eq(ask(fd, rows[i].buf, rows[i].len, rows[i].pass).op, SHM_REFUSED,
			"row %u", i);
		cr_assert_eq(recv(fd, &m, sizeof(m), 0), 0, "row %u: not closed", i);
		m.magic = SHM_MAGIC;
		close(fd);
	}
	fd = served_dial(&served);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_REFUSED);
	close(fd);
	served_end(&served);
}

Test(engine_socket, all_places_taken_is_reported)
{
	int fd[SCRIPT_CLIENTS + 1];

	served_start(&served);
	for (int i = 0; i <= SCRIPT_CLIENTS; i++) {
		struct shm_sock_msg r;

		fd[i] = served_dial(&served);
		r = say(fd[i], SHM_HELLO, 0, -1);
		if (i < SCRIPT_CLIENTS)
			cr_assert_eq(r.op, SHM_WELCOME, "client %d: %s", i, r.text);
		else
			cr_assert_eq(r.status, -EUSERS);
	}
	for (int i = 0; i <= SCRIPT_CLIENTS; i++)
		close(fd[i]);
	served_end(&served);
}

/* An unguarded home region would let its client end saker, by truncating or punching it. */
Test(engine_socket, a_client_whose_home_region_cannot_be_guarded_is_refused)
{
	const uintptr_t nowhere = 1ul << 46; /* never accessed */
	bool flag = false;
	int fd, last = -1, guard;

	served_start(&served);
	for (uintptr_t at = nowhere; (guard = eng_guard((void *)at, 4096, &flag)) >= 0; at += 4096)
		last = guard;
	cr_assert_eq(guard, -ENOSPC);
	fd = served_dial(&served);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).status, -ENOSPC);
	close(fd);
	eng_unguard(last);
	fd = served_dial(&served);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	close(fd);
	served_end(&served);
}

Test(engine_socket, no_user_maps_more_regions_than_its_share)
{
	int fd, other, m = memfd(4096, F_SEAL_SHRINK);
	struct sk_share *share;

	served_start(&served);
	share = &served.s->control->share[CTL_POOL_REGION];
	share->most = 3;
	fd = served_dial(&served);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(say(fd, SHM_REGION, 4096, m).op, SHM_REGION_IS);
	cr_assert_eq(say(fd, SHM_REGION, 4096, m).status, -ENOSPC);
	other = served_dial(&served);
	cr_assert_eq(say(other, SHM_HELLO, 0, -1).status, -ENOSPC);
	close(other);
	cr_assert_eq(share->held, 3);
	close(fd);
	do {
		usleep(1000);
	} while (share->held > 0);
	fd = served_dial(&served);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	close(fd);
	close(m);
	served_end(&served);
}

/* The test is another client of the user, and takes all of the address space but 2 MiB. */
Test(engine_socket, no_user_maps_more_address_space_than_its_share)
{
	const uint64_t rest = (1ull << 46) - (2ull << 20);
	struct shm_sock_msg m = {.magic = SHM_MAGIC,
		.version = SHM_VERSION,
		.op = SHM_REGION,
		.size = (1ull << 20) + 4096,
		.flags = SHM_REGION_OBJECT};
	int fd, object = memfd(3ull << 20, 0);
	struct ctl_client us = {.eng.user = 1};
	struct ctl_places *places;

	served_start(&served);
	places = served.s->control->places;
	fd = served_dial(&served);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	cr_assert(ctl_space_take(places, &us, rest));
	cr_assert_eq(ask(fd, &m, sizeof(m), object).op, SHM_REGION_IS, "two units");
	m.size = 4096;
	m = ask(fd, &m, sizeof(m), object);
	cr_assert_eq(m.status, -ENOSPC);
	cr_assert_not_null(strstr(m.text, "4096 bytes"), "%s", m.text);
	/* The end of a client gives its part back. */
	close(fd);
	while (!ctl_space_take(places, &us, 2ull << 20))
		usleep(1000);
	cr_assert_not(ctl_space_take(places, &us, 1));
	cr_assert_not(ctl_space_take(places, &us, UINT64_MAX));
	ctl_space_give(places, &us, 2ull << 20);
	ctl_space_give(places, &us, rest);
	close(object);
	served_end(&served);
}

/* By default, 16 users have 1 % each. */
Test(engine_socket, the_address_space_of_other_users_is_reserved)
{
	const struct eng_limits limits = {
		.clients = 32, .users = 16, .user_min = 1, .user_most = 100};
	struct ctl_places *places = ctl_places_new(&limits);
	struct ctl_client greedy = {.eng.user = 1}, other = {.eng.user = 2};
	uint64_t taken = 0;

	cr_assert_not_null(places);
	while (ctl_space_take(places, &greedy, SHM_OBJECT_MAX))
		taken += SHM_OBJECT_MAX;
	cr_assert_geq(taken, (1ull << 46) / 100 * 83);
	cr_assert(ctl_space_take(places, &other, SHM_OBJECT_MAX));
	ctl_places_free(places);
}

Test(engine_socket, a_client_of_libsaker_registers_and_gives_back_memory)
{
	struct saker *s;
	struct saker_pd *pd;
	struct saker_mr *mr;
	void *p;

	served_start(&served);
	for (int round = 0; round < 3; round++) {
		cr_assert_eq(saker_open(served.path, "unit test", &s), 0, "%s", saker_error());
		cr_assert_eq(saker_pd_create(s, &pd), 0, "%s", saker_error());
		p = saker_alloc(s, 1 << 20);
		cr_assert_not_null(p, "%s", saker_error());
		cr_assert_eq(saker_mr_create(pd, p, 1 << 20, RD_ACC_LOCAL_WRITE, &mr), 0, "%s",
			saker_error());
		if (round < 2) {
			cr_assert_eq(saker_mr_destroy(mr), 0, "%s", saker_error());
			saker_free(s, p, 1 << 20);
		}
		saker_close(s); /* in the last round with all objects */
	}
	served_end(&served);
}

Test(engine_socket, what_is_registered_in_sparse_memory_counts_not_its_size)
{
	const size_t len = 40u << 20; /* the limit is 64 MiB */
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct saker_mr *mr, *more;
	struct saker_pd *pd;
	struct saker *s;

	served_start(&served);
	cr_assert_eq(saker_open(served.path, "unit test", &s), 0, "%s", saker_error());
	cr_assert_eq(saker_pd_create(s, &pd), 0);
	for (int round = 0; round < 3; round++) {
		cr_assert_eq(saker_mr_create(pd, p, len, RD_ACC_LOCAL_WRITE, &mr), 0, "%s",
			saker_error());
		cr_assert_eq(saker_mr_create(pd, p, len, RD_ACC_LOCAL_WRITE, &more), -EDQUOT);
		cr_assert_null(saker_alloc(s, len), "other memory counts, too");
		cr_assert_eq(saker_mr_destroy(mr), 0);
	}
	cr_assert_not_null(saker_alloc(s, len));
	cr_assert_eq(saker_mr_create(pd, p, len, RD_ACC_LOCAL_WRITE, &mr), -EDQUOT);
	saker_close(s);
	served_end(&served);
}

Test(engine_socket, sparse_memory_is_not_larger_than_agreed)
{
	struct shm_sock_msg m = {.magic = SHM_MAGIC,
		.version = SHM_VERSION,
		.op = SHM_REGION,
		.size = SHM_SPARSE_MAX + 4096,
		.flags = SHM_REGION_SPARSE};
	int fd, big = memfd(SHM_SPARSE_MAX + 4096, F_SEAL_SHRINK);
	int fits = memfd(SHM_SPARSE_MAX, F_SEAL_SHRINK);

	served_start(&served);
	fd = served_dial(&served);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	cr_assert_eq(ask(fd, &m, sizeof(m), big).status, -EINVAL);
	m.size = SHM_SPARSE_MAX;
	cr_assert_eq(ask(fd, &m, sizeof(m), fits).op, SHM_REGION_IS);
	m.flags = 0;
	cr_assert_eq(ask(fd, &m, sizeof(m), fits).status, -EDQUOT);
	close(fd);
	served_end(&served);
}

Test(engine_socket, an_object_needs_no_seal_but_a_kind_that_never_makes_a_loop_wait)
{
	struct shm_sock_msg m = {.magic = SHM_MAGIC,
		.version = SHM_VERSION,
		.op = SHM_REGION,
		.size = 3 * 4096,
		.flags = SHM_REGION_OBJECT};
	char path[] = "/var/tmp/saker-object-XXXXXX";
	int fd, object = memfd(2 * 4096 + 1, 0), disk = mkstemp(path), pipes[2], readable;

	unlink(path);
	cr_assert_eq(ftruncate(disk, 3 * 4096), 0);
	cr_assert_eq(pipe(pipes), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", object);
	readable = open(path, O_RDONLY);
	cr_assert_geq(readable, 0);
	served_start(&served);
	fd = served_dial(&served);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	cr_assert_eq(ask(fd, &m, sizeof(m), object).op, SHM_REGION_IS, "whole pages");
	cr_assert_eq(ask(fd, &m, sizeof(m), disk).status, -EOPNOTSUPP);
	cr_assert_eq(ask(fd, &m, sizeof(m), pipes[0]).status, -EOPNOTSUPP);
	cr_assert_eq(ask(fd, &m, sizeof(m), readable).status, -EACCES);
	m.size += 4096;
	cr_assert_eq(ask(fd, &m, sizeof(m), object).status, -EINVAL, "beyond its end");
	m.size = 4097;
	cr_assert_eq(ask(fd, &m, sizeof(m), object).status, -EINVAL);
	cr_assert_eq(ftruncate(object, 1ll << 39), 0);
	m.size = 1ll << 39;
	cr_assert_eq(ask(fd, &m, sizeof(m), object).status, -EDQUOT, "beside the first one");
	m.size -= 3 * 4096;
	cr_assert_eq(ask(fd, &m, sizeof(m), object).op, SHM_REGION_IS);
	m.size = 4096;
	cr_assert_eq(ask(fd, &m, sizeof(m), object).status, -EDQUOT);
	m.flags = 0;
	cr_assert_eq(ask(fd, &m, sizeof(m), object).status, -EPERM, "memfds need their seal");
	m.size = 0;
	cr_assert_eq(ask(fd, &m, sizeof(m), object).status, -EINVAL, "no message of the protocol");
	close(fd);
	served_end(&served);
}

/* A file system that is a program, or a server that is gone, may never answer. */
Test(engine_socket, no_file_system_is_asked_about_a_descriptor_before_it_is_known_to_be_memory)
{
	const uint32_t flags[] = {0, SHM_REGION_SPARSE, SHM_REGION_OBJECT};
	struct shm_sock_msg m = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_REGION, .size = 4096};
	char path[] = "/var/tmp/saker-object-XXXXXX";
	int fd, disk = mkstemp(path), handle;

	unlink(path);
	cr_assert_eq(ftruncate(disk, 4096), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", disk);
	handle = open(path, O_PATH);
	cr_assert_geq(handle, 0);
	served_start(&served);
	fd = served_dial(&served);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	questions = 0;
	for (unsigned i = 0; i < 3; i++) {
		m.flags = flags[i];
		cr_assert_eq(ask(fd, &m, sizeof(m), disk).op, SHM_REFUSED);
		cr_assert_eq(ask(fd, &m, sizeof(m), handle).op, SHM_REFUSED);
	}
	cr_assert_eq(questions, 0);
	close(fd);
	close(disk);
	close(handle);
	served_end(&served);
}

Test(engine_socket, attachments_of_one_process_register_the_same_memory)
{
	const size_t len = 3u << 20;
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct saker_mr *mr[2];
	struct saker *s[2];

	memset(p, 0x42, len);
	served_start(&served);
	for (int i = 0; i < 2; i++) {
		struct saker_pd *pd;

		cr_assert_eq(saker_open(served.path, "unit test", &s[i]), 0, "%s", saker_error());
		cr_assert_eq(saker_pd_create(s[i], &pd), 0);
		cr_assert_eq(saker_mr_create(pd, p, len, RD_ACC_LOCAL_WRITE, &mr[i]), 0, "%s",
			saker_error());
		/* The registration keeps the program's bytes. */
		cr_assert_eq(p[len - 1], 0x42);
	}
	saker_close(s[0]);
	p[5] = 0x43;
	cr_assert_eq(saker_mr_destroy(mr[1]), 0);
	cr_assert_eq(p[5], 0x43);
	cr_assert_eq(p[len - 1], 0x42);
	saker_close(s[1]);
	served_end(&served);
}

/* ---- Descriptors that do not close ---- */

/* Sends a REGION with a descriptor that does not close, of which only the message has a copy. */
static void
send_stuck(const struct sk_hurry *h, int fd)
{
	const struct shm_sock_msg m = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_REGION, .size = 4096};
	int stuck = lingering();

	pass_along(fd, &m, sizeof(m), stuck);
	sk_hurry_begin(h);
	close(stuck);
	sk_hurry_end(h);
}

Test(engine_socket, a_user_whose_descriptors_do_not_close_delays_nobody, .timeout = 60)
{
	struct timespec from, to;
	struct shm_sock_msg m = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_HELLO, .text = "t"};
	struct sk_hurry h;
	int fd, other;

	cr_assert_eq(sk_hurry_init(&h), 0);
	served_start(&served);
	clock_gettime(CLOCK_MONOTONIC, &from);
	fd = served_dial(&served);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	/* The thread waits for the lock, so that its copies of the descriptors are the last. */
	other = served_dial(&served);
	pthread_mutex_lock(&served.s->control->limits_lock);
	cr_assert_eq(send(other, &m, sizeof(m), 0), (ssize_t)sizeof(m));
	for (unsigned i = 0; i < SK_CLOSER_MAX + 2; i++)
		send_stuck(&h, fd);
	pthread_mutex_unlock(&served.s->control->limits_lock);
	cr_assert_eq(recv(other, &m, sizeof(m), 0), (ssize_t)sizeof(m));
	cr_assert_eq(m.op, SHM_WELCOME);
	for (unsigned i = 0; i < SK_CLOSER_MAX; i++) {
		cr_assert_eq(recv(fd, &m, sizeof(m), 0), (ssize_t)sizeof(m));
		cr_assert_eq(m.status, -EINVAL, "%s", m.text);
	}
	/* The next message of the user is refused, and its descriptor is never received. */
	cr_assert_eq(recv(fd, &m, sizeof(m), 0), (ssize_t)sizeof(m));
	cr_assert_eq(m.status, -EUSERS);
	cr_assert_not_null(strstr(m.text, "still closing"), "%s", m.text);
	cr_assert_eq(recv(fd, &m, sizeof(m), 0), 0);
	close(fd);
	/* Nor does a connection that ends before its message was received. */
	fd = served_dial(&served);
	send_stuck(&h, fd);
	close(fd);
	cr_assert_eq(say(other, SHM_HELLO, 0, -1).status, -EUSERS);
	close(other);
	served_end(&served);
	clock_gettime(CLOCK_MONOTONIC, &to);
	cr_assert_lt(to.tv_sec - from.tv_sec, LINGER_S / 2);
	sk_hurry_fini(&h);
}

static void *
stop_socket(void *arg)
{
	eng_control_socket_stop(served.s->control);
	return NULL;
}

Test(engine_socket, a_saker_that_ends_waits_for_no_descriptor_that_a_client_has_sent,
	.timeout = 100)
{
	const struct shm_sock_msg hello = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_HELLO, .text = "t"};
	struct eng_socket *socket;
	struct timespec began;
	pthread_t thread;
	int fd, other, unread;

	served_start(&served);
	clock_gettime(CLOCK_MONOTONIC, &began);
	socket = served.s->control->socket;
	fd = served_dial(&served);
	other = served_dial(&served);
	/* The thread receives a message and waits for the lock, so that the next one is unread. */
	pthread_mutex_lock(&served.s->control->limits_lock);
	cr_assert_eq(send(other, &hello, sizeof(hello), 0), (ssize_t)sizeof(hello));
	do
		cr_assert_eq(ioctl(other, TIOCOUTQ, &unread), 0);
	while (unread > 0);
	cr_assert_eq(send_lingering(fd), 0);
	cr_assert_eq(pthread_create(&thread, NULL, stop_socket, NULL), 0);
	while (!__atomic_load_n(&socket->stop, __ATOMIC_ACQUIRE))
		sched_yield();
	pthread_mutex_unlock(&served.s->control->limits_lock);
	pthread_join(thread, NULL);
	__atomic_store_n(&served.stop, true, __ATOMIC_RELEASE);
	pthread_join(served.thread, NULL);
	script_destroy(served.s);
	close(fd);
	close(other);
	cr_assert_not(has_lingered(&began));
}

/* A message is served whenever its time has come, so that only the least time is checked. */
Test(engine_socket, a_user_passes_regions_at_a_limited_rate)
{
	uint64_t began;
	int fd, m;
	double ms;

	served_start(&served);
	fd = served_dial(&served);
	say(fd, SHM_HELLO, 0, -1);
	m = memfd_create("unsealed", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	began = now_ns();
	for (unsigned i = 0; i < 600; i++)
		cr_assert_eq(say(fd, SHM_REGION, 4096, m).op, SHM_REFUSED);
	ms = (double)(now_ns() - began) / 1e6;
	cr_assert_geq(ms, 600 - 260 - 20, "%f ms", ms);
	cr_assert_gt(script_counter(served.s, ENG_SOCKET_RATE), 0);
	close(m);
	close(fd);
	served_end(&served);
}

/* ---- Users ---- */

static struct sock_users users;

/* Returns the user, of which another connection waits now. NULL: it was refused. */
static struct sock_user *
join(uid_t uid, uint64_t now)
{
	char why[124] = "";
	struct sock_user *loser, *u = ctl_users_join(&users, uid, now, &loser, why, sizeof(why));

	cr_assert_null(loser);
	cr_assert_eq(u == NULL, why[0] != '\0', "%s", why);
	return u;
}

/* Takes all messages of a kind that the user may send at once. Returns how many. */
static unsigned
take_all(struct sock_user *u, enum sock_ask ask, uint64_t now)
{
	unsigned n = 0;

	while (ctl_users_take(u, ask, now))
		n++;
	return n;
}

Test(engine_socket, neither_passed_memory_nor_another_user_delays_a_hello)
{
	const uint64_t now = 1000000000;
	struct sock_user *u, *v;

	cr_assert_eq(ctl_users_init(&users, 16), 0);
	u = join(1, now);
	v = join(2, now);
	cr_assert_eq(take_all(u, SOCK_ASK_REGION, now), SOCK_REGIONS);
	cr_assert_eq(take_all(u, SOCK_ASK_HELLO, now), SOCK_HELLOS);
	cr_assert_eq(take_all(v, SOCK_ASK_HELLO, now), SOCK_HELLOS);
	/* The user's rates, while it passes memory whenever it may. */
	for (uint64_t t = 1; t <= 1000; t++) {
		cr_assert_eq(take_all(u, SOCK_ASK_REGION, now + t * SOCK_REGION_GAP), 1);
		cr_assert_eq(take_all(u, SOCK_ASK_HELLO, now + t * SOCK_REGION_GAP), t % 10 == 0);
	}
	ctl_users_fini(&users);
}

Test(engine_socket, a_message_waits_behind_those_that_came_before)
{
	const uint64_t now = 1000000000;
	struct sock_user *u;

	cr_assert_eq(ctl_users_init(&users, 16), 0);
	u = join(1, now);
	take_all(u, SOCK_ASK_HELLO, now);
	u->queued[SOCK_ASK_HELLO]++;
	cr_assert_not(ctl_users_take(u, SOCK_ASK_HELLO, now + SOCK_HELLO_GAP));
	cr_assert(ctl_users_turn(u, SOCK_ASK_HELLO, now + SOCK_HELLO_GAP));
	cr_assert_not(ctl_users_turn(u, SOCK_ASK_HELLO, now + SOCK_HELLO_GAP));
	u->queued[SOCK_ASK_HELLO]--;
	cr_assert(ctl_users_take(u, SOCK_ASK_HELLO, now + 2 * SOCK_HELLO_GAP));
	ctl_users_fini(&users);
}

Test(engine_socket, a_user_does_not_lose_its_debt_by_leaving)
{
	const uint64_t now = 1000000000;
	struct sock_user *u;

	cr_assert_eq(ctl_users_init(&users, 16), 0);
	u = join(1, now);
	take_all(u, SOCK_ASK_REGION, now);
	ctl_users_leave(&users, u, false);
	for (uid_t other = 2; other < 12; other++)
		ctl_users_leave(&users, join(other, now), false);
	u = join(1, now + 5 * SOCK_REGION_GAP);
	cr_assert_eq(take_all(u, SOCK_ASK_REGION, now + 5 * SOCK_REGION_GAP), 5);
	cr_assert_eq(users.conns, 1);
	ctl_users_fini(&users);
}

Test(engine_socket, the_places_to_wait_are_shared_by_users)
{
	struct sock_user *loser, *third = NULL;
	char why[124] = "";

	cr_assert_eq(ctl_users_init(&users, 4 + SOCK_WAITING), 0);
	for (uid_t uid = 1; uid <= 2; uid++) {
		for (unsigned i = 0; i < SOCK_WAITING_ONE; i++)
			cr_assert_not_null(join(uid, 0), "%u", i);
		cr_assert_null(join(uid, 0));
	}
	while (users.waiting < SOCK_WAITING)
		third = join(3, 0);
	/* A user with fewer takes the place of one with more, until they have equally many. */
	for (unsigned n = third->waiting; n < (SOCK_WAITING - 1) / 3; n++) {
		cr_assert_eq(ctl_users_join(&users, 3, 0, &loser, why, sizeof(why)), third);
		cr_assert(loser != NULL && loser != third);
		ctl_users_leave(&users, loser, false);
		cr_assert_eq(users.waiting, SOCK_WAITING);
	}
	cr_assert_null(ctl_users_join(&users, 3, 0, &loser, why, sizeof(why)));
	cr_assert_null(loser);
	cr_assert_str_eq(why, "there are 256 connections that have not attached, the limit");
	cr_assert_not_null(ctl_users_join(&users, 4, 0, &loser, why, sizeof(why)));
	cr_assert_not_null(loser);
	ctl_users_fini(&users);
}

Test(engine_socket, connections_that_are_too_many_are_refused_with_a_sentence)
{
	int fd[SOCK_WAITING_ONE];
	struct saker *client;
	char expected[124];

	served_start(&served);
	for (unsigned i = 0; i < SOCK_WAITING_ONE; i++)
		fd[i] = served_dial(&served);
	snprintf(expected, sizeof(expected),
		"user %u has %u connections that have not attached, the limit", getuid(),
		SOCK_WAITING_ONE);
	for (int round = 0; round < 50; round++) {
		cr_assert_eq(saker_open(served.path, "one too many", &client), -EUSERS);
		cr_assert_str_eq(saker_error(), expected);
	}
	cr_assert_eq(script_counter(served.s, ENG_SOCKET_FULL), 50);
	/* One that has waited attaches, and leaves its place to another. */
	cr_assert_eq(say(fd[0], SHM_HELLO, 0, -1).op, SHM_WELCOME);
	cr_assert_eq(saker_open(served.path, "the next", &client), 0, "%s", saker_error());
	saker_close(client);
	for (unsigned i = 0; i < SOCK_WAITING_ONE; i++)
		close(fd[i]);
	served_end(&served);
}

Test(engine_socket, a_connection_without_a_message_takes_no_turn)
{
	int fd;

	served_start(&served);
	for (int i = 0; i < 10 * SOCK_HELLOS; i++)
		close(served_dial(&served));
	fd = served_dial(&served);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	cr_assert_eq(script_counter(served.s, ENG_SOCKET_RATE), 0);
	close(fd);
	served_end(&served);
}

Test(engine_socket, a_program_attaches_at_once_when_another_has_passed_all_that_it_may)
{
	int fd, other, m = memfd(4096, 0);
	uint64_t waited;

	served_start(&served);
	fd = served_dial(&served);
	cr_assert_eq(say(fd, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	while (script_counter(served.s, ENG_SOCKET_RATE) == 0)
		cr_assert_eq(say(fd, SHM_REGION, 4096, m).op, SHM_REFUSED);
	waited = script_counter(served.s, ENG_SOCKET_RATE);
	other = served_dial(&served);
	cr_assert_eq(say(other, SHM_HELLO, 0, -1).op, SHM_WELCOME);
	cr_assert_eq(script_counter(served.s, ENG_SOCKET_RATE), waited);
	close(other);
	close(fd);
	close(m);
	served_end(&served);
}
