#!/bin/bash
# titin plan, eval and fill as people and scripts meet them: what they print, and what they refuse in which words.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 79

unset NO_COLOR COLUMNS TERM
export OMP_WAIT_POLICY=passive # whoever waits for a thread does not keep it from running: other tests run beside this one
titin=$PWD/$BUILD/titin
screens=$PWD/tests/train/screens
sample=$PWD/data/sample/proteins-500.fasta.gz
cd "$work" || exit 1

# run ARGUMENT...: $code, $out and $err of the program.
run() {
    "$titin" "$@" > out 2> err
    code=$?
    out=$(< out)
    err=$(< err)
}

# refused NAME CODE WORDS ARGUMENT...: that exit code, nothing on stdout, one sentence with these words.
refused() {
    local name=$1 expected=$2 words=$3
    shift 3
    run "$@"
    if [ "$code" = "$expected" ] && [ -z "$out" ] && [ "$(grep -c . <<< "$err")" = 1 ] && grep -q -F -- "$words" <<< "$err"
    then ok "$name"; else not_ok "$name" "exit code $code
$out
$err"; fi
}

# Keys of JSON in the order in which they come first, with their depth as dots.
keys() { grep -o '^ *"[^"]*":' | sed 's/"\(.*\)":/\1/; s/  /./g' | awk '!seen[$0]++'; }

# ---- plan ----

cat > plan.yaml << 'END'
model: {layers: 3, width: 64, heads: 4, token_dropout: yes, dropout: 0.1}
batch: {rows: 9600}
data: {max_len: 400}
train: {steps: 1000, shards: 2, memory: 60MiB, threads: 2}
END
# What belongs to the machine and the hour.
timeless() { sed -E 's/ +[0-9.e+]+ (ns|us|ms|s|min|h|d|days)( [0-9]+ (s|min|h))?$/ TIME/; s/(flops per second) .*/\1  RATE/'; }
run plan plan.yaml --fit 1GiB
same 'plan succeeds, with nothing on stderr' "$code $err" '0 '
same 'and is the screen that was looked at' "$(timeless <<< "$out")" "$(< "$screens/plan.txt")"
check 'with times' test "$(grep -c -E ' [0-9.]+ (us|ms|s|min)$' <<< "$out")" -ge 10
empty 'no line is wider than the terminal' "$(awk 'length($0) > 80' <<< "$out")"
run plan plan.yaml --fit 1GiB --json
same 'JSON succeeds, with nothing on stderr' "$code $err" '0 '
same 'and its keys are the ones that programs know' "$(keys <<< "$out")" "$(< "$screens/plan_keys.txt")"
json=$out
run plan plan.yaml --fit 1GiB --json train.shards=4
same 'more shards take more memory beside the values of a step' \
    "$(diff <(grep -E '"(values|run|weights|shards)"' <<< "$json") <(grep -E '"(values|run|weights|shards)"' <<< "$out") | grep -c '^<')" 4
run plan --preset quickstart
same 'a preset can be planned' "$code $err" '0 '
# Two minutes would pass and 100 GiB would be touched if it allocated what it speaks of.
(ulimit -v 4000000 && exec "$titin" plan model.width=1024 model.layers=24 batch.rows=1048576 data.max_seqs=1 train.memory=300GiB) > out 2> err
same 'what it speaks of is not allocated' "$? $(grep -c 'run  *[0-9.]* GiB' out)" '0 1'

refused 'too little memory' 6 'would do' plan plan.yaml train.memory=2MiB
check 'with what to lower' grep -q 'lower batch.rows, which is 9600' <<< "$err"
refused 'a size that is none' 2 "--fit: 'much' is not a number" plan plan.yaml --fit much
refused 'a size of nothing' 2 "--fit: '0' is nothing" plan plan.yaml --fit 0
refused 'a model that cannot be' 2 'model.heads: 5 heads do not divide model.width, 64' plan plan.yaml model.heads=5
run plan plan.yaml model.wdth=3
same 'a key that does not exist: exit code 2, nothing on stdout' "$code $out" '2 '
run plan plan.yaml --fit 100k
check 'nothing fits: it is told' grep -q 'not even the shortest sequence fits' <<< "$out"

# ---- a run to ask ----

zcat "$sample" | awk '/^>/ { n++ } n > 80 { exit } { print }' > small.fa
cat > tiny.yaml << 'END'
model: {layers: 1, width: 16, heads: 2, token_dropout: yes, dropout: 0.1}
optim: {lr: 0.01}
schedule: {warmup: 5}
batch: {rows: 480}
data: {train: [small.fa], max_len: 100, valid: 0.2}
train: {steps: 12, eval_every: 6, save_every: 6, log_every: 1, threads: 2, maskings: 2}
END
"$titin" train tiny.yaml train.out=tiny > train.txt 2>&1 || cat train.txt
store=$(ls data/small-*.h5)
best=tiny/ckpt/$(readlink tiny/ckpt/best)

# ---- eval ----

run eval tiny "$store" --maskings 2
same 'eval succeeds, with nothing on stderr' "$code $err" '0 '
# Of the numbers of a run it is only said which there are: they are those of a processor.
numberless() { sed -E "s/-?[0-9][0-9.,e+-]*$/NUMBER/; s/small-[0-9a-f]*/small/; s/step-[0-9]*/step/"; }
same 'and is the screen that was looked at' "$(numberless <<< "$out")" "$(< "$screens/eval.txt")"
# A terminal of its own, which shows how far it is.
if command -v script > /dev/null; then
    TERM=xterm script -qec "'$titin' eval tiny '$store' --maskings 2" /dev/null > shown < /dev/null
    check 'on a terminal it shows how far it is' grep -q 'evaluating: [1-9][0-9]* %' shown
else
    skip 'on a terminal it shows how far it is' 'script (util-linux) is not here'
fi
run eval tiny "$store" --maskings 2 --json
same 'JSON succeeds, with nothing on stderr' "$code $err" '0 '
same 'and its keys are the ones that programs know' "$(keys <<< "$out")" "$(< "$screens/eval_keys.txt")"
json=$out
# of KEY: in the first object that has it, the masked positions; metric NAME: of the best checkpoint's evaluation.
of() { sed -n 's|^    "'"$1"'": \(.*[0-9]\),*$|\1|p' <<< "$json" | head -n 1; }
step=$(sed -n 's|^    "step": \([0-9]*\),|\1|p' <<< "$json")
metric() { sed -n "s|^{\"step\":$step,.*\"$1\":\([-+.0-9e]*\).*|\1|p" tiny/metrics.jsonl; }
equal() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 == b + 0 && a + 0 != 0) }'; }
for pair in loss:val/loss loss_error:val/loss_error ppl:val/ppl accuracy:val/accuracy targets:val/targets; do
    check "it is what training said: ${pair#*:}" equal "$(of "${pair%:*}")" "$(metric "${pair#*:}")"
done
run eval tiny "$store" --maskings 2 --json batch.rows=2400
same 'to the bit, whatever the packing' "$out" "$json"
run eval "$best" "$store" --maskings 2 --json
same 'a checkpoint is asked as its run is' "$out" "$json"
run eval "$best/model.safetensors" --config tiny/config.resolved.yaml "$store" --maskings 2 --json
same 'a file of weights too' "$(sed '/"path": "tiny/d; /"step":/d' <<< "$out")" "$(sed '/"path": "tiny/d; /"step":/d' <<< "$json")"
run eval tiny "$store" --all --json
check 'all of a store is more of it' test "$(sed -n 's|^    "sequences": \(.*\),|\1|p' <<< "$out" | head -n 1)" = 80
check 'in four maskings' grep -q '"maskings": 4' <<< "$out"
run eval tiny small.fa --json
same 'a FASTA is all of it' "$code $(sed -n 's|^    "sequences": \(.*\),|\1|p' <<< "$out" | head -n 1)" '0 80'
same 'of which those that it was trained on are told' \
    "$(sed -n 's|^    "equal_to_training": \(.*\)$|\1|p' <<< "$out") $(grep -c 'sequences are in the model.s training set' <<< "$out")" "$(sed -n 's/^ *\([0-9,]*\) to train on.*/\1/p' train.txt) 1"
{
    cat small.fa
    printf '>digit\nMK1V\n>small\nmkvaav\n'
} > dirty.fa
run eval tiny dirty.fa data.on_error=skip-record data.max_skipped=0.1
same 'what was left out of a FASTA and repaired is told' \
    "$code $(sed -n 's/^  \(left out\|repaired\)  *//p' <<< "$out" | tr '\n' ' ')$(grep -c '1 of 82 records were left out; titin data check shows which' <<< "$(tr -s '\n ' ' ' <<< "$out")")" '0 1 6 1'
run eval tiny small.fa --json
(cd / && "$titin" eval "$OLDPWD/tiny" "$OLDPWD/small.fa" --json) > elsewhere
same 'from any folder' "$(grep '"equal_to_training"' elsewhere)" "$(grep '"equal_to_training"' <<< "$out")"
check 'with its own frequencies' grep -q '"frequencies_of": "these sequences"' <<< "$out"
run eval tiny - --json < small.fa
same 'standard input is a FASTA' "$code $(grep -c '"-"' <<< "$out")" '0 1'
run eval tiny small.fa data.max_len=0 --json
check 'longer sequences than a batch of training has room for are whole' test "$(sed -n 's|^    "residues": \(.*\),|\1|p' <<< "$out")" -gt 20000
check 'none is cropped then' grep -q '"cropped": 0,' <<< "$out"
run eval tiny small.fa data.max_len=100 --json
check 'how many are cropped stands there' grep -q '"cropped": [1-9]' <<< "$out"
run eval tiny small.fa data.max_len=100
check 'and is told' grep -q 'longer than data.max_len, 100 residues, a piece was evaluated; data.max_len=0 takes' <<< "$(tr -s '\n ' ' ' <<< "$out$err")"

# Weights that are finite, and whose products are not: the gains of the last layer are the largest float.
cp "$best/model.safetensors" huge.safetensors
for _ in {1..16}; do printf '\xff\xff\x7f\x7f'; done |
    dd of=huge.safetensors bs=1 seek=$(($(stat -c %s huge.safetensors) - 64)) conv=notrunc status=none
refused 'losses that are not finite' 5 'huge.safetensors: what this model predicts is not a finite number: the loss of 80 of 80 sequences' \
    eval huge.safetensors --config tiny/config.resolved.yaml small.fa
refused 'a masking that hides nothing' 2 'mlm.mask=0: no residue is shown as <mask>' eval tiny small.fa mlm.mask=0

refused 'no model' 2 'nowhere: there is no such run, checkpoint or file' eval nowhere "$store"
refused 'no data' 2 'no data is named' eval tiny batch.rows=960
refused 'a file that is not there' 2 'nothing.fa' eval tiny nothing.fa
refused 'a folder that is no run' 4 'data: this folder is no run' eval data "$store"
refused 'a file that is no model' 4 'small.fa' eval small.fa "$store"
refused 'weights without their configuration' 2 'does not say what model they are of' eval "$best/model.safetensors" "$store"
refused 'a model of another shape' 4 "and in this model" eval tiny "$store" model.width=32
refused 'a model with more layers' 4 "has no tensor 'layer.1" eval tiny "$store" model.layers=2
refused 'a model with fewer tensors' 4 'which this model does not have' eval tiny "$store" model.tied=yes model.head=linear
refused 'a configuration beside a checkpoint' 2 'a checkpoint brings its own configuration' eval tiny "$store" --config tiny.yaml
refused 'two stores' 2 'is a store, and stands beside other files' eval tiny "$store" "$store"
"$titin" data pack small.fa -o bert.h5 data.alphabet=bert > pack.txt 2>&1 || cat pack.txt
refused 'a store of another alphabet' 2 "packed for the alphabet 'bert', and the model knows 'esm'" eval tiny bert.h5
printf '>a\nMKV1LA\n' > bad.fa
refused 'a FASTA that is none' 3 'bad.fa:2:4' eval tiny bad.fa
refused 'no masking' 2 "--maskings: '0' is not a number from 1 to 1000" eval tiny "$store" --maskings 0
cp -r tiny damaged
printf X | dd of="damaged/ckpt/$(readlink tiny/ckpt/best)/model.safetensors" bs=1 seek=3000 conv=notrunc status=none
# A stranger's run may have anything in it: a pipe is not waited for.
cp -r tiny piped
rm piped/config.resolved.yaml
mkfifo piped/config.resolved.yaml
timeout 300 "$titin" eval piped small.fa --json > out 2> err
same 'a pipe for the configuration of a run: eval does not wait for it' "$? $(grep -c 'config.resolved.yaml: is a pipe' out)" '0 1'
run eval damaged "$store" --maskings 1
check 'a damaged best checkpoint is passed over, and told' grep -q "the newest checkpoint, step [0-9]*, is used: the best one cannot be used" <<< "$err"
check 'a damaged checkpoint itself is refused' test "$("$titin" eval "damaged/ckpt/best" "$store" > /dev/null 2>&1; echo $?)" = 4

# ---- fill ----

run fill tiny 'MKTAYIAKQR_ISFVKSHFSRQ<mask>'
same 'fill succeeds, with nothing on stderr' "$code $err" '0 '
same 'and is the screen that was looked at' "$(sed -E 's/  [A-Z] 0\.[0-9]{3}/  X 0.000/g' <<< "$out")" "$(< "$screens/fill.txt")"
table=$(awk '$1 == 11 { print $3 "" $4 }' <<< "$out")
run fill tiny 'MKTAYIAKQR_ISFVKSHFSRQ<mask>' --tsv --top 3
same 'rows for scripts: a header, three for each place' "$(cut -f 1-3 <<< "$out")" "$(printf 'sequence\tposition\trank\n\t11\t1\n\t11\t2\n\t11\t3\n\t23\t1\n\t23\t2\n\t23\t3')"
same 'with the same answers' "$(awk -F '\t' 'NR == 2 { printf "%s%.3f", $4, $5 }' <<< "$out")" "$table"
printf '>one first\nMK_\nAA\n>none\nMK\n>two\n_\n' > masked.fa
run fill tiny masked.fa --tsv --top 1
same 'a file: each sequence with its name' "$(cut -f 1,2 <<< "$out" | tr '\t\n' ' ;')" 'sequence position;one 3;two 1;'
same 'those that hide nothing are told' "$err" 'warning: 1 sequence without a mask was passed over'
run fill tiny - --tsv --top 1 < masked.fa
same 'the same from standard input' "$(cut -f 1,2 <<< "$out" | tr '\t\n' ' ;')" 'sequence position;one 3;two 1;'
printf '>\033[31m\033]0;t\007\tx\nMK_\n>=1+1\n_MK\n>\t\nM_J\n' > 'odd=1.fa'
run fill tiny 'odd=1.fa' --top 1
check 'control characters of a name do not reach the terminal' test "$code" = 0 -a -z "$(LC_ALL=C grep $'[\033\007]' out)"
check 'a letter that the vocabulary lacks is told' grep -qF "1 letter that the vocabulary 'esm' lacks, read as X; the first is J at position 3" err
run fill tiny 'odd=1.fa' --tsv --top 1
same 'nor do they in rows for scripts, and no row is computed or nobody'\''s' "$(tail -n +2 out | cut -f 1 | tr '\n' ';')" $'\xef\xbf\xbd[31m\xef\xbf\xbd]0;t\xef\xbf\xbd;'"'=1+1;odd=1.fa:5;"
refused 'a letter that is none' 3 "position 4: '1' stands for no residue" fill tiny MKT1_
refused 'nothing to fill in' 2 'there is nothing to fill in' fill tiny MKT
refused 'too many at the top' 2 "--top: '40' is not a number from 1 to 26" fill tiny MK_ --top 40
refused 'a file that is not there' 2 'nothing.fa' fill tiny nothing.fa
# ---- signals, by which schedulers tell that a job's time is nearly over ----

# While it waits for the rest of a pipe; `exec` goes on when the command has opened it.
mkfifo pipe
sed '/^>/!s/^M/_/' small.fa > masked.fa
for command in 'eval small.fa' 'fill masked.fa'; do
    file=${command#* } command="${command% *} tiny pipe"
    # shellcheck disable=SC2086
    "$titin" $command > out 2> err &
    pid=$!
    exec 5> pipe
    kill -USR1 $pid
    kill -USR2 $pid
    cat "$file" >&5
    kill -USR1 $pid 2> /dev/null
    exec 5>&-
    wait $pid
    code=$?
    same "${command%% *} has nothing to save, and goes on when it is told of the end of a job's time" "$code $(test -s out && echo said)" '0 said'
    # shellcheck disable=SC2086
    "$titin" $command > out 2> err &
    pid=$!
    exec 5> pipe
    kill -HUP $pid
    exec 5>&-
    wait $pid 2> /dev/null
    same "and ends with its terminal" $? 129
done
empty 'nothing is left of them' "$(find . -name '.*tmp*')"

finish
