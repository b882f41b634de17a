/** What all operations of the vectors are made with. */
import type { SignatureCheck } from '../../src/crypto/index.ts';
import {
  decodeBase64url,
  encodeBase64url,
  hex,
  type Network,
  ProtocolError,
} from '../../src/index.ts';
import { decodeUtf8, type JsonObject, type JsonValue } from '../../src/json/index.ts';

/** What a case runs: its input to its outcome; a refusal is thrown. */
export type Operation = (network: Network, input: JsonObject) => JsonObject;

/** Returns an operation whose input the vector files give in the right shape. */
export function operation<I>(run: (network: Network, input: I) => JsonObject): Operation {
  return (network, input) => run(network, input as unknown as I);
}

/** Bytes of a text that a vector gives as canonical base64url. */
export function bytes(text: string): Uint8Array {
  const decoded = decodeBase64url(text);
  if (decoded === undefined) throw new ProtocolError('bad_request', 'not canonical base64url');
  return decoded;
}

/** What opened, or the error of what did not. */
export function opened(value: Uint8Array | undefined): Uint8Array {
  if (value === undefined) throw new ProtocolError('bad_request', 'does not open');
  return value;
}

/** Returns signatures as data: key, text and signature, so that other tools can verify them. */
export function signed(network: Network, checks: readonly SignatureCheck[]): JsonValue {
  return checks.map(({ scheme, publicKey, message, signature }) => ({
    scheme,
    public_key: encodeBase64url(publicKey),
    text: decodeUtf8(message),
    sha256: hex(network.primitives.sha256(message)),
    signature: encodeBase64url(signature),
  }));
}

export function input(network: Network, message: Uint8Array): JsonObject {
  return { text: decodeUtf8(message), sha256: hex(network.primitives.sha256(message)) };
}
