/* How a C program uses the library: record a two-layer net, plan it, run it, read a gradient.
 *
 *     cc -std=c11 two_layers.c $(pkg-config --cflags --libs titin)
 *
 * The net is y = W2 gelu(W1 x + b1), the loss the sum of (y - target)^2 over 100 rows. The program compares one entry of
 * the gradient of W1 with a difference of two losses and exits with 0 when they agree.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <titin.h>

enum { ROWS = 100, WIDTH = 8, HIDDEN = 16 };

static ttn_error err;

static void must(ttn_status status)
{
    if (status == TTN_OK) return;
    fprintf(stderr, "%s\n", err.text);
    exit(ttn_status_exit(status));
}

/* The library computes in float; built with REAL=f64 it would be double here. */
static float x[ROWS * WIDTH];
static float target[ROWS * WIDTH];

static double loss_of(ttn_plan *plan, int loss)
{
    const ttn_feed feed = {.used = {.rows = ROWS}};
    float value;
    must(ttn_plan_run(plan, &feed, NULL, &err));
    must(ttn_plan_read(plan, loss, &value, &err));
    return (double)value;
}

int main(int argc, char **argv)
{
    (void)argc;
    ttn_reexec(argv);         /* first: OpenBLAS and OpenMP read the environment when they are loaded */
    must(ttn_start(1, &err)); /* for one thread; before the first plan */
    for (int i = 0; i < ROWS * WIDTH; i++) {
        x[i] = (float)((i * 37) % 101) / 101 - 0.5f;
        target[i] = (float)((i * 53) % 103) / 103 - 0.5f;
    }

    /* Record: calls append nodes and infer shapes. Rows come in tiles of 480; a run says how many it uses. */
    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480});
    int in = ttn_input(g, "x", ttn_rows(g, WIDTH));
    int wanted = ttn_input(g, "target", ttn_rows(g, WIDTH));
    int w1 = ttn_param(g, "up.weight", ttn_matrix(HIDDEN, WIDTH), (ttn_init){TTN_INIT_NORMAL, 0.3}, 0);
    int b1 = ttn_param(g, "up.bias", ttn_vector(HIDDEN), (ttn_init){TTN_INIT_CONSTANT, 0}, TTN_NO_DECAY);
    int w2 = ttn_param(g, "down.weight", ttn_matrix(WIDTH, HIDDEN), (ttn_init){TTN_INIT_NORMAL, 0.3}, 0);
    int h = ttn_gelu(g, "gelu", ttn_linear(g, "up", in, w1, b1), TTN_ACT_GELU_ERF);
    int loss = ttn_mse(g, "loss", ttn_linear(g, "down", h, w2, TTN_NONE), wanted);

    /* Plan: a list of steps over one block of memory. Mistakes of the recording are reported here, once. */
    ttn_plan *plan;
    ttn_plan_options options = {.loss = &loss, .n_loss = 1};
    must(ttn_plan_create(g, &options, &plan, &err));
    const ttn_plan_report *report = ttn_plan_report_of(plan);
    printf("%d steps in %zu bytes\n", report->n_step, report->bytes);

    /* Weights are apart from graph and plan: other graphs of the same model share them. */
    ttn_weights *weights;
    must(ttn_weights_create(g, NULL, &weights, &err));
    must(ttn_weights_init(weights, 1, &err));
    must(ttn_plan_attach(plan, weights, &err));
    must(ttn_plan_bind(plan, "x", x, &err));
    must(ttn_plan_bind(plan, "target", target, &err));

    /* Run, and read a gradient. */
    double first = loss_of(plan, loss);
    int entry = ttn_weights_find(weights, "up.weight");
    float gradient[HIDDEN * WIDTH];
    must(ttn_weights_read(weights, entry, TTN_SLAB_GRADIENT, gradient, &err));

    /* The same from two losses. */
    const float step = 0.01f;
    float value[HIDDEN * WIDTH];
    double sides[2];
    for (int side = 0; side < 2; side++) {
        must(ttn_weights_read(weights, entry, TTN_SLAB_VALUE, value, &err));
        value[3] += side ? 2 * step : -step;
        must(ttn_weights_write(weights, entry, TTN_SLAB_VALUE, value, &err));
        sides[side] = loss_of(plan, loss);
    }
    double difference = (sides[1] - sides[0]) / (2 * (double)step);
    printf("loss %.6f, gradient of up.weight[3] %.5f, by difference %.5f\n", first, (double)gradient[3], difference);

    ttn_plan_destroy(plan);
    ttn_weights_destroy(weights);
    ttn_graph_destroy(g);
    return fabs(difference - (double)gradient[3]) <= 1e-2 * (1 + fabs(difference)) ? 0 : 1;
}
