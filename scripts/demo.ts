/**
 * `npm run demo`: runs relays in a temporary folder and uses them with the command `courier`. First
 * one relay: two accounts, three devices, an invite, messages in both directions, a device that is
 * offline, and a relay that is killed and restarted. Then two relays of one network: the two accounts
 * live on different ones, write to each other, and share a group and a channel. Keys, sockets and TLS are real; all files are removed at the
 * end. Exits with a status other than 0 if a step fails.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleCourier } from './demo/devices.ts';
import { oneRelay } from './demo/one-relay.ts';
import { bold, print } from './demo/output.ts';
import { DevRelays, freePort, Relay } from './demo/relays.ts';
import { twoRelays } from './demo/two-relays.ts';

const folder = mkdtempSync(join(tmpdir(), 'posthouse-demo-'));
const relay = new Relay(join(folder, 'relay'), await freePort());
const relays = new DevRelays(join(folder, 'network'));
const cleanUp = new DisposableStack();
const started = Date.now();
try {
  const courier = await bundleCourier(folder);
  await oneRelay({ folder, courier }, relay, cleanUp);
  await twoRelays({ folder, courier }, relays);
  print();
  print(bold(`All steps passed in ${Math.round((Date.now() - started) / 1_000)} seconds.`));
} catch (error) {
  print();
  print(`FAILED: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  cleanUp[Symbol.dispose]();
  await relay.kill();
  await relays.stop();
  rmSync(folder, { recursive: true, force: true });
}
