#!/bin/bash
# `make quickstart`: from the sample of proteins to a model that has learned something about them, in some minutes, and the
# proof of it: proteins that were held out, hidden residues of which the model predicts better than who knows nothing but how
# often residues are. Exits non-zero when it does not.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
titin=${BUILD:-build}/titin
sample=data/sample/proteins-500.fasta.gz
store=run/data/sample.h5
# Elongation factor P of Rickettsia felis, which is held out: its cluster's hash says so.
protein='sp|Q4UKM7|'

# Never over an earlier one.
run=run/quickstart
n=2
while [ -e "$run" ]; do
    run=run/quickstart-$n
    n=$((n + 1))
done

step() { printf '\n== %s\n' "$1"; }

if [ ! -e "$store" ]; then
    step "pack $sample, with clusters of related proteins"
    mkdir -p run/data
    "$titin" data pack "$sample" -o "$store"
fi

step 'train on 95 % of it, 4 million residues'
"$titin" train --preset quickstart "data.train=$store" "train.out=$run"

step 'evaluate on the rest, which has no relatives in what was trained on; each protein masked in four ways'
"$titin" eval "$run" "$store" --maskings 4 | tee "$run/eval.txt"

step 'fill in three residues of a protein that was held out'
sequence=$("$titin" data export "$store" -o - | awk -v id=">$protein" 'index($0, id) == 1 { getline; print; exit }')
printf '%s has %s, %s and %s there\n' "${protein%|}" "${sequence:19:1}" "${sequence:79:1}" "${sequence:139:1}"
"$titin" fill "$run" "$(sed 's/./_/20; s/./_/80; s/./_/140' <<< "$sequence")"

# of NAME: the last value of that metric.
of() { sed -n "s|.*\"$1\":\([-+.0-9e]*\).*|\1|p" "$run/metrics.jsonl" | tail -n 1; }

step 'has it learned anything?'
ppl=$(of val/ppl)
frequency=$(of val/ppl_frequency)
composition=$(of val/ppl_composition)
printf '%s\n' \
    'perplexity of hidden residues of proteins that were held out' \
    "  who knows how often residues are          $frequency" \
    "  who also sees what the protein is made of $composition" \
    "  this model                                $ppl"
if ! awk -v p="$ppl" -v f="$frequency" -v c="$composition" 'BEGIN { exit !(p <= 0.97 * f && p < c) }'; then
    echo "quickstart: expected is at most 0.97 times the first, and less than the second" >&2
    exit 1
fi

step 'where everything is'
printf '%s\n' \
    "  $run/report.html    curves, configuration, data: for a browser" \
    "  $run/loss.svg       the curve alone" \
    "  $run/ckpt/best      the model" \
    "  configs/quickstart.yaml       how it was trained; titin config explain KEY says what a key means" \
    'your own proteins:' \
    "  $titin train --preset quickstart data.train=my.fasta train.out=run/mine"
