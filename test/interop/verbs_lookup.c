/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that looks for the libraries by their names, in the way of NCCL and of Open MPI, and
 * for the addresses of the machine.
 *
 *     verbs_lookup libraries       the number of devices, by dlopen(3) and dlvsym(3)
 *     verbs_lookup addresses       the names of the interfaces that have an address, in order
 */
#include <dlfcn.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static int
libraries(void)
{
	void *verbs = dlopen("libibverbs.so.1", RTLD_NOW), *cm = dlopen("librdmacm.so.1", RTLD_NOW);
	void *(*list)(int *);
	int n = 0;

	if (verbs == NULL || cm == NULL) {
		puts(dlerror());
		return 1;
	}
	list = (void *(*)(int *))dlvsym(verbs, "ibv_get_device_list", "IBVERBS_1.1");
	if (list == NULL || dlvsym(cm, "rdma_create_id", "RDMACM_1.0") == NULL) {
		puts(dlerror());
		return 1;
	}
	/* Both are the library that is preloaded: one process has one attachment. */
	if (dlsym(RTLD_DEFAULT, "ibv_get_device_list") != (void *)list ||
		dlsym(RTLD_DEFAULT, "rdma_create_id") != dlsym(cm, "rdma_create_id")) {
		puts("there are two libraries");
		return 1;
	}
	list(&n);
	printf("%d devices\n", n);
	return 0;
}

static int
addresses(void)
{
	struct ifaddrs *list, *a;

	if (getifaddrs(&list) != 0)
		return 1;
	for (a = list; a != NULL; a = a->ifa_next)
		if (a->ifa_addr != NULL &&
			(a->ifa_addr->sa_family == AF_INET || a->ifa_addr->sa_family == AF_INET6))
			puts(a->ifa_name);
	freeifaddrs(list);
	return 0;
}

int
main(int argc, char **argv)
{
	return argc == 2 && strcmp(argv[1], "addresses") == 0 ? addresses() : libraries();
}
