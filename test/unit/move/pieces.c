/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that moves to places of the caller's choice, in a memfd that stands for a device. */
#include <criterion/criterion.h>

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../lib/move/move.h"
#include "mappings.h"

#define LEN (4 * MV_PAGE)

static uint8_t *mem, *device;
static int fd;

static void
setup(void)
{
	mem = map_in_one_window(LEN, 0);
	memset(mem, 0x5a, LEN);
	fd = memfd_create("device", MFD_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 2 * LEN), 0);
	device = mmap(NULL, 2 * LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(device, MAP_FAILED);
}

TestSuite(move_pieces, .init = setup, .timeout = 60);

static void
signals_off(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

/* The mapping that contains `mem`. */
static struct mv_vma
vma_of_mem(void)
{
	struct mv_vma v;
	size_t at = 0;

	cr_assert_eq(mv_maps_load(), 0, "%s", mv_error());
	while (mv_maps_next(&at, &v))
		if (v.start <= (uintptr_t)mem && v.end >= (uintptr_t)mem + LEN)
			return v;
	cr_assert_fail("no mapping");
	return v;
}

Test(move_pieces, a_piece_moves_to_its_place_and_back)
{
	const uintptr_t at = (uintptr_t)mem;
	sigset_t before;
	struct mv_vma v;

	mv_lock();
	v = vma_of_mem();
	cr_assert_eq(mv_judge(at, at + LEN, true), 0, "%s", mv_error());
	signals_off(&before);
	cr_assert_eq(mv_piece_in(&v, at, LEN, device + LEN, fd, LEN), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	cr_assert_eq(map_count(mem, LEN, MAP_IS_SHARED), 1);
	cr_assert_eq(device[LEN + 5], 0x5a);
	device[LEN + 5] = 7;
	cr_assert_eq(mem[5], 7);
	v = vma_of_mem();
	signals_off(&before);
	cr_assert_eq(mv_piece_out(&v, at, LEN, device + LEN), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	mv_unlock();
	cr_assert_eq(map_count(mem, LEN, MAP_IS_SHARED), 0);
	cr_assert_eq(mem[5], 7);
	mem[5] = 9;
	cr_assert_eq(device[LEN + 5], 7);
}
