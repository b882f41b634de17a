/** What the benches share: a relay's configuration, and raw costs to compare with. */
import { verify } from 'node:crypto';
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Network } from '@posthouse/protocol';
import { importPublicKey, nodePrimitives, nodeRandom } from '@posthouse/protocol/node';

/** The network of every relay that is started with `dev`: a message is valid at all of them. */
export const network = new Network({
  context: `neo:0:0x${'0'.repeat(40)}`,
  primitives: nodePrimitives,
});

/** How long raw costs are measured, milliseconds. */
const rawPeriod = 500;

/** Measures how many times per second this thread can run a function. */
function rate(once: () => void): number {
  const started = performance.now();
  let count = 0;
  while (performance.now() - started < rawPeriod) {
    once();
    count += 1;
  }
  return (count * 1_000) / (performance.now() - started);
}

/** Measures verifications per second of a signature over 500 bytes, on this thread. */
export function verificationsPerSecond(): number {
  const seed = nodeRandom(32);
  const message = nodeRandom(500);
  const signature = nodePrimitives.ed25519.sign(seed, message);
  const key = importPublicKey('ed25519', nodePrimitives.ed25519.publicKey(seed));
  if (key === undefined) throw new Error('key does not import');
  return rate(() => {
    if (!verify(null, message, key, signature)) throw new Error('does not verify');
  });
}

/** Measures durable appends per second of 8 KiB to a folder's disk, one after another. */
export function flushesPerSecond(folder: string): number {
  const path = join(folder, `posthouse-flushes-${process.pid}`);
  const file = openSync(path, 'w');
  const block = nodeRandom(8_192);
  try {
    return rate(() => {
      writeSync(file, block);
      fsyncSync(file);
    });
  } finally {
    closeSync(file);
    rmSync(path);
  }
}

const unlimited = 1_000_000;

/** Writes a development relay's configuration file, with rate limits that are never reached. */
export function writeConfig(
  folder: string,
  { limits: others, ...settings }: Readonly<Record<string, unknown>> & { readonly limits?: object },
): string {
  const path = join(folder, 'config.json');
  const limits = {
    accountRate: unlimited,
    accountBurst: unlimited,
    addressRate: unlimited,
    addressBurst: unlimited,
    addressHandshakeRate: unlimited,
    addressHandshakeBurst: unlimited,
    accountsPerAddress: unlimited,
    sessionsPerMinute: 10_000,
    sessionsOfDevice: 10_000,
    sessionsOfAccount: 10_000,
    ...others,
  };
  writeFileSync(
    path,
    JSON.stringify({ dev: true, data: folder, log: 'error', limits, ...settings }),
  );
  return path;
}
