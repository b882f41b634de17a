import {
  type Authorization,
  boundSignatures,
  type DeliverRequest,
  type DeviceCertificate,
  type EnvelopeTexts,
  type MessageEnvelope,
  type MessageKeyBox,
  ProtocolError,
  type SendRequest,
} from '@posthouse/protocol';
import { canonicalJson, canonicalWith } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { digest } from '../digest.ts';
import type { RelayLimits } from '../limits.ts';
import { checkCreatedAt } from './rules.ts';
import type { StoredEnvelope } from './store.ts';

/** What `message.send` and `message.deliver` have in common: each stored or compared text, once. */
export interface MessageParts {
  readonly envelope: MessageEnvelope;
  readonly storedEnvelope: StoredEnvelope;
  /** What the sending device signed. */
  readonly signed: Pick<EnvelopeTexts, 'bound'>;
  /** Canonical JSON of each box, by device ID. */
  readonly recipientBoxes: ReadonlyMap<string, string>;
  readonly authorization: Authorization | undefined;
  /** Canonical JSON of the authorization. */
  readonly credential: string | undefined;
  /** Digest of the complete parameter object. */
  readonly digest: string;
  /** Digest of envelope and recipient boxes, the same for both methods. */
  readonly content: string;
  /** What {@link verifyEnvelope} has begun in this call, by signing key. */
  readonly verifications: Map<string, Promise<void>>;
}

/**
 * Makes the texts of a well-formed request.
 *
 * @param texts of its envelope
 * @throws ProtocolError `request_too_large`
 */
export function messageParts(
  params: SendRequest | DeliverRequest,
  texts: EnvelopeTexts,
  limits: Pick<RelayLimits, 'credentialBytes' | 'keyBoxBytes'>,
): MessageParts {
  const { envelope, authorization } = params;
  const { complete: text, bytes } = texts;
  const textDigest = digest(text);
  const id = envelopeId(envelope.created_at, textDigest);
  const credential = authorization === undefined ? undefined : canonicalJson(authorization);
  if (credential !== undefined && Buffer.byteLength(credential) > limits.credentialBytes) {
    throw new ProtocolError('request_too_large', 'authorization: too large');
  }
  const recipientBoxes = boxTexts(params.recipient_boxes, limits);
  const boxes = boxesText(recipientBoxes);
  // The envelope is the large part: its digest stands for it in the digest of the whole.
  const known = new Map([['recipient_boxes', boxes]]);
  if (credential !== undefined) known.set('authorization', credential);
  const rest = canonicalWith(params, { omit: ['envelope'], texts: known });
  return {
    ...{ envelope, signed: texts, recipientBoxes, authorization, credential },
    storedEnvelope: { id, text, bytes },
    digest: digest(`${textDigest}\n${rest}`),
    content: contentDigest(id, boxes),
    verifications: new Map(),
  };
}

/**
 * Returns the canonical text of each key box, by device ID.
 *
 * @throws ProtocolError `request_too_large`
 */
export function boxTexts(
  boxes: readonly MessageKeyBox[],
  { keyBoxBytes }: Pick<RelayLimits, 'keyBoxBytes'>,
): Map<string, string> {
  const texts = new Map<string, string>();
  for (const box of boxes) {
    const text = canonicalJson(box);
    if (Buffer.byteLength(text) > keyBoxBytes) {
      throw new ProtocolError('request_too_large', 'key box: too large');
    }
    texts.set(box.device_id, text);
  }
  return texts;
}

/** Returns the canonical text of the array of boxes. */
export function boxesText(boxes: ReadonlyMap<string, string>): string {
  return `[${[...boxes.values()].join(',')}]`;
}

/** Characters of a digest. */
const digestLength = 43;

/**
 * Returns the key under which an envelope is stored: its time, then the digest of its text. So
 * messages of one time are next to each other in the index, not each in a page of its own.
 *
 * @param createdAt Unix seconds
 */
export function envelopeId(createdAt: number, textDigest: string): string {
  return createdAt.toString(16).padStart(8, '0') + textDigest;
}

/**
 * Returns the digest of an envelope and the canonical array of its recipient boxes.
 *
 * @param id of the envelope; one that was stored by an early version is the digest alone
 */
export function contentDigest(id: string, boxes: string): string {
  return digest(`${id.slice(-digestLength)}\n${boxes}`);
}

/**
 * Verifies the envelope's signature and checks its age (04 section 13, conditions 2 and 3). A call
 * verifies with the same key once: the short way of `message.send` and the general way both ask.
 *
 * @throws ProtocolError `invalid_signature`, `clock_skew`, `message_expired`
 */
export async function verifyEnvelope(
  { limits, verifier }: RelayContext,
  { envelope, signed, verifications }: Pick<MessageParts, 'envelope' | 'signed' | 'verifications'>,
  {
    certificate,
    now,
  }: {
    readonly certificate: Pick<DeviceCertificate, 'signing_public_key'>;
    readonly now: number;
  },
): Promise<void> {
  const { signing_public_key: key } = certificate;
  let verification = verifications.get(key);
  if (verification === undefined) {
    verification = verifier.verify(boundSignatures(signed, envelope, certificate), 'envelope');
    verifications.set(key, verification);
  }
  await verification;
  checkCreatedAt(envelope.created_at, now, limits);
}
