/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of shared memory. The engine maps a client's descriptor only if it is a memfd that is
 * sealed against shrinking, so that the kernel refuses to truncate it, or a file of a kind that
 * never makes a loop wait. The seal does not prevent holes, and the file may be truncated. Where
 * the process may use userfaultfd(2), a region is watched (common/sigbus.h): no loop ever allocates
 * a page of it.
 */
#include "client.h"
#include "place.h"
#include "region_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../../common/pages.h"
#include "../../common/sigbus.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define PAGE_SIZE_SMALL 4096ull
#define PAGE_SIZE_HUGE  (2048ull * 1024)
#define CLOSE_BYTES     (16ull << 20) /* pages that close(2) may free at once */

static int
make(const char *name, uint64_t size, unsigned flags, struct eng_region *out)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags), rc = -errno;
	void *p = MAP_FAILED;

	if (fd < 0)
		return rc;
	if (ftruncate(fd, (off_t)size) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	rc = -errno;
	if (p == MAP_FAILED) {
		close(fd);
		return rc;
	}
	*out = (struct eng_region){
		.base = p,
		.size = size,
		.fd = fd,
		.guard = -1,
		.page = (uint32_t)(flags & MFD_HUGETLB ? PAGE_SIZE_HUGE : PAGE_SIZE_SMALL),
	};
	return 0;
}

int
ctl_region_make_home(const char *name, uint64_t size, bool huge, struct eng_region *out)
{
	uint64_t small = (size + PAGE_SIZE_SMALL - 1) & ~(PAGE_SIZE_SMALL - 1);
	uint64_t large = (size + PAGE_SIZE_HUGE - 1) & ~(PAGE_SIZE_HUGE - 1);

	/* mmap() reserves the huge pages, so it fails here if there are too few. */
	if (huge && make(name, large, MFD_HUGETLB | MFD_HUGE_2MB, out) == 0)
		return 0;
	return make(name, small, 0, out);
}

/* Returns the bytes of a page of a memfd. */
static uint32_t
page_size(int fd)
{
	struct statfs fs;

	return (uint32_t)(fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC
				  ? (unsigned long)fs.f_bsize
				  : PAGE_SIZE_SMALL);
}

/* Checks a memfd of the client library. Returns 0, or -errno with a sentence. */
static int
memfd_check(int fd, uint64_t size, bool sparse, char *why, size_t whylen)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0) {
		snprintf(why, whylen, "the descriptor is no memfd");
		return -EINVAL;
	}
	if (!(seals & F_SEAL_SHRINK)) {
		snprintf(why, whylen, "the memfd is not sealed against shrinking");
		return -EPERM;
	}
	if (fstat(fd, &st) < 0 || size == 0 || (uint64_t)st.st_size != size ||
		size % PAGE_SIZE_SMALL != 0) {
		snprintf(why, whylen,
			"the memfd is not %llu bytes long, or not a multiple of a page",
			(unsigned long long)size);
		return -EINVAL;
	}
	if (sparse && size > SHM_SPARSE_MAX) {
		snprintf(why, whylen, "a sparse memfd has at most %llu bytes",
			(unsigned long long)SHM_SPARSE_MAX);
		return -EINVAL;
	}
	return 0;
}

/* Checks an object that the program shares with others. A file system other than these two may
 * make a loop that touches a page wait for a disk or for a program. Only these two have seals: the
 * first check asks no file system, for whose answer this thread would wait. The object may shrink
 * at any time: its client is ended when the engine touches a page that is gone (common/sigbus.h).
 */
static int
object_check(int fd, uint64_t size, char *why, size_t whylen)
{
	uint64_t page;
	struct statfs fs;
	struct stat st;

	if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		fstatfs(fd, &fs) < 0 ||
		(fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC)) {
		snprintf(why, whylen, "the descriptor is no file on tmpfs or hugetlbfs");
		return -EOPNOTSUPP;
	}
	page = page_size(fd);
	if (size == 0 || size % page != 0 || size > SHM_OBJECT_MAX || st.st_size < 0 ||
		size > ((uint64_t)st.st_size + page - 1) / page * page) {
		snprintf(why, whylen, "the file has %llu bytes, and not %llu in pages of %llu",
			(unsigned long long)st.st_size, (unsigned long long)size,
			(unsigned long long)page);
		return -EINVAL;
	}
	return 0;
}

int
ctl_region_map_fd(
	int fd, uint64_t size, uint32_t flags, struct eng_region *out, char *why, size_t whylen)
{
	bool object = (flags & SHM_REGION_OBJECT) != 0;
	bool sparse = object || (flags & SHM_REGION_SPARSE) != 0;
	int rc = object ? object_check(fd, size, why, whylen)
			: memfd_check(fd, size, sparse, why, whylen);
	void *p;

	if (rc < 0)
		return rc;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (p == MAP_FAILED) {
		rc = -errno;
		snprintf(why, whylen, "the %s cannot be mapped for writing",
			object ? "file" : "memfd");
		return rc;
	}
	/* A core dump would fill the holes with pages. */
	if (sparse)
		madvise(p, size, MADV_DONTDUMP);
	/* Swapped pages make a loop wait, too. Without the right to lock, they may be swapped. */
	mlock2(p, size, MLOCK_ONFAULT);
	*out = (struct eng_region){
		.base = p,
		.size = size,
		.fd = -1,
		.guard = -1,
		.sparse = sparse,
		.page = page_size(fd),
	};
	return 0;
}

bool
ctl_region_closes_at_once(int fd)
{
	struct stat st;

	return fcntl(fd, F_GET_SEALS) >= 0 && fstat(fd, &st) == 0 &&
	       (uint64_t)st.st_blocks * 512 <= CLOSE_BYTES;
}

/* Returns the address space of a client's sparse regions, whose pages count only as far as they are
 * registered. All clients together share the address space of this process. */
static uint64_t
sparse_space(const struct ctl_client *cl)
{
	uint64_t bytes = 0;

	for (uint32_t i = SHM_HOME + 1; i < SHM_MAX_REGIONS; i++)
		bytes += cl->map[i].sparse ? cl->map[i].size : 0;
	return bytes;
}

/* Returns the bytes that count against the client's limit of memory, and sets *count to the number
 * of its regions. The regions are those that the socket's thread has mapped. */
static uint64_t
brought(const struct ctl_client *cl, uint32_t *count)
{
	uint64_t bytes = __atomic_load_n(&cl->sparse_bytes, __ATOMIC_RELAXED);

	*count = 0;
	for (uint32_t i = SHM_HOME + 1; i < SHM_MAX_REGIONS; i++) {
		bytes += cl->map[i].sparse ? 0 : cl->map[i].size;
		*count += cl->map[i].base != NULL;
	}
	return bytes;
}

/* Watches a region, so that a page that is missing is fetched by a thread. Without that right, or
 * without the thread, the loop that touches the page allocates it. */
static void
region_watch(struct eng_control *c, const struct eng_region *r)
{
	if (c->a.pages != NULL && eng_pages_start(c->a.pages) == 0)
		eng_watch(r->guard, r->size, r->page);
}

void
ctl_region_watch_home(const struct eng_region *r, uint64_t rings)
{
	uint64_t len = r->page == PAGE_SIZE_SMALL ? rings & ~(PAGE_SIZE_SMALL - 1) : r->size;

	if (len > 0 && madvise(r->base, len, MADV_POPULATE_WRITE) == 0)
		eng_watch(r->guard, len, 0);
}

/* Checks the limits of one client. Returns 0, or -EDQUOT with a sentence. */
static int
region_permitted(struct eng_control *c, const struct ctl_client *cl, const struct eng_region *r,
	char *why, size_t whylen)
{
	const struct eng_limits limits = ctl_limits(c), *l = &limits;
	uint32_t count;
	uint64_t bytes = brought(cl, &count);

	if (count >= l->client_regions || count >= SHM_MAX_REGIONS - 1) {
		snprintf(why, whylen, "no more than %u regions are allowed to one client", count);
		return -EDQUOT;
	}
	if (!r->sparse && (bytes > l->client_mem_bytes || r->size > l->client_mem_bytes - bytes)) {
		snprintf(why, whylen, "no more than %llu bytes of memory are allowed to one client",
			(unsigned long long)l->client_mem_bytes);
		return -EDQUOT;
	}
	if (r->sparse && r->size > SHM_OBJECT_MAX - sparse_space(cl)) {
		snprintf(why, whylen, "the shared memory of one client spans at most %llu bytes",
			(unsigned long long)SHM_OBJECT_MAX);
		return -EDQUOT;
	}
	return 0;
}

/* Takes the region's units of the pools. Returns 0, or -ENOSPC with a sentence. */
static int
region_share(
	struct eng_control *c, const struct ctl_client *cl, uint64_t size, char *why, size_t whylen)
{
	if (!ctl_share_take(c, CTL_POOL_REGION, cl->eng.user)) {
		snprintf(why, whylen,
			"no more than %u regions of all clients are mapped, or the "
			"rest of them is reserved for other users",
			c->share[CTL_POOL_REGION].size);
		return -ENOSPC;
	}
	if (!ctl_space_take(c->places, cl, size)) {
		ctl_share_give(c, CTL_POOL_REGION, cl->eng.user);
		snprintf(why, whylen,
			"no address space is left for %llu bytes, or the rest of it is reserved "
			"for other users",
			(unsigned long long)size);
		return -ENOSPC;
	}
	return 0;
}

static void
region_unshare(struct eng_control *c, const struct ctl_client *cl, uint32_t number)
{
	ctl_share_give(c, CTL_POOL_REGION, cl->eng.user);
	if (number != SHM_HOME)
		ctl_space_give(c->places, cl, cl->map[number].size);
}

int
ctl_region_take(struct eng_control *c, struct ctl_client *cl, const struct eng_region *r, char *why,
	size_t whylen)
{
	uint32_t n = SHM_HOME + 1;
	int rc = region_permitted(c, cl, r, why, whylen);

	if (rc == 0)
		rc = region_share(c, cl, r->size, why, whylen);
	if (rc < 0)
		return rc;
	while (cl->map[n].base != NULL)
		n++;
	cl->map[n] = *r;
	cl->map[n].guard = eng_guard(r->base, r->size, &cl->eng.dead);
	if (cl->map[n].guard < 0) {
		region_unshare(c, cl, n);
		cl->map[n].base = NULL;
		cl->map[n].size = 0;
		snprintf(why, whylen, "this saker has mapped its maximum of regions");
		return -ENOSPC;
	}
	region_watch(c, &cl->map[n]);
	return (int)n;
}

void
ctl_region_unmap(struct ctl_client *cl, uint32_t number)
{
	struct eng_region *r = &cl->map[number];

	if (r->base == NULL)
		return;
	eng_unguard(r->guard);
	region_unshare(cl->control, cl, number);
	munmap(r->base, r->size);
	if (r->fd >= 0)
		close(r->fd);
	*r = (struct eng_region){.fd = -1, .guard = -1};
}

int
ctl_region_drop(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	uint32_t n = m->body.handle;
	struct eng_region *r = n < SHM_MAX_REGIONS ? &cl->region[n] : NULL;

	if (r == NULL || n == SHM_HOME || r->base == NULL)
		return ctl_refuse(
			c, m, -EINVAL, "there is no memory region number %u of this client", n);
	if (r->mrs)
		return ctl_refuse(c, m, -EBUSY, "memory %u has %u memory regions registered in it",
			n, r->mrs);
	*r = (struct eng_region){.fd = -1, .guard = -1};
	cl->nregions--;
	ctl_total(&c->totals.regions, -1);
	__atomic_fetch_or(&cl->dropped, 1ull << n, __ATOMIC_RELEASE);
	ctl_wake_socket(c);
	return 0;
}
