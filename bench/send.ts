/**
 * Accepted `message.send` per second over WSS, next to raw Ed25519 verifications per second of the
 * same run: how much of the machine's signature budget the relay turns into stored messages.
 *
 *   npm run bench:send [-- --connections 50 --messages 100 --window 4]
 *
 * The relay is a process of its own with TLS, SQLite and full durability; messages are sealed
 * before the clock starts; every one has a grant, goes to another account and gets a sent record.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { verify } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import {
  grantedMail,
  loadTarget,
  type Resident,
  Stage,
  type WssCaller,
} from '@posthouse/conformance';
import { importPublicKey, nodePrimitives, nodeRandom } from '@posthouse/primitives-node';

const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '50' },
    messages: { type: 'string', default: '100' },
    window: { type: 'string', default: '4' },
  },
});
const connections = Number(values.connections);
const messagesEach = Number(values.messages);
const window = Number(values.window);

/** Verifications of a signature over 500 bytes in a second, on this thread. */
function verificationsPerSecond(): number {
  const seed = nodeRandom(32);
  const message = nodeRandom(500);
  const signature = nodePrimitives.ed25519.sign(seed, message);
  const key = importPublicKey('ed25519', nodePrimitives.ed25519.publicKey(seed));
  if (key === undefined) throw new Error('key does not import');
  const started = performance.now();
  let count = 0;
  while (performance.now() - started < 2_000) {
    for (let index = 0; index < 100; index += 1) {
      if (!verify(null, message, key, signature)) throw new Error('does not verify');
    }
    count += 100;
  }
  return (count * 1_000) / (performance.now() - started);
}

/** Starts a relay in a folder and waits until it is ready. */
async function startRelay(data: string): Promise<{ child: ChildProcess; base: string }> {
  const main = new URL('../packages/relay/src/main.ts', import.meta.url).pathname;
  const generous = '1000000';
  const child = spawn(
    process.execPath,
    [main, 'serve', '--dev', '--data', data, '--listen', '127.0.0.1:0'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        POSTHOUSE_LOG: 'error',
        POSTHOUSE_LIMITS_ACCOUNT_RATE: generous,
        POSTHOUSE_LIMITS_ACCOUNT_BURST: generous,
        POSTHOUSE_LIMITS_ADDRESS_RATE: generous,
        POSTHOUSE_LIMITS_ADDRESS_BURST: generous,
      },
    },
  );
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const [word, base] = line.split(' ');
    if (word === 'ready' && base !== undefined) return { child, base };
  }
  throw new Error('the relay ended before it was ready');
}

/** Sends prepared texts on one connection, a few under way at once; milliseconds of each. */
function sendAll(sender: Resident, texts: readonly string[]): Promise<number[]> {
  const { socket } = sender.caller as WssCaller;
  const started: number[] = [];
  const latencies: number[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<number[]>();
  const next = () => {
    const text = texts[started.length];
    if (text === undefined) return;
    started.push(performance.now());
    socket.send(text);
  };
  socket.listen((text) => {
    const id = /"id":([0-9]+)/.exec(text)?.[1];
    if (id === undefined) return; // A hint about the timeline.
    if (!text.includes('"target_accepted"')) reject(new Error(text));
    latencies.push(performance.now() - (started[Number(id)] as number));
    if (latencies.length === texts.length) resolve(latencies);
    next();
  });
  for (let count = 0; count < window; count += 1) next();
  return promise;
}

const folder = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
const { child, base } = await startRelay(folder);
try {
  const target = await loadTarget({
    relay: base,
    registry: join(folder, 'registry.json'),
    ca: join(folder, 'tls', 'ca.pem'),
  });
  await using stage = await Stage.open(target, 'wss');
  const residents: Resident[] = [];
  for (let count = 0; count < connections; count += 1) residents.push(await stage.resident());
  const work = residents.map((sender, index) => {
    const recipient = residents[(index + 1) % residents.length] as Resident;
    const senders = [sender.device.certificate];
    return Array.from({ length: messagesEach }, (_, id) => {
      const params = grantedMail(sender.device, [recipient.device], { senders });
      return JSON.stringify({ jsonrpc: '2.0', id, method: 'message.send', params });
    });
  });
  const started = performance.now();
  const latencies = (
    await Promise.all(residents.map((sender, index) => sendAll(sender, work[index] ?? [])))
  ).flat();
  const seconds = (performance.now() - started) / 1_000;
  latencies.sort((a, b) => a - b);
  const at = (share: number) => (latencies[Math.floor(latencies.length * share)] ?? 0).toFixed(1);
  const accepted = latencies.length / seconds;
  const raw = verificationsPerSecond();
  console.log(`connections              ${connections}, ${window} requests under way on each`);
  console.log(`accepted message.send    ${accepted.toFixed(0)} per second (${latencies.length})`);
  console.log(`latency                  median ${at(0.5)} ms, 99 % ${at(0.99)} ms`);
  console.log(`Ed25519 verifications    ${raw.toFixed(0)} per second on one thread`);
  console.log(`ratio                    ${(accepted / raw).toFixed(3)} accepted per verification`);
} finally {
  child.kill('SIGTERM');
  await new Promise((resolve) => child.once('exit', resolve));
  rmSync(folder, { recursive: true, force: true });
}
