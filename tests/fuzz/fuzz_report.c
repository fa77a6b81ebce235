/* Any bytes as metrics.jsonl of a run that goes on: a report with all its curves is made of whatever the records say, of
 * bounded size, and with it a summary and advice. */
#include <sys/stat.h>
#include "tests/fuzz/fuzz.h"
#include "train/journal.h"
#include "train/look/report.h"

enum { LARGEST = 4 << 20, STEP = 1 << 20 };

static ttn_facts *facts_of_nothing(void)
{
    ttn_facts *f;
    ttn_error err = {0};
    check(ttn_facts_create(&f, &err) == TTN_OK);
    return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[FUZZ_PATH], path[FUZZ_PATH];
    ttn_error err = {0};
    ttn_journal *j;
    struct stat about;
    (void)mkdir(fuzz_path("run", folder), 0700);
    fuzz_write("run/metrics.jsonl", data, size);
    check(ttn_journal_open(folder, STEP, NULL, NULL, &j, &err) == TTN_OK);
    const ttn_history *h = ttn_journal_history(j);
    (void)ttn_best_of(h);
    ttn_advice advice = {0};
    ttn_advise(h, &(ttn_course){.sequences = 10, .batches = 1, .fill = 1}, &advice);
    check(advice.n >= 0 && advice.n <= TTN_ADVICE);
    ttn_facts *none = facts_of_nothing();
    const ttn_report report = {
        .run = folder,
        .state = "step 1 of 2",
        .history = h,
        .data = none,
        .environment = none,
        .config = "",
        .resume = "",
        .advice = &advice,
    };
    check(ttn_report_save(&report, fuzz_path("run/report.html", path), &err) == TTN_OK);
    check(stat(path, &about) == 0 && about.st_size > 0 && about.st_size < LARGEST);
    ttn_facts_destroy(none);
    ttn_journal_close(j);
    return 0;
}
