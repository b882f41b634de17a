/** What a relay with many accounts pays to send their routes again (07 §B12). */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { loadTarget, type TestAccount, TestContext } from '@posthouse/conformance';
import { accountSigner, routeRelayInput, signRouteDraft, utf8 } from '@posthouse/protocol';
import { nodePrimitives as primitives } from '@posthouse/protocol/node';
import { knownRoute } from '../packages/relay/src/accounts/home.ts';
import { relayIdentity } from '../packages/relay/src/keys/identity.ts';
import { loadKeys } from '../packages/relay/src/keys/keys.ts';
import { RelayProcess } from '../packages/relay/test/cluster/relay-process.ts';
import { writeConfig } from './support.ts';

/** Relays that the routes are sent to. */
const others = 3;

/** Milliseconds of another account's calls, and CPU seconds that the relay used meanwhile. */
interface Measured {
  readonly p50: number;
  readonly p99: number;
  readonly cpu: number;
  readonly seconds: number;
}

/**
 * Gives a relay many accounts, all of whose routes are due, as after a stop of half a day, and
 * measures for some seconds after its start what it uses, and another account's calls. Each relay is
 * a process with SQLite, with rate limits that are never reached.
 */
export async function measureRepublication(accounts: number, seconds: number): Promise<void> {
  await using parts = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
  parts.defer(() => rmSync(folder, { recursive: true, force: true }));
  const registry = join(folder, 'registry.json');
  const authority = join(folder, 'tls');
  const limits = {
    ...{ peerHandshakesPerAddress: 1_000, peerHandshakeRate: 1e6, peerHandshakeBurst: 1e6 },
    ...{ federationAddressLookupRate: 1e6, federationLookupRate: 1e6 },
  };
  const start = async (name: string, port = 0) => {
    const data = join(folder, name);
    mkdirSync(data, { recursive: true });
    const federation = { allowPrivate: true };
    const config = writeConfig(data, { registry, tls: { authority }, federation, limits });
    return await RelayProcess.start({ config, port }, console.error);
  };
  for (let index = 0; index < others; index += 1) parts.use(await start(`other ${index}`));
  const first = await start('home');
  const port = Number(new URL(first.base).port);
  const target = await loadTarget({ relay: first.base, registry, ca: join(authority, 'ca.pem') });
  const data = join(folder, 'home');
  await using context = await TestContext.open(target, 'https');
  const account = await context.testAccount();
  const quiet = await measure(first.pid, account, seconds);
  await first[Symbol.asyncDispose]();
  await fill(data, context.network, accounts);
  const home = parts.use(await start('home', port));
  const busy = await measure(home.pid, account, seconds);
  await home[Symbol.asyncDispose]();
  const sent = accounts - due(data);
  const cpu = busy.cpu - (quiet.cpu / quiet.seconds) * busy.seconds;
  console.log(`a relay with ${accounts} accounts, all due: ${seconds} s after its start`);
  console.table({
    'routes sent to three relays': sent,
    'routes in a second': (sent / busy.seconds).toFixed(1),
    'CPU of a route': `${((cpu * 1e3) / sent).toFixed(2)} ms`,
    'a million accounts in 12 h': `${((cpu / sent) * (1e6 / 43_200)).toFixed(2)} cores`,
    'p50 of another account': `${quiet.p50.toFixed(1)} ms, meanwhile x ${(busy.p50 / quiet.p50).toFixed(1)}`,
    'p99 of another account': `${quiet.p99.toFixed(1)} ms, meanwhile x ${(busy.p99 / quiet.p99).toFixed(1)}`,
  });
}

/** Stores routes of accounts at home at a relay that does not run, all due to be sent. */
async function fill(
  data: string,
  network: TestContext['network'],
  accounts: number,
): Promise<void> {
  const identity = relayIdentity(network, await loadKeys(data));
  using database = open(data);
  const insert = database.prepare(
    `INSERT INTO account_routes (account, revision, content, relay_id, expires_at, held_until,
      conflict, route, checked_at, publish_at) VALUES (?, ?, ?, ?, ?, ?, 0, ?, 0, 0)`,
  );
  const now = Math.floor(Date.now() / 1_000);
  database.exec('BEGIN');
  for (let index = 0; index < accounts; index += 1) {
    const signer = accountSigner(network, primitives.sha256(utf8(`republished ${index}`)));
    const draft = await signRouteDraft(network, signer, {
      revision: 1,
      relay_id: identity.relayId,
      updated_at: now,
      expires_at: now + 31_536_000,
    });
    const signature = identity.sign(routeRelayInput(network, draft));
    const known = knownRoute(network, { ...draft, relay_signature: signature });
    const { revision, content, relayId, expiresAt, text } = known;
    insert.run(signer.account, revision, content, relayId, expiresAt, expiresAt, text);
  }
  database.exec('COMMIT');
}

function due(data: string): number {
  using database = open(data);
  const row = database.prepare('SELECT COUNT(*) AS count FROM account_routes WHERE publish_at = 0');
  return Number(row.get()?.count);
}

function open(data: string): DatabaseSync {
  return new DatabaseSync(join(data, 'relay.sqlite'));
}

async function measure(pid: number, { caller }: TestAccount, seconds: number): Promise<Measured> {
  const latencies: number[] = [];
  const used = cpuTime(pid);
  const begun = performance.now();
  while (performance.now() - begun < seconds * 1_000) {
    const started = performance.now();
    await caller.call('message.timeline.sync', { limit: 1 });
    latencies.push(performance.now() - started);
    await setTimeout(10);
  }
  latencies.sort((a, b) => a - b);
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
  const elapsed = (performance.now() - begun) / 1_000;
  return { p50: at(0.5), p99: at(0.99), cpu: cpuTime(pid) - used, seconds: elapsed };
}

/** CPU seconds of a process so far. */
function cpuTime(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  // Hundredths of a second, in user mode and in the kernel.
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
