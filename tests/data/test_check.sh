#!/bin/bash
# titin data check, as a user calls it.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 41

titin=$PWD/$BUILD/titin
sample=data/sample/proteins-500.fasta.gz

# run WORDS...: what titin said, and its exit code at the end.
run() {
    "$titin" data check "$@" 2>&1 < /dev/null
    echo "exit $?"
}
# value KEY: of JSON with one key a line.
value() { sed -n "s/^  \"$1\": \(.*[^,]\),\{0,1\}\$/\1/p"; }

json=$("$titin" data check --json $sample)
same 'the sample has 500 records' "$(value records <<< "$json")" 500
same 'and 245,830 residues' "$(value residues <<< "$json")" 245830
same 'and no errors' "$(value errors <<< "$json")" 0
check 'the sample is the file that its sum says' sh -c 'cd data/sample && sha256sum -c --quiet SHA256SUMS'
same 'a good file ends with 0' "$(run $sample | tail -n 1)" 'exit 0'
same 'standard input, unpacked on the way, is the same' \
    "$(zcat $sample | "$titin" data check --json - | value residues)" 245830

printf '>a\nMKV\n>b\nMK5V\n' > "$work/bad.fa"
output=$(run "$work/bad.fa")
same 'a fault ends with 3' "$(tail -n 1 <<< "$output")" 'exit 3'
check 'it is told with file, line and column' grep -q "bad.fa:4:3: character '5' (0x35)" <<< "$output"
json=$("$titin" data check --json "$work/bad.fa" $sample 2> /dev/null)
same 'as JSON it is counted' "$(value errors <<< "$json")" 1
same 'and the other file is read' "$(value files <<< "$json") $(value residues <<< "$json")" '2 245833'
printf '>a\nMK*V\n' > "$work/stop.fa"
same 'a setting changes the rule' "$(run "$work/stop.fa" data.stop=x | tail -n 1)" 'exit 0'
same 'records that are left out on request are no error' \
    "$(run "$work/bad.fa" data.on_error=skip-record data.max_skipped=1 | tail -n 1)" 'exit 0'
check 'a setting that is none is told' grep -q 'exit 2' <<< "$(run $sample data.stop=maybe)"

head -c 90000 $sample > "$work/cut.fa.gz"
check 'a file that was cut is told' grep -q 'cut.fa.gz: the file ends at compressed byte 90000' <<< "$(run "$work/cut.fa.gz")"
check 'a file that is not there ends with 2' grep -q 'exit 2' <<< "$(run "$work/nothing.fa")"
check 'no file ends with 2' grep -q 'exit 2' <<< "$(run data.stop=x)"

# ---- small files, and what titin data pack says of the same ----

for i in $(seq 60); do printf '>p%d\nMKVLAAGGW\n' "$i"; done > "$work/sixty.fa"
sed '20s/.*/MKV?LA/' "$work/sixty.fa" > "$work/faulty.fa"
sed '20d' "$work/sixty.fa" > "$work/empty.fa"
# codes WORDS...: what check and pack end with.
codes() {
    "$titin" data check "$@" > /dev/null 2>&1
    printf '%s ' $?
    "$titin" data pack "$@" -f -o "$work/codes.h5" > /dev/null 2>&1
    echo $?
}
same 'a good small file' "$(codes "$work/sixty.fa")" '0 0'
same 'one fault in sixty' "$(codes "$work/faulty.fa")" '3 3'
same 'left out, but beyond max_skipped' "$(codes "$work/faulty.fa" data.on_error=skip-record)" '3 3'
same 'with the value that the message names' \
    "$(codes "$work/faulty.fa" data.on_error=skip-record "$(run "$work/faulty.fa" data.on_error=skip-record | grep -om1 'data.max_skipped=0.017')")" '0 0'
same 'one record without residues' "$(codes "$work/empty.fa")" '3 3'
check 'its place and the way past are said' grep -q "empty.fa:19:1: 1 of 60 records has no residues.*the first is 'p10'.*data.on_error=skip-record data.max_skipped=0.017" <<< "$(run "$work/empty.fa")"
same 'which is a way' "$(codes "$work/empty.fa" data.on_error=skip-record data.max_skipped=0.017)" '0 0'
printf '>a\nMK?\n' > "$work/none.fa"
same 'nothing is left' "$(codes "$work/none.fa" data.on_error=skip-record data.max_skipped=1)" '3 3'
same 'two files, one of them bad' "$(codes "$work/sixty.fa" "$work/faulty.fa")" '3 3'
same 'a file that is not there' "$(codes "$work/nothing.fa")" '2 2'

# ---- nucleotides among proteins ----

{ cat "$work/sixty.fa"; printf '>n\nACGTTGCAACGTACGTNACGTACG\n'; } > "$work/mixed.fa"
json=$("$titin" data check --json "$work/mixed.fa")
check 'the card counts them and names the first' grep -qzP '"rule": "FA051",\s*"n": 1,\s*"what": "records that look like nucleotides, not proteins",\s*"file": "[^"]*mixed.fa",\s*"first": "121:1"' <<< "$json"
check 'and warns' grep -q 'mixed.fa: 1 records that look like nucleotides' <<< "$json"

# ---- names with '=' ----

cp "$work/sixty.fa" "$work/x=1.fa"
same 'a file may have one in its name' "$(cd "$work" && codes x=1.fa)" '0 0'
same 'a setting is one all the same' "$(cd "$work" && codes x=1.fa data.stop=x)" '0 0'
rm "$work/x=1.fa" "$work/codes.h5"

# ---- folders ----

mkdir -p "$work/tree/b.fa" "$work/tree/none" "$work/bare"
printf '>c\nMKV\n' > "$work/tree/c.fasta"
printf '>a\nMK\n' > "$work/tree/b.fa/A.FAA"
printf '>z\nMKVL\n' | gzip > "$work/tree/b.fa/z.pep.gz"
printf 'sums' | tee "$work/tree/MD5SUM" > "$work/tree/.hidden"
ln -s .. "$work/tree/b.fa/up"
check 'a folder is told what to do about' grep -q 'is a folder.*--recursive' <<< "$(run "$work/tree")"
json=$("$titin" data check --json -r "$work/tree")
same 'a folder is read with all in it' "$(value files <<< "$json") $(value residues <<< "$json") $(value errors <<< "$json")" '3 9 0'
same 'in the order of names' "$(sed -n 's/^ *"name": "\(.*\)",/\1/p' <<< "$json" | sed 's,.*/,,' | tr '\n' ' ')" 'A.FAA z.pep.gz c.fasta '
check 'what is passed over is said' grep -q 'MD5SUM\|b.fa/up' <<< "$json"
check 'also how much it is' grep -q ': 2 in folders' <<< "$json"
check 'a folder without any is refused' grep -q 'exit 2' <<< "$(run -r "$work/bare")"
touch "$work/tree/big.fa.zst"
same 'what cannot be unpacked is not passed over' "$(run -r "$work/tree" | tail -n 1)" 'exit 3'
rm "$work/tree/big.fa.zst"
# A folder that not even root can read, since its path is too long.
long=$(printf 'd%.0s' {1..250})
(cd "$work/tree/b.fa" && for _ in {1..17}; do mkdir "$long" && cd "$long" || exit; done)
output=$(run -r "$work/tree")
same 'a folder that cannot be read ends as a file that cannot' "$(tail -n 1 <<< "$output")" 'exit 2'
check 'and is told' grep -q 'ddd: .*File name too long.*FA066' <<< "$output"
json=$("$titin" data check --json -r "$work/tree" 2> /dev/null)
same 'and all others are read' "$(value residues <<< "$json") $(value errors <<< "$json")" '9 1'

before=$(ls -la "$work")
run "$work"/*.fa > /dev/null
same 'nothing is written' "$(ls -la "$work")" "$before"
finish
