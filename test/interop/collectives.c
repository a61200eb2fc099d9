/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of MPI for cluster.sh, which compiles it with each MPI's compiler.
 *
 *   collectives                 runs collectives and one-sided operations with blocks of several
 *                               sizes, and compares every word of every result. Rank 0 prints how
 *                               many bytes of results each rank compared.
 *   collectives orphans FILE    waits until the file exists, by which time one rank has been
 *                               killed, and then sends to that rank, 1, until that fails
 *
 * A rank that finds a wrong word prints it and ends the job.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VICTIM 1
#define ROUNDS 3
#define LARGE  65536 /* words of 4 bytes: UCX sends such a block by a rendezvous */

static const int blocks[] = {1, 60, 3000, LARGE};
static int rank, ranks;
static uint64_t compared;

/* Returns word i of what `from` sends to `to` in a round. */
static uint32_t
word(int from, int to, int i, int round)
{
	return (uint32_t)i * 2654435761u + (uint32_t)(from * 1021 + to * 4099 + round * 65537);
}

static void
fill(uint32_t *b, int n, int from, int to, int round)
{
	for (int i = 0; i < n; i++)
		b[i] = word(from, to, i, round);
}

static void
differs(const char *what, int i, uint32_t is, uint32_t ought)
{
	printf("rank %d: %s: word %d is %#x and not %#x\n", rank, what, i, is, ought);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void
compare(const char *what, const uint32_t *b, int n, int from, int to, int round)
{
	for (int i = 0; i < n; i++)
		if (b[i] != word(from, to, i, round))
			differs(what, i, b[i], word(from, to, i, round));
	compared += (uint64_t)n * sizeof(*b);
}

/* Compares a sum of the words that all ranks sent to `to`, from word `first` on. */
static void
compare_sum(const char *what, const uint32_t *b, int first, int n, int to, int round)
{
	for (int i = 0; i < n; i++) {
		uint32_t sum = 0;

		for (int r = 0; r < ranks; r++)
			sum += word(r, to, first + i, round);
		if (b[i] != sum)
			differs(what, i, b[i], sum);
	}
	compared += (uint64_t)n * sizeof(*b);
}

static void
one_to_all(uint32_t *in, uint32_t *out, int n, int round)
{
	int root = round % ranks;

	fill(out, n, root, root, rank == root ? round : -1);
	MPI_Bcast(out, n, MPI_UINT32_T, root, MPI_COMM_WORLD);
	compare("broadcast", out, n, root, root, round);
	for (int r = 0; r < ranks; r++)
		fill(out + r * n, n, rank, r, round);
	MPI_Scatter(out, n, MPI_UINT32_T, in, n, MPI_UINT32_T, root, MPI_COMM_WORLD);
	compare("scatter", in, n, root, rank, round);
}

static void
all_to_all(uint32_t *in, uint32_t *out, int n, int round)
{
	for (int r = 0; r < ranks; r++)
		fill(out + r * n, n, rank, r, round);
	MPI_Alltoall(out, n, MPI_UINT32_T, in, n, MPI_UINT32_T, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++)
		compare("all to all", in + r * n, n, r, rank, round);
	fill(out, n, rank, 0, round);
	MPI_Allgather(out, n, MPI_UINT32_T, in, n, MPI_UINT32_T, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++)
		compare("gather to all", in + r * n, n, r, 0, round);
}

static void
sums(uint32_t *in, uint32_t *out, int n, int round)
{
	fill(out, n, rank, 7, round);
	MPI_Allreduce(out, in, n, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
	compare_sum("reduction to all", in, 0, n, 7, round);
	fill(out, n * ranks, rank, 9, round);
	MPI_Reduce_scatter_block(out, in, n, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
	compare_sum("reduction and scatter", in, rank * n, n, 9, round);
}

/* Each rank writes into the memory of the next, reads that of the one behind it, and adds to a
 * counter of rank 0. */
static void
one_sided(uint32_t *in, uint32_t *out, int n, int round)
{
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
	uint32_t one = 1, before = 0, *mine;
	MPI_Win win;

	MPI_Win_allocate((n + 1) * 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
	mine[n] = 0;
	fill(out, n, rank, next, round);
	MPI_Win_fence(0, win);
	MPI_Put(out, n, MPI_UINT32_T, next, 0, n, MPI_UINT32_T, win);
	MPI_Win_fence(0, win);
	compare("put", mine, n, last, rank, round);
	MPI_Get(in, n, MPI_UINT32_T, last, 0, n, MPI_UINT32_T, win);
	MPI_Fetch_and_op(&one, &before, MPI_UINT32_T, 0, n, MPI_SUM, win);
	MPI_Win_fence(0, win);
	compare("get", in, n, (last + ranks - 1) % ranks, last, round);
	if (rank == 0 && mine[n] != (uint32_t)ranks)
		differs("counter", 0, mine[n], (uint32_t)ranks);
	MPI_Win_free(&win);
}

static void
verify(void)
{
	size_t room = (size_t)LARGE * (size_t)ranks * sizeof(uint32_t);
	uint32_t *in = malloc(room), *out = malloc(room);

	if (in == NULL || out == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int round = 0; round < ROUNDS; round++)
		for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++) {
			one_to_all(in, out, blocks[b], round);
			all_to_all(in, out, blocks[b], round);
			sums(in, out, blocks[b], round);
			one_sided(in, out, blocks[b], round);
		}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks: each compared %llu bytes\n", ranks, (unsigned long long)compared);
	free(in);
	free(out);
}

/* Before the victim is killed, all ranks have exchanged messages. */
static void
orphans(const char *file)
{
	uint32_t word = 1, sum;

	MPI_Allreduce(&word, &sum, 1, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
	if (rank != VICTIM) {
		MPI_Send(&word, 1, MPI_UINT32_T, VICTIM, 0, MPI_COMM_WORLD);
	} else {
		for (int r = 1; r < ranks; r++)
			MPI_Recv(&word, 1, MPI_UINT32_T, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD,
				MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	printf("rank %d is ready\n", rank);
	fflush(stdout);
	while (access(file, F_OK) != 0)
		usleep(10000);
	for (;;)
		MPI_Send(&word, 1, MPI_UINT32_T, VICTIM, 0, MPI_COMM_WORLD);
}

int
main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc > 2 && strcmp(argv[1], "orphans") == 0)
		orphans(argv[2]);
	else
		verify();
	MPI_Finalize();
	return 0;
}
