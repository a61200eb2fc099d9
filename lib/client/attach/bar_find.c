/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the ivshmem device of a virtual machine in sysfs, without a driver in the kernel. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../shm/shm_bar.h"
#include "../client_priv.h"

static long
number_in(const char *root, const char *device, const char *file)
{
	char path[CL_PATH];
	long n = -1;
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/%s/%s", root, device, file) >= (int)sizeof(path))
		return -1;
	f = fopen(path, "re");
	if (f == NULL)
		return -1;
	if (fscanf(f, "%li", &n) != 1)
		n = -1;
	fclose(f);
	return n;
}

/* Enables a device. Without a driver it may not decode its addresses yet. Only root can write the
 * file; for others, mapping the device fails later. */
static void
enable(const char *root, const char *device)
{
	char path[CL_PATH];
	FILE *f;

	if (number_in(root, device, "enable") != 0 ||
		snprintf(path, sizeof(path), "%s/%s/enable", root, device) >= (int)sizeof(path))
		return;
	f = fopen(path, "we");
	if (f == NULL)
		return;
	fputs("1", f);
	fclose(f);
}

int
cl_bar_find(const char *root, char path[CL_PATH])
{
	DIR *d;
	struct dirent *e;
	int rc = -ENODEV;

	if (root == NULL)
		root = CL_PCI_DEVICES;
	d = opendir(root);
	while (d != NULL && rc < 0 && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.' ||
			number_in(root, e->d_name, "vendor") != SHM_BAR_PCI_VENDOR ||
			number_in(root, e->d_name, "device") != SHM_BAR_PCI_DEVICE)
			continue;
		if (snprintf(path, CL_PATH, "%s/%s/resource2", root, e->d_name) >= CL_PATH)
			continue;
		enable(root, e->d_name);
		rc = 0;
	}
	if (d != NULL)
		closedir(d);
	return rc == 0 ? 0 : cl_fail(rc, "this machine has no ivshmem device");
}
