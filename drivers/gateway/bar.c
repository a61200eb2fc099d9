/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creates and maps the file behind a virtual machine's device, and writes its directory. Saker
 * reads each value that a guest writes there once and only compares it; offsets and sizes stay in
 * Saker's own memory. The directory and each home region begin on pages of their own (of the file's
 * page size), so that the SIGBUS handler can replace each of them separately.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bar.h"
#include "bar_priv.h"

#define FILE_MODE 0660
#define PAGE      4096ull

#define REFUSE(...) (snprintf(err, errlen, __VA_ARGS__), -EINVAL)

static int
config_check(const struct gw_bar_config *cfg, char *err, size_t errlen)
{
	if (cfg->size < GW_BAR_MIN || cfg->size > GW_BAR_MAX || (cfg->size & (cfg->size - 1)) != 0)
		return REFUSE("size=%llu is not a power of two within %llu..%llu bytes",
			(unsigned long long)cfg->size, GW_BAR_MIN, GW_BAR_MAX);
	if (cfg->slots < 1 || cfg->slots > SHM_BAR_SLOTS)
		return REFUSE("slots=%u is not within 1..%u", cfg->slots, SHM_BAR_SLOTS);
	if (cfg->timeout_ms < SHM_BAR_BEAT_MS || cfg->timeout_ms > 60000)
		return REFUSE(
			"timeout=%u is not within %u..60000 ms", cfg->timeout_ms, SHM_BAR_BEAT_MS);
	return 0;
}

/* Opens or creates the file, maps it, and stores its page size in *page. */
static int
file_open(
	struct gw_bar *b, const struct gw_bar_config *cfg, uint64_t *page, char *err, size_t errlen)
{
	struct stat st;

	b->fd = open(cfg->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	if (b->fd < 0 || fstat(b->fd, &st) < 0)
		return REFUSE("%s cannot be opened: %s", cfg->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return REFUSE("%s is not a regular file", cfg->path);
	if (flock(b->fd, LOCK_EX | LOCK_NB) < 0)
		return REFUSE("%s is in use by another saker process", cfg->path);
	if (st.st_size != 0 && (uint64_t)st.st_size != cfg->size)
		return REFUSE("%s has %llu bytes instead of %llu; remove it first", cfg->path,
			(unsigned long long)st.st_size, (unsigned long long)cfg->size);
	/* QEMU's group must be able to open a new file, whatever the umask is. */
	if (st.st_size == 0 &&
		(ftruncate(b->fd, (off_t)cfg->size) < 0 || fchmod(b->fd, FILE_MODE) < 0))
		return REFUSE("%s cannot be resized to %llu bytes: %s", cfg->path,
			(unsigned long long)cfg->size, strerror(errno));
	*page = (uint64_t)st.st_blksize > PAGE ? (uint64_t)st.st_blksize : PAGE;
	b->size = cfg->size;
	b->base = mmap(NULL, cfg->size, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (b->base != MAP_FAILED)
		return 0;
	b->base = NULL;
	return REFUSE("%s cannot be mapped: %s", cfg->path, strerror(errno));
}

/* Writes a directory without clients. */
static void
bar_write_directory(struct gw_bar *b, const struct gw_bar_config *cfg)
{
	struct shm_bar *d = b->dir;

	__atomic_store_n(&d->magic, 0, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < b->nslots; i++) {
		/* A client of an earlier saker process finds that its engine has gone. */
		struct shm_header *h = (struct shm_header *)b->slots[i].home;

		__atomic_store_n(&h->engine_alive, 0, __ATOMIC_RELEASE);
		h->magic = 0;
	}
	memset(d, 0, sizeof(*d));
	d->version = SHM_BAR_VERSION;
	d->nslots = b->nslots;
	d->size = cfg->size;
	d->slot_at = (uint64_t)(b->slots[0].home - b->base);
	d->slot_size = b->slot_size;
	d->timeout_ms = cfg->timeout_ms;
	__atomic_store_n(&d->magic, SHM_BAR_MAGIC, __ATOMIC_RELEASE);
}

static int
bar_start(struct gw_bar *b, const struct gw_bar_config *cfg, char *err, size_t errlen)
{
	uint64_t page;
	int rc = file_open(b, cfg, &page, err, errlen);

	if (rc < 0)
		return rc;
	b->dir = (struct shm_bar *)b->base;
	if (cfg->size < page * (1 + 2 * (uint64_t)cfg->slots))
		return REFUSE("size=%llu is too small for %u slots with pages of %llu bytes",
			(unsigned long long)cfg->size, cfg->slots, (unsigned long long)page);
	b->nslots = cfg->slots;
	b->slot_size = (cfg->size - page) / cfg->slots / page * page;
	b->mem_len = b->slot_size / GW_HOME_SHARE * (GW_HOME_SHARE - 1) / PAGE * PAGE;
	b->timeout_ns = (uint64_t)cfg->timeout_ms * 1000000;
	b->guard = eng_guard(b->base, page, &b->cut);
	rc = b->guard;
	for (unsigned i = 0; i < b->nslots; i++) {
		struct gw_slot *s = &b->slots[i];

		s->home = b->base + page + i * b->slot_size;
		s->client = s->wake = -1;
		s->guard = rc < 0 ? rc : eng_guard(s->home, b->slot_size, &b->cut);
		rc = s->guard;
	}
	if (rc < 0)
		return REFUSE("%s: this saker process maps too many regions already", cfg->path);
	bar_write_directory(b, cfg);
	return 0;
}

struct gw_bar *
gw_bar_create(struct eng *e, const struct gw_bar_config *cfg, char *err, size_t errlen)
{
	struct gw_bar *b;

	if (config_check(cfg, err, errlen) < 0)
		return NULL;
	b = calloc(1, sizeof(*b));
	if (b == NULL) {
		snprintf(err, errlen, "%s: out of memory", cfg->path);
		return NULL;
	}
	b->e = e;
	b->fd = b->guard = -1;
	if (bar_start(b, cfg, err, errlen) < 0) {
		gw_bar_destroy(b);
		return NULL;
	}
	return b;
}

void
gw_bar_destroy(struct gw_bar *b)
{
	if (b == NULL)
		return;
	if (b->guard >= 0)
		__atomic_store_n(&b->dir->magic, 0, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < b->nslots; i++)
		eng_unguard(b->slots[i].guard);
	eng_unguard(b->guard);
	if (b->base != NULL)
		munmap(b->base, b->size);
	if (b->fd >= 0)
		close(b->fd);
	free(b);
}

void
gw_bar_wakes(struct gw_bar *b, const int *wakes)
{
	for (unsigned i = 0; i < b->nslots; i++)
		b->slots[i].wake = wakes[i];
}

int
gw_bar_fd(const struct gw_bar *b)
{
	return b->fd;
}

void
gw_bar_view(const struct gw_bar *b, struct gw_bar_view *out)
{
	*out = (struct gw_bar_view){
		.slots = b->nslots,
		.clients = __atomic_load_n(&b->clients, __ATOMIC_RELAXED),
		.attached = __atomic_load_n(&b->attached, __ATOMIC_RELAXED),
		.timed_out = __atomic_load_n(&b->timed_out, __ATOMIC_RELAXED),
		.refused = __atomic_load_n(&b->refused, __ATOMIC_RELAXED),
		.dead = __atomic_load_n(&b->cut, __ATOMIC_RELAXED),
	};
}
