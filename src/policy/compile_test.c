/* compile_test.c: from a policy to plans on a made-up host. runs in: tests */
#include "base/test.h"
#include "policy/fake_host.h"

#include <time.h>

#define STEP "version: 1\ntask: t\nsteps:\n  main:\n    run: [make]\n"

/* Compiles the first step of a policy text. */
static int compile(const char *text, struct plan *ret, struct error *err) {
    _cleanup_policy_ struct policy *p = NULL;
    int r = policy_parse("t.yaml", "/home/me/project", text, strlen(text), &p, err);
    return r < 0 ? r : policy_compile(p, 0, &fake_host, ret, err);
}

static int refused(const char *text, const char *want) {
    _cleanup_plan_ struct plan plan = {0};
    struct error err = {0};
    int r = compile(text, &plan, &err);
    bool good = r < 0 && !plan.argv && !strncmp(err.message, want, strlen(want));
    if (!good)
        printf("# %s\n# gives %d \"%s\",\n#  not   \"%s\"\n", text, r, err.message, want);
    return good;
}

static const char *variable(const struct plan *p, const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; p->env && p->env[i]; i++)
        if (!strncmp(p->env[i], name, n) && p->env[i][n] == '=')
            return p->env[i] + n + 1;
    return NULL;
}

TEST(a_small_step_has_all_defaults) {
    _cleanup_plan_ struct plan p = {0};
    struct error err = {0};
    CHECK_EQ(compile(STEP, &p, &err), 0);
    CHECK_STR(p.task, "t");
    CHECK_STR(p.step, "main");
    CHECK_STR(p.argv[0], "make");
    CHECK_STR(p.workdir, "/");
    CHECK_EQ(p.n_inputs + p.n_exports, 0);
    CHECK_EQ(p.user, PLAN_USER_AGENT);
    CHECK(!memcmp(p.limits, plan_limit_defaults, sizeof(p.limits)));
    CHECK_EQ(strv_count(p.env), 6);
    CHECK_STR(variable(&p, "HOME"), "/home/agent");
    CHECK_STR(variable(&p, "USER"), "agent");
    CHECK_STR(variable(&p, "LANG"), "C.UTF-8");
    CHECK_STR(variable(&p, "TERM"), "dumb");
    CHECK_STR(variable(&p, "TMPDIR"), "/tmp");
    CHECK_STR(variable(&p, "PATH"), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/doorward");
}

TEST(everything_a_step_says_is_in_its_plan) {
    _cleanup_plan_ struct plan p = {0};
    struct error err = {0};
    int r = compile("version: 1\ntask: t\nsteps:\n  main:\n    shell: make test | tee /out/log\n    user: root\n"
                    "    inputs:\n"
                    "      /work/new: {read: /data/tool, sensitive: true}\n"
                    "      /work: {overlay: ., exclude: [\".env*\"], only: [\"src/\", \"*.c\"]}\n"
                    "      /in/a: {copy: src/a.c}\n"
                    "    workdir: /work/src\n    env: {LANG: de, A: \"\"}\n    pass-env: [EDITOR]\n"
                    "    limits: {wall: 20m, memory: 4GiB, cpus: 1.5, output: 0, files: 3k, disk: 1GB, processes: 9}\n"
                    "    exports:\n      log: {type: file, path: /out/log, max: 1MiB, required: true}\n"
                    "      bin: {type: file, path: /work/bin, executable: true}\n"
                    "    degrade: [landlock, memory]\n    boundary: namespace\n    root: host\n",
                    &p, &err);
    if (r < 0)
        printf("# %s\n", err.message);
    CHECK_EQ(r, 0);
    CHECK_STR(p.argv[0], "/bin/sh");
    CHECK_STR(p.argv[1], "-c");
    CHECK_STR(p.argv[2], "make test | tee /out/log");
    CHECK_EQ(p.user, PLAN_USER_ROOT);
    CHECK_EQ(p.n_inputs, 3);
    CHECK_STR(p.inputs[0].target, "/in/a");
    CHECK_STR(p.inputs[0].source, "/home/me/project/src/a.c");
    CHECK(!p.inputs[0].directory && p.inputs[0].kind == PLAN_COPY);
    CHECK_STR(p.inputs[1].target, "/work");
    CHECK_STR(p.inputs[1].source, "/home/me/project");
    CHECK(p.inputs[1].directory && p.inputs[1].kind == PLAN_OVERLAY && !p.inputs[1].sensitive);
    CHECK_STR(p.inputs[1].exclude[0], ".env*");
    CHECK_STR(p.inputs[1].only[1], "*.c");
    CHECK_STR(p.inputs[2].target, "/work/new");
    CHECK(p.inputs[2].sensitive && p.inputs[2].kind == PLAN_READ);
    CHECK_STR(p.workdir, "/work/src");
    CHECK_STR(variable(&p, "LANG"), "de");
    CHECK_STR(variable(&p, "A"), "");
    CHECK_STR(variable(&p, "EDITOR"), "vi");
    CHECK_STR(variable(&p, "USER"), "root");
    CHECK_STR(variable(&p, "HOME"), "/home/agent");
    static const uint64_t limits[PLAN_LIMIT_N] = {1200000, 4ULL << 30, 9, 1500, 1000000000, 3000, 0, 4096};
    CHECK(!memcmp(p.limits, limits, sizeof(limits)));
    CHECK_EQ(p.n_exports, 2);
    CHECK_EQ(p.exports[0].max, 1 << 20);
    CHECK(p.exports[0].required && !p.exports[0].executable);
    CHECK_EQ(p.exports[1].max, 1000000000);
    CHECK(p.degrade_wall[PLAN_WALL_LANDLOCK] && p.degrade_limit[PLAN_MEMORY] && !p.degrade_wall[PLAN_WALL_SECCOMP]);
}

#define GIT(target, path) STEP "    inputs: {" target ": {overlay: " path ", git: true, label: private}}\n"

TEST(git_adds_the_repository_where_git_looks_for_it) {
    _cleanup_plan_ struct plan p = {0}, q = {0}, r = {0};
    struct error err = {0};
    CHECK_EQ(compile(GIT("/work", "/data/tree"), &p, &err), 0);
    CHECK_EQ(p.n_inputs, 2);
    CHECK_STR(p.inputs[0].target, "/data/main/.git");
    CHECK_STR(p.inputs[0].source, "/data/main/.git");
    CHECK(p.inputs[0].kind == PLAN_OVERLAY && p.inputs[0].directory && p.inputs[0].private);
    CHECK_STR(p.inputs[1].target, "/work");
    CHECK_EQ(compile(GIT("/work/lib", "/data/main/lib"), &q, &err), 0);
    CHECK_EQ(q.n_inputs, 2);
    CHECK_STR(q.inputs[0].target, "/work/.git/modules/lib");
    CHECK_STR(q.inputs[0].source, "/data/main/.git/modules/lib");
    CHECK_EQ(compile(GIT("/work", "/data/main"), &r, &err), 0);
    CHECK_EQ(r.n_inputs, 1);
}

TEST(git_is_not_led_astray) {
    static const char at[] = "t.yaml:6:31: steps.main.inputs[\"/work\"].overlay: git: true";
    static const char *const rows[][2] = {
        {"/data/thief", "does not name this folder as its worktree"},
        {"/data/stray", "neither a linked worktree's place nor a submodule's"},
        {"/data/odd", ".git is a file that does not say \"gitdir: PATH\""},
        {"/data/tool", "there is no .git in /data/tool"},
        {"/data/main/lib", "it must stand at a path that ends with /lib, as /work/lib does"},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        _cleanup_buf_ struct buf text = {0};
        _cleanup_plan_ struct plan p = {0};
        struct error err = {0};
        buf_printf(&text, GIT("/work", "%s"), rows[i][0]);
        int r = compile(text.bytes, &p, &err);
        if (r != -EINVAL || strncmp(err.message, at, strlen(at)) != 0 || !strstr(err.message, rows[i][1]))
            printf("# %s: %d %s\n", rows[i][0], r, err.message);
        CHECK(r == -EINVAL && !strncmp(err.message, at, strlen(at)) && strstr(err.message, rows[i][1]));
    }
}

#define INPUT(target, key, path) STEP "    inputs: {" target ": {" key ": " path "}}\n"
#define READ(path)               INPUT("/in/x", "read", path)

TEST(precious_paths_are_refused_unless_named_so) {
    static const char *const rows[][2] = {
        {"/", "/ is everything on this host"},
        {"/home/me", "/home/me is a home folder"},
        {"..", "/home/me is a home folder"},
        {"/home", "/home holds home folders"},
        {"/home/you", "/home/you is a home folder"},
        {"/home/me/.ssh", "/home/me/.ssh is ~/.ssh"},
        {"/home/me/.ssh/id_rsa", "/home/me/.ssh/id_rsa lies below ~/.ssh"},
        {"key", "/home/me/.ssh/id_rsa lies below ~/.ssh"},
        {"/home/me/.config", "/home/me/.config holds ~/.config/gcloud"},
        {"/home/you/.kube/config", "/home/you/.kube/config lies below ~/.kube"},
        {"/home/me/.aws", "/data/dotfiles/aws is what ~/.aws links to"},
        {"/data/dotfiles", "/data/dotfiles holds what ~/.aws links to"},
        {"/home/me/.local/state/doorward/runs",
         "/home/me/.local/state/doorward/runs lies below doorward's own records"},
        {"/etc", "/etc holds /etc/shadow (passwords)"},
        {"/tmp/agent", "/tmp/agent holds what SSH_AUTH_SOCK names"},
        {"/tmp", "/tmp holds "},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        _cleanup_buf_ struct buf text = {0}, want = {0};
        _cleanup_plan_ struct plan p = {0};
        struct error err = {0};
        buf_printf(&text, READ("%s"), rows[i][0]);
        buf_printf(&want, "t.yaml:6:28: steps.main.inputs[\"/in/x\"].read: the input is refused: %s", rows[i][1]);
        CHECK(refused(text.bytes, want.bytes));
        text.n -= 3;
        buf_puts(&text, ", sensitive: true}}\n");
        if (compile(text.bytes, &p, &err) != 0)
            printf("# %s\n", err.message);
        CHECK_EQ(p.n_inputs, 1);
    }
    CHECK(refused(READ("/tmp/agent/sock"),
                  "t.yaml:6:28: steps.main.inputs[\"/in/x\"].read: /tmp/agent/sock is a socket"));
    CHECK(refused(READ("/run/docker.sock"),
                  "t.yaml:6:28: steps.main.inputs[\"/in/x\"].read: /run/docker.sock is a socket"));
    CHECK(refused(READ("/data/fifo, sensitive: true"),
                  "t.yaml:6:28: steps.main.inputs[\"/in/x\"].read: /data/fifo is neither"));
}

TEST(ordinary_paths_are_let_in) {
    static const char *const rows[] = {
        ".", "src", "/home/me/project/src/a.c", "/data/tool", "/etc/hosts", "/tmp/victim", "/home/me/d"};
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        _cleanup_buf_ struct buf text = {0};
        _cleanup_plan_ struct plan p = {0};
        struct error err = {0};
        buf_printf(&text, READ("%s"), rows[i]);
        if (compile(text.bytes, &p, &err) != 0)
            printf("# %s: %s\n", rows[i], err.message);
        CHECK_EQ(p.n_inputs, 1);
    }
}

TEST(inputs_must_be_there_and_fit) {
    static const char *const rows[][2] = {
        {READ("missing"), "t.yaml:6:28: steps.main.inputs[\"/in/x\"].read: /home/me/project/missing: No such file"},
        {INPUT("/in/x", "overlay", "src/a.c"),
         "t.yaml:6:31: steps.main.inputs[\"/in/x\"].overlay: /home/me/project/src/a.c is a file, and an overlay needs"},
        {READ("src/a.c, only: [x]"),
         "t.yaml:6:28: steps.main.inputs[\"/in/x\"].read: /home/me/project/src/a.c is a file, and exclude and only"},
        {INPUT("/in/x", "copy", "/tmp/agent/sock, sensitive: true"),
         "t.yaml:6:28: steps.main.inputs[\"/in/x\"].copy: /tmp/agent/sock is a socket"},
        {READ("/data/bad\\xff"), "t.yaml:6:28: steps.main.inputs[\"/in/x\"].read: /data/bad"},
        {STEP "    inputs: {/w: {read: .}, /w/nothing: {read: /data/tool}}\n",
         "t.yaml:6:48: steps.main.inputs[\"/w/nothing\"].read: it lies in the read-only input /w, which has no "
         "nothing"},
        {STEP "    inputs: {/w: {overlay: .}, /w/src: {read: src/a.c}}\n",
         "t.yaml:6:47: steps.main.inputs[\"/w/src\"].read: it is a file, and what stands at src"},
        {STEP "    inputs: {/w: {overlay: .}, /w/out: {read: /data/tool}}\n",
         "t.yaml:6:47: steps.main.inputs[\"/w/out\"].read: it lies in the input /w, where a link leads away from out"},
        {STEP "    inputs: {/w: {copy: src/a.c}, /w/x: {read: .}}\n",
         "t.yaml:6:48: steps.main.inputs[\"/w/x\"].read: /w is a file"},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++)
        CHECK(refused(rows[i][0], rows[i][1]));
    _cleanup_plan_ struct plan p = {0}, q = {0};
    struct error err = {0};
    CHECK_EQ(compile(STEP "    inputs: {/w: {read: .}, /w/src: {read: /data/tool}}\n", &p, &err), 0);
    CHECK_EQ(compile(STEP "    inputs: {/w: {overlay: .}, /w/new: {read: /data/tool}}\n", &q, &err), 0);
}

TEST(the_work_folder_is_inside_what_the_policy_gives) {
    static const char *const rows[][2] = {
        {STEP "    workdir: /nowhere\n", "t.yaml:6:14: steps.main.workdir: no folder stands at /nowhere inside"},
        {STEP "    workdir: /work\n", "t.yaml:6:14: steps.main.workdir: no folder stands at /work"},
        {STEP "    workdir: /tmp/victim\n", "t.yaml:6:14: steps.main.workdir: no folder stands at /tmp/victim"},
        {STEP "    workdir: ..\n", "t.yaml:6:14: steps.main.workdir: \"..\" is not an absolute path"},
        {STEP "    workdir: /w/out\n    inputs: {/w: {overlay: .}}\n",
         "t.yaml:6:14: steps.main.workdir: links lead from /w/out out of"},
        {STEP "    workdir: /w/missing\n    inputs: {/w: {overlay: .}}\n",
         "t.yaml:6:14: steps.main.workdir: /home/me/project/missing: No such"},
        {STEP "    workdir: /w/src/a.c\n    inputs: {/w: {overlay: .}}\n",
         "t.yaml:6:14: steps.main.workdir: /w/src/a.c is no folder"},
        {STEP "    workdir: /w\n    inputs: {/w: {copy: src/a.c}}\n",
         "t.yaml:6:14: steps.main.workdir: no folder stands at /w"},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++)
        CHECK(refused(rows[i][0], rows[i][1]));
    static const char *const good[][2] = {
        {STEP "    inputs: {/work: {read: .}}\n", "/work"},
        {STEP "    inputs: {/work/sub: {read: .}}\n", "/work"},
        {STEP "    inputs: {/other: {read: .}}\n", "/"},
        {STEP "    workdir: /tmp\n", "/tmp"},
        {STEP "    workdir: /w/current\n    inputs: {/w: {overlay: .}}\n", "/w/src"},
    };
    for (size_t i = 0; i < ELEMENTS(good); i++) {
        _cleanup_plan_ struct plan p = {0};
        struct error err = {0};
        if (compile(good[i][0], &p, &err) < 0)
            printf("# %s\n", err.message);
        CHECK_STR(p.workdir, good[i][1]);
    }
}

TEST(variables_are_a_closed_list) {
    static const char *const rows[][2] = {
        {STEP "    pass-env: [EDITOR, NOT_SET]\n",
         "t.yaml:6:24: steps.main.pass-env[1]: NOT_SET is not set in doorward's own"},
        {STEP "    pass-env: [EDITOR]\n    env: {EDITOR: x}\n",
         "t.yaml:6:16: steps.main.pass-env[0]: EDITOR stands in `env` too"},
        {STEP "    pass-env: [BAD]\n", "t.yaml:6:16: steps.main.pass-env[0]: the variable BAD is not UTF-8 at byte 1"},
        {STEP "    pass-env: [EDITOR, EDITOR]\n",
         "t.yaml:6:24: steps.main.pass-env[1]: EDITOR stands in the list twice"},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++)
        CHECK(refused(rows[i][0], rows[i][1]));
    _cleanup_buf_ struct buf b = {0};
    buf_puts(&b, STEP "    env:\n      BIG: ");
    for (int i = 0; i < 200 * 1024; i++)
        buf_puts(&b, "x");
    CHECK(refused(b.bytes, "t.yaml:7:12: steps.main.env.BIG: the variable BIG has 204804 bytes"));
}

TEST(exports_are_checked_where_the_policy_names_them) {
    static const char *const rows[][2] = {
        {STEP "    exports: {x: {type: file, path: /usr/x}}\n",
         "t.yaml:6:18: steps.main.exports.x: the worker cannot write at /usr/x"},
        {STEP
         "    inputs: {/w: {read: .}}\n    exports: {a: {type: file, path: /out/a}, x: {type: file, path: /w/x}}\n",
         "t.yaml:7:49: steps.main.exports.x: the worker cannot write at /w/x"},
        {STEP "    exports: {x: {type: file, path: /out}}\n", "t.yaml:6:18: steps.main.exports.x: /out is a folder"},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++)
        CHECK(refused(rows[i][0], rows[i][1]));
}

TEST(thousands_of_paths_compile_quickly) {
    _cleanup_buf_ struct buf b = {0};
    _cleanup_plan_ struct plan p = {0};
    struct error err = {0};
    buf_puts(&b, STEP "    inputs:\n");
    for (int i = 0; i < 5000; i++)
        buf_printf(&b, "      /in/some/folder/with/a/name/%d: {read: /many/a/b/c/%d}\n", i, i);
    clock_t start = clock();
    CHECK_EQ(compile(b.bytes, &p, &err), 0);
    CHECK_EQ(p.n_inputs, 5000);
    CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 2.0);
}

/* -- flags -- */

static char *make[] = {"make", "test", NULL};

static int from_flags(struct policy_flags flags, struct plan *ret, struct error *err) {
    _cleanup_policy_ struct policy *p = NULL;
    int r = policy_from_flags(&flags, "/home/me/project", &p, err);
    return r < 0 ? r : policy_compile(p, 0, &fake_host, ret, err);
}

static int flags_refused(struct policy_flags flags, const char *want) {
    _cleanup_plan_ struct plan p = {0};
    struct error err = {0};
    int r = from_flags(flags, &p, &err);
    bool good = r < 0 && !strncmp(err.message, want, strlen(want));
    if (!good)
        printf("# gives %d \"%s\",\n#  not   \"%s\"\n", r, err.message, want);
    return good;
}

#define ONE(s) ((char *[]){s, NULL})

TEST(flags_say_what_a_policy_says) {
    _cleanup_plan_ struct plan p = {0}, q = {0};
    struct error err = {0};
    char a[DIGEST_HEX], b[DIGEST_HEX];
    int r = from_flags((struct policy_flags){.argv = make,
                                             .overlay = ONE(".:/work"),
                                             .read = ((char *[]){"/data/tool", "src:/in/src", NULL}),
                                             .copy = ONE("src/a.c:/in/a:b/c"),
                                             .env = ((char *[]){"A=b=c", "B=", NULL}),
                                             .pass_env = ONE("EDITOR"),
                                             .export = ONE("log=/out/log"),
                                             .degrade = ((char *[]){"memory", "cgroup", NULL}),
                                             .workdir = "/work/src",
                                             .memory = "1GiB",
                                             .cpus = "0.5",
                                             .processes = "100",
                                             .timeout = "90s",
                                             .disk = "1GB",
                                             .output = "1MB",
                                             .terminal = true,
                                             .input = true},
                       &p, &err);
    CHECK(r < 0); /* the last ':' divides */
    CHECK_STR(err.message, "--copy: \"b/c\" is not an absolute, normalised path of at most 4095 bytes");
    r = from_flags((struct policy_flags){.argv = make,
                                         .overlay = ONE(".:/work"),
                                         .read = ((char *[]){"/data/tool", "src:/in/src", NULL}),
                                         .copy = ONE("src/a.c:/in/a"),
                                         .env = ((char *[]){"A=b=c", "B=", NULL}),
                                         .pass_env = ONE("EDITOR"),
                                         .export = ONE("log=/out/log"),
                                         .degrade = ((char *[]){"memory", "cgroup", NULL}),
                                         .workdir = "/work/src",
                                         .memory = "1GiB",
                                         .cpus = "0.5",
                                         .processes = "100",
                                         .timeout = "90s",
                                         .disk = "1GB",
                                         .output = "1MB"},
                   &p, &err);
    if (r < 0)
        printf("# %s\n", err.message);
    CHECK_EQ(r, 0);
    CHECK_EQ(
        compile("version: 1\ntask: run\nsteps:\n  main:\n    run: [make, test]\n    inputs:\n"
                "      /work: {overlay: .}\n      /data/tool: {read: /data/tool}\n      /in/src: {read: src}\n"
                "      /in/a: {copy: src/a.c}\n    env: {A: b=c, B: \"\"}\n    pass-env: [EDITOR]\n"
                "    exports: {log: {type: file, path: /out/log}}\n    degrade: [memory, cgroup]\n"
                "    workdir: /work/src\n    limits: {memory: 1GiB, cpus: 0.5, processes: 100, wall: 90s, disk: 1GB, "
                "output: 1MB}\n",
                &q, &err),
        0);
    CHECK_EQ(plan_digest(&p, a), 0);
    CHECK_EQ(plan_digest(&q, b), 0);
    CHECK_STR(a, b);
}

TEST(a_terminal_brings_its_name) {
    _cleanup_plan_ struct plan p = {0};
    struct error err = {0};
    CHECK_EQ(from_flags((struct policy_flags){.argv = make, .terminal = true, .input = true}, &p, &err), 0);
    CHECK(p.terminal && p.input);
    CHECK_STR(variable(&p, "TERM"), "xterm-256color");
}

TEST(errors_name_the_flag) {
    CHECK(flags_refused((struct policy_flags){.argv = NULL}, "there is no command"));
    CHECK(flags_refused((struct policy_flags){.argv = ONE("")}, "the command: the program's name is empty"));
    CHECK(flags_refused((struct policy_flags){.argv = ONE("a\xff")}, "the command: byte 1 is not UTF-8"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .memory = "2G"},
                        "--memory: found the text \"2G\", expected a size"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .memory = ""},
                        "--memory: found the text \"\", expected a size"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .memory = "null"}, "--memory: "));
    CHECK(
        flags_refused((struct policy_flags){.argv = make, .cpus = "true"}, "--cpus: found true, expected a number of"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .timeout = "5"},
                        "--timeout: found the number 5, expected a time"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .overlay = ONE(".")},
                        "--overlay: found \".\", expected FROM:TO"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .overlay = ONE(":/work")}, "--overlay: found \":/work\""));
    CHECK(flags_refused((struct policy_flags){.argv = make, .overlay = ONE(".:")}, "--overlay: found \".:\""));
    CHECK(flags_refused((struct policy_flags){.argv = make, .overlay = ONE("missing:/w")},
                        "--overlay: /home/me/project/missing: No such"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .overlay = ONE(".:/usr")},
                        "--overlay: no input may stand at /usr"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .overlay = ((char *[]){".:/w", "src:/w", NULL})},
                        "--overlay: /w is given twice"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .read = ONE("/home/me")},
                        "--read: the input is refused: /home/me is a home folder"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .read = ONE("src")}, "--read: \"src\" is not an absolute"));
    CHECK(
        flags_refused((struct policy_flags){.argv = make, .env = ONE("A")}, "--env: found \"A\", expected NAME=VALUE"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .env = ONE("=A")}, "--env: found \"=A\""));
    CHECK(flags_refused((struct policy_flags){.argv = make, .env = ((char *[]){"A=1", "A=2", NULL})},
                        "--env: A is given twice"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .env = ONE("A=\xff")}, "--env: byte 2 is not UTF-8"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .pass_env = ONE("NOPE")}, "--pass-env: NOPE is not set"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .export = ONE("x")},
                        "--export: found \"x\", expected NAME=PATH"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .export = ONE("X=/out/x")}, "--export: not a name"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .export = ONE("x=/usr/x")},
                        "--export: the worker cannot write at /usr/x"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .degrade = ONE("all")}, "--degrade: \"all\" is no wall"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .workdir = ".."}, "--workdir: \"..\" is not an absolute"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .workdir = "/x"}, "--workdir: no folder stands at /x"));
    CHECK(flags_refused((struct policy_flags){.argv = make, .sensitive = true}, "--sensitive: there is no input"));
    _cleanup_plan_ struct plan p = {0};
    struct error err = {0};
    CHECK_EQ(
        from_flags((struct policy_flags){.argv = make, .sensitive = true, .read = ONE("/home/me:/in/home")}, &p, &err),
        0);
    CHECK(p.inputs[0].sensitive);
}

/* -- findings -- */

static json_t *lint(const char *text) {
    _cleanup_policy_ struct policy *p = NULL;
    struct error err = {0};
    if (policy_parse("t.yaml", "/home/me/project", text, strlen(text), &p, &err) < 0) {
        printf("# %s\n", err.message);
        return NULL;
    }
    return policy_lint(p, &fake_host);
}

TEST(findings_come_by_id) {
    static const char *const rows[][2] = {
        {STEP, NULL},
        {READ("server.pem"), "secret-looking-input"},
        {READ("."), "secret-looking-input"},
        {READ("., exclude: [\".env\"]"), NULL},
        {READ("., only: [\"src/**\"]"), NULL},
        {READ("/home/me, sensitive: true"), "sensitive-input"},
        {STEP "    env: {MY_API_KEY: x}\n", "secret-variable"},
        {STEP "    pass-env: [GITHUB_TOKEN]\n", "secret-variable"},
        {STEP "    pass-env: [SSH_AUTH_SOCK]\n", "authority-variable"},
        {STEP "    pass-env: [EDITOR]\n", NULL},
        {STEP "    user: root\n", "root-user"},
        {STEP "    degrade: [seccomp]\n", "degraded"},
        {STEP "    limits: {wall: 30d}\n", "wide-limit"},
        {STEP "accept: {root-user: because}\n", "accept-unused"},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        _cleanup_json_ json_t *found = lint(rows[i][0]);
        const char *id = json_string_value(json_object_get(json_array_get(found, 0), "id"));
        CHECK_EQ(json_array_size(found), rows[i][1] ? 1 : 0);
        if (rows[i][1])
            CHECK_STR(id, rows[i][1]);
    }
}

TEST(an_accepted_finding_carries_its_reason) {
    _cleanup_json_ json_t *found = lint(STEP "    user: root\naccept: {root-user: apt needs it}\n");
    const json_t *o = json_array_get(found, 0);
    CHECK_EQ(json_array_size(found), 1);
    CHECK_STR(json_string_value(json_object_get(o, "accepted")), "apt needs it");
    CHECK_STR(json_string_value(json_object_get(o, "path")), "steps.main.user");
    CHECK_STR(json_string_value(json_object_get(o, "step")), "main");
}

TEST_MAIN()
