/* The promise of core/gemm.h about neighbours, on each kernel of OpenBLAS that this processor can run. */
#include "tests/core/neighbours.h"

/* argv[0]: the kernel that should have been loaded. */
static int child_neighbours(int argc, char **argv)
{
    (void)argc;
    ttn_error err = {0};
    ttn_blas_info info;
    if (ttn_blas_start(2, &info, &err) != TTN_OK) {
        printf("%s\n", err.text);
        return 1;
    }
    printf("%s: row period %d (f32), %d (f64)\n", info.kernel, info.f32.row_period, info.f64.row_period);
    return strcmp(info.kernel, argv[0]) != 0 || layers_that_differ() > 0;
}

static void check_kernel(const char *kernel)
{
    ttn_child c = run_again("neighbours", kernel, kernel_setting(kernel), NULL);
    assert_child_is_content(&c);
}

static void a_sequence_keeps_its_bits_on_the_kernel_prescott(void **state)
{
    (void)state;
    check_kernel("Prescott");
}
static void a_sequence_keeps_its_bits_on_the_kernel_haswell(void **state)
{
    (void)state;
    check_kernel("Haswell");
}
static void a_sequence_keeps_its_bits_on_the_kernel_zen(void **state)
{
    (void)state;
    check_kernel("Zen");
}
static void a_sequence_keeps_its_bits_on_the_kernel_skylakex(void **state)
{
    (void)state;
    check_kernel("SkylakeX");
}
static void a_sequence_keeps_its_bits_on_the_kernel_cooperlake(void **state)
{
    (void)state;
    check_kernel("Cooperlake");
}

int main(int argc, char **argv)
{
    ttn_test_child("neighbours", child_neighbours);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sequence_keeps_its_bits_on_the_kernel_prescott),
        cmocka_unit_test(a_sequence_keeps_its_bits_on_the_kernel_haswell),
        cmocka_unit_test(a_sequence_keeps_its_bits_on_the_kernel_zen),
        cmocka_unit_test(a_sequence_keeps_its_bits_on_the_kernel_skylakex),
        cmocka_unit_test(a_sequence_keeps_its_bits_on_the_kernel_cooperlake),
    };
    return ttn_test_run(tests);
}
