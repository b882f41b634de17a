import {
  type Authorization,
  checkSendRequest,
  type MessageEnvelope,
  type MessageKeyBox,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson, canonicalWith } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { digest } from '../digest.ts';
import type { Call } from '../dispatch/call.ts';
import type { DeviceSession } from '../sessions/session.ts';
import type { StoredEnvelope } from './store.ts';

/** One call of `message.send` that passed every check that needs no storage. */
export interface CheckedSendRequest {
  readonly session: DeviceSession;
  /** Time of the call, Unix seconds. */
  readonly now: number;
  readonly envelope: MessageEnvelope;
  readonly storedEnvelope: StoredEnvelope;
  /** Canonical JSON of each box, by device ID. */
  readonly recipientBoxes: ReadonlyMap<string, string>;
  readonly senderBoxes: ReadonlyMap<string, string> | undefined;
  readonly authorization: Authorization | undefined;
  /** Canonical JSON of the authorization. */
  readonly credential: string | undefined;
  /** Digest of the complete parameter object. */
  readonly digest: string;
}

/**
 * Checks parameters and sender of a call (04 section 12.1, steps 2 and 3) and makes each text that
 * is stored or compared, once.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `forbidden`
 */
export function checkCall(context: RelayContext, call: Call<'message.send'>): CheckedSendRequest {
  const { clock, network, limits } = context;
  const { params, session } = call;
  checkSendRequest(network, params);
  const { envelope, authorization } = params;
  const text = canonicalJson(envelope);
  const storedEnvelope = { id: digest(text), text, bytes: Buffer.byteLength(text) };
  const credential = authorization === undefined ? undefined : canonicalJson(authorization);
  if (credential !== undefined && Buffer.byteLength(credential) > limits.credentialBytes) {
    throw new ProtocolError('request_too_large', 'authorization: too large');
  }
  const recipientBoxes = boxTexts(params.recipient_boxes, limits.keyBoxBytes);
  const senderBoxes = params.sender_boxes && boxTexts(params.sender_boxes, limits.keyBoxBytes);
  // Before storage is read, so that no account reads the result of another account's message.
  if (envelope.from !== session.account || envelope.from_device_id !== session.deviceId) {
    throw new ProtocolError('forbidden', 'the envelope is not of the calling device');
  }
  // The envelope is the large part: its digest stands for it in the digest of the whole.
  const rest = canonicalWith(params, { omit: ['envelope'] });
  return {
    ...{ session, now: clock.now(), envelope, storedEnvelope, recipientBoxes, senderBoxes },
    ...{ authorization, credential, digest: digest(`${storedEnvelope.id}\n${rest}`) },
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
