/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that moves while other threads use it, and forks, with each guard that a process may have:
 * userfaultfd in full, userfaultfd in user mode only, and a handler of SIGSEGV.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_sock.h"
#include "../move/mappings.h"

#define PAGE    4096ul
#define MIB     (1ul << 20)
#define WORDS   (PAGE / sizeof(uint64_t))
#define WRITERS 2
#define ROUNDS  20

static struct fake_sock k;
static struct saker *s;
static struct saker_pd *pd;
static uint32_t stop;

static void
attach(const char *way)
{
	memset(&k, 0, sizeof(k));
	k.region_most = SHM_SPARSE_MAX;
	setenv("SAKER_MOVE", way, 1);
	fake_sock_start(&k);
	cr_assert_eq(saker_open(k.path, "a test", &s), 0, "%s", saker_error());
	cr_assert_eq(saker_pd_create(s, &pd), 0);
}

static void
detach(void)
{
	saker_close(s);
	fake_sock_stop(&k);
}

static struct saker_mr *
reg(void *addr, size_t len)
{
	struct saker_mr *mr;

	cr_assert_eq(
		saker_mr_create(pd, addr, len, RD_ACC_LOCAL_WRITE, &mr), 0, "%s", saker_error());
	return mr;
}

static bool
stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_ACQUIRE) != 0;
}

ParameterizedTestParameters(client_move_threads, writes)
{
	static char ways[3][8] = {"full", "user", "signal"};

	return cr_make_param_array(char[8], ways, 3);
}

/* ---- Each write takes effect once ---- */

#define LEN (6 * MIB + 4 * PAGE)

struct writer {
	pthread_t thread;
	uint64_t *mem;
	unsigned number;
	uint64_t own[LEN / PAGE]; /* how often it has incremented its word of each page */
	uint64_t rounds;
};

/* Increments a word of its own in each page, and one word of each page that all share. */
static void *
writer_main(void *arg)
{
	struct writer *w = arg;

	for (; !stopped(); w->rounds++)
		for (size_t i = 0; i < LEN / PAGE; i++) {
			uint64_t *page = w->mem + i * WORDS;

			page[w->number]++;
			w->own[i]++;
			__atomic_fetch_add(&page[WORDS - 1], 1, __ATOMIC_RELAXED);
		}
	return NULL;
}

/* Half of the pages are never written after the start. */
static void *
reader_main(void *arg)
{
	uint64_t *mem = arg;

	while (!stopped())
		for (size_t i = 0; i < LEN / PAGE; i++)
			if (__atomic_load_n(&mem[i * WORDS + 100], __ATOMIC_RELAXED) != i + 1)
				return arg;
	return NULL;
}

ParameterizedTest(char (*way)[8], client_move_threads, writes, .timeout = 300)
{
	struct writer *w = calloc(WRITERS, sizeof(*w));
	uint64_t *mem = map_in_one_window(LEN, 0);
	void *wrong;
	pthread_t reader;

	attach(*way);
	for (size_t i = 0; i < LEN / PAGE; i++)
		mem[i * WORDS + 100] = i + 1;
	for (unsigned i = 0; i < WRITERS; i++) {
		w[i].mem = mem;
		w[i].number = i;
		pthread_create(&w[i].thread, NULL, writer_main, &w[i]);
	}
	pthread_create(&reader, NULL, reader_main, mem);
	for (int i = 0; i < ROUNDS; i++) {
		struct saker_mr *a = reg((uint8_t *)mem + 100, LEN - 200);
		struct saker_mr *b = reg((uint8_t *)mem + MIB, 3 * MIB);

		saker_mr_destroy(a);
		saker_mr_destroy(b);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(reader, &wrong);
	cr_assert_null(wrong, "%s: a reader saw other content", *way);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(w[i].thread, NULL);
	cr_assert_gt(w[0].rounds + w[1].rounds, 2, "%s: the writers were held up", *way);
	for (size_t i = 0; i < LEN / PAGE; i++) {
		uint64_t sum = 0;

		for (unsigned n = 0; n < WRITERS; n++) {
			cr_assert_eq(mem[i * WORDS + n], w[n].own[i], "%s: page %zu, writer %u",
				*way, i, n);
			sum += w[n].own[i];
		}
		cr_assert_eq(mem[i * WORDS + WORDS - 1], sum, "%s: page %zu", *way, i);
	}
	free(w);
	detach();
}

/* ---- System calls wait, too ---- */

static void *
zeroes_in(void *arg)
{
	uint8_t *mem = arg;
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	while (!stopped())
		for (size_t at = 0; at < MIB; at += PAGE) {
			uint64_t out = at + 1, in = 0;

			if (write(fds[1], &out, sizeof(out)) != (ssize_t)sizeof(out) ||
				read(fds[0], mem + at, sizeof(out)) != (ssize_t)sizeof(out))
				return arg;
			memcpy(&in, mem + at, sizeof(in));
			if (in != out)
				return arg;
		}
	return NULL;
}

Test(client_move_threads, a_system_call_that_fills_a_buffer_waits_while_it_moves, .timeout = 120)
{
	uint8_t *mem = map_in_one_window(MIB, 0);
	pthread_t t;
	void *wrong;

	attach("full");
	pthread_create(&t, NULL, zeroes_in, mem);
	for (int i = 0; i < 3 * ROUNDS; i++)
		saker_mr_destroy(reg(mem, MIB));
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(t, &wrong);
	cr_assert_null(wrong, "a system call failed or read elsewhere");
	detach();
}

/* ---- Several threads register ---- */

static uint8_t *common;

static void *
registers(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (int i = 0; i < 150; i++) {
		size_t from = (size_t)rand_r(&seed) % MIB, to = (size_t)rand_r(&seed) % MIB;
		struct saker_mr *mr;

		if (from >= to)
			continue;
		mr = reg(common + from, to - from);
		if (i % 7 == 0)
			sched_yield();
		saker_mr_destroy(mr);
	}
	return NULL;
}

Test(client_move_threads, threads_register_overlapping_ranges_at_the_same_time, .timeout = 120)
{
	pthread_t t[4];

	attach("full");
	common = map_in_one_window(MIB, 0);
	for (size_t i = 0; i < MIB; i++)
		common[i] = (uint8_t)(i * 11);
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, registers, (void *)(i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	cr_assert_eq(map_count(common, MIB, MAP_IS_SHARED), 0, "everything has gone back");
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(common[i], (uint8_t)(i * 11), "byte %zu", i);
	detach();
}

/* ---- fork ---- */

/* Runs `child` in a child process. Returns its result. */
static int
forked(int (*child)(void *arg), void *arg)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(child(arg));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "the child was killed by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* The child has the parent's content at first, and then its own writes. */
static int
looks_and_writes(void *arg)
{
	uint8_t *p = arg;
	struct saker_pd *more;

	for (size_t i = 0; i < 3 * MIB; i++)
		if (p[i] != (uint8_t)(i * 3))
			return 1;
	memset(p, 0xee, 3 * MIB);
	if (map_count(p, 3 * MIB, MAP_IS_SHARED) != 0)
		return 2;
	if (saker_pd_create(s, &more) != -EPIPE)
		return 3;
	saker_close(s);
	for (size_t i = 0; i < 3 * MIB; i++)
		if (p[i] != 0xee)
			return 4;
	free(malloc(100000));
	return 0;
}

static int
stores(void *arg)
{
	close(STDERR_FILENO); /* a sanitizer would report the intended fault */
	*(volatile uint8_t *)arg = 2;
	return 0;
}

Test(client_move_threads, a_fault_that_is_the_programs_own_still_ends_it, .timeout = 120)
{
	uint8_t *p = map_in_one_window(PAGE, 0);
	int status = 0;
	pid_t pid;

	attach("signal");
	p[0] = 1;
	saker_mr_destroy(reg(p, PAGE));
	mprotect(p, PAGE, PROT_READ);
	pid = fork();
	if (pid == 0)
		_exit(stores(p));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_neq(status, 0, "the store was not there");
	detach();
}

ParameterizedTestParameters(client_move_threads, fork)
{
	static char ways[3][8] = {"full", "user", "signal"};

	return cr_make_param_array(char[8], ways, 3);
}

ParameterizedTest(char (*way)[8], client_move_threads, fork, .timeout = 120)
{
	uint8_t *p = map_in_one_window(3 * MIB, 0), *theirs;
	struct saker_mr *mr, *inner;

	attach(*way);
	for (size_t i = 0; i < 3 * MIB; i++)
		p[i] = (uint8_t)(i * 3);
	mr = reg(p + 10, 3 * MIB - 20);
	inner = reg(p + MIB, MIB);
	theirs = k.region[0] + k.f.last.body.mr.extents[0].offset;
	cr_assert_eq(forked(looks_and_writes, p), 0, "%s", *way);
	for (size_t i = 0; i < 3 * MIB; i++)
		cr_assert_eq(p[i], (uint8_t)(i * 3), "%s: the parent's byte %zu", *way, i);
	p[MIB] = 0x77;
	cr_assert_eq(theirs[0], 0x77, "%s: still the engine's memory", *way);
	cr_assert_eq(forked(looks_and_writes, p), 1, "%s: a later child sees later content", *way);
	saker_mr_destroy(inner);
	saker_mr_destroy(mr);
	cr_assert_eq(map_count(p, 3 * MIB, MAP_IS_SHARED), 0);
	if (strcmp(*way, "signal") != 0)
		cr_assert_eq(map_count(p, 3 * MIB, MAP_IS_PRIVATE), 1,
			"%s: the program's mapping as it was", *way);
	cr_assert_eq(p[MIB], 0x77);
	cr_assert_eq(p[0], 0);
	cr_assert_eq(p[1], 3);
	detach();
}

/* Increments the first word of each page in turn. */
static void *
counts_pairs(void *arg)
{
	uint64_t *mem = arg;

	for (uint64_t n = 1; !stopped(); n++) {
		__atomic_store_n(&mem[0], n, __ATOMIC_RELEASE);
		__atomic_store_n(&mem[4 * MIB / sizeof(*mem) - 1], n, __ATOMIC_RELEASE);
	}
	return NULL;
}

static int
pair_fits(void *arg)
{
	uint64_t *mem = arg, a = mem[0], b = mem[4 * MIB / sizeof(*mem) - 1];

	return a == b || a == b + 1 ? 0 : 1;
}

Test(client_move_threads, a_child_sees_one_moment_of_its_parent, .timeout = 120)
{
	uint64_t *mem = map_in_one_window(4 * MIB, 0);
	struct saker_mr *mr;
	pthread_t t;

	attach("full");
	memset(mem, 0, 4 * MIB);
	mr = reg(mem, 4 * MIB);
	pthread_create(&t, NULL, counts_pairs, mem);
	for (int i = 0; i < ROUNDS; i++)
		cr_assert_eq(forked(pair_fits, mem), 0, "one end of the buffer is newer");
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	saker_mr_destroy(mr);
	detach();
}

static void *
forks(void *arg)
{
	while (!stopped())
		if (forked(pair_fits, arg) != 0)
			return arg;
	return NULL;
}

Test(client_move_threads, one_thread_forks_while_others_register, .timeout = 120)
{
	uint64_t *mem = map_in_one_window(4 * MIB, 0);
	pthread_t t[2], forker;
	void *wrong;

	attach("full");
	memset(mem, 0, 4 * MIB);
	common = map_in_one_window(MIB, 0);
	reg(mem, 4 * MIB);
	pthread_create(&forker, NULL, forks, mem);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, registers, (void *)(i + 1));
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(forker, &wrong);
	cr_assert_null(wrong);
	cr_assert_eq(map_count(common, MIB, MAP_IS_SHARED), 0);
	detach();
}
