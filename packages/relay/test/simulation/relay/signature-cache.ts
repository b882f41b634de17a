/** Signatures that were verified before: in a simulation each of them is read by many. */
import type { Primitives } from '@posthouse/protocol/crypto';
import { nodePrimitives } from '@posthouse/protocol/node';
import { BoundedMap } from '../../../src/bounded-map.ts';

const capacity = 20_000;

type Verify = Primitives['p256']['verify'];

/** Remembers what each signature check found, for the rest of this process. */
export function cacheSignatureChecks(): void {
  for (const scheme of ['ed25519', 'p256'] as const) {
    const { verify } = nodePrimitives[scheme];
    Object.assign(nodePrimitives[scheme], { verify: cached(verify) });
  }
}

function cached(verify: Verify): Verify {
  const known = new BoundedMap<string, boolean>(capacity);
  return (publicKey, message, signature) => {
    const parts = [publicKey, signature, message];
    const key = parts.map((part) => Buffer.from(part).toString('latin1')).join('');
    const found = known.get(key);
    if (found !== undefined) return found;
    const result = verify(publicKey, message, signature);
    known.set(key, result);
    return result;
  };
}
