/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handler of SIGSEGV, and the handlers of the program below it. A program may install a handler
 * at any time, and that handler may pass a fault on to the one before, which then is ours. The next
 * move of memory installs ours again on top. Two rules prevent that the handlers call each other
 * without end:
 *
 * - Each installation on top of another handler is a level with an entry point of its own. A
 *   program that passes a fault on to a level, or makes that level the handler again, reaches the
 *   handler below that level.
 * - While a fault is passed on, the thread notes which levels it has passed. It passes each only
 *   once, and after the lowest one the fault takes the default action.
 *
 * A handler of the program runs as the kernel would run it: with its mask, once only where it has
 * SA_RESETHAND, and not again while it runs, unless it has SA_NODEFER. SIGSEGV itself stays
 * unblocked, because the handler may write to pages that move. MARK is blocked in its place: a
 * signal that glibc uses internally, and that programs cannot block. sigsetjmp(3) saves and
 * siglongjmp(3) restores it as any other.
 */
#include <errno.h>
#include <string.h>
#include <ucontext.h>

#include "../base/fault.h"
#include "move_priv.h"
#include "sys_priv.h"

#define LEVELS 8
#define MARK   32 /* SIGCANCEL of glibc */

#define BIT(sig) (1ull << ((sig)-1))

static struct level {
	struct sigaction before;
	uint32_t spent; /* atomic: `before` has SA_RESETHAND and has run */
} levels[LEVELS];
static unsigned nlevels;
static bool (*segv_ours)(const siginfo_t *info);

/* The fault that the thread passes on. It holds while MARK is blocked; without that, after a
 * siglongjmp(3), it is obsolete. */
static __thread struct pass {
	siginfo_t *info;
	void *context;
	uint8_t passed; /* bit i: level i */
	bool nodefer;   /* MARK is not blocked */
} pass __attribute__((tls_model("initial-exec")));

static uint64_t
segv_mask(int how, uint64_t set)
{
	uint64_t old = 0;

	mv_sys(SYS_rt_sigprocmask, (uint64_t)how, (uintptr_t)&set, (uintptr_t)&old, 8, 0, 0);
	return old;
}

/* Returns whether the entry with `info` belongs to the fault that the thread passes on. */
static bool
pass_holds(const siginfo_t *info)
{
	if (pass.info == NULL)
		return false;
	return pass.nodefer ? info == pass.info : (segv_mask(SIG_BLOCK, 0) & BIT(MARK)) != 0;
}

/* Runs the program's handler of a level. */
static void
handler_run(int sig, struct level *l)
{
	const struct sigaction *sa = &l->before;
	uint64_t mask, old;

	if (!sk_fault_is_handler(sa) ||
		((sa->sa_flags & SA_RESETHAND) != 0 &&
			__atomic_exchange_n(&l->spent, 1, __ATOMIC_RELAXED) != 0)) {
		sk_fault_default(sa, sig, pass.info);
		return;
	}
	memcpy(&mask, &sa->sa_mask, sizeof(mask));
	mask &= ~BIT(SIGSEGV);
	pass.nodefer = (sa->sa_flags & SA_NODEFER) != 0;
	if (!pass.nodefer)
		mask |= BIT(MARK);
	old = segv_mask(SIG_BLOCK, mask);
	/* As the kernel does on x86-64, this call passes all three arguments to each handler. */
	sa->sa_sigaction(sig, pass.info, pass.context);
	segv_mask(SIG_SETMASK, old);
}

/* Passes the thread's fault to the first level, from `level` down, that has not had it. */
static void
segv_pass(int sig, unsigned level)
{
	const struct sigaction none = {.sa_handler = SIG_DFL};
	bool nodefer = pass.nodefer;

	for (int i = (int)level; i >= 0; i--) {
		if ((pass.passed & 1u << i) != 0)
			continue;
		pass.passed |= (uint8_t)(1u << i);
		handler_run(sig, &levels[i]);
		pass.nodefer = nodefer;
		return;
	}
	sk_fault_default(&none, sig, pass.info);
}

/* Handles a signal that entered at a level. `frame`: the frame address of the entry point. */
static void
segv_enter(unsigned level, int sig, siginfo_t *info, void *context, const uint8_t *frame)
{
	/* The kernel puts the context behind the return address. */
	bool kernel = context == frame + 2 * sizeof(uintptr_t);
	struct pass outer;

	if (!kernel && pass_holds(info)) {
		/* A handler of the program calls the one before, possibly without `info`. */
		segv_pass(sig, level);
		return;
	}
	if (segv_ours(info))
		return;
	if (kernel && (((ucontext_t *)context)->uc_sigmask.__val[0] & BIT(MARK)) != 0) {
		/* A fault within a handler that the kernel would have blocked */
		sk_fault_default(&(struct sigaction){.sa_handler = SIG_DFL}, sig, info);
		return;
	}
	outer = pass;
	pass = (struct pass){.info = info, .context = context};
	segv_pass(sig, level);
	pass = outer;
}

#define ENTRY(n)                                                                                   \
	static void on_segv_##n(int sig, siginfo_t *info, void *context)                           \
	{                                                                                          \
		segv_enter(n, sig, info, context, __builtin_frame_address(0));                     \
	}
ENTRY(0)
ENTRY(1)
ENTRY(2)
ENTRY(3)
ENTRY(4)
ENTRY(5)
ENTRY(6)
ENTRY(7)

static void (*const entries[LEVELS])(int, siginfo_t *, void *) = {
	on_segv_0, on_segv_1, on_segv_2, on_segv_3, on_segv_4, on_segv_5, on_segv_6, on_segv_7};

/* Returns whether `now` is one of the entry points. */
static bool
is_entry(const struct sigaction *now)
{
	bool is = false;

	for (unsigned i = 0; i < LEVELS; i++)
		is |= (now->sa_flags & SA_SIGINFO) != 0 && now->sa_sigaction == entries[i];
	return is;
}

/* Returns the level on top of a handler: the one that it has already, a new one, or the highest. */
static unsigned
level_for(const struct sigaction *now)
{
	for (unsigned i = 0; i < nlevels; i++)
		if (levels[i].before.sa_sigaction == now->sa_sigaction)
			return i;
	return nlevels < LEVELS ? nlevels++ : LEVELS - 1;
}

void
mv_segv_install(bool (*ours)(const siginfo_t *info))
{
	struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK}, now;
	unsigned level;

	if (sigaction(SIGSEGV, NULL, &now) < 0 || is_entry(&now))
		return;
	segv_ours = ours;
	level = level_for(&now);
	levels[level].before = now;
	__atomic_store_n(&levels[level].spent, 0, __ATOMIC_RELAXED);
	sigemptyset(&sa.sa_mask);
	sa.sa_flags |= now.sa_flags & SA_RESTART;
	sa.sa_sigaction = entries[level];
	sigaction(SIGSEGV, &sa, NULL);
}
