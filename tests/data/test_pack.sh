#!/bin/bash
# titin data pack, info, export, as a user calls them.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 48

titin=$PWD/$BUILD/titin
sample=$PWD/data/sample/proteins-500.fasta.gz
cd "$work" || exit 1

# run WORDS...: what titin data WORDS said, and its exit code at the end.
run() {
    "$titin" data "$@" 2>&1 < /dev/null
    echo "exit $?"
}
# value KEY: of JSON with one key a line, at any depth.
value() { sed -n "s/^ *\"$1\": \(.*[^,]\),\{0,1\}\$/\1/p"; }
# says CODE WORDS OUTPUT: it ended so, and said that.
says() { [ "$(tail -n 1 <<< "$3")" = "exit $1" ] && grep -q -- "$2" <<< "$3"; }

json=$("$titin" data pack "$sample" -o sample.h5 --json)
same 'a pack says how many sequences' "$(value sequences <<< "$json" | head -n 1) $(value residues <<< "$json" | head -n 1)" '500 245830'
held_out=$(value held_out <<< "$json")
check 'it says how many are held out' test "$held_out" -gt 5
same 'and how much of them is in training' "$(value percent_over_half_seen <<< "$json")" '0.0'
same 'info says the same' "$("$titin" data info sample.h5 --json | value held_out)" "$held_out"
same 'and with --overlap how much is seen' "$("$titin" data info sample.h5 --overlap --json | value percent_over_half_seen)" '0.0'
check 'other parts are held out when asked for' \
    test "$("$titin" data info sample.h5 --json data.valid=0.5 | value held_out)" -gt 150
same 'a good store is verified' "$("$titin" data info sample.h5 --verify --json | value verified)" true
same 'titin info knows it' "$("$titin" info sample.h5 --json | value kind)" '"store"'
same 'text goes the same way' "$(run info sample.h5 | tail -n 1)" 'exit 0'

zcat "$sample" | awk '/^>/ { if (NR > 1) print ""; sub(/ +$/, ""); print; next } { printf "%s", $0 } END { print "" }' > expected.fa
check 'an export to a file' "$titin" data export sample.h5 -o exported.fa
check 'is the sequences that were packed' cmp expected.fa exported.fa
check 'and one to standard output the same' cmp expected.fa <("$titin" data export sample.h5 -o -)
"$titin" data pack exported.fa -o again.h5 > /dev/null
same 'packed again it is the same' "$("$titin" data info again.h5 --json | value identity)" \
    "$("$titin" data info sample.h5 --json | value identity)"
zcat "$sample" | "$titin" data pack - -o piped.h5 > /dev/null
check 'also from standard input' cmp expected.fa <("$titin" data export piped.h5 -o -)

# ---- what is refused ----

check 'a store that is there is not replaced' says 2 'is there already' "$(run pack "$sample" -o sample.h5)"
check 'but with --force' says 0 sequences "$(run pack "$sample" -o sample.h5 --force)"
check 'nor is an export' says 2 'is there already' "$(run export sample.h5 -o exported.fa)"
cp exported.fa in.fa
check 'input is not output' says 2 'to be read and written' "$(run pack in.fa -o in.fa --force)"
ln in.fa linked.fa
check 'by no name' says 2 'to be read and written' "$(run pack in.fa -o linked.fa --force)"
check 'and is still there' cmp in.fa exported.fa
check 'a store is not exported to itself' says 2 'to be read and written' "$(run export sample.h5 -o sample.h5 --force)"
mkdir folder
check 'a folder is no store' says 2 'is a folder' "$(run pack in.fa -o folder)"
check 'and no input' says 2 'is a folder' "$(run pack folder -o x.h5)"
cp in.fa folder/in.fa
"$titin" data pack -r folder -o folder/of.h5 > /dev/null
check 'with --recursive it is' cmp exported.fa <("$titin" data export folder/of.h5 -o -)
check 'and a file in it is still no output' says 2 'to be read and written' "$(run pack -r folder -o folder/in.fa --force)"
check 'standard output is no store' says 2 'standard output' "$(run pack in.fa -o -)"
check 'no output is told' says 2 'no store is named' "$(run pack in.fa)"
check 'no input is told' says 2 'no file is named' "$(run pack data.stop=x -o x.h5)"
check 'a word for ids that is none' says 2 'any, error or suffix' "$(run pack in.fa -o x.h5 --dup-ids maybe)"
check 'FASTA is no store' says 3 'does not begin as HDF5 does' "$(run info in.fa)"
head -c 90000 "$sample" > cut.fa.gz
check 'a cut file makes none' says 3 'cut.fa.gz: the file ends at compressed byte 90000' "$(run pack "$sample" cut.fa.gz -o x.h5)"
check 'a store without clusters says so' says 0 'was packed without clusters' \
    "$(run pack in.fa -o x.h5 --force data.split=sequence > /dev/null; run info x.h5)"
rm x.h5
printf '>a\nMKV\n>a\nMKVL\n' > twice.fa
check 'ids that stand twice are refused when asked for' says 3 'FA029' "$(run pack twice.fa -o x.h5 --dup-ids error)"

# A file that grows without end is stopped by a signal, and nothing stays; by the one that only asks to save it is not.
mkfifo endless
# wait_for_handlers PID: until it would stop at a SIGTERM, and the others that stop a command.
wait_for_handlers() {
    local caught=0
    until ((0x${caught:-0} & 1 << 14)); do
        sleep 0.02
        caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
    done
}
for signal in TERM USR1 HUP; do
    yes $'>a\nMKVLAGGMKVLAGGMKVLAGGMKVLAGG' > endless 2> /dev/null &
    writer=$!
    "$titin" data pack endless -o x.h5 > out 2> err < /dev/null &
    packer=$!
    while [ -z "$(find . -name '.x.h5.tmp-*')" ]; do sleep 0.05; done
    kill -USR2 $packer
    sleep 0.2
    kill -$signal $packer
    wait $packer
    same "SIG$signal stops it with 75" "$?" 75
    check "SIG$signal: it says so" grep -q 'stopped; nothing was written' err
    kill $writer 2> /dev/null
    wait $writer 2> /dev/null
    yes $'>a\nMKVLAGGMKVLAGGMKVLAGGMKVLAGG' > endless 2> /dev/null &
    writer=$!
    "$titin" data check endless > out 2> err < /dev/null &
    checker=$!
    wait_for_handlers $checker
    kill -USR2 $checker
    kill -$signal $checker
    wait $checker
    same "SIG$signal stops data check, too" "$?" 75
    kill $writer 2> /dev/null
    wait $writer 2> /dev/null
done

# What whoever started it let it ignore, it ignores: as nohup does.
(
    trap '' HUP
    exec "$titin" data pack endless -o hup.h5
) > out 2> err < /dev/null &
packer=$!
exec 3> endless
printf '>a\nMKVLAGG\n' >&3
while [ -z "$(find . -name '.hup.h5.tmp-*')" ]; do sleep 0.05; done
kill -HUP $packer
exec 3>&-
wait $packer
same 'under nohup SIGHUP is nothing' "$?" 0
rm endless hup.h5

# One that was killed leaves its temporary, and the next one takes it away, but none of another that still writes.
mkfifo slow
"$titin" data pack slow -o x.h5 > /dev/null 2>&1 < /dev/null &
packer=$!
exec 3> slow
while [ -z "$(find . -name '.x.h5.tmp-*')" ]; do sleep 0.05; done
living=$(find . -name '.x.h5.tmp-*')
: > .x.h5.tmp-1-0
: > .y.h5.tmp-1-0
output=$(run pack in.fa -o x.h5)
same 'what a killed one left is removed' "$(find . -name '.*.h5.tmp-*' | sort)" "$(printf '%s\n' "$living" ./.y.h5.tmp-1-0 | sort)"
check 'and that is said' grep -q 'x.h5.tmp-1-0: removed; whoever was writing it was killed' <<< "$output"
printf '>a\nMKVLAGG\n' >&3
exec 3>&-
wait $packer
same 'and the one that still wrote ends well' "$?" 0
: > .e.fa.tmp-1-0
"$titin" data export x.h5 -o e.fa
same 'an export does the same' "$(find . -name '.*tmp-*')" ./.y.h5.tmp-1-0
rm slow x.h5 .y.h5.tmp-1-0
empty 'of none of these anything is left' "$(find . -name '*x.h5*')"
finish
