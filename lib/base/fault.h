/* SPDX-License-Identifier: BSD-3-Clause */
/* The action of our signal handlers for a fault outside our memory. */
#ifndef SAKER_BASE_FAULT_H
#define SAKER_BASE_FAULT_H

#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns whether the action is a handler. */
static inline bool
sk_fault_is_handler(const struct sigaction *sa)
{
	return (sa->sa_flags & SA_SIGINFO) != 0 ||
	       (sa->sa_handler != SIG_DFL && sa->sa_handler != SIG_IGN);
}

/* Takes the action of the kernel for a signal without a handler, or whose handler is spent. A
 * process cannot ignore a fault, but it can ignore the signal that a process sent. After the return
 * the processor repeats the access, which ends the process; a signal that no access raised is
 * raised again. */
static inline void
sk_fault_default(const struct sigaction *before, int sig, const siginfo_t *info)
{
	bool sent = info->si_code <= 0 || (sig == SIGBUS && info->si_code == BUS_MCEERR_AO);

	if (sent && (before->sa_flags & SA_SIGINFO) == 0 && before->sa_handler == SIG_IGN)
		return;
	signal(sig, SIG_DFL);
	if (sent)
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), sig);
}

/* Runs the action that the signal had before our handler. `before` is the result of sigaction(2)
 * when our handler was installed. */
static inline void
sk_fault_pass_on(const struct sigaction *before, int sig, siginfo_t *info, void *context)
{
	/* As the kernel does on x86-64, this call passes all three arguments to each handler. */
	if (sk_fault_is_handler(before))
		before->sa_sigaction(sig, info, context);
	else
		sk_fault_default(before, sig, info);
}

#endif
