/* SPDX-License-Identifier: BSD-3-Clause */
/* What memory costs a process, and threads that write to memory all the time. */
#ifndef TEST_INTEROP_MEMORY_USE_H
#define TEST_INTEROP_MEMORY_USE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* KiB. */
struct use {
	unsigned long anon, shared; /* resident: RssAnon, RssShmem */
	unsigned long window;       /* pages in the memfds of moved memory, mapped or not */
	unsigned long total;        /* anon and window: each byte of both is a page of its own */
};

void use_now(struct use *u);

/* The most that was in use from one call to the other, and the time between them. */
struct use_peak {
	pthread_t thread;
	uint32_t stop;
	unsigned long most; /* use.total */
	double ms;
};
void use_watch(struct use_peak *p);
void use_watch_end(struct use_peak *p);

#define WRITERS 2

/* Each counts up a word of its own in each page, and keeps account. */
struct writers {
	uint8_t *mem;
	size_t len;
	uint32_t stop;
	unsigned long rounds; /* of the one that had fewer */
	struct writer {
		struct writers *all;
		pthread_t thread;
		unsigned number;
		uint32_t *own;
		unsigned long rounds;
	} w[WRITERS];
};
/* Fills the memory, whole pages, and begins. */
void writers_begin(struct writers *w, void *mem, size_t len);
/* Whether each write is there once, and nothing else has changed. */
bool writers_end(struct writers *w);

#endif
