/**
 * Measures a relay next to the floor: see README.md in this folder.
 *
 *   npm run bench [-- --only send,latency --pairs 2 --seconds 1 --against DIR --json FILE]
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { LoadGenerator } from './load-generator.ts';
import { describeMachine, machineLine, rawCosts } from './machine.ts';
import {
  type MeasuredServer,
  mainOf,
  ownCheckout,
  startFloor,
  startRelay,
} from './measured-process.ts';
import type { Compared } from './sections/compared.ts';
import { postgres } from './sections/postgres.ts';
import { latency, send } from './sections/send.ts';
import { type Table, textOf } from './table.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'machine,send,latency,postgres' },
    pairs: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '1' },
    connections: { type: 'string', default: '1,20,100,500' },
    'sender-boxes': { type: 'boolean', default: false },
    against: { type: 'string' },
    json: { type: 'string' },
  },
});
const connectionCounts = values.connections.split(',').map(Number);
const sections = new Set(values.only.split(','));
const tables: Table[] = [];
const machine = describeMachine(ownCheckout);

function add(table: Table): void {
  tables.push(table);
  console.log(textOf(table));
}

/** Messages sent to each server before anything is measured: code is compiled, grants are verified. */
const warmUp = 6_000;

/** Starts floor, relay and the relay to compare with, with the same accounts at each. */
async function startCompared(parts: AsyncDisposableStack, folder: string): Promise<Compared> {
  const { against } = values;
  const relayFolder = join(folder, 'relay');
  const relay = await startRelay(parts, relayFolder, { name: 'relay' });
  const servers: MeasuredServer[] = [await startFloor(parts, join(folder, 'floor'), relayFolder)];
  if (against !== undefined) {
    const options = { name: 'against', main: mainOf(against) };
    servers.push(await startRelay(parts, join(folder, 'against'), options));
  }
  servers.push(relay);
  const generator = parts.use(new LoadGenerator());
  const accounts = Math.max(...connectionCounts, 100);
  await generator.order({ do: 'make', accounts, withSenderBoxes: values['sender-boxes'] });
  for (const { target } of servers) await generator.order({ do: 'open', target });
  // Each account writes once to each of its contacts.
  for (const connections of connectionCounts) {
    const messages = Math.max(warmUp / connectionCounts.length, connections * 4);
    await generator.order({ do: 'prepare', connections, messages });
    for (const server of servers) await generator.run(server, { window: 16 });
  }
  return { servers, generator, pairs: Number(values.pairs), seconds: Number(values.seconds) };
}

const folder = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
console.log(`${machineLine(machine)}\n`);
if (sections.has('machine')) add(rawCosts());
if (sections.has('send') || sections.has('latency')) {
  await using parts = new AsyncDisposableStack();
  const compared = await startCompared(parts, folder);
  if (sections.has('send')) add(await send(compared, connectionCounts));
  if (sections.has('latency')) add(await latency(compared));
}
if (sections.has('postgres')) add(await postgres(folder, { seconds: Number(values.seconds) }));
if (values.json !== undefined)
  writeFileSync(values.json, `${JSON.stringify({ machine, tables }, undefined, 2)}\n`);
