/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The SIGBUS handler and its table of guarded mappings. The handler may run on any thread at any
 * time, so it takes no lock and calls no function except mmap(2). eng_guard() publishes an entry by
 * writing its state last; eng_unguard() frees it when no thread accesses the mapping any more.
 */
#include "sigbus.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "../../base/fault.h"
#include "../engine.h"

#define SIGBUS_GUARDS 65536

enum guard_state { GUARD_FREE, GUARD_TAKEN, GUARD_SET };

static struct guard {
	uint32_t state; /* atomic, enum guard_state */
	uintptr_t base;
	size_t len;
	bool *flag;
} guards[SIGBUS_GUARDS];

static uint32_t guards_used; /* atomic; entries from this one on have never been in use */
static uint32_t mended;      /* atomic; faults that the handler repaired */
static uint32_t installed;   /* atomic */
static struct sigaction before;

static const struct guard *
sigbus_find(uintptr_t addr)
{
	uint32_t n = __atomic_load_n(&guards_used, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++) {
		const struct guard *g = &guards[i];

		if (__atomic_load_n(&g->state, __ATOMIC_ACQUIRE) == GUARD_SET && addr >= g->base &&
			addr - g->base < g->len)
			return g;
	}
	return NULL;
}

static void
on_sigbus(int sig, siginfo_t *info, void *context)
{
	const struct guard *g = sigbus_find((uintptr_t)info->si_addr);
	int saved = errno;
	void *p;

	if (g == NULL) {
		sk_fault_pass_on(&before, sig, info, context);
		return;
	}
	p = mmap((void *)g->base, g->len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		sk_fault_pass_on(&before, sig, info, context);
		return;
	}
	__atomic_store_n(g->flag, true, __ATOMIC_RELEASE);
	__atomic_fetch_add(&mended, 1, __ATOMIC_RELEASE);
	errno = saved;
}

int
eng_sigbus_install(void)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_RESTART};

	if (__atomic_exchange_n(&installed, 1, __ATOMIC_ACQ_REL))
		return 0;
	sigemptyset(&sa.sa_mask);
	return sigaction(SIGBUS, &sa, &before) < 0 ? -errno : 0;
}

/* Makes the handler search entry `i`, too. */
static void
raise_used(uint32_t i)
{
	uint32_t n = __atomic_load_n(&guards_used, __ATOMIC_RELAXED);

	while (n <= i && !__atomic_compare_exchange_n(&guards_used, &n, i + 1, false,
				 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

int
eng_guard(void *base, size_t len, bool *flag)
{
	int rc = eng_sigbus_install();

	for (uint32_t i = 0; rc == 0 && i < SIGBUS_GUARDS; i++) {
		struct guard *g = &guards[i];
		uint32_t state = GUARD_FREE;

		if (!__atomic_compare_exchange_n(&g->state, &state, GUARD_TAKEN, false,
			    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		g->base = (uintptr_t)base;
		g->len = len;
		g->flag = flag;
		__atomic_store_n(&g->state, GUARD_SET, __ATOMIC_RELEASE);
		raise_used(i);
		return (int)i;
	}
	return rc < 0 ? rc : -ENOSPC;
}

void
eng_unguard(int guard)
{
	if (guard >= 0)
		__atomic_store_n(&guards[guard].state, GUARD_FREE, __ATOMIC_RELEASE);
}

uint32_t
eng_sigbus_count(void)
{
	return __atomic_load_n(&mended, __ATOMIC_ACQUIRE);
}
