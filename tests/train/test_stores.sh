#!/bin/bash
# Stores that came from somebody else, as a user meets them: the packed copy beside a run that is not its files', stores that
# were changed or damaged, and what every command that opens one says.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 29

unset NO_COLOR COLUMNS TERM
export OMP_WAIT_POLICY=passive
make -s CC="$CC" BUILD="$BUILD" "$BUILD/titin" "$BUILD/tests/data/test_store" > /dev/null
titin=$PWD/$BUILD/titin
change="$PWD/$BUILD/tests/data/test_store --child change"
sample=$PWD/data/sample/proteins-500.fasta.gz
cd "$work" || exit 1
zcat "$sample" | awk '/^>/ { n++ } n > 80 { exit } { print }' > small.fa
awk '/^>/ { n++ } n > 40 { exit } { print }' small.fa > other.fa
gzip -c small.fa > packed.fa.gz
cat > tiny.yaml << 'END'
model: {layers: 1, width: 16, heads: 2}
batch: {rows: 480}
data: {train: [small.fa], max_len: 100, valid: 0.2}
train: {steps: 2, threads: 1}
END

# train ARGUMENT...: $code, $out and $err of the program.
train() {
    rm -rf run
    "$titin" train tiny.yaml train.out=run "$@" > out 2> err
    code=$?
    out=$(< out)
    err=$(< err)
}
trains_on() { [ "$code" = 0 ] && grep -q "^  data  *$1 proteins" <<< "$out"; }
anew() { trains_on "$1" && grep -q -- "$2; data.train is packed anew" <<< "$err"; }
is_kept() { trains_on "$1" && ! grep -q 'packed' <<< "$err"; }
# print: what the last train said.
print() { printf 'exit %s\n%s\n%s\n' "$code" "$out" "$err"; }
try() { if "${@:2}"; then ok "$1"; else not_ok "$1" "$(print)"; fi; }

# ---- the packed copy ----

train
copy=$(ls data/small-*.h5)
cp "$copy" good.h5
train
try 'the packed copy is used again' is_kept 80
"$titin" data pack other.fa -o other.h5 > /dev/null
cp other.h5 "$copy"
train
try 'another store under its name is replaced' anew 80 "$copy: was not packed from the files of data.train"
check 'by the same bytes as before' cmp good.h5 "$copy"
train data.train=other.fa
cp data/other-*.h5 "$copy"
train
try 'also the copy of other files' anew 80 'was not packed from the files of data.train'
"$titin" data pack small.fa -o "$copy" --force > /dev/null
train
try 'also one of the same files that somebody packed' anew 80 'was not packed from the files of data.train'
train pack.compress=gzip
compressed=$(ls data/small-*.h5 | grep -v "$copy")
cp "$compressed" "$copy"
train
try 'also the copy of the same files by other rules' anew 80 'was not packed from the files of data.train'
$change "$copy" source_xxh128
train
try 'also one whose checksum of a file was changed' anew 80 "$copy: is damaged"
train data.train=packed.fa.gz
zipped=$(ls data/packed-*.h5)
train data.train=packed.fa.gz
try 'the copy of a compressed file is used again' is_kept 80
cp other.h5 "$zipped"
train data.train=packed.fa.gz
try 'another store under its name is replaced, too' anew 80 'was not packed from the files of data.train'
head -c 5000 good.h5 > "$copy"
train
try 'a copy that is cut is replaced' anew 80 "$copy: is damaged"
$change "$copy" tokens
train
try 'and one whose tokens were changed, where all of them are read at once' anew 80 "$copy: is damaged"
$change "$copy" tokens
train data.cache=1
same 'where they are read block by block the run ends with an error' "$code" 3
try 'that says what may be done' grep -q "$copy: 'tokens' is not what was written: .*: remove it, and the next titin train packs it anew" err
rm "$copy"
train data.cache=1
try 'which helps' trains_on 80
cp "$copy" elsewhere.h5
ln -sf "$PWD/elsewhere.h5" "$copy"
train
try 'a link to the packed copy serves' is_kept 80
cp other.h5 elsewhere.h5
train
try 'one to another store is refused' grep -q "$copy: is a link that leads to a store that was not packed from the files of data.train, .*: remove it" err
check 'and what it leads to is as it was' cmp other.h5 elsewhere.h5
rm "$copy" && mkdir "$copy"
train
try 'what is no file is not replaced' test "$code" = 2 -a -d "$copy"
rmdir "$copy"

# ---- a store that was changed after it was packed ----

train
"$titin" data pack small.fa -o good.h5 --force > /dev/null
# says CODE WORDS COMMAND...: it ends so, with one line of error; warnings may stand before it.
says() {
    local expected=$1 words=$2
    shift 2
    "$@" > out 2> err < /dev/null
    code=$?
    out=$(head -n 20 out)
    err=$(< err)
    [ "$code" = "$expected" ] && [ "$(grep -c -v '^warning: ' err)" = 1 ] && grep -q -- "^titin: error: $words" err
}
cp good.h5 changed.h5
$change changed.h5 tokens
for cache in 1 1G; do
    try "training on changed tokens is an error (data.cache=$cache)" \
        says 3 "changed.h5: 'tokens' is not what was written.*; pack it again" "$titin" train tiny.yaml train.out=x data.train=changed.h5 data.cache=$cache
done
try 'so is evaluation' says 3 "changed.h5: 'tokens' is not what was written" "$titin" eval run changed.h5 --all
try 'export' says 3 "changed.h5: 'tokens' is not what was written" "$titin" data export changed.h5 -o x.fa
try 'verification' says 3 "changed.h5: 'tokens' is not what was written" "$titin" data info --verify changed.h5
try 'and that of titin info' says 3 "changed.h5: 'tokens' is not what was written" "$titin" info --verify changed.h5
empty 'nothing is left of what was refused' "$(ls -d x x.fa 2> /dev/null)"
# Of each list: what reads all of it does not go on.
wrong=
for list in offset id id_offset header header_offset hash cluster alphabet source_first source_link tokens_xxh64 id_xxh64; do
    cp good.h5 changed.h5
    $change changed.h5 "$list"
    says 3 "changed.h5: '.*' is not what was written" "$titin" data info --verify changed.h5 || wrong+="$list: $(print)"$'\n'
done
empty 'any list that was changed is found' "$wrong"
cp good.h5 changed.h5
$change changed.h5 header
try 'and no line of a header is exported as it is not' says 3 "changed.h5: 'header' is not" "$titin" data export changed.h5 -o -

# ---- damage: one sentence of ours that names the file, and no word of HDF5's own ----

wrong=
n_refused=0
size=$(stat -c %s good.h5)
for i in {0..39}; do
    at=$((i < 20 ? 8 + i * 25 : i * size / 41))
    cp good.h5 damaged.h5
    printf '\252\125\314\063' | dd of=damaged.h5 bs=1 seek=$at conv=notrunc 2> /dev/null
    for command in 'data info' 'data info --verify' 'data export -o -' 'info --verify' 'eval run --all'; do
        # shellcheck disable=SC2086
        says 3 'damaged.h5: ' "$titin" $command damaged.h5 && n_refused=$((n_refused + 1))
        said=$(grep -v '^warning: ' err)
        [ "$code" = 0 ] && [ -z "$said" ] || [[ "$code" = 3 && "$said" = 'titin: error: damaged.h5: '* && "$said" != *$'\n'* ]] ||
            wrong+="byte $at, $command: $(print | head -c 1000)"$'\n'
    done
done
empty 'a damaged store is refused in one line with its name, or read' "$wrong"
check "and often refused ($n_refused of 200)" test "$n_refused" -gt 60
finish
