/* landlock_test.c: a domain holds, and the same action succeeds outside it. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "jail/confine.h"
#include "jail/landlock.h"

struct place {
    char dir[40], a[60], b[60];
};

static int make(struct place *p) {
    strcpy(p->dir, "/tmp/dw-landlock-XXXXXX");
    if (!mkdtemp(p->dir))
        return -1;
    snprintf(p->a, sizeof(p->a), "%s/a", p->dir);
    snprintf(p->b, sizeof(p->b), "%s/b", p->dir);
    return mkdir(p->a, 0700) | mkdir(p->b, 0700);
}

static int drop(const struct place *p) {
    char command[80];
    snprintf(command, sizeof(command), "rm -r %s", p->dir);
    return system(command);
}

static int touch(const char *dir, const char *name) {
    char path[80];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int code = fd < 0 ? errno : 0;
    close(fd);
    return code;
}

/* Errors of: write in a, write in b, rename within a between folders; as digits of the child's exit status. */
static int confined(const struct place *p, enum landlock_access access) {
    pid_t pid = fork();
    if (pid == 0) {
        struct error err;
        char from[80], to[80];
        struct landlock_rule rules[] = {{open("/", O_PATH | O_CLOEXEC), LANDLOCK_SEE},
                                        {open(p->a, O_PATH | O_CLOEXEC), access}};
        snprintf(from, sizeof(from), "%s/x", p->a);
        snprintf(to, sizeof(to), "%s/sub/x", p->a);
        if (confine_no_new_privileges() < 0 || landlock_confine(rules, 2, true, &err) < 0)
            _exit(99);
        _exit((touch(p->a, "x") ? 1 : 0) + (touch(p->b, "x") == EACCES ? 0 : 2) + (rename(from, to) ? 4 : 0));
    }
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(a_domain_holds) {
    struct place p;
    char sub[80];
    if (landlock_abi() < 0)
        SKIP("this kernel has no Landlock");
    CHECK(make(&p) == 0);
    snprintf(sub, sizeof(sub), "%s/sub", p.a);
    CHECK(mkdir(sub, 0700) == 0);
    CHECK_EQ(touch(p.b, "control"), 0);
    CHECK_EQ(confined(&p, LANDLOCK_CHANGE), 0); /* writes in a, not in b; a rename between folders works (REFER) */
    char moved[96];
    snprintf(moved, sizeof(moved), "%s/x", sub);
    CHECK(unlink(moved) == 0);
    CHECK_EQ(confined(&p, LANDLOCK_SEE), 1 + 4); /* neither */
    CHECK(drop(&p) == 0);
}

TEST_MAIN()
