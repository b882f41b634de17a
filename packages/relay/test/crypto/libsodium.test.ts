/** Life of the worker with libsodium (decision 0026). */
import { utf8 } from '@posthouse/protocol';
import type { SignatureCheck } from '@posthouse/protocol/crypto';
import { nodePrimitives } from '@posthouse/protocol/node';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Answer, CryptoWorker, type Request } from '../../src/crypto/crypto-worker.ts';
import { LibsodiumEngine } from '../../src/crypto/libsodium.ts';
import type { Sodium } from '../../src/crypto/sodium.ts';
import { useLibsodium } from '../../src/crypto/use-libsodium.ts';
import { defaultVerifierLimits, SignatureVerifier } from '../../src/crypto/verifier.ts';
import { createLog } from '../../src/observability/log.ts';
import { Metrics } from '../../src/observability/metrics.ts';

const { ed25519 } = nodePrimitives;
const key = new Uint8Array(32).fill(7);
const publicKey = ed25519.publicKey(key);

function check(length: number, isValid = true): SignatureCheck {
  const message = new Uint8Array(length);
  const signature = ed25519.sign(key, isValid ? message : utf8('another'));
  return { scheme: 'ed25519', publicKey, message, signature };
}

/** Counts the requests that reach the worker. */
class CountedWorker extends CryptoWorker {
  readonly sizes: number[] = [];

  override ask(request: Request): Promise<Answer | undefined> {
    this.sizes.push(new Uint32Array(request.buffer, 0, 1)[0] as number);
    return super.ask(request);
  }
}

let worker: CountedWorker;
let libsodium: LibsodiumEngine;
let verifier: SignatureVerifier;

beforeEach(() => {
  worker = new CountedWorker();
  libsodium = new LibsodiumEngine(worker);
  verifier = new SignatureVerifier(defaultVerifierLimits, libsodium);
  libsodium.begin();
});

afterEach(() => worker[Symbol.asyncDispose]());

/** Has the thread throw: the buffer ends before its only check. */
const kill = () =>
  worker.ask({ kind: 'verify', buffer: Uint32Array.of(1, 0).buffer }).then(() => worker.stopped);

test('the checks of a turn are sent 16 at once, and the rest at its end', async () => {
  await verifier.verify(
    Array.from({ length: 40 }, () => check(3)),
    'object',
  );
  expect(worker.sizes).toEqual([16, 16, 8]);
});

test('no more checks than the limit are in the worker at once', async () => {
  const narrow = new SignatureVerifier(
    { ...defaultVerifierLimits, parallelInWorker: 2 },
    libsodium,
  );
  await narrow.verify(
    Array.from({ length: 5 }, () => check(3)),
    'object',
  );
  // The last one is alone.
  expect(worker.sizes).toEqual([2, 2]);
});

test('each check of a batch gets its own result, whatever the lengths of the messages', async () => {
  const lengths = [0, 1, 5, 4_096, 16_384, 2];
  const outcomes = await Promise.allSettled(
    lengths.map((length, index) => verifier.verify([check(length, index % 3 !== 1)], 'object')),
  );
  expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual(
    lengths.map((_, index) => index % 3 !== 1),
  );
  expect(worker.sizes).toEqual([6]);
});

test('longer messages and other schemes are verified without the worker', async () => {
  await verifier.verify([check(16_385)], 'object');
  await expect(verifier.verify([check(16_385, false)], 'object')).rejects.toMatchObject({
    code: 'invalid_signature',
  });
  expect(worker.sizes).toEqual([]);
  await verifier.verify([check(16_384), check(16_384)], 'object');
  expect(worker.sizes).toEqual([2]);
});

test('a check that is alone in its turn is verified on the event loop, by the same rules', async () => {
  await verifier.verify([check(3)], 'object');
  await expect(verifier.verify([check(3, false)], 'object')).rejects.toMatchObject({
    code: 'invalid_signature',
  });
  expect(worker.sizes).toEqual([]);
});

test('a check that is alone while the worker has others follows them', async () => {
  const others = verifier.verify([check(3), check(3)], 'object');
  while (worker.sizes.length === 0) await new Promise((resolve) => setImmediate(resolve));
  await verifier.verify([check(3)], 'object');
  await others;
  expect(worker.sizes).toEqual([2, 1]);
});

test('if the worker ends, the checks that it had and later ones are verified without it', async () => {
  const ended = kill();
  const good = Array.from({ length: 20 }, () => verifier.verify([check(3)], 'object'));
  const bad = verifier.verify([check(3, false)], 'object');
  await expect(bad).rejects.toMatchObject({ code: 'invalid_signature' });
  await Promise.all(good);
  await ended;
  const sent = worker.sizes.length;
  await verifier.verify([check(3)], 'object');
  expect(worker.sizes).toHaveLength(sent);
});

test('without a thread to start, checks are verified without it, and one log line says so', async () => {
  const young = new CryptoWorker(() => {
    throw new Error('EAGAIN');
  });
  const engine = new LibsodiumEngine(young);
  const { over, metrics, messages } = begun(engine, young);
  const verifierWithout = new SignatureVerifier(defaultVerifierLimits, engine);
  await verifierWithout.verify([check(3), check(3)], 'object');
  const bad = verifierWithout.verify([check(3, false), check(3)], 'object');
  await expect(bad).rejects.toMatchObject({ code: 'invalid_signature' });
  await over;
  expect(messages()).toContain(
    'the thread for cryptography stopped: restart the relay, which takes more CPU time until then',
  );
  expect(metrics.value('crypto_worker_stopped')).toBe(1);
});

test('after the worker was closed, checks are verified without it', async () => {
  const under = verifier.verify([check(3)], 'object');
  await worker[Symbol.asyncDispose]();
  await under;
  await verifier.verify([check(3)], 'object');
});

test('01 §5.2: what is outside the profile is refused without the worker', async () => {
  const good = check(3);
  const bad = [
    { ...good, publicKey: new Uint8Array(32) },
    { ...good, publicKey: publicKey.subarray(1) },
    { ...good, signature: good.signature.subarray(1) },
    { ...good, signature: new Uint8Array(64) },
  ];
  for (const one of bad) {
    await expect(verifier.verify([one], 'object')).rejects.toMatchObject({
      code: 'invalid_signature',
    });
  }
  expect(worker.sizes).toEqual([]);
});

/** Has an engine begin under a log; returns the messages and when the worker has stopped. */
function begun(engine: LibsodiumEngine, of: CryptoWorker) {
  const lines: string[] = [];
  const metrics = new Metrics();
  const log = createLog('debug', { write: (line: string) => lines.push(line) });
  const over = useLibsodium({ log, metrics }, of, engine);
  return { over, metrics, messages: () => lines.map((line) => JSON.parse(line).msg as string) };
}

test('a log line says that libsodium verifies, and one that it ended', async () => {
  const { over, metrics, messages } = begun(libsodium, worker);
  await kill();
  await over;
  expect(messages()).toEqual([
    'Ed25519 signatures are verified by libsodium',
    'the thread for cryptography stopped: restart the relay, which takes more CPU time until then',
  ]);
  expect(metrics.value('crypto_worker_stopped')).toBe(1);
});

test('closing the worker is not logged as a fault, started or not', async () => {
  const { over, messages } = begun(libsodium, worker);
  await verifier.verify([check(3), check(3)], 'object');
  await worker[Symbol.asyncDispose]();
  await over;
  expect(messages()).toEqual(['Ed25519 signatures are verified by libsodium']);
  const young = new CryptoWorker();
  const early = begun(new LibsodiumEngine(young), young);
  await young[Symbol.asyncDispose]();
  await early.over;
  expect(early.messages()).toEqual(['Ed25519 signatures are verified by libsodium']);
});

test.each<[string, () => Sodium | string]>([
  ['no libsodium', () => 'Cannot find module'],
  ['a libsodium that accepts everything', () => ({ crypto_sign_verify_detached: () => true })],
  ['one that accepts nothing', () => ({ crypto_sign_verify_detached: () => false })],
])('with %s, nothing is verified by it', async (_, load) => {
  const engine = new LibsodiumEngine(worker);
  expect(() => engine.begin(load)).toThrow(/module|5\.2/);
  expect(engine.serves(check(3))).toBe(false);
  const verifierWithout = new SignatureVerifier(defaultVerifierLimits, engine);
  await verifierWithout.verify([check(3), check(3)], 'object');
  await expect(verifierWithout.verify([check(3, false)], 'object')).rejects.toMatchObject({
    code: 'invalid_signature',
  });
  expect(worker.sizes).toEqual([]);
});

test('a log line says why OpenSSL verifies', async () => {
  const engine = new LibsodiumEngine(worker);
  engine.begin = () => {
    throw new Error('Cannot find module');
  };
  const { over, messages } = begun(engine, worker);
  await worker[Symbol.asyncDispose]();
  await over;
  expect(messages()).toEqual(['Ed25519 signatures are verified by OpenSSL: libsodium is not used']);
});
