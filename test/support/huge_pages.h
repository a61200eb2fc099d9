/* SPDX-License-Identifier: BSD-3-Clause */
/* Huge pages of the default size for a test: the machine has reserved them (test/run.sh). */
#ifndef TEST_HUGE_PAGES_H
#define TEST_HUGE_PAGES_H

#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Returns the number behind a name of /proc/meminfo, or 0. */
static inline long
huge_pages_line(const char *name)
{
	FILE *f = fopen("/proc/meminfo", "r");
	size_t n = strlen(name);
	char line[256];
	long value = 0;

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, name, n) == 0 && line[n] == ':')
			sscanf(line + n + 1, "%ld", &value);
	fclose(f);
	return value;
}

/*
 * Skips the test unless the machine has reserved `n` pages of `kib` KiB. Otherwise it waits until
 * `n` are free: other processes may hold them, and tests that call this function take turns until
 * they end. A program that needs all that test/run.sh reserves also runs alone (is_parallel).
 */
static inline void
huge_pages_need(long n, long kib)
{
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	long nfree = 0;

	if (huge_pages_line("Hugepagesize") != kib || huge_pages_line("HugePages_Total") < n) {
		close(fd);
		cr_skip_test("the test needs %ld huge pages of %ld KiB, and the machine has "
			     "reserved %ld of %ld KiB",
			n, kib, huge_pages_line("HugePages_Total"),
			huge_pages_line("Hugepagesize"));
	}
	cr_assert(fd >= 0 && flock(fd, LOCK_EX) == 0); /* until the test's process ends */
	for (int i = 0; i < 60000; i++) {
		nfree = huge_pages_line("HugePages_Free") - huge_pages_line("HugePages_Rsvd");
		if (nfree >= n)
			return;
		usleep(1000);
	}
	cr_assert_fail("of %ld huge pages, %ld are free and not %ld: other processes hold them",
		huge_pages_line("HugePages_Total"), nfree, n);
}

#endif
