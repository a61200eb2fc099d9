/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers of SIGSEGV of the program, above and below that of lib/move. Each case runs in a child
 * process, which must end by the signal. SIGALRM ends one whose handlers call each other without
 * end, and counts show that no handler runs again and again.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "../../../lib/base/thread.h"
#include "../../../lib/move/move_priv.h"

#define PAGE     4096ul
#define SECONDS  20
#define HANDLERS 12
#define MANY     1000

static int *runs; /* shared with the child: the calls of each handler */
static struct sigaction below[HANDLERS];
static uint8_t *page;
static volatile int *volatile nowhere = (int *)16;

static void
make_runs(void)
{
	runs = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(runs, MAP_FAILED);
}

static void *
map_page(void)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

/* Moves memory, as far as the handler is concerned. */
static void
registration(void)
{
	uintptr_t at = (uintptr_t)map_page();

	if (mv_guard_begin(MV_GUARD_SIGNAL, at, PAGE, PROT_READ | PROT_WRITE, false) != 0)
		_exit(1);
	mv_guard_undo(MV_GUARD_SIGNAL, at, PAGE, PROT_READ | PROT_WRITE);
}

static void
crash(void)
{
	*nowhere = 1;
}

/* Runs `f` in a child process. Returns the signal that ended the child, or -1 after an exit. */
static int
signal_of(void (*f)(void))
{
	pid_t pid;
	int status;

	make_runs();
	pid = fork();
	if (pid == 0) {
		alarm(SECONDS);
		signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler of its own */
		f();
		_exit(0);
	}
	cr_assert_gt(pid, 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

static void
set(void (*handler)(int, siginfo_t *, void *), int flags, struct sigaction *old)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = flags};

	if (sigaction(SIGSEGV, &sa, old) < 0)
		_exit(1);
}

/* ---- Chains ---- */

/* Calls the action below handler `i`, as a program does that observes SA_SIGINFO. */
static void
chain(int i, int sig, siginfo_t *info, void *context)
{
	runs[i]++;
	if ((below[i].sa_flags & SA_SIGINFO) != 0)
		below[i].sa_sigaction(sig, info, context);
	else if (below[i].sa_handler == SIG_DFL)
		signal(sig, SIG_DFL);
	else
		below[i].sa_handler(sig);
}

#define CHAIN(i)                                                                                   \
	static void chain_##i(int sig, siginfo_t *info, void *context)                             \
	{                                                                                          \
		chain(i, sig, info, context);                                                      \
	}
CHAIN(0)
CHAIN(1)
CHAIN(2)
CHAIN(3)
CHAIN(4)
CHAIN(5)
CHAIN(6)
CHAIN(7)
CHAIN(8)
CHAIN(9)
CHAIN(10)
CHAIN(11)

static void (*const chains[HANDLERS])(int, siginfo_t *, void *) = {chain_0, chain_1, chain_2,
	chain_3, chain_4, chain_5, chain_6, chain_7, chain_8, chain_9, chain_10, chain_11};

static void
chained(void)
{
	registration();
	set(chain_0, SA_SIGINFO, &below[0]);
	registration();
	crash();
}

Test(move_segv, a_handler_between_two_registrations_runs_once)
{
	cr_assert_eq(signal_of(chained), SIGSEGV);
	cr_assert_eq(runs[0], 1);
}

static void
chained_to_handler(void)
{
	set(chain_1, SA_SIGINFO | SA_NODEFER, &below[1]);
	chained();
}

Test(move_segv, the_handler_before_the_first_registration_runs_last)
{
	cr_assert_eq(signal_of(chained_to_handler), SIGSEGV);
	cr_assert_eq(runs[0], 1);
	cr_assert_eq(runs[1], 1);
}

static void (*simple_below)(int);

static void
simple(int sig)
{
	runs[0]++;
	simple_below(sig);
}

static void
chained_without_info(void)
{
	registration();
	simple_below = signal(SIGSEGV, simple);
	registration();
	crash();
}

Test(move_segv, a_handler_without_siginfo_chains_as_well)
{
	cr_assert_eq(signal_of(chained_without_info), SIGSEGV);
	cr_assert_eq(runs[0], 1);
}

static void
chained_to_itself(void)
{
	registration();
	set(chain_0, SA_SIGINFO, &below[0]);
	registration();
	set(chain_0, SA_SIGINFO, &below[0]);
	registration();
	crash();
}

Test(move_segv, a_handler_that_is_installed_twice_runs_once)
{
	cr_assert_eq(signal_of(chained_to_itself), SIGSEGV);
	cr_assert_eq(runs[0], 1);
}

static void
many_chained(void)
{
	for (int i = 0; i < HANDLERS; i++) {
		registration();
		set(chains[i], SA_SIGINFO | SA_NODEFER, &below[i]);
	}
	registration();
	crash();
}

Test(move_segv, of_many_handlers_each_runs_at_most_once)
{
	cr_assert_eq(signal_of(many_chained), SIGSEGV);
	for (int i = 0; i < HANDLERS; i++)
		cr_assert_leq(runs[i], 1, "handler %d: %d", i, runs[i]);
	cr_assert_eq(runs[HANDLERS - 1], 1);
}

static void
restore(int sig, siginfo_t *info, void *context)
{
	runs[0]++;
	sigaction(SIGSEGV, &below[0], NULL);
}

static void
restored(void)
{
	registration();
	set(restore, SA_SIGINFO, &below[0]);
	registration();
	crash();
}

Test(move_segv, a_handler_that_restores_the_one_before_runs_once)
{
	cr_assert_eq(signal_of(restored), SIGSEGV);
	cr_assert_eq(runs[0], 1);
}

/* ---- The flags of the program's handler ---- */

static void
repair(int sig, siginfo_t *info, void *context)
{
	runs[0]++;
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

static void
touch_twice(int flags)
{
	set(repair, SA_SIGINFO | flags, NULL);
	registration();
	for (int i = 0; i < 2; i++) {
		page = map_page();
		mprotect(page, PAGE, PROT_NONE);
		*(volatile uint8_t *)page = 1;
	}
}

static void
touched(void)
{
	touch_twice(0);
}

static void
touched_with_resethand(void)
{
	touch_twice((int)SA_RESETHAND);
}

Test(move_segv, a_handler_with_resethand_runs_once)
{
	cr_assert_eq(signal_of(touched), -1);
	cr_assert_eq(runs[0], 2);
	cr_assert_eq(signal_of(touched_with_resethand), SIGSEGV);
	cr_assert_eq(runs[0], 1);
}

static void
crash_again(int sig, siginfo_t *info, void *context)
{
	runs[0]++;
	crash();
}

static void
crashed_in_handler(void)
{
	set(crash_again, SA_SIGINFO, NULL);
	registration();
	crash();
}

Test(move_segv, a_handler_that_crashes_runs_once)
{
	cr_assert_eq(signal_of(crashed_in_handler), SIGSEGV);
	cr_assert_eq(runs[0], 1);
}

static void
sees_mask(int sig, siginfo_t *info, void *context)
{
	sigset_t now;

	sigprocmask(SIG_BLOCK, NULL, &now);
	runs[0] += sigismember(&now, SIGUSR1) == 1;
	signal(sig, SIG_DFL);
}

static void
masked(void)
{
	struct sigaction sa = {.sa_sigaction = sees_mask, .sa_flags = SA_SIGINFO};

	sigaddset(&sa.sa_mask, SIGUSR1);
	sigaction(SIGSEGV, &sa, NULL);
	registration();
	crash();
}

Test(move_segv, a_handler_runs_with_its_mask)
{
	cr_assert_eq(signal_of(masked), SIGSEGV);
	cr_assert_eq(runs[0], 1);
}

/* ---- Leaving a handler ---- */

static sigjmp_buf back;

static void
leave(int sig, siginfo_t *info, void *context)
{
	runs[0]++;
	siglongjmp(back, 1);
}

static void
left(void)
{
	set(leave, SA_SIGINFO | SA_ONSTACK, NULL);
	registration();
	for (volatile int i = 0; i < MANY; i++)
		if (sigsetjmp(back, 1) == 0)
			crash();
}

static void
left_and_crashed(void)
{
	left();
	signal(SIGSEGV, SIG_DFL);
	registration();
	crash();
}

static void
left_on_stack(void)
{
	static uint8_t stack[65536];

	sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
	left_and_crashed();
}

Test(move_segv, a_handler_may_leave_by_siglongjmp)
{
	cr_assert_eq(signal_of(left_and_crashed), SIGSEGV);
	cr_assert_eq(runs[0], MANY);
	cr_assert_eq(signal_of(left_on_stack), SIGSEGV);
	cr_assert_eq(runs[0], MANY);
}

/* ---- Pages that move ---- */

static uint32_t stop;

static void *
writer(void *arg)
{
	left();
	while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0)
		__atomic_fetch_add((uint64_t *)page, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* The writer has left a handler. It then writes to a page that moves, below a handler that was
 * installed on top and passes the fault on. */
static void
moved(void)
{
	uintptr_t at = (uintptr_t)(page = map_page());
	pthread_t thread;

	set(leave, SA_SIGINFO, NULL);
	registration();
	if (pthread_create(&thread, NULL, writer, NULL) != 0)
		_exit(1);
	while (__atomic_load_n((uint64_t *)page, __ATOMIC_RELAXED) == 0)
		;
	set(chain_1, SA_SIGINFO, &below[1]);
	while (runs[1] == 0) {
		if (mv_guard_begin(MV_GUARD_SIGNAL, at, PAGE, PROT_READ | PROT_WRITE, false) != 0)
			_exit(1);
		set(chain_1, SA_SIGINFO, NULL);
		sched_yield();
		mv_guard_undo(MV_GUARD_SIGNAL, at, PAGE, PROT_READ | PROT_WRITE);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

Test(move_segv, a_handler_on_top_that_chains_reaches_the_guard)
{
	cr_assert_eq(signal_of(moved), -1);
	cr_assert_gt(runs[1], 0);
}

static void *
store(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		(*(volatile uint8_t *)arg)++;
	return NULL;
}

static void
library_writes(void)
{
	pthread_t thread;

	page = map_page();
	if (sk_thread_start(&thread, store, page) != 0)
		_exit(1);
	for (int i = 0; i < MANY; i++) {
		if (mv_guard_begin(MV_GUARD_SIGNAL, (uintptr_t)page, PAGE, PROT_READ | PROT_WRITE,
			    false) != 0)
			_exit(1);
		sched_yield();
		mv_guard_undo(MV_GUARD_SIGNAL, (uintptr_t)page, PAGE, PROT_READ | PROT_WRITE);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

Test(move_segv, a_thread_of_a_library_waits_as_those_of_the_program)
{
	cr_assert_eq(signal_of(library_writes), -1);
}

static void
count(int sig, siginfo_t *info, void *context)
{
	runs[0]++;
}

/* Delivers a fault of a write to `page`, which the kernel reported any time ago. */
static void
deliver(void)
{
	siginfo_t info = {.si_signo = SIGSEGV, .si_code = SEGV_ACCERR, .si_addr = page};
	ucontext_t context = {0};
	struct sigaction ours;

	sigaction(SIGSEGV, NULL, &ours);
	ours.sa_sigaction(SIGSEGV, &info, &context);
}

static void
delivered_late(void)
{
	set(count, SA_SIGINFO, NULL);
	page = map_page();
	for (int i = 0; i < MANY; i++)
		registration();
	deliver();
	runs[1] = runs[0];
	registration();
	deliver();
	runs[2] = runs[0];
	deliver();
}

Test(move_segv, a_fault_is_repeated_once_however_many_ranges_have_moved_since)
{
	cr_assert_eq(signal_of(delivered_late), -1);
	cr_assert_eq(runs[1], 0, "the program got a fault of a page that had moved");
	cr_assert_eq(runs[2], 0, "the program got a fault that a later move may have caused");
	cr_assert_eq(runs[0], 1, "the program did not get its own fault");
}

/* ---- Signals that a process sends ---- */

static void
sent(void)
{
	registration();
	kill(getpid(), SIGSEGV);
}

static void
sent_and_ignored(void)
{
	signal(SIGSEGV, SIG_IGN);
	registration();
	kill(getpid(), SIGSEGV);
	runs[0]++;
}

static void
crashed_and_ignored(void)
{
	sent_and_ignored();
	crash();
}

Test(move_segv, a_signal_that_a_process_sends_has_its_action)
{
	cr_assert_eq(signal_of(sent), SIGSEGV);
	cr_assert_eq(signal_of(sent_and_ignored), -1);
	cr_assert_eq(runs[0], 1);
	cr_assert_eq(signal_of(crashed_and_ignored), SIGSEGV, "a fault cannot be ignored");
}
