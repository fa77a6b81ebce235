/* How much of a machine a process may use: machines are folders with the files that a kernel would show. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "core/machine.h"
#include "tests/harness/test.h"

static char root[300];

/* An empty machine. */
static void begin(const char *name)
{
    snprintf(root, sizeof root, "%s/%s", ttn_test_folder(), name);
    assert_int_equal(mkdir(root, 0700), 0);
}

/* root/path with this text, and the folders above it. */
static void put(const char *path, const char *text)
{
    char whole[1024];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static ttn_machine look(void)
{
    ttn_machine m;
    ttn_machine_look(root, &m);
    return m;
}

#define GIB ((int64_t)1 << 30)

/* 16 GiB, 8 of them free. */
static void put_memory(void)
{
    put("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:  1 kB\nMemAvailable:    8388608 kB\n");
}

static const char v2_mounts[] =
    "22 27 0:21 / /proc rw - proc proc rw\n"
    "41 31 0:38 / /sys/fs/cgroup rw,nosuid,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

static const char v1_mounts[] =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:1 master:2 - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:30 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";

static void a_machine_without_limits_is_all_there_is(void **state)
{
    (void)state;
    begin("plain");
    put_memory();
    put("proc/cpuinfo", "processor\t: 0\nvendor_id\t: X\nmodel name\t: Quantum 9000 @ 3 GHz\nmodel name\t: other\n");
    put("proc/loadavg", "1.25 0.50 0.10 1/92 18931\n");
    put("proc/sys/vm/overcommit_memory", "2\n");
    put("sys/devices/system/cpu/online", "0-63\n");
    put("sys/devices/system/node/online", "0,2-3\n");
    put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put("proc/self/cgroup", "0::/user.slice\n");
    put("proc/self/mountinfo", v2_mounts);
    ttn_machine m = look();
    assert_string_equal(m.processor, "Quantum 9000 @ 3 GHz");
    assert_string_equal(m.huge_pages, "madvise");
    assert_int_equal(m.memory_nodes, 3);
    assert_true(m.load == 1.25);
    assert_int_equal(m.cores.present, 64);
    assert_true(m.cores.quota == 0);
    assert_int_equal(m.cores.usable, m.cores.allowed);
    assert_int_equal(m.ram.present, 16 * GIB);
    assert_int_equal(m.ram.available, 8 * GIB);
    assert_int_equal(m.ram.limit, 0);
    assert_int_equal(m.ram.usable, 8 * GIB);
    assert_int_equal(m.ram.overcommit, 2);
}

/* A kernel that shows nothing at all. */
static void what_cannot_be_found_out_is_no_failure(void **state)
{
    (void)state;
    begin("nothing");
    ttn_machine m = look();
    assert_string_equal(m.processor, "");
    assert_string_equal(m.huge_pages, "");
    assert_int_equal(m.memory_nodes, 1);
    assert_true(m.load < 0);
    assert_in_range(m.cores.present, 1, 1 << 20);
    assert_in_range(m.cores.usable, 1, m.cores.allowed);
    assert_int_equal(m.ram.present, 0);
    assert_int_equal(m.ram.limit, 0);
}

static void cores_are_those_of_the_affinity(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int first = 0;
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    begin("affinity");
    put("sys/devices/system/cpu/online", "0-7\n");
    assert_int_equal(look().cores.allowed, CPU_COUNT(&before));
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    ttn_cores c = look().cores;
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(c.present, 8);
    assert_int_equal(c.allowed, 1);
    assert_int_equal(c.usable, 1);
}

static void a_v2_group_limits_time_and_memory(void **state)
{
    (void)state;
    begin("v2");
    put_memory();
    put("proc/self/cgroup", "0::/slurm/job_12/step_0\n");
    put("proc/self/mountinfo", v2_mounts);
    put("sys/fs/cgroup/slurm/job_12/step_0/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/slurm/job_12/step_0/memory.max", "max\n");
    put("sys/fs/cgroup/slurm/job_12/cpu.max", "150000 100000\n"); /* a limit holds for what lies below */
    put("sys/fs/cgroup/slurm/job_12/memory.max", "4294967296\n");
    put("sys/fs/cgroup/slurm/job_12/memory.current", "3221225472\n");
    put("sys/fs/cgroup/slurm/job_12/memory.stat",
        "anon 1073741824\nfile 2147483648\ninactive_file 1610612736\nactive_file 536870912\n");
    put("sys/fs/cgroup/slurm/cpu.max", "400000 100000\n");
    put("sys/fs/cgroup/slurm/memory.max", "8589934592\n");
    put("sys/fs/cgroup/slurm/memory.current", "8589934592\n");
    ttn_machine m = look();
    assert_true(m.cores.quota == 1.5);
    assert_int_equal(m.cores.usable, 1);
    assert_int_equal(m.ram.limit, 4 * GIB);
    assert_int_equal(m.ram.used, 1 * GIB); /* without the files */
    assert_int_equal(m.ram.usable, 3 * GIB);
}

static void memory_high_is_a_limit_too(void **state)
{
    (void)state;
    begin("high");
    put_memory();
    put("proc/self/cgroup", "0::/a\n");
    put("proc/self/mountinfo", v2_mounts);
    put("sys/fs/cgroup/a/memory.max", "4294967296\n");
    put("sys/fs/cgroup/a/memory.high", "2147483648\n");
    assert_int_equal(look().ram.limit, 2 * GIB);
}

static void a_v1_group_limits_time_and_memory(void **state)
{
    (void)state;
    begin("v1");
    put_memory();
    put("proc/self/cgroup", "9:name=systemd:/\n4:memory:/job\n3:cpuset:/other\n2:cpu,cpuacct:/job\n0::/\n");
    put("proc/self/mountinfo", v1_mounts);
    put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
    put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
    put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1073741824\n");
    put("sys/fs/cgroup/memory/job/memory.stat", "cache 5\ninactive_file 7\ntotal_inactive_file 536870912\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* none, in its words */
    ttn_machine m = look();
    assert_true(m.cores.quota == 0.5);
    assert_int_equal(m.cores.usable, 1); /* never none */
    assert_int_equal(m.ram.limit, 2 * GIB);
    assert_int_equal(m.ram.used, GIB / 2);
    assert_int_equal(m.ram.usable, 3 * GIB / 2);
}

/* /proc/self/cgroup speaks of the host's tree, and only the container's part of it is mounted. */
static void a_container_finds_its_limits_under_the_mount(void **state)
{
    (void)state;
    static const struct {
        const char *name, *cgroup, *mount_root;
    } cases[] = {
        {"docker", "0::/docker/0a1b", "/docker/0a1b"},
        {"namespace", "0::/", "/"},
        {"outside", "0::/../../host/x", "/"},
        {"unknown", "0::/docker/0a1b", "/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char mounts[256];
        begin(cases[i].name);
        put_memory();
        put("proc/self/cgroup", cases[i].cgroup);
        snprintf(mounts, sizeof mounts, "41 31 0:38 %s /sys/fs/cgroup ro - cgroup2 cgroup ro\n", cases[i].mount_root);
        put("proc/self/mountinfo", mounts);
        put("sys/fs/cgroup/cpu.max", "100000 50000\n");
        put("sys/fs/cgroup/memory.max", "1073741824");
        ttn_machine m = look();
        assert_true(m.cores.quota == 2);
        assert_int_equal(m.ram.limit, GIB);
    }
}

/* Both versions at once, as systemd's "hybrid": limits of v1, and a v2 tree that has none. */
static void a_tree_without_controllers_takes_nothing_away(void **state)
{
    (void)state;
    begin("hybrid");
    put_memory();
    char mounts[1024];
    snprintf(mounts, sizeof mounts, "%s%s", v1_mounts, "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("proc/self/cgroup", "4:memory:/job\n0::/job\n");
    put("proc/self/mountinfo", mounts);
    put("sys/fs/cgroup/unified/job/cgroup.procs", "1\n");
    put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
    ttn_machine m = look();
    assert_int_equal(m.ram.limit, GIB);
    assert_true(m.cores.quota == 0);
}

static void nonsense_is_no_limit(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "\n", "max", "-1 100000", "100000", "100000 0", "x 100000", "99999999999999999999 1", "100000 -5"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char name[32];
        snprintf(name, sizeof name, "nonsense%zu", i);
        begin(name);
        put_memory();
        put("proc/self/cgroup", "nonsense\n:\n::\n0:\n0::/a\n");
        put("proc/self/mountinfo", v2_mounts);
        put("sys/fs/cgroup/a/cpu.max", texts[i]);
        put("sys/devices/system/cpu/online", "3-1\n");
        put("sys/devices/system/node/online", "x\n");
        ttn_machine m = look();
        assert_true(m.cores.quota == 0);
        assert_int_equal(m.memory_nodes, 1);
        assert_in_range(m.cores.present, 1, 1 << 20);
        assert_int_equal(m.ram.limit, 0);
    }
}

static void paths_that_are_too_long_are_passed_over(void **state)
{
    (void)state;
    begin("long");
    put_memory();
    static char name[3000], cgroup[sizeof name + 8];
    memset(name, 'x', sizeof name - 1);
    snprintf(cgroup, sizeof cgroup, "0::/%s", name);
    put("proc/self/cgroup", cgroup);
    put("proc/self/mountinfo", v2_mounts);
    put("sys/fs/cgroup/memory.max", "1073741824\n");
    assert_int_equal(look().ram.limit, 0);
}

static int child_with_few_addresses(void *arg)
{
    (void)arg;
    ttn_machine m = look();
    assert_int_equal(m.ram.address_space, 6 * GIB);
    assert_int_equal(m.ram.usable, 6 * GIB);
    return 0;
}

static void ulimit_is_a_limit(void **state)
{
    (void)state;
    begin("ulimit");
    put_memory();
    assert_int_equal(look().ram.address_space, 0);
    ttn_child c = run_in_child((ttn_child_limit){.address_space = 6 * GIB}, child_with_few_addresses, NULL);
    assert_true(c.exited);
    assert_int_equal(c.exit_code, 0);
}

static void this_machine_is_a_machine(void **state)
{
    (void)state;
    ttn_machine m;
    ttn_machine_look("", &m);
    assert_in_range(m.cores.usable, 1, m.cores.allowed);
    assert_in_range(m.cores.allowed, 1, m.cores.present);
    assert_in_range(m.ram.usable, 1 << 20, m.ram.present);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_without_limits_is_all_there_is),
        cmocka_unit_test(what_cannot_be_found_out_is_no_failure),
        cmocka_unit_test(cores_are_those_of_the_affinity),
        cmocka_unit_test(a_v2_group_limits_time_and_memory),
        cmocka_unit_test(memory_high_is_a_limit_too),
        cmocka_unit_test(a_v1_group_limits_time_and_memory),
        cmocka_unit_test(a_container_finds_its_limits_under_the_mount),
        cmocka_unit_test(a_tree_without_controllers_takes_nothing_away),
        cmocka_unit_test(nonsense_is_no_limit),
        cmocka_unit_test(paths_that_are_too_long_are_passed_over),
        cmocka_unit_test(ulimit_is_a_limit),
        cmocka_unit_test(this_machine_is_a_machine),
    };
    return ttn_test_run(tests);
}
