/* What was left out of files and repaired in them, as training, its report and data info say it. */
#include <string.h>
#include "tests/harness/test.h"
#include "train/findings.h"

static const ttn_store_source sources[] = {
    {.name = "clean.fa", .records = 3},
    {.name = "a.fa", .records = 10, .skipped = 3, .dropped = 1},
    {.name = "b.fa", .records = 2000, .skipped = 1},
};

static const ttn_store_finding findings[] = {
    {.source = 1, .rule = 1, .n = 10, .line = 1, .column = 9}, /* line ends: nobody needs to know */
    {.source = 1, .rule = 23, .n = 2, .line = 4, .column = 1}, /* worth a look */
    {.source = 1, .rule = 40, .n = 7, .line = 2, .column = 5},
    {.source = 1, .rule = 49, .is_fault = 1, .n = 2, .line = 9, .column = 1},
    {.source = 1, .rule = 38, .is_fault = 1, .n = 1, .line = 12, .column = 1},
    {.source = 2, .rule = 27, .n = 4, .line = 7, .column = 1},
    {.source = 2, .rule = 40, .n = 1500, .line = 8, .column = 1},
    {.source = 2, .rule = 49, .n = 5, .line = 30, .column = 1}, /* the same rule, where digits were taken out */
    {.source = 2, .rule = 49, .is_fault = 1, .n = 1, .line = 40, .column = 1},
    {.source = 2, .rule = 900, .n = 1, .line = 1, .column = 1}, /* of a newer titin */
};

static ttn_store_facts facts_of(int64_t n_finding)
{
    return (ttn_store_facts){
        .titin_version = "0.0.9",
        .n_source = 3,
        .source = sources,
        .has_findings = 1,
        .duplicates = 12,
        .n_finding = n_finding,
        .finding = findings,
    };
}

static void rules_are_summed_over_files_and_told_by_what_became_of_the_record(void **state)
{
    (void)state;
    const ttn_store_facts s = facts_of(sizeof findings / sizeof *findings);
    ttn_findings f;
    ttn_findings_of(&s, &f);
    assert_int_equal(f.records, 2013);
    assert_int_equal(f.left_out, 3 + 1 + 4);
    assert_int_equal(f.dropped, 1);
    assert_int_equal(f.duplicates, 12);
    assert_string_equal(f.left_out_for,
                        "digits: 3 (FA049), characters that are no residues: 1 (FA038), no residues: 4 (FA027)");
    assert_string_equal(f.repaired, "lower-case residues: 1,507 (FA040), digits taken out: 5 (FA049)");
    assert_string_equal(f.unusual, "headers with a blank behind '>': 2 (FA023)");
    assert_ptr_equal(f.source, &sources[1]);
    assert_string_equal(ttn_finding_outcome(&findings[5]), "left out");
    assert_string_equal(ttn_finding_what(&findings[9]), "something that a newer titin counts");
}

static void line_ends_alone_are_not_told(void **state)
{
    (void)state;
    const ttn_store_facts s = facts_of(1);
    ttn_findings f;
    ttn_findings_of(&s, &f);
    assert_string_equal(f.left_out_for, "");
    assert_string_equal(f.repaired, "");
    assert_string_equal(f.unusual, "");
    assert_null(f.source);
}

/* Whatever is in a store, the texts end. */
static void many_rules_are_cut_and_no_more(void **state)
{
    (void)state;
    enum { N = 400 };
    static ttn_store_finding many[N];
    for (int i = 0; i < N; i++)
        many[i] = (ttn_store_finding){.rule = 500 + i, .is_fault = 1, .n = INT64_MAX / N, .line = 1, .column = 1};
    ttn_store_facts s = facts_of(N);
    s.finding = many;
    ttn_findings f;
    ttn_findings_of(&s, &f);
    assert_true(strlen(f.left_out_for) < TTN_FINDINGS_TEXT);
    assert_string_equal(f.left_out_for + strlen(f.left_out_for) - 3, "...");
    for (int i = 0; i < N; i++)
        many[i] = (ttn_store_finding){.rule = 40, .n = INT64_MAX - 1, .line = 1, .column = 1};
    ttn_findings_of(&s, &f);
    assert_string_equal(f.repaired, "lower-case residues: 9,223,372,036,854,775,807 (FA040)");
}

/* The value of a key of the outermost object. */
static const ttn_fact *fact_of(const ttn_facts *f, const char *key)
{
    for (int64_t i = 0; i < ttn_facts_count(f); i++)
        if (ttn_facts_at(f)[i].key && strcmp(ttn_facts_at(f)[i].key, key) == 0) return &ttn_facts_at(f)[i];
    fail_msg("there is no '%s'", key);
    return NULL;
}

static void a_store_of_an_early_titin_says_that_it_does_not_know(void **state)
{
    (void)state;
    ttn_facts *f;
    ttn_error err = {0};
    ttn_store_facts s = facts_of(0);
    s.has_findings = 0;
    assert_ok(ttn_facts_create(&f, &err), &err);
    ttn_findings_tell(&s, f);
    assert_int_equal(fact_of(f, "left_out")->kind, TTN_FACT_NONE);
    assert_int_equal(fact_of(f, "duplicate_sequences")->kind, TTN_FACT_NONE);
    assert_int_equal(ttn_facts_warning_count(f), 1);
    assert_contains(ttn_facts_warning(f, 0), "early titin (0.0.9)");
    ttn_facts_destroy(f);
}

static void facts_name_each_file_and_place(void **state)
{
    (void)state;
    ttn_facts *f;
    ttn_error err = {0};
    const ttn_store_facts s = facts_of(sizeof findings / sizeof *findings);
    assert_ok(ttn_facts_create(&f, &err), &err);
    ttn_findings_tell(&s, f);
    assert_ok(ttn_facts_status(f, &err), &err);
    assert_int_equal(fact_of(f, "left_out")->integer, 8);
    assert_string_equal(fact_of(f, "rule")->text, "FA001");
    assert_string_equal(fact_of(f, "file")->text, "a.fa");
    assert_string_equal(fact_of(f, "first")->text, "1:9");
    ttn_facts_destroy(f);
}

static void an_overlap_that_was_not_counted_is_none(void **state)
{
    (void)state;
    ttn_facts *f;
    ttn_error err = {0};
    assert_ok(ttn_facts_create(&f, &err), &err);
    ttn_overlap_tell(&(ttn_dataset_overlap){.held_out = 4}, f);
    assert_int_equal(fact_of(f, "overlap")->kind, TTN_FACT_NONE);
    ttn_facts_destroy(f);
    assert_ok(ttn_facts_create(&f, &err), &err);
    ttn_overlap_tell(
        &(ttn_dataset_overlap){.held_out = 4, .is_counted = 1, .equal = 3, .is_near_counted = 1, .near = {4, 2, 2, 1}},
        f);
    assert_true(fact_of(f, "percent_equal_to_training")->real == 75);
    assert_true(fact_of(f, "percent_over_half_seen")->real == 50);
    assert_contains(ttn_facts_warning(f, 0), "3 of 4 held-out proteins are also in the training set");
    ttn_facts_destroy(f);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_summed_over_files_and_told_by_what_became_of_the_record),
        cmocka_unit_test(line_ends_alone_are_not_told),
        cmocka_unit_test(many_rules_are_cut_and_no_more),
        cmocka_unit_test(a_store_of_an_early_titin_says_that_it_does_not_know),
        cmocka_unit_test(facts_name_each_file_and_place),
        cmocka_unit_test(an_overlap_that_was_not_counted_is_none),
    };
    return ttn_test_run(tests);
}
