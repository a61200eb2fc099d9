/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mappings of the process, from /proc/self/maps, and which of them can move. In a program that
 * locks memory, /proc/self/smaps is read instead: it has the same lines and also shows which
 * mappings are locked, but takes much longer.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "move_priv.h"

#define FIRST_CAP (256ull << 10)

static char *text; /* ends with a NUL */
static size_t text_len, text_cap;

static bool
text_grow(void)
{
	size_t cap = text_cap != 0 ? 2 * text_cap : FIRST_CAP;
	char *p = mv_own_map(cap, PROT_READ | PROT_WRITE);

	if (p == NULL)
		return false;
	if (text != NULL) {
		memcpy(p, text, text_len);
		munmap(text, text_cap);
	}
	text = p;
	text_cap = cap;
	return true;
}

static int
text_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = -errno;
	ssize_t n = -1;

	text_len = 0;
	while (fd >= 0) {
		if (text_len + 1 >= text_cap && !text_grow()) {
			n = -1;
			errno = ENOMEM;
			break;
		}
		n = read(fd, text + text_len, text_cap - 1 - text_len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		text_len += (size_t)n;
	}
	if (fd >= 0) {
		rc = n < 0 ? -errno : 0;
		close(fd);
	}
	if (rc < 0)
		return mv_fail(rc, "%s cannot be read, so memory cannot be moved: %s", path,
			strerror(-rc));
	text[text_len] = '\0';
	return 0;
}

int
mv_maps_load(void)
{
	const char *locked;
	int rc = text_read("/proc/self/status");

	if (rc < 0)
		return rc;
	locked = strstr(text, "\nVmLck:");
	if (locked != NULL) {
		locked += strlen("\nVmLck:");
		locked += strspn(locked, " \t");
	}
	return text_read(locked != NULL && *locked != '0' ? "/proc/self/smaps" : "/proc/self/maps");
}

int
mv_maps_load_all(void)
{
	return text_read("/proc/self/smaps");
}

static uint64_t
maps_number(const char **p, unsigned base)
{
	uint64_t n = 0;

	for (;; (*p)++) {
		char c = **p;
		unsigned d = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
			     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
						    : 99;

		if (d >= base)
			return n;
		n = n * base + d;
	}
}

/* Parses "start-end rwxp offset major:minor inode  name". Returns false for other lines
 * of smaps.
 */
static bool
line_parse(const char *p, struct mv_vma *v)
{
	unsigned maj;
	size_t n;

	memset(v, 0, sizeof(*v));
	v->start = maps_number(&p, 16);
	if (*p++ != '-')
		return false;
	v->end = maps_number(&p, 16);
	if (*p++ != ' ')
		return false;
	v->prot = (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) |
		  (p[2] == 'x' ? PROT_EXEC : 0);
	v->shared = p[3] == 's';
	p += 5;
	v->offset = maps_number(&p, 16);
	p++;
	maj = (unsigned)maps_number(&p, 16);
	p++;
	v->dev = makedev(maj, (unsigned)maps_number(&p, 16));
	p++;
	v->ino = maps_number(&p, 10);
	p += strspn(p, " ");
	n = strcspn(p, "\n");
	v->path = p;
	memcpy(v->name, p, n < sizeof(v->name) ? n : sizeof(v->name) - 1);
	return true;
}

static const char *
line_next(const char *p)
{
	const char *end = strchr(p, '\n');

	return end != NULL ? end + 1 : p + strlen(p);
}

static bool
flags_locked(const char *p)
{
	size_t n = strcspn(p, "\n");

	for (size_t i = 0; i + 4 <= n; i++)
		if (memcmp(p + i, " lo ", 4) == 0)
			return true;
	return false;
}

static uint64_t
kib_of(const char *p)
{
	p += strspn(p, " \t");
	return maps_number(&p, 10);
}

bool
mv_maps_next(size_t *at, struct mv_vma *v)
{
	const char *p = text + *at;
	struct mv_vma other;

	while (*p != '\0' && !line_parse(p, v))
		p = line_next(p);
	if (*p == '\0')
		return false;
	for (p = line_next(p); *p != '\0' && !line_parse(p, &other); p = line_next(p))
		if (strncmp(p, "VmFlags:", 8) == 0)
			v->locked = flags_locked(p);
		else if (strncmp(p, "KernelPageSize:", 15) == 0)
			v->page = kib_of(p + 15) << 10;
	*at = (size_t)(p - text);
	return true;
}

bool
mv_maps_find(uintptr_t addr, struct mv_vma *v)
{
	size_t at = 0;

	while (mv_maps_next(&at, v))
		if (addr < v->end)
			return addr >= v->start;
	return false;
}

struct mv_window *
mv_vma_window(const struct mv_vma *v)
{
	struct mv_window *w;

	for (unsigned i = 0; v->shared && (w = mv_window_at(i)) != NULL; i++)
		if (v->ino == w->ino && v->dev == w->dev)
			return v->end - v->start < MV_WINDOW || v->start == w->base ? w : NULL;
	return NULL;
}

/* Returns why a mapping cannot move, with *rc, or NULL when it can. */
static const char *
maps_verdict(const struct mv_vma *v, bool write, int *rc)
{
	const struct mv_window *w = mv_vma_window(v);

	*rc = -EOPNOTSUPP;
	if (w != NULL)
		return v->start - w->base == v->offset
			       ? NULL
			       : "registered memory that mremap(2) has moved";
	if (strncmp(v->name, "[stack", 6) == 0)
		return "the stack, which must not be shared between parent and child of a fork";
	if (strncmp(v->name, "[v", 2) == 0)
		return "a mapping of the kernel";
	if (v->shared)
		return "shared with other processes (MAP_SHARED), so it cannot be moved";
	if (strncmp(v->name, "/anon_hugepage", 14) == 0)
		return "on huge pages (MAP_HUGETLB), which cannot be moved";
	if (v->ino != 0 && !(v->prot & PROT_WRITE))
		return "a file, mapped for reading";
	*rc = -EACCES;
	if (!(v->prot & PROT_READ))
		return "not readable";
	if (write && !(v->prot & PROT_WRITE))
		return "read-only, but registered with a right to write";
	return NULL;
}

int
mv_judge(uintptr_t from, uintptr_t to, bool write)
{
	struct mv_vma v, below = {.end = 0};
	uintptr_t next = from;
	const char *why;
	size_t at = 0;
	int rc;

	for (; next < to && mv_maps_next(&at, &v) && v.start <= next; below = v) {
		if (v.end <= next)
			continue;
		why = maps_verdict(&v, write, &rc);
		if (why == NULL && !v.shared &&
			mv_is_stack(&v, &below, next, to < v.end ? to : v.end)) {
			rc = -EOPNOTSUPP;
			why = "a thread's stack, which must not be shared between parent and child "
			      "of a fork";
		}
		if (why != NULL)
			return mv_fail(
				rc, "the memory at %#llx is %s", (unsigned long long)next, why);
		next = v.end;
	}
	if (next < to)
		return mv_fail(-EFAULT, "there is no memory at %#llx", (unsigned long long)next);
	return 0;
}
