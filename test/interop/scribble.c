/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile machine: `scribble MEMORY FILE SEED` writes over all the memory that it shares with
 * saker, as long as FILE exists. It writes random bytes, small changes to existing words (turn
 * numbers and indices that are nearly right), and copies of the memory from other places (values
 * that were valid once). Every other second it leaves the directory alone, so that the machine's
 * programs are served, and requests a client in each slot.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/shm/shm_bar.h"

#define DIRECTORY 4096u
#define PIECE_MAX 4096u
#define LOOK      20000 /* writes between two checks for FILE */

static uint64_t state;

static uint64_t
draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void
stroke(uint8_t *base, uint64_t from, uint64_t size)
{
	uint64_t at = from + draw() % (size - from - PIECE_MAX), len = draw() % PIECE_MAX;

	switch (draw() % 4) {
	case 0:
		memset(base + at, (int)draw(), len);
		break;
	case 1:
		for (uint64_t i = 0; i < len; i++)
			base[at + i] = (uint8_t)draw();
		break;
	case 2:
		for (unsigned i = 0; i < 64; i++)
			((uint32_t *)(base + (at & ~3ull)))[draw() % (PIECE_MAX / 4)] +=
				(uint32_t)(draw() % 3) - 1;
		break;
	default:
		memmove(base + at, base + from + draw() % (size - from - PIECE_MAX), len);
		break;
	}
}

/* Writes to the queues of each slot, which are only a part of the memory. */
static void
queues(uint8_t *base, uint64_t size)
{
	uint64_t share = (size - DIRECTORY) / SHM_BAR_SLOTS, slot = draw() % SHM_BAR_SLOTS;
	uint64_t at = DIRECTORY + slot * share;

	stroke(base, at, at + share);
}

static void
wants(struct shm_bar *dir)
{
	for (unsigned i = 0; i < SHM_BAR_SLOTS; i++) {
		dir->slots[i].beat++;
		if (draw() % 8 == 0)
			dir->slots[i].want = (uint32_t)draw();
	}
}

int
main(int argc, char **argv)
{
	uint64_t strokes = 0;
	struct stat st;
	uint8_t *base;
	int fd;

	if (argc != 4 || (fd = open(argv[1], O_RDWR)) < 0 || fstat(fd, &st) < 0) {
		fprintf(stderr, "usage: scribble MEMORY FILE SEED\n");
		return 2;
	}
	base = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED || st.st_size < 1 << 20) {
		perror(argv[1]);
		return 1;
	}
	state = strtoull(argv[3], NULL, 0) | 1;
	while (strokes % LOOK != 0 || access(argv[2], F_OK) == 0) {
		bool spare = time(NULL) % 2 == 0;

		if (spare && strokes % 64 == 0)
			wants((struct shm_bar *)base);
		if (strokes % 4 == 0)
			stroke(base, spare ? DIRECTORY : 0, (uint64_t)st.st_size);
		else
			queues(base, (uint64_t)st.st_size);
		strokes++;
	}
	printf("%llu strokes\n", (unsigned long long)strokes);
	return 0;
}
