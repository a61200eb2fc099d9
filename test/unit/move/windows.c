/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that moves into windows and back. test/unit/client/move.c has the rest: the same through
 * saker_mr_create(), with many kinds of mappings. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../lib/move/move.h"
#include "mappings.h"

#define PAGES 8
#define LEN   (PAGES * MV_PAGE)

static uint8_t *mem;

static void
setup(void)
{
	mem = map_in_one_window(LEN, 0);
	for (size_t i = 0; i < LEN; i++)
		mem[i] = (uint8_t)(i / MV_PAGE + i);
}

TestSuite(move_windows, .init = setup, .timeout = 60);

static void
check_content(const uint8_t *at)
{
	for (size_t i = 0; i < LEN; i++)
		cr_assert_eq(at[i], (uint8_t)(i / MV_PAGE + i), "byte %zu", i);
}

/* Reads `mem` through the memfd of its window. */
static void
read_window(uint8_t out[LEN])
{
	uint64_t off, part;
	unsigned window = mv_extent(mem, LEN, &off, &part);

	cr_assert_eq(part, LEN);
	cr_assert_eq(off, (uintptr_t)mem % MV_WINDOW);
	cr_assert_eq(pread(mv_window_fd(window), out, LEN, (off_t)off), (ssize_t)LEN);
}

Test(move_windows, pages_stand_at_their_offset_in_the_windows_memfd)
{
	static uint8_t seen[LEN];

	cr_assert_eq(mv_in(mem, LEN, true), 0, "%s", mv_error());
	check_content(mem);
	read_window(seen);
	check_content(seen);
	mem[3] = 0xee;
	read_window(seen);
	cr_assert_eq(seen[3], 0xee, "a store is not in the memfd");
	mv_out(mem, LEN);
}

Test(move_windows, what_another_process_writes_comes_back_with_the_pages)
{
	uint64_t off, part;
	unsigned window;

	cr_assert_eq(mv_in(mem, LEN, true), 0, "%s", mv_error());
	window = mv_extent(mem, LEN, &off, &part);
	cr_assert_eq(pwrite(mv_window_fd(window), "peer", 4, (off_t)off + 100), 4);
	mv_out(mem, LEN);
	cr_assert_eq(map_count(mem, LEN, MAP_IS_SHARED), 0);
	cr_assert_arr_eq(mem + 100, "peer", 4);
	memset(mem, 0, LEN);
	cr_assert_eq(pread(mv_window_fd(window), mem, 1, (off_t)off + 100), 1);
	cr_assert_eq(mem[0], 0, "the memfd still has the pages");
}

Test(move_windows, pages_go_back_with_their_last_hold)
{
	cr_assert_eq(mv_in(mem, LEN, true), 0, "%s", mv_error());
	cr_assert_eq(mv_in(mem + MV_PAGE, MV_PAGE, false), 0, "%s", mv_error());
	mv_out(mem, LEN);
	cr_assert_eq(map_count(mem, MV_PAGE, MAP_IS_SHARED), 0);
	cr_assert_eq(map_count(mem + MV_PAGE, MV_PAGE, MAP_IS_SHARED), 1);
	mv_out(mem + MV_PAGE, MV_PAGE);
	cr_assert_eq(map_count(mem, LEN, MAP_IS_SHARED), 0);
	check_content(mem);
}

Test(move_windows, an_extent_ends_at_the_border_of_windows)
{
	const uint8_t *last = mem - (uintptr_t)mem % MV_WINDOW + MV_WINDOW - MV_PAGE;
	uint8_t *p = mmap((void *)(uintptr_t)last, 2 * MV_PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	uint64_t off, part;
	unsigned window;

	if (p == MAP_FAILED)
		cr_skip("the border is in use");
	cr_assert_eq(mv_in(p, 2 * MV_PAGE, true), 0, "%s", mv_error());
	window = mv_extent(p, 2 * MV_PAGE, &off, &part);
	cr_assert_eq(off, MV_WINDOW - MV_PAGE);
	cr_assert_eq(part, MV_PAGE);
	cr_assert_neq(mv_extent(p + MV_PAGE, MV_PAGE, &off, &part), window);
	cr_assert_eq(off, 0);
	cr_assert_eq(part, MV_PAGE);
	mv_out(p, 2 * MV_PAGE);
}

Test(move_windows, a_refusal_has_an_error_and_a_sentence)
{
	uint8_t *shared =
		mmap(NULL, MV_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_eq(mv_in(shared, MV_PAGE, true), -EOPNOTSUPP);
	cr_assert_not_null(strstr(mv_error(), "MAP_SHARED"), "%s", mv_error());
	munmap(shared, MV_PAGE);
	cr_assert_eq(mv_in(shared, MV_PAGE, true), -EFAULT);
	cr_assert_not_null(strstr(mv_error(), "no memory"), "%s", mv_error());
	cr_assert_eq(mprotect(mem, LEN, PROT_READ), 0);
	cr_assert_eq(mv_in(mem, LEN, true), -EACCES);
	cr_assert_not_null(strstr(mv_error(), "read-only"), "%s", mv_error());
	cr_assert_eq(map_count(mem, LEN, MAP_IS_SHARED), 0);
	check_content(mem);
}

/* ---- fork(2) ---- */

static uint8_t seen_by_child[LEN];
static int children;

static void
on_child(void)
{
	children++;
	memcpy(seen_by_child, mem, LEN);
}

Test(move_windows, a_child_has_its_own_pages_before_the_callers_function)
{
	pid_t pid;
	int status;

	mv_on_child(on_child);
	cr_assert_eq(mv_in(mem, LEN, true), 0, "%s", mv_error());
	pid = fork();
	if (pid == 0) {
		bool own = map_count(mem, LEN, MAP_IS_SHARED) == 0;

		mem[0] = 0xaa;
		_exit(children == 1 && own && seen_by_child[1] == mem[1] ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	cr_assert_eq(children, 0, "the parent called the child's function");
	check_content(mem);
	mv_out(mem, LEN);
}

/* Opens descriptors until the process has no free one. Returns the last one. */
static int
open_all(void)
{
	const struct rlimit few = {.rlim_cur = 64, .rlim_max = 64};
	int fd, last = -1;

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((fd = dup(0)) >= 0)
		last = fd;
	cr_assert_eq(errno, EMFILE);
	cr_assert_geq(last, 0);
	return last;
}

Test(move_windows, a_child_has_its_own_pages_when_the_process_has_no_free_descriptor)
{
	int last, status;
	pid_t pid;

	cr_assert_eq(mv_in(mem, LEN, true), 0, "%s", mv_error());
	last = open_all();
	for (int i = 0; i < 2; i++) {
		pid = fork();
		if (pid == 0) {
			bool own;

			close(last);
			own = map_count(mem, LEN, MAP_IS_SHARED) == 0;
			mem[0]++;
			_exit(own && mem[0] == 1 ? 0 : 1);
		}
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert_eq(status, 0, "%#x", status);
	}
	check_content(mem);
	close(last);
	cr_assert_eq(map_count(mem, LEN, MAP_IS_SHARED), 1);
	mv_out(mem, LEN);
	cr_assert_eq(map_count(mem, LEN, MAP_IS_SHARED), 0);
}
