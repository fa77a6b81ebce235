#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "train/cli/configured.h"
#include "train/cli/status_line.h"

/* "section.key" of n bytes. */
static int is_key(const char *word, size_t n)
{
    size_t dots = 0;
    for (size_t i = 0; i < n; i++) {
        dots += word[i] == '.';
        if (!(word[i] >= 'a' && word[i] <= 'z') && word[i] != '_' && word[i] != '.') return 0;
    }
    return dots == 1;
}

int ttn_is_setting(const char *word)
{
    size_t n = strcspn(word, "=/");
    if (n == 0 || word[n] != '=') return 0;
    return is_key(word, n) || access(word, F_OK) != 0;
}

/* On stderr, after what was printed before; then one sentence for the end. */
static ttn_status tell_problems(const ttn_cli_call *call, const ttn_config *c, ttn_error *err)
{
    int n;
    int64_t more;
    if (ttn_config_problems(c, &n, &more) == NULL || n == 0) return TTN_EINVAL; /* err has its sentence */
    fflush(call->out.out);
    fputs(ttn_config_report(c), call->err.out);
    const int64_t all = n + more;
    *err = (ttn_error){0};
    if (all == 1) return TTN_FAIL(err, TTN_EINVAL, "the configuration cannot be used: see above");
    return TTN_FAIL(err, TTN_EINVAL, "%" PRId64 " things are wrong with the configuration: see above", all);
}

static ttn_status load(const ttn_cli_call *call, const ttn_config_table *table, const ttn_config_request *request,
                       ttn_config **ret, ttn_error *err)
{
    ttn_status status = ttn_config_load(table, request, ret, err);
    if (status == TTN_OK) return TTN_OK;
    if (*ret) status = tell_problems(call, *ret, err);
    ttn_config_destroy(*ret);
    *ret = NULL;
    return status;
}

/* Settings on the command line of sections that the command has no use for. */
static void tell_foreign(const ttn_cli_call *call, const char *const *section, const ttn_log *log)
{
    for (int i = 0; i < call->n_argument; i++) {
        const char *word = call->argument[i];
        const size_t n = strcspn(word, ".=");
        if (!ttn_is_setting(word) || word[n] != '.' || strncmp(word, "notes.", sizeof "notes." - 1) == 0) continue;
        const char *const *s = section;
        while (*s && (strlen(*s) != n || memcmp(*s, word, n) != 0))
            s++;
        if (!*s)
            ttn_log_say(log, TTN_LOG_WARNING, "%s has no effect: titin %s does not read keys of the section %.*s", word,
                        call->command->name, (int)n, word);
    }
}

ttn_status ttn_configured_check_unread(const ttn_cli_call *call, const ttn_config *c, const ttn_unread_about *about,
                                       ttn_error *err)
{
    ttn_status_line line;
    ttn_status_line_begin(&line, call->err.out, NULL);
    const ttn_log log = {.say = ttn_status_line_say, .ctx = &line, .from = TTN_LOG_WARNING};
    if (about->section) tell_foreign(call, about->section, &log);
    ttn_status status = ttn_unread_check(c, about, &log, err);
    ttn_status_line_end(&line);
    return status;
}

ttn_status ttn_configured_by_file(const ttn_cli_call *call, const ttn_config_table *table, const char *path,
                                  ttn_config **ret, ttn_error *err)
{
    const ttn_config_file file = {.path = path};
    return load(call, table, &(ttn_config_request){.presets = ttn_config_presets, .file = &file, .n_file = 1}, ret,
                err);
}

/* On one command line, --preset a preset=b. */
static ttn_status check_preset(const ttn_cli_call *call, const char *setting, ttn_error *err)
{
    static const char key[] = "preset=";
    const char *preset = ttn_cli_value(call, "preset"), *other = setting + sizeof key - 1;
    if (!preset || strncmp(setting, key, sizeof key - 1) != 0 || strcmp(other, preset) == 0) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL, "preset is given twice, as %.100s and as %.100s: give it once", preset, other);
}

ttn_status ttn_configured(const ttn_cli_call *call, int first, ttn_config_table **ret_table, ttn_config **ret,
                          ttn_error *err)
{
    *ret = NULL;
    ttn_status status = ttn_config_table_of_titin(ret_table, err);
    if (status != TTN_OK) return status;
    const size_t n = (size_t)(call->n_argument - first);
    ttn_config_file *file = calloc(n + 1, sizeof *file);
    const char **setting = calloc(n + 1, sizeof *setting);
    if (file && setting) {
        ttn_config_request request = {.presets = ttn_config_presets,
                                      .preset = ttn_cli_value(call, "preset"),
                                      .file = file,
                                      .environment = (const char *const *)environ,
                                      .argument = setting};
        for (int i = first; i < call->n_argument && status == TTN_OK; i++) {
            const char *word = call->argument[i];
            if (ttn_is_setting(word)) {
                setting[request.n_argument++] = word;
                status = check_preset(call, word, err);
            } else {
                file[request.n_file++].path = word;
            }
        }
        if (status == TTN_OK) status = load(call, *ret_table, &request, ret, err);
    } else {
        status = TTN_FAIL(err, TTN_ENOMEM, "no memory for the arguments");
    }
    free(file);
    free(setting);
    if (status != TTN_OK) {
        ttn_config_table_destroy(*ret_table);
        *ret_table = NULL;
    }
    return status;
}

ttn_status ttn_configured_by_settings(const ttn_cli_call *call, ttn_config_table **ret_table, ttn_config **ret,
                                      ttn_error *err)
{
    *ret_table = NULL;
    *ret = NULL;
    char **setting = calloc((size_t)call->n_argument + 1, sizeof *setting);
    if (!setting) return TTN_FAIL(err, TTN_ENOMEM, "no memory for the arguments");
    ttn_cli_call settings = *call;
    settings.argument = setting;
    settings.n_argument = 0;
    for (int i = 0; i < call->n_argument; i++)
        if (ttn_is_setting(call->argument[i])) {
            setting[settings.n_argument] = call->argument[i];
            settings.n_argument++;
        }
    ttn_status status = ttn_configured(&settings, 0, ret_table, ret, err);
    free(setting);
    return status;
}
