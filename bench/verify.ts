/**
 * Measures the verification of Ed25519 signatures: CPU time of the event loop and of all threads,
 * by OpenSSL on the thread pool and by libsodium in the worker thread, in turns.
 *
 *   npm run bench:verify [-- --callers 1,100 --checks 5000 --pairs 3]
 *
 * Each caller verifies one signature after another, as a connection with window 1 does.
 */
import type { SignatureCheck } from '@posthouse/protocol/crypto';
import { nodePrimitives, nodeRandom } from '@posthouse/protocol/node';
import { CryptoWorker } from '../packages/relay/src/crypto/crypto-worker.ts';
import { LibsodiumEngine } from '../packages/relay/src/crypto/libsodium.ts';
import { SignatureVerifier } from '../packages/relay/src/crypto/verifier.ts';
import { nextTurn } from '../packages/relay/src/event-loop.ts';
import { count, counts, readOptions } from './options.ts';

const values = readOptions('npm run bench:verify', {
  callers: counts([1, 20, 100]),
  checks: count(5_000),
  pairs: count(3),
});

/** About the length of what the sender of a short message signs. */
const messageBytes = 700;

const { ed25519 } = nodePrimitives;
const checks = Array.from({ length: 256 }, (): SignatureCheck => {
  const key = nodeRandom(32);
  const message = nodeRandom(messageBytes);
  const signature = ed25519.sign(key, message);
  return { scheme: 'ed25519', publicKey: ed25519.publicKey(key), message, signature };
});

const microseconds = ({ user, system }: NodeJS.CpuUsage) => user + system;

async function measure(title: string, verifier: SignatureVerifier, callers: number): Promise<void> {
  const count = values.checks;
  const began = performance.now();
  const main = process.threadCpuUsage();
  const all = process.cpuUsage();
  let begun = 0;
  const caller = async (_: unknown, index: number) => {
    while (begun < count) {
      begun += 1;
      await verifier.verify([checks[begun % checks.length] as SignatureCheck], '', `${index}`);
      await nextTurn();
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const seconds = (performance.now() - began) / 1_000;
  const columns = [
    title.padEnd(10),
    `${callers} callers`.padEnd(12),
    `event loop ${(microseconds(process.threadCpuUsage(main)) / begun).toFixed(1)} us`,
    `all threads ${(microseconds(process.cpuUsage(all)) / begun).toFixed(1)} us`,
    `${(begun / seconds).toFixed(0)} per second`,
  ];
  console.log(columns.join('   '));
}

await using worker = new CryptoWorker();
const libsodium = new LibsodiumEngine(worker);
libsodium.begin();
const verifiers = {
  OpenSSL: new SignatureVerifier(),
  libsodium: new SignatureVerifier(undefined, libsodium),
};
for (const callers of values.callers) {
  for (let pair = 0; pair < values.pairs; pair += 1) {
    for (const [title, verifier] of Object.entries(verifiers)) {
      await measure(title, verifier, callers);
    }
  }
}
