/* titin doctor: what a run would find here, from train/doctor.h, as text and as JSON. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/clock.h"
#include "core/titin.h"
#include "train/cli/build.h"
#include "core/start.h"
#include "train/cli/command.h"
#include "train/cli/layout.h"
#include "train/cli/libraries.h"
#include "train/cli/show.h"
#include "train/doctor.h"

/* ---- JSON ---- */

static double rounded(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.3g", x);
    double value = 0;
    sscanf(text, "%lf", &value);
    return value;
}

static void add_machine(ttn_facts *f, const ttn_doctor_report *r)
{
    const ttn_machine *m = &r->machine;
    char names[400];
    ttn_facts_open(f, "processor");
    ttn_facts_text(f, "name", "%s", m->processor);
    ttn_facts_text(f, "features", "%s", ttn_cpu_names(r->cpu_present, names, sizeof names));
    ttn_facts_text(f, "built_for", "%s", ttn_cpu_names(r->cpu_built, names, sizeof names));
    ttn_facts_close(f);

    ttn_facts_open(f, "cores");
    ttn_facts_integer(f, "present", m->cores.present);
    ttn_facts_integer(f, "allowed", m->cores.allowed);
    if (m->cores.quota > 0)
        ttn_facts_real(f, "quota", rounded(m->cores.quota));
    else
        ttn_facts_none(f, "quota");
    ttn_facts_integer(f, "usable", m->cores.usable);
    ttn_facts_integer(f, "memory_nodes", m->memory_nodes);
    if (m->load >= 0)
        ttn_facts_real(f, "load", rounded(m->load));
    else
        ttn_facts_none(f, "load");
    ttn_facts_close(f);

    ttn_facts_open(f, "threads");
    ttn_facts_integer(f, "openmp", r->threads.n);
    ttn_facts_text(f, "omp_num_threads", "%s", r->threads.asked);
    ttn_facts_text(f, "binding", "%s", r->threads.binding);
    ttn_facts_integer(f, "places", r->threads.places);
    ttn_facts_text(f, "started_by", "%s", r->threads.started_by);
    ttn_facts_close(f);
}

static void add_measured(ttn_facts *f, const char *key, const ttn_blas_measured *m)
{
    ttn_facts_open(f, key);
    ttn_facts_integer(f, "row_period", m->row_period);
    ttn_facts_real(f, "worst_error", rounded(m->worst));
    ttn_facts_close(f);
}

static void add_blas(ttn_facts *f, const ttn_doctor_report *r, int reexec)
{
    ttn_facts_open(f, "blas");
    ttn_facts_text(f, "config", "%s", r->blas.config);
    ttn_facts_text(f, "flavour", "%s", r->blas.flavour_name);
    ttn_facts_text(f, "kernel", "%s", r->blas.kernel);
    if (r->blas.coretype)
        ttn_facts_text(f, "coretype", "%s", r->blas.coretype);
    else
        ttn_facts_none(f, "coretype");
    ttn_facts_flag(f, "chosen_by_titin", (reexec & TTN_REEXEC_KERNEL) != 0);
    ttn_facts_flag(f, "usable", r->blas_status == TTN_OK);
    if (r->blas_status == TTN_OK) {
        ttn_facts_none(f, "error");
        add_measured(f, "f32", &r->blas.f32);
        add_measured(f, "f64", &r->blas.f64);
        ttn_facts_real(f, "sgemm_flops_one", rounded(r->rate_one));
        ttn_facts_real(f, "sgemm_flops_all", rounded(r->rate_all));
    } else {
        ttn_facts_text(f, "error", "%s", r->blas_error.text);
    }
    ttn_facts_close(f);
}

static void add_memory(ttn_facts *f, const ttn_doctor_report *r)
{
    const ttn_ram *m = &r->machine.ram;
    ttn_facts_open(f, "memory");
    ttn_facts_bytes(f, "present", m->present);
    ttn_facts_bytes(f, "available", m->available);
    if (m->limit > 0)
        ttn_facts_bytes(f, "limit", m->limit);
    else
        ttn_facts_none(f, "limit");
    if (m->address_space > 0)
        ttn_facts_bytes(f, "address_space", m->address_space);
    else
        ttn_facts_none(f, "address_space");
    ttn_facts_bytes(f, "usable", m->usable);
    ttn_facts_text(f, "huge_pages", "%s", r->machine.huge_pages);
    ttn_facts_close(f);
}

static void add_disk(ttn_facts *f, const ttn_doctor_disk *d)
{
    ttn_facts_open(f, "disk");
    ttn_facts_text(f, "folder", "%s", d->folder);
    ttn_facts_text(f, "file_system", "%s", d->file_system);
    ttn_facts_bytes(f, "present", d->present);
    ttn_facts_bytes(f, "available", d->available);
    ttn_facts_flag(f, "writable", d->is_writable);
    if (d->sync_seconds >= 0)
        ttn_facts_seconds(f, "sync_seconds", rounded(d->sync_seconds));
    else
        ttn_facts_none(f, "sync_seconds");
    ttn_facts_close(f);
}

static void add_rest(ttn_facts *f, const ttn_doctor_report *r)
{
    ttn_facts_open_list(f, "libraries");
    for (const ttn_library *l = ttn_libraries; l->name; l++) {
        char room[TTN_LIBRARY_VERSION];
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "name", "%s", l->name);
        ttn_facts_text(f, "version", "%s", l->version(room));
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
    ttn_facts_open(f, "cuda");
    ttn_facts_flag(f, "built", ttn_build_has_cuda);
    ttn_facts_flag(f, "usable", r->gpu_status == TTN_OK);
    if (r->gpu_status == TTN_OK) {
        ttn_facts_text(f, "name", "%s", r->gpu.name);
        ttn_facts_bytes(f, "present", (int64_t)r->gpu.memory);
        ttn_facts_bytes(f, "available", (int64_t)r->gpu.memory_free);
        ttn_facts_text(f, "driver", "%s", r->gpu.driver);
        ttn_facts_text(f, "runtime", "%s", r->gpu.runtime);
        ttn_facts_text(f, "blas", "%s", r->gpu.blas);
    }
    ttn_facts_close(f);
    ttn_facts_open_list(f, "warnings");
    for (int i = 0; i < r->n_warning; i++) {
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "id", "%s", r->warning[i].id);
        ttn_facts_text(f, "what", "%s", r->warning[i].text);
        ttn_facts_text(f, "do", "%s", r->warning[i].advice);
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

static ttn_status print_json(const ttn_cli_call *call, const ttn_doctor_report *r, ttn_error *err)
{
    ttn_facts *f;
    ttn_status status = ttn_facts_create(&f, err);
    if (status != TTN_OK) return status;
    ttn_facts_text(f, "version", "%s", ttn_version());
    add_machine(f, r);
    add_blas(f, r, call->reexec);
    add_memory(f, r);
    add_disk(f, &r->disk);
    add_rest(f, r);
    status = ttn_facts_status(f, err);
    if (status == TTN_OK) status = ttn_show_json(call->out.out, f, err);
    ttn_facts_destroy(f);
    return status;
}

/* ---- text ---- */

typedef struct {
    const ttn_terminal *t;
    int width;
} page;

enum { LABEL = 12, LINE = 1024 };

/* "label       text", wrapped; an empty label goes on with the one above. */
static void line(const page *p, const char *label, const char *format, ...) TTN_PRINTF(3, 4);
static void line(const page *p, const char *label, const char *format, ...)
{
    char text[LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(p->t->out, "%s%-*s%s", ttn_terminal_style(p->t, TTN_STYLE_BOLD), LABEL, label, ttn_terminal_plain(p->t));
    ttn_wrap(p->t->out, p->width, LABEL, LABEL, text);
}

static void print_cores(const page *p, const ttn_doctor_report *r)
{
    const ttn_cores *c = &r->machine.cores;
    const ttn_doctor_threads *t = &r->threads;
    char quota[80] = "", load[40] = "", nodes[40] = "";
    if (c->quota > 0) snprintf(quota, sizeof quota, ", the time of %.3g by a control group", c->quota);
    if (r->machine.load >= 0) snprintf(load, sizeof load, "; load %.1f", r->machine.load);
    if (r->machine.memory_nodes > 1) snprintf(nodes, sizeof nodes, " in %d memory nodes", r->machine.memory_nodes);
    line(p, "cores", "%d of %d may be used%s%s%s", c->allowed, c->present, nodes, quota, load);
    line(p, "threads", "%d%s%s%s, %s%s", t->n, *t->asked ? " (OMP_NUM_THREADS=" : "", t->asked, *t->asked ? ")" : "",
         strcmp(t->binding, "no") == 0 ? "not bound to cores" : "bound to cores: ",
         strcmp(t->binding, "no") == 0 ? "" : t->binding);
}

static void print_blas(const page *p, const ttn_doctor_report *r, int reexec)
{
    const ttn_blas_info *b = &r->blas;
    char version[TTN_LIBRARY_VERSION];
    line(p, "BLAS", "OpenBLAS %s, %s flavour, %s kernel%s", ttn_libraries[0].version(version), b->flavour_name,
         b->kernel,
         (reexec & TTN_REEXEC_KERNEL) ? " (chosen by titin)"
         : b->coretype                ? " (OPENBLAS_CORETYPE)"
                                      : "");
    if (r->blas_status != TTN_OK) {
        line(p, "", "%s%s%s", ttn_terminal_style(p->t, TTN_STYLE_RED), "cannot be used, see below",
             ttn_terminal_plain(p->t));
        return;
    }
    line(p, "", "self-check passed; row period %d (f32), %d (f64)", b->f32.row_period, b->f64.row_period);
    if (r->threads.n > 1)
        line(p, "", "sgemm %.0f GF/s with 1 thread, %.0f with %d", r->rate_one / 1e9, r->rate_all / 1e9, r->threads.n);
    else
        line(p, "", "sgemm %.0f GF/s with 1 thread", r->rate_one / 1e9);
}

static void print_memory(const page *p, const ttn_doctor_report *r)
{
    const ttn_ram *m = &r->machine.ram;
    char present[TTN_SHOW_NUMBER], usable[TTN_SHOW_NUMBER], limit[TTN_SHOW_NUMBER], limits[120] = "no limit";
    if (m->limit > 0)
        snprintf(limits, sizeof limits, "limited to %s by a control group", ttn_show_bytes(m->limit, limit));
    else if (m->address_space > 0)
        snprintf(limits, sizeof limits, "limited to %s by ulimit -v", ttn_show_bytes(m->address_space, limit));
    line(p, "memory", "%s can be had of %s, %s", ttn_show_bytes(m->usable, usable), ttn_show_bytes(m->present, present),
         limits);
    line(p, "huge pages", "%s", r->machine.huge_pages[0] ? r->machine.huge_pages : "not known here");
}

static void print_disk(const page *p, const ttn_doctor_disk *d)
{
    char available[TTN_SHOW_NUMBER], sync[TTN_SHOW_NUMBER];
    if (!d->is_writable)
        line(p, "disk", "%s: not writable (%s)", d->folder, d->why_not);
    else
        line(p, "disk", "%s: %s free%s%s, %s to bring 4 KiB to the disk", d->folder,
             ttn_show_bytes(d->available, available), *d->file_system ? " on " : "", d->file_system,
             ttn_show_seconds(d->sync_seconds, sync));
}

static void print_gpu(const page *p, const ttn_doctor_report *r)
{
    char present[TTN_SHOW_NUMBER], available[TTN_SHOW_NUMBER];
    if (!ttn_build_has_cuda)
        line(p, "CUDA", "this titin was built without it");
    else if (r->gpu_status != TTN_OK)
        line(p, "CUDA", "%s", r->gpu_error.text);
    else
        line(p, "CUDA", "GPU 0, %s: %s free of %s; driver %s, runtime %s, %s", r->gpu.name,
             ttn_show_bytes((int64_t)r->gpu.memory_free, available), ttn_show_bytes((int64_t)r->gpu.memory, present),
             r->gpu.driver, r->gpu.runtime, r->gpu.blas);
}

static void print_libraries(const page *p)
{
    char text[LINE] = "";
    for (const ttn_library *l = ttn_libraries + 1; l->name; l++) { /* the first has its own lines */
        char room[TTN_LIBRARY_VERSION];
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%s %s", n > 0 ? ", " : "", l->name, l->version(room));
    }
    line(p, "libraries", "%s", text);
}

static void print_warnings(const page *p, const ttn_doctor_report *r)
{
    const ttn_terminal *t = p->t;
    if (r->n_warning == 0 && r->blas_status == TTN_OK)
        fprintf(t->out, "\n%sNothing to complain about.%s\n", ttn_terminal_style(t, TTN_STYLE_GREEN),
                ttn_terminal_plain(t));
    for (int i = 0; i < r->n_warning; i++) {
        static const char mark[] = "warning: ", arrow[] = "      -> ";
        fprintf(t->out, "\n%s%s%s", ttn_terminal_style(t, TTN_STYLE_YELLOW), mark, ttn_terminal_plain(t));
        ttn_wrap(t->out, p->width, sizeof mark - 1, sizeof mark - 1, r->warning[i].text);
        fputs(arrow, t->out);
        ttn_wrap(t->out, p->width, sizeof arrow - 1, sizeof arrow - 1, r->warning[i].advice);
    }
}

static void print_text(const ttn_cli_call *call, const ttn_doctor_report *r)
{
    const page p = {&call->out, ttn_terminal_prose_width(&call->out)};
    char names[400];
    line(&p, "titin", "%s", ttn_version());
    line(&p, "processor", "%s", r->machine.processor[0] ? r->machine.processor : "not named");
    line(&p, "", "%s", ttn_cpu_names(r->cpu_present, names, sizeof names));
    print_cores(&p, r);
    print_blas(&p, r, call->reexec);
    print_memory(&p, r);
    print_disk(&p, &r->disk);
    print_libraries(&p);
    print_gpu(&p, r);
    print_warnings(&p, r);
}

/* ---- the command ---- */

static ttn_status run(const ttn_cli_call *call, ttn_error *err)
{
    static ttn_doctor_report report; /* 20 KB, and once in a process */
    const double seconds = 0.15;     /* some 50 products a thread */
    const ttn_doctor_request request = {
        .folder = call->n_argument > 0 ? call->argument[0] : ".", .root = "", .seconds = seconds};
    ttn_status status = ttn_doctor_examine(&request, &report, err);
    if (status != TTN_OK) return status;
    if (ttn_cli_given(call, "json")) {
        status = print_json(call, &report, err);
        if (status != TTN_OK) return status;
    } else {
        print_text(call, &report);
    }
    if (report.blas_status == TTN_OK) return TTN_OK;
    /* Whatever is wrong with the BLAS, wrong numbers included, is a thing of this machine. */
    return TTN_FAIL(err, TTN_EDEVICE, "%s", report.blas_error.text);
}

static const ttn_cli_argument arguments[] = {
    {.name = "FOLDER",
     .least = 0,
     .most = 1,
     .word = TTN_WORD_FOLDER,
     .help = "where runs would be written; by default here"},
    {0},
};

static const ttn_cli_option options[] = {
    {.name = "json", .help = "the same as JSON, with all numbers"},
    {0},
};

static const ttn_cli_example examples[] = {
    {"titin doctor", "look at this machine; takes about a second"},
    {"titin doctor /scratch/me", "and at the disk where runs would be written"},
    {"mpirun -n 2 titin doctor", "see what mpirun leaves to each rank"},
    {"titin doctor --json | jq .warnings", "what to change, for a script"},
    {0},
};

const ttn_command ttn_cmd_doctor = {
    .name = "doctor",
    .group = "this machine",
    .purpose = "is this machine fit for training, and what should be changed?",
    .description = "Looks at the processor, the cores and the memory that this process may use, OpenMP's threads, the "
                   "BLAS (is it the "
                   "right one, does it compute right, how fast?), the disk, the libraries and the GPU. Every warning "
                   "says what to do. "
                   "Ends with 6 when the BLAS cannot be used or computes wrong; warnings alone are no failure.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
