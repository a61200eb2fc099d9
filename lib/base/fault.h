/* SPDX-License-Identifier: BSD-3-Clause */
/* What a signal handler of ours does with a fault that is not about memory of ours. */
#ifndef SAKER_BASE_FAULT_H
#define SAKER_BASE_FAULT_H

#include <signal.h>

/* What would have happened without us; `before`: what sigaction(2) gave when ours was set. */
static inline void
sk_fault_pass_on(const struct sigaction *before, int sig, siginfo_t *info, void *context)
{
	if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(sig, info, context);
	else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
		before->sa_handler(sig);
	else
		signal(sig, SIG_DFL); /* the access is repeated and ends the process */
}

#endif
