/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the registration of memory that a machine's program already has: its pages move into the
 * machine's shared memory, and back at deregistration. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "rig.h"

TestSuite(bar_move, .init = pair_eal, .timeout = 100);

#define PAGE   4096u
#define ACCESS (RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ)

static struct rig r;

/* Returns whether `p` is mapped to the machine's shared memory. */
static bool
is_moved(const void *p)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned long from, to;
	bool moved = false;

	while (fgets(line, sizeof(line), maps) != NULL)
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && (uintptr_t)p >= from &&
			(uintptr_t)p < to)
			moved = strstr(line, r.path) != NULL;
	fclose(maps);
	return moved;
}

static uint8_t *
own_memory(size_t len)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	for (size_t i = 0; i < len; i += 8)
		p[i] = (uint8_t)(i / 8 * 3 + 1);
	return p;
}

static void
is_intact(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i += 8)
		cr_assert_eq(p[i], (uint8_t)(i / 8 * 3 + 1), "at %zu", i);
}

Test(bar_move, a_peer_writes_to_it_and_it_comes_back)
{
	struct prog here, there;
	uint8_t *p = own_memory(RIG_BYTES), *kept;

	rig_start(&r);
	prog_open(&r, &here);
	prog_open_far(&r, &there);
	cr_assert_eq(saker_mr_destroy(here.mr), 0);
	saker_free(here.s, here.mem, RIG_BYTES);
	here.mem = p;
	cr_assert_eq(
		saker_mr_create(here.pd, p, RIG_BYTES, ACCESS, &here.mr), 0, "%s", saker_error());
	is_intact(p, RIG_BYTES);
	cr_assert(is_moved(p));
	prog_connect(&here, &there, PAIR_ADDR_B, RIG_PORT);
	prog_write(&there, &here, 3);
	prog_write(&here, &there, 3);
	kept = malloc(RIG_BYTES);
	memcpy(kept, p, RIG_BYTES);
	cr_assert_eq(saker_mr_destroy(here.mr), 0);
	cr_assert_not(is_moved(p));
	cr_assert_arr_eq(p, kept, RIG_BYTES);
	prog_close(&here);
	prog_close(&there);
	rig_end(&r);
}

Test(bar_move, pages_stay_as_long_as_a_client_holds_them)
{
	struct saker_mr *first, *second, *inner;
	uint8_t *p = own_memory(8 * PAGE);
	struct prog here;

	rig_start(&r);
	prog_open(&r, &here);
	cr_assert_eq(saker_mr_create(here.pd, p + 100, 3 * PAGE, ACCESS, &first), 0);
	cr_assert_eq(saker_mr_create(here.pd, p + 2 * PAGE, 5 * PAGE, ACCESS, &second), 0);
	cr_assert_eq(saker_mr_create(here.pd, p + 3 * PAGE + 8, 16, ACCESS, &inner), 0);
	is_intact(p, 8 * PAGE);
	cr_assert_not(is_moved(p + 7 * PAGE));
	cr_assert_eq(saker_mr_destroy(first), 0);
	cr_assert_not(is_moved(p));
	cr_assert(is_moved(p + 2 * PAGE));
	cr_assert_eq(saker_mr_destroy(second), 0);
	cr_assert_not(is_moved(p + 2 * PAGE));
	cr_assert(is_moved(p + 3 * PAGE));
	cr_assert_eq(saker_mr_destroy(inner), 0);
	cr_assert_not(is_moved(p + 3 * PAGE));
	is_intact(p, 8 * PAGE);
	prog_close(&here);
	rig_end(&r);
}

Test(bar_move, what_does_not_fit_or_cannot_move_is_refused_and_left_alone)
{
	size_t len = RIG_SIZE;
	uint8_t *p = own_memory(len), *stack = (uint8_t *)__builtin_frame_address(0);
	struct saker_mr *mr;
	struct prog here;

	rig_start(&r);
	prog_open(&r, &here);
	cr_assert_eq(saker_mr_create(here.pd, p, len, ACCESS, &mr), -ENOMEM);
	cr_assert_not_null(strstr(saker_error(), "left"), "%s", saker_error());
	cr_assert_not(is_moved(p));
	is_intact(p, len);
	cr_assert_lt(saker_mr_create(here.pd, stack, 64, ACCESS, &mr), 0);
	munmap(p, len);
	cr_assert_lt(saker_mr_create(here.pd, p, PAGE, ACCESS, &mr), 0);
	/* A refused registration takes no memory. */
	p = own_memory(RIG_BYTES);
	for (unsigned i = 0; i < 100; i++) {
		cr_assert_eq(saker_mr_create(here.pd, p, RIG_BYTES, ACCESS, &mr), 0, "%s",
			saker_error());
		cr_assert_eq(saker_mr_destroy(mr), 0);
	}
	is_intact(p, RIG_BYTES);
	prog_close(&here);
	rig_end(&r);
}

static bool stop_counting;

static void *
count_up(void *arg)
{
	volatile uint64_t *at = arg;
	uint64_t n = 0;

	while (!__atomic_load_n(&stop_counting, __ATOMIC_ACQUIRE))
		*at = ++n;
	return (void *)(uintptr_t)n;
}

/* Another thread writes during the move, and no store is lost. */
Test(bar_move, a_thread_that_writes_meanwhile_loses_nothing)
{
	uint8_t *p = own_memory(4 * PAGE);
	struct saker_mr *mr;
	struct prog here;
	pthread_t thread;
	void *last;

	rig_start(&r);
	prog_open(&r, &here);
	pthread_create(&thread, NULL, count_up, p + PAGE);
	for (unsigned i = 0; i < 50; i++) {
		cr_assert_eq(
			saker_mr_create(here.pd, p, 4 * PAGE, ACCESS, &mr), 0, "%s", saker_error());
		cr_assert_eq(saker_mr_destroy(mr), 0);
	}
	__atomic_store_n(&stop_counting, true, __ATOMIC_RELEASE);
	pthread_join(thread, &last);
	cr_assert_eq(*(uint64_t *)(p + PAGE), (uintptr_t)last);
	prog_close(&here);
	rig_end(&r);
}

Test(bar_move, a_child_has_pages_of_its_own)
{
	uint8_t *p = own_memory(4 * PAGE);
	struct saker_mr *mr;
	struct prog here;
	int status;
	pid_t pid;

	rig_start(&r);
	prog_open(&r, &here);
	cr_assert_eq(saker_mr_create(here.pd, p, 4 * PAGE, ACCESS, &mr), 0);
	pid = fork();
	if (pid == 0) {
		bool good = !is_moved(p) && p[0] == 1 && p[8] == 4;

		memset(p, 0xee, 4 * PAGE);
		_exit(good ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	is_intact(p, 4 * PAGE);
	cr_assert(is_moved(p));
	cr_assert_eq(saker_mr_destroy(mr), 0);
	is_intact(p, 4 * PAGE);
	prog_close(&here);
	rig_end(&r);
}

/* The memory of an attachment may lie on a page with a buffer of the program. */
Test(bar_move, a_child_leaves_an_attachment_on_moved_pages_to_its_parent)
{
	struct saker_mr *mr;
	struct prog here;
	uint8_t *p;
	int status;

	rig_start(&r);
	prog_open(&r, &here);
	p = (uint8_t *)here.s;
	cr_assert_eq(saker_mr_create(here.pd, p, 64, ACCESS, &mr), 0, "%s", saker_error());
	cr_assert(is_moved(p));
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			bool good = !is_moved(p);

			good = good && saker_mr_destroy(mr) == 0;
			_exit(good ? 0 : 1);
		}
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", status);
		cr_assert_not(saker_gone(here.s));
		cr_assert(is_moved(p));
	}
	cr_assert_eq(saker_mr_destroy(mr), 0, "%s", saker_error());
	cr_assert_not(is_moved(p));
	prog_close(&here);
	rig_end(&r);
}
