#!/bin/bash
# `make compare [KINDS=...] [SEEDS=3]`: kinds of attention beside each other, all else equal, on the 20,000 proteins of
# `make data`: proteins-20k with another attention, trained on 2 million residues instead of 20, and judged by hidden residues
# of the held-out proteins. A run appends its line to configs/compare.tsv; a kind and seed that stand there are not run again,
# and one that was stopped goes on. Ends with the table of all of them, as the README has it. KINDS='': the table alone.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
titin=${BUILD:-build}/titin
results=configs/compare.tsv
seeds=${SEEDS:-3}
fasta=data/downloaded/proteins-20000.fasta.gz
store=run/data/proteins-20000.h5

# What a kind is made of: KIND | TITLE | PRESET KEY=VALUE...
kinds() {
    cat << 'END'
exact           | exact                                        | proteins-20k attention.kind=exact
favor-softmax   | random features of softmax (Performer)       | performer-softmax
favor-relu      | random features, relu (Performer)            | performer-relu
nystrom-plain   | 64 landmarks (Nystromformer), no convolution | nystromformer-proteins nystrom.conv=0
nystrom         | 64 landmarks and convolution (Nystromformer) | nystromformer-proteins
none            | none: a residue sees itself alone            | proteins-20k attention.kind=none
END
}
column() { kinds | awk -F' *[|] *' -v kind="$1" -v n="$2" '$1 == kind { print $n }'; }

# of NAME: the last value of that metric in $run, or nothing.
of() { sed -n "s|.*\"$1\":\([-+.0-9e]*\).*|\1|p" "$run/metrics.jsonl" | tail -n 1; }

compare() {
    local kind=$1 seed=$2 preset
    run=run/compare/$kind-$seed
    # shellcheck disable=SC2046 # a preset, and values over it
    set -- $(column "$kind" 3)
    preset=$1
    shift
    printf '\n== %s, seed %d\n' "$kind" "$seed"
    # --resume begins where there is nothing yet, does nothing at the end, and refuses a run of another configuration.
    "$titin" train --preset "$preset" "$@" "data.train=$store" "train.out=$run" "train.seed=$seed" \
        train.tokens=2M train.eval_every=0 train.save_every=0 --resume
    [ -n "$(of val/loss)" ] || {
        echo "compare: $run/metrics.jsonl has no val/loss" >&2
        exit 1
    }
    [ -e "$results" ] || printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' kind seed loss loss_error accuracy accuracy_error \
        ppl_frequency ppl_composition residues > "$results"
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$kind" "$seed" "$(of val/loss)" "$(of val/loss_error)" \
        "$(of val/accuracy)" "$(of val/accuracy_error)" "$(of val/ppl_frequency)" "$(of val/ppl_composition)" \
        "$(of train/residues)" >> "$results"
}

# Perplexities of losses that are means over seeds. Behind ± the standard error of that mean over seeds, which differ in weights
# and batches; in parentheses the error over proteins, which is that of one run (a mean of the runs' own standard errors).
table() {
    printf '%s\n' '| attention | perplexity | accuracy, % | frequencies | composition | seeds |' '|---|---|---|---|---|---|'
    kinds | awk -F' *[|] *' -v results="$results" '
        { title[$1] = $2; order[++n] = $1 }
        END {
            while ((getline line < results) > 0) {
                split(line, c, "\t")
                k = c[1]
                if (!(k in title) || (k, c[2]) in seen) continue
                seen[k, c[2]]
                m[k]++
                loss[k] += c[3]; loss2[k] += c[3] * c[3]; right[k] += c[5]; right2[k] += c[5] * c[5]
                frequency[k] += log(c[7]); composition[k] += log(c[8])
                loss_error[k] += c[4]; right_error[k] += c[6]
            }
            for (i = 1; i <= n; i++) {
                k = order[i]
                if (!m[k]) continue
                ppl = exp(loss[k] / m[k])
                printf "| %s | %.2f ± %s (%.2f) | %.2f ± %s (%.2f) | %.2f | %.2f | %d |\n", title[k],
                    ppl, error(loss[k], loss2[k], m[k], ppl), ppl * loss_error[k] / m[k],
                    100 * right[k] / m[k], error(right[k], right2[k], m[k], 100), 100 * right_error[k] / m[k],
                    exp(frequency[k] / m[k]), exp(composition[k] / m[k]), m[k]
            }
        }
        function error(sum, squares, n, unit,    variance) {
            if (n < 2) return "?"
            variance = (squares - sum * sum / n) / (n - 1)
            return sprintf("%.2f", unit * sqrt(variance > 0 ? variance / n : 0))
        }'
}

for kind in ${KINDS-$(kinds | cut -d' ' -f1)}; do
    [ -n "$(column "$kind" 3)" ] || {
        echo "compare: there is no kind '$kind'; there are" "$(kinds | cut -d' ' -f1 | tr '\n' ' ')" >&2
        exit 2
    }
done

for kind in ${KINDS-$(kinds | cut -d' ' -f1)}; do
    for ((seed = 1; seed <= seeds; seed++)); do
        grep -qs "^$kind	$seed	" "$results" && continue
        if [ ! -e "$store" ]; then
            mkdir -p run/data
            [ -e "$fasta" ] || data/download
            "$titin" data pack "$fasta" -o "$store"
        fi
        compare "$kind" "$seed"
    done
done
echo
table
