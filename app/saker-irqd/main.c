/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * saker-irqd [PCI-ADDRESS]: runs in a virtual machine and gives the interrupts of its
 * ivshmem-doorbell device to the programs there, so that they sleep until saker wakes them.
 */
#include <stdio.h>
#include <string.h>

#include "irqd.h"

static const char usage[] =
	"usage: saker-irqd [PCI-ADDRESS]\n"
	"Runs in a virtual machine as root, and gives the interrupts of its ivshmem-doorbell\n"
	"device to programs that use Saker, so that they sleep until the saker wakes them. The\n"
	"device is the first one, or the one at the address (0000:00:05.0). The machine has an\n"
	"IOMMU, and its kernel the driver vfio-pci.\n";

int
main(int argc, char **argv)
{
	struct irqd_device d = {.container = -1, .group = -1, .fd = -1};
	char err[256];
	int rc = 0;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
		rc = argc != 2 || (strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0);
		fputs(usage, rc ? stderr : stdout);
		return rc;
	}
	if (argc == 1) {
		rc = irqd_find(d.address, err, sizeof(err));
	} else if (strchr(argv[1], '/') != NULL || snprintf(d.address, sizeof(d.address), "%s",
							   argv[1]) >= (int)sizeof(d.address)) {
		fprintf(stderr, "saker-irqd: %s is no PCI address\n", argv[1]);
		return 1;
	}
	if (rc == 0)
		rc = irqd_open(&d, err, sizeof(err));
	if (rc == 0)
		rc = irqd_serve(&d, err, sizeof(err));
	if (rc == 0)
		return 0;
	fprintf(stderr, "saker-irqd: %s\n", err);
	return 1;
}
