/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a client removes while the engine uses it: the access reads zeros, the client is
 * marked, and no other client is affected. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../lib/engine/common/sigbus.h"
#include "../../../lib/engine/engine.h"

#define LEN 65536u

static int
file(void)
{
	int fd = memfd_create("m", MFD_ALLOW_SEALING);

	cr_assert_eq(ftruncate(fd, LEN), 0);
	return fd;
}

Test(engine_sigbus, truncated_memory_reads_as_zeros_and_marks_only_its_client)
{
	int fd = file(), other = file(), g, h;
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint8_t *q = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
	bool bad = false, other_bad = false;

	cr_assert_eq(eng_sigbus_install(), 0);
	g = eng_guard(p, LEN, &bad);
	h = eng_guard(q, LEN, &other_bad);
	cr_assert_neq(g, h);
	memset(p, 0xaa, LEN);
	memset(q, 0xbb, LEN);
	cr_assert_eq(ftruncate(fd, 4096), 0);
	/* Without an access, the removal is not detected. */
	cr_assert_eq(__atomic_load_n(&p[10], __ATOMIC_RELAXED), 0xaa);
	cr_assert_not(bad);
	cr_assert_eq(__atomic_load_n(&p[8192], __ATOMIC_RELAXED), 0);
	cr_assert(bad);
	cr_assert_not(other_bad);
	cr_assert_eq(eng_sigbus_count(), 1);
	/* Writes succeed, too, and the whole mapping is one again. */
	for (unsigned i = 0; i < LEN; i += 4096)
		p[i + 7] = 1;
	cr_assert_eq(eng_sigbus_count(), 1);
	cr_assert_eq(q[LEN - 1], 0xbb);
	eng_unguard(g);
	eng_unguard(h);
}

Test(engine_sigbus, a_system_call_into_such_memory_fails_and_does_not_kill)
{
	int fd = file(), pipefd[2], g;
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool bad = false;

	cr_assert_eq(eng_sigbus_install(), 0);
	g = eng_guard(p, LEN, &bad);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(pipe(pipefd), 0);
	cr_assert_eq(write(pipefd[1], p, 16), -1);
	cr_assert_not(bad);
	eng_unguard(g);
}

Test(engine_sigbus, a_guard_that_was_withdrawn_is_used_again)
{
	int first, fd = file();
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool bad = false, newer = false;

	cr_assert_eq(eng_sigbus_install(), 0);
	first = eng_guard(p, LEN, &bad);
	eng_unguard(first);
	cr_assert_eq(eng_guard(p, LEN, &newer), first);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(__atomic_load_n(&p[0], __ATOMIC_RELAXED), 0);
	cr_assert_not(bad);
	cr_assert(newer);
}

Test(engine_sigbus, memory_that_is_nobodys_ends_the_process, .signal = SIGBUS)
{
	int fd = file();
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	/* A sanitizer's handler would report the signal and exit. */
	signal(SIGBUS, SIG_DFL);
	cr_assert_eq(eng_sigbus_install(), 0);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(__atomic_load_n(&p[0], __ATOMIC_RELAXED), 1);
}
