#!/bin/bash
# Configurations, good ones and bad ones, for tests/train/test_config_corpus.c: one a line on standard output, fields
# separated by tabs:
#
#     bad   KIND  SOURCE  SENTENCE   TEXT        SENTENCE is exactly what is said of it
#     good  KIND  SOURCE  KEY=VALUE  TEXT        VALUE as config.resolved.yaml has it
#
# SOURCE is file, environment or argument. In TEXT, \n \t \r \\ and \xNN stand for bytes. Where a bad text is wrong stands
# «, which is no part of it: places are never counted by hand. Several problems: several «, and sentences with | between.
set -u

bad()  { printf 'bad\t%s\tfile\t%s\t%s\n' "$1" "$2" "$3"; }
bad_argument() { printf 'bad\t%s\targument\t%s\t%s\n' "$1" "$2" "$3"; }
bad_variable() { printf 'bad\t%s\tenvironment\t%s\t%s\n' "$1" "$2" "$3"; }
good() { printf 'good\t%s\tfile\t%s\t%s\n' "$1" "$2" "$3"; }
good_argument() { printf 'good\t%s\targument\t%s\t%s\n' "$1" "$2" "$3"; }
good_variable() { printf 'good\t%s\tenvironment\t%s\t%s\n' "$1" "$2" "$3"; }

counts='there are k, M, G and T (times 1,000 each)'
sizes='there are k, M, G, T (times 1,000 each) and Ki, Mi, Gi, Ti (times 1,024 each), with or without B'
times='there are ms, s, m, h and d'
lr='a number from 0 to 1'
steps='an integer from 1 to 1000000000000'
size='a size in bytes (64k, 2GiB) of at least 0'
time='a duration (90s, 1.5h) from 1s to 10d'

# ---- numbers that are none, or could be read in two ways ----

for word in abc --1 1e . 1..2; do
    case $word in
    1e) bad not-a-number "train.lr: '1e' ends in 'e', which is no unit here; $counts" 'train:\n  lr: «1e\n' ;;
    1..2) bad not-a-number "train.lr: '1..2' is not a number: it ends in '.2'" 'train:\n  lr: «1..2\n' ;;
    *) bad not-a-number "train.lr: '$word' is not a number" "train:\n  lr: «$word\n" ;;
    esac
done
for number in 010 00 -07 007.5; do
    bad leading-zero "train.seed: '$number' begins with 0, which elsewhere means octal: leave the 0 out" \
        "train:\n  seed:   «$number\n"
done
for number in 0x10 0o17 0b1 0XFF; do
    bad not-decimal "train.steps: '$number' is not decimal: write the number in decimal digits" \
        "train: {lr: 1e-3, steps: «$number}\n"
done
for number in .inf -.inf .nan inf NaN Infinity; do
    bad not-finite "train.offset: '$number' is not finite, and a number here is" "train:\n  offset: «$number\n"
done
for number in 1__000 1_000_ 1_.5 1._5; do
    bad underscore "train.offset: '$number' has a '_' that is not between two digits" "train:\n  offset: «$number\n"
done
bad not-a-number "train.offset: '_1' is not a number" 'train:\n  offset: «_1\n'
for number in 1,000 0,5 '1,000,000'; do
    bad comma "train.lr: '$number' has a comma: write 0.5 with a point, and 1_000 for a thousand" "train:\n  lr: «$number\n"
done
for number in 1.5 1e-3 0.0001k 12.5e0; do
    bad not-whole "train.steps: '$number' is not a whole number" "train:\n  steps: «$number # steps\n"
done
for number in 9223372036854775808 1e19 -9223372036854775809 10_000_000T 99999999999999999999999; do
    bad overflow "train.seed: '$number' does not fit: the largest number is 9223372036854775807" "train:\n  seed: «$number\n"
done
bad overflow "train.offset: '1e309' does not fit: the largest number is 1.797e308" 'train:\n  offset: «1e309\n'
bad underflow "train.offset: '1e-400' is so small that it would be 0" 'train:\n  offset: «1e-400\n'
bad too-many-digits "train.seed: '0.1234567890123456789012345' has more digits than an integer can" \
    'train:\n  seed: «0.1234567890123456789012345\n'
bad too-long "train.seed: '11111111111111111111...' has 70 bytes, and a number at most 64" \
    "train:\n  seed: «$(printf '1%.0s' {1..70})\n"

# ---- units ----

for unit in K m KB Ki x; do
    bad unit-of-count "train.steps: '64$unit' ends in '$unit', which is no unit here; $counts" "train:\n  steps: «64$unit\n"
done
for unit in K KB mb kiB GiBs Gb; do
    bad unit-of-size "train.budget: '2$unit' ends in '$unit', which is no unit here; $sizes" "train:\n  budget: «2$unit\n"
done
for unit in S hours sec y k; do
    bad unit-of-time "train.save_every: '90$unit' ends in '$unit', which is no unit here; $times" \
        "train:\n  save_every: «90$unit\n"
done
bad part-of-a-byte "train.budget: '1.5B' is not a whole number" 'train:\n  budget: «1.5B\n'
bad part-of-a-byte "train.budget: '0.3Ki' is not a whole number" 'train:\n  budget: «0.3Ki\n'
bad negative "train.budget: '-1GiB' is below 0, and a size is not" 'train:\n  budget: «-1GiB\n'
bad negative "train.save_every: '-5m' is below 0, and a duration is not" 'train:\n  save_every: «-5m\n'
bad clock "train.save_every: '1:30:00' has a colon: write a time as 1h30m" 'train:\n  save_every: «1:30:00\n'
bad clock "train.steps: '190:20' has a colon: write a time as 1h30m" 'train:\n  steps: «190:20\n'
bad parts-of-time "train.save_every: '30m1h' has parts that do not go from large to small: write 1h30m" \
    'train:\n  save_every: «30m1h\n'
bad parts-of-time "train.save_every: '1h30' ends in a number without a unit: write 1h30m" 'train:\n  save_every: «1h30\n'
bad parts-of-time "train.save_every: '1h 2h' has parts that do not go from large to small: write 1h30m" \
    'train:\n  save_every: «1h 2h\n'
bad after-the-unit "train.steps: '64k5' goes on after its unit" 'train:\n  steps: «64k5\n'
bad after-the-unit "train.budget: '2GiB 3' goes on after its unit" 'train:\n  budget: «2GiB 3\n'

# ---- out of range ----

for number in 1.5 -0.1 2; do
    bad out-of-range "train.lr: '$number' is out of range: expected is $lr" "train:\n  lr: «$number\n"
done
bad out-of-range "train.steps: '0' is out of range: expected is $steps" 'train:\n  steps: «0\n'
bad out-of-range "train.warmup: '-1' is out of range: expected is an integer of at least 0" 'train:\n  warmup: «-1\n'
bad out-of-range "train.save_every: '11d' is out of range: expected is $time" 'train:\n  save_every: «11d\n'
bad out-of-range-in-list "train.betas.1: '1.1' is out of range: expected is $lr" 'train:\n  betas: [0.9, «1.1]\n'
bad out-of-range-in-list "train.betas.2: '7' is out of range: expected is $lr" \
    'train:\n  betas:\n    - 0.9\n    - 0.95\n    - «7\n'

# ---- other types ----

for word in 1 0 maybe y yEs "'t'"; do
    bad not-a-bool "train.resume: '${word//\'/}' is not yes or no" "train:\n  resume: «$word\n"
done
for word in Exact exac favour+ yes 7; do
    bad not-a-choice "attention.kind: '$word' is not one of exact, favor, nystrom, none" "attention:\n  kind: «$word\n"
done
bad not-a-choice "objective.kind: 'MLM' is not one of mlm, clm" 'objective: {kind: «MLM}\n'
bad choice-in-list "attention.kind.2: 'fvor' is not one of exact, favor, nystrom, none" \
    'attention:\n  kind: [exact, favor, «fvor, exact]\n'
bad choice-in-list "attention.kind.0: '' is not one of exact, favor, nystrom, none" "attention:\n  kind: [«'', favor]\n"
bad pattern "train.freeze: 'layer.[0-3.*' is not a pattern: its '[' is not closed" "train:\n  freeze: «'layer.[0-3.*'\n"
bad pattern "train.freeze.1: '' is not a pattern (layer.*.attn.*)" 'train:\n  freeze: [a, «""]\n'
bad path "data.train.0: '' is not a path" "data:\n  train: [«'']\n"
bad path "data.train: 'a?b' is not a path: it has a control character" 'data:\n  train: «"a\\tb"\n'
bad nul-escape 'data.name: the text has a NUL byte' 'data:\n  name: «"a\\0b"\n'
bad nul-escape 'notes.x: the text has a NUL byte' 'notes:\n  x: «"\\0"\n'
for word in null '~' Null; do
    bad null "data.name: $word is no value: leave the line out, or quote it if the word is meant" "data:\n  name: «$word\n"
done
bad no-value 'train.lr: no value: give one, or leave the line out for the default, 3e-4' 'train:\n  lr:«\n  seed: 1\n'
bad no-value 'train.steps: no value: give one, or leave the line out for the default, 50k' 'train: {steps: «}\n'
bad colon "a ':' behind a key wants a space after it" 'train: {steps«:}\n'
bad no-value 'data.train.1: no value: give one or leave the line out' 'data:\n  train:\n    - a\n    -«\n'

# ---- one value, a list, a section ----

bad list-for-value 'train.lr: expected is one value: number, and here stands a list' 'train:\n  lr: «[1e-3]\n'
bad list-for-value 'train.resume: expected is one value: yes or no, and here stands a list' 'train:\n  resume:\n    «- yes\n'
bad section-for-value 'train.lr: expected is one value: number, and here stands a section' 'train:\n  lr:\n    «value: 1e-3\n'
bad section-for-value 'data.name: expected is one value: text, and here stands a section' 'data:\n  name: «{a: b}\n'
bad list-in-list 'train.betas.1: one value is expected, and here stands a list' 'train:\n  betas: [0.9, «[0.95]]\n'
bad list-in-list 'data.train.0: one value is expected, and here stands a section' 'data:\n  train:\n    - «path: a.fa\n'
bad value-for-section 'train is a section: below it stand its keys, indented, as KEY: VALUE' 'train: «5\n'
bad value-for-section 'notes is a section: below it stand its keys, indented, as KEY: VALUE' 'notes: «read me\n'
bad list-for-section 'train is a section: below it stand its keys, indented, as KEY: VALUE' 'train:\n  «- lr: 3\n'
bad not-sections 'a configuration is made of sections with keys (train:, and below it lr: 3e-4), and here stands a list' '«- train\n- lr\n'
bad not-sections 'a configuration is made of sections with keys (train:, and below it lr: 3e-4), and here stands a value' '«train.lr=3\n'
bad preset-is-list 'preset: the name of a preset is expected' 'preset: «[quickstart]\n'
bad preset-is-list 'preset: the name of a preset is expected' 'preset:«\ntrain: {lr: 0}\n'
bad below-a-value 'train.lr.0: train.lr is one value (number), and has nothing below it' '«train.lr.0: 3\n'

# ---- keys ----

for pair in lrr=train.lr stesp=train.steps seeed=train.seed wamrup=train.warmup safe_every=train.save_every; do
    bad near-key "there is no key 'train.${pair%=*}'; did you mean ${pair#*=}?" "train:\n  «${pair%=*}: 1\n"
done
bad key-elsewhere "there is no key 'data.lr'; lr lives in the section train: train.lr" 'data:\n  «lr: 1e-3\n'
bad key-elsewhere "there is no key 'train.landmarks'; landmarks lives in the section attention: attention.landmarks" \
    'train:\n  «landmarks: 3\n'
bad key-elsewhere "there is no key 'model.kind'; kind lives in the section attention: attention.kind" '«model.kind: exact\n'
bad key-without-section "there is no section 'lr'; lr lives in the section train: train.lr" '«lr: 1e-3\n'
bad key-without-section "there is no section 'seed'; seed lives in the section train: train.seed" '«seed: 1\ntrain: {lr: 0.1}\n'
bad far-key "there is no key 'objective.xylophone'; there are objective.kind" 'objective:\n  «xylophone: 1\n'
bad far-key "there is no key 'attention.xylophone'; there are attention.kind, attention.landmarks" \
    'attention: {kind: exact, «xylophone: 1}\n'
bad near-section "there is no section 'trian'; did you mean the section train?" '«trian:\n  lr: 1e-3\n  steps: 5\n'
bad near-section "there is no section 'objectve'; did you mean the section objective?" '«objectve: {kind: mlm}\n'
bad far-section "there is no section 'optimiser'; there are the sections train, data, attention, objective" \
    '«optimiser:\n  lr: 3\n'
bad key-case "there is no key 'train.LR'; did you mean train.lr?" 'train:\n  «LR: 3\n'
bad key-case "there is no section 'Train'; did you mean the section train?" '«Train:\n  lr: 3\n'
bad key-twice 'train.lr is given twice: the first time in line 2' 'train:\n  lr: 0.1\n  steps: 3k\n  «lr: 0.2\n'
bad key-twice 'train.lr is given twice: the first time in line 1' 'train: {lr: 0.1, «lr: 0.1}\n'
bad key-twice 'train.lr is given twice: the first time in line 1' 'train.lr: 0.1\ntrain:\n  «lr: 0.2\n'
bad key-twice 'notes.a is given twice: the first time in line 2' 'notes:\n  a: x\n  b: y\n  «a: z\n'
bad section-twice 'train is given twice: the first time in line 1' 'train:\n  lr: 0.1\ndata: {name: x}\n«train:\n  steps: 5\n'
bad section-twice 'preset is given twice: the first time in line 1' 'preset: quickstart\n«preset: quickstart\n'
bad note-key "'notes.a b': a key of notes is made of at most 128 letters, digits, '_', '-' and '.'" 'notes:\n  «a b: 1\n'
bad note-key "'notes.': a key of notes is made of at most 128 letters, digits, '_', '-' and '.'" 'notes:\n  «"": 1\n'
bad note-key "'notes.é': a key of notes is made of at most 128 letters, digits, '_', '-' and '.'" 'notes: {«é: 1}\n'
bad note-in-list 'notes.a: one value is expected, and here stands a section' 'notes:\n  a: [x, «{b: c}]\n'
bad element 'train.betas.3: the list has 2 elements so far: the next one is train.betas.2' 'train:\n  betas:\n    «3: 0.5\n'
bad element 'data.train.1: the list has 0 elements so far: the next one is data.train.0' '«data.train.1: a.fa\n'
bad element 'train.betas.last: elements of a list have numbers: 0, 1, 2, ...' 'train:\n  betas: {«last: 0.5}\n'
bad element "train.betas.0: 'x' is not a number" 'train:\n  betas:\n    0: «x\n'
bad element "data.train.00: elements of a list have numbers: 0, 1, 2, ..." 'data:\n  train:\n    0: a.fa\n    «00: b.fa\n'
bad element "attention.kind.1: 'fvor' is not one of exact, favor, nystrom, none" \
    'attention:\n  kind: {1: «fvor}\nobjective: {kind: clm}\n'
bad element-and-list "train.betas.0: line 1 gives the whole list: change it there" \
    'train: {betas: [0.9, 0.95]}\n«train.betas.0: 0.5\n'
bad element-and-list "train.betas: elements of this list are given too (line 1): write it once" \
    'train.betas.0: 0.5\ntrain:\n  «betas: [0.9, 0.95]\n'

# ---- values that do not go together ----

bad conflict 'objective.kind: clm does not go with attention.kind: nystrom (run.yaml:1): landmarks see the whole sequence' \
    'attention: {kind: [exact, nystrom]}\nobjective: {kind: «clm}\n'
bad conflict 'attention.kind: nystrom does not go with objective.kind: clm (run.yaml:2): landmarks see the whole sequence' \
    'objective:\n  kind: clm\nattention:\n  kind: «nystrom\n'
bad order 'train.warmup: 5000 is more than train.steps: 100 (run.yaml:2): the learning rate would never be reached' \
    'train:\n  steps: 100\n  warmup: «5k\n'
bad order 'train.steps: 999 is less than train.warmup: 1000 (default): the learning rate would never be reached' \
    'train:\n  steps: «999\n'

# ---- presets ----

bad no-preset "there is no preset 'quikstart'; there are quickstart, broken, nested" 'preset: «quikstart\n'
bad_argument no-preset "there is no preset 'x'; there are quickstart, broken, nested" 'preset=«x'
bad_variable no-preset "there is no preset ''; there are quickstart, broken, nested" 'TITIN__PRESET=«'

# ---- what YAML can do and a configuration does not ----

bad anchor 'an anchor (&a) is not read here: write the value where it is wanted' 'train:\n  lr: «&a 0.1\n'
bad anchor 'an anchor (&base) is not read here: write the value where it is wanted' 'train: «&base\n  lr: 0.1\n'
bad alias 'an alias (*a) is not read here: write the value again, or quote what is a pattern' 'data:\n  name: «*a\n'
bad alias 'an alias (*b) is not read here: write the value again, or quote what is a pattern' 'train:\n  freeze: [«*b]\n'
bad alias 'an alias (*k) is not read here: write the value again, or quote what is a pattern' 'train:\n  «*k : 1\n'
bad star "'*' and '&' begin an alias and an anchor, which are not read here: quote the value" 'train:\n  freeze: [«*.attn]\n'
bad tag 'a tag (!x) is not read here: the type of a value is known from its key' 'train:\n  lr: «!x 0.1\n'
bad tag 'a tag (tag:yaml.org,2002:int) is not read here: the type of a value is known from its key' 'train:\n  seed: «!!int "3"\n'
bad tag 'a tag (tag:yaml.org,2002:map) is not read here: the type of a value is known from its key' 'train: «!!map {lr: 0.1}\n'
bad merge 'merge keys (<<) are not read here: give several files instead' 'train:\n  «<<: {lr: 0.1}\n'
bad two-documents 'a second document begins here: a file is one configuration' 'train: {lr: 0.1}\n«---\ntrain: {lr: 0.2}\n'
bad two-documents 'a second document begins here: a file is one configuration' '---\n...\n«---\n'
bad directive 'a directive (%YAML, %TAG) is not read here: remove it' '«%YAML 1.1\n---\ntrain: {lr: 0.1}\n'
bad directive 'a directive (%YAML, %TAG) is not read here: remove it' '«%TAG ! tag:x,2000:\n---\ntrain: {lr: 0.1}\n'
bad key-is-list 'a key is one word, and here stands a list or a section' '«[a, b]: c\n'
bad key-is-list 'a key is one word, and here stands a list or a section' 'train:\n  ? «{lr: 1}\n  : 2\n'
bad deep 'sections and lists stand in each other more than 16 deep' "notes: {a: [$(printf '[%.0s' {1..13})«["
bad deep 'sections and lists stand in each other more than 16 deep' "$(printf -- '- %.0s' {1..16})«- x\n"

# ---- what is no YAML ----

bad tab 'a tab in the indentation: YAML wants spaces' 'train:\n«\tlr: 0.1\n'
bad tab 'a tab in the indentation: YAML wants spaces' 'train:\n  lr: 0.1\n «\tsteps: 5\n'
bad first-byte "a value cannot begin with '@': quote it" 'data:\n  name: «@home\n'
bad first-byte "a value cannot begin with '\`': quote it" 'data:\n  name: «`x`\n'
bad first-byte "a value cannot begin with '%': quote it" 'data:\n  name: «%x\n'
bad colon "a ':' where no key can stand: quote a value that has ': ' in it, and look at the indentation" 'data:\n  name: a«: b\n'
bad colon "a ':' where no key can stand: quote a value that has ': ' in it, and look at the indentation" 'data:\n  name: x\n   b«: 3\n'
bad no-colon "there is no ': ' behind this: a line is KEY: VALUE" 'train:\n  steps: 5k\n  «lr 0.1\n'
bad no-colon "there is no ': ' behind this: a line is KEY: VALUE" 'data: {name: x}\n«train.lr=3\n'
bad stray-bracket "nothing is open here that a '}' could belong to" 'train: {lr: 3e-4}«}\n'
bad stray-bracket "nothing is open here that a ']' could belong to" 'train:\n  betas: [0.9]«]\n'
bad indent 'this line is not indented like the keys before it' 'train:\n  lr: 0.1\n «steps: 5\n'
bad indent 'this line is not indented like the keys before it' 'train:\n  betas: [0.9]\n  «- 5\n'
bad in-list "this line stands in a list, and does not begin with '- '" 'data:\n  train:\n    - a\n    «b: c\n'
bad bracket "a ',' or a ']' is missing in the list that begins here" 'train:\n  betas: «[0.9, 0.95\ndata: {name: x}\n'
bad brace "a ',' or a '}' is missing in the section that begins here" 'train: «{lr: 0.1\ndata: {name: x}\n'
bad quote 'this quote is not closed' 'data:\n  name: «"abc\n'
bad quote 'this quote is not closed' "data:\n  name: «'abc\n"
bad escape "an escape that there is none: between \" a backslash is written \\\\\\\\, between ' it stands for itself" 'data:\n  name: "C:«\\data"\n'
bad list-behind-key "a list that begins with '- ' begins on a line of its own" 'data:\n  train: «- a\n'
bad question "a '?' where no key can stand: quote the value" 'data:\n  name: «? x\n'
bad garbage 'this does not belong to what stands before it: is it indented less, or a second document?' '  train: {lr: 0.1}\n«data: {name: x}\n'

# ---- bytes ----

bad nul 'U+0000 is a NUL byte: this is no text' 'train:\n  lr: 0.1«\x00\n'
bad latin1 'byte 0xE9 is not UTF-8: save the file as UTF-8' '# caf«\xe9\ntrain: {lr: 0.1}\n'
bad overlong 'byte 0xC0 is not UTF-8: save the file as UTF-8' 'data:\n  name: a«\xc0\xaf\n'
bad surrogate 'byte 0xED is not UTF-8: save the file as UTF-8' 'data:\n  name: «\xed\xa0\x80\n'
bad cut-character 'byte 0xC3 is not UTF-8: save the file as UTF-8' 'data:\n  name: a«\xc3'
bad utf16 'this is UTF-16: save the file as UTF-8' '«\xff\xfet\x00r\x00'
bad utf16 'this is UTF-16: save the file as UTF-8' '«\xfe\xff\x00t\x00r'
bad control 'U+0007 is a control character that cannot be seen: remove it' 'data:\n  name: x«\x07\n'
bad control 'U+009B is a control character that cannot be seen: remove it' 'data:\n  name: x«\xc2\x9bm\n'
bad line-end 'U+2028 is a line end that cannot be seen, and that not every editor counts: remove it' 'data:\n  name: x«\xe2\x80\xa8\n'
bad line-end 'U+000D is a carriage return without a line feed: save the file with line ends of today' 'train:«\r  lr: 0.1\r'
bad bom 'U+FEFF is a byte order mark inside the text: remove it' 'train:\n«\xef\xbb\xbf  lr: 0.1\n'

# ---- places: behind wide characters, in a line of a file with a mark or with CRLF, in nested lists ----

bad place-wide "train.lr: 'x' is not a number" 'data: {name: "größe ∞ 🧬"}\ntrain: {lr: «x}\n'
bad place-wide "train.lr: 'x' is not a number" '{data: {name: "größe ∞ 🧬"}, train: {lr: «x}}\n'
bad place-bom "train.lr: 'x' is not a number" '\xef\xbb\xbftrain: {lr: «x}\n'
bad place-crlf "train.lr: 'x' is not a number" '# a\r\n\r\ntrain:\r\n  lr: «x\r\n'
bad place-nested "train.betas.1: 'x' is not a number" 'train:\n  betas: [0.9,\n          «x]\n'
bad place-nested "train.betas.2: 'x' is not a number" 'train:\n  betas:\n  - 0.9\n  -   0.95\n  -   «x\n'
bad place-last "train.lr: 'x' is not a number" 'train:\n  lr: «x'
bad place-quoted "train.lr: 'x y' is not a number" 'train: {"lr" : «"x y" }\n'
bad place-folded "train.lr: 'x y' is not a number" 'train:\n  lr: «x\n    y\n'
bad place-block "train.lr: 'x?' is not a number" 'train:\n  lr: «|\n    x\n'

# ---- several at once ----

bad several "train.lr: 'x' is not a number|there is no key 'train.stesp'; did you mean train.steps?|train.resume: 'maybe' is not yes or no" \
    'train:\n  lr: «x\n  «stesp: 5\n  resume: «maybe\n'
bad several "train.betas.0: 'a' is not a number|train.betas.2: 'b' is not a number" 'train:\n  betas: [«a, 0.5, «b]\n'
bad several "there is no section 'trian'; did you mean the section train?|a tab in the indentation: YAML wants spaces" \
    '«trian: {lr: 3}\ndata:\n«\tname: x\n'
bad several "an anchor (&a) is not read here: write the value where it is wanted|an alias (*a) is not read here: write the value again, or quote what is a pattern" \
    'train:\n  lr: «&a 0.1\n  offset: «*a\n'

# ---- environment and command line ----

bad_argument argument-value "train.lr: 'fast' is not a number" 'train.lr=«fast'
bad_argument argument-value "train.lr: '' is empty, and a number is expected" 'train.lr=«'
bad_argument argument-value "train.betas.1: 'x' is not a number" 'train.betas=[0.9, «x]'
bad_argument argument-value "a ',' or a ']' is missing in the list that begins here" 'train.betas=«[0.9'
bad_argument argument-value "train.budget: '2K' ends in 'K', which is no unit here; $sizes" 'train.budget=«2K'
bad_argument argument-key "there is no key 'train.lrr'; did you mean train.lr?" '«train.lrr=1'
bad_argument argument-key "there is no section 'lr'; lr lives in the section train: train.lr" '«lr=1'
bad_argument argument-key "train is a section: name one of its keys, train.KEY=VALUE" '«train=1'
bad_argument argument-key "there is no section ''; there are the sections train, data, attention, objective" '«=1'
bad_argument argument-form "'train.lr' sets nothing: expected is section.key=value" '«train.lr'
bad_argument argument-form "'' sets nothing: expected is section.key=value" '«'
bad_argument argument-bytes 'byte 0xE9 is not UTF-8: save the file as UTF-8' 'data.name=«\xe9'
bad_argument argument-element 'train.betas.5: the list has 2 elements so far: the next one is train.betas.2' '«train.betas.5=1'
bad_argument argument-conflict 'train.steps: 10 is less than train.warmup: 1000 (default): the learning rate would never be reached' 'train.steps=«10'
bad_variable variable-value "train.lr: 'fast' is not a number" 'TITIN__TRAIN__LR=«fast'
bad_variable variable-value "train.resume: '1' is not yes or no" 'TITIN__TRAIN__RESUME=«1'
bad_variable variable-key "there is no key 'train.lrr'; did you mean train.lr?" 'TITIN__«TRAIN__LRR=1'
bad_variable variable-key "there is no section 'train_lr'; did you mean train.lr?" 'TITIN__«TRAIN_LR=1'
bad_variable variable-spelling "this sets nothing: train.lr is set by TITIN__TRAIN__LR, with two '_' in a row" '«TITIN_TRAIN_LR=1'
bad_variable variable-spelling \
    "this sets nothing: train.save_every is set by TITIN__TRAIN__SAVE_EVERY, with two '_' in a row" '«TITIN_TRAIN__SAVE_EVERY=1h'
bad_variable variable-spelling "this sets nothing: preset is set by TITIN__PRESET, with two '_' in a row" '«TITIN_PRESET=quickstart'

# ---- good ones: numbers ----

while read -r value expected; do
    good real "train.offset=$expected" "train:\n  offset: $value\n"
done << 'END'
3e-4 0.0003
3E-4 0.0003
+.5 0.5
1. 1
-0 -0
1_000_000 1e6
999_999 999999
64k 64000
1.5M 1.5e6
1e-5 1e-5
0.1 0.1
1e22 1e22
123456.789 123456.789
"7" 7
END
while read -r value expected; do
    good integer "train.seed=$expected" "train:\n  seed: $value\n"
done << 'END'
0 0
-5 -5
+5 5
1e3 1000
1.5k 1500
0.5e1 5
64k 64000
1_000_000 1000000
9223372036854775807 9223372036854775807
-9223372036854775808 -9223372036854775808
9.223372036854775807e18 9223372036854775807
1e18 1000000000000000000
2T 2000000000000
100e-2 1
END
while read -r value expected; do
    good size "train.budget=$expected" "train:\n  budget: $value\n"
done << 'END'
0 0
1000 1kB
1024 1KiB
64k 64kB
64kB 64kB
64Ki 64KiB
2GiB 2GiB
1.5GiB 1536MiB
2G 2GB
2MB 2MB
1TiB 1TiB
1T 1TB
512B 512
1e9 1GB
1023 1023
0.5KiB 512
END
good size 'train.budget=2GiB' 'train:\n  budget: 2 GiB\n'
while read -r value expected; do
    good time "train.save_every=$expected" "train:\n  save_every: $value\n"
done << 'END'
90 90s
90s 90s
1.5h 90m
1.1h 66m
10m 10m
10min 10m
1d 1d
36h 36h
1h30m 90m
1d12h 36h
1h1s 3601s
1500ms 1.5s
2.5 2.5s
END
good time 'train.save_every=90m' 'train:\n  save_every: 1h 30m\n'
for word in yes Yes YES on On ON true True TRUE; do good bool 'train.resume=yes' "train: {resume: $word}\n"; done
for word in no off OFF False "'no'"; do good bool 'data.shuffle=no' "data: {shuffle: $word}\n"; done

# ---- texts that other readers take for something else ----

while IFS='|' read -r value expected; do
    good text "data.name=$expected" "data:\n  name: $value\n"
done << 'END'
yes|"yes"
3|"3"
1e3|"1e3"
''|""
""|""
'~'|"~"
'null'|"null"
abc|abc
"a: b"|"a: b"
2026-01-01|"2026-01-01"
/data/x.fa|/data/x.fa
"ü\\x0741"|"ü\\x0741"
'it''s'|"it's"
"\\u2028"|"\\u2028"
"\\uFEFF\\uFFFE\\x85"|"\\uFEFF\\uFFFE\\x85"
"a\\nb"|"a\\nb"
"a\\\\b"|"a\\\\b"
a#b|"a#b"
END
good text 'data.name="a \\"b\\""' "data:\n  name: 'a \"b\"'\n"

# ---- lists, forms, places ----

good list 'train.betas=[0.9, 0.95]' ''
good list 'train.betas=[]' 'train: {betas: []}\n'
good list 'train.betas=[0.5]' 'train: {betas: 0.5}\n'
good list 'train.betas=[0.5, 0.25]' 'train:\n  betas:\n  - 0.5\n  - 0.25\n'
good list 'train.betas=[0.9, 0.25]' 'train:\n  betas:\n    1: 0.25\n'
good list 'train.betas=[0.9, 0.95, 0.1]' 'train.betas.2: 0.1\n'
good list 'data.train=[a.fa, "b c.fa"]' 'data: {train: [a.fa, b c.fa]}\n'
good list 'train.freeze=["layer.*.attn.*", "[!a]*"]' 'train: {freeze: ["layer.*.attn.*", "[!a]*"]}\n'
good list 'attention.kind=[exact, favor, none]' 'attention: {kind: [exact, favor, none]}\n'
good form 'train.lr=0.5' 'train.lr: 0.5\n'
good form 'train.lr=0.5' '{train: {lr: 0.5}}\n'
good form 'train.lr=0.5' '---\ntrain:\n  lr: 0.5\n...\n'
good form 'train.lr=0.5' '# a comment\n\ntrain: # another\n  lr: 0.5 # and one more\n'
good form 'train.lr=0.5' '? train\n: ? lr\n  : 0.5\n'
good form 'train.lr=0.5' '"train": {"lr": 0.5}\n'
good form 'train.lr=0.5' '\xef\xbb\xbftrain:\n  lr: 0.5\n'
good form 'train.lr=0.5' 'train:\r\n  lr: 0.5\r\n'
good form 'train.lr=0.5' 'train:\n  lr:\t0.5\t\n'
good form 'train.lr=0.5' 'train:\n  lr: 0.5'
good form 'train.lr=0.0003' 'train:\ndata:\nnotes:\n'
good form 'train.lr=0.0003' '# nothing\n'
good form 'train.lr=0.0003' '---\n'
good form 'train.lr=0.001' 'preset: quickstart\n'
good form 'train.lr=0.5' 'preset: quickstart\ntrain: {lr: 0.5}\n'
good notes 'notes.author=Ada' 'notes: {author: Ada}\n'
good notes 'notes.tags=[a, "b c"]' 'notes: {tags: [a, b c]}\n'
good notes 'notes.a.b="1"' 'notes: {a: {b: 1}}\n'
good notes 'notes.empty=""' 'notes:\n  empty:\n'
good notes 'notes.X-1="no"' 'notes: {X-1: no}\n'
good_argument argument 'train.lr=0.5' 'train.lr=0.5'
good_argument argument 'data.name="a = b"' 'data.name=a = b'
good_argument argument 'data.name=""' 'data.name='
good_argument argument 'data.name="[draft]"' 'data.name=[draft]'
good_argument argument 'data.name="null"' 'data.name=null'
good_argument argument 'train.betas=[0.5, 0.25]' 'train.betas=[0.5, 0.25]'
good_argument argument 'data.train=["a,b"]' 'data.train=a,b'
good_argument argument 'train.betas=[0.1, 0.95]' 'train.betas.0=0.1'
good_argument argument 'notes.x="[a]"' 'notes.x=[a]'
good_argument argument 'train.lr=0.001' 'preset=quickstart'
good_variable variable 'train.lr=0.5' 'TITIN__TRAIN__LR=0.5'
good_variable variable 'train.save_every=1h' 'TITIN__TRAIN__SAVE_EVERY=1h'
good_variable variable 'train.betas=[0.9, 0.1]' 'TITIN__TRAIN__BETAS__1=0.1'
good_variable variable 'train.lr=0.001' 'TITIN__PRESET=quickstart'
good_variable variable 'notes.author="Ada L."' 'TITIN__NOTES__AUTHOR=Ada L.'
good_variable variable 'train.lr=0.0003' 'TITIN_TRAIN_LRX=7'
good_variable variable 'train.lr=0.0003' 'TITIN_TRAIN=7'
