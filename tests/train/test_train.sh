#!/bin/bash
# titin train as people and schedulers meet it: killed, asked by signals, refused; what each leaves behind and says. Signals at
# chosen places of a run, and disks that are full for chosen files, are test_stopped.c's.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 127

unset NO_COLOR COLUMNS TERM
export OMP_WAIT_POLICY=passive # whoever waits for a thread does not keep it from running: other tests run beside this one
titin=$PWD/$BUILD/titin
sample=$PWD/data/sample/proteins-500.fasta.gz
cd "$work" || exit 1
zcat "$sample" | awk '/^>/ { n++ } n > 80 { exit } { print }' > small.fa

cat > tiny.yaml << 'END'
model: {layers: 1, width: 16, heads: 2, token_dropout: yes, dropout: 0.1}
optim: {lr: 0.01}
schedule: {warmup: 5}
batch: {rows: 480}
data: {train: [small.fa], max_len: 100, valid: 0.2}
train: {steps: 20, shards: 2, eval_every: 6, save_every: 4, log_every: 1, threads: 1}
END

# train ARGUMENT...: $code, $out and $err of the program.
train() {
    "$titin" train tiny.yaml "$@" > out 2> err
    code=$?
    out=$(< out)
    err=$(< err)
}

# begin ARGUMENT...: the same in the background, as $pid.
begin() {
    "$titin" train tiny.yaml "$@" > out 2> err &
    pid=$!
}

# until_step RUN STEP: waits until it is in the metrics, or the program has ended.
until_step() {
    while kill -0 "$pid" 2> /dev/null && ! grep -q "^{\"step\":$2," "$1/metrics.jsonl" 2> /dev/null; do sleep 0.005; done
}

ended() {
    wait "$pid"
    code=$?
    out=$(< out)
    err=$(< err)
}

# What a run has come to: weights, moments, metrics without what belongs to the machine and the hour.
result() {
    md5sum < "$1/ckpt/step-00000020/model.safetensors"
    md5sum < "$1/ckpt/step-00000020/optim-r0000-of-0001.safetensors"
    sed 's/"date":[0-9]*,//; s/,"perf[^}]*//' "$1/metrics.jsonl"
}

# ---- a run ----

mkdir data
: > data/.small-0123456789abcdef.h5.tmp-1-0
: > data/.notes.tmp-1-0
train train.out=whole
same 'a run ends well' "$code" 0
same 'what a killed packing left beside it is removed, and nothing else' "$(find data -name '.*')" data/.notes.tmp-1-0
rm data/.notes.tmp-1-0
whole=$(result whole)
check 'with a first screen' grep -q '^titin trains whole' <<< "$out"
check 'with its first loss beside that of knowing nothing' grep -q 'first loss .* ln 33' <<< "$out"
check 'with lines of progress on stderr' grep -q '^step  *[0-9]*/20 .* loss ' <<< "$err"
check 'with a last screen' grep -q '^done: 20 steps in ' <<< "$out"
try=$(sed -n 's/^ *to try it *titin //p' <<< "$out")
check 'whose command to try the model works as it is' bash -c "'$titin' $try"
for file in config.resolved.yaml run.json metrics.jsonl loss.svg report.html ckpt/best ckpt/latest; do
    check "leaves $file" test -s "whole/$file"
done
check 'titin info knows the run' "$titin" info --verify whole
empty 'no temporary stays behind' "$(find whole data -name '.*.tmp*' -o -name '.trash*')"

train
same 'without train.out the folder is called after the configuration' "$code $(ls run)" "0 data
tiny"
train --dry-run train.out=dry
same 'a dry run shows its first screen' "$code $(grep -c '^titin trains\|^  steps ' <<< "$out")" "0 2"
check 'and leaves no run' test ! -e dry
check 'but says where one would be' grep -q '^titin trains dry$' <<< "$out"
OMP_NUM_THREADS=3 train --dry-run train.out=dry train.threads=0
check 'OMP_NUM_THREADS says how many threads compute' grep -q '^  device .* 3 threads' <<< "$out"
OMP_NUM_THREADS=3 train --dry-run train.out=dry train.threads=2
check 'and train.threads goes before it' grep -q '^  device .* 2 threads' <<< "$out"

# ---- what it says of its data ----

# mentions NAME FILE WORDS...: each of them stands there, with any line ends and blanks between.
mentions() {
    local name=$1 text missing= words
    text=$(tr -s ' \n' ' ' < "$2")
    shift 2
    for words in "$@"; do grep -q -F -- "$words" <<< "$text" || missing+="$words"$'\n'; done
    empty "$name" "$missing"
}

{
    cat small.fa small.fa
    printf '>empty\n>digit\nMK1V\n>small\nmkvaav\n>blank\nMK VLA\n'
} > dirty.fa
said=('left out 2 of 164 records: no residues: 1 (FA027), digits: 1 (FA049)' 'repaired blanks inside sequences taken off: 1 (FA017), lower-case residues: 6 (FA040)'
    'repeated 80 proteins with the sequence of an earlier one' 'titin data check dirty.fa')
dirty=(data.train=dirty.fa data.on_error=skip-record data.max_skipped=0.1 train.steps=2)
train train.out=dirty "${dirty[@]}"
mentions 'what was left out and repaired is on the first screen' out "${said[@]}"
train train.out=dirty-2 "${dirty[@]}"
mentions 'also when the copy was packed by an earlier run' out "${said[@]}"
check 'which is told where to look' "$titin" data info "$(sed -n 's/^ *details *titin data info //p' out)"
mentions 'in run.json with file and line' dirty/run.json '"left_out": 2' '"duplicate_sequences": 80' '"rule": "FA049"' '"what": "digits"' '"file": "dirty.fa"'
mentions 'and in the report' dirty/report.html '<td>FA027</td><td class="number">1</td><td>left out</td><td>no residues</td><td>dirty.fa</td>'
train train.out=clean train.steps=2 data.train=small.fa
empty 'of clean files nothing of it is said' "$(grep -E 'left out|repaired|repeated|overlap|details' out)"

cp small.fa copy.fa
same_proteins=('data.train=[small.fa, copy.fa]' data.split=file data.valid_file=copy.fa train.steps=2)
train train.out=copied "${same_proteins[@]}"
mentions 'held-out proteins that are trained on are said to be' out '80 of 80 held-out proteins (100 %) are also in the training set'
mentions 'in run.json' copied/run.json '"percent_equal_to_training": 100.0' '"percent_over_half_seen": 100.0'
mentions 'and in the report' copied/report.html '80 of 80 held-out proteins are also in the training set'
train --dry-run train.out=dry "${same_proteins[@]}"
mentions 'also by a dry run' out '80 of 80 held-out proteins'
awk '/^>/ { print; next } { print $0 "MKV" }' small.fa > near.fa
train train.out=near 'data.train=[small.fa, near.fa]' data.split=file data.valid_file=near.fa train.steps=2
mentions 'nearly equal ones too' out '100 % of held-out proteins share more than half of their 10-mers'

# ---- a run that diverges ----

wild=(optim.lr=10 optim.clip=0 schedule.warmup=0 schedule.kind=constant model.dropout=0 model.token_dropout=no train.shards=1)
train train.out=wild "${wild[@]}" train.steps=40
same 'a run that ends far above its first loss has exit code 5' "$code" 5
mentions 'and says so, on the way and at its end' err 'warning: step 2' 'training diverges; lower optim.lr' 'error: diverged: the training loss has been above'
mentions 'with advice that fits' out 'diverged: step 40 of 40' 'next - diverged: lower optim.lr'
empty 'and none that does not' "$(grep -E 'train longer|by heart|still falling|to go on|to try it' out)"
empty 'no number of it has more digits than it is worth' "$(grep -E '[0-9]{8}' out err)"
mentions 'the report has it' wild/report.html 'diverged: lower optim.lr'
check 'what was trained to its end is saved' test -e wild/ckpt/step-00000040
train train.out=wild "${wild[@]}" train.steps=40 --resume
same 'and is no better when it is started again' "$code" 5
train train.out=wilder "${wild[@]}" train.steps=100000 train.eval_every=0 train.save_every=100
same 'one that stays there ends by itself' "$code" 5
check 'after two intervals of 250 steps and some' test "$(tail -n 1 wilder/metrics.jsonl | sed 's/{"step":\([0-9]*\),.*/\1/')" -lt 600
check 'and what it is after the last checkpoint is not saved' test ! -e wilder/ckpt/step-00000600
train train.out=short "${wild[@]}" train.steps=4 train.log_every=10
same 'a short run is judged by its validation' "$code" 5

# ---- killed ----

unlike=
for step in 1 5 6 11 17; do
    rm -rf killed
    begin train.out=killed
    until_step killed "$step"
    kill -9 "$pid"
    wait "$pid" 2> /dev/null
    train train.out=killed --resume train.threads=3
    [ "$code" = 0 ] || unlike+="killed behind step $step: exit code $code: $err"$'\n'
    [ "$(result killed)" = "$whole" ] || unlike+="killed behind step $step: another result"$'\n'
done
empty 'killed at any of five moments, it goes on to the same bits' "$unlike"

# ---- signals ----

begin train.out=hung train.steps=20
until_step hung 2
kill -HUP "$pid"
ended
same 'a closed terminal does not end it' "$code $(result hung)" "0 $whole"

begin train.out=saved train.steps=1000000 train.save_every=0 train.eval_every=0
until_step saved 2
kill -USR2 "$pid"
for _ in {1..400}; do [ -e saved/ckpt/latest ] || sleep 0.01; done
check 'SIGUSR2 saves' test -e saved/ckpt/latest
check 'and it goes on' kill -0 "$pid"
# A second SIGINT ends it at once, and not after a step and a save.
kill -INT "$pid"
kill -INT "$pid"
wait "$pid" 2> /dev/null
code=$?
check 'a second SIGINT ends it at once, or the first has' test "$code" = 130 -o "$code" = 75

# ---- refused ----

# refused NAME CODE WORDS ARGUMENT...: that exit code, one sentence with these words.
refused() {
    local name=$1 expected=$2 words=$3
    shift 3
    train "$@"
    if [ "$code" = "$expected" ] && grep -q -F -- "$words" <<< "$err"; then ok "$name"; else not_ok "$name" "exit code $code
$err"; fi
}

refused 'another run in the folder' 2 'there is a run, saved at step 20: --resume goes on with it' train.out=whole
refused 'a validation that counts nothing' 2 'mlm.mask=0: no residue is shown as <mask>' train.out=x mlm.mask=0 mlm.random=1
refused 'nor by chance' 2 'no residue is shown as <mask> (mlm.rate=0.001, mlm.mask=0.001, 1 masking)' train.out=x mlm.mask=0.001 mlm.rate=0.001
sed '/^>/!s/.*/\L&/' small.fa > lower.fa
refused 'a training set without a residue to learn' 2 'no residue of the training set has a loss' train.out=x data.train=lower.fa data.lowercase=exclude-from-loss
train train.out=bare mlm.mask=0 mlm.random=1 data.valid=0 train.steps=2
same 'without a validation any masking goes' "$code $(grep -c -w nan out)" '0 0'
refused 'a key that does not exist' 2 'train.step' train.out=x train.step=5
refused 'a file that is not there' 2 'nothing.fa' train.out=x data.train=nothing.fa
printf '>a\nMKV1LA\n' > bad.fa
refused 'a FASTA that is none' 3 'bad.fa:2:4' train.out=x data.train=bad.fa
head -c 20000 "$sample" > cut.fa.gz
refused 'a .gz that is cut' 3 'cut.fa.gz' train.out=x data.train=cut.fa.gz
mapfile -t stores < <(ls -tr data/small-*.h5) # the first that was packed has clusters
refused 'a store of another alphabet' 2 "packed for the alphabet 'esm'" train.out=x "data.train=${stores[0]}" data.alphabet=bert
refused 'another configuration' 2 'with another value of model.width' train.out=whole --resume model.width=32
check 'which is shown' grep -q 'changed: model.width: 16 (tiny.yaml:1) -> 32 (command line)' <<< "$err"
refused 'too little memory' 6 'train.memory' train.out=x train.memory=1k
refused 'a model that no memory holds' 6 'of memory can be had: lower model.width or model.layers' train.out=x model.width=1048576
empty 'nothing is left of what was refused' "$(find x 2> /dev/null; find data -name '*cut*' -o -name '*bad*')"
mkdir mine
for data in bad.fa nothing.fa; do train train.out=mine/runs/new/x "data.train=$data"; done
empty 'nor any folder around it' "$(ls -A mine)"
train train.out=mine/runs/new/x
same 'and the same folder serves the next try' "$code $(ls mine/runs/new)" "0 data
x"

touch file
refused 'a file where the run is to be' 2 'file: is no folder, and a run' train.out=file
refused 'or a folder around it' 2 'a file stands where a folder is wanted' train.out=file/run

# ---- values that nobody reads ----

# told WORDS ARGUMENT...: the warnings about values without effect of a dry run.
told() { train --dry-run train.out=x "$@"; grep 'has no effect' <<< "$err"; }
same 'a value that is not read is told, once' "$(told nystrom.landmarks=8)" \
    'warning: nystrom.landmarks=8 (command line) has no effect: it is used only if attention.kind is nystrom, and attention.kind is exact (default)'
empty 'not one that is' "$(told attention.kind=nystrom nystrom.landmarks=8)"
empty 'nor where the data decides, and it is' "$(told attention.kind=auto attention.auto_length=20 favor.features=16)"
check 'but where it is not' grep -q 'exact.scale=1 .*the attention of this model is favor' \
    <<< "$(told attention.kind=auto attention.auto_length=20 exact.scale=1)"
same 'not what a preset has, only what was given over it' \
    "$("$titin" train --dry-run --preset quickstart data.train=small.fa train.out=x attention.kind=exact schedule.decay=0.1 2>&1 | grep -c 'no effect')" 1
same 'a file is named with its line' "$(printf 'favor: {kernel: relu}\n' > favor.yaml; told favor.yaml | cut -d' ' -f2-3)" \
    'favor.kernel=relu (favor.yaml:1)'
same 'of a store, how it is to be packed' "$(told "data.train=${stores[0]}" data.stop=x | cut -d: -f2)" \
    ' data.stop=x (command line) has no effect'
refused 'what a store would have had to be packed with' 2 'data.dedup=exact (command line) has no effect' \
    train.out=x "data.train=${stores[0]}" data.dedup=exact
check 'titin plan tells it as well' grep -q 'nystrom.landmarks=8 .* has no effect' \
    <<< "$("$titin" plan tiny.yaml nystrom.landmarks=8 2>&1)"
check 'and config show, on stderr' grep -q '^warning: nystrom.landmarks=8 ' \
    <<< "$("$titin" config show tiny.yaml nystrom.landmarks=8 2>&1 > shown.yaml)"
empty 'whose output is a configuration' "$("$titin" config show shown.yaml 2>&1 > again.yaml; diff shown.yaml again.yaml)"
cores=$(nproc)
train --dry-run train.out=x train.threads=$((cores + 1))
check 'more threads than cores' grep -q "^warning: $((cores + 1)) threads (train.threads) on $cores core" <<< "$err"
train --dry-run train.out=x train.threads=1
empty 'and no more than there are' "$(grep 'threads (' <<< "$err")"

# ---- a file for validation ----

awk '/^>/ { n++ } n > 70' small.fa > held.fa
refused 'a file without data.split=file' 2 'set data.split=file, or leave data.valid_file out' train.out=x data.valid_file=held.fa
refused 'also one that is not there' 2 'data.valid_file=nothing.fa' train.out=x data.valid_file=nothing.fa
refused 'a file that is not there' 2 "data.valid_file: 'nothing.fa' cannot be opened" \
    train.out=x data.split=file data.valid_file=nothing.fa
refused 'one that is not trained on' 2 "is not in data.train, where what is held out has to stand, too: data.train=[small.fa, held.fa]" \
    train.out=x data.split=file data.valid_file=held.fa
refused 'none' 2 'data.valid_file=held.fa' train.out=x data.split=file "data.train=[small.fa, held.fa]"
unlike=
for name in held.fa ./held.fa "$PWD/held.fa" ../"${PWD##*/}"/held.fa; do
    train --dry-run train.out=x data.split=file "data.train=[small.fa, held.fa]" "data.valid_file=$name"
    grep -q '80 to train on, 10 held out' <<< "$out" || unlike+="$name: $err"
done
empty 'all names of a file are that file' "$unlike"

# ---- names of files ----

mkdir home several several/more 'we=ird'
cp small.fa home/my.fa
cp small.fa several/a.fa
cp held.fa several/more/b.fa
cp held.fa several/notes.txt
cp held.fa 'a=b.fa'
cp tiny.yaml 'c=d.yaml'
HOME=$PWD/home train train.steps=1 'data.train=~/my.fa' 'train.out=~/runs/a'
same '~ is the home folder' "$code $(ls home/runs)" '0 a
data'
HOME=$PWD/home "$titin" train '~/runs/a' --resume > out 2> err
same 'also of an argument' "$?" 0
TITIN__TRAIN__OUT='$HOME/b' HOME=$PWD/home "$titin" train --dry-run tiny.yaml > out 2> err
check 'as is $HOME, in the environment' grep -q "^titin trains $PWD/home/b" out
empty 'and no folder is called so' "$(find . -name '~*' -o -name '\$*')"
same 'a file whose name has a = is a file' \
    "$("$titin" train --dry-run 'c=d.yaml' 'data.train=a=b.fa' train.out=x 2>&1 | grep -o '10 proteins,')" '10 proteins,'
train --dry-run train.out=x data.train=several
same 'a folder is all FASTA in it' "$code $(grep -m 1 -o '[0-9]* proteins,' <<< "$out")" '0 90 proteins,'
check 'and says what it passes over' grep -q 'not read.*: 1 in folders, the first several/notes.txt' <<< "$err"
train --dry-run train.out=x 'data.train=several/*.f?'
same 'a pattern is all that match it' "$code $(grep -m 1 -o '[0-9]* proteins,' <<< "$out")" '0 80 proteins,'
refused 'or nothing' 2 'several/*.fasta: there is no such file, and none whose name matches' train.out=x 'data.train=several/*.fasta'
refused 'two of data.train' 2 "data.train is given twice, as small.fa and as held.fa: give it once (a list as 'data.train=[small.fa, held.fa]')" \
    train.out=x data.train=small.fa data.train=held.fa
refused 'two of any other key' 2 'train.steps is given twice, as 3 and as 4: give it once' train.steps=3 train.out=x train.steps=4

# ---- going on by the folder ----

unlike=
for words in 'train.out=stopped' 'stopped' 'stopped/' 'stopped/config.resolved.yaml' 'stopped train.threads=2'; do
    rm -rf stopped
    begin train.out=stopped
    until_step stopped 11
    kill -9 "$pid"
    wait "$pid" 2> /dev/null
    # shellcheck disable=SC2086
    "$titin" train --resume $words > out 2> err || unlike+="$words: exit code $?: $(< err)"$'\n'
    [ "$(result stopped)" = "$whole" ] || unlike+="$words: another result"$'\n'
    grep -q 'no effect' err && unlike+="$words: $(< err)"
done
empty 'the name of a run is enough to go on with it' "$unlike"
"$titin" train home --resume > out 2> err
same 'a folder that is no run' "$? $(grep -c 'home: this folder is not that of a run' err)" '2 1'
mkdir -p piped
mkfifo piped/config.resolved.yaml
timeout 300 "$titin" train --resume piped > out 2> err
same 'nor one with a pipe for its configuration, which is not waited for' "$? $(grep -c 'piped: this folder is not that of a run' err)" '2 1'
mkfifo pipe.fa
timeout 300 "$titin" train --preset quickstart data.train=pipe.fa train.out=from_pipe > out 2> err
same 'nor for sequences from a pipe, which a run cannot read again' "$? $(grep -c 'data.train: pipe.fa is a pipe' err)" '2 1'
"$titin" train stopped --resume train.out=whole > out 2> err
same 'a run, and another folder' "$? $(grep -c 'train.out names another folder' err)" '2 1'
"$titin" train stopped > out 2> err
same 'a run without --resume' "$? $(grep -c 'goes on with .titin train FOLDER --resume' err)" '2 1'

cp -r whole foreign
rm -rf foreign/ckpt/*
mkdir foreign/ckpt/step-00000020
echo '{}' > foreign/ckpt/step-00000020/MANIFEST.json
refused 'a checkpoint that is none of ours' 4 'none can be used' train.out=foreign --resume

# The same names and other shapes: the model of a wider run under the configuration of this one.
train train.out=wide model.width=32 train.steps=1
rm -rf shaped && cp -r whole shaped && rm -rf shaped/ckpt/*
cp -r wide/ckpt/step-00000001 shaped/ckpt/
refused 'a checkpoint of another shape' 2 'model.width' train.out=shaped --resume

for file in whole/ckpt/step-*/model.safetensors; do
    mkdir -p "damaged/${file%/*}"
done
rm -rf damaged && cp -r whole damaged
for file in damaged/ckpt/step-*/model.safetensors; do printf X | dd of="$file" bs=1 seek=5000 conv=notrunc status=none; done
refused 'checkpoints that are damaged, all of them' 4 'none can be used' train.out=damaged --resume

# ---- a run that came from somebody else ----

# Whatever a run has in its folder is a link to what is not its own: refused, and that stays as it was.
mkdir outside && touched=
while read -r name; do
    rm -rf planted outside/* && cp -r whole planted
    if [ -d "planted/$name" ]; then cp -r whole/ckpt/step-00000020 outside/; else echo mine > outside/mine; fi
    before=$(find outside -type f -exec md5sum {} +)
    rm -rf "planted/$name"
    if [ -d "whole/$name" ]; then ln -s ../outside "planted/$name"; else ln -s ../outside/mine "planted/$name"; fi
    train train.out=planted --resume --allow-change train.steps=24
    [ "$code" = 2 ] && grep -q "planted/$name: is a link" <<< "$err" || touched+="$name: exit code $code: $err"$'\n'
    [ "$(find outside -type f -exec md5sum {} +)" = "$before" ] || touched+="$name: what it leads to is otherwise"$'\n'
done <<< "$(ls -A whole)"
empty 'nothing is written through a link in the folder of a run' "$touched"
same 'and all that a run has was tried' "$(ls -A whole | wc -l)" 8

# ---- a vocabulary of one's own ----

printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' Y W V T S R Q P N M L K I H G F E D C A > vocab.txt
train train.out=own data.tokens=@vocab.txt
same 'a run with the tokens of a file' "$code" 0
check 'whose configuration has the tokens and not the file' grep -q 'tokens: "\[PAD\] \[UNK\].* D C A"' own/config.resolved.yaml
"$titin" data info "$(grep -l own data/small-*.h5 | head -n 1)" > info 2> err
check 'packed for it' grep -q 'alphabet  *own' info
"$titin" fill own MKT_YIAKQ > fill 2> err
check 'a residue can be filled in' grep -q '^  *4  MKT_YIAKQ' fill
mv vocab.txt elsewhere.txt
"$titin" train own/config.resolved.yaml --resume --allow-change train.steps=22 > out 2> err
same 'the file is not needed again' "$? $(grep -c '^{"step":22,"date":[0-9]*,"train' own/metrics.jsonl)" '0 1'
sed -i 's/^C$/x/; s/^A$/C/; s/^x$/A/' elsewhere.txt
refused 'tokens in another order' 2 'with another value of data.tokens' train.out=own --resume data.tokens=@elsewhere.txt
"$titin" data pack small.fa -o other.h5 data.tokens=@elsewhere.txt > pack.txt 2>&1 || cat pack.txt
"$titin" eval own other.h5 > out 2> err
check 'a store of tokens in another order' grep -q "packed for the alphabet 'own', and the model knows 'own' (token 23 is A there, and C in the model)" err
printf 'A\nC D\n' > two.txt
refused 'a line of two words' 2 'data.tokens: two.txt:2: several words; one word a line is expected' train.out=x data.tokens=@two.txt
printf 'A\n\nC\n' > gap.txt
refused 'an empty line' 2 'data.tokens: gap.txt:2: an empty line; one word a line is expected' train.out=x data.tokens=@gap.txt
refused 'two vocabularies' 2 'data.alphabet' train.out=x data.tokens=@elsewhere.txt data.alphabet=bert
refused 'an empty file' 2 'data.tokens: /dev/null: it is empty' train.out=x data.tokens=@/dev/null
refused 'no such file' 2 'data.tokens: nothing.txt: No such file' train.out=x data.tokens=@nothing.txt

# ---- a disk that takes no more ----

(ulimit -f 30 && exec "$titin" train tiny.yaml train.out=full) > out 2> err
code=$?
same 'no room for a checkpoint: exit code 6' "$code" 6
check 'before the first step' test ! -s full/metrics.jsonl
check 'and that is told' grep -q 'no checkpoint can be saved.*File too large; raise the limit on file sizes' err
(ulimit -f 30 && exec "$titin" train tiny.yaml train.out=dry --dry-run) > out 2> err
same 'a dry run says it, too, and leaves nothing' "$? $(grep -c 'no checkpoint can be saved' err) $(ls -d dry 2> /dev/null)" '6 1 '
empty 'nothing is half written under a final name' "$(find full/ckpt -name 'step-*')"
finish
