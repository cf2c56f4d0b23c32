/* host_test.c: hosts as they are met, each a folder with the files that tell it. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "host/host.h"

static void make_file(int root, const char *path, const char *text) {
    char folder[128];
    snprintf(folder, sizeof(folder), "%s", path + 1);
    char *slash = strrchr(folder, '/');
    if (slash) {
        *slash = 0;
        fd_close(fd_mkdirs_beneath(root, folder, 0755));
    }
    _cleanup_fd_ int fd = openat(root, path + 1, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    fd_write_all(fd, text, strlen(text));
}

static void remove_file(int root, const char *path) {
    char name[128];
    snprintf(name, sizeof(name), "%s", path + 1);
    unlinkat(root, name, 0);
    for (char *slash; (slash = strrchr(name, '/'));) {
        *slash = 0;
        unlinkat(root, name, AT_REMOVEDIR);
    }
}

static const struct {
    const char *file, *text; /* what the host shows; NULL: nothing */
    const char *door;
    int code;
    bool superuser;
    const char *words; /* NULL: nothing explains it */
} hosts[] = {
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", "userns", -EPERM, false, "apparmor_parser -r"},
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", "net", -EACCES, false, "apparmor_parser -r"},
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0\n", "userns", -EPERM, false, "allow it there"},
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", "userns", -EPERM, true, "forbids this to root"},
    {"/proc/sys/kernel/unprivileged_userns_clone", "0\n", "userns", -EPERM, false,
     "sysctl -w kernel.unprivileged_userns_clone=1"},
    {"/proc/sys/user/max_user_namespaces", "0\n", "userns", -ENOSPC, false, "sysctl -w user.max_user_namespaces=15000"},
    {"/proc/sys/user/max_net_namespaces", "0\n", "net", -ENOSPC, false, "sysctl -w user.max_net_namespaces=15000"},
    {"/proc/self/uid_map", "0 0 4294967295\n", "userns", -ENOSPC, false, "used up"},
    {"/proc/self/uid_map", "1000 1000 1\n", "userns", -ENOSPC, false, "--disable-userns"},
    {"/proc/self/uid_map", "1000 1000 1\n", "net", -EPERM, false, "inside the user namespace"},
    {"/.dockerenv", "", "userns", -EPERM, false, "docker run --security-opt systempaths=unconfined"},
    {"/.dockerenv", "", "pids", -EPERM, false, "parts of /proc are covered in this container"},
    {"/.dockerenv", "", "userns", -ENOSYS, false, "seccomp=unconfined"},
    {"/run/.containerenv", "", "pids", -EPERM, false, "podman run --security-opt unmask=ALL"},
    {"/var/run/secrets/kubernetes.io", "", "mounts", -EPERM, false, "procMount: Unmasked"},
    {"/run/doorward/dw", "", "userns", -EPERM, false, "inside a sandbox of doorward's"},
    {"/proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n", "userns", -ENOSYS, false, "wsl --update"},
    {"/proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft\n", "userns", -ENOSYS, false, "wsl --set-version"},
    {"/proc/sys/kernel/osrelease", "4.19.0\n", "mounts", -ENOSYS, false, "Linux 5.14"},
    {"/sys/fs/selinux/enforce", "1\n", "mounts", -EACCES, true, "ausearch"},
    {NULL, NULL, "pids", -EPERM, false, "bubblewrap"},
    {NULL, NULL, "landlock", -EOPNOTSUPP, false, "lsm=landlock"},
    {NULL, NULL, "landlock", -ENOSYS, true, "CONFIG_SECURITY_LANDLOCK"},
    {NULL, NULL, "seccomp", -ENOSYS, false, "CONFIG_SECCOMP_FILTER"},
    {NULL, NULL, "userns", -EAGAIN, false, "ulimit -u"},
    {"/run/systemd/system", "", "memory", -EACCES, false, "systemd-run --user --scope -p Delegate=yes"},
    {"/run/systemd/system", "", "memory", -EACCES, true, "mount -t cgroup2"},
    {NULL, NULL, "memory", -EACCES, false, "as root"},
    {NULL, NULL, "mem", -EIO, false, NULL},
    {NULL, NULL, "", -EIO, true, NULL},
};

TEST(each_host_is_known_by_what_it_shows) {
    char dir[] = "/tmp/dw-host-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    _cleanup_fd_ int root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < ELEMENTS(hosts); i++) {
        if (hosts[i].file)
            make_file(root, hosts[i].file, hosts[i].text);
        const struct host_reason *r = host_explain(root, hosts[i].door, hosts[i].code, hosts[i].superuser);
        if (hosts[i].file)
            remove_file(root, hosts[i].file);
        bool told = r && hosts[i].words && (strstr(r->what, hosts[i].words) || strstr(r->remedy, hosts[i].words));
        if (hosts[i].words ? !told : r != NULL)
            printf("# row %zu: %s\n", i, r ? r->remedy : "nothing");
        CHECK(hosts[i].words ? told : !r);
    }
    CHECK(rmdir(dir) == 0);
}

TEST(each_reason_says_what_to_do) {
    for (size_t i = 0; i < host_n_reasons; i++) {
        CHECK(!strncmp(host_reasons[i].remedy, "type", 4) || !strncmp(host_reasons[i].remedy, "do: ", 4));
        CHECK((host_reasons[i].test == HOST_ALWAYS) == !host_reasons[i].file);
        CHECK(strlen(host_reasons[i].what) + strlen(host_reasons[i].remedy) < ERROR_MESSAGE_MAX - 300);
    }
}

TEST(the_door_of_a_message_is_its_innermost) {
    char door[32];
    CHECK(!strcmp(host_door("wall userns: cannot", door), "userns"));
    CHECK(!strcmp(host_door("wall mounts: wall pids: cannot mount a proc file system: no", door), "pids"));
    CHECK(!strcmp(host_door("limits.open-files: nothing", door), "open-files"));
    CHECK(!strcmp(host_door("door overlay at /work: memory-backed", door), "overlay"));
    CHECK(!strcmp(host_door("the wall fell", door), ""));
}

TEST(a_remedy_is_added_once) {
    struct error err = {0};
    error_set(&err, -EAGAIN, "wall userns: cannot");
    CHECK(host_add_remedy(&err, false) == -EAGAIN && strstr(err.message, "ulimit -u"));
    size_t n = strlen(err.message);
    CHECK(host_add_remedy(&err, false) == -EAGAIN && strlen(err.message) == n);
    error_set(&err, -EIO, "space: broken");
    CHECK(host_add_remedy(&err, false) == -EIO && !strcmp(err.message, "space: broken"));
}

TEST_MAIN()
