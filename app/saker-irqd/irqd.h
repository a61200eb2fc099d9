/* SPDX-License-Identifier: BSD-3-Clause */
/* saker-irqd: gives the interrupts of an ivshmem-doorbell device to the programs of its machine. */
#ifndef SAKER_IRQD_H
#define SAKER_IRQD_H

#include <stddef.h>

#define IRQD_ADDRESS 32 /* bytes of a device's PCI address */
#define IRQD_VECTORS 64 /* upper limit: a device may have more, which nobody can use */

struct irqd_device {
	char address[IRQD_ADDRESS];
	int container, group, fd; /* of vfio-pci */
	unsigned nvectors;
};

/* ---- device.c ---- */

/* Finds the first ivshmem device and stores its address. Returns 0, or -ENODEV with one sentence in
 * `err`. */
int irqd_find(char address[IRQD_ADDRESS], char *err, size_t errlen);
/* Binds the device with the address d->address to vfio-pci, opens it, and lets it interrupt, as yet
 * without anybody who listens. Returns 0, or -errno with one sentence in `err`. */
int irqd_open(struct irqd_device *d, char *err, size_t errlen);
/* Lets the kernel signal `event` for each interrupt of a vector; -1: nothing. Returns 0 or -errno.
 */
int irqd_vector(const struct irqd_device *d, unsigned vector, int event);

/* ---- serve.c ---- */

/* Serves programs at the socket of the device until a signal comes. Returns 0, or -errno with one
 * sentence in `err`. */
int irqd_serve(const struct irqd_device *d, char *err, size_t errlen);

#endif
