/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of the handlers of fork(2): those of the program and of other libraries write in the
 * child when the pages that had moved are the child's own. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../lib/move/move.h"
#include "mappings.h"

static volatile uint8_t *mem;

static void
in_child(void)
{
	if (mem != NULL)
		mem[0] = 2;
}

/* The linker calls the constructors of this file before those of lib/move without a priority. */
__attribute__((constructor)) static void
watch(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

Test(move_fork_order, a_handler_in_the_child_writes_to_the_childs_memory)
{
	uint8_t *p = map_in_one_window(MV_PAGE, 0);
	int status = 1;
	pid_t pid;

	p[0] = 1;
	cr_assert_eq(mv_in(p, MV_PAGE, true), 0, "%s", mv_error());
	mem = p;
	pid = fork();
	if (pid == 0)
		_exit(mem[0] == 2 ? 0 : 1);
	cr_assert_gt(pid, 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "the child lost what the handler wrote");
	cr_assert_eq(p[0], 1, "the handler wrote to the parent's memory");
	mv_out(p, MV_PAGE);
}
