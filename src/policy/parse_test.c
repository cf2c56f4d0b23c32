/* parse_test.c: what a policy file may say, and where its errors point. runs in: tests */
#include "policy/policy.h"

#include <errno.h>
#include <time.h>

#include "base/str.h"
#include "base/test.h"

static int parse(const char *text, struct policy **ret, struct error *err) {
    return policy_parse("t.yaml", "/home/me/project", text, strlen(text), ret, err);
}

/* 1 when the text is refused with a message that begins with `want`. */
static int refused(const char *text, const char *want) {
    _cleanup_policy_ struct policy *p = NULL;
    struct error err = {0};
    int r = parse(text, &p, &err);
    bool good = r < 0 && !p && !strncmp(err.message, want, strlen(want));
    if (!good)
        printf("# %s\n# gives %d \"%s\",\n#  not   \"%s\"\n", text, r, err.message, want);
    return good;
}

#define HEAD "version: 1\ntask: t\n"
#define STEP HEAD "steps:\n  main:\n    run: [make]\n"

TEST(a_small_policy_is_read) {
    _cleanup_policy_ struct policy *p = NULL;
    struct error err = {0};
    CHECK_EQ(parse(STEP, &p, &err), 0);
    CHECK_EQ(policy_n_steps(p), 1);
    CHECK_STR(policy_task(p), "t");
    CHECK_STR(policy_purpose(p), "");
    CHECK_STR(policy_step_name(p, 0), "main");
}

TEST(json_is_a_policy_too) {
    _cleanup_policy_ struct policy *p = NULL;
    struct error err = {0};
    CHECK_EQ(parse("{\"version\": 1, \"task\": \"t\",\n\t\"purpose\": \"a\\/b \\ud83d\\ude00 \\\\ud83d\",\n"
                   "\t\"steps\": {\"main\": {\"run\": [\"a\"]}}}",
                   &p, &err),
             0);
    CHECK_STR(policy_purpose(p), "a/b \xf0\x9f\x98\x80 \\ud83d");
}

TEST(documents_are_held_to_one_reading) {
    static const char *const rows[][2] = {
        {"", "t.yaml: the policy is empty"},
        {"# only a comment\n", "t.yaml: the policy is empty"},
        {"~\n", "t.yaml: the policy is empty"},
        {"- a\n", "t.yaml:1:1: found a list, expected a map of keys"},
        {"hello\n", "t.yaml:1:1: found the text \"hello\", expected a map of keys"},
        {HEAD "steps: &a\n  main: {run: [a]}\n", "t.yaml:3:8: steps: anchors (&name) are refused"},
        {HEAD "steps: *a\n", "t.yaml:3:8: steps: aliases (*name) are refused"},
        {HEAD "steps:\n  main:\n    <<: {run: [a]}\n", "t.yaml:5:5: steps.main[\"<<\"]: merge keys (<<) are refused"},
        {HEAD "purpose: !!str x\n", "t.yaml:3:10: purpose: tags (!name) are refused"},
        {HEAD "purpose: !x x\n", "t.yaml:3:10: purpose: tags"},
        {HEAD "steps: !!map {}\n", "t.yaml:3:8: steps: tags"},
        {HEAD "steps: !!seq []\n", "t.yaml:3:8: steps: tags"},
        {HEAD "task: u\n", "t.yaml:3:1: task: this key stands twice, first in line 2"},
        {HEAD "steps:\n  main:\n    run: [a]\n    env: {A: b, A: c}\n",
         "t.yaml:6:17: steps.main.env.A: this key stands twice"},
        {STEP "---\nversion: 1\n", "t.yaml:6:1: a second document begins here"},
        {"%TAG ! tag:x,2000:\n---\nversion: 1\n", "t.yaml:1:1: %TAG directives are refused"},
        {HEAD "? [a]\n: b\n", "t.yaml:3:3: a key must be text"},
        {HEAD "? {a: b}\n: b\n", "t.yaml:3:3: a key must be text"},
        {HEAD "\"\": b\n", "t.yaml:3:1: a key is empty"},
        {"version: 1\n  bad: x\n", "t.yaml:2:6: not YAML: mapping values are not allowed in this context"},
        {"version: [1\n", "t.yaml:2:1: not YAML: "},
        {"\tversion: 1\n", "t.yaml:1:1: not YAML: "},
        {"task: \"a\\0b\"\n", "t.yaml:1:7: task: the text has a NUL byte"},
        {"task: a\n\xc3\xa9\xff: b\n", "t.yaml:2:2: byte 10 is not UTF-8"},
        {"task: \"\\ud800\"\n", "t.yaml:1:"},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++)
        CHECK(refused(rows[i][0], rows[i][1]));
    _cleanup_policy_ struct policy *p = NULL;
    struct error err = {0};
    CHECK(policy_parse("t.yaml", "/", "a: b\0c", 6, &p, &err) == -EINVAL);
    CHECK_STR(err.message, "t.yaml:1:5: byte 4 is NUL: a policy is UTF-8 text");
}

TEST(the_byte_order_mark_and_line_ends_of_windows_are_read) {
    _cleanup_policy_ struct policy *p = NULL;
    struct error err = {0};
    CHECK_EQ(parse("\xef\xbb\xbfversion: 1\r\ntask: t\r\nsteps:\r\n  main:\r\n    run: [a]\r\n", &p, &err), 0);
}

TEST(size_and_depth_are_bounded) {
    _cleanup_buf_ struct buf b = {0};
    _cleanup_policy_ struct policy *p = NULL;
    struct error err = {0};
    for (int i = 0; i < 65; i++)
        buf_puts(&b, "[");
    CHECK(refused(b.bytes, "t.yaml:1:65: [0]"));
    CHECK(strstr(b.bytes, "[[["));
    b.n = 0;
    buf_puts(&b, "version: 1\npurpose: [");
    while (b.n < 900000)
        buf_puts(&b, "a,");
    buf_puts(&b, "]");
    CHECK(refused(b.bytes, "t.yaml:2:4"));
    while (b.n <= POLICY_BYTES_MAX)
        buf_puts(&b, "#");
    CHECK_EQ(policy_parse("t.yaml", "/", b.bytes, b.n, &p, &err), -EFBIG);
    CHECK(strstr(err.message, "more than 1048576"));
}

TEST(keys_are_known_or_refused) {
    static const char *const rows[][2] = {
        {"version: 1\n", "t.yaml:1:1: the key `task` is missing"},
        {HEAD, "t.yaml:1:1: the key `steps` is missing"},
        {HEAD "steps: {}\n", "t.yaml:3:8: steps: the map is empty"},
        {HEAD "steps: []\n", "t.yaml:3:8: steps: found a list, expected a map of names"},
        {HEAD "steps:\n", "t.yaml:3:1: steps: the key has no value"},
        {HEAD "steps: ~\n", "t.yaml:3:1: steps: the key has no value"},
        {HEAD "step: {}\n", "t.yaml:3:1: step: unknown key; did you mean \"steps\"?"},
        {HEAD "whatever: {}\n", "t.yaml:3:1: whatever: unknown key; known here: version, task, purpose, steps, accept"},
        {HEAD "\"a\\e[2Jb\": 1\n", "t.yaml:3:1: [\"a\\x1b[2Jb\"]: unknown key"},
        {STEP "    limits: {memroy: 1GiB}\n",
         "t.yaml:6:14: steps.main.limits.memroy: unknown key; did you mean \"memory\"?"},
        {STEP "    network: []\n",
         "t.yaml:6:5: steps.main.network: the door `network` is not built yet in this version"},
        {HEAD "tools: {}\n", "t.yaml:3:1: tools: the door `tools` is not built yet"},
        {STEP "    boundary: gvisor\n", "t.yaml:6:15: steps.main.boundary: gvisor is not built yet"},
        {STEP "    root: {oci: ./x}\n", "t.yaml:6:11: steps.main.root: oci is not built yet"},
        {STEP "    root: ubuntu\n", "t.yaml:6:11: steps.main.root: found the text \"ubuntu\", expected host"},
        {STEP "    user: rot\n",
         "t.yaml:6:11: steps.main.user: found the text \"rot\", expected one of agent, root; did you mean root?"},
        {STEP "    limits: {open-files: 1}\n",
         "t.yaml:6:14: steps.main.limits.open-files: the door `open-files` is not built"},
        {STEP "    inputs: {/work: {read: ., artifact: a.b}}\n",
         "t.yaml:6:31: steps.main.inputs[\"/work\"].artifact: the door"},
        {STEP "    exports: {x: {type: json, path: /out/x}}\n",
         "t.yaml:6:25: steps.main.exports.x.type: json is not built yet"},
        {STEP "    exports: {x: {path: /out/x}}\n", "t.yaml:6:18: steps.main.exports.x: the key `type` is missing"},
        {STEP "    exports: {X: {type: file, path: /out/x}}\n", "t.yaml:6:15: steps.main.exports.X: not a name"},
        {STEP "    shell: x\n", "t.yaml:6:5: steps.main.shell: stands beside `run`"},
        {HEAD "steps:\n  main: {}\n", "t.yaml:4:9: steps.main: one of these keys is missing: run, shell"},
        {HEAD "steps:\n  main:\n", "t.yaml:4:3: steps.main: the key has no value"},
        {HEAD "steps:\n  Main: {run: [a]}\n", "t.yaml:4:3: steps.Main: not a name"},
        {STEP "    inputs: {/work: {}}\n",
         "t.yaml:6:21: steps.main.inputs[\"/work\"]: one of these keys is missing: read, overlay, copy"},
        {STEP "    inputs: {/work: {read: ., copy: .}}\n",
         "t.yaml:6:31: steps.main.inputs[\"/work\"].copy: stands beside `read`"},
        {STEP "    inputs: {/usr/x: {read: .}}\n",
         "t.yaml:6:14: steps.main.inputs[\"/usr/x\"]: no input may stand at /usr/x"},
        {STEP "    inputs: {work: {read: .}}\n", "t.yaml:6:14: steps.main.inputs.work: \"work\" is not an absolute"},
        {STEP "    inputs: {/work: {read: ~/x}}\n",
         "t.yaml:6:28: steps.main.inputs[\"/work\"].read: ~ is not expanded"},
        {STEP "    inputs: {/work: {read: ., only: []}}\n",
         "t.yaml:6:37: steps.main.inputs[\"/work\"].only: the list is empty; then nothing"},
        {STEP "    inputs: {/work: {read: ., exclude: [\"#x\"]}}\n",
         "t.yaml:6:41: steps.main.inputs[\"/work\"].exclude[0]: as a gitignore pattern"},
        {STEP "    inputs: {/work: {read: ., sensitive: yes}}\n",
         "t.yaml:6:42: steps.main.inputs[\"/work\"].sensitive: found the text \"yes\", expected true or false"},
        {STEP "    degrade: [mounts]\n", "t.yaml:6:15: steps.main.degrade[0]: \"mounts\" cannot be given up"},
        {STEP "    degrade: [landlok]\n",
         "t.yaml:6:15: steps.main.degrade[0]: \"landlok\" is no wall or limit that may be missing: seccomp, landlock, "
         "cgroup, memory, processes, cpus; did you mean landlock?"},
        {STEP "    env: {A=B: c}\n", "t.yaml:6:11: steps.main.env[\"A=B\"]: not a variable's name"},
        {STEP "accept: {rot-user: x}\n",
         "t.yaml:6:10: accept.rot-user: \"rot-user\" is no finding of `doorward check`; did you mean \"root-user\"?"},
        {STEP "accept: {root-user: \"\"}\n", "t.yaml:6:21: accept.root-user: the text is empty"},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++)
        CHECK(refused(rows[i][0], rows[i][1]));
}

TEST(values_have_types) {
    static const char *const rows[][2] = {
        {"version: 2\n", "t.yaml:1:10: version: found the number 2, expected the number 1"},
        {"version: \"1\"\n", "t.yaml:1:10: version: found the text \"1\", expected the number 1"},
        {"version: 1.0\n", "t.yaml:1:10: version: found the number 1.0"},
        {"version: 1\ntask: 5\n", "t.yaml:2:7: task: found the number 5, expected text; quote it: \"5\""},
        {"version: 1\ntask: true\n", "t.yaml:2:7: task: found true, expected text; quote it: \"true\""},
        {"version: 1\ntask: [a]\n", "t.yaml:2:7: task: found a list, expected text"},
        {"version: 1\ntask: \"\"\n", "t.yaml:2:7: task: the text is empty"},
        {"version: 1\ntask: Fix Bug\n", "t.yaml:2:7: task: not a name"},
        {HEAD "steps:\n  main:\n    run: make\n",
         "t.yaml:5:10: steps.main.run: found the text \"make\", expected a list of texts"},
        {HEAD "steps:\n  main:\n    run: []\n", "t.yaml:5:10: steps.main.run: the list is empty; name a program"},
        {HEAD "steps:\n  main:\n    run: [sleep, 5]\n",
         "t.yaml:5:18: steps.main.run[1]: found the number 5, expected text; quote it"},
        {HEAD "steps:\n  main:\n    run: [a, ]\n    run: [b]", "t.yaml:6:5: steps.main.run: this key stands twice"},
        {HEAD "steps:\n  main:\n    run: [a, ~]\n",
         "t.yaml:5:14: steps.main.run[1]: found nothing (an empty value), expected text"},
        {HEAD "steps:\n  main:\n    run: [a, [b]]\n", "t.yaml:5:14: steps.main.run[1]: found a list, expected text"},
        {HEAD "steps:\n  main:\n    shell: \"\"\n", "t.yaml:5:12: steps.main.shell: the text is empty"},
        {STEP "    env: {A: 1}\n", "t.yaml:6:14: steps.main.env.A: found the number 1, expected text; quote it: \"1\""},
        {STEP "    env: {A: 0x1F}\n", "t.yaml:6:14: steps.main.env.A: found the number 0x1F"},
        {STEP "    env: {A: -.5e3}\n", "t.yaml:6:14: steps.main.env.A: found the number -.5e3"},
        {STEP "    env: [A]\n", "t.yaml:6:10: steps.main.env: found a list"},
        {STEP "    limits: {memory: [1]}\n",
         "t.yaml:6:22: steps.main.limits.memory: found a list, expected a size such as"},
        {STEP "    limits: {memory: 2G}\n",
         "t.yaml:6:22: steps.main.limits.memory: found the text \"2G\", expected a size such as"},
        {STEP "    limits: {memory: 512}\n",
         "t.yaml:6:22: steps.main.limits.memory: found the number 512, expected something from 1MiB to 1024TiB"},
        {STEP "    limits: {memory: 99999999999999999999GiB}\n",
         "t.yaml:6:22: steps.main.limits.memory: found the text"},
        {STEP "    limits: {memory: -1}\n",
         "t.yaml:6:22: steps.main.limits.memory: found the number -1, expected a size"},
        {STEP "    limits: {wall: 30}\n",
         "t.yaml:6:20: steps.main.limits.wall: found the number 30, expected a time such as 90s"},
        {STEP "    limits: {wall: 0s}\n",
         "t.yaml:6:20: steps.main.limits.wall: found the text \"0s\", expected something from 1ms"},
        {STEP "    limits: {processes: 0}\n",
         "t.yaml:6:25: steps.main.limits.processes: found the number 0, expected something from 1 to"},
        {STEP "    limits: {cpus: 0}\n",
         "t.yaml:6:20: steps.main.limits.cpus: found the number 0, expected something from 0.01 to"},
        {STEP "    limits: {cpus: 0.0001}\n",
         "t.yaml:6:20: steps.main.limits.cpus: found the number 0.0001, expected a number of processors"},
        {STEP "    limits: {cpus: 1e3}\n", "t.yaml:6:20: steps.main.limits.cpus: found the number 1e3"},
        {STEP "    limits: {cpus: .5}\n", "t.yaml:6:20: steps.main.limits.cpus: found the number .5"},
        {STEP "    limits: {cpus: two}\n", "t.yaml:6:20: steps.main.limits.cpus: found the text \"two\""},
        {STEP "    exports: {x: {type: file, path: /out/x, max: 0}}\n",
         "t.yaml:6:50: steps.main.exports.x.max: found the number 0, expected something from 1B"},
        {STEP "    exports: {x: {type: file, path: out/x}}\n",
         "t.yaml:6:37: steps.main.exports.x.path: \"out/x\" is not an absolute path"},
        {STEP "    workdir: /work/\n", "t.yaml:6:14: steps.main.workdir: \"/work/\" is not an absolute path"},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++)
        CHECK(refused(rows[i][0], rows[i][1]));
}

TEST(a_word_of_any_old_schema_is_text) {
    _cleanup_policy_ struct policy *p = NULL;
    struct error err = {0};
    CHECK_EQ(parse(HEAD "steps:\n  main:\n    run: [yes, no, on, 1:30, 1_000, 0b1, +, \".\", -, \"\"]\n", &p, &err), 0);
}

/* The order of steps as "a b c". */
static const char *order_of(const char *steps, struct buf *b) {
    _cleanup_policy_ struct policy *p = NULL;
    struct error err = {0};
    _cleanup_buf_ struct buf text = {0};
    buf_printf(&text, HEAD "steps:\n%s", steps);
    b->n = 0;
    if (parse(text.bytes, &p, &err) < 0)
        buf_puts(b, err.message);
    for (size_t i = 0; p && i < policy_n_steps(p); i++)
        buf_printf(b, "%s%s", i ? " " : "", policy_step_name(p, i));
    return b->bytes;
}

TEST(steps_follow_after) {
    _cleanup_buf_ struct buf b = {0};
    CHECK_STR(order_of("  a: {run: [x]}\n  b: {run: [x]}\n  c: {run: [x]}\n", &b), "a b c");
    CHECK_STR(order_of("  a: {run: [x]}\n  b: {run: [x], after: c}\n  c: {run: [x], after: a}\n", &b), "a c b");
    CHECK_STR(order_of("  a: {run: [x]}\n  b: {run: [x], after: a}\n  c: {run: [x], after: a}\n", &b), "a b c");
    CHECK_STR(order_of("  a: {run: [x], after: a}\n", &b),
              "t.yaml:4:24: steps.a.after: a step cannot come after itself");
    CHECK_STR(order_of("  alpha: {run: [x]}\n  b: {run: [x], after: alpah}\n", &b),
              "t.yaml:5:24: steps.b.after: there is no step \"alpah\"; did you mean \"alpha\"?");
    CHECK_STR(order_of("  a: {run: [x], after: b}\n  b: {run: [x]}\n", &b),
              "t.yaml:4:24: steps.a.after: the steps wait for each other: a waits for b waits for a; a step without "
              "`after` waits for the one above it");
    CHECK_STR(
        order_of("  a: {run: [x]}\n  b: {run: [x], after: c}\n  c: {run: [x], after: d}\n  d: {run: [x], after: b}\n",
                 &b),
        "t.yaml:5:24: steps.b.after: the steps wait for each other: c waits for d waits for b waits for c; a step "
        "without `after` waits for the one above it");
}

TEST(there_are_at_most_64_steps) {
    _cleanup_buf_ struct buf b = {0};
    buf_puts(&b, HEAD "steps:\n");
    for (int i = 0; i < 64; i++)
        buf_printf(&b, "  s%d: {run: [x]}\n", i);
    _cleanup_policy_ struct policy *p = NULL;
    struct error err = {0};
    CHECK_EQ(parse(b.bytes, &p, &err), 0);
    CHECK_STR(policy_step_name(p, 63), "s63");
    buf_puts(&b, "  more: {run: [x]}\n");
    CHECK(refused(b.bytes, "t.yaml:4:3: steps: found 65 entries, more than 64"));
}

TEST(the_canonical_form_shows_defaults_and_order) {
    _cleanup_policy_ struct policy *p = NULL, *q = NULL;
    struct error err = {0};
    char a[DIGEST_HEX], b[DIGEST_HEX];
    CHECK_EQ(parse(STEP, &p, &err), 0);
    _cleanup_free_ char *text = policy_canonical(p);
    CHECK_STR(text,
              "{\"accept\":{},\"order\":[\"main\"],\"purpose\":null,\"steps\":{\"main\":{\"after\":null,\"boundary\":"
              "\"namespace\",\"degrade\":[],\"env\":{},\"exports\":{},\"inputs\":{},\"limits\":{\"cpus\":2000,"
              "\"disk\":2147483648,\"files\":200000,\"memory\":2147483648,\"output\":10000000,\"processes\":512,"
              "\"wall\":1800000},\"pass-env\":[],\"root\":\"host\",\"run\":[\"make\"],\"shell\":null,\"user\":"
              "\"agent\",\"workdir\":null}},\"task\":\"t\",\"version\":1}");
    CHECK_EQ(policy_digest(p, a), 0);
    /* The same said otherwise has the same digest. */
    CHECK_EQ(parse("{\"task\": t, steps: {main: {limits: {wall: 1800s, cpus: \"2.000\"}, run: ['make']}}, version: 1}",
                   &q, &err),
             0);
    CHECK_EQ(policy_digest(q, b), 0);
    CHECK_STR(a, b);
    policy_freep(&q);
    CHECK_EQ(parse(STEP "    limits: {wall: 31m}\n", &q, &err), 0);
    CHECK_EQ(policy_digest(q, b), 0);
    CHECK(strcmp(a, b) != 0);
}

TEST(the_schema_comes_from_the_same_tables) {
    json_t *schema = policy_schema();
    _cleanup_free_ char *text = json_canonical(schema);
    json_decref(schema);
    static const char *const want[] = {"\"additionalProperties\":false",
                                       "\"required\":[\"version\",\"task\",\"steps\"]",
                                       "\"oneOf\":[{\"required\":[\"run\"]},{\"required\":[\"shell\"]}]",
                                       "\"enum\":[\"agent\",\"root\"]",
                                       "\"pass-env\"",
                                       "json-schema.org/draft/2020-12"};
    CHECK(text);
    for (size_t i = 0; i < ELEMENTS(want); i++)
        CHECK(strstr(text, want[i]));
    CHECK(!strstr(text, "tripwires") && !strstr(text, "gvisor"));
}

TEST(large_policies_are_read_quickly) {
    _cleanup_buf_ struct buf b = {0};
    _cleanup_policy_ struct policy *p = NULL;
    struct error err = {0};
    buf_puts(&b, STEP "    inputs:\n");
    for (int i = 0; i < 5000; i++)
        buf_printf(&b, "      /in/some/folder/with/a/name/%d: {read: /many/a/b/c/%d}\n", i, i);
    clock_t start = clock();
    CHECK_EQ(parse(b.bytes, &p, &err), 0);
    CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 1.0);
}

TEST_MAIN()
