/* SPDX-License-Identifier: BSD-3-Clause */
/* See memory_use.h. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/clock.h"
#include "memory_use.h"

#define PAGE 4096ul

static unsigned long
line_kib(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p != NULL ? strtoul(p + strlen(name), NULL, 10) : 0;
}

static unsigned long
windows_kib(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned long kib = 0;
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		char name[64] = "";
		struct stat st;

		if (readlinkat(dirfd(d), e->d_name, name, sizeof(name) - 1) > 0 &&
			strstr(name, "memfd:saker-window") != NULL &&
			fstatat(dirfd(d), e->d_name, &st, 0) == 0)
			kib += (unsigned long)st.st_blocks / 2;
	}
	if (d != NULL)
		closedir(d);
	return kib;
}

void
use_now(struct use *u)
{
	char text[4096] = "";
	int fd = open("/proc/self/status", O_RDONLY);

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		close(fd);
	u->anon = line_kib(text, "RssAnon:");
	u->shared = line_kib(text, "RssShmem:");
	u->window = windows_kib();
	u->total = u->anon + u->window;
}

static void *
watch_main(void *arg)
{
	struct use_peak *p = arg;
	struct use u;

	while (__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE) == 0) {
		use_now(&u);
		if (u.total > p->most)
			p->most = u.total;
		usleep(500);
	}
	return NULL;
}

void
use_watch(struct use_peak *p)
{
	p->stop = 0;
	p->most = 0;
	pthread_create(&p->thread, NULL, watch_main, p);
	p->ms = (double)now_ns() / 1e6;
}

void
use_watch_end(struct use_peak *p)
{
	p->ms = (double)now_ns() / 1e6 - p->ms;
	__atomic_store_n(&p->stop, 1, __ATOMIC_RELEASE);
	pthread_join(p->thread, NULL);
}

/* ---- Writers ---- */

static uint8_t *
page(const struct writers *w, size_t i)
{
	return (uint8_t *)(((uintptr_t)w->mem + PAGE - 1) & ~(PAGE - 1)) + i * PAGE;
}

static size_t
pages(const struct writers *w)
{
	return w->len / PAGE - 1;
}

static void *
writer_main(void *arg)
{
	struct writer *me = arg;
	size_t n = pages(me->all);

	for (;; me->rounds++)
		for (size_t i = 0; i < n; i++) {
			if (__atomic_load_n(&me->all->stop, __ATOMIC_RELAXED) != 0)
				return NULL;
			((uint32_t *)page(me->all, i))[me->number]++;
			me->own[i]++;
		}
}

void
writers_begin(struct writers *w, void *mem, size_t len)
{
	memset(w, 0, sizeof(*w));
	w->mem = mem;
	w->len = len;
	for (size_t i = 0; i < pages(w); i++) {
		memset(page(w, i), (int)(i % 251), PAGE);
		memset(page(w, i), 0, WRITERS * sizeof(uint32_t));
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		w->w[i].all = w;
		w->w[i].number = i;
		w->w[i].own = malloc(pages(w) * sizeof(uint32_t));
		memset(w->w[i].own, 0, pages(w) * sizeof(uint32_t));
		pthread_create(&w->w[i].thread, NULL, writer_main, &w->w[i]);
	}
}

bool
writers_end(struct writers *w)
{
	bool ok = true;

	__atomic_store_n(&w->stop, 1, __ATOMIC_RELEASE);
	w->rounds = ~0ul;
	for (unsigned i = 0; i < WRITERS; i++) {
		pthread_join(w->w[i].thread, NULL);
		if (w->w[i].rounds < w->rounds)
			w->rounds = w->w[i].rounds;
	}
	for (size_t i = 0; i < pages(w) && ok; i++) {
		const uint8_t *p = page(w, i);

		for (unsigned n = 0; n < WRITERS; n++)
			ok &= ((const uint32_t *)p)[n] == w->w[n].own[i];
		for (size_t k = WRITERS * sizeof(uint32_t); k < PAGE; k++)
			ok &= p[k] == (uint8_t)(i % 251);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		free(w->w[i].own);
	return ok;
}
