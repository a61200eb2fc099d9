/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory whose pages are missing until a test provides them: a mapping of a file that is too short.
 * A probe of a missing page fails; any other access ends the program.
 */
#ifndef TEST_ABSENT_H
#define TEST_ABSENT_H

#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "../../lib/base/probe.h"
#include "need.h"

struct absent {
	int fd;
	uint8_t *mem;
	size_t len;
};

static inline void
absent_signal(int sig, siginfo_t *info, void *context)
{
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	uintptr_t landing = sk_probe_landing((uintptr_t)*pc);

	if (landing == 0)
		abort();
	*pc = (greg_t)landing;
}

/* Creates `len` bytes, whole pages, none of which is present. */
static inline void
absent_init(struct absent *a, size_t len)
{
	struct sigaction sa = {.sa_sigaction = absent_signal, .sa_flags = SA_SIGINFO};

	sigemptyset(&sa.sa_mask);
	need(sigaction(SIGBUS, &sa, NULL) == 0);
	a->fd = memfd_create("absent", 0);
	a->len = len;
	a->mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
	need(a->mem != MAP_FAILED);
}

/* Provides the first `len` bytes, all 0. */
static inline void
absent_provide(struct absent *a, size_t len)
{
	need(ftruncate(a->fd, (off_t)len) == 0);
}

static inline void
absent_fini(struct absent *a)
{
	munmap(a->mem, a->len);
	close(a->fd);
}

#endif
