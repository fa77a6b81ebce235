/* titin: protein language models on sequences as long as proteins get.
 *
 * The library's one public header: what is not reachable from here is private. `make install` puts the headers named below
 * in their places, so that what is installed is one file.
 */
#ifndef TITIN_H
#define TITIN_H

#define TTN_VERSION "0.1.0"

#include "core/log.h"
#include "core/start.h"
#include "core/status.h"
#include "core/tensor.h"
#include "autograd/cache.h"
#include "autograd/feed.h"
#include "autograd/graph.h"
#include "autograd/nn.h"
#include "autograd/ops.h"
#include "autograd/plan.h"
#include "autograd/weights.h"

#endif
