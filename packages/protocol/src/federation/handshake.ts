/** The payload of Noise handshake messages 2 and 3, with the relay's descriptor (07 §B3). */
import { concatBytes, utf8 } from '../encoding/bytes.ts';
import { bytesField, encodeBytesField, readProtobuf } from '../encoding/protobuf.ts';
import { badRequest } from '../errors.ts';
import { decodeUtf8 } from '../json/parse.ts';

/** What each side of a handshake says about itself. */
export interface HandshakePayload {
  /** The peer key as protobuf, as it was sent; see {@link decodePeerKey}. */
  readonly identityKey: Uint8Array;
  /** The peer key's signature over {@link handshakeSigningInput}. */
  readonly identitySignature: Uint8Array;
  /** JSON text of the complete signed descriptor, not yet parsed. */
  readonly descriptor: string;
}

const payloadField = { identityKey: 1, identitySignature: 2, extensions: 4 } as const;
/** In `NoiseExtensions`: an experimental number that libp2p has not allocated. */
const descriptorField = 1025;

const signaturePrefix = utf8('noise-libp2p-static-key:');

/**
 * Encodes the payload of a handshake message.
 *
 * @example
 * const payload = encodeHandshakePayload({
 *   identityKey: encodePeerKey({ type: 'ed25519', data: publicKeyBytes }),
 *   identitySignature: primitives.ed25519.sign(privateKey, handshakeSigningInput(noiseKey)),
 *   descriptor: JSON.stringify(descriptor),
 * });
 */
export function encodeHandshakePayload(payload: HandshakePayload): Uint8Array {
  const extensions = encodeBytesField(descriptorField, utf8(payload.descriptor));
  return concatBytes(
    encodeBytesField(payloadField.identityKey, payload.identityKey),
    encodeBytesField(payloadField.identitySignature, payload.identitySignature),
    encodeBytesField(payloadField.extensions, extensions),
  );
}

/**
 * Decodes the payload of a handshake message in one pass. If a field is repeated, its last value
 * counts; repeated `extensions` merge; unknown fields are ignored. All four fields must be present.
 * The bytes are views of the input.
 *
 * @throws ProtocolError `bad_request` for an encoding error, a wrong wire type, a missing field, or
 * a descriptor that is not UTF-8
 * @example
 * const { identityKey, identitySignature } = decodeHandshakePayload(plaintext);
 * const key = decodePeerKey(identityKey);
 */
export function decodeHandshakePayload(bytes: Uint8Array): HandshakePayload {
  let identityKey: Uint8Array | undefined;
  let identitySignature: Uint8Array | undefined;
  let descriptor: Uint8Array | undefined;
  for (const [number, value] of readProtobuf(bytes, 'handshake payload')) {
    if (number === payloadField.identityKey) {
      identityKey = bytesField(value, 'handshake payload.identity_key');
    } else if (number === payloadField.identitySignature) {
      identitySignature = bytesField(value, 'handshake payload.identity_sig');
    } else if (number === payloadField.extensions) {
      const extensions = bytesField(value, 'handshake payload.extensions');
      descriptor = lastDescriptor(extensions) ?? descriptor;
    }
  }
  if (identityKey === undefined) throw badRequest('handshake payload.identity_key', 'missing');
  if (identitySignature === undefined)
    throw badRequest('handshake payload.identity_sig', 'missing');
  if (descriptor === undefined) throw badRequest(descriptorPath, 'missing');
  return { identityKey, identitySignature, descriptor: descriptorText(descriptor) };
}

const descriptorPath = 'handshake payload.extensions.relay_descriptor';

function lastDescriptor(extensions: Uint8Array): Uint8Array | undefined {
  let descriptor: Uint8Array | undefined;
  for (const [number, value] of readProtobuf(extensions, 'handshake payload.extensions')) {
    if (number === descriptorField) descriptor = bytesField(value, descriptorPath);
  }
  return descriptor;
}

function descriptorText(bytes: Uint8Array): string {
  try {
    return decodeUtf8(bytes);
  } catch {
    throw badRequest(descriptorPath, 'expected UTF-8');
  }
}

/**
 * Returns the bytes that the peer key signs: a prefix, then the sender's Noise static public key.
 *
 * @param noiseKey X25519 public key, 32 bytes
 * @example
 * const signature = primitives.ed25519.sign(privateKey, handshakeSigningInput(noiseKey));
 */
export function handshakeSigningInput(noiseKey: Uint8Array): Uint8Array {
  if (noiseKey.length !== 32) throw new TypeError('expected a Noise static key of 32 bytes');
  return concatBytes(signaturePrefix, noiseKey);
}
