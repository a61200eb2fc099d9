/* SPDX-License-Identifier: BSD-3-Clause */
/* The device: it belongs to vfio-pci, which makes eventfds of its MSI-X vectors. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../lib/shm/shm_bar.h"
#include "irqd.h"

#define DEVICES "/sys/bus/pci/devices"
#define DRIVER  "/sys/bus/pci/drivers/vfio-pci"

#define FAIL(rc, ...) (snprintf(err, errlen, __VA_ARGS__), rc)

static long
irqd_number_of(const char *address, const char *file)
{
	char path[PATH_MAX];
	long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), DEVICES "/%s/%s", address, file);
	f = fopen(path, "re");
	if (f == NULL)
		return -1;
	if (fscanf(f, "%li", &n) != 1)
		n = -1;
	fclose(f);
	return n;
}

int
irqd_find(char address[IRQD_ADDRESS], char *err, size_t errlen)
{
	DIR *d = opendir(DEVICES);
	struct dirent *e;
	int rc = -ENODEV;

	while (d != NULL && rc < 0 && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.' || strlen(e->d_name) >= IRQD_ADDRESS ||
			irqd_number_of(e->d_name, "vendor") != SHM_BAR_PCI_VENDOR ||
			irqd_number_of(e->d_name, "device") != SHM_BAR_PCI_DEVICE)
			continue;
		strcpy(address, e->d_name);
		rc = 0;
	}
	if (d != NULL)
		closedir(d);
	return rc == 0 ? 0 : FAIL(rc, "this machine has no ivshmem device");
}

/* Writes a word to a file of sysfs. Returns 0 or -errno. */
static int
irqd_put(const char *path, const char *word)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, word, strlen(word)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static int
irqd_bind_vfio(const struct irqd_device *d, char *err, size_t errlen)
{
	char path[PATH_MAX], driver[PATH_MAX];
	ssize_t n;
	int rc;

	if (access(DRIVER, F_OK) != 0)
		return FAIL(-ENOENT, "the kernel has no driver vfio-pci: modprobe vfio-pci");
	snprintf(path, sizeof(path), DEVICES "/%s/driver", d->address);
	n = readlink(path, driver, sizeof(driver) - 1);
	if (n > 0) {
		driver[n] = '\0';
		if (strcmp(strrchr(driver, '/'), "/vfio-pci") == 0)
			return 0;
		return FAIL(-EBUSY, "%s belongs to the driver %s", d->address,
			strrchr(driver, '/') + 1);
	}
	snprintf(path, sizeof(path), DEVICES "/%s/driver_override", d->address);
	rc = irqd_put(path, "vfio-pci");
	if (rc == 0)
		rc = irqd_put("/sys/bus/pci/drivers_probe", d->address);
	return rc == 0 ? 0
		       : FAIL(rc, "%s cannot be bound to vfio-pci: %s", d->address, strerror(-rc));
}

/* Opens the device's group of devices, the unit that an IOMMU isolates. */
static int
irqd_open_group(struct irqd_device *d, char *err, size_t errlen)
{
	char path[PATH_MAX], group[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), DEVICES "/%s/iommu_group", d->address);
	n = readlink(path, group, sizeof(group) - 1);
	if (n <= 0)
		return FAIL(-ENODEV,
			"%s is behind no IOMMU: the machine lacks an intel-iommu, or its kernel "
			"intel_iommu=on",
			d->address);
	group[n] = '\0';
	snprintf(path, sizeof(path), "/dev/vfio%s", strrchr(group, '/'));
	d->container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	d->group = open(path, O_RDWR | O_CLOEXEC);
	if (d->container < 0 || d->group < 0)
		return FAIL(-errno, "%s cannot be opened: %s",
			d->container < 0 ? "/dev/vfio/vfio" : path, strerror(errno));
	if (ioctl(d->group, VFIO_GROUP_SET_CONTAINER, &d->container) < 0 ||
		ioctl(d->container, VFIO_SET_IOMMU, VFIO_TYPE1_IOMMU) < 0)
		return FAIL(-errno, "the IOMMU group of %s cannot be used: %s", d->address,
			strerror(errno));
	d->fd = ioctl(d->group, VFIO_GROUP_GET_DEVICE_FD, d->address);
	return d->fd >= 0 ? 0
			  : FAIL(-errno, "%s cannot be opened: %s", d->address, strerror(errno));
}

/* Lets the device write to memory: its interrupts are such writes. */
static int
irqd_master(const struct irqd_device *d)
{
	struct vfio_region_info info = {
		.argsz = sizeof(info), .index = VFIO_PCI_CONFIG_REGION_INDEX};
	uint16_t command;

	if (ioctl(d->fd, VFIO_DEVICE_GET_REGION_INFO, &info) < 0)
		return -errno;
	if (pread(d->fd, &command, 2, (off_t)info.offset + PCI_COMMAND) != 2)
		return -EIO;
	command |= PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY;
	return pwrite(d->fd, &command, 2, (off_t)info.offset + PCI_COMMAND) == 2 ? 0 : -EIO;
}

/* Sets the eventfds of `n` vectors from `first` on. */
static int
irqs_set(const struct irqd_device *d, unsigned first, unsigned n, const int *events)
{
	union {
		struct vfio_irq_set set;
		char room[sizeof(struct vfio_irq_set) + IRQD_VECTORS * sizeof(int)];
	} u;

	u.set = (struct vfio_irq_set){.argsz = (uint32_t)(sizeof(u.set) + n * sizeof(*events)),
		.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
		.index = VFIO_PCI_MSIX_IRQ_INDEX,
		.start = first,
		.count = n};
	memcpy(u.room + sizeof(u.set), events, n * sizeof(*events));
	return ioctl(d->fd, VFIO_DEVICE_SET_IRQS, &u.set) < 0 ? -errno : 0;
}

int
irqd_open(struct irqd_device *d, char *err, size_t errlen)
{
	struct vfio_irq_info info = {.argsz = sizeof(info), .index = VFIO_PCI_MSIX_IRQ_INDEX};
	int none[IRQD_VECTORS];
	int rc = irqd_bind_vfio(d, err, errlen);

	if (rc == 0)
		rc = irqd_open_group(d, err, errlen);
	if (rc < 0)
		return rc;
	if (ioctl(d->fd, VFIO_DEVICE_GET_IRQ_INFO, &info) < 0 || info.count == 0)
		return FAIL(-ENODEV, "%s has no MSI-X: it is no ivshmem-doorbell", d->address);
	d->nvectors = info.count < IRQD_VECTORS ? info.count : IRQD_VECTORS;
	memset(none, -1, sizeof(none));
	rc = irqd_master(d);
	/* The kernel allocates all vectors now: it adds none later. */
	if (rc == 0)
		rc = irqs_set(d, 0, d->nvectors, none);
	return rc == 0 ? 0 : FAIL(rc, "%s gets no interrupts: %s", d->address, strerror(-rc));
}

int
irqd_vector(const struct irqd_device *d, unsigned vector, int event)
{
	return irqs_set(d, vector, 1, &event);
}
