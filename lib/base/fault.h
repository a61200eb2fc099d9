/* SPDX-License-Identifier: BSD-3-Clause */
/* The action of our signal handlers for a fault outside our memory. */
#ifndef SAKER_BASE_FAULT_H
#define SAKER_BASE_FAULT_H

#include <signal.h>

/* Runs the action that the signal had before our handler. `before` is the result of sigaction(2)
 * when our handler was installed. */
static inline void
sk_fault_pass_on(const struct sigaction *before, int sig, siginfo_t *info, void *context)
{
	if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(sig, info, context);
	else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
		before->sa_handler(sig);
	else
		signal(sig, SIG_DFL); /* the processor repeats the access, which ends the process */
}

#endif
