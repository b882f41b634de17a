/** 0024: in a relay, a batch of several writes waits for those whose signatures are being verified. */
import { expect, test, vi } from 'vitest';
import { LibsodiumEngine } from '../../src/crypto/libsodium.ts';
import { ThreadPoolEngine } from '../../src/crypto/thread-pool.ts';
import { SignatureVerifier } from '../../src/crypto/verifier.ts';
import { temporaryFolder } from '../support/folder.ts';
import { ServedRelay, sqliteIn } from '../support/served-relay.ts';

const turn = () => new Promise<void>((go) => setImmediate(go));

/** Holds the signature that is verified next. */
function holdSignature() {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isHeld = false;
  for (const { prototype } of [LibsodiumEngine, ThreadPoolEngine]) {
    const verify = prototype.verify;
    vi.spyOn(prototype, 'verify').mockImplementation(async function (this: never, check) {
      if (!isHeld) {
        isHeld = true;
        await promise;
      }
      return await verify.call(this, check);
    });
  }
  return { release: resolve, isHeld: () => isHeld };
}

test('0024: a message whose signature is being verified joins the commit of eight others', async () => {
  using folder = temporaryFolder();
  await using relay = await ServedRelay.start({}, sqliteIn(folder.path));
  using _spies = { [Symbol.dispose]: () => vi.restoreAllMocks() };
  const ann = await relay.register('ann');
  using socket = await relay.socket();
  await relay.bindDevice(socket, ann.device());
  const send = () => socket.call('message.send', ann.message(ann));
  await send();

  const points: string[] = [];
  const count = (point: string) => points.filter((one) => one === point).length;
  const flushed = Promise.withResolvers<void>();
  relay.faults.reach = (point) => void points.push(point);
  relay.faults.flush = async (flush) => {
    await flushed.promise;
    await flush();
  };
  const asked = vi.spyOn(SignatureVerifier.prototype, 'settled', 'get');
  // No time passes for a batch.
  vi.spyOn(performance, 'now').mockReturnValue(performance.now());
  // The batch after this one stays open until the flush has ended.
  const first = send();
  while (count('committed') < 1) await turn();
  const signature = holdSignature();
  const late = send();
  while (!signature.isHeld()) await turn();
  const others = Array.from({ length: 8 }, send);
  while (count('queued') < 9) await turn();
  flushed.resolve();
  await first;
  asked.mockClear();
  while (asked.mock.calls.length === 0 && count('committed') < 2) await turn();
  signature.release();
  for (const answer of await Promise.all([late, ...others])) {
    expect(answer).toHaveProperty('result');
  }
  expect([count('queued'), count('committed')]).toEqual([10, 2]);
});
