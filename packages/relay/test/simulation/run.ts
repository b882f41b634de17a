/** Runs simulations one after another in this process. */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { relayMigrations } from '../../src/modules.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { openSqlite } from '../../src/storage/sqlite/storage.ts';
import { memoryFolder } from '../support/folder.ts';
import { live } from './acts/life.ts';
import { type Defect, defects } from './defects.ts';
import { replaceBuiltins } from './machine/builtins.ts';
import { replaceDatabases } from './machine/databases.ts';
import { replaceFiles } from './machine/files.ts';
import { replaceThreads } from './machine/threads.ts';
import { checkpointProgram } from './relay/checkpoint-program.ts';
import { cacheSignatureChecks } from './relay/signature-cache.ts';
import { start, World } from './world.ts';

export interface Simulation {
  readonly seed: number;
  readonly relays: number;
  readonly minutes: number;
}

export interface RunOptions {
  /** Whether each line of the journal is printed. */
  readonly trace: boolean;
  /** Real seconds after which no further simulation begins. */
  readonly seconds: number;
}

/** Simulations between two lines about progress. */
const progressInterval = 250;

/** Runs simulations and prints what they ended with; returns the exit code. */
export async function runAll(
  simulations: readonly Simulation[],
  options: RunOptions,
): Promise<number> {
  using prepared = await prepare();
  const broken: number[] = [];
  let digest = '';
  let count = 0;
  for (const simulation of simulations) {
    if (Number(prepared.seconds()) > options.seconds) break;
    const found = await runOne(simulation, prepared.template, options);
    if (found === undefined) broken.push(simulation.seed);
    else digest = found;
    count += 1;
    if (count % progressInterval === 0) console.log(`${count} of ${simulations.length} ran`);
  }
  const result = broken.length === 0 ? 'no rule broken' : `broken: ${broken.join(' ')}`;
  console.log(
    `${count} of ${simulations.length} simulations in ${prepared.seconds()} s: ${result}`,
  );
  if (simulations.length === 1) console.log(`digest ${digest}`);
  return broken.length === 0 ? 0 : 1;
}

/**
 * Breaks relays on purpose and prints which seed finds it; returns the exit code.
 * @param names of the defects; all if there are none
 */
export async function findDefects(
  names: readonly string[],
  { seeds, minutes }: { readonly seeds: number; readonly minutes: number },
): Promise<number> {
  using prepared = await prepare();
  const wanted = defects.filter(({ name }) => names.length === 0 || names.includes(name));
  let missed = 0;
  for (const defect of wanted) {
    const found = await findDefect(defect, { seeds, minutes, template: prepared.template });
    if (found === undefined) missed += 1;
    console.log(`${defect.name} (${defect.what}): ${found ?? `not found in ${seeds} seeds`}`);
  }
  console.log(`${wanted.length} defects in ${prepared.seconds()} s: ${missed} not found`);
  return missed === 0 ? 0 : 1;
}

async function findDefect(
  defect: Defect,
  options: { readonly seeds: number; readonly minutes: number; readonly template: string },
): Promise<string | undefined> {
  const { seeds, minutes, template } = options;
  const { relays } = defect;
  using _installed = defect.install?.();
  for (let seed = 1; seed <= seeds; seed += 1) {
    using world = new World({ seed, relays, minutes, template, defect });
    try {
      await world.run(live);
    } catch (error) {
      return `seed ${seed}: ${(error as Error).message}`;
    }
  }
  return undefined;
}

interface Prepared extends Disposable {
  /** Folder of a database with the relay's schema. */
  readonly template: string;
  /** Real seconds since it was prepared. */
  seconds(): string;
}

/** Makes a database with the schema, then puts the simulation under this process. */
async function prepare(): Promise<Prepared> {
  const template = mkdtempSync(join(memoryFolder(), 'posthouse-'));
  const storage = openSqlite(template);
  await migrate(storage, relayMigrations, start);
  await storage[Symbol.asyncDispose]();
  replaceBuiltins();
  replaceDatabases();
  replaceFiles();
  replaceThreads({ 'checkpoint-thread.ts': checkpointProgram });
  cacheSignatureChecks();
  process.on('unhandledRejection', (error) => {
    console.log('unhandled', error);
    process.exit(1);
  });
  const began = process.hrtime.bigint();
  return {
    template,
    seconds: () => (Number(process.hrtime.bigint() - began) / 1e9).toFixed(1),
    [Symbol.dispose]: () => rmSync(template, { recursive: true, force: true }),
  };
}

/** Runs one simulation; returns the digest of its events, or `undefined` if it broke a rule. */
async function runOne(
  { seed, relays, minutes }: Simulation,
  template: string,
  { trace }: RunOptions,
): Promise<string | undefined> {
  const shown = trace ? (line: string) => console.log(line) : undefined;
  using world = new World({ seed, relays, minutes, template, shown });
  const { journal } = world;
  try {
    await world.run(live);
    return journal.digest();
  } catch (error) {
    console.log(`--from ${seed} --seeds 1 --relays ${relays} --minutes ${minutes}: broken`);
    for (const line of journal.last) console.log(`  ${line}`);
    console.log(error);
    return undefined;
  }
}
