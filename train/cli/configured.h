/* The configuration that a command line names: files and settings among its arguments, --preset, the environment. */
#ifndef TTN_CONFIGURED_H
#define TTN_CONFIGURED_H

#include "train/cli/command.h"
#include "train/config.h"
#include "train/unread.h"

/* The rows of a command that takes a configuration. */
#define TTN_PRESET_OPTION                                                                  \
    {                                                                                      \
        .name = "preset", .value = "NAME", .help = "start from this preset of titin's own" \
    }
#define TTN_FILES_ARGUMENT                                                                    \
    {                                                                                         \
        .name = "FILE|KEY=VALUE", .least = 0, .most = TTN_ANY_NUMBER, .word = TTN_WORD_FILE,  \
        .help = "configuration files, the later winning, and single values that win over all" \
    }

/* Is a word "section.key=value", and not a file? A file with a '=' in its name is one when what stands before that is no
 * section.key; else it is ./NAME. */
int ttn_is_setting(const char *word);

/* What arguments [first, n_argument) and --preset say, over the environment. When something is wrong with it, all of that
 * is printed on stderr, place by place, and err says how much it is. Both are the caller's; NULL after a failure. */
TTN_MUST_USE ttn_status ttn_configured(const ttn_cli_call *call, int first, ttn_config_table **ret_table,
                                       ttn_config **ret, ttn_error *err);

/* The same by the settings among the arguments alone: the others are files of the command's own. */
TTN_MUST_USE ttn_status ttn_configured_by_settings(const ttn_cli_call *call, ttn_config_table **ret_table,
                                                   ttn_config **ret, ttn_error *err);

/* Values of the user's that the command does not read are warnings on stderr, or an error (train/unread.h). */
TTN_MUST_USE ttn_status ttn_configured_check_unread(const ttn_cli_call *call, const ttn_config *c,
                                                    const ttn_unread_about *about, ttn_error *err);

/* One file alone: neither environment nor settings. */
TTN_MUST_USE ttn_status ttn_configured_by_file(const ttn_cli_call *call, const ttn_config_table *table,
                                               const char *path, ttn_config **ret, ttn_error *err);

#endif
