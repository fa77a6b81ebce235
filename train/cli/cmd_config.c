/* titin config show, explain, diff, schema: the configuration before anything is done with it. */
#include <stdio.h>
#include <stdlib.h>
#include "train/cli/command.h"
#include "train/cli/configured.h"

static const char *const every_section[] = {"all", NULL};
static const char group[] = "configuration";

/* Prints a text that is the caller's, when there is one, and frees it. */
static void print_and_free(const ttn_cli_call *call, char *text)
{
    if (text) fputs(text, call->out.out);
    free(text);
}

/* ---- show ---- */

static ttn_status run_show(const ttn_cli_call *call, ttn_error *err)
{
    ttn_config_table *table;
    ttn_config *config;
    char *text = NULL;
    ttn_status status = ttn_configured(call, 0, &table, &config, err);
    if (status != TTN_OK) return status;
    status = ttn_config_resolved(config, &text, err);
    print_and_free(call, text);
    const ttn_unread_about about = {.is_store = -1};
    if (status == TTN_OK) status = ttn_configured_check_unread(call, config, &about, err);
    ttn_config_destroy(config);
    ttn_config_table_destroy(table);
    return status;
}

static const ttn_cli_argument show_arguments[] = {TTN_FILES_ARGUMENT, {0}};
static const ttn_cli_option show_options[] = {TTN_PRESET_OPTION, {0}};
static const ttn_cli_example show_examples[] = {
    {"titin config show", "all keys, with their defaults"},
    {"titin config show run.yaml exact.scale=0.1", "what this run would use, and from where"},
    {0},
};

const ttn_command ttn_cmd_config_show = {
    .name = "config show",
    .group = group,
    .purpose = "what a run would use, and where each value comes from",
    .description =
        "Prints every key with its value, and behind it where that came from. Sources, the later winning: built-in "
        "defaults, a preset, files in their order, the environment (TITIN__SECTION__KEY), and section.key=value. What "
        "is "
        "printed is a configuration file itself. Everything that is wrong is told at once, with its place.",
    .arguments = show_arguments,
    .options = show_options,
    .examples = show_examples,
    .sections = every_section,
    .run = run_show,
};

/* ---- explain ---- */

static ttn_status run_explain(const ttn_cli_call *call, ttn_error *err)
{
    ttn_config_table *table;
    ttn_config *config;
    char *text = NULL;
    ttn_status status = ttn_configured(call, 1, &table, &config, err);
    if (status != TTN_OK) return status;
    status = ttn_config_explain(table, config, call->argument[0], &text, err);
    print_and_free(call, text);
    ttn_config_destroy(config);
    ttn_config_table_destroy(table);
    return status;
}

static const ttn_cli_argument explain_arguments[] = {
    {.name = "KEY",
     .least = 1,
     .most = 1,
     .word = TTN_WORD_KEY,
     .help = "section.key, or a section for all of its keys"},
    TTN_FILES_ARGUMENT,
    {0},
};
static const ttn_cli_option explain_options[] = {TTN_PRESET_OPTION, {0}};
static const ttn_cli_example explain_examples[] = {
    {"titin config explain exact.scale", "what it means, and what it may be"},
    {"titin config explain exact", "the keys of a section"},
    {0},
};

const ttn_command ttn_cmd_config_explain = {
    .name = "config explain",
    .group = group,
    .purpose = "what a key means, what it may be, and what it is",
    .arguments = explain_arguments,
    .options = explain_options,
    .examples = explain_examples,
    .sections = every_section,
    .run = run_explain,
};

/* ---- diff ---- */

static ttn_status run_diff(const ttn_cli_call *call, ttn_error *err)
{
    ttn_config_table *table;
    ttn_config *a = NULL, *b = NULL;
    char *text = NULL;
    ttn_status status = ttn_config_table_of_titin(&table, err);
    if (status != TTN_OK) return status;
    status = ttn_configured_by_file(call, table, call->argument[0], &a, err);
    if (status == TTN_OK) status = ttn_configured_by_file(call, table, call->argument[1], &b, err);
    if (status == TTN_OK) status = ttn_config_diff(a, b, &text, err);
    if (status == TTN_OK && *text) *call->exit = TTN_EXIT_FAILURE;
    print_and_free(call, text);
    ttn_config_destroy(a);
    ttn_config_destroy(b);
    ttn_config_table_destroy(table);
    return status;
}

static const ttn_cli_argument diff_arguments[] = {
    {.name = "A", .least = 1, .most = 1, .word = TTN_WORD_FILE, .help = "a configuration file"},
    {.name = "B", .least = 1, .most = 1, .word = TTN_WORD_FILE, .help = "another one"},
    {0},
};
static const ttn_cli_example diff_examples[] = {
    {"titin config diff a.yaml b.yaml", "what differs once defaults are filled in"},
    {"titin config diff {old,new}/config.resolved.yaml", "what two runs did differently"},
    {0},
};

const ttn_command ttn_cmd_config_diff = {
    .name = "config diff",
    .group = group,
    .purpose = "the keys in which two configurations differ",
    .description =
        "One line a key that differs, defaults filled in; the order of keys in the files and the environment "
        "play no part. Ends with 1 when there are any, with 0 when there are none.",
    .arguments = diff_arguments,
    .examples = diff_examples,
    .sections = every_section,
    .run = run_diff,
};

/* ---- schema ---- */

static ttn_status run_schema(const ttn_cli_call *call, ttn_error *err)
{
    ttn_config_table *table;
    char *text = NULL;
    ttn_status status = ttn_config_table_of_titin(&table, err);
    if (status != TTN_OK) return status;
    status = ttn_config_schema(table, &text, err);
    print_and_free(call, text);
    ttn_config_table_destroy(table);
    return status;
}

static const ttn_cli_example schema_examples[] = {
    {"titin config schema > titin.schema.json", "for editors that check YAML while you type"},
    {0},
};

const ttn_command ttn_cmd_config_schema = {
    .name = "config schema",
    .group = group,
    .purpose = "a JSON Schema of configuration files, for editors",
    .examples = schema_examples,
    .sections = every_section,
    .run = run_schema,
};
