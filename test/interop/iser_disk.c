/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of libiscsi for iser.sh, which compiles it:
 *
 *   iser_disk URL INITIATOR SEED [read]
 *
 * Writes blocks of several sizes all over a disk (not with `read`), then reads them in another
 * order and compares every byte. The content follows from the seed and the address. Prints how many
 * bytes it compared.
 */
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK   512
#define LARGEST (256 * 1024)
#define ROUNDS  40

static const uint32_t sizes[] = {BLOCK, 4096, 8 * BLOCK + BLOCK, 65536, LARGEST};
static struct iscsi_context *iscsi;
static struct iscsi_url *url;
static uint64_t seed;

static void
bad(const char *what, uint64_t lba)
{
	printf("%s of block %llu: %s\n", what, (unsigned long long)lba, iscsi_get_error(iscsi));
	exit(1);
}

static void
fill(uint8_t *b, uint64_t lba, uint32_t len)
{
	for (uint32_t i = 0; i < len; i += 8) {
		uint64_t at = lba * BLOCK + i, v = (at + seed) * 0x9e3779b97f4a7c15u;

		v ^= v >> 29;
		memcpy(b + i, &v, sizeof(v));
	}
}

static void
put(uint64_t lba, uint32_t len)
{
	static uint8_t b[LARGEST];
	struct scsi_task *t;

	fill(b, lba, len);
	t = iscsi_write16_sync(iscsi, url->lun, lba, b, len, BLOCK, 0, 0, 0, 0, 0);
	if (t == NULL || t->status != SCSI_STATUS_GOOD)
		bad("a Write", lba);
	scsi_free_scsi_task(t);
}

static void
get(uint64_t lba, uint32_t len)
{
	static uint8_t b[LARGEST];
	struct scsi_task *t;

	fill(b, lba, len);
	t = iscsi_read16_sync(iscsi, url->lun, lba, len, BLOCK, 0, 0, 0, 0, 0);
	if (t == NULL || t->status != SCSI_STATUS_GOOD)
		bad("a Read", lba);
	if (t->datain.size != (int)len || memcmp(t->datain.data, b, len) != 0)
		bad("the content", lba);
	scsi_free_scsi_task(t);
}

int
main(int argc, char **argv)
{
	const uint32_t n = sizeof(sizes) / sizeof(sizes[0]);
	uint64_t compared = 0;

	if (argc < 4)
		return 2;
	seed = strtoull(argv[3], NULL, 0);
	iscsi = iscsi_create_context(argv[2]);
	url = iscsi != NULL ? iscsi_parse_full_url(iscsi, argv[1]) : NULL;
	if (url == NULL)
		bad("the URL", 0);
	iscsi_set_targetname(iscsi, url->target);
	iscsi_set_session_type(iscsi, ISCSI_SESSION_NORMAL);
	if (iscsi_full_connect_sync(iscsi, url->portal, url->lun) != 0)
		bad("the connection", 0);
	for (uint32_t i = 0; i < ROUNDS && argc == 4; i++)
		put((uint64_t)i * LARGEST / BLOCK, sizes[i % n]);
	for (uint32_t i = ROUNDS; i-- > 0;) {
		get((uint64_t)i * LARGEST / BLOCK, sizes[i % n]);
		compared += sizes[i % n];
	}
	printf("compared %llu bytes\n", (unsigned long long)compared);
	iscsi_logout_sync(iscsi);
	iscsi_destroy_url(url);
	iscsi_destroy_context(iscsi);
	return 0;
}
