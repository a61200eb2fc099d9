/* SPDX-License-Identifier: BSD-3-Clause */
/* Registering memory that the program has allocated by itself: it moves, and moves back. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../lib/base/mem.h"
#include "fake_sock.h"
#include "../move/mappings.h"

#define PAGE   4096ul
#define MIB    (1ul << 20)
#define ACCESS (RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE)

static struct fake_sock k;
static struct saker *s;
static struct saker_pd *pd;

static void
setup(void)
{
	memset(&k, 0, sizeof(k));
	k.region_most = SHM_SPARSE_MAX;
	fake_sock_start(&k);
	cr_assert_eq(saker_open(k.path, "a test", &s), 0, "%s", saker_error());
	cr_assert_eq(saker_pd_create(s, &pd), 0);
}

static void
teardown(void)
{
	saker_close(s);
	fake_sock_stop(&k);
}

TestSuite(client_move, .init = setup, .fini = teardown, .timeout = 120);

static struct saker_mr *
reg(void *addr, size_t len)
{
	struct saker_mr *mr;

	cr_assert_eq(saker_mr_create(pd, addr, len, ACCESS, &mr), 0, "%s", saker_error());
	return mr;
}

static void
dereg(struct saker_mr *mr)
{
	cr_assert_eq(saker_mr_destroy(mr), 0, "%s", saker_error());
}

/* Returns private memory of `len` bytes, whose content depends on the offset. */
static uint8_t *
private_memory(size_t len)
{
	uint8_t *p = map_in_one_window(len, 0);

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7 + i / PAGE);
	return p;
}

static void
same(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		cr_assert_eq(p[i], (uint8_t)(i * 7 + i / PAGE), "byte %zu", i);
}

/* Returns where the engine has byte `at` of the last registration. */
static uint8_t *
engine_sees_at(size_t at)
{
	const struct shm_extent *e = k.f.last.body.mr.extents;

	for (uint32_t i = 0; i < k.f.last.body.mr.nextents; i++, e++) {
		if (at < e->len)
			return k.region[e->region - 11] + e->offset + at;
		at -= e->len;
	}
	cr_assert_fail("the registration is shorter");
	return NULL;
}

static uint8_t *
engine_sees(void)
{
	return engine_sees_at(0);
}

Test(client_move, registered_memory_is_the_engines_too_and_comes_back_with_its_content)
{
	const size_t len = 5 * MIB + 3 * PAGE;
	uint8_t *p = private_memory(len), *theirs;
	struct saker_mr *mr = reg(p, len);

	same(p, len);
	cr_assert_eq(k.f.last.body.mr.nextents, 1, "one extent, however large");
	cr_assert_eq(k.f.last.body.mr.extents[0].len, len);
	theirs = engine_sees();
	same(theirs, len);
	p[PAGE] = 1;
	cr_assert_eq(theirs[PAGE], 1);
	theirs[2 * MIB] = 2;
	cr_assert_eq(p[2 * MIB], 2);
	cr_assert(k.sealed);
	cr_assert_eq(map_count(p, len, MAP_IS_SHARED), 1);
	dereg(mr);
	cr_assert_eq(map_count(p, len, MAP_IS_SHARED), 0);
	cr_assert_eq(p[PAGE], 1);
	cr_assert_eq(p[2 * MIB], 2);
	p[PAGE] = (uint8_t)(PAGE * 7 + 1);
	p[2 * MIB] = (uint8_t)(2 * MIB * 7 + 512);
	same(p, len);
	cr_assert_eq(theirs[PAGE], 0, "the window's pages have gone back to the system");
}

Test(client_move, a_few_bytes_of_a_heap_block_take_their_whole_page_along)
{
	uint8_t *before = malloc(100), *p = malloc(100), *after = malloc(100);
	struct saker_mr *mr;

	memset(before, 1, 100);
	memset(p, 2, 100);
	memset(after, 3, 100);
	mr = reg(p, 100);
	cr_assert_eq(*engine_sees(), 2);
	cr_assert_eq(before[99], 1);
	cr_assert_eq(after[0], 3);
	/* The allocator continues to use the page's other blocks. */
	free(before);
	before = malloc(100);
	memset(before, 4, 100);
	free(after);
	dereg(mr);
	cr_assert_eq(p[0], 2);
	cr_assert_eq(p[99], 2);
	cr_assert_eq(before[0], 4);
	free(p);
	free(before);
}

static uint8_t in_bss[3 * PAGE];
static uint8_t in_data[3 * PAGE] = {1, 2, 3};

Test(client_move, static_arrays_can_be_registered)
{
	struct saker_mr *a, *b;

	in_bss[5] = 5;
	a = reg(in_bss, sizeof(in_bss));
	cr_assert_eq(engine_sees()[5], 5);
	b = reg(in_data, sizeof(in_data));
	cr_assert_eq(engine_sees()[1], 2);
	in_data[sizeof(in_data) - 1] = 9;
	cr_assert_eq(engine_sees()[sizeof(in_data) - 1], 9);
	dereg(a);
	dereg(b);
	cr_assert_eq(in_bss[5], 5);
	cr_assert_eq(in_data[1], 2);
	cr_assert_eq(in_data[sizeof(in_data) - 1], 9);
}

Test(client_move, what_is_registered_twice_goes_back_with_the_last_registration)
{
	const size_t len = 16 * PAGE;
	uint8_t *p = private_memory(len);
	struct saker_mr *all = reg(p, len), *again = reg(p, len),
			*inner = reg(p + 5 * PAGE + 100, 2 * PAGE);

	cr_assert_eq(k.regions, 1, "one window for all");
	dereg(all);
	cr_assert_eq(map_count(p, len, MAP_IS_SHARED), 1);
	dereg(again);
	cr_assert_eq(map_count(p, 5 * PAGE, MAP_IS_SHARED), 0);
	cr_assert_eq(map_count(p + 5 * PAGE, 3 * PAGE, MAP_IS_SHARED), 1, "the inner one's pages");
	cr_assert_eq(map_count(p + 8 * PAGE, 8 * PAGE, MAP_IS_SHARED), 0);
	same(p, len);
	dereg(inner);
	cr_assert_eq(map_count(p, len, MAP_IS_SHARED), 0);
	same(p, len);
}

Test(client_move, overlapping_and_touching_registrations_are_one_extent_each)
{
	const size_t len = 64 * PAGE;
	uint8_t *p = private_memory(len);
	struct saker_mr *mr[33];

	/* Every other pair of pages, the pairs between, and then everything at once. */
	for (int i = 0; i < 32; i++) {
		mr[i] = reg(p + ((size_t)i * 5 % 32) * 2 * PAGE, 2 * PAGE);
		cr_assert_eq(k.f.last.body.mr.nextents, 1);
	}
	mr[32] = reg(p + 17, len - 17);
	cr_assert_eq(k.f.last.body.mr.nextents, 1);
	cr_assert_eq(map_count(p, len, MAP_IS_SHARED), 1);
	for (int i = 0; i < 33; i++)
		dereg(mr[i]);
	cr_assert_eq(map_count(p, len, MAP_IS_SHARED), 0);
	same(p, len);
}

Test(client_move, the_mapping_that_comes_back_is_the_one_that_was_there)
{
	const size_t len = 64 * PAGE;
	uint8_t *p = private_memory(len), *q;

	for (int i = 0; i < 32; i++)
		dereg(reg(p + (size_t)i * 2 * PAGE, PAGE));
	cr_assert_eq(map_count(p, len, MAP_IS_PRIVATE), 1, "no seams are left");
	q = mremap(p, len, 4 * len, MREMAP_MAYMOVE);
	cr_assert_neq(q, MAP_FAILED, "a reallocation moves it");
	same(q, len);
	cr_assert_eq(madvise(q, PAGE, MADV_DONTNEED), 0);
	cr_assert_eq(q[1], 0, "pages that are given up come back as zeros");
}

#define SPARSE_LEN (512 * MIB)

static void
cost_nothing(uint8_t *p)
{
	struct saker_mr *mr;
	long before;

	p[100 * MIB] = 1;
	dereg(reg(p, SPARSE_LEN)); /* so that the library has allocated its own memory */
	before = status_kib("VmRSS");
	mr = reg(p, SPARSE_LEN);
	cr_assert_lt(status_kib("VmRSS") - before, 16384);
	cr_assert_eq(*engine_sees_at(100 * MIB), 1);
	cr_assert_eq(p[200 * MIB], 0);
	p[300 * MIB] = 3;
	cr_assert_eq(*engine_sees_at(300 * MIB), 3);
	dereg(mr);
	cr_assert_eq(p[100 * MIB], 1);
	cr_assert_eq(p[300 * MIB], 3);
	cr_assert_lt(status_kib("VmRSS") - before, 16384);
}

Test(client_move, pages_that_were_never_touched_cost_nothing)
{
	cost_nothing(map_in_one_window(SPARSE_LEN, MAP_NORESERVE));
}

Test(client_move, pages_that_were_never_touched_cost_nothing_across_the_border_of_windows)
{
	static const size_t before_border[] = {MIB, 99 * MIB, 101 * MIB, 301 * MIB};

	for (size_t i = 0; i < SK_ARRAY_LEN(before_border); i++) {
		uint8_t *at = (uint8_t *)(0x300000000000ul - before_border[i]);
		uint8_t *p = mmap(at, SPARSE_LEN, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

		cr_assert_eq(p, at);
		cost_nothing(p);
		munmap(p, SPARSE_LEN);
	}
}

Test(client_move, a_region_across_several_mappings_and_windows)
{
	const uintptr_t border = 0x300000000000;
	uint8_t *p = mmap((void *)(border - MIB), 2 * MIB, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	struct saker_mr *mr;

	cr_assert_eq((uintptr_t)p, border - MIB);
	for (size_t i = 0; i < 2 * MIB; i++)
		p[i] = (uint8_t)(i * 7 + i / PAGE);
	mprotect(p + 10 * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	mr = reg(p, 2 * MIB);
	cr_assert_eq(k.regions, 2);
	cr_assert_eq(k.f.last.body.mr.nextents, 2);
	cr_assert_eq(k.f.last.body.mr.extents[0].len, MIB);
	cr_assert_eq(k.f.last.body.mr.extents[1].offset, 0);
	same(p, 2 * MIB);
	dereg(mr);
	same(p, 2 * MIB);
	cr_assert_eq(map_count(p, 2 * MIB, MAP_IS_SHARED), 0);
	cr_assert_eq(map_count(p + 10 * PAGE, PAGE, MAP_IS_EXEC), 1, "rights are kept");
	cr_assert_eq(map_count(p + 11 * PAGE, PAGE, MAP_IS_EXEC), 0);
}

Test(client_move, huge_pages_may_lie_underneath)
{
	const size_t huge = 2 * MIB, len = 4 * huge;
	uint8_t *p = aligned_alloc(huge, len);
	struct saker_mr *mr, *rest;

	madvise(p, len, MADV_HUGEPAGE);
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7 + i / PAGE);
	mr = reg(p + huge / 2 + 10, huge);
	rest = reg(p, len);
	same(p, len);
	dereg(rest);
	same(p, len);
	cr_assert_eq(map_count(p, len, MAP_IS_SHARED), 1);
	dereg(mr);
	same(p, len);
	cr_assert_eq(map_count(p, len, MAP_IS_PRIVATE), 1, "no seams are left");
	free(p);
}

/* ---- What is refused ---- */

static void
refused(void *addr, size_t len, uint32_t access, int rc, const char *why)
{
	uint32_t seen = k.f.seen[SHM_MR_CREATE];
	struct saker_mr *mr;

	cr_assert_eq(saker_mr_create(pd, addr, len, access, &mr), rc, "%s", why);
	cr_assert_not_null(strstr(saker_error(), why), "'%s' should say '%s'", saker_error(), why);
	cr_assert_eq(k.f.seen[SHM_MR_CREATE], seen, "the engine was not asked");
}

Test(client_move, memory_that_is_not_there_is_refused_and_nothing_changes)
{
	uint8_t *p = private_memory(8 * PAGE);

	munmap(p + 4 * PAGE, PAGE);
	refused(p, 8 * PAGE, ACCESS, -EFAULT, "no memory");
	cr_assert_eq(map_count(p, 8 * PAGE, MAP_IS_SHARED), 0);
	same(p, 4 * PAGE);
	refused(NULL, 100, ACCESS, -EFAULT, "no memory");
	refused(p, SIZE_MAX, ACCESS, -EFAULT, "no memory");
	refused(p, SIZE_MAX - (uintptr_t)p, ACCESS, -EFAULT, "no memory");
}

static void *
sits_still(void *arg)
{
	uint8_t here[2 * PAGE];
	uint8_t **told = arg;

	memset(here, 1, sizeof(here));
	__atomic_store_n(told, here, __ATOMIC_RELEASE);
	while (__atomic_load_n(told, __ATOMIC_ACQUIRE) != NULL)
		usleep(1000);
	return NULL;
}

Test(client_move, stacks_are_refused)
{
	uint8_t here[PAGE], *there = NULL;
	pthread_t t;

	memset(here, 0, sizeof(here));
	refused(here, sizeof(here), ACCESS, -EOPNOTSUPP, "stack");
	pthread_create(&t, NULL, sits_still, &there);
	while (__atomic_load_n(&there, __ATOMIC_ACQUIRE) == NULL)
		usleep(1000);
	refused(there, PAGE, ACCESS, -EOPNOTSUPP, "a thread's stack");
	refused(there - 100 * PAGE, PAGE, ACCESS, -EOPNOTSUPP, "a thread's stack");
	__atomic_store_n(&there, NULL, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
}

/* Another address where a heap of glibc may begin. */
Test(client_move, a_stack_at_a_multiple_of_64_mib_is_refused)
{
	const size_t most = 64u << 20, len = 64 * PAGE;
	uint8_t *all = mmap(NULL, 3 * most, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *stack = all + most - (uintptr_t)all % most, *there = NULL;
	pthread_attr_t attr;
	pthread_t t;

	cr_assert_eq(mprotect(stack, len, PROT_READ | PROT_WRITE), 0);
	pthread_attr_init(&attr);
	cr_assert_eq(pthread_attr_setstack(&attr, stack, len), 0);
	cr_assert_eq(pthread_create(&t, &attr, sits_still, &there), 0);
	while (__atomic_load_n(&there, __ATOMIC_ACQUIRE) == NULL)
		usleep(1000);
	refused(there, PAGE, ACCESS, -EOPNOTSUPP, "a thread's stack");
	__atomic_store_n(&there, NULL, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	munmap(all, 3 * most);
}

Test(client_move, a_buffer_between_guard_pages_is_no_stack)
{
	uint8_t *p = private_memory(8 * PAGE);

	mprotect(p, PAGE, PROT_NONE);
	mprotect(p + 7 * PAGE, PAGE, PROT_NONE);
	dereg(reg(p + PAGE, 6 * PAGE));
	refused(p, 2 * PAGE, ACCESS, -EACCES, "not readable");
}

Test(client_move, read_only_and_foreign_memory_is_refused)
{
	uint8_t *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open_self();

	refused(p, PAGE, ACCESS, -EACCES, "read-only");
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	refused(p, PAGE, 0, -EOPNOTSUPP, "a file");
	refused((void *)(uintptr_t)private_memory, 16, 0, -EOPNOTSUPP, "a file");
	refused(vdso(), PAGE, 0, -EOPNOTSUPP, "of the kernel");
}

Test(client_move, read_only_memory_can_be_registered_for_reading)
{
	uint8_t *p = private_memory(4 * PAGE);
	struct saker_mr *mr;

	mprotect(p, 4 * PAGE, PROT_READ);
	cr_assert_eq(
		saker_mr_create(pd, p, 4 * PAGE, RD_ACC_REMOTE_READ, &mr), 0, "%s", saker_error());
	same(engine_sees(), 4 * PAGE);
	dereg(mr);
	same(p, 4 * PAGE);
	cr_assert_eq(map_count(p, 4 * PAGE, MAP_IS_WRITABLE), 0);
}

Test(client_move, a_refusal_of_the_engines_gives_the_pages_back)
{
	uint8_t *p = private_memory(4 * PAGE);
	struct saker_mr *mr;

	k.f.refuse_op = SHM_MR_CREATE;
	k.f.refuse_status = -EDQUOT;
	k.f.refuse_text = "no more";
	cr_assert_eq(saker_mr_create(pd, p, 4 * PAGE, ACCESS, &mr), -EDQUOT);
	cr_assert_eq(map_count(p, 4 * PAGE, MAP_IS_SHARED), 0);
	same(p, 4 * PAGE);
}

/* ---- The program changes mappings meanwhile ---- */

Test(client_move, locked_memory_stays_locked)
{
	uint8_t *p = private_memory(8 * PAGE);
	struct saker_mr *mr;
	long before;

	cr_assert_eq(mlock(p, 8 * PAGE), 0);
	before = status_kib("VmLck");
	mr = reg(p + PAGE, 2 * PAGE);
	cr_assert_eq(status_kib("VmLck"), before);
	dereg(mr);
	cr_assert_eq(status_kib("VmLck"), before);
	same(p, 8 * PAGE);
}

Test(client_move, memory_unmapped_while_registered_does_no_harm)
{
	uint8_t *p = private_memory(4 * PAGE), *q;
	struct saker_mr *old = reg(p, 4 * PAGE), *mr;
	uint8_t *theirs = engine_sees();

	munmap(p, 4 * PAGE);
	cr_assert_eq(theirs[1], 7, "the engine still has it");
	/* The same addresses again, with other content, before the first registration ends. */
	q = mmap(p, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		0);
	memset(q, 0x11, 4 * PAGE);
	mr = reg(q, 4 * PAGE);
	cr_assert_eq(engine_sees()[5], 0x11);
	dereg(old);
	cr_assert_eq(q[5], 0x11);
	cr_assert_eq(map_count(q, 4 * PAGE, MAP_IS_SHARED), 1);
	dereg(mr);
	cr_assert_eq(q[5], 0x11);
	mr = reg(q, 4 * PAGE);
	munmap(q, 4 * PAGE);
	theirs = engine_sees();
	dereg(mr);
	cr_assert_eq(theirs[5], 0);
}

Test(client_move, memory_remapped_while_registered_keeps_its_content)
{
	uint8_t *p = private_memory(4 * PAGE), *to = private_memory(4 * PAGE), *q;
	struct saker_mr *mr = reg(p, 4 * PAGE), *other;

	q = mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	cr_assert_eq(q, to);
	refused(q, PAGE, ACCESS, -EOPNOTSUPP, "mremap");
	mmap(p, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	cr_assert_eq(saker_mr_create(pd, p, PAGE, ACCESS, &other), -EBUSY);
	dereg(mr);
	same(q, 4 * PAGE);
	cr_assert_eq(map_count(q, 4 * PAGE, MAP_IS_SHARED), 0);
	dereg(reg(p, PAGE));
}

Test(client_move, closing_gives_everything_back)
{
	uint8_t *p = private_memory(4 * MIB);

	reg(p, 3 * MIB);
	reg(p + MIB, 3 * MIB);
	saker_close(s);
	s = NULL;
	cr_assert_eq(map_count(p, 4 * MIB, MAP_IS_SHARED), 0);
	same(p, 4 * MIB);
}
