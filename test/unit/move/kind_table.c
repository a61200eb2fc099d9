/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of memory, each with what registering makes of it. */
#include "row.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

static int
map(uint8_t *at, size_t len, int flags, int fd)
{
	void *p = mmap(at, len, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);

	cr_assert_eq(p, at, "mmap with flags %#x: %s", flags, strerror(errno));
	return fd;
}

static int
map_file(uint8_t *at, size_t len, int flags, int fd)
{
	cr_assert(fd >= 0 && ftruncate(fd, (off_t)len) == 0, "%s", strerror(errno));
	return map(at, len, flags, fd);
}

static int
map_new_file(uint8_t *at, size_t len, int flags, char *path)
{
	int fd = mkstemp(path);

	unlink(path);
	return map_file(at, len, flags, fd);
}

static int
map_segment(uint8_t *at, size_t len, int flags)
{
	int id = shmget(IPC_PRIVATE, len, IPC_CREAT | 0600 | flags);
	const void *p;

	cr_assert_geq(id, 0, "shmget with flags %#x: %s", flags, strerror(errno));
	p = shmat(id, at, SHM_REMAP);
	shmctl(id, IPC_RMID, NULL);
	cr_assert_eq(p, at, "shmat: %s", strerror(errno));
	return -1;
}

static int
private_anonymous(uint8_t *at, size_t len)
{
	return map(at, len, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static int
private_file(uint8_t *at, size_t len)
{
	char path[] = "/tmp/saker-kinds-XXXXXX";

	return map_new_file(at, len, MAP_PRIVATE, path);
}

static int
private_huge(uint8_t *at, size_t len)
{
	return map(at, len, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
}

static int
shared_anonymous(uint8_t *at, size_t len)
{
	return map(at, len, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static int
shared_huge(uint8_t *at, size_t len)
{
	return map(at, len, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1);
}

static int
memfd(uint8_t *at, size_t len)
{
	return map_file(at, len, MAP_SHARED, memfd_create("kinds", MFD_CLOEXEC));
}

static int
memfd_huge(uint8_t *at, size_t len)
{
	return map_file(at, len, MAP_SHARED, memfd_create("kinds", MFD_CLOEXEC | MFD_HUGETLB));
}

static int
posix(uint8_t *at, size_t len)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/saker-kinds-%d", (int)getpid());
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	shm_unlink(name);
	close(map_file(at, len, MAP_SHARED, fd));
	return -1;
}

static int
tmpfs_file(uint8_t *at, size_t len)
{
	char path[] = "/dev/shm/saker-kinds-XXXXXX";

	return map_new_file(at, len, MAP_SHARED, path);
}

static int
system_v(uint8_t *at, size_t len)
{
	return map_segment(at, len, 0);
}

static int
system_v_huge(uint8_t *at, size_t len)
{
	return map_segment(at, len, SHM_HUGETLB);
}

const struct kind kinds_small[KINDS_SMALL] = {
	{"private anonymous", private_anonymous, SMALL, MOVES, REFUSED},
	{"private, of a file", private_file, SMALL, MOVES, HARMLESS},
	{"shared anonymous", shared_anonymous, SMALL, STAYS, ENDS},
	{"memfd", memfd, SMALL, STAYS, ENDS},
	{"POSIX shared memory", posix, SMALL, STAYS, ENDS},
	{"System V", system_v, SMALL, STAYS, ENDS},
	{"file on tmpfs", tmpfs_file, SMALL, STAYS, ENDS},
};

const struct kind kinds_large[KINDS_LARGE] = {
	{"private, MAP_HUGETLB", private_huge, LARGE, BECOMES, ENDS},
	{"shared, MAP_HUGETLB", shared_huge, LARGE, STAYS, ENDS},
	{"memfd, MFD_HUGETLB", memfd_huge, LARGE, STAYS, ENDS},
	{"System V, SHM_HUGETLB", system_v_huge, LARGE, STAYS, ENDS},
};
