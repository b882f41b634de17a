/** Keys sealed in the worker thread, and without one (05 §3.5; decisions 0019 and 0026). */
import {
  type KeyToSeal,
  noblePrimitives,
  type SignatureCheck,
  sealKey,
} from '@posthouse/protocol/crypto';
import { nodePrimitives, nodeRandom } from '@posthouse/protocol/node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, CryptoWorker, type Request } from '../../src/crypto/crypto-worker.ts';
import { WorkerKeySealer } from '../../src/crypto/key-sealer.ts';
import { LibsodiumEngine } from '../../src/crypto/libsodium.ts';
import { defaultVerifierLimits, SignatureVerifier } from '../../src/crypto/verifier.ts';

function keyToSeal(infoBytes = 150): KeyToSeal {
  return {
    receiver: nodePrimitives.x25519.publicKey(nodeRandom(32)),
    ephemeral: nodeRandom(32),
    nonce: nodeRandom(12),
    salt: nodeRandom(32),
    info: nodeRandom(infoBytes),
    key: nodeRandom(32),
  };
}

/** What another implementation makes of the same keys. */
const expected = (keys: readonly KeyToSeal[]) =>
  keys.map((key) => {
    const sealed = sealKey(noblePrimitives, key);
    return sealed && { enc: Buffer.from(sealed.enc), sealed: Buffer.from(sealed.sealed) };
  });

/** Counts the batches that reach the worker, and those that it has at once. */
class CountedWorker extends CryptoWorker {
  readonly sizes: number[] = [];
  most = 0;
  #has = 0;

  override async ask(request: Request): Promise<Answer | undefined> {
    this.sizes.push(new Uint32Array(request.buffer, 0, 1)[0] as number);
    this.#has += 1;
    this.most = Math.max(this.most, this.#has);
    const answer = await super.ask(request);
    this.#has -= 1;
    return answer;
  }
}

let worker: CountedWorker;

beforeEach(() => {
  worker = new CountedWorker();
});

afterEach(() => worker[Symbol.asyncDispose]());

const unusable = { ...keyToSeal(), receiver: new Uint8Array(32) };

describe.each([
  ['in the worker', () => new WorkerKeySealer(worker)],
  ['without a worker', () => new WorkerKeySealer()],
])('%s', (_, open) => {
  test.each([0, 1, 4, 5, 9])('05 §3.5: %i keys are sealed in their order', async (count) => {
    const keys = Array.from({ length: count }, (__, index) => keyToSeal(index * 37));
    expect(await seal(open(), keys, 'ann')).toEqual(expected(keys));
  });

  test('01 E2: a receiver with an all-zero shared secret has no sealed key', async () => {
    const keys = [keyToSeal(), unusable, keyToSeal()];
    const sealed = await seal(open(), keys, 'ann');
    expect(sealed[1]).toBeUndefined();
    expect(sealed).toEqual(expected(keys));
  });

  test('a payer with many calls delays a batch of another by a batch or two', async () => {
    const sealer = open();
    const ended: string[] = [];
    const call = async (payer: string, count: number) => {
      const keys = Array.from({ length: count }, () => keyToSeal());
      await sealer.seal(keys, payer);
      ended.push(payer);
    };
    const many = Array.from({ length: 12 }, () => call('many', 8));
    await Promise.all([...many, call('few', 12)]);
    expect(ended[0]).toBe('few');
  });
});

async function seal(sealer: WorkerKeySealer, keys: readonly KeyToSeal[], payer: string) {
  const sealed = await sealer.seal(keys, payer);
  return sealed.map((one) => one && { enc: Buffer.from(one.enc), sealed: Buffer.from(one.sealed) });
}

test('four keys go to the worker together, and it has two such batches at once', async () => {
  const sealer = new WorkerKeySealer(worker);
  const keys = () => Array.from({ length: 9 }, () => keyToSeal());
  await Promise.all([1, 2, 3].map((payer) => sealer.seal(keys(), `payer ${payer}`)));
  expect(worker.sizes.toSorted()).toEqual([1, 1, 1, 4, 4, 4, 4, 4, 4]);
  expect(worker.most).toBe(2);
});

test('keys are taken from the caller when it is their turn', async () => {
  const sealer = new WorkerKeySealer(worker);
  let taken = 0;
  function* keys() {
    for (; taken < 40; taken += 1) yield keyToSeal();
  }
  const sealed = sealer.seal(keys(), 'ann');
  expect(taken).toBeLessThan(8);
  expect(await sealed).toHaveLength(40);
});

test('if the worker ends, its keys and later ones are sealed without it', async () => {
  const sealer = new WorkerKeySealer(worker);
  const ended = worker.ask({ kind: 'seal', buffer: Uint32Array.of(1, 0).buffer });
  const keys = Array.from({ length: 9 }, () => keyToSeal());
  expect(await seal(sealer, keys, 'ann')).toEqual(expected(keys));
  expect(await ended).toBeUndefined();
  expect(await seal(sealer, keys, 'ann')).toEqual(expected(keys));
});

function signatureCheck(): SignatureCheck {
  const { ed25519 } = nodePrimitives;
  const key = new Uint8Array(32).fill(7);
  const message = new Uint8Array(3);
  const signature = ed25519.sign(key, message);
  return { scheme: 'ed25519', publicKey: ed25519.publicKey(key), message, signature };
}

test('signatures are verified while many keys wait to be sealed', async () => {
  const sealer = new WorkerKeySealer(worker);
  const libsodium = new LibsodiumEngine(worker);
  const ended: string[] = [];
  const keys = Array.from({ length: 200 }, () => keyToSeal());
  const sealing = sealer.seal(keys, 'ann').then(() => ended.push('sealed'));
  libsodium.begin();
  const verifier = new SignatureVerifier(defaultVerifierLimits, libsodium);
  const checks = [signatureCheck(), signatureCheck()];
  await verifier.verify(checks, 'object').then(() => ended.push('verified'));
  await sealing;
  expect(ended).toEqual(['verified', 'sealed']);
});
