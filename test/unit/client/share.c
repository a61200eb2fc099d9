/* SPDX-License-Identifier: BSD-3-Clause */
/* Registering memory that the program shares with others: each kind is registered, written by the
 * engine's side, and deregistered; a fork, an unmapping and a truncation come between. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../support/huge_pages.h"
#include "../move/mappings.h"
#include "fake_sock.h"

#define PAGE   4096ul
#define HUGE   (2ul << 20)
#define LEN    (2 * HUGE)
#define PAGES  16 /* huge pages that the test may use at a time */
#define ACCESS (RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE)

static struct fake_sock k;
static struct saker *s;
static struct saker_pd *pd;

static void
setup(void)
{
	memset(&k, 0, sizeof(k));
	k.region_most = SHM_OBJECT_MAX;
	fake_sock_start(&k);
	cr_assert_eq(saker_open(k.path, "a test", &s), 0, "%s", saker_error());
	cr_assert_eq(saker_pd_create(s, &pd), 0);
}

static void
teardown(void)
{
	saker_close(s);
	fake_sock_stop(&k);
}

TestSuite(client_share, .init = setup, .fini = teardown, .timeout = 120);

/* ---- The kinds of memory. Each function returns LEN bytes, or NULL where the system has none ----
 */

static uint8_t *
map(int fd, int flags)
{
	void *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, flags, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static uint8_t *
map_file(int fd)
{
	uint8_t *p;

	cr_assert_geq(fd, 0);
	p = ftruncate(fd, LEN) == 0 ? map(fd, MAP_SHARED) : NULL;
	return p;
}

static int kept = -1; /* the descriptor of a memfd, which the program keeps open */

static uint8_t *
of_memfd(void)
{
	kept = memfd_create("kind", 0);
	return map_file(kept);
}

static uint8_t *
of_huge_memfd(void)
{
	kept = memfd_create("kind", MFD_HUGETLB);
	return map_file(kept);
}

/* The name stays, and the descriptor does not. */
static uint8_t *
of_posix_shm(void)
{
	static const char name[] = "/saker-test-share";
	int fd = shm_open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	uint8_t *p = map_file(fd);

	close(fd);
	return p;
}

static uint8_t *
of_anonymous(void)
{
	return map(-1, MAP_SHARED | MAP_ANONYMOUS);
}

static uint8_t *
of_sysv(void)
{
	int id = shmget(IPC_PRIVATE, LEN, IPC_CREAT | 0600);
	uint8_t *p = shmat(id, NULL, 0);

	cr_assert_neq(p, (void *)-1);
	shmctl(id, IPC_RMID, NULL);
	return p;
}

static uint8_t *
of_sysv_huge(void)
{
	int id = shmget(IPC_PRIVATE, LEN, IPC_CREAT | SHM_HUGETLB | 0600);
	uint8_t *p = id >= 0 ? shmat(id, NULL, 0) : NULL;

	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	return p;
}

static uint8_t *
of_huge_shared(void)
{
	return map(-1, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB);
}

static uint8_t *
of_huge_private(void)
{
	return map(-1, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB);
}

static const struct kind {
	const char *name;
	uint8_t *(*make)(void);
	bool shared; /* parent and child of a fork share it */
	/* A process without rights has no descriptor of it. */
	bool needs_map_files;
	bool huge;
} kinds[] = {
	{"memfd", of_memfd, true, false, false},
	{"memfd on huge pages", of_huge_memfd, true, false, true},
	{"POSIX shared memory", of_posix_shm, true, false, false},
	{"MAP_SHARED | MAP_ANONYMOUS", of_anonymous, true, true, false},
	{"System V shared memory", of_sysv, true, true, false},
	{"System V shared memory on huge pages", of_sysv_huge, true, true, true},
	{"MAP_SHARED | MAP_HUGETLB", of_huge_shared, true, true, true},
	{"MAP_PRIVATE | MAP_HUGETLB", of_huge_private, false, false, true},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void
free_kind(uint8_t *p)
{
	if (shmdt(p) < 0)
		munmap(p, LEN);
	if (kept >= 0)
		close(kept);
	kept = -1;
	shm_unlink("/saker-test-share");
}

/* Returns where the engine has byte `at` of the last registration. */
static uint8_t *
engine_at(size_t at)
{
	const struct shm_extent *e = k.f.last.body.mr.extents;

	for (uint32_t i = 0; i < k.f.last.body.mr.nextents; i++, e++) {
		if (at < e->len)
			return k.region[e->region - 11] + e->offset + at;
		at -= e->len;
	}
	cr_assert_fail("the registration is shorter");
	return NULL;
}

static uint32_t
in_child(const uint8_t *p)
{
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0)
		_exit(p[100]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	return (uint32_t)WEXITSTATUS(status);
}

static void
one_kind(const struct kind *kind)
{
	uint8_t *p = kind->make(), *there;
	struct saker_mr *mr, *again;
	int rc, status;
	pid_t pid;

	cr_assert_not_null(p, "%s", kind->name);
	for (size_t i = 0; i < LEN; i++)
		p[i] = (uint8_t)(i * 7 + i / PAGE);
	rc = saker_mr_create(pd, p + 50, LEN - 100, ACCESS, &mr);
	if (rc == -EOPNOTSUPP && kind->needs_map_files && geteuid() != 0) {
		cr_assert_not_null(strstr(saker_error(), "shared with others"));
		free_kind(p);
		return;
	}
	cr_assert_eq(rc, 0, "%s: %s", kind->name, saker_error());
	for (size_t i = 50; i < LEN - 50; i += 997)
		cr_assert_eq(*engine_at(i - 50), (uint8_t)(i * 7 + i / PAGE), "%s", kind->name);
	/* The program reads the bytes that a peer writes, and the other way round. */
	*engine_at(50) = 77;
	cr_assert_eq(p[100], 77, "%s", kind->name);
	p[HUGE + 1] = 78;
	cr_assert_eq(*engine_at(HUGE + 1 - 50), 78, "%s", kind->name);
	/* A second registration needs no second region. */
	rc = (int)k.regions;
	cr_assert_eq(saker_mr_create(pd, p + PAGE, PAGE, ACCESS, &again), 0, "%s", saker_error());
	cr_assert_eq(k.regions, (uint32_t)rc, "%s", kind->name);
	cr_assert_eq(saker_mr_destroy(again), 0);
	cr_assert_eq(saker_mr_create(pd, p + 50, LEN - 100, ACCESS, &again), 0);
	/* A child finds the content; what it writes is the parent's only in shared memory. */
	cr_assert_eq(in_child(p), 77, "%s", kind->name);
	pid = fork();
	if (pid == 0) {
		p[100] = 79;
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", kind->name);
	cr_assert_eq(p[100], kind->shared ? 79 : 77, "%s", kind->name);
	cr_assert_eq(*engine_at(50), p[100], "%s", kind->name);
	/* The registration outlives the mapping. */
	free_kind(p);
	there = engine_at(50);
	*there = 80;
	cr_assert_eq(saker_mr_destroy(mr), 0);
	cr_assert_eq(*there, 80);
	cr_assert_eq(saker_mr_destroy(again), 0);
}

Test(client_share, each_kind_is_registered_as_it_is)
{
	for (size_t i = 0; i < KINDS; i++)
		if (!kinds[i].huge)
			one_kind(&kinds[i]);
}

Test(client_share, each_kind_of_huge_pages_is_registered_as_it_is)
{
	huge_pages_need(PAGES, HUGE >> 10);
	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i].huge)
			one_kind(&kinds[i]);
}

Test(client_share, a_range_may_have_parts_of_several_kinds)
{
	uint8_t *p = map_in_one_window(8 * PAGE, 0);
	int fd = memfd_create("kind", 0);
	struct saker_mr *mr;

	cr_assert_eq(ftruncate(fd, 4 * PAGE), 0);
	memset(p, 1, 8 * PAGE);
	cr_assert_eq(mmap(p + 2 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			     fd, PAGE),
		p + 2 * PAGE);
	memset(p + 2 * PAGE, 2, 2 * PAGE);
	cr_assert_eq(
		saker_mr_create(pd, p + 7, 8 * PAGE - 14, ACCESS, &mr), 0, "%s", saker_error());
	cr_assert_eq(k.f.last.body.mr.nextents, 3);
	for (size_t i = 7; i < 8 * PAGE - 7; i += 61) {
		cr_assert_eq(*engine_at(i - 7), p[i], "byte %zu", i);
		*engine_at(i - 7) = 3;
		cr_assert_eq(p[i], 3);
	}
	cr_assert_eq(saker_mr_destroy(mr), 0);
	cr_assert_eq(map_count(p, 8 * PAGE, MAP_IS_SHARED), 1);
	cr_assert_eq(p[7], 3);
	close(fd);
}

Test(client_share, a_truncated_object_is_refused_and_does_no_harm)
{
	int fd = memfd_create("kind", 0);
	struct saker_mr *mr;
	uint8_t *p;

	cr_assert_eq(ftruncate(fd, LEN), 0);
	p = map(fd, MAP_SHARED);
	cr_assert_eq(saker_mr_create(pd, p, LEN, ACCESS, &mr), 0, "%s", saker_error());
	cr_assert_eq(ftruncate(fd, PAGE), 0);
	cr_assert_eq(saker_mr_destroy(mr), 0);
	cr_assert_eq(saker_mr_create(pd, p, LEN, ACCESS, &mr), -EFAULT);
	cr_assert_not_null(strstr(saker_error(), "ends before"), "%s", saker_error());
	cr_assert_eq(saker_mr_create(pd, p, PAGE, ACCESS, &mr), 0, "%s", saker_error());
	cr_assert_eq(saker_mr_destroy(mr), 0);
	close(fd);
}

Test(client_share, rights_are_those_of_the_mapping)
{
	int fd = memfd_create("kind", 0);
	struct saker_mr *mr;
	uint8_t *p;

	cr_assert_eq(ftruncate(fd, LEN), 0);
	p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
	cr_assert_eq(saker_mr_create(pd, p, PAGE, ACCESS, &mr), -EACCES);
	cr_assert_not_null(strstr(saker_error(), "read-only"), "%s", saker_error());
	cr_assert_eq(saker_mr_create(pd, p, PAGE, RD_ACC_REMOTE_READ, &mr), 0, "%s", saker_error());
	cr_assert_eq(saker_mr_destroy(mr), 0);
	close(fd);
}

Test(client_share, a_shared_mapping_of_a_file_on_a_disk_is_refused)
{
	char path[] = "/var/tmp/saker-share-XXXXXX";
	int fd = mkstemp(path);
	struct saker_mr *mr;
	uint8_t *p;

	cr_assert_geq(fd, 0);
	unlink(path);
	p = map_file(fd);
	cr_assert_not_null(p);
	cr_assert_eq(saker_mr_create(pd, p, PAGE, ACCESS, &mr), -EOPNOTSUPP);
	cr_assert_not_null(strstr(saker_error(), "neither on tmpfs"), "%s", saker_error());
	close(fd);
}
