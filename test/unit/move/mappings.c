/* SPDX-License-Identifier: BSD-3-Clause */
/* See mappings.h. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "../../../lib/move/move.h"
#include "mappings.h"

int
map_count(const void *p, size_t len, enum map_is what)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096], prot[8];
	unsigned long from, to;
	int n = 0;

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, prot) != 3 || to <= (uintptr_t)p ||
			from >= (uintptr_t)p + len)
			continue;
		n += what == MAP_IS_SHARED     ? prot[3] == 's'
		     : what == MAP_IS_PRIVATE  ? prot[3] == 'p'
		     : what == MAP_IS_WRITABLE ? prot[1] == 'w'
					       : prot[2] == 'x';
	}
	fclose(f);
	return n;
}

long
status_kib(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
			sscanf(line + strlen(name) + 1, "%ld", &kib);
	fclose(f);
	cr_assert_geq(kib, 0, "no line %s", name);
	return kib;
}

void *
map_in_one_window(size_t len, int flags)
{
	uintptr_t at, border;
	size_t room = 2 * len;
	uint8_t *p;

	/* Twice as much: at most one border of windows lies in it. */
	p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	cr_assert_neq(p, MAP_FAILED);
	at = (uintptr_t)p;
	border = (at + len - 1) & ~(uintptr_t)(MV_WINDOW - 1);
	if (border > at) {
		munmap(p, border - at);
		room -= border - at;
		p += border - at;
	}
	munmap(p + len, room - len);
	return p;
}

int
open_self(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	cr_assert_geq(fd, 0);
	return fd;
}

void *
vdso(void)
{
	return (void *)getauxval(AT_SYSINFO_EHDR);
}
