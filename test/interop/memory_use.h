/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory use of a process, and threads that write to memory all the time. */
#ifndef TEST_INTEROP_MEMORY_USE_H
#define TEST_INTEROP_MEMORY_USE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All values are in KiB. */
struct use {
	unsigned long anon, shared; /* resident: RssAnon, RssShmem */
	unsigned long window;       /* pages in the memfds of moved memory, mapped or not */
	unsigned long total;        /* anon and window: no page is counted in both */
};

void use_now(struct use *u);

/* The highest memory use between two calls, and the time between them. */
struct use_peak {
	pthread_t thread;
	uint32_t stop;
	unsigned long most; /* the highest use.total */
	double ms;
};
void use_watch(struct use_peak *p);
void use_watch_end(struct use_peak *p);

#define WRITERS 2

/* WRITERS threads. Each increments its own word in each page, and counts its rounds. */
struct writers {
	uint8_t *mem;
	size_t len;
	uint32_t stop;
	unsigned long rounds; /* of the thread that completed the fewest */
	struct writer {
		struct writers *all;
		pthread_t thread;
		unsigned number;
		uint32_t *own;
		unsigned long rounds;
	} w[WRITERS];
};
/* Fills the memory (whole pages) and starts the threads. */
void writers_begin(struct writers *w, void *mem, size_t len);
/* Stops the threads. Returns whether each write took effect once and no other byte changed. */
bool writers_end(struct writers *w);

#endif
