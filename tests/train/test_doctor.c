/* What is judged wrong with a machine, and that nothing is wrong with a good one. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/harness/test.h"
#include "train/doctor.h"

/* A machine without a fault: 8 cores, 32 GiB. */
static ttn_doctor_report good(void)
{
    const int64_t gib = (int64_t)1 << 30;
    ttn_doctor_report r = {
        .machine = {.processor = "X", .huge_pages = "madvise", .memory_nodes = 1, .load = 0.5},
        .threads = {.n = 8, .binding = "no", .started_by = ""},
        .blas = {.flavour = TTN_BLAS_PTHREAD, .flavour_name = "pthread", .kernel = "Zen", .config = "OpenBLAS 0.3.21"},
        .rate_one = 80e9,
        .rate_all = 600e9,
        .disk = {.folder = "runs",
                 .is_writable = 1,
                 .present = 1000 * gib,
                 .available = 500 * gib,
                 .file_system = "ext4",
                 .sync_seconds = 0.004},
        .gpu_status = TTN_EDEVICE,
    };
    r.machine.cores = (ttn_cores){.present = 8, .allowed = 8, .usable = 8};
    r.machine.ram = (ttn_ram){.present = 32 * gib, .available = 30 * gib, .usable = 30 * gib};
    r.cpu_present = r.cpu_built = ttn_cpu_present();
    return r;
}

/* Exactly one warning: with this id, these words, and this advice. */
static void assert_only(ttn_doctor_report *r, const char *id, const char *words, const char *advice)
{
    ttn_doctor_judge(r);
    for (int i = 0; i < r->n_warning; i++)
        if (r->n_warning > 1) print_error("%s: %s\n", r->warning[i].id, r->warning[i].text);
    assert_int_equal(r->n_warning, 1);
    assert_string_equal(r->warning[0].id, id);
    assert_contains(r->warning[0].text, words);
    assert_contains(r->warning[0].advice, advice);
}

static void a_good_machine_has_no_warnings(void **state)
{
    (void)state;
    ttn_doctor_report r = good();
    ttn_doctor_judge(&r);
    assert_int_equal(r.n_warning, 0);
    r.machine.cores = (ttn_cores){.present = 1, .allowed = 1, .usable = 1}; /* no more than there are */
    r.threads.n = 1;
    r.rate_all = r.rate_one;
    ttn_doctor_judge(&r);
    assert_int_equal(r.n_warning, 0);
}

static void one_core_is_blamed_on_who_has_bound_it(void **state)
{
    (void)state;
    static const char *const who[][2] = {
        {"", "taskset"}, {"mpirun", "mpirun --bind-to none"}, {"Slurm", "--cpus-per-task=N"}};
    for (int i = 0; i < 3; i++) {
        ttn_doctor_report r = good();
        r.machine.cores = (ttn_cores){.present = 8, .allowed = 1, .usable = 1};
        r.threads.n = 1;
        r.threads.started_by = who[i][0];
        assert_only(&r, "one_core", "only 1 of the 8 cores", who[i][1]);
    }
}

static void more_threads_than_cores_are_told(void **state)
{
    (void)state;
    ttn_doctor_report r = good();
    r.threads.n = 64;
    snprintf(r.threads.asked, sizeof r.threads.asked, "64");
    assert_only(&r, "threads_above", "64 threads on 8 cores", "set OMP_NUM_THREADS=8, or unset it");

    r = good();
    r.machine.cores.quota = 2.5;
    r.machine.cores.usable = 2;
    assert_only(&r, "quota", "the time of 2.5 cores", "set OMP_NUM_THREADS=2");
    r.threads.n = 2; /* as advised */
    r.rate_all = 160e9;
    ttn_doctor_judge(&r);
    assert_int_equal(r.n_warning, 0);
}

static void idle_cores_are_told(void **state)
{
    (void)state;
    ttn_doctor_report r = good();
    r.threads.n = 1;
    snprintf(r.threads.asked, sizeof r.threads.asked, "1");
    r.rate_all = r.rate_one;
    assert_only(&r, "threads_below", "1 thread on 8 cores", "unset OMP_NUM_THREADS");

    r = good();
    r.machine.cores = (ttn_cores){.present = 256, .allowed = 256, .usable = 256};
    r.threads.n = TTN_BLAS_MAX_THREADS;
    assert_only(&r, "threads_below", "128 threads on 256 cores", "OpenBLAS serves no more at once");
}

static void threads_bound_to_one_core_are_told(void **state)
{
    (void)state;
    ttn_doctor_report r = good();
    r.threads.places = 4;
    assert_only(&r, "bound_together", "8 threads are bound to 4 places", "unset OMP_PLACES");
    r.threads.places = 8;
    ttn_doctor_judge(&r);
    assert_int_equal(r.n_warning, 0);
}

static void busy_cores_are_told(void **state)
{
    (void)state;
    ttn_doctor_report r = good();
    r.machine.load = 10.1;
    assert_only(&r, "load", "a load of 10.1 on 8 cores", "top");
    r = good();
    r.rate_all = 1.2 * r.rate_one;
    assert_only(&r, "no_gain", "8 threads together multiply only 1.2 times as fast", "hyperthreads");
}

static void a_slow_kernel_is_told(void **state)
{
    (void)state;
    ttn_doctor_report r = good();
    snprintf(r.blas.warning, sizeof r.blas.warning, "OPENBLAS_CORETYPE=Prescott gave a slow kernel");
    assert_only(&r, "kernel", "OPENBLAS_CORETYPE=Prescott gave", "unset OPENBLAS_CORETYPE");
}

static void a_build_for_older_processors_is_told(void **state)
{
    (void)state;
#if defined(__x86_64__)
    ttn_doctor_report r = good();
    r.cpu_present = TTN_CPU(AVX2) | TTN_CPU(FMA) | TTN_CPU(AVX512F);
    r.cpu_built = TTN_CPU(AVX2) | TTN_CPU(FMA);
    assert_only(&r, "build", "without avx512f", "build it on this machine");
    r.cpu_present = TTN_CPU(AVX2) | TTN_CPU(FMA) | TTN_CPU(POPCNT); /* nothing that matters */
    ttn_doctor_judge(&r);
    assert_int_equal(r.n_warning, 0);
#else
    skip_because("nothing was measured on other families");
#endif
}

static void too_little_memory_is_told(void **state)
{
    (void)state;
    const int64_t mib = 1 << 20;
    ttn_doctor_report r = good();
    r.machine.ram.usable = 500 * mib;
    assert_only(&r, "memory", "only 500 MiB", "top -o %MEM");
    r.machine.ram.limit = 600 * mib;
    assert_only(&r, "memory", "a control group limits it", "sbatch --mem");
    r = good();
    r.machine.ram.address_space = 4096 * mib;
    assert_only(&r, "address_space", "limited to 4096 MiB (ulimit -v)", "ulimit -v unlimited");
    r = good();
    r.machine.ram.overcommit = 2;
    assert_only(&r, "overcommit", "vm.overcommit_memory = 2", "sysctl");
    r = good();
    snprintf(r.machine.huge_pages, sizeof r.machine.huge_pages, "never");
    assert_only(&r, "huge_pages", "huge pages are off", "echo madvise >");
}

static void a_disk_not_to_be_used_is_told(void **state)
{
    (void)state;
    ttn_doctor_report r = good();
    r.disk.is_writable = 0;
    r.disk.folder = "ru\033ns";
    snprintf(r.disk.why_not, sizeof r.disk.why_not, "Read-only file system");
    assert_only(&r, "disk", "nothing can be written to ru?ns: Read-only file system", "titin doctor FOLDER");
    r = good();
    r.disk.available = 100 << 20;
    assert_only(&r, "disk_space", "only 100 MiB are free in runs", "make room");
    r = good();
    r.disk.sync_seconds = 0.35;
    assert_only(&r, "disk_slow", "0.35 s to bring 4 KiB", "a local disk");
    r = good();
    r.disk.file_system = "tmpfs";
    assert_only(&r, "disk_memory", "lies in memory", "write runs to a disk");
}

/* Every fault at once: all fit, and none is cut short. */
static void everything_wrong_at_once_is_all_told(void **state)
{
    (void)state;
    ttn_doctor_report r = good();
    r.machine.cores = (ttn_cores){.present = 8, .allowed = 1, .usable = 1};
    r.threads = (ttn_doctor_threads){.n = 64, .binding = "close", .places = 1, .started_by = ""};
    r.machine.load = 99;
    r.cpu_built = 0;
    memset(r.blas.warning, 'x', sizeof r.blas.warning - 1);
    r.machine.ram = (ttn_ram){.present = 1 << 30, .usable = 1 << 20, .address_space = 1 << 30, .overcommit = 2};
    snprintf(r.machine.huge_pages, sizeof r.machine.huge_pages, "never");
    r.disk.available = 1;
    r.disk.sync_seconds = 3;
    r.disk.file_system = "tmpfs";
    char folder[500];
    memset(folder, 'f', sizeof folder - 1);
    folder[sizeof folder - 1] = 0;
    r.disk.folder = folder;
    ttn_doctor_judge(&r);
    assert_in_range(r.n_warning, 11, TTN_DOCTOR_WARNINGS - 1);
    for (int i = 0; i < r.n_warning; i++) {
        assert_in_range(strlen(r.warning[i].text), 20, sizeof r.warning[i].text - 2);
        assert_in_range(strlen(r.warning[i].advice), 5, sizeof r.warning[i].advice - 2);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(r.warning[i].id, r.warning[j].id);
    }
}

static void this_machine_is_examined(void **state)
{
    (void)state;
    static ttn_doctor_report r;
    ttn_error err = {0};
    const ttn_doctor_request request = {.folder = ttn_test_folder(), .root = "", .seconds = 0.01};
    assert_ok(ttn_doctor_examine(&request, &r, &err), &err);
    assert_int_equal(r.blas_status, TTN_OK);
    assert_true(r.rate_one > 1e8 && r.rate_one < 1e13);
    assert_true(r.rate_all > 1e8 && r.rate_all < 1e14);
    assert_true(r.disk.is_writable);
    assert_true(r.disk.sync_seconds >= 0);
    assert_in_range(r.disk.available, 1, r.disk.present);
    assert_int_equal(rmdir(ttn_test_folder()), 0); /* nothing stays behind in the folder */
    assert_int_equal(mkdir(ttn_test_folder(), 0700), 0);
}

static void a_folder_that_is_not_there_is_a_warning(void **state)
{
    (void)state;
    static ttn_doctor_report r;
    ttn_error err = {0};
    const ttn_doctor_request request = {.folder = "/nowhere", .root = "", .seconds = 0};
    assert_ok(ttn_doctor_examine(&request, &r, &err), &err);
    assert_false(r.disk.is_writable);
    int found = 0;
    for (int i = 0; i < r.n_warning; i++)
        found |= strcmp(r.warning[i].id, "disk") == 0 && strstr(r.warning[i].text, "/nowhere: No such file");
    assert_true(found);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_machine_has_no_warnings),
        cmocka_unit_test(one_core_is_blamed_on_who_has_bound_it),
        cmocka_unit_test(more_threads_than_cores_are_told),
        cmocka_unit_test(idle_cores_are_told),
        cmocka_unit_test(threads_bound_to_one_core_are_told),
        cmocka_unit_test(busy_cores_are_told),
        cmocka_unit_test(a_slow_kernel_is_told),
        cmocka_unit_test(a_build_for_older_processors_is_told),
        cmocka_unit_test(too_little_memory_is_told),
        cmocka_unit_test(a_disk_not_to_be_used_is_told),
        cmocka_unit_test(everything_wrong_at_once_is_all_told),
        cmocka_unit_test(this_machine_is_examined),
        cmocka_unit_test(a_folder_that_is_not_there_is_a_warning),
    };
    return ttn_test_run(tests);
}
