/**
 * Measures a relay next to the floor: see README.md in this folder.
 *
 *   npm run bench [-- --only send,latency --pairs 2 --seconds 1 --against DIR --json FILE --write]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, installBuilt } from './built.ts';
import { LoadGenerator } from './load-generator.ts';
import { commitOf, describeMachine, machineLine, rawCosts } from './machine.ts';
import {
  type MeasuredServer,
  mainOf,
  ownCheckout,
  startFloor,
  startRelay,
} from './measured-process.ts';
import { count, counts, flag, number, readOptions, text, word, words } from './options.ts';
import { profileTables } from './profile.ts';
import { writeChart, writeJson, writePage } from './report.ts';
import { callers, callTable } from './sections/calls.ts';
import type { Compared } from './sections/compared.ts';
import { logTable } from './sections/log.ts';
import { memoryTable } from './sections/memory.ts';
import { postgres } from './sections/postgres.ts';
import { latency, latencyConnections, send } from './sections/send.ts';
import { statementTable, storageSettings, storageTable } from './sections/storage.ts';
import { storedTables } from './sections/stored.ts';
import { type Section, sections, type Table, textOf } from './table.ts';

const values = readOptions('npm run bench', {
  // The log takes more than a minute.
  only: words(
    sections,
    sections.filter((section) => section !== 'log'),
  ),
  pairs: count(2),
  seconds: number(1),
  connections: counts([1, 20, 100, 500]),
  'sender-boxes': flag,
  against: text('DIR'),
  large: flag,
  skip: word(['nothing', 'build']),
  profile: flag,
  json: text('FILE'),
  svg: text('FILE'),
  write: flag,
});
const { pairs, seconds, connections: connectionCounts } = values;
const asked = (section: Section) => !values.profile && values.only.some((each) => each === section);
const folder = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const tables: Table[] = [];
/** The relay of another checkout, named after its commit. */
const other =
  values.against === undefined
    ? undefined
    : { name: `commit ${commitOf(values.against)}`, main: mainOf(values.against) };
const machine = describeMachine(ownCheckout);

function add(...made: readonly Table[]): void {
  // Some sections make tables of others on their way.
  const wanted = made.filter(({ section }) => values.profile || asked(section));
  tables.push(...wanted);
  for (const table of wanted) console.log(textOf(table));
}

/** Messages sent to each server before anything is measured: code is compiled, grants are verified. */
const warmUp = 6_000 * Math.min(1, 4 * seconds);

/** Starts floor, relay and the relay to compare with, with the same accounts at each. */
async function startCompared(parts: AsyncDisposableStack): Promise<Compared> {
  const relayFolder = join(folder, 'relay');
  const relay = await startRelay(parts, relayFolder, { name: 'relay' });
  const servers: MeasuredServer[] = [await startFloor(parts, join(folder, 'floor'), relayFolder)];
  if (other !== undefined) servers.push(await startRelay(parts, join(folder, 'other'), other));
  servers.push(relay);
  const generator = parts.use(new LoadGenerator());
  const needed = [
    ...(asked('send') ? connectionCounts : []),
    ...(asked('latency') ? [latencyConnections] : []),
    ...(asked('calls') ? [callers] : []),
    ...(asked('storage') ? storageSettings.map(({ connections }) => connections) : []),
  ];
  const accounts = Math.max(...needed, 2);
  await generator.order({ do: 'make', accounts, withSenderBoxes: values['sender-boxes'] });
  for (const { target } of servers) await generator.order({ do: 'open', target });
  // Each account writes once to each of its contacts.
  for (const connections of new Set(needed)) {
    const messages = Math.max(Math.ceil(warmUp / needed.length), connections * 4);
    await generator.order({ do: 'messages', connections, messages });
    for (const server of servers) await generator.run(server, { window: 16 });
  }
  return { servers, generator, pairs, seconds };
}

/** Sections with floor and relays under the same load. */
async function comparedSections(): Promise<void> {
  await using parts = new AsyncDisposableStack();
  const compared = await startCompared(parts);
  if (asked('send')) add(await send(compared, connectionCounts));
  if (asked('latency')) add(await latency(compared));
  if (asked('storage')) add(await storageTable(compared, folder), await statementTable());
  const [, ...relays] = compared.servers;
  if (asked('calls')) add(await callTable({ ...compared, servers: relays }));
}

let installed: string | undefined;

/** Builds and installs the packages once; returns the path of the command `posthouse`. */
function builtMain(): string {
  if (installed !== undefined) return installed;
  if (values.skip !== 'build') build();
  installed = installBuilt(join(folder, 'installed'));
  return installed;
}

async function storedSections(): Promise<void> {
  const relays = [{ name: 'relay', main: mainOf(ownCheckout) }];
  if (other !== undefined) relays.unshift(other);
  const started = relays.map((relay) => ({ ...relay, data: relay.name }));
  started.push({ name: 'relay, built', main: builtMain(), data: 'relay' });
  const sizes = values.large ? [1_000, 100_000, 1_000_000] : [1_000, 100_000];
  add(...(await storedTables({ folder, relays, started, sizes, pairs, seconds })));
}

console.log(`${machineLine(machine)}\n`);
if (asked('machine')) add(rawCosts());
if (asked('send') || asked('latency') || asked('storage') || asked('calls')) {
  await comparedSections();
}
if (asked('pages') || asked('start')) await storedSections();
if (asked('memory')) {
  const rest = values.large ? 300 : 5;
  add(await memoryTable({ folder, main: builtMain(), seconds, rest }));
}
if (asked('postgres')) add(await postgres(folder, { seconds }));
if (asked('log')) add(await logTable({ folder, main: builtMain(), seconds }));
if (values.profile) add(...(await profileTables(folder)));
const result = { machine, tables };
if (values.json !== undefined) writeJson(values.json, result);
if (values.svg !== undefined) writeChart(values.svg, result);
if (values.write) writePage(join(ownCheckout, 'docs'), result);
