/**
 * Changes inputs of the parsers, and keeps those that reach code which none reached before.
 *
 *     npm run test:guided -- --inputs 200000 [--seed 4711] [--target json] [--save]
 *
 * Begins with the inputs of `corpus.json`; `--save` adds what was found, if it is small. A failure
 * prints the target and the bytes.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Chance } from '../chance.ts';
import { changeBytes } from '../texts.ts';
import { Coverage } from './coverage.ts';
import { targets } from './targets.ts';

type Corpus = Record<string, string[]>;

/** What the saved corpus may hold of a target, and of one input. */
const kept = { inputs: 40, bytes: 160 } as const;
/** Inputs between two looks at the coverage, and their greatest length. */
const round = 16;
const longest = 4_096;

const corpusFile = new URL('./corpus.json', import.meta.url);
const { values } = parseArgs({
  options: {
    inputs: { type: 'string', default: '200000' },
    seed: { type: 'string', default: '4711' },
    target: { type: 'string' },
    save: { type: 'boolean', default: false },
  },
});
const names = Object.keys(targets).filter((name) => name === (values.target ?? name));
const corpus = JSON.parse(readFileSync(corpusFile, 'utf8')) as Corpus;
const seed = Number(values.seed);
let input = 0;

function run(name: string, bytes: Buffer): void {
  try {
    targets[name]?.(bytes);
  } catch (error) {
    const shown = bytes.toString('base64');
    throw new Error(`${name}, seed ${seed}: ${(error as Error).message}: ${shown}`, {
      cause: error,
    });
  }
}

function changed(pool: readonly Buffer[], chance: Chance): Buffer {
  let bytes = chance.pick(pool);
  for (let count = 1 + chance.below(4); count > 0; count -= 1) bytes = changeBytes(bytes, chance);
  if (!chance.once(6)) return bytes.subarray(0, longest);
  const other = chance.pick(pool);
  const head = bytes.subarray(0, chance.below(bytes.length + 1));
  return Buffer.concat([head, other.subarray(chance.below(other.length + 1))]).subarray(0, longest);
}

/** Changes inputs of one target; returns those that reach new code, the first ones included. */
async function guide(name: string, inputs: number): Promise<Buffer[]> {
  await using coverage = await Coverage.start();
  const pool: Buffer[] = (corpus[name] ?? ['']).map((text) => Buffer.from(text, 'base64'));
  for (const bytes of pool) run(name, bytes);
  await coverage.hasGrown();
  for (let done = 0; done < inputs; done += round) {
    const made = Array.from({ length: round }, () => changed(pool, new Chance(seed, input++)));
    for (const bytes of made) run(name, bytes);
    if (!(await coverage.hasGrown())) continue;
    // Which of them it was, is not known: counts differ, so each is worth a place.
    pool.push(...made.filter((bytes) => bytes.length <= longest).slice(0, 4));
  }
  console.log(`${name}: ${inputs} inputs, ${pool.length} kept, ${coverage.size} blocks`);
  return pool;
}

/** The inputs of the corpus, and the smallest others that reach all that a pool reaches. */
async function distil(name: string, pool: readonly Buffer[]): Promise<string[]> {
  await using coverage = await Coverage.start();
  const needed = new Set(corpus[name]);
  for (const text of needed) run(name, Buffer.from(text, 'base64'));
  await coverage.hasGrown();
  for (const bytes of [...pool].sort((a, b) => a.length - b.length)) {
    if (bytes.length > kept.bytes || needed.size >= kept.inputs) break;
    run(name, bytes);
    if (await coverage.hasGrown()) needed.add(bytes.toString('base64'));
  }
  return [...needed];
}

const started = performance.now();
for (const name of names) {
  const pool = await guide(name, Math.ceil(Number(values.inputs) / names.length));
  if (values.save) corpus[name] = await distil(name, pool);
}
if (values.save) writeFileSync(corpusFile, `${JSON.stringify(corpus, null, 2)}\n`);
console.log(`seed ${seed}, ${((performance.now() - started) / 1_000).toFixed(1)} s`);
