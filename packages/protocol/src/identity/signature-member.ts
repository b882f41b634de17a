import type { SignatureCheck } from '../crypto/primitives.ts';
import { signatureCheck } from '../crypto/signatures.ts';
import { encodeBase64url } from '../encoding/base64url.ts';
import { utf8 } from '../encoding/bytes.ts';
import type { JsonObject } from '../json/types.ts';
import type { BoundTexts, Network } from './network.ts';

/** Any key that signs bytes; a wallet may answer later. */
interface Signer {
  sign(message: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/**
 * Describes one signature of an object: the root member that holds it, its scheme, and the members
 * left out of the network-bound bytes that it signs (01 §4, §5). Each signed object declares its
 * signatures with this and derives its `xSigningInput`, `xSignatures` and `signX` from them.
 *
 * @param without the members to leave out; the signature's own by default
 */
export function signatureMember<M extends string>(
  member: M,
  scheme: SignatureCheck['scheme'],
  without: readonly string[] = [member],
) {
  /** Returns the bytes to sign; an object that is signed already gives the same bytes. */
  const input = (network: Network, object: JsonObject): Uint8Array =>
    network.bytes(object, without);

  /** Returns the signature to verify, as data. */
  const checkOf = (
    message: Uint8Array,
    object: { readonly [N in M]: string },
    publicKey: string,
  ): SignatureCheck => signatureCheck({ scheme, publicKey, message, signature: object[member] });

  /** Returns the object with a signature, which replaces one that is there. */
  const attach = <T extends JsonObject>(object: T, signature: Uint8Array) => {
    const part = { [member]: encodeBase64url(signature) } as { readonly [N in M]: string };
    return { ...object, ...part };
  };

  return {
    input,
    attach,
    /** Returns the signature to verify, as data. */
    check(
      network: Network,
      object: JsonObject & { readonly [N in M]: string },
      publicKey: string,
    ): SignatureCheck {
      return checkOf(input(network, object), object, publicKey);
    },
    /** Returns the complete text of an object, and the text to sign. */
    texts: (network: Network, object: JsonObject): BoundTexts => network.texts(object, without),
    /** Returns the signature to verify of an object whose text to sign was made before. */
    checkBound: (bound: string, object: { readonly [N in M]: string }, publicKey: string) =>
      checkOf(utf8(bound), object, publicKey),
    /** Returns the object signed with an account's or a relay's key. */
    async sign<T extends JsonObject>(network: Network, object: T, signer: Signer) {
      return attach(object, await signer.sign(input(network, object)));
    },
  };
}
