/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each kind of memory with each operation: registered, written by a peer, forked, unmapped,
 * truncated, deregistered. A test is one operation on all kinds: on each of them alone, and on each
 * beside another one in one registration.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../lib/move/move.h"
#include "../../support/huge_pages.h"
#include "mappings.h"
#include "row.h"

#define SECONDS 60 /* after which a child ends by itself */
#define PAGES   16 /* huge pages that a test may use at a time, with those that are being freed */

TestSuite(move_kinds, .init = ends_start, .fini = ends_stop, .timeout = 120);

static struct end owner;

/* Performs an operation for a program that has just attached. */
static void
once(void (*op)(const struct kind *a, const struct kind *b), const struct kind *a,
	const struct kind *b)
{
	end_attach(&owner, "owner");
	op(a, b);
	saker_close(owner.s);
	ends_are(0);
}

/* test/unit/client/share.c has what is refused to a program without them. */
static void
need_rights(void)
{
	if (geteuid() != 0)
		cr_skip_test("without rights, memory that has neither a name nor a descriptor "
			     "cannot be registered");
}

static void
each_small(void (*op)(const struct kind *a, const struct kind *b))
{
	const size_t n = KINDS_SMALL;

	need_rights();
	for (size_t i = 0; i < n; i++) {
		once(op, &kinds_small[i], NULL);
		once(op, &kinds_small[i], &kinds_small[(i + 1) % n]);
	}
}

static void
each_large(void (*op)(const struct kind *a, const struct kind *b))
{
	need_rights();
	huge_pages_need(PAGES, HUGE >> 10);
	for (size_t i = 0; i < KINDS_LARGE; i++) {
		once(op, &kinds_large[i], NULL);
		once(op, &kinds_large[i], &kinds_small[i]);
	}
}

/* Checks the mapping that the program has while the memory is registered. */
static void
check_registered(const struct part *p)
{
	cr_assert_eq(map_count(p->at, p->kind->len, MAP_IS_SHARED), 1, "%s", p->kind->name);
	cr_assert_eq(map_count(p->at, p->kind->len, MAP_IS_PRIVATE), 0, "%s", p->kind->name);
}

/* ---- Register ---- */

static void
registers(const struct kind *a, const struct kind *b)
{
	struct saker_mr *mr, *again;
	struct row r;

	row_make(&r, a, b, 1);
	mr = row_register(&r, &owner);
	row_check(&r);
	peer_checks(&r, mr);
	for (unsigned i = 0; i < r.nparts; i++)
		check_registered(&r.part[i]);
	again = row_register(&r, &owner);
	peer_checks(&r, again);
	row_deregister(&r, mr);
	peer_checks(&r, again);
	for (unsigned i = 0; i < r.nparts; i++)
		check_registered(&r.part[i]);
	row_deregister(&r, again);
	row_check(&r);
	row_unmap(&r);
}

Test(move_kinds, each_kind_is_registered_with_its_content)
{
	each_small(registers);
}

Test(move_kinds, each_kind_on_huge_pages_is_registered_with_its_content)
{
	each_large(registers);
}

/* ---- Write by a peer ---- */

/* A process that shares the memory writes to it. */
static void
other_writes(const struct row *r)
{
	for (unsigned i = 0; i < r->nparts; i++) {
		const struct part *p = &r->part[i];

		if (p->view == NULL)
			continue;
		p->view[PAGE] ^= 0xff;
		row_model[(size_t)(p->at - r->at) + PAGE] ^= 0xff;
	}
}

static void
writes(const struct kind *a, const struct kind *b)
{
	struct saker_mr *mr;
	struct row r;
	char byte;

	row_make(&r, a, b, 1);
	mr = row_register(&r, &owner);
	row_set(EDGE, r.len - EDGE, 2);
	peer_writes(mr, r.at + EDGE, row_model + EDGE, r.len - 2 * EDGE);
	row_check(&r);
	row_set(0, r.len, 3);
	memcpy(r.at, row_model, r.len);
	peer_checks(&r, mr);
	row_check(&r);
	other_writes(&r);
	peer_checks(&r, mr);
	row_check(&r);
	/* A file has nothing of its private copy. */
	for (unsigned i = 0; i < r.nparts; i++)
		if (r.part[i].kind->how == MOVES && r.part[i].fd >= 0)
			cr_assert(pread(r.part[i].fd, &byte, 1, PAGE) == 1 && byte == 0);
	row_deregister(&r, mr);
	row_check(&r);
	row_unmap(&r);
}

Test(move_kinds, what_a_peer_writes_to_each_kind_the_program_reads_and_the_reverse)
{
	each_small(writes);
}

Test(move_kinds, what_a_peer_writes_to_each_kind_on_huge_pages_the_program_reads_and_the_reverse)
{
	each_large(writes);
}

/* ---- Fork ---- */

/* In each part: a byte that the child writes, and one that the peer writes during its life. */
#define OF_CHILD (PAGE + 100)
#define OF_PEER  (2 * PAGE + 200)

/* Returns 0, or the number of the check that fails. Allocates nothing: another thread of the parent
 * may have held a lock of the sanitizer. */
static int
child(const struct row *r, int from, int to)
{
	char c = 0;

	alarm(SECONDS);
	if (memcmp(r->at, row_model, r->len) != 0)
		return 1;
	for (unsigned i = 0; i < r->nparts; i++)
		r->part[i].at[OF_CHILD] ^= 0xff;
	if (write(to, &c, 1) != 1 || read(from, &c, 1) != 1)
		return 2;
	for (unsigned i = 0; i < r->nparts; i++) {
		const struct part *p = &r->part[i];
		size_t off = (size_t)(p->at - r->at);
		uint8_t change = p->kind->how == STAYS ? 0xff : 0;

		if ((p->at[OF_PEER] ^ row_model[off + OF_PEER]) != change)
			return 3;
		if ((p->at[OF_CHILD] ^ row_model[off + OF_CHILD]) != 0xff)
			return 4;
	}
	return 0;
}

/* The bytes that the child has written are the parent's, and the peer's, as far as the memory is
 * shared. */
static void
child_has_written(const struct row *r, const struct saker_mr *mr)
{
	for (unsigned i = 0; i < r->nparts; i++) {
		const struct part *p = &r->part[i];
		uint8_t *expect = &row_model[(size_t)(p->at - r->at) + OF_CHILD];

		if (p->kind->how == STAYS)
			*expect ^= 0xff;
	}
	row_check(r);
	peer_checks(r, mr);
}

static void
peer_writes_during_child(const struct row *r, const struct saker_mr *mr)
{
	for (unsigned i = 0; i < r->nparts; i++) {
		const struct part *p = &r->part[i];
		uint8_t *expect = &row_model[(size_t)(p->at - r->at) + OF_PEER];

		*expect ^= 0xff;
		peer_writes(mr, p->at + OF_PEER, expect, 1);
	}
	row_check(r);
}

static void
forks(const struct kind *a, const struct kind *b)
{
	int up[2], down[2], status;
	struct saker_mr *mr;
	struct row r;
	pid_t pid;
	char c;

	row_make(&r, a, b, 1);
	mr = row_register(&r, &owner);
	cr_assert(pipe(up) == 0 && pipe(down) == 0);
	pid = fork();
	if (pid == 0) {
		close(up[0]);
		close(down[1]);
		_exit(child(&r, down[0], up[1]));
	}
	cr_assert_gt(pid, 0);
	close(up[1]);
	close(down[0]);
	cr_assert_eq(read(up[0], &c, 1), 1, "%s: the child has other content", r.name);
	child_has_written(&r, mr);
	peer_writes_during_child(&r, mr);
	cr_assert_eq(write(down[1], "", 1), 1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "%s: the child's check %d", r.name, WEXITSTATUS(status));
	close(up[0]);
	close(down[1]);
	peer_checks(&r, mr);
	row_deregister(&r, mr);
	row_check(&r);
	row_unmap(&r);
}

Test(move_kinds, a_child_shares_each_kind_that_is_shared_and_has_a_copy_of_others)
{
	each_small(forks);
}

Test(move_kinds, a_child_shares_each_kind_on_huge_pages_that_is_shared_and_has_a_copy_of_others)
{
	each_large(forks);
}

/* ---- Unmap ---- */

/* The place of a moved part. */
struct place {
	unsigned window;
	uint64_t off, len;
};

static struct place
place_of(const struct part *p)
{
	struct place w;

	w.window = mv_extent(p->at, p->kind->len, &w.off, &w.len);
	cr_assert_eq(w.len, p->kind->len);
	return w;
}

static void
check_freed(const struct place *w, const char *name)
{
	off_t data = lseek(mv_window_fd(w->window), (off_t)w->off, SEEK_DATA);

	cr_assert(data < 0 || (uint64_t)data >= w->off + w->len, "%s: the window keeps it", name);
}

static void
unmaps(const struct kind *a, const struct kind *b)
{
	struct place place[2] = {{0}};
	struct row r, next;
	struct saker_mr *mr;

	row_make(&r, a, b, 1);
	mr = row_register(&r, &owner);
	for (unsigned i = 0; i < r.nparts; i++) {
		part_object(&r.part[i]);
		if (r.part[i].kind->how == MOVES)
			place[i] = place_of(&r.part[i]);
	}
	row_unmap(&r);
	peer_checks(&r, mr);
	row_set(EDGE, r.len - EDGE, 2);
	peer_writes(mr, r.at + EDGE, row_model + EDGE, r.len - 2 * EDGE);
	peer_checks(&r, mr);
	row_deregister(&r, mr);
	for (unsigned i = 0; i < r.nparts; i++) {
		if (r.part[i].kind->how == MOVES)
			check_freed(&place[i], r.name);
		else if (r.part[i].kind->how == STAYS)
			part_has_holders(&r.part[i], 0);
	}
	/* The same again, perhaps at the same addresses. It also closes the memfd that the library
	 * has kept for memory that BECOMES its own. */
	row_make(&next, a, b, 3);
	mr = row_register(&next, &owner);
	row_check(&next);
	peer_checks(&next, mr);
	for (unsigned i = 0; i < r.nparts; i++)
		if (r.part[i].kind->how == BECOMES)
			part_has_holders(&r.part[i], 0);
	row_deregister(&next, mr);
	row_unmap(&next);
}

Test(move_kinds, each_kind_is_the_peers_after_unmapping_until_it_is_deregistered)
{
	each_small(unmaps);
}

Test(move_kinds, each_kind_on_huge_pages_is_the_peers_after_unmapping_until_it_is_deregistered)
{
	each_large(unmaps);
}

/* ---- Truncate ---- */

/* Cuts the second half off. */
static void
truncate_part(const struct part *p)
{
	int fd = part_open(p), rc = ftruncate(fd, (off_t)(p->kind->len / 2)), err = errno;

	close(fd);
	if (p->kind->truncated == REFUSED)
		cr_assert(rc < 0 && err == EPERM, "%s: %d", p->kind->name, rc);
	else
		cr_assert_eq(rc, 0, "%s: %s", p->kind->name, strerror(err));
}

static void
peer_reaches(const struct part *p, size_t off, const struct saker_mr *mr, const char text[4])
{
	peer_writes(mr, p->at + off, text, 4);
	cr_assert_arr_eq(p->at + off, text, 4, "%s: the peer's %s", p->kind->name, text);
}

/* The engine survives an access behind the end, and removes the client. */
static void
owner_ends(const struct part *p, const struct saker_mr *mr)
{
	uint64_t before = ends_marked();
	struct saker_pd *pd;
	uint8_t byte;
	bool marked;

	ends_in_use(true);
	peer_writes(mr, p->at + p->kind->len - PAGE, "gone", 4);
	byte = peer_reads(mr, p->at + PAGE);
	marked = end_is_marked(&owner);
	ends_in_use(false);
	cr_assert(marked, "%s", p->kind->name);
	cr_assert_eq(byte, 0, "%s: zero pages are in its place", p->kind->name);
	ends_are(1);
	cr_assert_eq(ends_marked(), before + 1);
	cr_assert_lt(saker_pd_create(owner.s, &pd), 0);
}

/* Checks the first half of a part of a program that has detached. */
static void
check_given_back(const struct part *p)
{
	cr_assert_arr_eq(p->at + PAGE, "here", 4, "%s", p->kind->name);
	cr_assert_eq(
		map_count(p->at, PAGE, MAP_IS_SHARED), p->kind->how != MOVES, "%s", p->kind->name);
}

static void
truncates(const struct kind *a, const struct kind *b)
{
	struct saker_mr *mr, *theirs;
	const struct part *ends = NULL;
	struct end neighbour;
	struct row r, other;

	end_attach(&neighbour, "neighbour");
	row_make(&other, a, b, 1);
	theirs = row_register(&other, &neighbour);
	row_make(&r, a, b, 2);
	mr = row_register(&r, &owner);
	for (unsigned i = 0; i < r.nparts; i++)
		truncate_part(&r.part[i]);
	for (unsigned i = 0; i < r.nparts; i++)
		peer_reaches(&r.part[i], PAGE, mr, "here");
	for (unsigned i = 0; i < r.nparts; i++) {
		if (r.part[i].kind->truncated == ENDS)
			ends = &r.part[i];
		else
			peer_reaches(&r.part[i], SMALL - PAGE, mr, "safe");
	}
	cr_assert_not(end_is_marked(&owner), "%s: nothing behind an end was touched", r.name);
	if (ends != NULL)
		owner_ends(ends, mr);
	else
		row_deregister(&r, mr);
	saker_close(owner.s);
	owner.s = NULL;
	for (unsigned i = 0; i < r.nparts; i++)
		check_given_back(&r.part[i]);
	for (unsigned i = 0; i < other.nparts; i++)
		peer_reaches(&other.part[i], other.part[i].kind->len - PAGE, theirs, "fine");
	row_deregister(&other, theirs);
	saker_close(neighbour.s);
	row_unmap(&other);
	row_unmap(&r);
}

Test(move_kinds, truncating_each_kind_ends_at_most_its_owner)
{
	each_small(truncates);
}

Test(move_kinds, truncating_each_kind_on_huge_pages_ends_at_most_its_owner)
{
	each_large(truncates);
}

/* ---- Deregister ---- */

static void
deregisters(const struct kind *a, const struct kind *b)
{
	struct place place[2] = {{0}};
	unsigned before[2] = {0};
	struct saker_mr *mr;
	struct row r;

	row_make(&r, a, b, 1);
	for (unsigned i = 0; i < r.nparts; i++) {
		part_object(&r.part[i]);
		before[i] = part_holders(&r.part[i]);
	}
	mr = row_register(&r, &owner);
	for (unsigned i = 0; i < r.nparts; i++)
		if (r.part[i].kind->how == MOVES)
			place[i] = place_of(&r.part[i]);
	row_set(EDGE, r.len - EDGE, 2);
	peer_writes(mr, r.at + EDGE, row_model + EDGE, r.len - 2 * EDGE);
	row_deregister(&r, mr);
	row_check(&r);
	for (unsigned i = 0; i < r.nparts; i++) {
		const struct part *p = &r.part[i];

		if (p->kind->how == STAYS)
			part_has_holders(p, before[i]);
		if (p->kind->how == MOVES)
			check_freed(&place[i], r.name);
		cr_assert_eq(map_count(p->at, p->kind->len, MAP_IS_SHARED), p->kind->how != MOVES,
			"%s", r.name);
	}
	/* It can be registered again. */
	row_set(0, r.len, 3);
	memcpy(r.at, row_model, r.len);
	mr = row_register(&r, &owner);
	peer_checks(&r, mr);
	row_deregister(&r, mr);
	row_check(&r);
	row_unmap(&r);
}

Test(move_kinds, each_kind_has_its_content_and_its_nature_when_it_is_deregistered)
{
	each_small(deregisters);
}

Test(move_kinds, each_kind_on_huge_pages_has_its_content_and_its_nature_when_it_is_deregistered)
{
	each_large(deregisters);
}
