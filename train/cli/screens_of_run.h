/* A run (train/training.h) on the screens of training (screen_train.h). */
#ifndef TTN_SCREENS_OF_RUN_H
#define TTN_SCREENS_OF_RUN_H

#include "train/cli/screen_train.h"
#include "train/training.h"

/* folder: of the run, or where it would be. */
void ttn_screens_start(const ttn_terminal *t, ttn_training *run, const ttn_training_options *o, const char *folder);

/* resume: the command that goes on; NULL: the run is at its end. seconds: of this start. */
void ttn_screens_end(const ttn_terminal *t, ttn_training *run, const char *resume, double seconds);

/* Lines of progress: of a step (text has TTN_PROGRESS_TEXT bytes; width as in ttn_progress_text), of an evaluation and of
 * packing (TTN_SCREENS_LINE). Each returns text. */
enum { TTN_SCREENS_LINE = 768 };
char *ttn_screens_progress(const ttn_training_event *e, int width, char *text);
char *ttn_screens_evaluated(const ttn_training_event *e, char *text);
char *ttn_screens_evaluating(double part, char *text);
char *ttn_screens_packing(const ttn_pack_progress *p, char *text);

#endif
