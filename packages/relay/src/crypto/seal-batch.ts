/** Keys to seal as a batch for the worker thread. */
import type { KeyToSeal, SealedKey } from '@posthouse/protocol/crypto';
import { decodeBatch, encodeBatch, workBatch } from './batch.ts';

/** Receiver, ephemeral key, salt, the key to seal; then the nonce. */
const headBytes = 4 * 32 + 12;
const encBytes = 32;
const sealedBytes = 60;

/** Writes keys to seal into one buffer; the receivers have 32 bytes. */
export function encodeKeys(keys: readonly KeyToSeal[]): ArrayBuffer {
  return encodeBatch(
    headBytes,
    keys.map(({ receiver, ephemeral, salt, key, nonce, info }) => ({
      head: [receiver, ephemeral, salt, key, nonce],
      text: info,
    })),
  );
}

/** Seals each key of a buffer, and leaves the sealed ones in it. */
export function sealKeys(
  buffer: ArrayBuffer,
  seal: (key: KeyToSeal) => SealedKey | undefined,
): void {
  workBatch(buffer, headBytes, (head, info) => {
    const part = (index: number) => head.subarray(32 * index, 32 * (index + 1));
    const nonce = head.subarray(4 * 32);
    const own = { receiver: part(0), ephemeral: part(1), salt: part(2), key: part(3) };
    const sealed = seal({ ...own, nonce, info });
    head.fill(0);
    if (sealed === undefined) return 0;
    head.set(sealed.enc);
    head.set(sealed.sealed, encBytes);
    return 1;
  });
}

/** Reads what {@link sealKeys} left; `undefined` where the receiver is no key to seal to. */
export function decodeSealedKeys(buffer: ArrayBuffer): (SealedKey | undefined)[] {
  return decodeBatch(buffer, headBytes, (result, head) =>
    result === 1
      ? { enc: head.subarray(0, encBytes), sealed: head.subarray(encBytes, encBytes + sealedBytes) }
      : undefined,
  );
}
