/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a client removes while the engine uses it: the access reads zeros, the client is
 * marked, and no other client is affected. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../lib/base/probe.h"
#include "../../../lib/engine/common/sigbus.h"
#include "../../../lib/engine/engine.h"

#define LEN 65536u

static int
file(void)
{
	int fd = memfd_create("m", MFD_ALLOW_SEALING);

	cr_assert_eq(ftruncate(fd, LEN), 0);
	return fd;
}

Test(engine_sigbus, truncated_memory_reads_as_zeros_and_marks_only_its_client)
{
	int fd = file(), other = file(), g, h;
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint8_t *q = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
	bool bad = false, other_bad = false;

	cr_assert_eq(eng_sigbus_install(), 0);
	g = eng_guard(p, LEN, &bad);
	h = eng_guard(q, LEN, &other_bad);
	cr_assert_neq(g, h);
	memset(p, 0xaa, LEN);
	memset(q, 0xbb, LEN);
	cr_assert_eq(ftruncate(fd, 4096), 0);
	/* Without an access, the removal is not detected. */
	cr_assert_eq(__atomic_load_n(&p[10], __ATOMIC_RELAXED), 0xaa);
	cr_assert_not(bad);
	cr_assert_eq(__atomic_load_n(&p[8192], __ATOMIC_RELAXED), 0);
	cr_assert(bad);
	cr_assert_not(other_bad);
	cr_assert_eq(eng_sigbus_count(), 1);
	/* Writes succeed, too, and the whole mapping is one again. */
	for (unsigned i = 0; i < LEN; i += 4096)
		p[i + 7] = 1;
	cr_assert_eq(eng_sigbus_count(), 1);
	cr_assert_eq(q[LEN - 1], 0xbb);
	eng_unguard(g);
	eng_unguard(h);
}

Test(engine_sigbus, a_system_call_into_such_memory_fails_and_does_not_kill)
{
	int fd = file(), pipefd[2], g;
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool bad = false;

	cr_assert_eq(eng_sigbus_install(), 0);
	g = eng_guard(p, LEN, &bad);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(pipe(pipefd), 0);
	cr_assert_eq(write(pipefd[1], p, 16), -1);
	cr_assert_not(bad);
	eng_unguard(g);
}

Test(engine_sigbus, a_guard_that_was_withdrawn_is_used_again)
{
	int first, fd = file();
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool bad = false, newer = false;

	cr_assert_eq(eng_sigbus_install(), 0);
	first = eng_guard(p, LEN, &bad);
	eng_unguard(first);
	cr_assert_eq(eng_guard(p, LEN, &newer), first);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(__atomic_load_n(&p[0], __ATOMIC_RELAXED), 0);
	cr_assert_not(bad);
	cr_assert(newer);
}

Test(engine_sigbus, memory_that_is_nobodys_ends_the_process, .signal = SIGBUS)
{
	int fd = file();
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	/* A sanitizer's handler would report the signal and exit. */
	signal(SIGBUS, SIG_DFL);
	cr_assert_eq(eng_sigbus_install(), 0);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(__atomic_load_n(&p[0], __ATOMIC_RELAXED), 1);
}

/* ---- Watched memory ---- */

#define HUGE (2u << 20)

/* A watched mapping of `npages` pages without content. */
struct watched {
	int fd, guard;
	uint8_t *mem;
	size_t page, len;
	bool dead;
};

/* Returns false when the system has no such pages. */
static bool
watch(struct watched *w, unsigned flags, size_t page, size_t npages)
{
	if (eng_watch_permitted() < 0)
		cr_skip_test("userfaultfd is not permitted");
	*w = (struct watched){.page = page, .len = page * npages};
	w->fd = memfd_create("w", MFD_CLOEXEC | flags);
	if (w->fd < 0 || ftruncate(w->fd, (off_t)w->len) < 0)
		return false;
	w->mem = mmap(NULL, w->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, w->fd, 0);
	if (w->mem == MAP_FAILED)
		return false;
	w->guard = eng_guard(w->mem, w->len, &w->dead);
	cr_assert_geq(w->guard, 0);
	cr_assert_eq(eng_watch(w->guard, w->len, page), 0);
	return true;
}

static void
unwatch(struct watched *w)
{
	eng_unguard(w->guard);
	munmap(w->mem, w->len);
	close(w->fd);
}

static void
fetch(const uint8_t *at, size_t len)
{
	eng_fetch(eng_guard_name(at), at, len);
}

static void
punch(const struct watched *w)
{
	cr_assert_eq(
		fallocate(w->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)w->len), 0);
}

/* A request may outlast its region, and a region of another client may follow at its address. */
Test(engine_sigbus, a_request_of_a_mapping_that_has_gone_fetches_nothing)
{
	struct watched w;
	uint64_t gone;

	cr_assert(watch(&w, 0, 4096, 4));
	gone = eng_guard_name(w.mem);
	cr_assert_neq(gone, 0);
	eng_unguard(w.guard);
	cr_assert_eq(eng_guard_name(w.mem), 0);
	w.guard = eng_guard(w.mem, w.len, &w.dead);
	cr_assert_eq(eng_watch(w.guard, w.len, 4096), 0);
	eng_fetch(gone, w.mem, 1);
	cr_assert_not(sk_probe(w.mem));
	fetch(w.mem, 1);
	cr_assert(sk_probe(w.mem));
	unwatch(&w);
}

/* Checks holes in memory with pages of one size: probed, fetched, punched, fetched again. */
static void
holes_are_fetched(unsigned flags, size_t page)
{
	struct watched w;

	if (!watch(&w, flags, page, 4))
		cr_skip_test("no pages of %zu bytes", page);
	cr_assert_not(sk_probe(w.mem));
	fetch(w.mem + 5, 1);
	if (w.dead)
		cr_skip_test("no free pages of %zu bytes", page);
	cr_assert(sk_probe(w.mem) && sk_probe(w.mem + page - 1));
	cr_assert_not(sk_probe(w.mem + page), "no more than was requested");
	w.mem[5] = 9;
	punch(&w);
	cr_assert_not(sk_probe(w.mem + 5));
	fetch(w.mem + 5, page);
	cr_assert_eq(w.mem[5], 0);
	fetch(w.mem + 5, page); /* the page is present */
	cr_assert_not(w.dead);
	unwatch(&w);
}

Test(engine_sigbus, a_small_hole_is_fetched_and_never_allocated_by_a_probe)
{
	holes_are_fetched(0, 4096);
}

Test(engine_sigbus, a_huge_hole_is_fetched_and_never_allocated_by_a_probe)
{
	holes_are_fetched(MFD_HUGETLB | MFD_HUGE_2MB, HUGE);
}

Test(engine_sigbus, a_page_that_its_client_has_touched_is_present)
{
	struct watched w;

	cr_assert(watch(&w, 0, 4096, 4));
	cr_assert_eq(pwrite(w.fd, "x", 1, 4096), 1);
	cr_assert(sk_probe(w.mem + 4096));
	fetch(w.mem, w.len); /* fills the others, and leaves this one alone */
	cr_assert(w.mem[4096] == 'x' && w.mem[0] == 0 && w.mem[3 * 4096] == 0);
	unwatch(&w);
}

Test(engine_sigbus, a_small_page_that_is_removed_behind_the_probe_reads_as_zeros)
{
	struct watched w;

	cr_assert(watch(&w, 0, 4096, 2));
	fetch(w.mem, w.len);
	w.mem[0] = w.mem[4096] = 7;
	punch(&w);
	cr_assert_eq(__atomic_load_n(&w.mem[0], __ATOMIC_RELAXED), 0);
	cr_assert_not(w.dead);
	cr_assert_not(sk_probe(w.mem + 4096));
	unwatch(&w);
}

Test(engine_sigbus, a_client_that_removes_many_small_pages_behind_the_probe_is_ended)
{
	struct watched w;
	unsigned n = 0;

	cr_assert(watch(&w, 0, 4096, 2));
	for (; n < 100000 && !w.dead; n++) {
		cr_assert_eq(__atomic_load_n(&w.mem[0], __ATOMIC_RELAXED), 0);
		punch(&w);
	}
	cr_assert(w.dead);
	cr_assert_gt(n, 128, "after %u pages", n);
	unwatch(&w);
}

Test(engine_sigbus, a_client_that_removes_a_huge_page_behind_the_probe_is_ended)
{
	struct watched w;

	if (!watch(&w, MFD_HUGETLB | MFD_HUGE_2MB, HUGE, 1))
		cr_skip_test("no huge pages");
	fetch(w.mem, 1);
	if (w.dead)
		cr_skip_test("no free huge pages");
	punch(&w);
	cr_assert_eq(__atomic_load_n(&w.mem[0], __ATOMIC_RELAXED), 0);
	cr_assert(w.dead);
	unwatch(&w);
}

Test(engine_sigbus, a_client_that_removes_a_page_of_its_rings_is_ended)
{
	struct watched w;

	cr_assert(watch(&w, 0, 4096, 2));
	fetch(w.mem, w.len);
	cr_assert_eq(eng_watch(w.guard, w.len, 0), 0);
	cr_assert_eq(__atomic_load_n(&w.mem[0], __ATOMIC_RELAXED), 0);
	cr_assert_not(w.dead);
	punch(&w);
	cr_assert_eq(__atomic_load_n(&w.mem[0], __ATOMIC_RELAXED), 0);
	cr_assert(w.dead);
	unwatch(&w);
}

/* An object of the program's has no seal: its owner may truncate it at any time. */
static void
truncation_ends(unsigned flags, size_t page)
{
	struct watched w;

	if (!watch(&w, flags, page, 4))
		cr_skip_test("no pages of %zu bytes", page);
	fetch(w.mem, 1);
	if (w.dead)
		cr_skip_test("no free pages of %zu bytes", page);
	cr_assert_eq(ftruncate(w.fd, (off_t)page), 0);
	cr_assert(sk_probe(w.mem) && !sk_probe(w.mem + page));
	fetch(w.mem + page, 1);
	cr_assert(w.dead, "nothing can be fetched there");
	cr_assert(sk_probe(w.mem + page), "zero pages are in its place");
	cr_assert_eq(w.mem[page], 0);
	unwatch(&w);
}

Test(engine_sigbus, a_client_that_truncates_its_object_is_ended)
{
	truncation_ends(0, 4096);
}

Test(engine_sigbus, a_client_that_truncates_its_object_on_huge_pages_is_ended)
{
	truncation_ends(MFD_HUGETLB | MFD_HUGE_2MB, HUGE);
}

Test(engine_sigbus, a_client_without_memory_for_its_pages_is_ended)
{
	uint32_t before = eng_sigbus_count();
	struct watched w;

	/* Pages of 1 GiB are reserved at boot, if at all. */
	if (!watch(&w, MFD_HUGETLB | MFD_HUGE_1GB, 1u << 30, 1))
		cr_skip_test("no pages of 1 GiB");
	cr_assert_not(sk_probe(w.mem));
	fetch(w.mem, 1);
	if (!w.dead)
		cr_skip_test("this machine has free pages of 1 GiB");
	cr_assert_eq(eng_sigbus_count(), before + 1);
	cr_assert(sk_probe(w.mem), "zero pages are in its place");
	unwatch(&w);
}
