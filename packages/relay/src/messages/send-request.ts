import {
  type Authorization,
  checkSendRequest,
  type MessageEnvelope,
  type MessageKeyBox,
  ProtocolError,
  type SendRequest,
} from '@posthouse/protocol';
import { canonicalJson, canonicalWith } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { digest } from '../digest.ts';
import type { StoredEnvelope } from './store.ts';

/** The parameters of `message.send`, checked as far as no state is needed, each text made once. */
export interface Submission {
  readonly envelope: MessageEnvelope;
  readonly stored: StoredEnvelope;
  /** Canonical JSON of each box, by device ID. */
  readonly recipientBoxes: ReadonlyMap<string, string>;
  readonly senderBoxes: ReadonlyMap<string, string> | undefined;
  readonly authorization: Authorization | undefined;
  /** Canonical JSON of the authorization. */
  readonly credential: string | undefined;
  /** Identifies the complete parameter object. */
  readonly request: string;
}

/**
 * Checks the parameters (04 section 12.1, step 2).
 * @throws ProtocolError `bad_request`, `request_too_large`
 */
export function readSubmission(context: RelayContext, params: SendRequest): Submission {
  const { network, limits } = context;
  checkSendRequest(network, params);
  const { envelope, authorization } = params;
  const text = canonicalJson(envelope);
  const stored = { id: digest(text), text, bytes: Buffer.byteLength(text) };
  const credential = authorization === undefined ? undefined : canonicalJson(authorization);
  if (credential !== undefined && Buffer.byteLength(credential) > limits.credentialBytes) {
    throw new ProtocolError('request_too_large', 'authorization: too large');
  }
  // The envelope is the large part: its digest stands for it in the digest of the whole.
  const others = canonicalWith(params, { omit: ['envelope'] });
  return {
    envelope,
    stored,
    recipientBoxes: boxTexts(params.recipient_boxes, limits.keyBoxBytes),
    senderBoxes: params.sender_boxes && boxTexts(params.sender_boxes, limits.keyBoxBytes),
    authorization,
    credential,
    request: digest(`${stored.id}\n${others}`),
  };
}

function boxTexts(boxes: readonly MessageKeyBox[], maxBytes: number): Map<string, string> {
  const texts = new Map<string, string>();
  for (const box of boxes) {
    const text = canonicalJson(box);
    if (Buffer.byteLength(text) > maxBytes) {
      throw new ProtocolError('request_too_large', 'key box: too large');
    }
    texts.set(box.device_id, text);
  }
  return texts;
}
