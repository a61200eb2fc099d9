/* SPDX-License-Identifier: BSD-3-Clause */
#include "sources.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/base/secret.h"

/* Writes the path of a source to `path`. Returns 0 or -EINVAL. */
static int
source_path(const char *source, char path[PATH_MAX], char why[WHY_LEN])
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	int n;

	if (source[0] == '/') {
		n = snprintf(path, PATH_MAX, "%s", source);
	} else if (dir == NULL) {
		return settings_refuse(why,
			"names a credential, but the service manager has passed none "
			"($CREDENTIALS_DIRECTORY is not set)");
	} else {
		n = snprintf(path, PATH_MAX, "%s/%s", dir, source + strlen(CREDENTIAL));
	}
	return n < PATH_MAX ? 0 : settings_refuse(why, "is too long a path");
}

/* Checks the owner and the mode of a file. */
static int
source_check(const struct stat *st, bool secret, char why[WHY_LEN])
{
	unsigned mode = st->st_mode & 07777;

	if (!S_ISREG(st->st_mode))
		return settings_refuse(why, "is not a regular file");
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return settings_refuse(why,
			"belongs to user %u; only root's files and those of this process's user "
			"are trusted",
			(unsigned)st->st_uid);
	if (mode & 022)
		return settings_refuse(
			why, "can be written by others: its mode is %04o (chmod go-w)", mode);
	if (secret && (mode & 07))
		return settings_refuse(
			why, "can be read by others: its mode is %04o (chmod o-rwx)", mode);
	if (secret && (mode & 070) && st->st_uid != 0)
		return settings_refuse(
			why, "can be read by its group: its mode is %04o (chmod g-rwx)", mode);
	if (st->st_size > SOURCE_MAX)
		return settings_refuse(
			why, "has %lld bytes, more than %u", (long long)st->st_size, SOURCE_MAX);
	return 0;
}

static int
source_load(int fd, struct source_text *out, char why[WHY_LEN])
{
	ssize_t n;

	out->room = SOURCE_MAX + 1;
	out->text = sk_secret_alloc(out->room);
	if (out->text == NULL)
		return settings_refuse(why, "cannot be read: out of memory");
	while ((n = read(fd, out->text + out->len, SOURCE_MAX - out->len)) > 0)
		out->len += (size_t)n;
	if (n < 0)
		return settings_refuse(why, "cannot be read: %s", strerror(errno));
	if (strlen(out->text) != out->len)
		return settings_refuse(why, "contains a zero byte");
	return 0;
}

int
source_read(const char *source, bool secret, struct source_text *out, char why[WHY_LEN])
{
	char path[PATH_MAX];
	struct stat st;
	int fd, rc;

	memset(out, 0, sizeof(*out));
	if (source_path(source, path, why) < 0)
		return -EINVAL;
	/* The open of a pipe or a terminal must not wait, nor change the terminal of saker. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return settings_refuse(why, "cannot be read: %s", strerror(errno));
	if (fstat(fd, &st) < 0)
		rc = settings_refuse(why, "cannot be read: %s", strerror(errno));
	else
		rc = source_check(&st, secret, why);
	if (rc == 0)
		rc = source_load(fd, out, why);
	close(fd);
	return rc;
}

void
source_free(struct source_text *s)
{
	sk_secret_free(s->text, s->room);
	memset(s, 0, sizeof(*s));
}
