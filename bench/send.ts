/**
 * Measures accepted `message.send` per second over WSS, as a ratio to raw Ed25519 verifications per
 * second of the same run: the share of the machine's signature budget that becomes stored messages.
 *
 *   npm run bench:send [-- --connections 50 --messages 100 --window 4]
 *
 * The relay is a process of its own with TLS, SQLite and full durability.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadTarget } from '@posthouse/conformance';
import { RelayProcess } from '../packages/relay/test/cluster/relay-process.ts';
import { Load, verificationsPerSecond, writeConfig } from './support.ts';

const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '50' },
    messages: { type: 'string', default: '100' },
    window: { type: 'string', default: '4' },
  },
});
const options = {
  connections: Number(values.connections),
  messages: Number(values.messages),
  window: Number(values.window),
};

await using parts = new AsyncDisposableStack();
const folder = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
parts.defer(() => rmSync(folder, { recursive: true, force: true }));
const config = writeConfig(folder, {});
const relay = parts.use(await RelayProcess.start({ config, port: 0 }, console.error));
const target = await loadTarget({
  relay: relay.base,
  registry: join(folder, 'registry.json'),
  ca: join(folder, 'tls', 'ca.pem'),
});
const socket = relay.base.replace('https://', 'wss://');
const load = parts.use(await Load.prepare(target, [socket], options));
const { accepted, retried, seconds, median, ninetyNine } = await load.run();
const perSecond = accepted / seconds;
const raw = verificationsPerSecond();
const { connections, window } = options;
console.log(`connections              ${connections}, ${window} requests in flight on each`);
console.log(`accepted message.send    ${perSecond.toFixed(0)} per second (${accepted})`);
if (retried > 0) console.log(`sent again               ${retried}`);
console.log(
  `latency                  median ${median.toFixed(1)} ms, 99 % ${ninetyNine.toFixed(1)} ms`,
);
console.log(`Ed25519 verifications    ${raw.toFixed(0)} per second on one thread`);
console.log(`ratio                    ${(perSecond / raw).toFixed(3)} accepted per verification`);
