/* reasons.c: what can be wrong with a host, how that shows, and what to type. See host.h.
 *
 * The first row that fits is the one that is told. So what stands around everything (a sandbox, a container) comes before the
 * settings of the host's kernel, which show inside it too but are not the reason there; and what the errno alone says comes
 * last. A new row is a new host that somebody met: its file, its words, a line in tests/hosts.py.
 * runs in: launcher, cli */
#include <errno.h>

#include "base/cleanup.h"
#include "host/host.h"

#define FORBIDDEN                                                                                                      \
    { -EPERM, -EACCES, -ENOSYS }
#define DENIED                                                                                                         \
    { -EPERM, -EACCES }
#define CONTAINER_SEES_PROC                                                                                            \
    "parts of /proc are covered in this container, and then the kernel allows no /proc of a sandbox's own"
#define CONTAINER_FORBIDS "the filter or profile of the container that doorward runs in forbids what a wall needs"
#define CONTAINER_ROOT    "root of this container may not mount"
#define DOCKER                                                                                                         \
    "type: docker run --security-opt systempaths=unconfined --security-opt seccomp=unconfined "                        \
    "--security-opt apparmor=unconfined ... (and in it doorward as an ordinary user: --user 1000), or run doorward "   \
    "outside"
#define PODMAN                                                                                                         \
    "type: podman run --security-opt unmask=ALL --security-opt seccomp=unconfined --security-opt label=disable ... "   \
    "(and in it doorward as an ordinary user: --user 1000), or run doorward outside"
#define KUBERNETES                                                                                                     \
    "do: set securityContext procMount: Unmasked with hostUsers: false, seccompProfile and appArmorProfile type: "     \
    "Unconfined for this container, or run doorward outside"

#define GROUPS "memory processes cpus cgroup"

#define USED_UP(kind)                                                                                                  \
    {                                                                                                                  \
        NULL, {-ENOSPC}, HOST_ANYBODY, HOST_IS, "/proc/sys/user/max_" kind "_namespaces", "0",                         \
            "this host allows no " kind " namespaces, since user.max_" kind "_namespaces is 0",                        \
            "type: sudo sysctl -w user.max_" kind "_namespaces=15000"                                                  \
    }

const struct host_reason host_reasons[] = {
    /* What only the kernel can be the reason of. */
    {"landlock",
     {-EOPNOTSUPP},
     HOST_ANYBODY,
     HOST_ALWAYS,
     NULL,
     NULL,
     "this kernel has Landlock, but it was not switched on when it booted",
     "do: put landlock in front of the list that /sys/kernel/security/lsm shows, as lsm=landlock,... on the kernel's "
     "command line (/etc/default/grub, then: sudo update-grub), and boot again"},
    {"landlock",
     {-ENOSYS},
     HOST_ANYBODY,
     HOST_ALWAYS,
     NULL,
     NULL,
     "this kernel has no Landlock",
     "do: boot Linux 5.13 or newer that is built with CONFIG_SECURITY_LANDLOCK=y"},
    {"seccomp",
     {-ENOSYS, -EINVAL, -EOPNOTSUPP},
     HOST_ANYBODY,
     HOST_ALWAYS,
     NULL,
     NULL,
     "this kernel cannot filter system calls and report them",
     "do: boot Linux 5.0 or newer that is built with CONFIG_SECCOMP_FILTER=y"},

    {"overlay",
     {-EOPNOTSUPP},
     HOST_USER,
     HOST_ALWAYS,
     NULL,
     NULL,
     "tmpfs has them since Linux 6.6, and without them an overlay cannot remember that a folder was replaced",
     "do: say copy in place of overlay, run doorward as root, or boot Linux 6.6 or newer"},

    /* Inside something else. */
    {NULL, FORBIDDEN, HOST_ANYBODY, HOST_EXISTS, "/run/doorward/dw", NULL,
     "doorward runs inside a sandbox of doorward's, which lets its worker make no namespaces",
     "do: run doorward outside, one task beside the other"},
    {"pids", DENIED, HOST_ANYBODY, HOST_EXISTS, "/.dockerenv", NULL, CONTAINER_SEES_PROC, DOCKER},
    {"pids", DENIED, HOST_ANYBODY, HOST_EXISTS, "/run/.containerenv", NULL, CONTAINER_SEES_PROC, PODMAN},
    {"pids", DENIED, HOST_ANYBODY, HOST_EXISTS, "/var/run/secrets/kubernetes.io", NULL, CONTAINER_SEES_PROC,
     KUBERNETES},
    {NULL, FORBIDDEN, HOST_ANYBODY, HOST_EXISTS, "/.dockerenv", NULL, CONTAINER_FORBIDS, DOCKER},
    {NULL, FORBIDDEN, HOST_ANYBODY, HOST_EXISTS, "/run/.containerenv", NULL, CONTAINER_FORBIDS, PODMAN},
    {NULL, FORBIDDEN, HOST_ANYBODY, HOST_EXISTS, "/var/run/secrets/kubernetes.io", NULL, CONTAINER_FORBIDS, KUBERNETES},
    {"pids", DENIED, HOST_ANYBODY, HOST_ALWAYS, NULL, NULL,
     "the kernel allows no /proc of a sandbox's own here, since parts of /proc are covered, as in a container or "
     "another "
     "sandbox",
     "do: run doorward outside of it, or start that one with all of /proc visible (docker: --security-opt "
     "systempaths=unconfined; bubblewrap: --dev-bind / / instead of --proc)"},
    {NULL, FORBIDDEN, HOST_ANYBODY, HOST_LACKS, "/proc/self/uid_map", "4294967295",
     "doorward runs inside the user namespace of a container or of another sandbox, which forbids what a wall needs",
     "do: run doorward outside of it, or allow it there"},

    /* Settings of the host. */
    {NULL, DENIED, HOST_USER, HOST_IS, "/proc/sys/kernel/unprivileged_userns_clone", "0",
     "this host lets no ordinary user make user namespaces, since kernel.unprivileged_userns_clone is 0",
     "type: sudo sysctl -w kernel.unprivileged_userns_clone=1"},
    {NULL, DENIED, HOST_USER, HOST_IS, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
     "AppArmor on this host (Ubuntu 23.10 and later) lets only programs with a profile use user namespaces, since "
     "kernel.apparmor_restrict_unprivileged_userns is 1",
     "type: doorward doctor --apparmor-profile | sudo tee /etc/apparmor.d/doorward-launch && sudo apparmor_parser -r "
     "/etc/apparmor.d/doorward-launch   or, for every program of this host: sudo sysctl -w "
     "kernel.apparmor_restrict_unprivileged_userns=0"},
    USED_UP("user"),
    USED_UP("mnt"),
    USED_UP("pid"),
    USED_UP("net"),
    USED_UP("ipc"),
    USED_UP("uts"),
    USED_UP("cgroup"),
    {NULL,
     {-ENOSPC},
     HOST_ANYBODY,
     HOST_HAS,
     "/proc/self/uid_map",
     "4294967295",
     "the namespaces that this host allows a user are used up",
     "do: end what holds them, or type: sudo sysctl -w user.max_user_namespaces=15000 (and its kin, sysctl user)"},
    {NULL,
     {-ENOSPC},
     HOST_ANYBODY,
     HOST_ALWAYS,
     NULL,
     NULL,
     "doorward runs inside the user namespace of a container or of another sandbox, which allows no more of them (its "
     "user.max_user_namespaces)",
     "do: run doorward outside of it, or start that one without its limit (bubblewrap: without --disable-userns)"},
    {NULL,
     {-EAGAIN},
     HOST_ANYBODY,
     HOST_ALWAYS,
     NULL,
     NULL,
     "the limit of processes of this user is reached",
     "do: end some of them, or raise it (ulimit -u; `max user processes`)"},

    /* Kernels. */
    {NULL,
     {-ENOSYS},
     HOST_ANYBODY,
     HOST_HAS,
     "/proc/sys/kernel/osrelease",
     "-Microsoft",
     "this is the Windows Subsystem for Linux of the first kind, which has no Linux kernel and so no walls",
     "type, in Windows: wsl --set-version DISTRIBUTION 2"},
    {NULL,
     {-ENOSYS},
     HOST_ANYBODY,
     HOST_HAS,
     "/proc/sys/kernel/osrelease",
     "microsoft",
     "the kernel of this Windows Subsystem for Linux lacks what a wall needs",
     "type, in Windows: wsl --update"},
    {NULL,
     {-ENOSYS},
     HOST_ANYBODY,
     HOST_ALWAYS,
     NULL,
     NULL,
     "the kernel, or the filter of the container that doorward runs in, lacks this",
     "do: boot Linux 5.14 or newer, or run doorward outside: both are needed by the walls"},

    /* Limits. */
    {GROUPS,
     {0},
     HOST_USER,
     HOST_EXISTS,
     "/run/systemd/system",
     NULL,
     "no control group is this user's to make",
     "type: systemd-run --user --scope -p Delegate=yes doorward run ..., or run doorward as root"},
    {GROUPS,
     {0},
     HOST_USER,
     HOST_ALWAYS,
     NULL,
     NULL,
     "no control group is this user's to make",
     "do: run doorward as root, or have root make a control group that this user may write and start in it"},
    {GROUPS,
     {0},
     HOST_ROOT,
     HOST_EXISTS,
     "/sys/fs/cgroup/cgroup.controllers",
     NULL,
     "no control group with this controller can be made below the one that doorward is in",
     "do: start doorward from a service or scope with Delegate=yes (in a container: have its host let it write its "
     "control "
     "groups)"},
    {GROUPS,
     {0},
     HOST_ROOT,
     HOST_ALWAYS,
     NULL,
     NULL,
     "no control groups are mounted that doorward can use",
     "type: mount -t cgroup2 cgroup2 /sys/fs/cgroup"},

    /* What the errno alone says. */
    {NULL, DENIED, HOST_ANYBODY, HOST_IS, "/sys/fs/selinux/enforce", "1",
     "SELinux is enforcing here and may be what forbids this",
     "type: sudo ausearch -m avc -ts recent   and where it names doorward: sudo ausearch -m avc -ts recent | "
     "audit2allow "
     "-M doorward && sudo semodule -i doorward.pp"},
    {NULL,
     {-EPERM},
     HOST_USER,
     HOST_ALWAYS,
     NULL,
     NULL,
     "the host, or the filter of the container that doorward runs in, forbids this",
     "do: allow it there, or run doorward outside; doorward doctor tries wall by wall"},
    {NULL,
     {-EPERM},
     HOST_ROOT,
     HOST_ALWAYS,
     NULL,
     NULL,
     "the host, or the filter of the container that doorward runs in, forbids this to root",
     "do: allow it there, or run doorward there as an ordinary user, or outside; doorward doctor tries wall by wall"},
};
const size_t host_n_reasons = ELEMENTS(host_reasons);
