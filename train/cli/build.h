/* How this program was built. The Makefile writes the source of these (build/…/obj/build.c). */
#ifndef TTN_BUILD_H
#define TTN_BUILD_H

extern const char ttn_build_flags[]; /* of the compiler, without what only warns */
extern const int ttn_build_has_cuda;

#endif
