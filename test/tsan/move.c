/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that several threads register and deregister while others write to it, for
 * ThreadSanitizer: moved regions are counted, and each write must take effect once. Exits with
 * status 1 if one does not.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../lib/move/move.h"

#define PAGE     4096u
#define PAGES    300u
#define WRITERS  2
#define MOVERS   2
#define ROUNDS   150
#define DEADLINE 300 /* seconds; a healthy run takes a few */

static uint8_t *mem;
static uint32_t stop;

struct writer {
	pthread_t thread;
	unsigned number;
	uint32_t own[PAGES];
};

static void
need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "move: %s (%s)\n", what, mv_error());
	exit(1);
}

static uint32_t *
word(unsigned page, unsigned number)
{
	return (uint32_t *)(mem + (size_t)page * PAGE) + number;
}

static void *
writer_main(void *arg)
{
	struct writer *w = arg;

	while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0)
		for (unsigned i = 0; i < PAGES; i++) {
			(*word(i, w->number))++;
			w->own[i]++;
		}
	return NULL;
}

static void *
mover_main(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		size_t at = (size_t)rand_r(&seed) % (PAGES * PAGE / 2);
		size_t len = 1 + (size_t)rand_r(&seed) % (PAGES * PAGE / 2);

		need(mv_in(mem + at, len, true) == 0, "memory does not move");
		if (i % 3 == 0)
			usleep(100);
		mv_out(mem + at, len);
	}
	return arg;
}

int
main(void)
{
	static struct writer w[WRITERS];
	pthread_t t[MOVERS];

	alarm(DEADLINE);
	mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(mem != MAP_FAILED, "no memory");
	for (unsigned i = 0; i < WRITERS; i++) {
		w[i].number = i;
		pthread_create(&w[i].thread, NULL, writer_main, &w[i]);
	}
	for (uintptr_t i = 0; i < MOVERS; i++)
		pthread_create(&t[i], NULL, mover_main, (void *)(i + 1));
	for (unsigned i = 0; i < MOVERS; i++)
		pthread_join(t[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < WRITERS; i++) {
		pthread_join(w[i].thread, NULL);
		for (unsigned p = 0; p < PAGES; p++)
			need(*word(p, i) == w[i].own[p], "a write was lost or doubled");
	}
	printf("move: each write of %d threads landed once while %d threads moved its page\n",
		WRITERS, MOVERS);
	return 0;
}
