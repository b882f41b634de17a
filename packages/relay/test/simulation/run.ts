/** Runs simulations one after another in this process. */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { relayMigrations } from '../../src/modules.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { openSqlite } from '../../src/storage/sqlite/storage.ts';
import { memoryFolder } from '../support/folder.ts';
import { live } from './acts/life.ts';
import { replaceBuiltins } from './machine/builtins.ts';
import { replaceDatabases } from './machine/disk.ts';
import { start, World } from './world.ts';

export interface Simulation {
  readonly seed: number;
  readonly relays: number;
  readonly minutes: number;
}

export interface RunOptions {
  /** Whether each line of the journal is printed. */
  readonly trace: boolean;
}

/** Runs simulations and prints what they ended with; returns the exit code. */
export async function runAll(
  simulations: readonly Simulation[],
  options: RunOptions,
): Promise<number> {
  const template = mkdtempSync(join(memoryFolder(), 'posthouse-'));
  const storage = openSqlite(template);
  await migrate(storage, relayMigrations, start);
  await storage[Symbol.asyncDispose]();
  const { hrtime } = process;
  replaceBuiltins();
  replaceDatabases();
  process.on('unhandledRejection', (error) => {
    console.log('unhandled', error);
    process.exit(1);
  });
  const began = hrtime.bigint();
  const broken: number[] = [];
  let digest = '';
  for (const simulation of simulations) {
    const found = await runOne(simulation, template, options);
    if (found === undefined) broken.push(simulation.seed);
    else digest = found;
  }
  rmSync(template, { recursive: true, force: true });
  const seconds = (Number(hrtime.bigint() - began) / 1e9).toFixed(1);
  const result = broken.length === 0 ? 'no rule broken' : `broken: ${broken.join(' ')}`;
  console.log(`${simulations.length} simulations in ${seconds} s: ${result}`);
  if (simulations.length === 1) console.log(`digest ${digest}`);
  return broken.length === 0 ? 0 : 1;
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
