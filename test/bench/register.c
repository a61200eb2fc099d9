/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of registering memory of each kind, all of it present, and of ending the registration:
 * the time of the clock, and the processor time of this process, which a busy machine changes less.
 *
 *	bench_register SOCKET MIB
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <unistd.h>

#include <saker/saker.h>

#include "../support/clock.h"

#define ACCESS (RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ)

static struct saker *s;
static struct saker_pd *pd;
static size_t len;

/* ---- Kinds of memory: each returns the memory, or MAP_FAILED with errno ---- */

static void *
mapped(int flags, int fd)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);
}

/* Maps an object and closes its descriptor. */
static void *
object(int flags, int fd)
{
	void *p = fd >= 0 && ftruncate(fd, (off_t)len) == 0 ? mapped(flags, fd) : MAP_FAILED;

	if (fd >= 0)
		close(fd);
	return p;
}

static void *
of_saker(void)
{
	void *p = saker_alloc(s, len);

	if (p != NULL)
		return p;
	errno = ENOMEM;
	return MAP_FAILED;
}

static void *private(void)
{
	return mapped(MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void *
private_huge(void)
{
	return mapped(MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
}

static void *
private_file(void)
{
	return object(MAP_PRIVATE, memfd_create("private", MFD_CLOEXEC));
}

static void *
anonymous(void)
{
	return mapped(MAP_SHARED | MAP_ANONYMOUS, -1);
}

static void *
memfd(void)
{
	return object(MAP_SHARED, memfd_create("shared", MFD_CLOEXEC));
}

static void *
memfd_huge(void)
{
	return object(MAP_SHARED, memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB));
}

static void *
posix(void)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/saker-register-%d", (int)getpid());
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	shm_unlink(name);
	return object(MAP_SHARED, fd);
}

static void *
system_v(void)
{
	int id = shmget(IPC_PRIVATE, len, IPC_CREAT | 0600);
	void *p = id >= 0 ? shmat(id, NULL, 0) : MAP_FAILED;

	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	return p;
}

static const struct kind {
	const char *name;
	void *(*make)(void);
	bool untouched;
} kinds[] = {
	{"saker_alloc()", of_saker},
	{"private", private},
	{"private, no page present", private, true},
	{"private, MAP_HUGETLB", private_huge},
	{"private, of a file", private_file},
	{"shared anonymous", anonymous},
	{"memfd", memfd},
	{"memfd, MFD_HUGETLB", memfd_huge},
	{"POSIX shared memory", posix},
	{"System V", system_v},
};

/* ---- Costs ---- */

struct cost {
	double clock, user, system; /* ms */
};

static double
ms_of(const struct timeval *t)
{
	return (double)t->tv_sec * 1e3 + (double)t->tv_usec / 1e3;
}

static struct cost
now(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (struct cost){(double)now_ns() / 1e6, ms_of(&r.ru_utime), ms_of(&r.ru_stime)};
}

static void
print_since(struct cost was)
{
	struct cost is = now();

	printf(" %9.2f %9.2f %9.2f", is.clock - was.clock, is.user - was.user,
		is.system - was.system);
}

/* Returns 0, or 1 when the kind cannot be registered. */
static int
measure(const struct kind *k)
{
	uint8_t *p = k->make();
	struct saker_mr *mr;
	struct cost was;
	int rc;

	printf("%-26s", k->name);
	if (p == MAP_FAILED) {
		printf(" the machine has none: %s\n", strerror(errno));
		return 1;
	}
	if (!k->untouched)
		memset(p, 0x5a, len);
	was = now();
	rc = saker_mr_create(pd, p, len, ACCESS, &mr);
	if (rc < 0) {
		printf(" refused: %s\n", saker_error());
		return 1;
	}
	print_since(was);
	was = now();
	rc = saker_mr_destroy(mr);
	print_since(was);
	printf("\n");
	if (k->make == of_saker)
		saker_free(s, p, len);
	else if (k->make == system_v)
		shmdt(p);
	else
		munmap(p, len);
	return rc < 0;
}

int
main(int argc, char **argv)
{
	int failed = 0;

	if (argc != 3 || atoi(argv[2]) <= 0) {
		fprintf(stderr, "usage: bench_register SOCKET MIB\n");
		return 2;
	}
	len = (size_t)atoi(argv[2]) << 20;
	if (saker_open(argv[1], "register", &s) < 0 || saker_pd_create(s, &pd) < 0) {
		fprintf(stderr, "bench_register: %s\n", saker_error());
		return 1;
	}
	printf("%-26s %29s %29s\n", "ms", "register", "deregister");
	printf("%-26s %9s %9s %9s %9s %9s %9s\n", "kind", "clock", "user", "system", "clock",
		"user", "system");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		failed |= measure(&kinds[i]);
	saker_close(s);
	return failed;
}
