/**
 * Measures two relays that federate, each a process of its own with TLS, SQLite and full durability:
 * messages delivered to accounts on the other relay as a ratio to messages delivered on one relay in
 * the same run, calls and handshakes per second, memory of a peer, and what the federation costs a
 * relay without peers.
 *
 *   npm run bench:network [-- --pairs 16 --messages 40 --rounds 2 --peers 100 --starts 3]
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  grantedMessage,
  loadTarget,
  type Target,
  type TestAccount,
  TestContext,
  WssCaller,
} from '@posthouse/conformance';
import { RelayProcess } from '../packages/relay/test/cluster/relay-process.ts';
import { BenchPeer } from './bench-peer.ts';
import { count, number, readOptions } from './options.ts';
import { writeConfig } from './support.ts';

const values = readOptions('npm run bench:network', {
  pairs: count(16),
  messages: count(40),
  rounds: count(2),
  peers: number(100),
  starts: number(3),
});
const { pairs, messages } = values;

/** Limits of peers that a machine of its own would not meet. */
const limits = {
  ...{ peerHandshakesPerAddress: 1_000, peerHandshakeRate: 1e6, peerHandshakeBurst: 1e6 },
  ...{ federationAddressLookupRate: 1e6, federationLookupRate: 1e6, relayRate: 1e6 },
  ...{ relayBurst: 1e6, relayAccountRate: 1e6, relayAccountBurst: 1e6 },
  ...{ relayStreamRate: 1e6, relayStreamBurst: 1e6, routeLookupRate: 1e6, routeLookupBurst: 1e6 },
};

await using parts = new AsyncDisposableStack();
const folder = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
parts.defer(() => rmSync(folder, { recursive: true, force: true }));
const registry = join(folder, 'registry.json');
const authority = join(folder, 'tls');

interface Started {
  readonly process: RelayProcess;
  readonly target: Target;
}

/** Starts a relay; `listen` empty is a relay without federation. */
async function start(name: string, listen: string): Promise<Started> {
  const data = join(folder, name);
  mkdirSync(data, { recursive: true });
  const federation = { listen, allowPrivate: true };
  const config = writeConfig(data, { registry, tls: { authority }, federation, limits });
  const process = await RelayProcess.start({ config, port: 0 }, console.error);
  const ca = join(authority, 'ca.pem');
  return { process, target: await loadTarget({ relay: process.base, registry, ca }) };
}

/** Resident bytes of a process. */
function residentBytes(pid: number): number {
  const [, kibibytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kibibytes) * 1_024;
}

const median = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;

/** An account with a connection that counts the records of its timeline. */
interface Member {
  readonly device: TestAccount['device'];
  readonly caller: WssCaller;
  head: number;
  onHead: () => void;
}

async function enrol(target: Target, context: TestContext): Promise<Member> {
  const account = context.account();
  const device = await account.device();
  await context.register(account, [device]);
  const url = target.baseUrl.replace('https://', 'wss://');
  const caller = parts.use(await WssCaller.open(target, url));
  await context.authenticateDevice(caller, device);
  const member: Member = { device, caller, head: -1, onHead: () => {} };
  caller.socket.listen((text) => {
    const [, head] = /"head":([0-9]+)/.exec(text) ?? [];
    if (head === undefined) return;
    member.head = Math.max(member.head, Number(head));
    member.onHead();
  });
  return member;
}

/** Sends messages from each sender to its recipient; returns messages delivered per second. */
async function deliver(senders: readonly Member[], recipients: readonly Member[]): Promise<number> {
  const work = senders.map((sender, index) => {
    const recipient = recipients[index] as Member;
    const texts = Array.from({ length: messages }, (_, id) => {
      const params = grantedMessage(sender.device, [recipient.device]);
      return JSON.stringify({ jsonrpc: '2.0', id, method: 'message.send', params });
    });
    return { sender, recipient, texts, last: recipient.head + messages };
  });
  const started = performance.now();
  await Promise.all(
    work.map(async ({ sender, recipient, texts, last }) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      recipient.onHead = () => {
        if (recipient.head >= last) resolve();
      };
      for (const text of texts) sender.caller.socket.send(text);
      await promise;
    }),
  );
  return (senders.length * messages * 1_000) / (performance.now() - started);
}

async function measureDelivery(a: Started, b: Started): Promise<void> {
  const atA = parts.use(await TestContext.open(a.target, 'wss'));
  const atB = parts.use(await TestContext.open(b.target, 'wss'));
  const members = async (target: Target, context: TestContext) =>
    await Promise.all(Array.from({ length: pairs }, () => enrol(target, context)));
  const senders = await members(a.target, atA);
  const here = await members(a.target, atA);
  const there = await members(b.target, atB);
  // Routes are looked up, and code is compiled, before the clock starts.
  await deliver(senders, here);
  await deliver(senders, there);
  const rates = { local: [] as number[], across: [] as number[] };
  for (let round = 0; round < values.rounds; round += 1) {
    rates.local.push(await deliver(senders, here));
    rates.across.push(await deliver(senders, there));
  }
  const [local, across] = [median(rates.local), median(rates.across)];
  console.log(`delivered on one relay    ${local.toFixed(0)} per second`);
  console.log(`delivered across          ${across.toFixed(0)} per second`);
  console.log(`ratio                     ${(across / local).toFixed(2)}, at least 0.5`);
}

async function measurePeers({ process, target }: Started): Promise<void> {
  const count = values.peers;
  const { descriptor } = parts.use(await TestContext.open(target, 'wss'));
  const options = { network: target.network, descriptor, registry };
  const peers = Array.from({ length: count }, () => parts.use(new BenchPeer(options)));
  const first = parts.use(new BenchPeer(options));
  for (const peer of [first, ...peers]) await peer.list();
  await first.dial();
  const before = residentBytes(process.pid);
  const started = performance.now();
  for (const peer of peers) await peer.dial();
  const seconds = (performance.now() - started) / 1_000;
  const each = (residentBytes(process.pid) - before) / count / 1_024;
  console.log(`handshakes and admissions ${(count / seconds).toFixed(0)} per second, one by one`);
  console.log(`memory of one peer        ${each.toFixed(0)} KiB, at most 200`);
  const calls = await first.callsPerSecond(2_000, 16);
  console.log(`calls (device.status)     ${calls.toFixed(0)} per second, 16 at once`);
}

/** Compares relays with federation and no peers with relays without it. */
async function measureStart(): Promise<void> {
  const measured = { on: [] as number[], off: [] as number[] };
  const times = { on: [] as number[], off: [] as number[] };
  for (let index = 0; index < values.starts; index += 1) {
    for (const kind of ['on', 'off'] as const) {
      const data = join(folder, `${kind}${index}`);
      mkdirSync(data);
      const federation = { listen: kind === 'on' ? '127.0.0.1:0' : '' };
      const config = writeConfig(data, { federation });
      const started = performance.now();
      await using relay = await RelayProcess.start({ config, port: 0 }, () => {});
      times[kind].push(performance.now() - started);
      measured[kind].push(residentBytes(relay.pid) / 1_048_576);
    }
  }
  const more = median(measured.on) - median(measured.off);
  const later = median(times.on) - median(times.off);
  console.log(`memory of federation      ${more.toFixed(1)} MiB more without peers, at most 5`);
  console.log(`start with federation     ${later.toFixed(0)} ms later`);
}

const a = await start('a', '127.0.0.1:0');
parts.use(a.process);
const b = await start('b', '127.0.0.1:0');
parts.use(b.process);
await measureDelivery(a, b);
await measurePeers(b);
await measureStart();
