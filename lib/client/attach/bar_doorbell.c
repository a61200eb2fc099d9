/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell of an ivshmem-doorbell device. Its registers, BAR 0, are a file of sysfs beside that
 * of the memory, and are mapped without a driver. Interrupts in the other direction are MSI-X,
 * which needs one: bar_irq.c.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bar_priv.h"

#define PAGE 4096

/* Sets `out` to the path of `file` of the device whose memory is at `path`. Returns false when
 * `path` is not a device's memory. */
static bool
beside(const char *path, const char *file, char out[CL_PATH])
{
	static const char memory[] = "/resource2";
	size_t len = strlen(path), tail = sizeof(memory) - 1;

	if (len < tail || strcmp(path + len - tail, memory) != 0)
		return false;
	return snprintf(out, CL_PATH, "%.*s/%s", (int)(len - tail), path, file) < CL_PATH;
}

/* Returns the offset of BAR 0 in its page, where the mapping begins. */
static size_t
offset(const char *path)
{
	unsigned long long start = 0;
	char name[CL_PATH];
	FILE *f;

	if (!beside(path, "resource", name))
		return 0;
	f = fopen(name, "re");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%llx", &start) != 1)
		start = 0;
	fclose(f);
	return start % PAGE;
}

void
cl_bar_doorbell(struct cl_bar *b, const char *path)
{
	size_t at = offset(path);
	char name[CL_PATH];
	uint8_t *regs;
	int fd;

	if (!beside(path, "resource0", name) || at > PAGE - SHM_BAR_DOORBELL - sizeof(uint32_t))
		return;
	fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	regs = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (regs == MAP_FAILED)
		return;
	b->regs = regs;
	/* On an ivshmem-plain device, the register reads 0 and no doorbell exists. */
	if (*(volatile uint32_t *)(regs + at + SHM_BAR_IVPOSITION) != SHM_BAR_PEER_GUEST)
		return;
	b->s->wake_register = (volatile uint32_t *)(regs + at + SHM_BAR_DOORBELL);
	if (cl_bar_irq_path(path, name))
		cl_bar_irq(b, name);
}

void
cl_bar_doorbell_free(struct cl_bar *b)
{
	b->s->wake_register = NULL;
	if (b->regs != NULL)
		munmap(b->regs, PAGE);
	b->regs = NULL;
}
