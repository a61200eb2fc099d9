/* SPDX-License-Identifier: BSD-3-Clause */
/* See row.h. */
#include "row.h"

#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../lib/engine/common/sigbus.h"
#include "../../../lib/engine/control/core/core.h"
#include "../../../lib/move/move.h"
#include "../engine/served.h"
#include "mappings.h"

#define TRIES 20000 /* of 1 ms, for a condition that another thread makes true */

uint8_t row_model[LARGE + SMALL];

/* ---- Parts ---- */

/* Returns the mapping that contains `at`. */
static struct mv_vma
mapping_of(const uint8_t *at)
{
	struct mv_vma v;
	bool found = false;

	mv_lock();
	cr_assert_eq(mv_maps_load(), 0, "%s", mv_error());
	for (size_t pos = 0; !found && mv_maps_next(&pos, &v);)
		found = v.start <= (uintptr_t)at && v.end > (uintptr_t)at;
	mv_unlock();
	cr_assert(found);
	return v;
}

int
part_open(const struct part *p)
{
	struct mv_vma v;
	char path[80];
	int fd;

	if (p->fd >= 0)
		return fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
	v = mapping_of(p->at);
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", v.start, v.end);
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s: %s: %s", p->kind->name, path, strerror(errno));
	return fd;
}

void
part_object(struct part *p)
{
	struct mv_vma v = mapping_of(p->at);

	p->dev = v.dev;
	p->ino = v.ino;
}

unsigned
part_holders(const struct part *p)
{
	DIR *d = opendir("/proc/self/fd");
	struct mv_vma v;
	struct stat st;
	unsigned n = 0;

	cr_assert_not_null(d);
	for (const struct dirent *e; (e = readdir(d)) != NULL;)
		n += fstatat(dirfd(d), e->d_name, &st, 0) == 0 && st.st_dev == p->dev &&
		     st.st_ino == p->ino;
	closedir(d);
	mv_lock();
	cr_assert_eq(mv_maps_load(), 0, "%s", mv_error());
	for (size_t pos = 0; mv_maps_next(&pos, &v);)
		n += v.dev == p->dev && v.ino == p->ino;
	mv_unlock();
	return n;
}

void
part_has_holders(const struct part *p, unsigned n)
{
	for (unsigned i = 0; i < TRIES && part_holders(p) != n; i++)
		usleep(1000);
	cr_assert_eq(part_holders(p), n, "%s: %u hold the object, and not %u", p->kind->name,
		part_holders(p), n);
}

static void
part_make(struct part *p, const struct kind *k, uint8_t *at)
{
	int fd;

	*p = (struct part){.kind = k, .at = at, .fd = k->map(at, k->len)};
	if (k->how != STAYS)
		return;
	fd = part_open(p);
	p->view = mmap(NULL, k->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(p->view, MAP_FAILED, "%s", strerror(errno));
	close(fd);
}

/* ---- Rows ---- */

void
row_set(size_t from, size_t to, unsigned salt)
{
	for (size_t i = from; i < to; i++)
		row_model[i] = (uint8_t)(i * 7 + i / PAGE + salt);
}

void
row_make(struct row *r, const struct kind *a, const struct kind *b, unsigned salt)
{
	size_t len = a->len + (b != NULL ? b->len : 0);
	uint8_t *room = map_in_one_window(len + HUGE, MAP_NORESERVE);
	uint8_t *at = room + (-(uintptr_t)room & (HUGE - 1));

	cr_assert_leq(len, sizeof(row_model));
	*r = (struct row){.at = at, .len = len, .nparts = b != NULL ? 2 : 1};
	snprintf(r->name, sizeof(r->name), "%s%s%s", a->name, b != NULL ? " beside " : "",
		b != NULL ? b->name : "");
	part_make(&r->part[0], a, at);
	if (b != NULL)
		part_make(&r->part[1], b, at + a->len);
	if (at != room)
		munmap(room, (size_t)(at - room));
	munmap(at + len, (size_t)(room + HUGE - at));
	row_set(0, len, salt);
	memcpy(at, row_model, len);
}

void
row_unmap(struct row *r)
{
	for (struct part *p = r->part; p < r->part + r->nparts; p++) {
		munmap(p->at, p->kind->len);
		if (p->view != NULL)
			munmap(p->view, p->kind->len);
		if (p->fd >= 0)
			close(p->fd);
	}
}

void
row_check(const struct row *r)
{
	cr_assert_eq(memcmp(r->at, row_model, r->len), 0, "%s: the program's content", r->name);
	for (unsigned i = 0; i < r->nparts; i++) {
		const struct part *p = &r->part[i];

		cr_assert(p->view == NULL || memcmp(p->view, p->at, p->kind->len) == 0,
			"%s: the memory is no longer shared", r->name);
	}
}

/* ---- Programs ---- */

static struct served served;

void
ends_start(void)
{
	served_start(&served);
}

void
ends_stop(void)
{
	served_end(&served);
}

void
end_attach(struct end *e, const char *name)
{
	static unsigned ends;

	snprintf(e->name, sizeof(e->name), "%s-%u", name, ends++);
	cr_assert_eq(saker_open(served.path, e->name, &e->s), 0, "%s", saker_error());
	cr_assert_eq(saker_pd_create(e->s, &e->pd), 0, "%s", saker_error());
}

void
ends_are(unsigned n)
{
	struct eng_totals t = {0};

	for (unsigned i = 0; i < TRIES; i++) {
		eng_control_totals(served.s->control, &t);
		if (t.clients == n)
			return;
		usleep(1000);
	}
	cr_assert_fail("%u programs are attached, and not %u", t.clients, n);
}

/* Looks in the table of places, since the control stage's thread moves the clients of its lists. */
static const struct ctl_client *
client_of(const struct end *e)
{
	const struct eng_control *c = served.s->control;

	for (unsigned i = 0; i < c->cfg->limits.clients; i++) {
		const struct ctl_client *cl = __atomic_load_n(&c->clients[i], __ATOMIC_ACQUIRE);

		if (cl != NULL && strcmp(cl->eng.name, e->name) == 0)
			return cl;
	}
	cr_assert_fail("%s is not attached", e->name);
	return NULL;
}

bool
end_is_marked(const struct end *e)
{
	return __atomic_load_n(&client_of(e)->eng.dead, __ATOMIC_ACQUIRE);
}

uint64_t
ends_marked(void)
{
	return script_counter(served.s, ENG_CLIENT_SIGBUS);
}

void
ends_in_use(bool on)
{
	__atomic_store_n(&served.s->reader_busy, on, __ATOMIC_SEQ_CST);
}

/* ---- Registrations, and what peers do ---- */

struct saker_mr *
row_register(const struct row *r, const struct end *e)
{
	const struct ctl_client *cl;
	struct saker_mr *mr;

	cr_assert_eq(saker_mr_create(e->pd, r->at + EDGE, r->len - 2 * EDGE, ACCESS, &mr), 0,
		"%s: %s", r->name, saker_error());
	cl = client_of(e);
	for (unsigned i = SHM_HOME + 1; i < SHM_MAX_REGIONS && eng_watch_permitted() == 0; i++) {
		const struct eng_region *region = &cl->map[i];

		if (cl->region[i].base != NULL) /* otherwise a thread may be unmapping it */
			cr_assert_eq(eng_watch(region->guard, region->size, region->page), 0, "%s",
				r->name);
	}
	return mr;
}

void
row_deregister(const struct row *r, struct saker_mr *mr)
{
	uint32_t stag = saker_mr_stag(mr);

	cr_assert_eq(saker_mr_destroy(mr), 0, "%s: %s", r->name, saker_error());
	cr_assert_null(rd_mr_lookup(served.s->mrs, stag), "%s: peers have access", r->name);
}

/* Returns the engine's registration, after it has fetched the missing pages of a range. */
static const struct rd_mr *
ready(const struct saker_mr *mr, const uint8_t *at, size_t len)
{
	const struct rd_mr *m = rd_mr_lookup(served.s->mrs, saker_mr_stag(mr));
	uint64_t addr = (uintptr_t)at, run;
	const uint8_t *missing;

	cr_assert(m != NULL && (m->access & ACCESS) == ACCESS);
	cr_assert(addr >= m->base && addr + len <= m->base + m->len);
	for (; (missing = rd_mr_missing(m, &addr, len, &run)) != NULL; addr = (uintptr_t)at)
		eng_fetch(eng_guard_name(missing), missing, run);
	return m;
}

void
peer_writes(const struct saker_mr *mr, const uint8_t *at, const void *from, size_t len)
{
	rd_mr_write(ready(mr, at, len), (uintptr_t)at, from, len);
}

uint8_t
peer_reads(const struct saker_mr *mr, const uint8_t *at)
{
	uint8_t byte;

	rd_mr_read(ready(mr, at, 1), (uintptr_t)at, &byte, 1);
	return byte;
}

void
peer_checks(const struct row *r, const struct saker_mr *mr)
{
	static uint8_t seen[sizeof(row_model)];
	const uint8_t *from = r->at + EDGE;
	size_t len = r->len - 2 * EDGE;

	rd_mr_read(ready(mr, from, len), (uintptr_t)from, seen, len);
	cr_assert_eq(memcmp(seen, row_model + EDGE, len), 0, "%s: the peer's content", r->name);
}
