/* landlock.c: see landlock.h. runs in: launcher's children */
#include "jail/landlock.h"

#include <errno.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/linux_compat.h"

#define SEE (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define USE (SEE | LANDLOCK_ACCESS_FS_WRITE_FILE | DW_LANDLOCK_ACCESS_FS_IOCTL_DEV)
#define CHANGE                                                                                                         \
    (DW_LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_REMOVE_DIR |                       \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |                     \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |                       \
     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)
/* What a rule on a file that is no folder may name. */
#define ON_FILE                                                                                                        \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |                       \
     DW_LANDLOCK_ACCESS_FS_IOCTL_DEV | DW_LANDLOCK_ACCESS_FS_TRUNCATE)

static const uint64_t access_rights[] = {
    [LANDLOCK_SEE] = SEE,
    [LANDLOCK_USE] = USE,
    [LANDLOCK_CHANGE] = USE | CHANGE,
};

int landlock_abi(void) {
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < 0 ? -errno : (int)abi;
}

/* The rights that this kernel's ABI knows: landlock.rst, "Previous limitations". */
static uint64_t known(int abi) {
    uint64_t rights = USE | CHANGE;
    if (abi < 2)
        rights &= ~LANDLOCK_ACCESS_FS_REFER;
    if (abi < 3)
        rights &= ~DW_LANDLOCK_ACCESS_FS_TRUNCATE;
    if (abi < 5)
        rights &= ~DW_LANDLOCK_ACCESS_FS_IOCTL_DEV;
    return rights;
}

static int add_rule(int ruleset, const struct landlock_rule *rule, uint64_t rights) {
    struct stat st;
    if (fstat(rule->fd, &st) < 0)
        return -errno;
    struct landlock_path_beneath_attr attr = {
        .allowed_access = access_rights[rule->access] & rights & (S_ISDIR(st.st_mode) ? ~0ULL : ON_FILE),
        .parent_fd = rule->fd,
    };
    return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0) < 0 ? -errno : 0;
}

int landlock_confine(const struct landlock_rule *rules, size_t n, bool scope, struct error *err) {
    int abi = landlock_abi();
    if (abi < 0)
        return error_errno(err, abi, "cannot use Landlock");
    uint64_t rights = known(abi);
    struct dw_landlock_ruleset_attr attr = {.handled_access_fs = rights};
    if (scope && abi >= 6)
        attr.scoped = DW_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | DW_LANDLOCK_SCOPE_SIGNAL;
    size_t size = abi >= 6 ? sizeof(attr) : abi >= 4 ? sizeof(uint64_t) * 2 : sizeof(uint64_t);
    _cleanup_fd_ int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    if (ruleset < 0)
        return error_errno(err, -errno, "cannot make a Landlock ruleset");
    for (size_t i = 0; i < n; i++) {
        int r = add_rule(ruleset, &rules[i], rights);
        if (r < 0)
            return error_errno(err, r, "cannot add Landlock rule %zu", i);
    }
    return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0
               ? error_errno(err, -errno, "cannot enter the Landlock domain")
               : 0;
}
